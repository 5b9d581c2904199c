"""Scalar arguments: integers of a stated range, f32 parameters, dtypes.

Nothing here does floating-point arithmetic.  The caller may have set any rounding mode, flush-to-zero or traps (clause
NUM-ENV-2), so numbers travel as Python ints, as bit patterns, or as doubles that C rounds in the guarded environment.
"""

from __future__ import annotations

import operator
import sys
from typing import Any

import numpy as np

from fucina.fast._accelerate import SCALARS, bits_of, cast_bits, of_bits
from fucina.fast._shown import border, integer_shown, shown
from fucina.spec.errors import DTypeMismatch, InvalidDType, InvalidInteger, Overflow
from fucina.spec.types import DType

__all__ = [
    "cast_pattern",
    "double",
    "integer",
    "is_whole",
    "known_dtype",
    "pattern",
    "scalar_dtype",
    "u64",
    "whole",
]

_SCALARS = frozenset(SCALARS)
_F16, _F32, _F64 = DType.f16.index, DType.f32.index, DType.f64.index
_INFINITY = float("inf")
_EXPONENT, _QUIET = 0x7FF0_0000_0000_0000, 0x0008_0000_0000_0000


def whole(name: str, value: object, clause: str) -> int:
    """Return ``value`` as an int.

    Raises
    ------
    InvalidInteger
        For a bool and for everything without ``__index__``.
    """
    if type(value) is int:
        return value
    if not isinstance(value, bool | np.bool_):
        try:
            return int(operator.index(value))  # type: ignore[arg-type] # what has no __index__ is refused
        except TypeError:
            pass
    raise InvalidInteger(f"{name} must be an integer, got {shown(value)}", clause=clause)


def integer(name: str, value: object, low: int, high: int, clause: str) -> int:
    """Return ``value`` as an int in [low, high).

    Raises
    ------
    InvalidInteger
        For a bool and for everything without ``__index__``.
    Overflow
        Outside the range.
    """
    number = whole(name, value, clause)
    if not low <= number < high:
        raise Overflow(
            f"{name} must lie in [{border(low)}, {border(high)}), got {integer_shown(number)}", clause=clause
        )
    return number


def u64(name: str, value: object, clause: str = "RNG-SEED-1") -> int:
    """Return a seed, counter or index: an integer in [0, 2^64).

    Clauses: RNG-SEED-1
    """
    return integer(name, value, 0, 1 << 64, clause)


def is_whole(value: object) -> bool:
    """Return whether a value is an int or a numpy integer, which a bool and a timedelta64 are not.

    By its type: ``isinstance`` would believe an object that calls itself one in ``__class__``.

    Clauses: NUM-PARAM-1, BRIDGE-SCALAR-4
    """
    return issubclass(type(value), int | np.integer) and not issubclass(type(value), bool | np.timedelta64)


def pattern(name: str, value: Any, clause: str) -> int:
    """Return the f64 pattern of a number, by patterns and integers only; an int is rounded to the nearest f64.

    Raises
    ------
    DTypeMismatch
        For everything that is no float, no int and no numpy scalar of these kinds.  A bool is none, nor is an extended
        float.

    Clauses: NUM-PARAM-1
    """
    kind = type(value)
    if issubclass(kind, float):
        return bits_of(value)
    if issubclass(kind, np.float16 | np.float32):  # float(value) would flush a subnormal where the caller set DAZ
        source = _F16 if issubclass(kind, np.float16) else _F32
        return cast_pattern(source, _F64, int.from_bytes(value.tobytes(), sys.byteorder))
    if is_whole(value):
        number = operator.index(value)
        try:
            return bits_of(float(number))  # Python rounds it in integers
        except OverflowError:
            return bits_of(-_INFINITY if number < 0 else _INFINITY)
    raise DTypeMismatch(f"{name} must be a float or an integer, got {shown(value)}", clause=clause)


def double(name: str, value: object) -> float:
    """Return an f32 parameter as a float that C rounds.

    What becomes a zero of f32 is made one here, and a NaN quiet: on its way through cffi the float is compared with a
    number, and a subnormal or a signalling NaN would raise a flag of the caller's (NUM-ENV-3).

    Raises
    ------
    DTypeMismatch
        For everything that is no float and no integer; a bool is neither.

    Clauses: NUM-PARAM-1
    """
    bits = pattern(name, value, "NUM-PARAM-1")
    if bits & _EXPONENT == 0:
        return of_bits(bits & 1 << 63)
    if bits & _EXPONENT == _EXPONENT and bits & (_QUIET * 2 - 1):
        return of_bits(bits | _QUIET)
    return of_bits(bits)


def cast_pattern(source: int, target: int, bits: int, mode: int = 0) -> int:
    """Cast one bit pattern between two scalar dtypes given by index.

    Clauses: BRIDGE-BITS-1
    """
    return cast_bits(source, target, mode, bits)


def known_dtype(dtype: Any, name: str = "dtype") -> DType:
    """Return the argument if it is a dtype.

    Clauses: DTYPE-ARG-1
    """
    if type(dtype) is not DType:
        named = DType.__members__.get(dtype) if type(dtype) is str else None  # a subclass may have a hash of its own
        hint = f'; write {named!r} or DType("{named.name}")' if named else ""
        raise InvalidDType(f"{name} must be a DType, got {shown(dtype)}{hint}", clause="DTYPE-ARG-1")
    return dtype


def scalar_dtype(dtype: object, clause: str, name: str = "dtype") -> DType:
    """Return the argument if it is one of the 13 scalar dtypes."""
    found = known_dtype(dtype, name)
    if found not in _SCALARS:
        raise InvalidDType(f"{name} must be a scalar dtype, got {found!r}", clause=clause)
    return found
