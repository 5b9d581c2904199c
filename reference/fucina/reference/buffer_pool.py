"""The buffer pool: storage that is used again.

Two free lists share one budget.  The f32 arm keeps the memory of f32 buffers, the slab arm keeps slabs of bytes that
serve every other dtype in turn.  A pool hands memory out in a new storage each time, so that a handle to the old one
never sees what the next owner does.
"""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from fucina.reference.allocation import Bytes, allocate
from fucina.reference.arguments import dtype_argument, shown, whole
from fucina.reference.leaks import deinit_noting
from fucina.reference.loans import FreeList, Ledger
from fucina.reference.scratch import ScratchLease
from fucina.reference.sizes import length_argument
from fucina.reference.storage import BufferOf, Storage
from fucina.spec.errors import (
    DTypeMismatch,
    InvalidBounds,
    InvalidShape,
    LeakedBuffers,
    NotCopyable,
    OutOfMemory,
    Overflow,
    UseAfterDeinit,
)
from fucina.spec.runtime import DEFAULT_MAX_CACHED_BYTES, SLAB_ALIGN, SLAB_SIZE_QUANTUM
from fucina.spec.types import DType

if TYPE_CHECKING:
    from types import TracebackType

    from fucina.reference.references import Referenced

__all__ = ["BufferPool", "ScratchLease"]

F32_BYTES = 4
SMALL = 1024  # elements; up to here an f32 request is rounded to a power of two


def rounded_length(length: int) -> int:
    """Return the capacity of an f32 buffer for a request of at least one element.

    Notes
    -----
    Clauses: POOL-SIZE-1
    """
    return 1 << (length - 1).bit_length() if length <= SMALL else -(-length // SMALL) * SMALL


def slab_bytes(size: int) -> int:
    """Return the size of a slab for a request of that many bytes.

    Notes
    -----
    Clauses: POOL-SIZE-2
    """
    return -(-max(size, 1) // SLAB_SIZE_QUANTUM) * SLAB_SIZE_QUANTUM


class BufferPool:
    """Recycles the memory of storages.

    Parameters
    ----------
    trace : bool
        Whether to note where each buffer was acquired, for the report of leaks.

    Notes
    -----
    Clauses: POOL-TYPE-1, POOL-THREAD-1
    """

    slab_align: ClassVar[int] = SLAB_ALIGN
    slab_size_quantum: ClassVar[int] = SLAB_SIZE_QUANTUM

    def __init__(self, *, trace: bool = False) -> None:
        # a finalizer may give memory back while its own thread is in here, hence the lock that may be taken again
        self._lock = threading.RLock()
        self._buffers, self._slabs = FreeList(), FreeList()
        self._ledger = Ledger(trace)
        self._cap = DEFAULT_MAX_CACHED_BYTES
        self._closed = False

    # -- acquiring

    def acquire(self, length: int) -> Storage:
        """Return an f32 storage of at least ``length`` elements, of unspecified content.

        Parameters
        ----------
        length : int
            At least 1.

        Returns
        -------
        BufferOf(f32)
            With one reference; its capacity is ``length`` rounded.

        Raises
        ------
        UseAfterDeinit
            If the pool is closed.
        InvalidInteger, InvalidDataLength, Overflow
            If ``length`` is no number of elements.
        InvalidShape
            If it is 0.
        OutOfMemory
            If there is no memory.

        Notes
        -----
        Clauses: POOL-SIZE-1, POOL-FIT-1, POOL-COUNT-1, POOL-MEMORY-1
        """
        self._require_open("POOL-TYPE-1")
        count = length_argument("length", length, "POOL-SIZE-1")
        if count == 0:
            raise InvalidShape(f"length must be at least 1 for f32, got {count}", clause="POOL-SIZE-1")
        return self._lent(DType.f32, self._buffers, rounded_length(count) * F32_BYTES)

    def acquire_typed(self, dtype: DType, storage_len: int) -> Storage:
        """Return a storage of a dtype, of at least that many storage elements.

        Parameters
        ----------
        dtype : DType
            Any; f32 is served as by :meth:`acquire`.
        storage_len : int
            The number of elements, of a block dtype of blocks; 0 will do but for f32.

        Returns
        -------
        BufferOf(dtype)
            With one reference; its capacity is what fits into its slab.

        Raises
        ------
        UseAfterDeinit, InvalidDType, InvalidInteger, InvalidDataLength, Overflow, InvalidShape, OutOfMemory
            As :meth:`acquire`, and if ``dtype`` is none.

        Notes
        -----
        Clauses: POOL-TYPED-1, POOL-SIZE-2, POOL-FIT-1, POOL-COUNT-1, POOL-MEMORY-1
        """
        self._require_open("POOL-TYPE-1")
        found = dtype_argument(dtype)
        if found is DType.f32:
            return self.acquire(storage_len)
        count = length_argument("storage_len", storage_len, "POOL-TYPED-1")
        return self._lent(found, self._slabs, slab_bytes(count * BufferOf(found).Element.itemsize))

    def acquire_scratch(self, element: Any, length: int) -> ScratchLease:
        """Return a lease of ``length`` elements of any numpy dtype, of unspecified content.

        Parameters
        ----------
        element : numpy dtype, or what ``numpy.dtype`` takes
            Of at least one byte, without Python objects in it.
        length : int
            The number of elements.

        Returns
        -------
        ScratchLease
            To be released once.

        Raises
        ------
        UseAfterDeinit
            If the pool is closed.
        DTypeMismatch
            If ``element`` is no such dtype.
        InvalidInteger, InvalidDataLength, Overflow
            If ``length`` is no number of elements.
        OutOfMemory
            If there is no memory.

        Notes
        -----
        Clauses: POOL-SCRATCH-1, POOL-SIZE-2, POOL-FIT-1, POOL-COUNT-1, POOL-MEMORY-1
        """
        self._require_open("POOL-TYPE-1")
        form = _element_form(element)
        count = length_argument("length", length, "POOL-SCRATCH-1")
        lent = self._lent(None, self._slabs, slab_bytes(count * form.itemsize), count)
        return ScratchLease(self, lent, form, count)

    def _lent(self, dtype: DType | None, shelf: FreeList, size: int, count: int | None = None) -> Storage:
        """Return a new storage over memory of the free list, or over new memory.

        Notes
        -----
        Clauses: POOL-FIT-1, POOL-LIFO-1, POOL-MEMORY-1, POOL-STALE-1
        """
        with self._lock:
            cached = shelf.take(size)
        memory = allocate(size, "POOL-MEMORY-1") if cached is None else cached  # without the lock
        kind = BufferOf(dtype or DType.u8)
        capacity = memory.size // kind.Element.itemsize
        number = self._ledger.number()
        try:
            lent = kind.over(
                memory[: capacity * kind.Element.itemsize],
                "pooled",
                recycle=partial(self._take_back, shelf, memory, number),
            )
        except OutOfMemory:
            if cached is not None:
                with self._lock:
                    shelf.put(cached)  # before those of its size: where it was
            raise
        with self._lock:
            self._ledger.enter(number, lent, dtype, capacity if count is None else count)
        return lent

    def _take_back(self, shelf: FreeList, memory: Bytes, number: int, _: Referenced, __: Bytes, keep: bool) -> None:
        """Take memory back, into the free list if it fits under the cap.

        Notes
        -----
        Clauses: POOL-CAP-1, POOL-LIFO-1, POOL-COUNT-1, POOL-SCRATCH-2, POOL-THREAD-1
        """
        with self._lock:
            self._ledger.strike(number)
            if keep and not self._closed and self._cached() + memory.size <= self._cap:
                shelf.put(memory)

    # -- looking

    @property
    def max_cached_bytes(self) -> int:
        """How many bytes the free lists may hold together; lowering it evicts nothing.

        Notes
        -----
        Clauses: POOL-CAP-1
        """
        return self._cap

    @max_cached_bytes.setter
    def max_cached_bytes(self, value: int) -> None:
        found = whole("max_cached_bytes", value, "POOL-CAP-1")
        if found < 0:
            raise InvalidBounds(f"max_cached_bytes must not be negative, got {found}", clause="POOL-CAP-1")
        if found >> 64:
            raise Overflow(f"max_cached_bytes must be below 2^64, got {shown(found)}", clause="POOL-CAP-1")
        self._cap = found

    def cached_buffers(self) -> int:
        """Return how many f32 buffers the free list holds.

        Notes
        -----
        Clauses: POOL-COUNT-1
        """
        with self._lock:
            return len(self._buffers)

    def cached_slabs(self) -> int:
        """Return how many slabs the free list holds.

        Notes
        -----
        Clauses: POOL-COUNT-1
        """
        with self._lock:
            return len(self._slabs)

    def cached_bytes(self) -> int:
        """Return how many bytes both free lists hold.

        Notes
        -----
        Clauses: POOL-COUNT-1
        """
        with self._lock:
            return self._cached()

    def _cached(self) -> int:
        return self._buffers.bytes + self._slabs.bytes

    def outstanding_buffers(self) -> int:
        """Return how many buffers and leases are out.

        Notes
        -----
        Clauses: POOL-COUNT-1
        """
        with self._lock:
            return len(self._ledger)

    def require_nothing_out(self) -> None:
        """Raise if anything is out, naming it.

        Raises
        ------
        LeakedBuffers
            With one entry for each buffer and lease.

        Notes
        -----
        Clauses: POOL-LEAK-1
        """
        with self._lock:
            leaks = self._ledger.leaks()
        if leaks:
            listed = "; ".join(map(str, leaks))
            raise LeakedBuffers(
                f"{len(leaks)} buffers were still referenced: {listed}", clause="POOL-LEAK-1", leaks=leaks
            )

    # -- the end

    def deinit(self) -> None:
        """Free what is cached, then complain about what is out; that is freed when its last reference goes.

        Raises
        ------
        UseAfterDeinit
            If the pool is closed already.
        LeakedBuffers
            If buffers or leases are out, after everything else is done.

        Notes
        -----
        Clauses: POOL-TYPE-1, POOL-LEAK-1
        """
        with self._lock:
            self._require_open("POOL-TYPE-1")
            self._closed = True
            self._buffers.clear()
            self._slabs.clear()
        self.require_nothing_out()

    def _require_open(self, clause: str) -> None:
        if self._closed:
            raise UseAfterDeinit(f"{self!r} was used after its deinit", clause=clause)

    def __enter__(self) -> BufferPool:
        self._require_open("POOL-TYPE-1")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._closed:
            deinit_noting(self, error)

    def __repr__(self) -> str:
        if self._closed:
            return "<BufferPool deinited>"
        return f"<BufferPool cached_bytes={self.cached_bytes()} outstanding={self.outstanding_buffers()}>"

    def _refuse_copy(self, *_: object) -> NoReturn:
        raise NotCopyable(f"{self!r} cannot be copied or pickled", clause="POOL-TYPE-1")

    __copy__ = __deepcopy__ = __reduce_ex__ = _refuse_copy


def _element_form(element: Any) -> np.dtype[Any]:
    """Return the element of a lease as a numpy dtype.

    Notes
    -----
    Clauses: POOL-SCRATCH-1
    """
    try:
        form: np.dtype[Any] = np.dtype(element)
    except TypeError:
        raise DTypeMismatch(f"an element is a numpy dtype, got {shown(element)}", clause="POOL-SCRATCH-1") from None
    if form.itemsize == 0 or form.hasobject:
        raise DTypeMismatch(f"an element has bytes and no objects, got {form}", clause="POOL-SCRATCH-1")
    return form
