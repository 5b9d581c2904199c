"""What the methods of a context stand on: who may call them, and the parts that they use.

``contexts`` is the C module under it (csrc/python/contexts.c), in the same shared object as ``_native``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from math import prod
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, TypeVar

from fucina.fast import _native
from fucina.fast._moe_scratch import MoeDecodeScratch
from fucina.fast._objects import handles
from fucina.fast._origins import calling_line
from fucina.fast._scopes import ScopeStack
from fucina.fast._shown import shown
from fucina.fast._sizes import entries, storage_count_of
from fucina.fast._team_parts import TeamParts
from fucina.fast.backend import Backend
from fucina.fast.buffer_pool import BufferPool
from fucina.fast.fpenv import Record
from fucina.fast.tensor import RawTensor, TensorOf
from fucina.spec.errors import ConcurrentUse, DTypeMismatch, UseAfterDeinit
from fucina.spec.types import DType

if TYPE_CHECKING:
    from fucina.fast import _contexts as contexts
else:
    _loader = ExtensionFileLoader("fucina.fast._contexts", _native.__file__)
    contexts = module_from_spec(spec_from_file_location("fucina.fast._contexts", loader=_loader))
    _loader.exec_module(contexts)

__all__ = ["Core", "Runtime", "contexts", "driven", "operands"]

_LARGE = 1 << 48
"""Storage elements from which on a request is looked at in Python: none of that size can be met."""


class Runtime:
    """The parts of a context: ``ctx.rt``.

    Clauses: CONTEXT-RT-1, CONTEXT-LIFE-1
    """

    def __init__(self, trace: bool) -> None:
        self._trace = trace
        self._buffers = BufferPool(trace=trace)
        self._backend = Backend()
        self.pinned = False
        self.record = Record()
        self.scopes = ScopeStack()
        self.scratch = MoeDecodeScratch()
        self.team = TeamParts(self._backend)

    @property
    def buffers(self) -> BufferPool:
        """The pool (clause CONTEXT-RT-1)."""
        return self._buffers

    @property
    def backend(self) -> Backend:
        """What runs the kernels (clause CONTEXT-RT-1)."""
        return self._backend

    @property
    def work_pool(self) -> Any:
        """The team, once it was asked for (clauses CONTEXT-RT-1, CONTEXT-TEAM-1)."""
        return self.team.pool

    @property
    def dot_backward_worker(self) -> Any:
        """The one-shot worker, once it was asked for (clauses CONTEXT-RT-1, CONTEXT-TEAM-1)."""
        return self.team.worker

    @property
    def scope_entries(self) -> int:
        """How many values and nodes scopes own (clause CONTEXT-RT-1)."""
        return self.scopes.entries

    @property
    def scope_depth(self) -> int:
        """How many scopes are open (clause CONTEXT-RT-1)."""
        return len(self.scopes.marks)

    @property
    def pin_rowwise_kernels(self) -> bool:
        """Whether rows are computed as if alone (clauses CONTEXT-RT-1, CONTEXT-PIN-1)."""
        return self.pinned

    def new(self, dtype: DType, shape: Any) -> RawTensor:
        """Return a contiguous tensor on pooled storage, of unspecified content.

        Clauses: CONTEXT-NEW-1, CONTEXT-OWNER-1
        """
        dims = entries("shape", shape, "CONTEXT-NEW-1")
        count = storage_count_of(dtype, dims, "CONTEXT-NEW-1")
        if count < _LARGE and not self._trace:
            made: RawTensor = self._buffers._empty(dtype.index, dims)
            return made
        buffer = self._buffers.acquire_typed(dtype, count)
        return self.traced(TensorOf(dtype)._over(buffer, dims))

    def room(self, dtype: DType, dims: tuple[int, ...]) -> RawTensor:
        """Return what :meth:`new` does, of sizes that were looked at before.

        Clauses: CONTEXT-NEW-1, CONTEXT-OWNER-1
        """
        if self._trace or prod(dims) >= _LARGE:
            return self.new(dtype, dims)
        made: RawTensor = self._buffers._empty(dtype.index, dims)
        return made

    def traced(self, made: RawTensor) -> RawTensor:
        """Return a tensor for the caller, with the caller's line where that is traced.

        Clauses: CONTEXT-TRACE-1
        """
        if self._trace:
            made.origin = calling_line()
        return made

    def __repr__(self) -> str:
        return f"<Runtime scope_depth={self.scope_depth} scope_entries={self.scope_entries} {self._buffers!r}>"


class Core(contexts.Context):
    """A context without its methods.

    Clauses: CONTEXT-THREAD-1
    """

    def __init__(self, *, trace: bool = False) -> None:
        self._rt = Runtime(bool(trace))
        self._begin(handles.Pool, self._rt.buffers, bool(trace), self._rt.scopes.marks)

    def _refuse_use(self) -> NoReturn:
        """Say why nobody, or nobody on this thread, may call.

        Clauses: CONTEXT-LIFE-2, CONTEXT-THREAD-1
        """
        if self._closed:
            raise UseAfterDeinit(f"{self!r} was used after its deinit", clause="CONTEXT-LIFE-2")
        raise ConcurrentUse(f"{self!r} is in use on another thread", clause="CONTEXT-THREAD-1")


_Context = TypeVar("_Context", bound=Core)
_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def driven(
    method: Callable[Concatenate[_Context, _Parameters], _Result],
) -> Callable[Concatenate[_Context, _Parameters], _Result]:
    """Return a method during which the calling thread drives the context.

    Clauses: CONTEXT-THREAD-1, CONTEXT-THREAD-2
    """

    @functools.wraps(method)
    def call(self: _Context, /, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        self._enter()
        try:
            return method(self, *args, **kwargs)
        finally:
            self._leave()

    return call


def operands(clause: str, **given: Any) -> tuple[RawTensor, ...]:
    """Return arguments that must be raw tensors: first that none has ended, then that each is one.

    Clauses: CONTEXT-OP-1
    """
    for value in given.values():
        if isinstance(value, handles.Tensor):
            value.rank()
    for name, value in given.items():
        if not isinstance(value, handles.Tensor):
            raise DTypeMismatch(f"{name} must be a raw tensor, got {shown(value)}", clause=clause)
    return tuple(given.values())
