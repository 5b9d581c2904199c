"""Elements: the scalar form, in which one element travels through Python.

A bool is a Python bool, an integer an int, a bf16 or f8 its pattern as an int, an f16, f32 or f64 its value as a float.
Here scalar form is read into patterns and patterns are written in scalar form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fucina.reference.arguments import integer, is_whole, number, shown
from fucina.reference.bridges import FLOATS, INTEGERS, convert, integer_range, integer_value
from fucina.reference.formats import F64, Format, encode, float_of
from fucina.spec.errors import DTypeMismatch
from fucina.spec.types import GEOMETRY, DType

if TYPE_CHECKING:
    from fucina.spec.interface import ScalarValue

__all__ = ["element_integer", "read", "value_of", "write"]

VALUES = frozenset({DType.f16, DType.f32, DType.f64})  # floats whose scalar form is the value, not the pattern


def read(dtype: DType, value: Any) -> int:
    """Return the pattern of an element given in scalar form.

    Notes
    -----
    Clauses: BRIDGE-SCALAR-4
    """
    clause = "BRIDGE-SCALAR-4"
    if dtype in VALUES:
        return encode(FLOATS[dtype], number("value", value, clause))
    if dtype is DType.bool:
        if not issubclass(type(value), bool | np.bool_):
            raise DTypeMismatch(f"an element of bool must be a bool, got {shown(value)}", clause=clause)
        return int(value)
    width = 8 * GEOMETRY[dtype].byte_size
    low, high = integer_range(dtype) if dtype in INTEGERS else (0, (1 << width) - 1)
    return element_integer(f"an element of {dtype.name}", value, low, high + 1, clause) & ((1 << width) - 1)


def write(dtype: DType, bits: int) -> ScalarValue:
    """Return a pattern in scalar form."""
    if dtype in VALUES:
        return value_of(FLOATS[dtype], bits)
    if dtype is DType.bool:
        return bits != 0
    return integer_value(dtype, bits) if dtype in INTEGERS else bits


def value_of(fmt: Format, bits: int) -> float:
    """Return the value of a pattern as a Python float."""
    return float_of(convert(fmt, F64, bits))


def element_integer(name: str, value: object, low: int, high: int, clause: str) -> int:
    """Return an integer in ``[low, high)`` where a value, not an index, is asked for: ``__index__`` alone will not do.

    Notes
    -----
    Clauses: BRIDGE-SCALAR-4
    """
    if not is_whole(value):
        raise DTypeMismatch(f"{name} must be an int or a numpy integer, got {shown(value)}", clause=clause)
    return integer(name, value, low, high, clause)
