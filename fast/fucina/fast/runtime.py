"""The execution context (chapters ``context`` and ``scope``).

It is built in layers: the C type and the parts (:mod:`~fucina.fast._context_core`), construction
(:mod:`~fucina.fast._context_making`), operations (:mod:`~fucina.fast._context_operations`), layouts
(:mod:`~fucina.fast._context_layouts`), scopes (:mod:`~fucina.fast._context_scopes`), gradients
(:mod:`~fucina.fast._context_gradients`), and here its life, its environment, its team and its scratch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from fucina.fast._context_core import Runtime, driven
from fucina.fast._context_gradients import Gradients
from fucina.fast._leaks import deinit_noting
from fucina.fast._moe_scratch import MoeDecodeChainScratchView, MoeDecodeScratchView
from fucina.fast._prepared import PreparedTensor
from fucina.fast._scopes import ExecScope
from fucina.fast._shown import shown
from fucina.fast.buffer_pool import BufferPool, ScratchLease
from fucina.spec.errors import DTypeMismatch, NotCopyable
from fucina.spec.runtime import LayoutClass, RhsLifetime

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

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


class ExecContext(Gradients):
    """Allocation, scopes and raw operations, driven by one thread at a time.

    Parameters
    ----------
    trace : bool
        Whether tensors and buffers know where they were made, for warnings and reports of leaks.

    Clauses: CONTEXT-LIFE-1, CONTEXT-TRACE-1
    """

    @property
    def rt(self) -> Runtime:
        """The parts, to be looked at (clause CONTEXT-RT-1)."""
        return self._rt

    # -- life

    @driven
    def deinit(self) -> None:
        """Take the context down: scratch, worker, team, scopes, pool.

        Raises
        ------
        UseAfterDeinit
            That has happened.
        ConcurrentUse
            Another thread is in a call.
        LeakedBuffers
            Pooled buffers are still referenced; everything else is done by then.

        Clauses: CONTEXT-LIFE-2, POOL-LEAK-1, SCOPE-NODE-1
        """
        rt = self._rt
        self._end()
        rt.scratch.free()
        try:
            try:
                rt.team.end()
            finally:
                rt.scopes.close_to(0)
        except BaseException as error:
            deinit_noting(rt.buffers, error)
            raise
        rt.buffers.deinit()

    @driven
    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._closed:
            deinit_noting(self, error)

    def __repr__(self) -> str:
        if self._closed:
            return "<ExecContext deinited>"
        return f"<ExecContext scope_depth={self._rt.scope_depth} outstanding={self._rt.buffers.outstanding_buffers()}>"

    def _refuse_copy(self, *_: object) -> NoReturn:
        raise NotCopyable(f"{self!r} cannot be copied or pickled", clause="CONTEXT-COPY-2")

    __copy__ = __deepcopy__ = __reduce_ex__ = _refuse_copy

    # -- environment and kernels

    @driven
    def check_float_environment(self) -> None:
        """Raise FloatEnvironmentChanged unless the calling thread's environment is that of the context's making.

        Clauses: CONTEXT-FPENV-1, FPENV-RECORD-2
        """
        self._rt.record.check()

    @driven
    def float_environment_at_init(self) -> Environment | None:
        """Return the environment in which the context was made; None where it cannot be seen.

        Clauses: CONTEXT-FPENV-1, FPENV-RECORD-1
        """
        return self._rt.record.environment

    @driven
    def pin_rowwise_kernels(self, on: bool) -> None:
        """Say whether rows are to be computed as if alone, which they are in any case.

        Raises
        ------
        DTypeMismatch
            ``on`` is no bool.

        Clauses: CONTEXT-PIN-1
        """
        if type(on) not in (bool, np.bool_):
            raise DTypeMismatch(f"on must be a bool, got {shown(on)}", clause="CONTEXT-PIN-1")
        self._rt.pinned = bool(on)

    # -- team

    @driven
    def try_work_pool(self) -> Any:
        """Return the team; the first call makes it, or raises OutOfMemory.

        Clauses: CONTEXT-TEAM-1
        """
        return self._rt.team.require_pool()

    @driven
    def work_pool(self) -> Any:
        """Return the team, or None where it cannot be made.

        Clauses: CONTEXT-TEAM-1
        """
        try:
            return self._rt.team.require_pool()
        except MemoryError:
            return None

    @driven
    def dot_backward_worker(self) -> Any:
        """Return the one-shot worker, or None where it cannot be made; the first call makes it.

        Clauses: CONTEXT-TEAM-1
        """
        try:
            return self._rt.team.require_worker()
        except MemoryError:
            return None

    # -- scratch of the decoding of mixtures of experts

    @driven
    def lock_moe_decode_scratch(self) -> None:
        """Lock the scratch for a whole operation; ConcurrentUse where it is locked.

        Clauses: CONTEXT-MOE-1
        """
        self._rt.scratch.lock()

    @driven
    def unlock_moe_decode_scratch(self) -> None:
        """Unlock the scratch, which ends its views; ConcurrentUse where it is not locked.

        Clauses: CONTEXT-MOE-1
        """
        self._rt.scratch.unlock()

    @driven
    def carve_moe_decode_scratch(
        self, qg_block: Any, task: Any, hidden_blocks: int, top_k: int, out_pe: int, hidden: int, blocks_per_g: int
    ) -> MoeDecodeScratchView:
        """Return arrays of the locked scratch.

        Parameters
        ----------
        qg_block, task : numpy dtype, or what ``numpy.dtype`` takes
            What ``qg`` and ``tasks`` consist of; of an alignment of at most 8.
        hidden_blocks, top_k, out_pe, hidden, blocks_per_g : int
            What the lengths are made of.

        Raises
        ------
        ConcurrentUse
            The scratch is not locked.
        DTypeMismatch, InvalidDType
            No such dtype; a larger alignment.
        InvalidInteger, InvalidDataLength, Overflow
            No number of elements; a length of 2^64 and above.
        OutOfMemory
            There is no memory.

        Clauses: CONTEXT-MOE-1, CONTEXT-MOE-2
        """
        counts = _counts(hidden_blocks, top_k, out_pe, hidden, blocks_per_g)
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
        """Return arrays of the locked scratch, with states and any number of tasks; see carve_moe_decode_scratch.

        Clauses: CONTEXT-MOE-1, CONTEXT-MOE-2
        """
        counts = _counts(hidden_blocks, top_k, out_pe, hidden, blocks_per_g) | {"task_count": task_count}
        elements = {"qg": qg_block, "states": state, "tasks": task}
        return cast(MoeDecodeChainScratchView, self._rt.scratch.carve(MoeDecodeChainScratchView, elements, counts))


def _counts(
    hidden_blocks: object, top_k: object, out_pe: object, hidden: object, blocks_per_g: object
) -> dict[str, object]:
    return {
        "hidden_blocks": hidden_blocks,
        "top_k": top_k,
        "out_pe": out_pe,
        "hidden": hidden,
        "blocks_per_g": blocks_per_g,
    }
