"""Constructors of the facade: from raw tensors, from values, filled, and over the caller's memory."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from fucina.fast._element_buffers import pattern_of
from fucina.fast._facade_core import PLAIN, constructor, dims_of, operand, require_dtype
from fucina.fast._facade_looking import BIT_FLOATS, Looking
from fucina.fast._objects import handles
from fucina.fast._shown import shown, tuple_shown
from fucina.fast._sizes import storage_count_of
from fucina.fast.geometry import element, one, zero
from fucina.fast.tensor import TensorOf
from fucina.spec.errors import (
    ActiveExecScopeUnsupported,
    DTypeMismatch,
    InvalidDType,
    InvalidShape,
    InvalidTag,
    UnsupportedView,
)
from fucina.spec.types import GEOMETRY, DType, DTypeKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from fucina.fast._facade_types import TensorType
    from fucina.fast.tensor import RawTensor

__all__ = ["Making", "bits_of_element", "consumable", "patterns_of", "sized"]

_ALL = frozenset(DType)


def bits_of_element(dtype: DType, value: Any) -> int:
    """Return the pattern of an element: of bf16 and f8 of a value or a float, else of a scalar form.

    Raises
    ------
    DTypeMismatch, Overflow
        No element of the dtype.

    Clauses: FACADE-NEW-3, BRIDGE-SCALAR-4
    """
    if dtype not in BIT_FLOATS:
        return pattern_of(dtype, value)
    kind = element(dtype)
    if type(value) is kind:
        return cast(int, value.bits)
    if isinstance(value, float) or type(value).__name__ in ("float16", "float32"):
        return cast(int, kind.from_f32(value).bits)
    raise DTypeMismatch(
        f"an element of {dtype.name} must be a {kind.__name__} or a float, got {shown(value)}", clause="FACADE-NEW-3"
    )


def patterns_of(dtype: DType, values: Any) -> Any:
    """Return values as the raw layer takes them: elements of bf16 and f8 in a sequence as patterns.

    Clauses: FACADE-NEW-2, FACADE-NEW-3
    """
    if dtype in BIT_FLOATS and isinstance(values, list | tuple | range):
        return [bits_of_element(dtype, value) for value in values]
    return values


def sized(kind: TensorType, shape: Any, clause: str) -> tuple[int, ...]:
    """Return the sizes of a tensor of a type, whose elements can be counted; those of a scalar are (1,).

    Raises
    ------
    InvalidShape, InvalidInteger, Overflow
        No shape of the type's tensors.

    Clauses: SHAPE-RULE-1, SHAPE-COUNT-2
    """
    dims = dims_of(kind.rank, shape, clause)
    storage_count_of(kind.dtype, dims, "SHAPE-COUNT-2")
    return dims


def consumable(kind: TensorType, raw: Any, what: str, allowed: frozenset[DType]) -> RawTensor:
    """Return a raw tensor that a tensor of a type can be made of.

    Raises
    ------
    DTypeMismatch, UseAfterDeinit, UseAfterScope
        No raw tensor; one that has ended; another dtype.
    InvalidDType
        The type's dtype is none for which the constructor is defined.
    InvalidShape
        Another rank; for a scalar a shape other than (1,).
    ActiveExecScopeUnsupported, UnsupportedView
        A scope owns it; it owns nothing.

    Clauses: FACADE-NEW-1
    """
    clause = "FACADE-NEW-1"
    if not issubclass(type(raw), handles.Tensor):
        raise DTypeMismatch(f"raw must be a raw tensor, got {shown(raw)}", clause=clause)
    found = cast("RawTensor", raw)
    found.rank()
    require_dtype(what, kind.dtype, allowed)
    if found.dtype is not kind.dtype:
        raise DTypeMismatch(f"raw must be of {kind.dtype.name}, got {found.dtype.name}", clause=clause)
    shape = tuple(found.shape)
    if len(shape) != kind.rank if kind.rank else shape != (1,):
        raise InvalidShape(
            f"raw must have {f'{kind.rank} axes' if kind.rank else 'shape (1,)'}, got shape {tuple_shown(shape)}",
            clause=clause,
        )
    if found.scope_owned:
        raise ActiveExecScopeUnsupported(f"a scope owns {found!r}, so it cannot be consumed", clause=clause)
    if found._borrows():
        raise UnsupportedView(f"{found!r} owns nothing (clone_view makes one that does)", clause=clause)
    return found


class Making(Looking):
    """The constructors of a type; what they return is the caller's.

    Clauses: FACADE-OWN-1
    """

    __slots__ = ()

    # -- from a raw tensor

    @classmethod
    @constructor
    def constant(cls, ctx: Any, raw: Any) -> RawTensor:
        """Return a tensor that takes over the reference of a raw one, which is consumed; on error it is as before.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        raw : RawTensor
            Of the type's dtype and rank, in any layout.

        Raises
        ------
        DTypeMismatch, UseAfterDeinit, UseAfterScope, InvalidShape, ActiveExecScopeUnsupported, UnsupportedView
            It cannot be consumed.

        Clauses: FACADE-NEW-1
        """
        return consumable(cast("TensorType", cls), raw, "constant", _ALL)

    @classmethod
    @constructor
    def from_tensor(cls, ctx: Any, raw: Any) -> RawTensor:
        """Return what :meth:`constant` does.

        Clauses: FACADE-NEW-1
        """
        return consumable(cast("TensorType", cls), raw, "from_tensor", _ALL)

    # -- from values

    @classmethod
    @constructor
    def from_slice(cls, ctx: Any, shape: Any, values: Any) -> RawTensor:
        """Return a tensor that holds a copy of the values on pooled storage.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        shape : sequence of int
            A size for each axis.
        values : buffer, bytes, list, tuple or range
            As many elements as the shape has, in row-major order.

        Raises
        ------
        InvalidDType
            Of blocks.
        InvalidShape, InvalidInteger, Overflow
            No shape of the type's tensors.
        DTypeMismatch, Overflow, InvalidDataLength
            No elements of the dtype, or another number of them.
        OutOfMemory
            There is no memory.

        Clauses: FACADE-NEW-2, FACADE-NEW-3, CONTEXT-NEW-2
        """
        require_dtype("from_slice", cls.dtype, PLAIN)
        return sliced(ctx, cast("TensorType", cls), shape, values)

    @classmethod
    @constructor
    def from_borrowed_slice(cls, ctx: Any, shape: Any, values: Any) -> RawTensor:
        """Return a tensor over the caller's writable memory.

        Raises
        ------
        InvalidDType
            Of blocks.
        InvalidShape, InvalidInteger, Overflow
            No shape of the type's tensors.
        DTypeMismatch, InvalidDataLength, UnsupportedView, ReadOnlyStorage
            The memory cannot be borrowed, or holds another number of elements.

        Clauses: FACADE-NEW-2, CONTEXT-NEW-3
        """
        require_dtype("from_borrowed_slice", cls.dtype, PLAIN)
        dims = sized(cast("TensorType", cls), shape, "FACADE-NEW-2")
        made: RawTensor = ctx._rt.traced(TensorOf(cls.dtype).from_borrowed_storage_slice(dims, values))
        return made

    @classmethod
    @constructor
    def from_borrowed_const_slice(cls, ctx: Any, shape: Any, values: Any) -> RawTensor:
        """Return a read-only tensor over the caller's memory; errors as of :meth:`from_borrowed_slice`.

        Clauses: FACADE-NEW-2, CONTEXT-NEW-3, STORAGE-READ-1
        """
        require_dtype("from_borrowed_const_slice", cls.dtype, PLAIN)
        dims = sized(cast("TensorType", cls), shape, "FACADE-NEW-2")
        made: RawTensor = ctx._rt.traced(TensorOf(cls.dtype).from_borrowed_const_slice(dims, values))
        return made

    @classmethod
    @constructor
    def from_blocks(cls, ctx: Any, shape: Any, blocks: Any) -> RawTensor:
        """Return a tensor that holds a copy of storage elements on pooled storage.

        Raises
        ------
        InvalidDType
            Not of blocks.
        InvalidShape, InvalidInteger, Overflow
            No shape of the type's tensors; a last size that is no multiple of the block size.
        DTypeMismatch, InvalidDataLength
            No blocks of the dtype, or another number of them.
        OutOfMemory
            There is no memory.

        Clauses: FACADE-NEW-8, SHAPE-COUNT-2
        """
        _require_blocks("from_blocks", cls.dtype)
        dims = sized(cast("TensorType", cls), shape, "FACADE-NEW-8")
        made: RawTensor = ctx._holding(dims, blocks, cls.dtype)
        return made

    @classmethod
    @constructor
    def from_borrowed_blocks(cls, ctx: Any, shape: Any, blocks: Any) -> RawTensor:
        """Return a tensor over storage elements of the caller, to be written where the memory can be.

        Raises
        ------
        InvalidDType
            Not of blocks.
        InvalidShape, InvalidInteger, Overflow
            No shape of the type's tensors; a last size that is no multiple of the block size.
        DTypeMismatch, InvalidDataLength, UnsupportedView, ReadOnlyStorage
            The memory cannot be borrowed, or holds another number of blocks.

        Clauses: FACADE-NEW-8, SHAPE-COUNT-2
        """
        _require_blocks("from_borrowed_blocks", cls.dtype)
        dims = sized(cast("TensorType", cls), shape, "FACADE-NEW-8")
        made: RawTensor = ctx._rt.traced(TensorOf(cls.dtype).from_borrowed_storage_slice(dims, blocks))
        return made

    # -- filled

    @classmethod
    @constructor
    def empty(cls, ctx: Any, shape: Any) -> RawTensor:
        """Return a tensor of unspecified content.

        Raises
        ------
        InvalidShape, InvalidInteger, Overflow, OutOfMemory
            There is no such tensor.

        Clauses: FACADE-NEW-4, CONTEXT-NEW-1
        """
        made: RawTensor = ctx._rt.new(cls.dtype, sized(cast("TensorType", cls), shape, "FACADE-NEW-4"))
        return made

    @classmethod
    @constructor
    def zeros(cls, ctx: Any, shape: Any) -> RawTensor:
        """Return a tensor of zeros.

        Raises
        ------
        InvalidDType
            Of blocks.
        InvalidShape, InvalidInteger, Overflow, OutOfMemory
            There is no such tensor.

        Clauses: FACADE-NEW-4, CONTEXT-NEW-1
        """
        return _constant(ctx, cls, _shaped(cls, "zeros", shape), zero)

    @classmethod
    @constructor
    def ones(cls, ctx: Any, shape: Any) -> RawTensor:
        """Return a tensor of ones; errors as of :meth:`zeros`.

        Clauses: FACADE-NEW-4, CONTEXT-NEW-1
        """
        return _constant(ctx, cls, _shaped(cls, "ones", shape), one)

    @classmethod
    @constructor
    def full(cls, ctx: Any, shape: Any, value: Any) -> RawTensor:
        """Return a tensor all of whose elements are the same.

        Raises
        ------
        InvalidDType
            Of blocks.
        DTypeMismatch, Overflow
            ``value`` is no element.
        InvalidShape, InvalidInteger, Overflow, OutOfMemory
            There is no such tensor.

        Clauses: FACADE-NEW-4, FACADE-NEW-3, CONTEXT-NEW-1
        """
        require_dtype("full", cls.dtype, PLAIN)
        bits = bits_of_element(cls.dtype, value)
        made: RawTensor = ctx._filled(sized(cast("TensorType", cls), shape, "FACADE-NEW-4"), cls.dtype, bits)
        return made

    @classmethod
    @constructor
    def scalar(cls, ctx: Any, value: Any) -> RawTensor:
        """Return a scalar.

        Raises
        ------
        InvalidDType
            Of blocks.
        InvalidShape
            The type has axes.
        DTypeMismatch, Overflow, OutOfMemory
            ``value`` is no element; there is no memory.

        Clauses: FACADE-NEW-4, FACADE-NEW-3
        """
        require_dtype("scalar", cls.dtype, PLAIN)
        bits = bits_of_element(cls.dtype, value)
        if cls.rank:
            raise InvalidShape(f"scalar is for types without axes, got {cls!r}", clause="FACADE-NEW-4")
        made: RawTensor = ctx._filled((1,), cls.dtype, bits)
        return made

    # -- like another one

    @classmethod
    @constructor
    def empty_like(cls, ctx: Any, other: Any) -> RawTensor:
        """Return a tensor of unspecified content with the shape of another one, of whatever dtype.

        Raises
        ------
        DTypeMismatch, UseAfterDeinit, UseAfterScope
            ``other`` is no tensor, or has ended.
        InvalidDType
            Of blocks.
        InvalidTag
            It has other tags than the type.
        OutOfMemory
            There is no memory.

        Clauses: FACADE-NEW-4
        """
        made: RawTensor = ctx._rt.new(cls.dtype, _like(cls, "empty_like", other))
        return made

    @classmethod
    @constructor
    def zeros_like(cls, ctx: Any, other: Any) -> RawTensor:
        """Return a tensor of zeros with the shape of another one; errors as of :meth:`empty_like`.

        Clauses: FACADE-NEW-4
        """
        return _constant(ctx, cls, _like(cls, "zeros_like", other), zero)

    @classmethod
    @constructor
    def ones_like(cls, ctx: Any, other: Any) -> RawTensor:
        """Return a tensor of ones with the shape of another one; errors as of :meth:`empty_like`.

        Clauses: FACADE-NEW-4
        """
        return _constant(ctx, cls, _like(cls, "ones_like", other), one)

    @classmethod
    @constructor
    def full_like(cls, ctx: Any, other: Any, value: Any) -> RawTensor:
        """Return a tensor of one value with the shape of another one; errors as of :meth:`empty_like` and `full`.

        Clauses: FACADE-NEW-4, FACADE-NEW-3
        """
        dims = _like(cls, "full_like", other)
        made: RawTensor = ctx._filled(dims, cls.dtype, bits_of_element(cls.dtype, value))
        return made


def sliced(ctx: Any, kind: TensorType, shape: Any, values: Any) -> RawTensor:
    """Return a raw tensor that holds a copy of values.

    Clauses: FACADE-NEW-2, FACADE-NEW-3
    """
    dims = sized(kind, shape, "FACADE-NEW-2")
    made: RawTensor = ctx._holding(dims, patterns_of(kind.dtype, values), kind.dtype)
    return made


def _require_blocks(what: str, dtype: DType) -> None:
    if GEOMETRY[dtype].kind is not DTypeKind.block_quantized:
        raise InvalidDType(f"{what} takes dtypes of blocks, got {dtype!r}", clause="POLICY-BRANCH-1")


def _constant(ctx: Any, kind: Any, dims: tuple[int, ...], value: Callable[[DType], Any]) -> RawTensor:
    """Return a raw tensor all of whose elements are the zero or one of a type's dtype."""
    made: RawTensor = ctx._filled(dims, kind.dtype, _pattern(kind.dtype, value))
    return made


@lru_cache(64)
def _pattern(dtype: DType, value: Callable[[DType], Any]) -> int:
    return pattern_of(dtype, value(dtype))


def _shaped(kind: Any, what: str, shape: Any) -> tuple[int, ...]:
    """Return the sizes of a tensor of a type of scalar dtype."""
    require_dtype(what, kind.dtype, PLAIN)
    return sized(kind, shape, "FACADE-NEW-4")


def _like(kind: Any, what: str, given: Any) -> tuple[int, ...]:
    """Return the raw shape of what must be a tensor that has a type's tags.

    Clauses: FACADE-NEW-4
    """
    other = operand("other", given)
    require_dtype(what, kind.dtype, PLAIN)
    if other.axis_tags != kind.axis_tags:
        raise InvalidTag(f"other must have the tags {kind.axis_tags}, got {other.axis_tags}", clause="FACADE-NEW-4")
    return tuple(other._raw_shape)
