"""Handles: a tensor as a reference to a storage, and how its elements lie there.

A handle holds one reference from its construction to its end.  What ends it is ``deinit``, the collector, or the exec
scope that owns it.  A borrowed one holds none: it looks at what another handle has, and ends with it.
"""

from __future__ import annotations

import warnings
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from fucina.reference.layouts import row_major
from fucina.reference.lives import Life, Replaceable
from fucina.reference.sizes import Shape, counted, storage_element_count, storage_shape
from fucina.reference.storage import Storage
from fucina.spec.errors import InvalidDType, InvalidShape, NotCopyable, UseAfterDeinit, UseAfterScope
from fucina.spec.types import GEOMETRY, DType, DTypeKind

if TYPE_CHECKING:
    from typing import Self

__all__ = ["Handle", "Life", "require_scalar_dtype"]


def require_scalar_dtype(dtype: DType, what: str, clause: str) -> None:
    """Refuse what blocks cannot do.

    Notes
    -----
    Clauses: TENSOR-BLOCK-2
    """
    if GEOMETRY[dtype].kind is not DTypeKind.scalar:
        raise InvalidDType(f"{what} takes scalar dtypes, got {dtype!r}", clause=clause)


class Handle(Replaceable):
    """One reference to a storage; geometry, life and ownership.

    Notes
    -----
    Clauses: TENSOR-TYPE-1
    """

    dtype: ClassVar[DType]
    Element: ClassVar[np.dtype[Any]]

    _storage: Storage
    _shape: Shape
    _strides: Shape
    _offset: int
    _life: Life
    _lender: Handle
    """Whose reference a borrowed handle relies on."""

    origin: str | None
    """Where it was made, if that is traced."""

    @classmethod
    def over(cls, storage: Storage, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Self:
        """Return a handle that takes over one reference to a storage; everything has been checked."""
        self = cls.__new__(cls)
        self._storage = storage
        self._shape = tuple.__new__(Shape, shape)
        self._strides = tuple.__new__(Shape, strides)
        self._offset = offset
        self._life = Life.OWNED
        self.origin = None
        storage.newest_shape = shape
        return self

    def borrowed(self) -> Self:
        """Return a handle that sees the same and takes no reference.

        Notes
        -----
        Clauses: FACADE-RAW-1
        """
        found = self.over(self.live(), tuple(self._shape), self._strides, self._offset)
        found._life = Life.BORROWED
        found._lender = self
        return found

    def moved(self) -> Self:
        """Return a handle that takes this one's reference over; of this one, only a ``deinit`` is forgiven.

        Notes
        -----
        Clauses: FACADE-NEW-1
        """
        found = self.over(self.live(), tuple(self._shape), self._strides, self._offset)
        found.origin = self.origin
        self._life = Life.REPLACED
        return found

    # -- life

    def live(self, clause: str = "TENSOR-LIFE-1") -> Storage:
        """Return the storage.

        Raises
        ------
        UseAfterDeinit, UseAfterScope
            If it is no longer this handle's.

        Notes
        -----
        Clauses: TENSOR-LIFE-1, STORAGE-DEAD-1
        """
        if self._life is Life.BORROWED:
            return self._lender.live(clause)
        if self._life in (Life.ENDED, Life.REPLACED):
            raise UseAfterDeinit(f"a tensor was used after deinit: {self!r}", clause=clause)
        if self._life is Life.CLOSED:
            raise UseAfterScope(f"a tensor was used after its scope was closed: {self!r}", clause="SCOPE-AFTER-1")
        self._storage.require_live(clause)
        return self._storage

    def deinit(self) -> None:
        """Give the reference back; of a tensor that a scope owns, nothing.

        Raises
        ------
        UseAfterDeinit
            If that has happened.

        Notes
        -----
        Clauses: TENSOR-LIFE-1, SCOPE-BORROW-1
        """
        if self._life is Life.OWNED:
            storage = self.live()
            self._life = Life.ENDED
            storage.release()
        elif self._life is Life.ENDED:
            self.live()

    def deinit_replaced(self) -> None:
        """Give the reference back, and forgive a second ``deinit``.

        Notes
        -----
        Clauses: CONTEXT-REPLACE-1
        """
        if self._life is Life.OWNED:
            storage = self.live()
            self._life = Life.REPLACED
            storage.release()

    @property
    def scope_owned(self) -> bool:
        """Whether an exec scope owns it, or owned it.

        Notes
        -----
        Clauses: SCOPE-BORROW-1
        """
        return self._life in (Life.SCOPED, Life.CLOSED)

    @property
    def life(self) -> Life:
        """Where it is in its life."""
        return self._life

    def is_held(self) -> bool:
        """Whether its storage has references left; they may be given back by other means than its ``deinit``."""
        return self._storage.refs > 0

    def adopt(self) -> None:
        """Hand it to a scope, which must keep it.

        Notes
        -----
        Clauses: SCOPE-ADOPT-1
        """
        self._life = Life.SCOPED

    def close(self) -> None:
        """Give the reference of a scope back.

        Notes
        -----
        Clauses: SCOPE-CLOSE-1, SCOPE-AFTER-1
        """
        self._life = Life.CLOSED
        if self._storage.refs:
            self._storage.release()

    def __enter__(self) -> Self:
        self.live()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._life is Life.OWNED:
            self.deinit()

    def __del__(self) -> None:
        # clause TENSOR-LIFE-2; a handle whose construction failed holds nothing
        if getattr(self, "_life", None) is Life.OWNED and self._storage.refs:
            if self.origin is not None:
                warnings.warn(f"{self!r} made at {self.origin} was not deinited", ResourceWarning, stacklevel=2)
            self._life = Life.ENDED
            self._storage.release()

    # -- fields

    @property
    def buffer(self) -> Storage:
        """The storage, without a reference of its own.

        Notes
        -----
        Clauses: TENSOR-TYPE-1
        """
        return self.live()

    @property
    def shape(self) -> Shape:
        """The sizes.

        Notes
        -----
        Clauses: TENSOR-TYPE-1
        """
        self.live()
        return self._shape

    @property
    def strides(self) -> Shape:
        """The steps along the axes, in storage elements.

        Notes
        -----
        Clauses: TENSOR-TYPE-1, TENSOR-BLOCK-1
        """
        self.live()
        return self._strides

    @property
    def offset(self) -> int:
        """Where the first element lies, in storage elements.

        Notes
        -----
        Clauses: TENSOR-TYPE-1
        """
        self.live()
        return self._offset

    # -- geometry

    def rank(self) -> int:
        """Return the number of axes.

        Notes
        -----
        Clauses: TENSOR-GEOM-1
        """
        return len(self.shape)

    def len(self) -> int:
        """Return the number of logical elements.

        Raises
        ------
        Overflow
            If that is 2^64 or more.

        Notes
        -----
        Clauses: TENSOR-GEOM-1
        """
        return counted("shape", self.shape, "TENSOR-GEOM-1")

    def __len__(self) -> int:
        return self.len()

    def storage_len(self) -> int:
        """Return the number of storage elements.

        Notes
        -----
        Clauses: TENSOR-GEOM-1
        """
        return storage_element_count(self.dtype, self.shape)

    def rows(self) -> int:
        """Return the first size of a matrix.

        Raises
        ------
        InvalidShape
            If the rank is not 2.

        Notes
        -----
        Clauses: TENSOR-GEOM-1
        """
        return self._matrix()[0]

    def cols(self) -> int:
        """Return the second size of a matrix.

        Raises
        ------
        InvalidShape
            If the rank is not 2.

        Notes
        -----
        Clauses: TENSOR-GEOM-1
        """
        return self._matrix()[1]

    def _matrix(self) -> tuple[int, int]:
        if len(self.shape) != 2:
            raise InvalidShape(f"rows and cols need rank 2, got shape {tuple(self._shape)}", clause="TENSOR-GEOM-1")
        return self._shape[0], self._shape[1]

    def is_scalar(self) -> bool:
        """Return whether there is exactly one element.

        Notes
        -----
        Clauses: TENSOR-GEOM-1
        """
        return self.len() == 1

    def is_contiguous(self) -> bool:
        """Return whether the strides are exactly the row-major ones, also on axes of size 1.

        Notes
        -----
        Clauses: TENSOR-GEOM-2, TENSOR-BLOCK-1
        """
        return self.strides == row_major(storage_shape(self.dtype, self._shape))

    def can_take_in_place(self) -> bool:
        """Return whether an operation that consumes it may write into its storage.

        Notes
        -----
        Clauses: TENSOR-TAKE-1
        """
        storage = self.live()
        return self._offset == 0 and self.is_contiguous() and storage.is_unique() and not storage.read_only

    # -- habits of Python

    def __repr__(self) -> str:
        name = f"TensorOf({self.dtype.name})"
        if self._life is Life.BORROWED:
            return repr(self._lender)
        if self._life not in (Life.OWNED, Life.SCOPED) or not self._storage.refs:
            state = Life.ENDED if self._life in (Life.OWNED, Life.SCOPED) else self._life
            return f"<{name} shape={tuple(self._shape)} {state.value}>"
        state_text = " scope-owned" if self._life is Life.SCOPED else ""
        return (
            f"<{name} shape={tuple(self._shape)} strides={tuple(self._strides)} offset={self._offset} "
            f"refs={self._storage.refs}{state_text}>"
        )

    def _refuse_copy(self, *_: object) -> NoReturn:
        raise NotCopyable(
            f"{self!r} is a raw tensor and cannot be copied or pickled; clone and clone_view make new ones",
            clause="TENSOR-LIFE-2",
        )

    __copy__ = __deepcopy__ = __reduce_ex__ = _refuse_copy
