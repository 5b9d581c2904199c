"""Random programs over storage and raw tensors: what they do, and everything that can be seen after each step.

A program runs on one implementation at a time; two runs are compared step by step.  Steps name what they use by its
position among what is there, so that the same steps mean the same on both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from fucina.spec import DType
from fucina.spec.errors import FucinaError

__all__ = ["Machine", "steps"]

DTYPES = [DType.f32, DType.f32, DType.f32, DType.bf16, DType.i8, DType.f8_e4m3, DType.bool]
_SMALL = st.integers(0, 2)
_SHAPE = st.sampled_from([[4], [2, 2], [2], [4, 2], [1, 4], [3, 4], [1], [2, 3, 4], [5], [0], [], [2, 0]])
_STRIDES = st.sampled_from([[1], [2], [0], [2, 1], [1, 2], [0, 1], [4, 1], [1, 4], [1, 1], [12, 4, 1], []])
_EXTRA = st.sampled_from([0, 0, 0, 0, 1, -1])
_WHICH = st.integers(0, 3)

STEPS = st.one_of(
    st.tuples(st.just("new"), st.sampled_from(["zeros", "ones"]), st.sampled_from(DTYPES), _SHAPE),
    st.tuples(st.just("copy"), st.sampled_from(DTYPES), _SHAPE, _EXTRA),
    st.tuples(st.just("borrow"), st.booleans(), _SHAPE, _EXTRA),
    st.tuples(st.just("own"), _WHICH, _SHAPE),
    st.tuples(st.just("create"), st.sampled_from(DTYPES), st.integers(0, 30), st.booleans()),
    st.tuples(st.just("view"), st.sampled_from(["reshape", "broadcast_to"]), _WHICH, _SHAPE),
    st.tuples(st.just("strided"), _WHICH, _SHAPE, _STRIDES, _SMALL),
    st.tuples(st.just("again"), st.sampled_from(["clone", "clone_view"]), _WHICH),
    st.tuples(st.just("end"), st.sampled_from(["deinit", "drop", "release", "destroy"]), _WHICH),
    st.tuples(st.just("reference"), st.sampled_from(["retain", "release", "reset_refs", "destroy"]), _WHICH),
    st.tuples(st.just("fill"), _WHICH, st.sampled_from([0, 1, 1.0, 2.5, True])),
    st.tuples(st.just("scale"), _WHICH, st.sampled_from([0.5, -3, 1e30])),
    st.tuples(st.just("add"), _WHICH, _WHICH),
    st.tuples(st.just("array"), st.sampled_from(["data", "data_const", "asarray", "dlpack"]), _WHICH),
    st.tuples(st.just("write"), _WHICH, st.integers(0, 1)),
    st.tuples(st.just("forget"), _WHICH),
    st.tuples(st.just("range"), _WHICH, st.integers(0, 9), st.integers(0, 9)),
    st.tuples(st.just("fault"), _WHICH),
)
_FIRST = st.tuples(st.just("copy"), st.just(DType.f32), _SHAPE, st.just(0))
steps = st.builds(lambda first, rest: [first, *rest], _FIRST, st.lists(STEPS, min_size=5, max_size=60))


class Machine:
    """The state of a program on one implementation."""

    def __init__(self, impl: Any) -> None:
        self.internal = impl.internal
        self.tensors: list[Any] = []
        self.buffers: list[Any] = []
        self.arrays: list[Any] = []
        self.sources: list[Any] = []
        self.log: list[str] = []

    def step(self, step: tuple[Any, ...]) -> tuple[Any, ...]:
        """Take a step; return its error, if any, and all that can be seen after it."""
        error = None
        try:
            getattr(self, "_" + step[0])(*step[1:])
        except FucinaError as raised:
            error = type(raised).__name__
        return error, tuple(self.log), self._seen()

    def _of(self, dtype: DType) -> Any:
        return self.internal.tensor_mod.TensorOf(dtype)

    @staticmethod
    def _pick(those: list[Any], which: int) -> Any:
        return those[which % len(those)] if those else None

    def _on(self, which: int, action: Callable[[Any], Any]) -> None:
        tensor = self._pick(self.tensors, which)
        if tensor is not None:
            action(tensor)

    # -- steps

    def _new(self, how: str, dtype: DType, shape: list[int]) -> None:
        self.tensors.append(getattr(self._of(dtype), how)(shape))

    def _copy(self, dtype: DType, shape: list[int], extra: int) -> None:
        values = (np.arange(max(math.prod(shape) + extra, 0)) % 2).astype(self._of(dtype).Element)
        self.tensors.append(self._of(dtype).from_slice(shape, values))

    def _borrow(self, const: bool, shape: list[int], extra: int) -> None:
        source = np.arange(max(math.prod(shape) + extra, 0), dtype=np.float32)
        kind = self._of(DType.f32)
        self.tensors.append((kind.from_borrowed_const_slice if const else kind.from_borrowed_slice)(shape, source))
        self.sources.append(source)

    def _create(self, dtype: DType, length: int, hooked: bool) -> None:
        storage = self.internal.storage_mod
        number = len(self.buffers)

        def hook(ctx: Any, buffer: Any) -> None:
            self.log.append(f"hook {number}")
            buffer.destroy()

        kind = storage.BufferOf(dtype)
        buffer = kind.create_with_release(length, storage.Release("ctx", hook)) if hooked else kind.create(length)
        buffer.wait_mutable().view(np.uint8)[:] = 1
        self.buffers.append(buffer)

    def _own(self, which: int, shape: list[int]) -> None:
        buffer = self._pick(self.buffers, which)
        if buffer is not None:
            self.tensors.append(self._of(type(buffer).dtype).from_owned_buffer(buffer, shape))

    def _view(self, how: str, which: int, shape: list[int]) -> None:
        self._on(which, lambda tensor: self.tensors.append(getattr(tensor, how)(shape)))

    def _strided(self, which: int, shape: list[int], strides: list[int], offset: int) -> None:
        self._on(which, lambda t: self.tensors.append(t.view_with_strides_offset(shape, strides, offset)))

    def _again(self, how: str, which: int) -> None:
        self._on(which, lambda tensor: self.tensors.append(getattr(tensor, how)()))

    def _end(self, how: str, which: int) -> None:
        if how == "drop":
            if self.tensors:
                self.tensors.pop(which % len(self.tensors))
        else:
            self._on(which, lambda tensor: getattr(tensor if how == "deinit" else tensor.buffer, how)())

    def _reference(self, how: str, which: int) -> None:
        buffer = self._pick(self.buffers, which)
        if buffer is not None:
            getattr(buffer, how)()

    def _fill(self, which: int, value: Any) -> None:
        self._on(which, lambda tensor: tensor.fill(value))

    def _scale(self, which: int, value: float) -> None:
        self._on(which, lambda tensor: tensor.scale_in_place(value))

    def _add(self, which: int, other: int) -> None:
        self._on(which, lambda tensor: tensor.add_in_place(self._pick(self.tensors, other)))

    def _array(self, how: str, which: int) -> None:
        makers: dict[str, Callable[[Any], Any]] = {
            "asarray": np.asarray,
            "dlpack": lambda tensor: tensor.__dlpack__(max_version=(1, 0)),
        }
        make = makers.get(how)
        self._on(which, lambda tensor: self.arrays.append(make(tensor) if make else getattr(tensor, how)()))

    def _write(self, which: int, value: int) -> None:
        array = self._pick([a for a in self.arrays if isinstance(a, np.ndarray) and a.flags.writeable], which)
        if array is not None:
            array[...] = value

    def _forget(self, which: int) -> None:
        if self.arrays:
            self.arrays.pop(which % len(self.arrays))

    def _range(self, which: int, start: int, count: int) -> None:
        def copy(tensor: Any) -> None:
            out = np.zeros(count, tensor.Element)
            tensor.copy_range_to(out, start, count)
            self.log.append(out.tobytes().hex())

        self._on(which, copy)

    def _fault(self, which: int) -> None:
        """Clone while there is no memory."""
        self.internal.fail_allocation(1)
        try:
            self._again("clone", which)
        finally:
            self.internal.fail_allocation(None)

    # -- what can be seen

    def _seen(self) -> tuple[Any, ...]:
        tensors = tuple(self._tensor(tensor) for tensor in self.tensors)
        buffers = tuple(
            (b.refs, b.capacity, b.generation, b.read_only, self._value(b.is_unique), repr(b)) for b in self.buffers
        )
        arrays = tuple(a.tobytes() if isinstance(a, np.ndarray) else "capsule" for a in self.arrays)
        sources = tuple(source.tobytes() for source in self.sources)
        return tensors, buffers, arrays, sources

    def _tensor(self, tensor: Any) -> tuple[Any, ...]:
        def look() -> tuple[Any, ...]:
            out = np.zeros(tensor.len(), tensor.Element)
            tensor.copy_to(out)
            buffer = tensor.buffer
            return (
                tuple(tensor.shape),
                tuple(tensor.strides),
                tensor.offset,
                buffer.refs,
                buffer.generation,
                buffer.capacity,
                tensor.can_take_in_place(),
                tensor.is_contiguous(),
                [i for i, other in enumerate(self.tensors) if self._lies_on(other, buffer)],
                out.tobytes(),
            )

        return self._value(look), repr(tensor)

    def _lies_on(self, tensor: Any, buffer: Any) -> bool:
        return self._value(lambda: tensor.buffer == buffer) is True

    @staticmethod
    def _value(call: Callable[[], Any]) -> Any:
        try:
            return call()
        except FucinaError as error:
            return type(error).__name__
