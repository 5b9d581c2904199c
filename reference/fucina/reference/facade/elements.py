"""Elements: what a caller gives and gets where one element of a tensor is meant.

A bf16 or f8 is a value here, where the raw layer has its pattern; everything else is in scalar form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fucina.reference import elements
from fucina.reference.arguments import f32_argument, is_whole, shown
from fucina.reference.bridges import FLOATS, convert
from fucina.reference.element_buffers import carrier
from fucina.reference.formats import F32
from fucina.reference.values import VALUE_TYPES
from fucina.spec.errors import DTypeMismatch
from fucina.spec.types import DType

if TYPE_CHECKING:
    from fucina.spec.facade import Element

__all__ = ["given", "read", "write"]

CLAUSE = "FACADE-NEW-3"


def read(dtype: DType, value: Any) -> int:
    """Return the pattern of an element.

    Raises
    ------
    DTypeMismatch, Overflow
        If it is none.

    Notes
    -----
    Clauses: FACADE-NEW-3, BRIDGE-SCALAR-4
    """
    if dtype not in VALUE_TYPES:
        return elements.read(dtype, value)
    kind = VALUE_TYPES[dtype]
    if type(value) is kind:
        return int(value.bits)
    if not issubclass(type(value), float | np.float16 | np.float32):
        hint = ", which could be meant as a number and as a pattern" if is_whole(value) else ""
        raise DTypeMismatch(
            f"an element of {dtype.name} must be a {kind.__name__} or a float, got {shown(value)}{hint}", clause=CLAUSE
        )
    return convert(F32, FLOATS[dtype], f32_argument(f"an element of {dtype.name}", value).bits)


def write(dtype: DType, bits: int) -> Element:
    """Return the element of a pattern.

    Notes
    -----
    Clauses: FACADE-NEW-3
    """
    return VALUE_TYPES[dtype](bits) if dtype in VALUE_TYPES else elements.write(dtype, bits)


def given(dtype: DType, values: Any) -> Any:
    """Return values as the raw layer takes them: a sequence of bf16 or f8 as an array of patterns.

    Raises
    ------
    DTypeMismatch
        If one of them is no element.

    Notes
    -----
    Clauses: FACADE-NEW-3
    """
    if dtype in VALUE_TYPES and isinstance(values, list | tuple | range):
        return np.array([read(dtype, value) for value in values], dtype=carrier(dtype))
    return values
