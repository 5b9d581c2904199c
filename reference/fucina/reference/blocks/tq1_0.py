"""Format tq1_0: 256 elements in 54 bytes, five ternary digits a byte, and one scale.

A block is ``qs`` (48 bytes), ``qh`` (4 bytes) and ``d`` (f16).  A byte is a fraction of 256: times 3, its integer part
is the first digit and the rest holds the next.  Digits lie in planes: the first digits of 32 bytes, then their second
ones and so on, then likewise 16 bytes, then 4 bytes of four digits.  An element is ``(digit - 1) * d``.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from fucina.reference.blocks.packing import u16, u16_bytes
from fucina.reference.blocks.rounding import away, f16, inverse, peak, products, soft, wide

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fucina.reference.blocks.options import Options

__all__ = ["decode", "encode"]

PARTS = ((0, 32, 5), (32, 16, 5), (48, 4, 4))  # first byte, number of bytes, digits of each


@cache
def digits(byte: int) -> tuple[int, ...]:
    """Return the five digits of a byte, the first one first."""
    return tuple((byte * 3**n & 255) * 3 >> 8 for n in range(5))


def fraction(number: int) -> int:
    """Return the byte of a number of five ternary digits: ``256 / 243`` of it, rounded up."""
    return (256 * number + 242) // 243


def decode(block: bytes) -> list[int]:
    """Return the patterns of the 256 elements: ``(digit - 1) * d``.

    Notes
    -----
    Clauses: BLOCK-TQ10-1, BLOCK-DECODE-1
    """
    values = products(range(-1, 2), wide(u16(block, 52)))
    return [
        values[digits(byte)[n]]
        for start, count, planes in PARTS
        for n in range(planes)
        for byte in block[start : start + count]
    ]


def encode(values: Sequence[int], options: Options) -> bytes:
    """Return the block of 256 elements: the largest magnitude is the scale, digits round half away from zero.

    Notes
    -----
    Clauses: BLOCK-TQ10-2, BLOCK-ENCODE-1
    """
    x = soft(values)
    d, _ = peak(x)
    r = inverse(d)
    left = [away(v * r) + 1 for v in x]
    packed = bytearray()
    for _, count, planes in PARTS:
        part, left = left[: count * planes], left[count * planes :]
        for m in range(count):
            number = 0
            for n in range(5):  # the digit that four-digit bytes do not have is a 0 at the end
                number = 3 * number + (part[count * n + m] if n < planes else 0)
            packed.append(fraction(number))
    return bytes(packed) + u16_bytes(f16(d))
