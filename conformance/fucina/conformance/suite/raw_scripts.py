"""Replays a trace of raw tensors: what can be seen after each step is compared with what the original showed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fucina.spec import GEOMETRY, DType
from fucina.spec.errors import FucinaError

__all__ = ["RawScript", "raises"]

OPERATIONS = {
    "cloneView": "clone_view",
    "reshape": "reshape",
    "viewWithStrides": "view_with_strides",
    "viewWithStridesOffset": "view_with_strides_offset",
    "broadcastTo": "broadcast_to",
    "clone": "clone",
    "scaleInPlace": "scale_in_place",
    "fill": "fill",
    "addInPlace": "add_in_place",
}
CONSTRUCTORS = {
    "fromSlice": "from_slice",
    "fromStorageSlice": "from_storage_slice",
    "fromBorrowedSlice": "from_borrowed_slice",
    "fromBorrowedStorageSlice": "from_borrowed_storage_slice",
}


def raises(call: Callable[[], object]) -> str | None:
    """Return the name of the error that a call raises, or ``None``."""
    try:
        call()
    except FucinaError as error:
        return type(error).__name__
    return None


class RawScript:
    """One trace on one implementation."""

    def __init__(self, impl: Any, script: dict[str, Any]) -> None:
        self.name = script["name"]
        self.dtype = DType(script["dtype"])
        self.internal = impl.internal
        self.type = impl.internal.tensor_mod.TensorOf(self.dtype)
        self.storage_type = impl.internal.storage_mod.BufferOf(self.dtype)
        self.tensors: dict[int, Any] = {}
        self.storages: dict[int, Any] = {}  # by the number that the trace gives them
        self.steps = script["steps"]

    def run(self) -> None:
        """Take every step."""
        for number, step in enumerate(self.steps):
            self.where = f"{self.name}, step {number} ({step['op']} {step.get('shape', '')})"
            before = {handle: tensor.buffer.refs for handle, tensor in self.tensors.items()}
            error = self._step(step)
            expected = step["expect"].get("error")
            assert error == expected, f"{self.where}: got {error or 'no error'}, expected {expected or 'none'}"
            if error:
                after = {handle: tensor.buffer.refs for handle, tensor in self.tensors.items()}
                assert after == before, f"{self.where}: a call that failed changed reference counts"

    def _step(self, step: dict[str, Any]) -> str | None:
        try:
            handler = getattr(self, "_" + step["op"], None)
            if handler is not None:
                handler(step)
            else:
                self._operation(step)
        except FucinaError as error:
            return type(error).__name__
        return None

    # -- steps

    def _new(self, step: dict[str, Any]) -> None:
        count = 0
        if raises(lambda: self.internal.shape_mod.storage_element_count(self.dtype, step["shape"])) is None:
            count = self.internal.shape_mod.storage_element_count(self.dtype, step["shape"])
        self._construct(step, self._iota(min(count, 1 << 20) + step["extra"]))

    def _new_with_count(self, step: dict[str, Any]) -> None:
        self._construct(step, np.zeros(step["count"], self.type.Element))

    def _construct(self, step: dict[str, Any], values: Any) -> None:
        how, shape = step["how"], tuple(step["shape"])
        if how in ("zeros", "ones"):
            tensor = getattr(self.type, how)(shape)
        elif how == "fromOwnedBuffer":
            buffer = self.storage_type.from_slice(values)
            try:
                tensor = self.type.from_owned_buffer(buffer, shape)
            except FucinaError:
                assert buffer.refs == 1, f"{self.where}: on error the reference stays with the caller"
                buffer.release()
                raise
        else:
            tensor = getattr(self.type, CONSTRUCTORS[how])(shape, values)
        self.tensors[step["handle"]] = tensor
        self._compare(tensor, step["expect"])

    def _iota(self, count: int) -> Any:
        if GEOMETRY[self.dtype].block_size is None:
            return np.arange(count).astype(self.type.Element)
        blocks = np.zeros((count, self.type.Element.itemsize), np.uint8)
        blocks[:, 0] = np.arange(count) & 255
        blocks[:, 1:] = (np.arange(count) & 255)[:, None]
        return blocks.reshape(-1).view(self.type.Element)

    def _operation(self, step: dict[str, Any]) -> None:
        source = self.tensors[step["src"]]
        arguments: list[Any] = [step["shape"]] if "shape" in step else []
        if "strides" in step:
            arguments.append(self._strides(source, step["strides"]))
        arguments += [step[key] for key in ("offset_delta", "value") if key in step]
        if "other" in step:
            arguments.append(self.tensors[step["other"]])
        answer = getattr(source, OPERATIONS[step["op"]])(*arguments)
        if "handle" in step:
            self.tensors[step["handle"]] = answer
        self._compare(answer if "handle" in step else source, step["expect"])

    def _strides(self, source: Any, strides: Any) -> Any:
        own = list(source.strides)
        if strides == "identity":
            return own
        if isinstance(strides, dict):
            ((kind, extra),) = strides.items()
            return [own[0] + extra, *own[1:]] if kind == "identity_except_axis0_plus" else [*own, extra]
        return strides

    def _describe(self, step: dict[str, Any]) -> None:
        self._compare(self.tensors[step["src"]], step["expect"])

    def _deinit(self, step: dict[str, Any]) -> None:
        tensor = self.tensors.pop(step["src"])
        buffer = tensor.buffer
        tensor.deinit()
        assert (buffer.refs == 0) == step["expect"]["final_release"], f"{self.where}: {buffer.refs} references"
        assert raises(tensor.deinit) == "UseAfterDeinit", f"{self.where}: deinit worked twice"

    def _buffer_retain(self, step: dict[str, Any]) -> None:
        buffer = self.tensors[step["src"]].buffer
        buffer.retain()
        assert buffer.refs == step["expect"]["refs"], self.where

    def _buffer_release(self, step: dict[str, Any]) -> None:
        buffer = self.tensors[step["src"]].buffer
        buffer.release()
        assert buffer.refs == step["expect"]["refs"], self.where

    def _write_element(self, step: dict[str, Any]) -> None:
        self.tensors[step["src"]].data_checked()[step["index"]] = step["value"]

    def _copyRangeTo(self, step: dict[str, Any]) -> None:  # noqa: N802 - the trace's name of the step
        out = np.full(step["count"], 77, self.type.Element)
        self.tensors[step["src"]].copy_range_to(out, step["start"], step["count"])
        assert out.tolist() == step["expect"].get("values", out.tolist()), self.where

    def _copyTo_into_length(self, step: dict[str, Any]) -> None:  # noqa: N802
        self.tensors[step["src"]].copy_to(np.zeros(step["length"], self.type.Element))

    def _rankView(self, step: dict[str, Any]) -> None:  # noqa: N802
        tensor = self.tensors[step["src"]]
        view = tensor.rank_view(step["rank"])
        assert (view.shape, view.strides) == (tuple(tensor.shape), tuple(tensor.strides)), self.where

    # -- what can be seen

    def _compare(self, tensor: Any, expect: dict[str, Any]) -> None:
        if "error" in expect:
            return  # it should have been raised; run() says so
        seen = self._seen(tensor, expect)
        wanted = {key: value for key, value in expect.items() if key not in ("source_strides", "buffer_id")}
        for key, value in wanted.items():
            assert seen[key] == value, f"{self.where}: {key} is {seen[key]}, expected {value}"
        storage = self.storages.setdefault(expect["buffer_id"], tensor.buffer)
        assert storage == tensor.buffer, f"{self.where}: another storage than before"
        others = (other for number, other in self.storages.items() if number != expect["buffer_id"])
        assert all(other != storage for other in others), f"{self.where}: a storage that belongs to another tensor"

    def _seen(self, tensor: Any, expect: dict[str, Any]) -> dict[str, Any]:
        def value(call: Callable[[], Any]) -> Any:
            try:
                return call()
            except FucinaError as error:
                return type(error).__name__

        seen = {
            "shape": list(tensor.shape),
            "strides": list(tensor.strides),
            "offset": tensor.offset,
            "rank": tensor.rank(),
            "len": value(tensor.len),
            "storageLen": tensor.storage_len(),
            "isContiguous": tensor.is_contiguous(),
            "isScalar": value(tensor.is_scalar),
            "refs": tensor.buffer.refs,
            "isUnique": tensor.buffer.is_unique(),
            "canTakeInPlace": tensor.can_take_in_place(),
            "bufferLen": tensor.buffer.capacity,
            "rows": value(tensor.rows),
            "cols": value(tensor.cols),
            "dataChecked": value(lambda: len(tensor.data_checked())),
        }
        if "values" in expect or "copyTo" in expect:
            out = np.zeros(tensor.storage_len(), self.type.Element)
            seen["copyTo"] = raises(lambda: tensor.copy_to(out))
            first = out if self.type.Element.names is None else out.view(np.uint8).reshape(len(out), -1)[:, 0]
            seen["values"] = first.tolist()
        return seen
