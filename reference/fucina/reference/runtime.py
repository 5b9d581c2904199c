"""The execution context: one eager runtime, whole.

Its parts stand in :mod:`fucina.reference.substrate`; what it makes in :mod:`~fucina.reference.construction`, what it
sees and prepares in :mod:`~fucina.reference.layout_methods`, what it computes in
:mod:`~fucina.reference.raw_operations`, its scopes in :mod:`~fucina.reference.scope_methods`, and the switch of
gradients in :mod:`~fucina.reference.gradient_methods`.  Here are its life, its environment, its team and its scratch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, cast

from fucina.reference.arguments import flag
from fucina.reference.buffer_pool import BufferPool, ScratchLease
from fucina.reference.construction import Construction
from fucina.reference.gradient_methods import GradientMethods
from fucina.reference.layout_methods import LayoutMethods
from fucina.reference.leaks import deinit_noting
from fucina.reference.moe_scratch import MoeDecodeChainScratchView, MoeDecodeScratchView
from fucina.reference.prepared import PreparedTensor
from fucina.reference.raw_operations import RawOperations
from fucina.reference.scope_methods import ScopeMethods
from fucina.reference.scopes import ExecScope
from fucina.reference.substrate import Runtime, driven
from fucina.spec.errors import NotCopyable
from fucina.spec.runtime import LayoutClass, RhsLifetime

if TYPE_CHECKING:
    from types import TracebackType

    from fucina.spec.fpenv import Environment

__all__ = [
    "BufferPool",
    "ExecContext",
    "ExecScope",
    "LayoutClass",
    "MoeDecodeChainScratchView",
    "MoeDecodeScratchView",
    "PreparedTensor",
    "RhsLifetime",
    "Runtime",
    "ScratchLease",
]


class ExecContext(Construction, LayoutMethods, RawOperations, ScopeMethods, GradientMethods):
    """Allocation, scopes and raw operations, driven by one thread at a time.

    Parameters
    ----------
    trace : bool
        Whether tensors and buffers note where they were made, for warnings and the report of leaks.

    Notes
    -----
    Clauses: CONTEXT-LIFE-1, CONTEXT-TRACE-1
    """

    def __init__(self, *, trace: bool = False) -> None:
        self._rt = Runtime(trace)

    @property
    def rt(self) -> Runtime:
        """The parts of the context, to be looked at.

        Notes
        -----
        Clauses: CONTEXT-RT-1
        """
        return self._rt

    # -- life

    def deinit(self) -> None:
        """Take the context down: scratch, worker, team, scopes, pool.

        Raises
        ------
        UseAfterDeinit
            If that has happened.
        ConcurrentUse
            If another thread is in a call.
        LeakedBuffers
            If pooled buffers are still referenced, after everything else is done.

        Notes
        -----
        Clauses: CONTEXT-LIFE-2, POOL-LEAK-1, SCOPE-NODE-1
        """
        rt = self._rt
        with rt.driving():
            rt.closed = True
            rt.scratch.free()
            try:
                try:
                    rt.team.end()
                finally:
                    rt.scopes.close_down_to(0)
            except BaseException as error:
                deinit_noting(rt.buffers, error)
                raise
            rt.buffers.deinit()

    def __enter__(self) -> ExecContext:
        with self._rt.driving():
            return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._rt.closed:
            deinit_noting(self, error)

    def __repr__(self) -> str:
        if self._rt.closed:
            return "<ExecContext deinited>"
        return f"<ExecContext scope_depth={self._rt.scope_depth} outstanding={self._rt.buffers.outstanding_buffers()}>"

    def _refuse_copy(self, *_: object) -> NoReturn:
        raise NotCopyable(f"{self!r} cannot be copied or pickled", clause="CONTEXT-COPY-2")

    __copy__ = __deepcopy__ = __reduce_ex__ = _refuse_copy

    # -- environment and kernels

    @driven
    def check_float_environment(self) -> None:
        """Raise unless the calling thread's floating-point environment is that of the context's creation.

        Raises
        ------
        FloatEnvironmentChanged
            With what was recorded and what was found.

        Notes
        -----
        Clauses: CONTEXT-FPENV-1, FPENV-RECORD-2
        """
        self._rt.record.check()

    @driven
    def float_environment_at_init(self) -> Environment | None:
        """Return the environment of the thread that created the context; None where it cannot be seen.

        Notes
        -----
        Clauses: CONTEXT-FPENV-1, FPENV-RECORD-1
        """
        return self._rt.record.environment

    @driven
    def pin_rowwise_kernels(self, on: bool) -> None:
        """Compute rows as if each were alone, or not.

        Raises
        ------
        DTypeMismatch
            If ``on`` is no bool.

        Notes
        -----
        Clauses: CONTEXT-PIN-1
        """
        self._rt.pinned = flag("on", on, "CONTEXT-PIN-1")

    # -- team

    @driven
    def try_work_pool(self) -> Any:
        """Return the team of the context; the first call makes it.

        Raises
        ------
        OutOfMemory
            If it cannot be made.

        Notes
        -----
        Clauses: CONTEXT-TEAM-1
        """
        return self._rt.team.require_pool()

    @driven
    def work_pool(self) -> Any:
        """Return the team of the context, or None if it cannot be made.

        Notes
        -----
        Clauses: CONTEXT-TEAM-1
        """
        try:
            return self._rt.team.require_pool()
        except MemoryError:
            return None

    @driven
    def dot_backward_worker(self) -> Any:
        """Return the one-shot worker of the context, or None if it cannot be made; the first call makes it.

        Notes
        -----
        Clauses: CONTEXT-TEAM-1
        """
        try:
            return self._rt.team.require_worker()
        except MemoryError:
            return None

    # -- scratch of the decoding of mixtures of experts

    @driven
    def lock_moe_decode_scratch(self) -> None:
        """Lock the scratch, for a whole operation.

        Raises
        ------
        ConcurrentUse
            If it is locked.

        Notes
        -----
        Clauses: CONTEXT-MOE-1
        """
        self._rt.scratch.lock()

    @driven
    def unlock_moe_decode_scratch(self) -> None:
        """Unlock the scratch; its views end.

        Raises
        ------
        ConcurrentUse
            If it is not locked.

        Notes
        -----
        Clauses: CONTEXT-MOE-1
        """
        self._rt.scratch.unlock()

    @driven
    def carve_moe_decode_scratch(
        self,
        qg_block: Any,
        task: Any,
        hidden_blocks: int,
        top_k: int,
        out_pe: int,
        hidden: int,
        blocks_per_g: int,
    ) -> MoeDecodeScratchView:
        """Return arrays of the locked scratch.

        Parameters
        ----------
        qg_block, task : numpy dtype, or what ``numpy.dtype`` takes
            The elements of ``qg`` and ``tasks``, of an alignment of at most 8.
        hidden_blocks, top_k, out_pe, hidden, blocks_per_g : int
            What the lengths are made of.

        Raises
        ------
        ConcurrentUse
            If the scratch is not locked.
        DTypeMismatch, InvalidDType
            If an element is no numpy dtype, or needs a larger alignment.
        InvalidInteger, InvalidDataLength, Overflow
            If a count is no number of elements, or a length is 2^64 or more.
        OutOfMemory
            If there is no memory.

        Notes
        -----
        Clauses: CONTEXT-MOE-1, CONTEXT-MOE-2
        """
        counts: dict[str, object] = {
            "hidden_blocks": hidden_blocks,
            "top_k": top_k,
            "out_pe": out_pe,
            "hidden": hidden,
            "blocks_per_g": blocks_per_g,
        }
        return self._rt.scratch.carve(MoeDecodeScratchView, {"qg": qg_block, "tasks": task}, counts)

    @driven
    def carve_moe_decode_chain_scratch(
        self,
        qg_block: Any,
        state: Any,
        task: Any,
        hidden_blocks: int,
        top_k: int,
        out_pe: int,
        hidden: int,
        blocks_per_g: int,
        task_count: int,
    ) -> MoeDecodeChainScratchView:
        """Return arrays of the locked scratch, with states, and as many tasks as the caller wants.

        Parameters and errors are those of :meth:`carve_moe_decode_scratch`.

        Notes
        -----
        Clauses: CONTEXT-MOE-1, CONTEXT-MOE-2
        """
        counts: dict[str, object] = {
            "hidden_blocks": hidden_blocks,
            "top_k": top_k,
            "out_pe": out_pe,
            "hidden": hidden,
            "blocks_per_g": blocks_per_g,
            "task_count": task_count,
        }
        types = {"qg": qg_block, "states": state, "tasks": task}
        return cast(MoeDecodeChainScratchView, self._rt.scratch.carve(MoeDecodeChainScratchView, types, counts))
