"""Storage: memory with a reference count.

``BufferOf(dtype)`` is the type of a storage of one dtype.  Its memory is its own or borrowed; the last reference that
goes runs the release hook.  Arrays that were handed out hold a reference of their own, a *pin*, so memory never goes
away, or to somebody else, under an array.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from fucina.reference.allocation import Bytes, address_of, allocate, charge
from fucina.reference.arguments import dtype_argument
from fucina.reference.companions import Work, has_accelerator
from fucina.reference.element_buffers import borrowed, carrier, copied
from fucina.reference.geometry import storage
from fucina.reference.references import Recycle, Referenced, State, require_hook
from fucina.reference.sizes import length_argument
from fucina.spec.errors import DTypeMismatch, NotCopyable, ReadOnlyStorage
from fucina.spec.runtime import HostShadow, Release
from fucina.spec.types import DType

if TYPE_CHECKING:
    from fucina.spec.interface import AnyArray
    from fucina.spec.memory import Memory, Values

__all__ = ["Buffer", "BufferOf", "HostShadow", "Release", "Storage", "Work", "has_accelerator"]


class Storage(Referenced):
    """One reference-counted storage; ``BufferOf(dtype)`` are its subclasses.

    Notes
    -----
    Clauses: STORAGE-TYPE-1
    """

    dtype: ClassVar[DType]
    Element: ClassVar[np.dtype[Any]]

    _capacity: int
    _read_only: bool
    _kind: str
    newest_shape: tuple[int, ...] | None
    """The shape of the newest tensor on it, for reports."""

    def __init__(self) -> None:
        raise DTypeMismatch(
            f"{type(self).__name__} is made by its constructors, such as create(length)", clause="STORAGE-TYPE-1"
        )

    @classmethod
    def over(
        cls,
        memory: Bytes,
        kind: str,
        *,
        hook: Release | None = None,
        read_only: bool = False,
        recycle: Recycle | None = None,
    ) -> Storage:
        """Return a storage over memory, with one reference.

        Parameters
        ----------
        memory : array of bytes
            Its memory.
        kind : {"owned", "borrowed", "pooled"}
            Whose it is, for ``repr``.
        hook : Release, optional
            The release hook.
        read_only : bool
            Whether it may never be written.
        recycle : callable, optional
            What a pool does with the memory at the end.

        Raises
        ------
        OutOfMemory
            If there is no memory for the header.

        Notes
        -----
        Clauses: STORAGE-CREATE-1
        """
        charge("a storage header", "STORAGE-CREATE-1")
        self = cls.__new__(cls)
        Referenced.__init__(self, memory, hook or Release(), recycle)
        self._capacity = memory.size // cls.Element.itemsize
        self._read_only = read_only
        self._kind = kind
        self.newest_shape = None
        return self

    # -- construction

    @classmethod
    def create(cls, length: int) -> Storage:
        """Return a storage of its own memory, whose content is not promised.

        Parameters
        ----------
        length : int
            The number of elements; 0 is fine.

        Raises
        ------
        InvalidInteger, InvalidDataLength, Overflow
            If ``length`` is no number of elements.
        OutOfMemory
            If there is no memory.

        Notes
        -----
        Clauses: STORAGE-CREATE-1
        """
        return cls.create_with_release(length, Release())

    @classmethod
    def create_with_release(cls, length: int, hook: Release) -> Storage:
        """Return a storage of its own memory with a release hook.

        Notes
        -----
        Clauses: STORAGE-CREATE-1, STORAGE-HOOK-1
        """
        require_hook(hook)
        count = length_argument("length", length, "STORAGE-CREATE-1")
        return cls.over(allocate(count * cls.Element.itemsize, "STORAGE-CREATE-1"), "owned", hook=hook)

    @classmethod
    def from_slice(cls, values: Values) -> Storage:
        """Return a storage of its own memory that holds a copy of the values.

        Raises
        ------
        DTypeMismatch, InvalidDataLength, Overflow
            If ``values`` are no elements of the dtype.
        OutOfMemory
            If there is no memory.

        Notes
        -----
        Clauses: STORAGE-COPY-1
        """
        elements = copied("values", values, cls.dtype, "STORAGE-COPY-1")
        self = cls.create(elements.size)
        self.patterns()[:] = elements
        return self

    @classmethod
    def from_borrowed_slice(cls, values: Memory) -> Storage:
        """Return a storage over the caller's memory.

        Raises
        ------
        DTypeMismatch, UnsupportedView, InvalidDataLength, ReadOnlyStorage
            If the memory cannot be borrowed.

        Notes
        -----
        Clauses: STORAGE-BORROW-1, STORAGE-BORROW-2
        """
        return cls.from_borrowed_slice_with_release(values, Release())

    @classmethod
    def from_borrowed_const_slice(cls, values: Memory) -> Storage:
        """Return a read-only storage over the caller's memory, which may be read-only itself.

        Raises
        ------
        DTypeMismatch, UnsupportedView, InvalidDataLength
            If the memory cannot be borrowed.

        Notes
        -----
        Clauses: STORAGE-BORROW-1, STORAGE-BORROW-2, STORAGE-READ-1
        """
        memory = borrowed("values", values, cls.dtype, "STORAGE-BORROW-2", writable=False)
        return cls.over(memory, "borrowed", read_only=True)

    @classmethod
    def from_borrowed_slice_with_release(cls, values: Memory, hook: Release) -> Storage:
        """Return a storage over the caller's memory with a release hook.

        Notes
        -----
        Clauses: STORAGE-BORROW-1, STORAGE-BORROW-2, STORAGE-HOOK-1
        """
        require_hook(hook)
        memory = borrowed("values", values, cls.dtype, "STORAGE-BORROW-2", writable=True)
        return cls.over(memory, "borrowed", hook=hook)

    # -- fields

    @property
    def data(self) -> AnyArray:
        """All elements in storage form, to be read.

        Notes
        -----
        Clauses: STORAGE-DATA-1, STORAGE-PIN-1
        """
        return self.pinned(writable=False).view(self.Element)

    @property
    def capacity(self) -> int:
        """The number of elements.

        Notes
        -----
        Clauses: STORAGE-DATA-1
        """
        return self._capacity

    @property
    def address(self) -> int:
        """The address of the first byte.

        Notes
        -----
        Clauses: STORAGE-DATA-1
        """
        return address_of(self.memory())

    @property
    def generation(self) -> int:
        """How often the storage was opened for writing, modulo 2^32.

        Notes
        -----
        Clauses: STORAGE-GEN-1
        """
        return self._generation

    @property
    def read_only(self) -> bool:
        """Whether it can never be written.

        Notes
        -----
        Clauses: STORAGE-READ-1
        """
        return self._read_only

    @property
    def is_pooled(self) -> bool:
        """Whether its memory belongs to a pool."""
        return self._kind == "pooled"

    # -- access

    def patterns(self) -> AnyArray:
        """Return all elements as the carrier, to be written; counts as nothing."""
        return self.memory().view(carrier(self.dtype))

    def open_for_writing(self) -> None:
        """Count a mutable access: the generation moves on, and what was derived from the bytes is dropped.

        Raises
        ------
        ReadOnlyStorage
            If it is read-only.

        Notes
        -----
        Clauses: STORAGE-GEN-1, STORAGE-SHADOW-1, STORAGE-READ-1
        """
        self.require_live("STORAGE-DEAD-1")
        if self._read_only:
            raise ReadOnlyStorage(f"{self!r} is read-only", clause="STORAGE-READ-1")
        self._generation = (self._generation + 1) & 0xFFFFFFFF
        self._drop_shadow()

    def wait_mutable(self) -> AnyArray:
        """Open the storage for writing; return all elements in storage form.

        Raises
        ------
        ReadOnlyStorage
            If it is read-only.

        Notes
        -----
        Clauses: STORAGE-DATA-1, STORAGE-GEN-1, STORAGE-READ-1, STORAGE-PIN-1
        """
        self.open_for_writing()
        return self.pinned(writable=True).view(self.Element)

    # -- habits of Python

    def __repr__(self) -> str:
        only = " read-only" if self._read_only else ""
        end = "" if self._state is State.LIVE else f" {self._state.value}"
        return f"<{type(self).__name__} capacity={self._capacity} refs={self.refs} {self._kind}{only}{end}>"

    def _refuse_copy(self, *_: object) -> NoReturn:
        raise NotCopyable(f"{type(self).__name__} cannot be copied or pickled", clause="STORAGE-GC-2")

    __copy__ = __deepcopy__ = __reduce_ex__ = _refuse_copy


@cache
def _type_of(dtype: DType) -> type[Storage]:
    return type(f"BufferOf({dtype.name})", (Storage,), {"dtype": dtype, "Element": storage(dtype)})


def BufferOf(dtype: DType) -> type[Storage]:  # noqa: N802 - the documents' name of a family of types
    """Return the type of the storages of a dtype; always the same one.

    Raises
    ------
    InvalidDType
        If it is no dtype.

    Notes
    -----
    Clauses: STORAGE-TYPE-1
    """
    return _type_of(dtype_argument(dtype))


Buffer = BufferOf(DType.f32)
"""The storage of f32 (clause STORAGE-TYPE-1)."""
