"""Values as error messages show them: never long, and without floating-point arithmetic.

``repr`` of a float computes in floating point, and an error too must leave the caller's flags alone and must not trap
(clause NUM-ENV-3).
"""

from __future__ import annotations

import operator
from typing import Any

from fucina.fast._accelerate import bits_of
from fucina.spec.types import DType, DTypeKind, FloatOp

__all__ = ["border", "double_shown", "integer_shown", "shown", "tuple_shown"]


def shown(value: Any) -> str:
    """Return a refused value: numbers, short strings and the contract's own names as they are, the rest by its type."""
    kind = type(value)  # what a value calls itself in __class__ does not make it one
    if issubclass(kind, float):
        return double_shown(bits_of(value))
    if issubclass(kind, int):
        return repr(value) if kind is bool else integer_shown(operator.index(value))
    if value is None or kind in (DType, DTypeKind, FloatOp) or (kind is str and len(value) <= 40):
        return repr(value)
    return f"the class {_named(value)}" if issubclass(kind, type) else f"an object of type {_named(type(value))}"


def _named(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def integer_shown(value: int) -> str:
    """Return an integer as text, however long it is."""
    return str(value) if value.bit_length() <= 128 else f"an integer of {value.bit_length()} bits"


def tuple_shown(values: tuple[int, ...]) -> str:
    """Return a shape as text, however long its numbers are."""
    return f"({', '.join(map(integer_shown, values))}{',' if len(values) == 1 else ''})"


def border(value: int) -> str:
    """Return the end of a range; the powers of two that end the integer formats stand as such."""
    size = abs(value)
    if size > 65536 and size & (size - 1) == 0:
        return f"{'-' if value < 0 else ''}2^{size.bit_length() - 1}"
    return str(value)


def double_shown(bits: int) -> str:
    """Return the f64 of a pattern in the fewest decimal digits that name it, as ``repr`` does, by integers."""
    sign, field, fraction = "-" if bits >> 63 else "", bits >> 52 & 0x7FF, bits & (1 << 52) - 1
    if field == 0x7FF:
        return "nan" if fraction else f"{sign}inf"
    if field == fraction == 0:
        return f"{sign}0.0"
    significand, exponent = fraction | (field > 0) << 52, max(field, 1) - 1075
    top, bottom = (significand << exponent, 1) if exponent >= 0 else (significand, 1 << -exponent)
    ten = len(str(top // bottom)) - 1 if top >= bottom else -len(str(bottom // top))  # or one more
    while top * 10 ** max(-ten, 0) < bottom * 10 ** max(ten, 0):
        ten -= 1
    for digits in range(1, 18):
        places = digits - 1 - ten
        a, b = top * 10 ** max(places, 0), bottom * 10 ** max(-places, 0)
        decimal, rest = divmod(a, b)
        decimal += 2 * rest > b or (2 * rest == b and decimal & 1 == 1)
        # nearer than half the distance to the next f64, which below a power of two is half as far; a tie goes to even
        if abs(decimal * b - a) * (4 if fraction == 0 and decimal * b < a else 2) * significand < a + (bits & 1 == 0):
            break
    text = str(decimal)
    ten = len(text) - 1 - places
    if not -4 <= ten < 16:
        tail = text[1:].rstrip("0")
        return f"{sign}{text[0]}{'.' * bool(tail)}{tail}e{ten:+03d}"
    if places <= 0:
        return f"{sign}{text}{'0' * -places}.0"
    text = text.rjust(places + 1, "0")
    return f"{sign}{text[:-places]}.{text[-places:]}"
