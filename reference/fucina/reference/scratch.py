"""Scratch leases: pooled memory for what is no tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from fucina.reference.storage import Storage
from fucina.spec.errors import NotCopyable, OverRelease, UseAfterDeinit

if TYPE_CHECKING:
    from types import TracebackType

    import numpy as np

    from fucina.reference.buffer_pool import BufferPool
    from fucina.spec.interface import AnyArray

__all__ = ["ScratchLease"]


class ScratchLease:
    """Scratch memory, borrowed from a pool until it is released.

    Made by ``BufferPool.acquire_scratch``.

    Parameters
    ----------
    pool : BufferPool
        Where it is from.
    lent : Storage
        The slab.
    form : numpy dtype
        The element.
    count : int
        How many elements were asked for.

    Notes
    -----
    Clauses: POOL-SCRATCH-1, POOL-SCRATCH-2
    """

    def __init__(self, pool: BufferPool, lent: Storage, form: np.dtype[Any], count: int) -> None:
        self._pool = pool
        self._lent: Storage | None = lent
        self._form = form
        self._count = count

    @property
    def pool(self) -> BufferPool:
        """Where it is from.

        Notes
        -----
        Clauses: POOL-SCRATCH-1
        """
        return self._pool

    @property
    def slab(self) -> AnyArray:
        """All bytes of the slab, writable.

        Raises
        ------
        UseAfterDeinit
            If it was released.

        Notes
        -----
        Clauses: POOL-SCRATCH-1
        """
        if self._lent is None:
            raise UseAfterDeinit(f"{self!r} was used after its release", clause="POOL-SCRATCH-1")
        return self._lent.pinned(writable=True)

    @property
    def items(self) -> AnyArray:
        """Exactly the elements that were asked for, writable.

        Raises
        ------
        UseAfterDeinit
            If it was released.

        Notes
        -----
        Clauses: POOL-SCRATCH-1
        """
        return self.slab[: self._count * self._form.itemsize].view(self._form)

    def release(self) -> None:
        """Give the slab back, on whatever thread; arrays of it keep it out until they die.

        Raises
        ------
        OverRelease
            If it was released.

        Notes
        -----
        Clauses: POOL-SCRATCH-2
        """
        lent, self._lent = self._lent, None
        if lent is None:
            raise OverRelease(f"{self!r} was released before", clause="POOL-SCRATCH-2")
        lent.release()

    def __enter__(self) -> ScratchLease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lent is not None:
            self.release()

    def __repr__(self) -> str:
        if self._lent is None:
            return "<ScratchLease released>"
        return f"<ScratchLease items={self._count} dtype={self._form}>"

    def _refuse_copy(self, *_: object) -> NoReturn:
        raise NotCopyable(f"{self!r} cannot be copied or pickled", clause="POOL-SCRATCH-1")

    __copy__ = __deepcopy__ = __reduce_ex__ = _refuse_copy
