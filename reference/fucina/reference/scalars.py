"""Scalars: conversions of one element.

Each function reads an element in scalar form into a pattern (:mod:`fucina.reference.elements`), lets
:mod:`fucina.reference.bridges` do the work, and writes the pattern it gets back into scalar form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fucina.reference.arguments import f32_argument, integer, number, scalar_dtype
from fucina.reference.bridges import FLOATS, caster, convert, integer_range, integer_value
from fucina.reference.bridges import from_f64 as from_f64_bits
from fucina.reference.elements import element_integer, read, value_of, write
from fucina.reference.formats import BF16, E4M3, E5M2, F32, F64, encode
from fucina.reference.predicates import SIGNED
from fucina.spec.errors import InvalidDType
from fucina.spec.types import GEOMETRY, DType

if TYPE_CHECKING:
    from fucina.spec.interface import ScalarValue

__all__ = [
    "bf16_to_f32",
    "cast_bits",
    "cast_float",
    "cast_scalar",
    "f8e4m3_to_f32",
    "f8e5m2_to_f32",
    "f32_to_bf16",
    "f32_to_f8e4m3",
    "f32_to_f8e5m2",
    "from_accumulator",
    "from_f32",
    "from_f64",
    "is_truthy",
    "to_accumulator",
    "to_f32",
    "to_f64",
]


def _float_dtype(dtype: object, clause: str, name: str = "dtype") -> DType:
    """Return the argument if it is one of the six float dtypes."""
    found = scalar_dtype(dtype, clause, name)
    if found not in FLOATS:
        raise InvalidDType(f"{name} must be a float dtype, got {found!r}", clause=clause)
    return found


# -- to and from the wide floats


def to_f32(dtype: DType, value: ScalarValue) -> float:
    """Return an element of a float dtype as an f32; exact unless it is an f64.

    Raises
    ------
    InvalidDType
        If the dtype is no float.
    DTypeMismatch, Overflow
        If ``value`` is no element of it.

    Notes
    -----
    Clauses: BRIDGE-SCALAR-1, BRIDGE-SCALAR-4
    """
    fmt = FLOATS[_float_dtype(dtype, "BRIDGE-SCALAR-1")]
    return value_of(F32, convert(fmt, F32, read(dtype, value)))


def to_f64(dtype: DType, value: ScalarValue) -> float:
    """Return an element of a float dtype as an f64; always exact.

    Raises
    ------
    InvalidDType
        If the dtype is no float.
    DTypeMismatch, Overflow
        If ``value`` is no element of it.

    Notes
    -----
    Clauses: BRIDGE-SCALAR-1, BRIDGE-SCALAR-4
    """
    fmt = FLOATS[_float_dtype(dtype, "BRIDGE-SCALAR-1")]
    return value_of(fmt, read(dtype, value))


def from_f32(dtype: DType, value: float) -> ScalarValue:
    """Return the element of a float dtype nearest to an f32.

    Raises
    ------
    InvalidDType
        If the dtype is no float.
    DTypeMismatch
        If ``value`` is no real number.

    Notes
    -----
    Clauses: BRIDGE-SCALAR-1, NUM-PARAM-1
    """
    fmt = FLOATS[_float_dtype(dtype, "BRIDGE-SCALAR-1")]
    return write(dtype, convert(F32, fmt, f32_argument("value", value).bits))


def from_f64(dtype: DType, value: float) -> ScalarValue:
    """Return an f64 as an element of a float dtype: of f16 and f32 the nearest, of bf16 and f8 by way of f32.

    Raises
    ------
    InvalidDType
        If the dtype is no float.
    DTypeMismatch
        If ``value`` is no real number.

    Notes
    -----
    Clauses: BRIDGE-SCALAR-1, BRIDGE-SCALAR-2, NUM-PARAM-1
    """
    fmt = FLOATS[_float_dtype(dtype, "BRIDGE-SCALAR-1")]
    return write(dtype, from_f64_bits(fmt, encode(F64, number("value", value, "NUM-PARAM-1"))))


def bf16_to_f32(bits: int) -> float:
    """Return the value of a bf16 pattern.

    Notes
    -----
    Clauses: BRIDGE-BF16-1, BRIDGE-SCALAR-1
    """
    return to_f32(DType.bf16, bits)


def f32_to_bf16(value: float) -> int:
    """Return the bf16 pattern nearest to an f32.

    Notes
    -----
    Clauses: BRIDGE-BF16-2, BRIDGE-BF16-3, BRIDGE-SCALAR-1
    """
    return convert(F32, BF16, f32_argument("value", value).bits)


def f8e4m3_to_f32(bits: int) -> float:
    """Return the value of an E4M3FN pattern.

    Notes
    -----
    Clauses: BRIDGE-E4M3-1, BRIDGE-E4M3-3, BRIDGE-SCALAR-1
    """
    return to_f32(DType.f8_e4m3, bits)


def f32_to_f8e4m3(value: float) -> int:
    """Return the E4M3FN pattern nearest to an f32; beyond 464 that is the NaN.

    Notes
    -----
    Clauses: BRIDGE-E4M3-2, BRIDGE-E4M3-3, BRIDGE-SCALAR-1
    """
    return convert(F32, E4M3, f32_argument("value", value).bits)


def f8e5m2_to_f32(bits: int) -> float:
    """Return the value of an E5M2 pattern.

    Notes
    -----
    Clauses: BRIDGE-E5M2-1, BRIDGE-E5M2-3, BRIDGE-SCALAR-1
    """
    return to_f32(DType.f8_e5m2, bits)


def f32_to_f8e5m2(value: float) -> int:
    """Return the E5M2 pattern nearest to an f32; from 61440 on that is the infinity.

    Notes
    -----
    Clauses: BRIDGE-E5M2-2, BRIDGE-E5M2-3, BRIDGE-SCALAR-1
    """
    return convert(F32, E5M2, f32_argument("value", value).bits)


# -- casts


def cast_float(source: DType, target: DType, value: ScalarValue) -> ScalarValue:
    """Return an element of a float dtype in another.

    Parameters
    ----------
    source, target : DType
        Float dtypes.
    value : bool, int or float
        An element of ``source`` in scalar form.

    Returns
    -------
    bool, int or float
        An element of ``target`` in scalar form.  From f64 to f16, bf16 and f8 it is rounded twice, first to f32.

    Raises
    ------
    InvalidDType
        If either dtype is no float.
    DTypeMismatch, Overflow
        If ``value`` is no element of ``source``.

    Notes
    -----
    Clauses: BRIDGE-FLOAT-1
    """
    _float_dtype(source, "BRIDGE-FLOAT-1", "source")
    _float_dtype(target, "BRIDGE-FLOAT-1", "target")
    return cast_scalar(source, target, value)


def cast_scalar(source: DType, target: DType, value: ScalarValue) -> ScalarValue:
    """Return an element of one scalar dtype in another.

    Parameters
    ----------
    source, target : DType
        Scalar dtypes, any of the 169 pairs.
    value : bool, int or float
        An element of ``source`` in scalar form.

    Returns
    -------
    bool, int or float
        An element of ``target`` in scalar form.

    Raises
    ------
    InvalidDType
        If either dtype is a block.
    DTypeMismatch, Overflow
        If ``value`` is no element of ``source``.

    Notes
    -----
    Clauses: BRIDGE-SCALAR-3, BRIDGE-SCALAR-4
    """
    scalar_dtype(source, "BRIDGE-SCALAR-3", "source")
    scalar_dtype(target, "BRIDGE-SCALAR-3", "target")
    return write(target, caster(source, target)(read(source, value)))


def cast_bits(source: DType, target: DType, bits: int) -> int:
    """Return the pattern of an element of one scalar dtype in another: ``cast_scalar`` with exact NaNs.

    Parameters
    ----------
    source, target : DType
        Scalar dtypes.
    bits : int
        A pattern of ``source``, unsigned; of bool 0 or 1.

    Returns
    -------
    int
        A pattern of ``target``, unsigned.

    Raises
    ------
    InvalidDType
        If either dtype is a block.
    InvalidInteger, Overflow
        If ``bits`` is no integer, or no pattern of ``source``.

    Notes
    -----
    Clauses: BRIDGE-BITS-1
    """
    scalar_dtype(source, "BRIDGE-BITS-1", "source")
    scalar_dtype(target, "BRIDGE-BITS-1", "target")
    width = 1 if source is DType.bool else 8 * GEOMETRY[source].byte_size
    return caster(source, target)(integer("bits", bits, 0, 1 << width, "BRIDGE-BITS-1"))


def is_truthy(dtype: DType, value: ScalarValue) -> bool:
    """Return whether an element is not zero: NaN is true, a zero of either sign false.

    Raises
    ------
    InvalidDType
        If the dtype is a block.
    DTypeMismatch, Overflow
        If ``value`` is no element of it.

    Notes
    -----
    Clauses: BRIDGE-TRUTHY-1
    """
    scalar_dtype(dtype, "BRIDGE-TRUTHY-1")
    return caster(dtype, DType.bool)(read(dtype, value)) != 0


# -- accumulators


def to_accumulator(dtype: DType, value: ScalarValue) -> ScalarValue:
    """Return an element as a number of the dtype's accumulator; exact.

    Raises
    ------
    InvalidDType
        If the dtype is a block.
    DTypeMismatch, Overflow
        If ``value`` is no element of it.

    Notes
    -----
    Clauses: DTYPE-ACC-2
    """
    scalar_dtype(dtype, "DTYPE-ACC-2")
    bits = read(dtype, value)
    return value_of(FLOATS[dtype], bits) if dtype in FLOATS else integer_value(dtype, bits)


def from_accumulator(dtype: DType, value: ScalarValue) -> ScalarValue:
    """Return a number of the dtype's accumulator as an element.

    Parameters
    ----------
    dtype : DType
        A scalar dtype.
    value : int or float
        A number of ``accumulator(dtype)``.

    Returns
    -------
    bool, int or float
        The element in scalar form; a float is rounded once.

    Raises
    ------
    InvalidDType
        If the dtype is a block.
    DTypeMismatch
        If ``value`` is no number of the accumulator.
    Overflow
        If an integer is outside the range of the accumulator, or of the dtype.

    Notes
    -----
    Clauses: DTYPE-ACC-3
    """
    scalar_dtype(dtype, "DTYPE-ACC-3")
    if dtype in FLOATS:
        return from_f64(dtype, value) if dtype is DType.f64 else from_f32(dtype, value)
    low, high = (-(1 << 63), 1 << 63) if dtype in SIGNED else (0, 1 << 64)
    accumulated = element_integer("an accumulator", value, low, high, "DTYPE-ACC-3")
    if dtype is DType.bool:
        return accumulated != 0
    low, high = integer_range(dtype)
    return integer(f"an element of {dtype.name}", accumulated, low, high + 1, "DTYPE-ACC-3")
