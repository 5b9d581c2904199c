"""The substrate of a context: the pool, the backend, the team, the scopes, and who may drive them."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Concatenate, ParamSpec, TypeVar

from fucina.reference.backend import Backend
from fucina.reference.buffer_pool import BufferPool
from fucina.reference.fpenv import Record
from fucina.reference.moe_scratch import MoeDecodeScratch
from fucina.reference.origins import calling_line
from fucina.reference.scopes import ScopeStack
from fucina.reference.sizes import entries_of, storage_element_count
from fucina.reference.team_parts import TeamParts
from fucina.reference.tensor import RawTensor, TensorOf
from fucina.spec.errors import ConcurrentUse, UseAfterDeinit
from fucina.spec.types import DType

__all__ = ["Driven", "Runtime", "driven"]

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Self = TypeVar("Self", bound="Driven")


class Runtime:
    """The parts of a context; ``ctx.rt``.

    Parameters
    ----------
    trace : bool
        Whether what is made notes where.

    Notes
    -----
    Clauses: CONTEXT-RT-1, CONTEXT-LIFE-1
    """

    def __init__(self, trace: bool) -> None:
        self._lock = threading.RLock()
        self._trace = trace
        self._buffers = BufferPool(trace=trace)
        self._backend = Backend()
        self.closed = False
        self.pinned = False
        self.without_gradients = 0  # how many no_grad blocks are open
        self.record = Record()
        self.scopes = ScopeStack()
        self.scratch = MoeDecodeScratch()
        self.team = TeamParts(self._backend)

    # -- what a caller may look at

    @property
    def buffers(self) -> BufferPool:
        """The pool.

        Notes
        -----
        Clauses: CONTEXT-RT-1
        """
        return self._buffers

    @property
    def backend(self) -> Backend:
        """What runs the kernels.

        Notes
        -----
        Clauses: CONTEXT-RT-1
        """
        return self._backend

    @property
    def work_pool(self) -> Any:
        """The team, once there is one.

        Notes
        -----
        Clauses: CONTEXT-RT-1, CONTEXT-TEAM-1
        """
        return self.team.pool

    @property
    def dot_backward_worker(self) -> Any:
        """The one-shot worker, once there is one.

        Notes
        -----
        Clauses: CONTEXT-RT-1, CONTEXT-TEAM-1
        """
        return self.team.worker

    @property
    def scope_entries(self) -> int:
        """How many values and nodes scopes own.

        Notes
        -----
        Clauses: CONTEXT-RT-1
        """
        return self.scopes.entries

    @property
    def scope_depth(self) -> int:
        """How many scopes are open.

        Notes
        -----
        Clauses: CONTEXT-RT-1
        """
        return self.scopes.depth

    @property
    def pin_rowwise_kernels(self) -> bool:
        """Whether rows are computed as if each were alone.

        Notes
        -----
        Clauses: CONTEXT-RT-1, CONTEXT-PIN-1
        """
        return self.pinned

    # -- what operations use

    @contextmanager
    def driving(self) -> Iterator[None]:
        """Be the one thread that drives the context.

        A call within a call, such as that of a node's destructor, is the same thread's and passes.

        Raises
        ------
        UseAfterDeinit
            If the context was deinited.
        ConcurrentUse
            If another thread is in a call.

        Notes
        -----
        Clauses: CONTEXT-THREAD-1, CONTEXT-THREAD-2
        """
        self._require_open()
        if not self._lock.acquire(blocking=False):
            raise ConcurrentUse(f"the context of {self!r} is in use on another thread", clause="CONTEXT-THREAD-1")
        try:
            self._require_open()
            yield
        finally:
            self._lock.release()

    def _require_open(self) -> None:
        if self.closed:
            raise UseAfterDeinit(f"the context of {self!r} was used after its deinit", clause="CONTEXT-LIFE-2")

    def new(self, dtype: DType, shape: Any) -> RawTensor:
        """Return a contiguous tensor with pooled storage and unspecified content.

        Raises
        ------
        InvalidInteger, InvalidShape, Overflow
            If it is no shape of this dtype.
        OutOfMemory
            If there is no memory.

        Notes
        -----
        Clauses: CONTEXT-NEW-1, CONTEXT-OWNER-1
        """
        dims = entries_of("shape", shape, "CONTEXT-NEW-1")
        buffer = self._buffers.acquire_typed(dtype, storage_element_count(dtype, dims))
        return self.traced(TensorOf(dtype).from_owned_buffer(buffer, dims))

    def traced(self, made: RawTensor) -> RawTensor:
        """Return a tensor that was made for the caller; with tracing, it knows where.

        Notes
        -----
        Clauses: CONTEXT-TRACE-1
        """
        if self._trace:
            made.origin = calling_line()
        return made

    def __repr__(self) -> str:
        return f"<Runtime scope_depth={self.scope_depth} scope_entries={self.scope_entries} {self._buffers!r}>"


class Driven:
    """What has a substrate; its methods are those of a context."""

    _rt: Runtime


def driven(
    method: Callable[Concatenate[Self, Parameters], Result],
) -> Callable[Concatenate[Self, Parameters], Result]:
    """Return a method that drives the context while it runs.

    Notes
    -----
    Clauses: CONTEXT-THREAD-1
    """

    @functools.wraps(method)
    def call(self: Self, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        with self._rt.driving():
            return method(self, *args, **kwargs)

    return call
