"""Raw operations of a context: what is checked here, the C core computes (csrc/ops)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fucina.fast._arguments import scalar_dtype
from fucina.fast._context_core import contexts, driven, operands
from fucina.fast._context_making import Making
from fucina.fast._element_buffers import factor_of
from fucina.fast._shown import tuple_shown
from fucina.fast._sizes import axis_of, count_of
from fucina.fast._tensor_views import require_scalar
from fucina.fast.policy import output_dtype
from fucina.fast.tensor import RawTensor
from fucina.spec.errors import (
    DivisionByZero,
    DTypeMismatch,
    InvalidDType,
    OverlappingMemory,
    ShapeMismatch,
)
from fucina.spec.types import DType, FloatOp

if TYPE_CHECKING:
    from fucina.spec.interface import ScalarValue

__all__ = ["Operations"]

_FLOATS = frozenset({DType.f16, DType.bf16, DType.f32, DType.f64})
_INTEGERS = frozenset({DType.u8, DType.u16, DType.i8, DType.i16, DType.i32, DType.i64})
_ADD, _SUB, _MUL, _DIV = range(4)
_NAMES = ("add", "sub", "mul", "div")


class Operations(Making):
    """The methods of a context that compute; ``add sub mul div`` of plain tensors are the C type's own.

    Clauses: CONTEXT-EAGER-1, CONTEXT-OWNER-1
    """

    def _add(self, a: Any, b: Any, *, out: Any = None) -> RawTensor:
        return self._pointwise(_ADD, a, b, out)

    def _sub(self, a: Any, b: Any, *, out: Any = None) -> RawTensor:
        return self._pointwise(_SUB, a, b, out)

    def _mul(self, a: Any, b: Any, *, out: Any = None) -> RawTensor:
        return self._pointwise(_MUL, a, b, out)

    def _div(self, a: Any, b: Any, *, out: Any = None) -> RawTensor:
        return self._pointwise(_DIV, a, b, out)

    def _pointwise(self, operation: int, a: Any, b: Any, out: Any) -> RawTensor:
        """Return a sum, difference, product or quotient, after every check in its turn.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch, InvalidDType, ShapeMismatch, Overflow
            The operands do not go together.
        DTypeMismatch, ShapeMismatch, ReadOnlyStorage, UnsupportedView, OverlappingMemory
            The result does not go into ``out``.
        DivisionByZero
            An integer would be divided by 0.
        OutOfMemory
            There is no memory.

        Clauses: CONTEXT-OP-1, CONTEXT-OP-2, CONTEXT-ARITH-1, CONTEXT-ARITH-2
        """
        clause = "CONTEXT-OP-1"
        first, second, *into = operands(clause, a=a, b=b, **({} if out is None else {"out": out}))
        dtype = first.dtype
        if dtype is not second.dtype:
            raise DTypeMismatch(
                f"a and b must be of one dtype, got {dtype.name} and {second.dtype.name} (cast makes one of the other)",
                clause=clause,
            )
        if dtype not in _FLOATS and dtype not in _INTEGERS:
            raise InvalidDType(f"{_NAMES[operation]} takes floats and integers, got {dtype!r}", clause=clause)
        shape = _together(first.shape, second.shape)
        if into:
            _require_destination(into[0], dtype, shape, first, second)
        if operation == _DIV and dtype in _INTEGERS and contexts.has_zero(second):
            raise DivisionByZero(f"b must have no 0 among its integers, got {second!r}", clause="CONTEXT-ARITH-2")
        result = into[0] if into else self._rt.new(dtype, shape)
        contexts.pointwise(operation, first, second, result, bool(into))
        return result

    @driven
    def scale(self, x: Any, scalar_value: ScalarValue, *, out: Any = None) -> RawTensor:
        """Return a tensor times a number.

        Parameters
        ----------
        x : RawTensor
            Of f16, bf16, f32 or f64.
        scalar_value : float or int
            Rounded to f32; for f64 to f64.
        out : RawTensor, optional
            Where the result goes, if not into a new tensor.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch, InvalidDType
            The arguments do not go together.
        DTypeMismatch, ShapeMismatch, ReadOnlyStorage, UnsupportedView, OverlappingMemory
            The result does not go into ``out``.
        OutOfMemory
            There is no memory.

        Clauses: CONTEXT-SCALE-1, CONTEXT-OP-2
        """
        found, *into = operands("CONTEXT-SCALE-1", x=x, **({} if out is None else {"out": out}))
        dtype = found.dtype
        if dtype not in _FLOATS:
            raise InvalidDType(f"scale takes f16, bf16, f32 and f64, got {dtype!r}", clause="CONTEXT-SCALE-1")
        factor = factor_of(scalar_value)
        if into:
            _require_destination(into[0], dtype, found.shape, found)
        result = into[0] if into else self._rt.new(dtype, found.shape)
        contexts.scale(found, factor, result, bool(into))
        return result

    @driven
    def sum(self, x: Any, axis: int | None = None) -> RawTensor:
        """Return the sum of all elements, or of those along an axis.

        Parameters
        ----------
        x : RawTensor
            Of any scalar dtype but the f8.
        axis : int, optional
            The axis that goes; without one, all of them.

        Returns
        -------
        RawTensor
            Of f32 for 16-bit floats, of i64 for integers and bools, else of the dtype of x; of shape (1,) where no
            axis is left.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch, InvalidDType
            x is no tensor that has a sum.
        InvalidInteger, IndexOutOfBounds
            There is no such axis.
        OutOfMemory
            There is no memory.

        Clauses: CONTEXT-SUM-1, CONTEXT-SUM-2
        """
        (found,) = operands("CONTEXT-SUM-1", x=x)
        shape = found.shape
        at = -1 if axis is None else axis_of(axis, len(shape), "CONTEXT-SUM-1")
        dtype = found.dtype
        if dtype not in _FLOATS and dtype not in _INTEGERS and dtype is not DType.bool:
            raise InvalidDType(f"sum takes scalar dtypes but the f8, got {dtype!r}", clause="CONTEXT-SUM-2")
        left = () if axis is None else (*shape[:at], *shape[at + 1 :])
        result = self._rt.new(output_dtype(FloatOp.reduction, dtype), left or (1,))
        contexts.sum(found, at, result)
        return result

    @driven
    def cast(self, x: Any, dtype: DType) -> RawTensor:
        """Return a tensor with every element converted to another scalar dtype.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch
            x is no tensor, or has ended.
        InvalidDType
            One of the two dtypes is a block, or none.
        OutOfMemory
            There is no memory.

        Clauses: CONTEXT-CAST-1
        """
        return self._converted(x, dtype)

    def _converted(self, x: Any, dtype: Any) -> RawTensor:
        (found,) = operands("CONTEXT-CAST-1", x=x)
        target = scalar_dtype(dtype, "CONTEXT-CAST-1")
        require_scalar(found.dtype, "cast", "CONTEXT-CAST-1")
        result = self._rt.new(target, found.shape)
        contexts.convert(found, result)
        return result


def _together(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that two shapes broadcast to.

    Clauses: CONTEXT-OP-1
    """
    clause = "CONTEXT-OP-1"
    rank = max(len(a), len(b))
    pairs = list(zip((1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b), strict=True))
    if any(m != n and 1 not in (m, n) for m, n in pairs):
        raise ShapeMismatch(
            f"shapes must be equal or 1 along each axis, from the last, got {tuple_shown(a)} and {tuple_shown(b)}",
            clause=clause,
        )
    shape = tuple(m if n == 1 else n for m, n in pairs)
    count_of("shape", shape, clause)
    return shape


def _require_destination(out: RawTensor, dtype: DType, shape: tuple[int, ...], *sources: RawTensor) -> None:
    """Refuse a tensor that a result cannot be written to.

    Clauses: CONTEXT-OP-2
    """
    clause = "CONTEXT-OP-2"
    if out.dtype is not dtype:
        raise DTypeMismatch(f"out must be of {dtype.name}, got {out.dtype.name}", clause=clause)
    if out.shape != shape:
        raise ShapeMismatch(f"out must be of shape {tuple_shown(shape)}, got {tuple_shown(out.shape)}", clause=clause)
    out._require_writable()
    out._require_contiguous("out", clause)
    begin, end = out._span()
    for source in sources:
        first, stop = source._span()
        if first < end and begin < stop:
            same = (first, stop) == (begin, end) and source.is_contiguous() and source.len() == out.len()
            if not same:
                raise OverlappingMemory(
                    f"out must be apart from an operand or exactly on it, got {min(end, stop) - max(begin, first)} "
                    f"bytes in common",
                    clause=clause,
                )
