"""Storage: memory with a reference count; ``internal.storage_mod``.

``BufferOf(dtype)`` is the type of the storages of a dtype.  The header, the counts and the memory are the C core's; an
object here is one of any number of handles to them.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from fucina.fast._arguments import known_dtype, whole
from fucina.fast._element_buffers import borrowed, copied
from fucina.fast._objects import handles, install
from fucina.fast._shown import integer_shown, shown
from fucina.fast._sizes import length as checked_length
from fucina.fast.geometry import storage
from fucina.spec.errors import DTypeMismatch, InvalidBounds, NotCopyable, OutOfMemory, Overflow
from fucina.spec.runtime import HostShadow, Release
from fucina.spec.types import DType

if TYPE_CHECKING:
    from typing import Self

    from fucina.spec.interface import AnyArray
    from fucina.spec.memory import Memory, Values

__all__ = [
    "Buffer",
    "BufferOf",
    "HostShadow",
    "Release",
    "Storage",
    "Work",
    "allocation_count",
    "fail_allocation",
    "has_accelerator",
]

has_accelerator = False
"""Whether storage can be in the hands of an accelerator: here never (clause STORAGE-NULL-1)."""

_NO_HOOK = Release()
_KINDS = ("owned", "borrowed", "pooled")
_ENDS = ("", " released", " destroyed")
LARGEST = (1 << 63) - 1


class Work:
    """Work that an accelerator was given; here there is none, and it is always finished.

    Clauses: STORAGE-NULL-1
    """

    def ensure_finished(self) -> None:
        """Wait for its end: return at once.

        Clauses: STORAGE-NULL-1
        """


def _hook(hook: object) -> Release:
    """Return the argument if it is a hook.

    Clauses: STORAGE-HOOK-1
    """
    if type(hook) is not Release:
        raise DTypeMismatch(f"hook must be a Release, got {shown(hook)}", clause="STORAGE-HOOK-1")
    return hook


class Storage(handles.Storage):
    """One storage; ``BufferOf(dtype)`` are its subclasses.

    Clauses: STORAGE-TYPE-1
    """

    __slots__ = ()

    dtype: ClassVar[DType]
    Element: ClassVar[np.dtype[Any]]

    # -- construction

    @classmethod
    def create(cls, length: int) -> Self:
        """Return a storage of its own memory, of unspecified content.

        Parameters
        ----------
        length : int
            The number of elements; 0 is fine.

        Raises
        ------
        InvalidInteger, InvalidDataLength, Overflow
            No integer; negative; 2^64 and above.
        OutOfMemory
            There is no memory.

        Clauses: STORAGE-CREATE-1
        """
        return cls.create_with_release(length, _NO_HOOK)

    @classmethod
    def create_with_release(cls, length: int, hook: Release) -> Self:
        """Return a storage of its own memory with a release hook.

        Clauses: STORAGE-CREATE-1, STORAGE-HOOK-1
        """
        bound = _hook(hook)
        return cls._owned(checked_length("length", length, "STORAGE-CREATE-1"), bound)

    @classmethod
    def _owned(cls, count: int, hook: Release = _NO_HOOK) -> Self:
        """Return a storage of so many elements.

        Clauses: STORAGE-CREATE-1, STORAGE-FAULT-1
        """
        size = count * cls.Element.itemsize
        if size > LARGEST:
            handles.charge()  # an allocation that failed, like any other
            raise OutOfMemory(f"no memory for {integer_shown(size)} bytes", clause="STORAGE-CREATE-1")
        made: Self = handles.new_storage(cls.dtype.index, hook, False, 0, size, None)
        return made

    @classmethod
    def from_slice(cls, values: Values) -> Self:
        """Return a storage of its own memory that holds a copy of the values.

        Parameters
        ----------
        values : buffer, bytes, list, tuple or range
            Elements in storage form, of any strides and alignment; or a sequence of elements in scalar form.

        Raises
        ------
        DTypeMismatch, InvalidDataLength, Overflow
            No elements of the dtype.
        OutOfMemory
            There is no memory.

        Clauses: STORAGE-COPY-1
        """
        return cls._holding(copied("values", values, cls.dtype, "STORAGE-COPY-1"))

    @classmethod
    def _holding(cls, elements: AnyArray) -> Self:
        """Return a storage that holds a copy of patterns."""
        made = cls._owned(elements.size)
        if elements.size:
            np.ndarray(elements.shape, elements.dtype, made._pinned(True))[:] = elements
        return made

    @classmethod
    def from_borrowed_slice(cls, values: Memory) -> Self:
        """Return a storage over the caller's memory, which is held in place until the storage ends.

        Raises
        ------
        DTypeMismatch, InvalidDataLength, UnsupportedView, ReadOnlyStorage
            The memory cannot be borrowed.

        Clauses: STORAGE-BORROW-1, STORAGE-BORROW-2
        """
        return cls.from_borrowed_slice_with_release(values, _NO_HOOK)

    @classmethod
    def from_borrowed_const_slice(cls, values: Memory) -> Self:
        """Return a read-only storage over the caller's memory, which may be read-only itself.

        Clauses: STORAGE-BORROW-1, STORAGE-BORROW-2, STORAGE-READ-1
        """
        lent = borrowed("values", values, cls.dtype, "STORAGE-BORROW-2", writable=False)
        made: Self = handles.new_storage(cls.dtype.index, _NO_HOOK, True, lent.address, lent.size, lent.exporter)
        return made

    @classmethod
    def from_borrowed_slice_with_release(cls, values: Memory, hook: Release) -> Self:
        """Return a storage over the caller's memory with a release hook.

        Clauses: STORAGE-BORROW-1, STORAGE-BORROW-2, STORAGE-HOOK-1
        """
        bound = _hook(hook)
        lent = borrowed("values", values, cls.dtype, "STORAGE-BORROW-2", writable=True)
        made: Self = handles.new_storage(cls.dtype.index, bound, False, lent.address, lent.size, lent.exporter)
        return made

    # -- habits of Python

    def __repr__(self) -> str:
        kind, end = self._state
        only = " read-only" if self.read_only else ""
        return (
            f"<BufferOf({self.dtype.name}) capacity={self.capacity} refs={self.refs} {_KINDS[kind]}{only}{_ENDS[end]}>"
        )

    def _refuse_copy(self, *_: object) -> NoReturn:
        raise NotCopyable(f"{self!r} cannot be copied or pickled", clause="STORAGE-GC-2")

    __copy__ = __deepcopy__ = __reduce_ex__ = __reduce__ = _refuse_copy


install(handles.Storage, Storage)


@cache
def _type_of(dtype: DType) -> type[Storage]:
    made: Any = handles.buffer_leaf(handles.Storage, f"fucina.fast.storage.BufferOf({dtype.name})")
    made.dtype, made.Element = dtype, storage(dtype)
    found: type[Storage] = made
    return found


def BufferOf(dtype: DType) -> type[Storage]:  # noqa: N802 - the documents' name of a family of types
    """Return the type of the storages of a dtype: always the same one.

    Raises
    ------
    InvalidDType
        No dtype.

    Clauses: STORAGE-TYPE-1
    """
    return _type_of(known_dtype(dtype))


Buffer = BufferOf(DType.f32)
"""The storage of f32 (clause STORAGE-TYPE-1)."""


# -- allocations that fail


def fail_allocation(n: int | None) -> None:
    """Make the n-th allocation from now on fail, once; None: none.

    Parameters
    ----------
    n : int or None
        1 for the next allocation.

    Raises
    ------
    InvalidInteger, InvalidBounds, Overflow
        No integer; below 1; 2^64 and above.

    Clauses: STORAGE-FAULT-1
    """
    number = 0 if n is None else whole("n", n, "STORAGE-FAULT-1")
    if n is not None and number < 1:
        raise InvalidBounds(f"n must be at least 1, got {integer_shown(number)}", clause="STORAGE-FAULT-1")
    if number >= 1 << 64:
        raise Overflow(f"n must be below 2^64, got {integer_shown(number)}", clause="STORAGE-FAULT-1")
    handles.fail_allocation(number)


def allocation_count() -> int:
    """Return how many allocations there have been in this process, failed ones included.

    Clauses: STORAGE-FAULT-1
    """
    return handles.allocation_count()
