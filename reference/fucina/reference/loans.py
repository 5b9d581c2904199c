"""What a pool keeps books of: memory that waits in a free list, and buffers that are out."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from fucina.reference.allocation import Bytes
from fucina.reference.origins import calling_line
from fucina.spec.runtime import Leak
from fucina.spec.types import DType

if TYPE_CHECKING:
    from fucina.reference.storage import Storage

__all__ = ["FreeList", "Ledger", "Loan"]


class FreeList:
    """Memory that waits, ascending by size.

    Notes
    -----
    Clauses: POOL-FIT-1, POOL-LIFO-1
    """

    def __init__(self) -> None:
        self._waiting: list[Bytes] = []
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def take(self, size: int) -> Bytes | None:
        """Remove and return the first memory of at least that size; None: there is none.

        Notes
        -----
        Clauses: POOL-FIT-1
        """
        for i, memory in enumerate(self._waiting):
            if memory.size >= size:
                del self._waiting[i]
                self.bytes -= memory.size
                return memory
        return None

    def put(self, memory: Bytes) -> None:
        """Insert memory before all that is as large.

        Notes
        -----
        Clauses: POOL-LIFO-1
        """
        place = sum(other.size < memory.size for other in self._waiting)
        self._waiting.insert(place, memory)
        self.bytes += memory.size

    def clear(self) -> None:
        """Let go of everything."""
        self._waiting.clear()
        self.bytes = 0


@dataclass(frozen=True, slots=True)
class Loan:
    """One buffer or lease that is out.

    Parameters
    ----------
    storage : weak reference
        What is out; it lives as long as anything refers to it.
    dtype : DType or None
        Its dtype; None of a lease.
    length : int
        How many elements it has, for want of a shape.
    origin : str or None
        Where it was acquired.

    Notes
    -----
    Clauses: POOL-LEAK-1
    """

    storage: weakref.ref[Storage]
    dtype: DType | None
    length: int
    origin: str | None

    def leak(self) -> Leak:
        """Return what a report says about it.

        Notes
        -----
        Clauses: POOL-LEAK-1
        """
        storage = self.storage()
        shape = storage and storage.newest_shape
        return Leak(self.dtype, tuple(shape or (self.length,)), self.origin)


class Ledger:
    """Who has what: the loans that are out, oldest first.

    Parameters
    ----------
    trace : bool
        Whether a loan notes where it was made.

    Notes
    -----
    Clauses: POOL-COUNT-1, POOL-LEAK-1
    """

    def __init__(self, trace: bool) -> None:
        self._trace = trace
        self._numbers = count()
        self._out: dict[int, Loan] = {}

    def __len__(self) -> int:
        return len(self._out)

    def number(self) -> int:
        """Return a number for a loan."""
        return next(self._numbers)

    def enter(self, number: int, storage: Storage, dtype: DType | None, length: int) -> None:
        """Enter a loan under its number."""
        origin = calling_line() if self._trace else None
        self._out[number] = Loan(weakref.ref(storage), dtype, length, origin)

    def strike(self, number: int) -> None:
        """Strike a loan out."""
        del self._out[number]

    def leaks(self) -> tuple[Leak, ...]:
        """Return what is out."""
        return tuple(loan.leak() for loan in self._out.values())
