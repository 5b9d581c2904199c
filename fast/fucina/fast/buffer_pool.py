"""The buffer pool: storage that is used again (chapter ``pool``); free lists and counters are the C core's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from fucina.fast._arguments import known_dtype, whole
from fucina.fast._leaks import deinit_noting
from fucina.fast._objects import DTYPES, handles
from fucina.fast._origins import calling_line
from fucina.fast._shown import integer_shown, shown
from fucina.fast._sizes import length as checked_length
from fucina.spec.errors import (
    DTypeMismatch,
    InvalidBounds,
    InvalidShape,
    LeakedBuffers,
    NotCopyable,
    OutOfMemory,
    Overflow,
    OverRelease,
    UseAfterDeinit,
)
from fucina.spec.runtime import SLAB_ALIGN, SLAB_SIZE_QUANTUM, Leak
from fucina.spec.types import DType

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from fucina.fast.storage import Storage
    from fucina.spec.interface import AnyArray

__all__ = ["BufferPool", "ScratchLease"]

_WORD = 1 << 64


class BufferPool(handles.Pool):
    """A pool of storage.

    Parameters
    ----------
    trace : bool
        Whether to note where each buffer was acquired, for the report of leaks.

    Clauses: POOL-TYPE-1, POOL-THREAD-1
    """

    __slots__ = ("_traced",)

    slab_align: ClassVar[int] = SLAB_ALIGN
    slab_size_quantum: ClassVar[int] = SLAB_SIZE_QUANTUM

    def __init__(self, *, trace: bool = False) -> None:
        self._traced = bool(trace)
        if trace:
            self._trace()

    # -- acquiring

    def _acquire_f32(self, length: int) -> Storage:
        """Return what ``acquire`` returns, or say why there is nothing.

        Raises
        ------
        UseAfterDeinit
            The pool is closed.
        InvalidInteger, InvalidDataLength, Overflow, InvalidShape
            No integer; negative; 2^64 and above; 0.
        OutOfMemory
            There is no memory.

        Clauses: POOL-SIZE-1, POOL-FIT-1, POOL-LIFO-1, POOL-COUNT-1, POOL-MEMORY-1
        """
        self._require_open()
        count = checked_length("length", length, "POOL-SIZE-1")
        if count == 0:
            raise InvalidShape(f"length must be at least 1, got {count}", clause="POOL-SIZE-1")
        return self._lent(self._acquire(DType.f32.index, count), count)

    def acquire_typed(self, dtype: DType, storage_len: int) -> Storage:
        """Return a storage of a dtype, of at least so many storage elements, with one reference.

        Parameters
        ----------
        dtype : DType
            Any of the 40; f32 is served as by :meth:`acquire`.
        storage_len : int
            The number of elements, of a block dtype of blocks.

        Raises
        ------
        UseAfterDeinit, InvalidDType, InvalidInteger, InvalidDataLength, Overflow, InvalidShape, OutOfMemory
            As :meth:`acquire`, and for what is no dtype.  A length of 0 is fine, except for f32.

        Clauses: POOL-TYPED-1, POOL-SIZE-2, POOL-FIT-1, POOL-LIFO-1, POOL-COUNT-1, POOL-MEMORY-1
        """
        self._require_open()
        found = known_dtype(dtype)
        if found is DType.f32:
            return self._acquire_f32(storage_len)
        count = checked_length("storage_len", storage_len, "POOL-TYPED-1")
        return self._lent(self._acquire(found.index, count), count)

    def acquire_scratch(self, element: Any, length: int) -> ScratchLease:
        """Return a lease of ``length`` elements of any numpy dtype, of unspecified content.

        Parameters
        ----------
        element : numpy dtype, or what ``numpy.dtype`` takes
            With bytes, and without Python objects.
        length : int
            The number of elements; 0 is fine.

        Raises
        ------
        UseAfterDeinit
            The pool is closed.
        DTypeMismatch
            ``element`` is no such dtype.
        InvalidInteger, InvalidDataLength, Overflow
            ``length`` is no number of elements.
        OutOfMemory
            There is no memory.

        Clauses: POOL-SCRATCH-1, POOL-SIZE-2, POOL-FIT-1, POOL-LIFO-1, POOL-COUNT-1, POOL-MEMORY-1
        """
        self._require_open()
        form = _element_of(element)
        count = checked_length("length", length, "POOL-SCRATCH-1")
        return ScratchLease(self, self._lent(self._scratch(count, form.itemsize), count), form, count)

    def _lent(self, buffer: Storage | None, count: int) -> Storage:
        """Return what was acquired, or say why there is nothing.

        Clauses: POOL-MEMORY-1, POOL-LEAK-1
        """
        if buffer is None:
            self._require_open()
            raise OutOfMemory(
                f"no memory for a pooled buffer of {integer_shown(count)} elements", clause="POOL-MEMORY-1"
            )
        if self._traced and not handles.set_origin(buffer, calling_line() or "an unknown place"):
            buffer.release()
            raise OutOfMemory(
                f"no memory to note where a buffer of {integer_shown(count)} elements was acquired",
                clause="POOL-MEMORY-1",
            )
        return buffer

    # -- looking

    @property
    def max_cached_bytes(self) -> int:
        """How many bytes both free lists may hold together.

        Raises
        ------
        InvalidInteger, InvalidBounds, Overflow
            When it is set: no integer; negative; 2^64 and above.

        Clauses: POOL-CAP-1
        """
        return self._counters[4]

    @max_cached_bytes.setter
    def max_cached_bytes(self, value: int) -> None:
        number = whole("max_cached_bytes", value, "POOL-CAP-1")
        if number < 0:
            raise InvalidBounds(
                f"max_cached_bytes must not be negative, got {integer_shown(number)}", clause="POOL-CAP-1"
            )
        if number >= _WORD:
            raise Overflow(f"max_cached_bytes must lie in [0, 2^64), got {integer_shown(number)}", clause="POOL-CAP-1")
        self._set_cap(number)

    def cached_buffers(self) -> int:
        """Return how many f32 buffers are cached.

        Clauses: POOL-COUNT-1
        """
        return self._counters[0]

    def cached_slabs(self) -> int:
        """Return how many slabs are cached.

        Clauses: POOL-COUNT-1
        """
        return self._counters[1]

    def cached_bytes(self) -> int:
        """Return how many bytes are cached.

        Clauses: POOL-COUNT-1
        """
        return self._counters[2]

    def outstanding_buffers(self) -> int:
        """Return how many buffers and leases are out.

        Clauses: POOL-COUNT-1
        """
        return self._counters[3]

    # -- the end

    def deinit(self) -> None:
        """Free what is cached, then complain about what is out; that is freed when its last reference goes.

        Raises
        ------
        UseAfterDeinit
            The pool is closed.
        LeakedBuffers
            Something is out; everything else is done by then.

        Clauses: POOL-TYPE-1, POOL-LEAK-1
        """
        self._require_open()
        self._close()
        self._require_nothing_out()

    def _require_nothing_out(self) -> None:
        """Complain about what is out.

        Clauses: POOL-LEAK-1
        """
        leaks = tuple(
            Leak(None if index is None else DTYPES[index], shape, origin)
            for index, shape, origin in self._outstanding()
        )
        if leaks:
            raise LeakedBuffers(
                f"{len(leaks)} still referenced when the pool was closed: {'; '.join(map(str, leaks))}",
                clause="POOL-LEAK-1",
                leaks=leaks,
            )

    def _require_open(self) -> None:
        if self._closed:
            raise UseAfterDeinit(f"{self!r} was used after its deinit", clause="POOL-TYPE-1")

    def __enter__(self) -> Self:
        self._require_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._closed:
            deinit_noting(self, error)

    def __repr__(self) -> str:
        if self._closed:
            return "<BufferPool deinited>"
        _, _, cached, out, _ = self._counters
        return f"<BufferPool cached_bytes={cached} outstanding={out}>"

    def _refuse_copy(self, *_: object) -> NoReturn:
        raise NotCopyable(f"{self!r} cannot be copied or pickled", clause="POOL-TYPE-1")

    __copy__ = __deepcopy__ = __reduce_ex__ = __reduce__ = _refuse_copy


def _element_of(element: Any) -> np.dtype[Any]:
    """Return the element of a lease as a numpy dtype.

    Clauses: POOL-SCRATCH-1
    """
    try:
        form: np.dtype[Any] = np.dtype(element)
    except (TypeError, ValueError) as refusal:
        raise DTypeMismatch(
            f"element must be a numpy dtype, got {shown(element)} ({refusal})", clause="POOL-SCRATCH-1"
        ) from None
    if form.itemsize == 0 or form.hasobject:
        raise DTypeMismatch(f"element must have bytes and no Python objects, got {form}", clause="POOL-SCRATCH-1")
    return form


class ScratchLease:
    """Scratch memory of a pool, borrowed until it is released; ``BufferPool.acquire_scratch`` makes it.

    Clauses: POOL-SCRATCH-1, POOL-SCRATCH-2
    """

    __slots__ = ("__weakref__", "_count", "_form", "_lent", "_pool")

    def __init__(self, pool: BufferPool, lent: Storage, form: np.dtype[Any], count: int) -> None:
        self._pool, self._form, self._count = pool, form, count
        self._lent: Storage | None = lent

    def _held(self) -> Storage:
        lent = self._lent
        if lent is None:
            raise UseAfterDeinit(f"{self!r} was used after its release", clause="POOL-SCRATCH-1")
        return lent

    @property
    def pool(self) -> BufferPool:
        """The pool."""
        return self._pool

    @property
    def slab(self) -> AnyArray:
        """All bytes of the slab, writable; UseAfterDeinit after the release."""
        lent = self._held()
        return np.ndarray((lent.capacity,), np.uint8, lent._pinned(True))

    @property
    def items(self) -> AnyArray:
        """Exactly the elements that were asked for, writable; UseAfterDeinit after the release."""
        lent = self._held()
        return np.ndarray((self._count,), self._form, lent._pinned(True))

    def release(self) -> None:
        """Give the slab back, on any thread; arrays that were taken keep it out until they die.

        Raises
        ------
        OverRelease
            It was released.

        Clauses: POOL-SCRATCH-2
        """
        lent, self._lent = self._lent, None
        if lent is None:
            raise OverRelease(f"{self!r} was released before", clause="POOL-SCRATCH-2")
        lent.release()

    def __enter__(self) -> Self:
        self._held()
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

    __copy__ = __deepcopy__ = __reduce_ex__ = __reduce__ = _refuse_copy
