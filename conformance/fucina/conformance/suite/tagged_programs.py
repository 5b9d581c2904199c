"""Random programs over tagged tensors: constructors, operations, views, scopes, graphs and backward.

A program runs on one implementation at a time; two runs are compared step by step.  Steps name what they use by its
position among what is there, so that the same steps mean the same on both.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from fucina.conformance.compare import is_nan
from fucina.conformance.suite.exact import encode
from fucina.conformance.suite.raw_arithmetic import REAL
from fucina.conformance.suite.tagged import bits, held
from fucina.spec import DType
from fucina.spec.errors import FucinaError

__all__ = ["Machine", "steps"]

_WHICH = st.integers(0, 5)
_TAG = st.sampled_from("abc")
_TAGS = st.sampled_from([("a",), ("b",), ("a", "b"), ("b", "a"), ("a", "b", "c"), ()])
_DTYPE = st.sampled_from([DType.f32, DType.f32, DType.f32, DType.f16, DType.bf16, DType.i32, DType.f64])
_VALUES = st.lists(st.integers(-4, 4), min_size=1, max_size=6)
_SIZES = {"a": 2, "b": 3, "c": 2}
_NUMBER = st.sampled_from([0.5, -2.0, 0.1, 0.0])

UNARY: dict[str, Callable[[Any, Any, str, float], Any]] = {
    "scale": lambda c, x, tag, number: x.scale(c, number),
    "add_scalar": lambda c, x, tag, number: x.add_scalar(c, number),
    "sum": lambda c, x, tag, number: x.sum(c, tag),
    "mean": lambda c, x, tag, number: x.mean(c, tag, keep_dims=True),
    "sum_all": lambda c, x, tag, number: x.sum_all(c),
    "to f32": lambda c, x, tag, number: x.to(c, DType.f32),
    "to f16": lambda c, x, tag, number: x.to(c, DType.f16),
    "dropout": lambda c, x, tag, number: x.dropout(c, 0.5, 3),
    "l2_normalize": lambda c, x, tag, number: x.l2_normalize(c, tag),
    "nll_loss": lambda c, x, tag, number: x.nll_loss(c, [0] * (x.shape[0] if len(x.shape) == 2 else 1), tag),
    "argmax": lambda c, x, tag, number: x.argmax(c, tag),
    "argsort": lambda c, x, tag, number: x.argsort(c, tag, True),
    "top_k": lambda c, x, tag, number: x.top_k(c, tag, 1),
    "sort": lambda c, x, tag, number: x.sort(c, tag),
    "get_rows": lambda c, x, tag, number: x.get_rows(c, [1, 0]),
    "contiguous": lambda c, x, tag, number: x.contiguous(c),
    "flatten": lambda c, x, tag, number: x.flatten(c, tag),
    "narrow": lambda c, x, tag, number: x.narrow(c, tag, 1, 1),
    "transpose": lambda c, x, tag, number: x.transpose(c, tag, "a"),
    "broadcast_to": lambda c, x, tag, number: x.broadcast_to(c, (2, *x.shape), ("n", *x.axis_tags)),
    "split": lambda c, x, tag, number: x.split(c, tag, (x.dim(tag), 1), ("p", tag)),
    "merge": lambda c, x, tag, number: x.merge(c, x.axis_tags[:2], tag),
    "take_scale": lambda c, x, tag, number: x.take_scale_no_grad(c, number),
    "grad": lambda c, x, tag, number: x.grad(c),
    "grad_view": lambda c, x, tag, number: x.grad_view(c),
}
BINARY: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda c, x, y: x.add(c, y),
    "sub": lambda c, x, y: x.sub(c, y),
    "mul": lambda c, x, y: x.mul(c, y),
    "div": lambda c, x, y: x.div(c, y),
    "dot": lambda c, x, y: x.dot(c, y),
    "cosine": lambda c, x, y: x.cosine_similarity(c, y, "a"),
    "take_add": lambda c, x, y: x.take_add_no_grad(c, y),
}

STEPS = st.one_of(
    st.tuples(st.just("new"), st.sampled_from(["from_slice", "variable_from_slice"]), _DTYPE, _TAGS, _VALUES),
    st.tuples(st.just("unary"), st.sampled_from(sorted(UNARY)), _WHICH, _TAG, _NUMBER),
    st.tuples(st.just("unary"), st.sampled_from(sorted(UNARY)), _WHICH, _TAG, _NUMBER),
    st.tuples(st.just("binary"), st.sampled_from(sorted(BINARY)), _WHICH, _WHICH),
    st.tuples(st.just("binary"), st.sampled_from(sorted(BINARY)), _WHICH, _WHICH),
    st.tuples(st.just("backward"), _WHICH),
    st.tuples(st.just("backward"), _WHICH),
    st.tuples(st.just("end"), st.sampled_from(["deinit", "drop", "zero_grad"]), _WHICH),
    st.tuples(st.just("replace"), _WHICH, _NUMBER),
    st.tuples(st.just("write"), _WHICH, st.integers(-4, 4)),
    st.tuples(st.just("scope"), st.booleans(), _WHICH),
    st.tuples(st.just("no_grad"), st.booleans()),
)
_FIRST = st.tuples(st.just("new"), st.just("variable_from_slice"), st.just(DType.f32), st.just(("a", "b")), _VALUES)
_OPEN = st.sampled_from([[], [("scope", True, 0)], [("scope", True, 0)]])
steps = st.builds(
    lambda first, opened, rest: [first, *opened, *rest], _FIRST, _OPEN, st.lists(STEPS, min_size=5, max_size=40)
)


class Machine:
    """The state of a program on one implementation."""

    def __init__(self, impl: Any) -> None:
        self.impl = impl
        self.ctx = impl.ExecContext()
        self.tensors: list[Any] = []
        self.marks: list[Any] = []
        self.off: list[Any] = []

    def step(self, step: tuple[Any, ...]) -> tuple[Any, ...]:
        """Take a step; return its error, if any, and all that can be seen after it."""
        error = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            try:
                getattr(self, "_" + step[0])(*step[1:])
            except FucinaError as raised:
                error = type(raised).__name__
        return error, self._seen()

    def _keep(self, result: Any) -> None:
        if result is not None:
            self.tensors += list(result) if hasattr(result, "indices") else [result]

    def _at(self, which: int) -> int | None:
        """Return the position of one of the newest tensors whose name was not dropped."""
        there = [i for i, tensor in enumerate(self.tensors) if tensor is not None]
        return there[-1 - which % len(there)] if there else None

    # -- steps

    def _new(self, how: str, dtype: DType, tags: tuple[str, ...], values: list[int]) -> None:
        shape = tuple(_SIZES[tag] for tag in tags)
        count = int(np.prod(shape, dtype=int))
        array = np.resize(np.array(values, np.float64), count)
        codes = encode(dtype, array).view(self.impl.dtype.storage(dtype))
        self._keep(getattr(self.impl.Tensor(*tags, dtype=dtype), how)(self.ctx, shape, codes))

    def _unary(self, name: str, which: int, tag: str, number: float) -> None:
        i = self._at(which)
        if i is not None:
            self._keep(UNARY[name](self.ctx, self.tensors[i], tag, number))

    def _binary(self, name: str, which: int, other: int) -> None:
        i, j = self._at(which), self._at(other)
        if i is not None and j is not None:
            self._keep(BINARY[name](self.ctx, self.tensors[i], self.tensors[j]))

    def _backward(self, which: int) -> None:
        i = self._at(which)
        if i is None:
            return
        loss = self.tensors[i]
        if loss.requires_grad and loss.shape:
            loss = (loss if loss.dtype is DType.f32 else loss.to(self.ctx, DType.f32)).sum_all(self.ctx)
            self._keep(loss)
        loss.backward(self.ctx)

    def _end(self, how: str, which: int) -> None:
        i = self._at(which)
        if i is None:
            return
        if how == "drop":
            self.tensors[i] = None
        else:
            getattr(self.tensors[i], how)()

    def _replace(self, which: int, number: float) -> None:
        i = self._at(which)
        if i is not None:
            old = self.tensors[i]
            self._keep(self.ctx.replace(old, lambda: old.scale(self.ctx, number)))

    def _write(self, which: int, value: int) -> None:
        i = self._at(which)
        if i is not None:
            array = self.tensors[i].data()
            array[0] = encode(self.tensors[i].dtype, np.array([float(value)])).view(array.dtype)[0]

    def _scope(self, opens: bool, which: int) -> None:
        if opens or not self.marks:
            self.marks.append(self.ctx.open_exec_scope())
        else:
            self.ctx.close_exec_scope(self.marks[-1 - (which % len(self.marks) if which > 3 else 0)])
            self.marks.pop()

    def _no_grad(self, opens: bool) -> None:
        if opens and len(self.off) < 3:
            self.off.append(self.ctx.no_grad())
            self.off[-1].__enter__()
        elif self.off:
            self.off.pop().__exit__(None, None, None)

    # -- what can be seen

    def _seen(self) -> tuple[Any, ...]:
        stores: list[Any] = []
        tensors = tuple(self._tensor(t, stores) for t in self.tensors)
        return held(self.ctx), self.ctx.grad_enabled(), len(self.marks), tensors

    def _tensor(self, tensor: Any, stores: list[Any]) -> object:
        if tensor is None:
            return None
        try:
            raw = tensor.as_raw_tensor()
        except FucinaError as error:
            return type(error).__name__, repr(tensor)
        buffer = raw.buffer
        if buffer not in stores:
            stores.append(buffer)
        return (
            *(repr(tensor), tuple(raw.strides), raw.offset, buffer.refs, buffer.generation, stores.index(buffer)),
            *(tensor.scope_owned, tensor.requires_grad, self._content(tensor), self._gradient(tensor)),
        )

    def _gradient(self, tensor: Any) -> object:
        found = tensor.grad_view(self.ctx) if tensor.dtype in (DType.f32, DType.f16, DType.bf16) else None
        if found is None:
            return None
        with found:
            return self._content(found)

    @staticmethod
    def _content(tensor: Any) -> list[int]:
        """Return the patterns, any NaN as the same one."""
        patterns = bits(tensor).reshape(-1)
        if tensor.dtype in REAL:
            patterns = np.where(is_nan(patterns, tensor.dtype), encode(tensor.dtype, np.array([np.nan]))[0], patterns)
        found: list[int] = patterns.tolist()
        return found

    def finish(self) -> None:
        """Give everything back; nothing may be out then."""
        while self.off:
            self.off.pop().__exit__(None, None, None)
        for mark in reversed(self.marks):
            self.ctx.close_exec_scope(mark)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            self.tensors.clear()
            gc.collect()
        assert held(self.ctx) == (0, 0, 0), "FACADE-OWN-1: something is out"
        self.ctx.deinit()
