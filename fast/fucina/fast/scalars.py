"""One element: between scalar form and bit patterns, and the casts in between.

Every conversion is ``fc_cast_bits`` on patterns, so no floating-point operation runs in the caller's environment
(clause NUM-ENV-2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fucina.fast._accelerate import SCALARS, of_bits
from fucina.fast._arguments import cast_pattern, integer, is_whole, known_dtype, pattern, scalar_dtype
from fucina.fast._facts import facts
from fucina.fast._native import ffi, lib
from fucina.fast._shown import shown
from fucina.spec.errors import DTypeMismatch, InvalidDType
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

_F32, _F64 = DType.f32.index, DType.f64.index
_FLOATS = frozenset(dtype for dtype in SCALARS if facts(dtype).to_float)
_SIGNED = frozenset(dtype for dtype in SCALARS if facts(dtype).signed_integer)
_RAW = frozenset(dtype for dtype in SCALARS if str(GEOMETRY[dtype].format)[0] == "u")  # unsigned in scalar form
_FLOAT_NAMES = ", ".join(dtype.name for dtype in SCALARS if dtype in _FLOATS)


def _width(dtype: DType) -> int:
    return 8 * GEOMETRY[dtype].byte_size


def _bounds(dtype: DType) -> tuple[int, int]:
    """Return the least integer of a dtype in scalar form, and the one after the greatest."""
    width = _width(dtype)
    return (-(1 << (width - 1)), 1 << (width - 1)) if dtype in _SIGNED else (0, 1 << width)


def _encode(dtype: DType, value: Any) -> int:
    """Return the pattern of an element given in scalar form.

    Clauses: BRIDGE-SCALAR-4, DTYPE-STORAGE-1
    """
    if dtype is DType.bool:
        if not issubclass(type(value), bool | np.bool_):
            raise DTypeMismatch(f"a bool element must be a bool, got {shown(value)}", clause="BRIDGE-SCALAR-4")
        return int(value)
    if dtype in _RAW or dtype in _SIGNED:
        if not is_whole(value):
            raise DTypeMismatch(
                f"a {dtype.name} element must be an integer in scalar form, got {shown(value)}",
                clause="BRIDGE-SCALAR-4",
            )
        return integer("value", value, *_bounds(dtype), "BRIDGE-SCALAR-4") & ((1 << _width(dtype)) - 1)
    return _round(dtype, value, "BRIDGE-SCALAR-4")


def _round(dtype: DType, value: object, clause: str) -> int:
    """Return the pattern of f16, f32 or f64 nearest to a number.

    Clauses: NUM-PARAM-1, BRIDGE-SCALAR-4
    """
    return cast_pattern(_F64, dtype.index, pattern("value", value, clause), lib.FC_CAST_SINGLE_ROUNDING)


def _decode(dtype: DType, bits: int) -> ScalarValue:
    """Return an element in scalar form.

    Clauses: DTYPE-STORAGE-1
    """
    if dtype is DType.bool:
        return bool(bits)
    if dtype in _RAW:
        return bits
    if dtype in _SIGNED:
        width = _width(dtype)
        return bits - (1 << width) if bits >> (width - 1) else bits
    return _number(dtype, bits)


def _float_dtype(dtype: object, clause: str, name: str = "dtype") -> DType:
    found = known_dtype(dtype, name)
    if found not in _FLOATS:
        raise InvalidDType(f"{name} must be one of {_FLOAT_NAMES}, got {found!r}", clause=clause)
    return found


def _number(dtype: DType, bits: int) -> float:
    """Return the float value of a pattern of any float dtype."""
    return of_bits(cast_pattern(dtype.index, _F64, bits))


def to_f32(dtype: DType, value: ScalarValue) -> float:
    """Return an element of a float dtype as f32.

    Parameters
    ----------
    dtype : DType
        f16, bf16, f32, f64, f8_e4m3 or f8_e5m2; InvalidDType otherwise.
    value : float or int
        The element in scalar form; DTypeMismatch or Overflow otherwise.

    Clauses: BRIDGE-SCALAR-1, BRIDGE-SCALAR-4
    """
    source = _float_dtype(dtype, "BRIDGE-SCALAR-1")
    return _number(DType.f32, cast_pattern(source.index, _F32, _encode(source, value)))


def to_f64(dtype: DType, value: ScalarValue) -> float:
    """Return an element of a float dtype as f64.

    Parameters
    ----------
    dtype : DType
        f16, bf16, f32, f64, f8_e4m3 or f8_e5m2; InvalidDType otherwise.
    value : float or int
        The element in scalar form; DTypeMismatch or Overflow otherwise.

    Clauses: BRIDGE-SCALAR-1, BRIDGE-SCALAR-4
    """
    source = _float_dtype(dtype, "BRIDGE-SCALAR-1")
    return _number(source, _encode(source, value))


def from_f32(dtype: DType, value: float) -> ScalarValue:
    """Return an f32 as an element of a float dtype, in scalar form.

    Parameters
    ----------
    dtype : DType
        f16, bf16, f32, f64, f8_e4m3 or f8_e5m2; InvalidDType otherwise.
    value : float
        Rounded to f32 on entry.

    Clauses: BRIDGE-SCALAR-1, NUM-PARAM-1
    """
    target = _float_dtype(dtype, "BRIDGE-SCALAR-1")
    return _decode(target, cast_pattern(_F32, target.index, _round(DType.f32, value, "NUM-PARAM-1")))


def from_f64(dtype: DType, value: float) -> ScalarValue:
    """Return an f64 as an element of a float dtype, in scalar form: f16 in one rounding, bf16 and f8 through f32.

    Parameters
    ----------
    dtype : DType
        f16, bf16, f32, f64, f8_e4m3 or f8_e5m2; InvalidDType otherwise.
    value : float
        An integer is rounded to f64 on entry.

    Clauses: BRIDGE-SCALAR-1, BRIDGE-SCALAR-2, NUM-PARAM-1
    """
    target = _float_dtype(dtype, "BRIDGE-SCALAR-1")
    mode = lib.FC_CAST_SINGLE_ROUNDING if target is DType.f16 else 0
    return _decode(target, cast_pattern(_F64, target.index, _round(DType.f64, value, "NUM-PARAM-1"), mode))


def cast_float(source: DType, target: DType, value: ScalarValue) -> ScalarValue:
    """Cast an element between float dtypes: source -> f64 -> f32 -> target, or straight to f64.

    Parameters
    ----------
    source, target : DType
        Float dtypes; InvalidDType otherwise.  Equal ones leave the element as it is.
    value : float or int
        The element in scalar form.

    Clauses: BRIDGE-FLOAT-1, BRIDGE-SCALAR-4
    """
    start, end = _float_dtype(source, "BRIDGE-FLOAT-1", "source"), _float_dtype(target, "BRIDGE-FLOAT-1", "target")
    return _decode(end, cast_pattern(start.index, end.index, _encode(start, value)))


def cast_scalar(source: DType, target: DType, value: ScalarValue) -> ScalarValue:
    """Cast an element between any two of the 13 scalar dtypes.

    Parameters
    ----------
    source, target : DType
        Scalar dtypes; InvalidDType for block dtypes.
    value : bool, int or float
        The element in scalar form.

    Clauses: BRIDGE-SCALAR-3, BRIDGE-SCALAR-4
    """
    start, end = scalar_dtype(source, "BRIDGE-SCALAR-3", "source"), scalar_dtype(target, "BRIDGE-SCALAR-3", "target")
    return _decode(end, cast_pattern(start.index, end.index, _encode(start, value)))


def cast_bits(source: DType, target: DType, bits: int) -> int:
    """Cast an element given and returned as its bit pattern: the way to speak of NaN payloads.

    Parameters
    ----------
    source, target : DType
        Scalar dtypes; InvalidDType for block dtypes.
    bits : int
        An unsigned pattern of the source's width (of bool 0 or 1); InvalidInteger or Overflow otherwise.

    Clauses: BRIDGE-BITS-1
    """
    start, end = scalar_dtype(source, "BRIDGE-BITS-1", "source"), scalar_dtype(target, "BRIDGE-BITS-1", "target")
    width = 1 if start is DType.bool else _width(start)
    return cast_pattern(start.index, end.index, integer("bits", bits, 0, 1 << width, "BRIDGE-BITS-1"))


def is_truthy(dtype: DType, value: ScalarValue) -> bool:
    """Return whether an element of a scalar dtype is not zero: a NaN is true, a negative zero false.

    Clauses: BRIDGE-TRUTHY-1, BRIDGE-SCALAR-4
    """
    found = scalar_dtype(dtype, "BRIDGE-TRUTHY-1")
    result = ffi.new("int *")
    lib.fc_is_truthy(found.index, _encode(found, value), result)
    return bool(result[0])


def to_accumulator(dtype: DType, value: ScalarValue) -> ScalarValue:
    """Return an element as a value of its accumulator: a float for the float dtypes, an int for bool and the integers.

    Clauses: DTYPE-ACC-2, BRIDGE-SCALAR-4
    """
    found = scalar_dtype(dtype, "DTYPE-ACC-2")
    bits = _encode(found, value)
    return _number(found, bits) if found in _FLOATS else int(_decode(found, bits))


def from_accumulator(dtype: DType, value: ScalarValue) -> ScalarValue:
    """Return an accumulator value as an element: floats as :func:`from_f32`, integers checked, bool is ``!= 0``.

    Raises
    ------
    Overflow
        An integer that the dtype, or the accumulator of bool, cannot hold.

    Clauses: DTYPE-ACC-3
    """
    found = scalar_dtype(dtype, "DTYPE-ACC-3")
    if found is DType.f64:
        return from_f64(found, value)
    if found in _FLOATS:
        return from_f32(found, value)
    if not is_whole(value):
        raise DTypeMismatch(f"an accumulator of {found.name} is an integer, got {shown(value)}", clause="DTYPE-ACC-3")
    if found is DType.bool:
        return integer("value", value, 0, 1 << 64, "DTYPE-ACC-3") != 0
    return integer("value", value, *_bounds(found), "DTYPE-ACC-3")


def bf16_to_f32(bits: int) -> float:
    """Decode a bf16 pattern.

    Clauses: BRIDGE-BF16-1, BRIDGE-SCALAR-1
    """
    return to_f32(DType.bf16, bits)


def f32_to_bf16(value: float) -> int:
    """Encode an f32 as a bf16 pattern.

    Clauses: BRIDGE-BF16-2, BRIDGE-BF16-3, BRIDGE-SCALAR-1
    """
    return int(from_f32(DType.bf16, value))


def f8e4m3_to_f32(bits: int) -> float:
    """Decode an FP8 E4M3 pattern.

    Clauses: BRIDGE-E4M3-1, BRIDGE-SCALAR-1
    """
    return to_f32(DType.f8_e4m3, bits)


def f32_to_f8e4m3(value: float) -> int:
    """Encode an f32 as an FP8 E4M3 pattern.

    Clauses: BRIDGE-E4M3-2, BRIDGE-E4M3-3, BRIDGE-SCALAR-1
    """
    return int(from_f32(DType.f8_e4m3, value))


def f8e5m2_to_f32(bits: int) -> float:
    """Decode an FP8 E5M2 pattern.

    Clauses: BRIDGE-E5M2-1, BRIDGE-SCALAR-1
    """
    return to_f32(DType.f8_e5m2, bits)


def f32_to_f8e5m2(value: float) -> int:
    """Encode an f32 as an FP8 E5M2 pattern.

    Clauses: BRIDGE-E5M2-2, BRIDGE-E5M2-3, BRIDGE-SCALAR-1
    """
    return int(from_f32(DType.f8_e5m2, value))
