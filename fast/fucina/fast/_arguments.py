"""Scalar arguments: integers of a stated range, f32 parameters, dtypes.

Nothing here does floating-point arithmetic.  The caller may have set any rounding mode, flush-to-zero or traps (clause
NUM-ENV-2), so numbers travel as Python ints, as bit patterns, or as doubles that C rounds in the guarded environment.
"""

from __future__ import annotations

import operator
import struct
import sys
from typing import Any

import numpy as np

from fucina.fast._native import ffi, lib
from fucina.spec.errors import DTypeMismatch, InvalidDType, InvalidInteger, Overflow
from fucina.spec.types import DType

__all__ = [
    "SCALARS",
    "cast_pattern",
    "double",
    "from_pattern",
    "integer",
    "kind_of",
    "known_dtype",
    "scalar_dtype",
    "shown",
    "to_pattern",
    "u64",
    "whole",
]

SCALARS = tuple(dtype for dtype in DType if dtype.index < 13)
"""The 13 scalar dtypes; their indices are those of the C core."""

_SCALARS = frozenset(SCALARS)
_F16, _F32, _F64 = DType.f16.index, DType.f32.index, DType.f64.index
_INFINITY = float("inf")


def shown(value: int) -> str:
    """Return an integer as text for a message, however long it is."""
    return str(value) if value.bit_length() <= 128 else f"an integer of {value.bit_length()} bits"


def kind_of(value: object) -> str:
    """Return what a value is, for a message that refuses it."""
    return "None" if value is None else type(value).__name__


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
    raise InvalidInteger(f"{name} must be an integer, got {kind_of(value)}", clause=clause)


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
        raise Overflow(f"{name} must lie in [{_border(low)}, {_border(high)}), got {shown(number)}", clause=clause)
    return number


def _border(value: int) -> str:
    size = abs(value)
    if size > 65536 and size & (size - 1) == 0:
        return f"{'-' if value < 0 else ''}2^{size.bit_length() - 1}"
    return str(value)


def u64(name: str, value: object, clause: str = "RNG-SEED-1") -> int:
    """Return a seed, counter or index: an integer in [0, 2^64).

    Clauses: RNG-SEED-1
    """
    return integer(name, value, 0, 1 << 64, clause)


def double(name: str, value: object, clause: str = "NUM-PARAM-1", *, narrowed: bool = True) -> float:
    """Return a number as the double that C takes, by patterns and integers only.

    Parameters
    ----------
    name : str
        What to call it in a message.
    value : float, int or numpy scalar
        An int is rounded to the nearest double.
    clause : str
        The clause of the error.
    narrowed : bool
        Whether C rounds the double to f32 or less.  Then an extended float is not rounded here as well: of its bits
        beyond the 53 of a double only whether any is set is kept, in the last place, so that C sees on which side of a
        tie the number lies.

    Raises
    ------
    DTypeMismatch
        For everything that is no float and no integer; a bool is neither.

    Clauses: NUM-PARAM-1
    """
    if isinstance(value, float):
        return value
    if isinstance(value, np.floating):
        return _numpy_double(value, narrowed)
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return _quotient(int(value), 1)
    raise DTypeMismatch(f"{name} must be a float or an integer, got {kind_of(value)}", clause=clause)


def _numpy_double(value: np.floating[Any], narrowed: bool) -> float:
    if isinstance(value, np.float16 | np.float32):  # float(value) would flush a subnormal where the caller set DAZ
        source = _F16 if isinstance(value, np.float16) else _F32
        return from_pattern(cast_pattern(source, _F64, int.from_bytes(value.tobytes(), sys.byteorder)))
    try:
        numerator, denominator = value.as_integer_ratio()
    except (OverflowError, ValueError):  # infinite, or a NaN
        return float(value)
    cut = numerator.bit_length() - 53
    if narrowed and cut > 0:
        size = abs(numerator)
        size = ((size >> cut) | (size & ((1 << cut) - 1) != 0)) << cut
        numerator = -size if numerator < 0 else size
    return _quotient(numerator, denominator) if numerator else float(value)


def _quotient(numerator: int, denominator: int) -> float:
    """Divide; Python rounds the quotient of two ints to the nearest double in integers."""
    try:
        return numerator / denominator
    except OverflowError:
        return -_INFINITY if numerator < 0 else _INFINITY


def from_pattern(pattern: int) -> float:
    """Return the double of a bit pattern."""
    result: float = struct.unpack("<d", pattern.to_bytes(8, "little"))[0]
    return result


def to_pattern(value: float) -> int:
    """Return the bit pattern of a double."""
    return int.from_bytes(struct.pack("<d", value), "little")


def cast_pattern(source: int, target: int, pattern: int, mode: int = 0) -> int:
    """Cast one bit pattern between two scalar dtypes given by index.

    Clauses: BRIDGE-BITS-1
    """
    result = ffi.new("uint64_t *")
    if lib.fc_cast_bits(source, target, mode, pattern, result) != lib.FC_OK:
        raise AssertionError(f"the core refused the cast {source} -> {target}")
    return int(result[0])


def known_dtype(dtype: object) -> DType:
    """Return the argument if it is a dtype.

    Clauses: DTYPE-ARG-1
    """
    if type(dtype) is not DType:
        raise InvalidDType(f"a DType is required, got {kind_of(dtype)}", clause="DTYPE-ARG-1")
    return dtype


def scalar_dtype(dtype: object, clause: str) -> DType:
    """Return the argument if it is one of the 13 scalar dtypes."""
    found = known_dtype(dtype)
    if found not in _SCALARS:
        raise InvalidDType(f"a scalar dtype is required, got {found!r}", clause=clause)
    return found
