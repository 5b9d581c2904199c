"""Arguments: what may be passed where the contract says dtype, integer or real number.

An integer is what ``operator.index`` takes, so numpy integers pass and floats do not; a bool is a truth value and no
number.  Real numbers are read as patterns: not even looking at an argument may depend on the caller's floating-point
environment (``float(np.float32(1e-45))`` does, where denormals are taken as zero).
"""

from __future__ import annotations

import operator
import sys
from typing import Any, TypeGuard, TypeVar

import numpy as np

from fucina.reference.formats import F16, F32, F64, Kind, Number, decode, encode, pattern_of
from fucina.reference.softfloat import Soft32, Soft64, SoftFloat
from fucina.spec.errors import DTypeMismatch, InvalidDType, InvalidInteger, Overflow
from fucina.spec.types import GEOMETRY, DType, DTypeKind

__all__ = [
    "dtype_argument",
    "f32_argument",
    "factor_argument",
    "flag",
    "integer",
    "is_a",
    "is_whole",
    "number",
    "number_shown",
    "scalar_dtype",
    "shown",
    "whole",
    "whole_or_none",
    "word",
]

Wanted = TypeVar("Wanted")


def integer(name: str, value: object, low: int | None, high: int, clause: str) -> int:
    """Return an argument as an int in ``[low, high)``; without ``low`` any int below ``high`` will do.

    Raises
    ------
    InvalidInteger
        If it is a bool or no integer.
    Overflow
        If it lies outside the range.

    Notes
    -----
    Clauses: RNG-SEED-1
    """
    found = whole(name, value, clause)
    if found >= high or (low is not None and found < low):
        allowed = f"below {_power(high)}" if low is None else f"in [{_power(low)}, {_power(high)})"
        raise Overflow(f"{name} must be {allowed}, got {shown(found)}", clause=clause)
    return found


def whole(name: str, value: object, clause: str) -> int:
    """Return an argument as an int of any size.

    Raises
    ------
    InvalidInteger
        If it is a bool or no integer.

    Notes
    -----
    Clauses: RNG-SEED-1
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        return int(operator.index(value))  # type: ignore[arg-type]  # what has no __index__ is refused below
    except TypeError:
        raise InvalidInteger(f"{name} must be an integer, got {shown(value)}", clause=clause) from None


def whole_or_none(value: object) -> int | None:
    """Return an argument as an int of any size; None for a bool and for what is no integer.

    Notes
    -----
    Clauses: RNG-SEED-1
    """
    try:
        return whole("value", value, "RNG-SEED-1")
    except InvalidInteger:
        return None


def word(name: str, value: object, clause: str = "RNG-SEED-1") -> int:
    """Return a seed, counter or index: an int in [0, 2^64).

    Notes
    -----
    Clauses: RNG-SEED-1
    """
    return integer(name, value, 0, 1 << 64, clause)


def is_whole(value: object) -> bool:
    """Return whether an argument is an int or a numpy integer; a bool and a timedelta64 are none.

    Its type tells, not ``isinstance``, which believes what an object says of itself in ``__class__``.

    Notes
    -----
    Clauses: NUM-PARAM-1, BRIDGE-SCALAR-4
    """
    return issubclass(type(value), int | np.integer) and not issubclass(type(value), bool | np.timedelta64)


def is_a(value: object, wanted: type[Wanted]) -> TypeGuard[Wanted]:
    """Return whether an argument is of a type; its type tells, as :func:`is_whole` has it."""
    return issubclass(type(value), wanted)


def number(name: str, value: Any, clause: str) -> Number:
    """Return a real argument as the exact number that it is, before any rounding to the format that is wanted.

    Parameters
    ----------
    name : str
        The parameter's name, for the message.
    value : float, int, numpy floating or integer scalar
        The argument.  An int counts as the f64 nearest to it.
    clause : str
        The clause that asks for the number.

    Raises
    ------
    DTypeMismatch
        If it is anything else; a bool, a str, a complex number and an array are.

    Notes
    -----
    Clauses: NUM-PARAM-1
    """
    kind = type(value)
    if issubclass(kind, float):  # np.float64 is one
        return decode(F64, pattern_of(value))
    if issubclass(kind, np.float16 | np.float32):
        fmt = F16 if issubclass(kind, np.float16) else F32
        return decode(fmt, int.from_bytes(value.tobytes(), sys.byteorder))
    if is_whole(value):
        found = operator.index(value)
        return decode(F64, encode(F64, Number(Kind.FINITE, int(found < 0), abs(found))))
    raise DTypeMismatch(f"{name} must be a float or an integer, got {shown(value)}", clause=clause)


def f32_argument(name: str, value: object) -> Soft32:
    """Return a real argument rounded to f32.

    Notes
    -----
    Clauses: NUM-PARAM-1
    """
    return Soft32.from_number(number(name, value, "NUM-PARAM-1"))


def factor_argument(name: str, value: object, dtype: DType) -> SoftFloat:
    """Return a real argument rounded to what the elements of a float dtype are widened to: f64 for f64, else f32.

    Raises
    ------
    DTypeMismatch
        If it is no real number.

    Notes
    -----
    Clauses: TENSOR-SCALE-1, POLICY-SCALAR-1, NUM-PARAM-1
    """
    if dtype is DType.f64:
        return Soft64.from_number(number(name, value, "NUM-PARAM-1"))
    return f32_argument(name, value)


def flag(name: str, value: object, clause: str) -> bool:
    """Return an argument that must be a bool.

    Raises
    ------
    DTypeMismatch
        If it is none.
    """
    if type(value) not in (bool, np.bool_):  # by its type: isinstance believes what an object says of itself
        raise DTypeMismatch(f"{name} must be a bool, got {shown(value)}", clause=clause)
    return bool(value)


def dtype_argument(dtype: object, name: str = "dtype") -> DType:
    """Return the argument if it is a dtype.

    Notes
    -----
    Clauses: DTYPE-ARG-1
    """
    if type(dtype) is not DType:
        raise InvalidDType(f"{name} must be a DType, got {shown(dtype)}", clause="DTYPE-ARG-1")
    return dtype


def scalar_dtype(dtype: object, clause: str, name: str = "dtype") -> DType:
    """Return the argument if it is a scalar dtype; ``clause`` is the one that allows no other.

    Notes
    -----
    Clauses: DTYPE-ARG-1, ERR-TYPE-1
    """
    found = dtype_argument(dtype, name)
    if GEOMETRY[found].kind is not DTypeKind.scalar:
        raise InvalidDType(f"{name} must be a scalar dtype, got {found!r}", clause=clause)
    return found


# -- arguments in messages


def shown(value: Any) -> str:
    """Return an argument as a message shows it: numbers and short words as they are, everything else by its type."""
    kind = type(value)
    if issubclass(kind, float):
        return number_shown(decode(F64, pattern_of(value)), 17)
    if issubclass(kind, int) and kind is not bool:
        found = operator.index(value)
        return str(found) if found.bit_length() <= 128 else f"an integer of {found.bit_length()} bits"
    if value is None or kind in (bool, DType) or (kind is str and len(value) <= 40):
        return repr(value)
    return f"an object of type {type(value).__name__}"


def number_shown(value: Number, digits: int = 9) -> str:
    """Return a number in decimal; in integers, because the formatting of floats raises flags (clause NUM-ENV-3).

    Parameters
    ----------
    value : Number
        Any number.
    digits : int
        Significant digits: 9 tell all f32 apart, 17 all f64.

    Returns
    -------
    str
        Such as ``0.100000001``, ``-1.5e-40``, ``inf``.

    Notes
    -----
    Clauses: ERR-MSG-1, NUM-ENV-3
    """
    kind, negative, m, e = value
    sign = "-" * negative
    if kind is not Kind.FINITE:
        return "nan" if kind is Kind.NAN else f"{sign}inf"
    if not m:
        return f"{sign}0.0"

    # the power of ten of the first digit
    numerator, denominator = m << max(e, 0), 1 << max(-e, 0)
    ten = len(str(numerator)) - len(str(denominator))
    if numerator * 10 ** max(-ten, 0) < denominator * 10 ** max(ten, 0):
        ten -= 1

    # all digits as one integer, rounded; rounding may carry into one digit more
    scale = digits - 1 - ten
    text = str((2 * numerator * 10 ** max(scale, 0) // (denominator * 10 ** max(-scale, 0)) + 1) >> 1)
    ten += len(text) - digits
    text = text.rstrip("0")
    if not -5 < ten < 16:
        return f"{sign}{text[0]}.{text[1:] or 0}e{ten}"
    if ten < 0:
        return f"{sign}0.{'0' * (-ten - 1)}{text}"
    return f"{sign}{text[: ten + 1].ljust(ten + 1, '0')}.{text[ten + 1 :] or 0}"


def _power(border: int) -> str:
    """Return a border of a range, large powers of two as such."""
    size = abs(border)
    if size > 1 << 16 and size & (size - 1) == 0:
        return f"{'-' * (border < 0)}2^{size.bit_length() - 1}"
    return str(border)
