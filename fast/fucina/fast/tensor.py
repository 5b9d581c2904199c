"""Raw tensors: a storage, a shape, strides and an offset; ``internal.tensor_mod``.

``TensorOf(dtype)`` is the type of the raw tensors of a dtype, made of layers: the C type under all of them, views,
elements, interchange, and here construction.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from fucina.fast._arguments import known_dtype
from fucina.fast._element_buffers import copied, pattern_of
from fucina.fast._interchange import Interchange
from fucina.fast._objects import handles, install
from fucina.fast._shown import shown, tuple_shown
from fucina.fast._sizes import Shape, axis_of, entries, rank_of, storage_count_of
from fucina.fast._tensor_views import require_scalar
from fucina.fast.geometry import one, scalar, storage, zero
from fucina.fast.shape import max_rank, require_same_shape
from fucina.fast.storage import BufferOf, Storage
from fucina.spec.errors import DTypeMismatch, InvalidDataLength, InvalidShape, UseAfterDeinit
from fucina.spec.types import DType

if TYPE_CHECKING:
    from typing import Self

    from fucina.spec.interface import ScalarValue
    from fucina.spec.memory import Memory, ShapeLike, Values

__all__ = [
    "DType",
    "RankedTensor",
    "RankedTensorOf",
    "RankedView",
    "RawTensor",
    "Shape",
    "Tensor",
    "TensorOf",
    "max_rank",
    "require_same_shape",
    "scalar",
    "storage",
]


class RawTensor(Interchange):
    """A raw tensor; ``TensorOf(dtype)`` are its subclasses.

    Clauses: TENSOR-TYPE-1
    """

    __slots__ = ()

    @classmethod
    def _counted(cls, shape: Any) -> tuple[tuple[int, ...], int]:
        """Return a shape, and its number of storage elements.

        Clauses: TENSOR-NEW-1
        """
        dims = entries("shape", shape, "SHAPE-RULE-1")
        return dims, storage_count_of(cls.dtype, dims, "TENSOR-NEW-1")

    @classmethod
    def _over(cls, buffer: Storage, dims: tuple[int, ...]) -> Self:
        """Return a contiguous tensor that takes over one reference."""
        made: Self = handles.tensor_over(buffer, dims)
        return made

    @classmethod
    def _filled(cls, shape: Any, bits: int) -> Self:
        dims, count = cls._counted(shape)
        made = cls._over(BufferOf(cls.dtype)._owned(count), dims)
        made._patterns().fill(bits)
        return made

    @classmethod
    def zeros(cls, shape: ShapeLike) -> Self:
        """Return a tensor of zeros.

        Raises
        ------
        InvalidDType
            Of blocks.
        InvalidInteger, InvalidShape, Overflow, OutOfMemory
            There is no such tensor.

        Clauses: TENSOR-NEW-2, TENSOR-NEW-1
        """
        require_scalar(cls.dtype, "zeros", "TENSOR-NEW-2")
        return cls._filled(shape, pattern_of(cls.dtype, zero(cls.dtype)))

    @classmethod
    def ones(cls, shape: ShapeLike) -> Self:
        """Return a tensor of ones.

        Clauses: TENSOR-NEW-2, TENSOR-NEW-1
        """
        require_scalar(cls.dtype, "ones", "TENSOR-NEW-2")
        return cls._filled(shape, pattern_of(cls.dtype, one(cls.dtype)))

    @classmethod
    def scalar(cls, value: ScalarValue) -> Self:
        """Return a tensor of shape (1,).

        Raises
        ------
        InvalidDType
            Of blocks.
        DTypeMismatch, Overflow
            ``value`` is no element in scalar form.

        Clauses: TENSOR-NEW-2
        """
        require_scalar(cls.dtype, "scalar", "TENSOR-NEW-2")
        return cls._filled((1,), pattern_of(cls.dtype, value))

    @classmethod
    def from_slice(cls, shape: ShapeLike, values: Values) -> Self:
        """Return a tensor that owns a copy of the values.

        Parameters
        ----------
        shape : sequence of int
            Its sizes.
        values : buffer, bytes, list, tuple or range
            As many elements as the shape has, in row-major order.

        Raises
        ------
        InvalidDType
            Of blocks: ``from_storage_slice`` takes those.
        InvalidInteger, InvalidShape, Overflow
            No shape.
        DTypeMismatch, Overflow, InvalidDataLength
            No elements of the dtype, or another number of them.

        Clauses: TENSOR-NEW-3, TENSOR-NEW-1
        """
        require_scalar(cls.dtype, "from_slice", "TENSOR-NEW-3")
        return cls.from_storage_slice(shape, values)

    @classmethod
    def from_storage_slice(cls, shape: ShapeLike, values: Values) -> Self:
        """Return a tensor that owns a copy of storage elements, such as blocks.

        Clauses: TENSOR-NEW-3, TENSOR-NEW-1
        """
        dims, count = cls._counted(shape)
        elements = copied("values", values, cls.dtype, "STORAGE-COPY-1")
        cls._require_count(count, elements.size, dims, "TENSOR-NEW-3")
        return cls._over(BufferOf(cls.dtype)._holding(elements), dims)

    @classmethod
    def from_borrowed_slice(cls, shape: ShapeLike, values: Memory) -> Self:
        """Return a tensor over the caller's memory.

        Raises
        ------
        InvalidDType
            Of blocks.
        InvalidInteger, InvalidShape, Overflow
            No shape.
        DTypeMismatch, InvalidDataLength, UnsupportedView, ReadOnlyStorage
            The memory cannot be borrowed, or holds another number of elements.

        Clauses: TENSOR-NEW-4, TENSOR-NEW-1
        """
        require_scalar(cls.dtype, "from_borrowed_slice", "TENSOR-NEW-4")
        return cls.from_borrowed_storage_slice(shape, values)

    @classmethod
    def from_borrowed_const_slice(cls, shape: ShapeLike, values: Memory) -> Self:
        """Return a read-only tensor over the caller's memory.

        Clauses: TENSOR-NEW-4, TENSOR-NEW-1, STORAGE-READ-1
        """
        require_scalar(cls.dtype, "from_borrowed_const_slice", "TENSOR-NEW-4")
        dims, count = cls._counted(shape)
        return cls._borrowing(BufferOf(cls.dtype).from_borrowed_const_slice(values), dims, count)

    @classmethod
    def from_borrowed_storage_slice(cls, shape: ShapeLike, values: Memory) -> Self:
        """Return a tensor over storage elements of the caller, such as blocks.

        Clauses: TENSOR-NEW-4, TENSOR-NEW-1
        """
        dims, count = cls._counted(shape)
        return cls._borrowing(BufferOf(cls.dtype).from_borrowed_slice(values), dims, count)

    @classmethod
    def _borrowing(cls, buffer: Storage, dims: tuple[int, ...], count: int) -> Self:
        cls._require_count(count, buffer.capacity, dims, "TENSOR-NEW-4")
        return cls._over(buffer, dims)

    @staticmethod
    def _require_count(count: int, given: int, dims: tuple[int, ...], clause: str) -> None:
        if given != count:
            raise InvalidDataLength(
                f"values must hold {count} elements for shape {tuple_shown(dims)}, got {given}", clause=clause
            )

    @classmethod
    def from_owned_buffer(cls, buffer: Any, shape: ShapeLike) -> Self:
        """Return a tensor that takes over one reference to a storage; on error it stays with the caller.

        Parameters
        ----------
        buffer : a storage of this dtype
            With at least as many elements as the shape has.
        shape : sequence of int
            Its sizes.

        Raises
        ------
        DTypeMismatch
            No storage of this dtype.
        UseAfterDeinit
            One without references.
        InvalidInteger, InvalidShape, Overflow
            No shape.
        InvalidDataLength
            The storage is too small.

        Clauses: TENSOR-NEW-5, TENSOR-NEW-1
        """
        if type(buffer) is not BufferOf(cls.dtype):
            raise DTypeMismatch(
                f"buffer must be a BufferOf({cls.dtype.name}), got {shown(buffer)}", clause="TENSOR-NEW-5"
            )
        if buffer._state[1]:
            raise UseAfterDeinit(f"{buffer!r} was used after its last reference was given back", clause="TENSOR-NEW-5")
        dims, count = cls._counted(shape)
        if buffer.capacity < count:
            raise InvalidDataLength(
                f"buffer must hold {count} elements for shape {tuple_shown(dims)}, got {buffer.capacity}",
                clause="TENSOR-NEW-5",
            )
        return cls._over(buffer, dims)

    def rank_view(self, rank: int) -> RankedView:
        """Return a look at the tensor as one of a given rank; it takes no reference.

        Raises
        ------
        InvalidShape
            The tensor has another rank.

        Clauses: TENSOR-RANK-1
        """
        held = self.rank()
        wanted = rank_of(rank, "TENSOR-RANK-1")
        if wanted != held:
            raise InvalidShape(f"rank must be {held}, that of the tensor, got {wanted}", clause="TENSOR-RANK-1")
        kind = RankedTensorOf(self.dtype, wanted)
        view = kind.__new__(kind)
        view._tensor = self
        return view


class RankedView:
    """A borrowed look at a tensor of known rank; ``RankedTensorOf(dtype, rank)`` are its subclasses.

    Clauses: TENSOR-RANK-1
    """

    __slots__ = ("_tensor",)

    dtype: ClassVar[DType]
    rank: ClassVar[int]

    _tensor: RawTensor

    def __init__(self) -> None:
        raise DTypeMismatch(f"a {type(self).__name__} is made by rank_view(rank)", clause="TENSOR-RANK-1")

    @property
    def tensor(self) -> RawTensor:
        """The tensor."""
        if not self._tensor._is_usable():
            raise UseAfterDeinit(f"{self._tensor!r} was looked at after its deinit", clause="TENSOR-RANK-1")
        return self._tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes."""
        return tuple(self.tensor.shape)

    @property
    def strides(self) -> tuple[int, ...]:
        """The steps in storage elements."""
        return tuple(self.tensor.strides)

    def dim(self, axis: int) -> int:
        """Return the size of an axis; IndexOutOfBounds where there is none.

        Clauses: TENSOR-RANK-1
        """
        shape = self.tensor.shape
        return shape[axis_of(axis, len(shape), "TENSOR-RANK-1")]

    def len(self) -> int:
        """Return the number of logical elements.

        Clauses: TENSOR-RANK-1
        """
        return self.tensor.len()

    def is_contiguous(self) -> bool:
        """Return whether the strides are the row-major ones.

        Clauses: TENSOR-RANK-1
        """
        return self.tensor.is_contiguous()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._tensor!r}>"


install(handles.Tensor, RawTensor)


@cache
def _tensor_type(dtype: DType) -> type[RawTensor]:
    made: Any = handles.tensor_leaf(handles.Tensor, f"fucina.fast.tensor.TensorOf({dtype.name})")
    made.dtype, made.Element = dtype, storage(dtype)
    found: type[RawTensor] = made
    return found


@cache
def _ranked_type(dtype: DType, rank: int) -> type[RankedView]:
    members = {"dtype": dtype, "rank": rank, "__slots__": ()}
    return type(f"RankedTensorOf({dtype.name}, {rank})", (RankedView,), members)


def TensorOf(dtype: DType) -> type[RawTensor]:  # noqa: N802 - the documents' name of a family of types
    """Return the type of the raw tensors of a dtype: always the same one.

    Raises
    ------
    InvalidDType
        No dtype.

    Clauses: TENSOR-TYPE-1
    """
    return _tensor_type(known_dtype(dtype))


def RankedTensorOf(dtype: DType, rank: int) -> type[RankedView]:  # noqa: N802
    """Return the type of the ranked looks at tensors of a dtype.

    Raises
    ------
    InvalidDType, InvalidInteger, InvalidShape
        No dtype; no rank.

    Clauses: TENSOR-RANK-1
    """
    return _ranked_type(known_dtype(dtype), rank_of(rank, "TENSOR-RANK-1"))


def RankedTensor(rank: int) -> type[RankedView]:  # noqa: N802
    """Return the type of the ranked looks at tensors of f32.

    Clauses: TENSOR-RANK-1
    """
    return RankedTensorOf(DType.f32, rank)


Tensor = TensorOf(DType.f32)
"""The raw tensor of f32 (clause TENSOR-TYPE-1)."""
