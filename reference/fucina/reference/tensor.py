"""Raw tensors: a storage, a shape, strides and an offset; ``internal.tensor_mod``.

``TensorOf(dtype)`` is the type of the raw tensors of a dtype.  It is made of layers: what a handle is
(:mod:`~fucina.reference.handles`), its views, its elements, what it does in place, and how other libraries see it.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from fucina.reference.arguments import dtype_argument, shown
from fucina.reference.element_buffers import copied
from fucina.reference.elements import read
from fucina.reference.geometry import one, scalar, storage, zero
from fucina.reference.handles import require_scalar_dtype
from fucina.reference.interchange import Interchange
from fucina.reference.layouts import require_same_shape, row_major
from fucina.reference.sizes import (
    Shape,
    axis_argument,
    entries_of,
    max_rank,
    rank_argument,
    storage_element_count,
    storage_shape,
)
from fucina.reference.storage import BufferOf, Storage
from fucina.reference.views import Views
from fucina.spec.errors import DTypeMismatch, InvalidDataLength, InvalidShape
from fucina.spec.types import DType

if TYPE_CHECKING:
    from typing import Self

    from fucina.spec.interface import ScalarValue
    from fucina.spec.memory import Memory, ShapeLike, Values

__all__ = [
    "DType",
    "RankedTensor",
    "RankedTensorOf",
    "RawTensor",
    "Shape",
    "Tensor",
    "TensorOf",
    "max_rank",
    "require_same_shape",
    "scalar",
    "storage",
]


class RawTensor(Interchange, Views):
    """A raw tensor; ``TensorOf(dtype)`` are its subclasses.

    Notes
    -----
    Clauses: TENSOR-TYPE-1
    """

    def __init__(self) -> None:
        raise DTypeMismatch(
            f"{type(self).__name__} is made by its constructors, such as zeros(shape)", clause="TENSOR-TYPE-1"
        )

    # -- construction

    @classmethod
    def _counted(cls, shape: ShapeLike) -> tuple[tuple[int, ...], int]:
        """Return a shape and its number of storage elements.

        Notes
        -----
        Clauses: TENSOR-NEW-1
        """
        dims = entries_of("shape", shape, "TENSOR-NEW-1")
        return dims, storage_element_count(cls.dtype, dims)

    @classmethod
    def _owning(cls, buffer: Storage, shape: tuple[int, ...]) -> Self:
        return cls.over(buffer, shape, row_major(storage_shape(cls.dtype, shape)), 0)

    @classmethod
    def _filled(cls, shape: ShapeLike, bits: int) -> Self:
        dims, count = cls._counted(shape)
        buffer = BufferOf(cls.dtype).create(count)
        buffer.patterns()[:] = bits
        return cls._owning(buffer, dims)

    @classmethod
    def zeros(cls, shape: ShapeLike) -> Self:
        """Return a tensor of zeros.

        Raises
        ------
        InvalidDType
            If the dtype is a block.
        InvalidInteger, InvalidShape, Overflow, OutOfMemory
            If there is no such tensor.

        Notes
        -----
        Clauses: TENSOR-NEW-2, TENSOR-NEW-1
        """
        require_scalar_dtype(cls.dtype, "zeros", "TENSOR-NEW-2")
        return cls._filled(shape, read(cls.dtype, zero(cls.dtype)))

    @classmethod
    def ones(cls, shape: ShapeLike) -> Self:
        """Return a tensor of ones.

        Notes
        -----
        Clauses: TENSOR-NEW-2, TENSOR-NEW-1
        """
        require_scalar_dtype(cls.dtype, "ones", "TENSOR-NEW-2")
        return cls._filled(shape, read(cls.dtype, one(cls.dtype)))

    @classmethod
    def scalar(cls, value: ScalarValue) -> Self:
        """Return a tensor of shape (1,).

        Raises
        ------
        InvalidDType
            If the dtype is a block.
        DTypeMismatch, Overflow
            If ``value`` is no element in scalar form.

        Notes
        -----
        Clauses: TENSOR-NEW-2
        """
        require_scalar_dtype(cls.dtype, "scalar", "TENSOR-NEW-2")
        return cls._filled((1,), read(cls.dtype, value))

    @classmethod
    def from_slice(cls, shape: ShapeLike, values: Values) -> Self:
        """Return a tensor that owns a copy of the values.

        Parameters
        ----------
        shape : sequence of int
            Its sizes.
        values : buffer or sequence
            Exactly as many elements, in row-major order.

        Raises
        ------
        InvalidDType
            If the dtype is a block: ``from_storage_slice`` takes those.
        InvalidInteger, InvalidShape, Overflow
            If it is no shape.
        DTypeMismatch, InvalidDataLength
            If the values are not elements of the dtype, or of another number.

        Notes
        -----
        Clauses: TENSOR-NEW-3, TENSOR-NEW-1
        """
        require_scalar_dtype(cls.dtype, "from_slice", "TENSOR-NEW-3")
        return cls.from_storage_slice(shape, values)

    @classmethod
    def from_storage_slice(cls, shape: ShapeLike, values: Values) -> Self:
        """Return a tensor that owns a copy of storage elements, such as blocks.

        Notes
        -----
        Clauses: TENSOR-NEW-3, TENSOR-NEW-1
        """
        dims, count = cls._counted(shape)
        elements = copied("values", values, cls.dtype, "TENSOR-NEW-3")
        cls._require_count(count, elements.size, dims, "TENSOR-NEW-3")
        buffer = BufferOf(cls.dtype).create(count)
        buffer.patterns()[:] = elements
        return cls._owning(buffer, dims)

    @classmethod
    def from_borrowed_slice(cls, shape: ShapeLike, values: Memory) -> Self:
        """Return a tensor over the caller's memory.

        Raises
        ------
        InvalidDType
            If the dtype is a block.
        InvalidInteger, InvalidShape, Overflow
            If it is no shape.
        DTypeMismatch, UnsupportedView, ReadOnlyStorage, InvalidDataLength
            If the memory cannot be borrowed, or holds another number of elements.

        Notes
        -----
        Clauses: TENSOR-NEW-4, TENSOR-NEW-1
        """
        require_scalar_dtype(cls.dtype, "from_borrowed_slice", "TENSOR-NEW-4")
        return cls.from_borrowed_storage_slice(shape, values)

    @classmethod
    def from_borrowed_const_slice(cls, shape: ShapeLike, values: Memory) -> Self:
        """Return a read-only tensor over the caller's memory.

        Notes
        -----
        Clauses: TENSOR-NEW-4, TENSOR-NEW-1, STORAGE-READ-1
        """
        require_scalar_dtype(cls.dtype, "from_borrowed_const_slice", "TENSOR-NEW-4")
        dims, count = cls._counted(shape)
        return cls._over_exactly(BufferOf(cls.dtype).from_borrowed_const_slice(values), dims, count)

    @classmethod
    def from_borrowed_storage_slice(cls, shape: ShapeLike, values: Memory) -> Self:
        """Return a tensor over storage elements of the caller, such as blocks.

        Notes
        -----
        Clauses: TENSOR-NEW-4, TENSOR-NEW-1
        """
        dims, count = cls._counted(shape)
        return cls._over_exactly(BufferOf(cls.dtype).from_borrowed_slice(values), dims, count)

    @classmethod
    def _over_exactly(cls, buffer: Storage, dims: tuple[int, ...], count: int) -> Self:
        try:
            cls._require_count(count, buffer.capacity, dims, "TENSOR-NEW-4")
        except InvalidDataLength:
            buffer.release()
            raise
        return cls._owning(buffer, dims)

    @staticmethod
    def _require_count(count: int, given: int, dims: tuple[int, ...], clause: str) -> None:
        if given != count:
            raise InvalidDataLength(f"shape {dims} takes {count} elements, got {given}", clause=clause)

    @classmethod
    def from_owned_buffer(cls, buffer: Any, shape: ShapeLike) -> Self:
        """Return a tensor that takes over one reference to a storage; on error it stays with the caller.

        Parameters
        ----------
        buffer : BufferOf(dtype)
            A storage of at least as many elements as the shape has.
        shape : sequence of int
            Its sizes.

        Raises
        ------
        DTypeMismatch
            If it is no storage of this dtype.
        InvalidInteger, InvalidShape, Overflow
            If it is no shape.
        InvalidDataLength
            If the storage is too small.

        Notes
        -----
        Clauses: TENSOR-NEW-5, TENSOR-NEW-1
        """
        if not isinstance(buffer, Storage) or buffer.dtype is not cls.dtype:
            raise DTypeMismatch(f"a BufferOf({cls.dtype.name}) is required, got {shown(buffer)}", clause="TENSOR-NEW-5")
        buffer.require_live("TENSOR-NEW-5")
        dims, count = cls._counted(shape)
        if buffer.capacity < count:
            raise InvalidDataLength(
                f"shape {dims} needs {count} elements, got a storage of {buffer.capacity}", clause="TENSOR-NEW-5"
            )
        return cls._owning(buffer, dims)

    # -- rank

    def rank_view(self, rank: int) -> RankedView:
        """Return a look at the tensor as one of a given rank; it takes no reference.

        Raises
        ------
        InvalidShape
            If it has another rank.

        Notes
        -----
        Clauses: TENSOR-RANK-1
        """
        self.live()
        wanted = rank_argument(rank, "TENSOR-RANK-1")
        if wanted != len(self.shape):
            raise InvalidShape(f"rank {wanted} is required, got shape {tuple(self.shape)}", clause="TENSOR-RANK-1")
        view = RankedTensorOf(self.dtype, wanted)
        found = view.__new__(view)
        found._tensor = self
        return found


class RankedView:
    """A borrowed look at a tensor of known rank; ``RankedTensorOf(dtype, rank)`` are its subclasses.

    Notes
    -----
    Clauses: TENSOR-RANK-1
    """

    dtype: ClassVar[DType]
    rank: ClassVar[int]

    _tensor: RawTensor

    def __init__(self) -> None:
        raise DTypeMismatch(f"{type(self).__name__} is made by rank_view(rank)", clause="TENSOR-RANK-1")

    @property
    def tensor(self) -> RawTensor:
        """The tensor.

        Notes
        -----
        Clauses: TENSOR-RANK-1
        """
        self._tensor.live("TENSOR-RANK-1")
        return self._tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes.

        Notes
        -----
        Clauses: TENSOR-RANK-1
        """
        return tuple(self.tensor.shape)

    @property
    def strides(self) -> tuple[int, ...]:
        """The steps in storage elements.

        Notes
        -----
        Clauses: TENSOR-RANK-1
        """
        return tuple(self.tensor.strides)

    def dim(self, axis: int) -> int:
        """Return the size of an axis.

        Raises
        ------
        IndexOutOfBounds
            If there is none.

        Notes
        -----
        Clauses: TENSOR-RANK-1
        """
        return self.shape[axis_argument(axis, self.rank, "TENSOR-RANK-1")]

    def len(self) -> int:
        """Return the number of logical elements.

        Notes
        -----
        Clauses: TENSOR-RANK-1
        """
        return self.tensor.len()

    def is_contiguous(self) -> bool:
        """Return whether the strides are the row-major ones.

        Notes
        -----
        Clauses: TENSOR-RANK-1
        """
        return self.tensor.is_contiguous()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._tensor!r}>"


@cache
def _tensor_type(dtype: DType) -> type[RawTensor]:
    return type(f"TensorOf({dtype.name})", (RawTensor,), {"dtype": dtype, "Element": storage(dtype)})


@cache
def _ranked_type(dtype: DType, rank: int) -> type[RankedView]:
    return type(f"RankedTensorOf({dtype.name}, {rank})", (RankedView,), {"dtype": dtype, "rank": rank})


def TensorOf(dtype: DType) -> type[RawTensor]:  # noqa: N802 - the documents' name of a family of types
    """Return the type of the raw tensors of a dtype; always the same one.

    Raises
    ------
    InvalidDType
        If it is no dtype.

    Notes
    -----
    Clauses: TENSOR-TYPE-1
    """
    return _tensor_type(dtype_argument(dtype))


def RankedTensorOf(dtype: DType, rank: int) -> type[RankedView]:  # noqa: N802
    """Return the type of the ranked looks at tensors of a dtype.

    Raises
    ------
    InvalidDType, InvalidShape
        If it is no dtype, or no rank.

    Notes
    -----
    Clauses: TENSOR-RANK-1
    """
    return _ranked_type(dtype_argument(dtype), rank_argument(rank, "TENSOR-RANK-1"))


def RankedTensor(rank: int) -> type[RankedView]:  # noqa: N802
    """Return the type of the ranked looks at tensors of f32.

    Notes
    -----
    Clauses: TENSOR-RANK-1
    """
    return RankedTensorOf(DType.f32, rank)


Tensor = TensorOf(DType.f32)
"""The raw tensor of f32 (clause TENSOR-TYPE-1)."""
