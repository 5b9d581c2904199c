"""Format q4_1: 32 elements in 20 bytes, four bits each, a scale and a minimum.

A block is ``d`` and ``m`` (f16), ``qs`` (16 bytes); element j is the low nibble of byte j, element 16 + j the high one.
An element is ``code * d + m``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fucina.reference.blocks.packing import pack, u16, u16_bytes, unpack
from fucina.reference.blocks.rounding import chop, clamp, f16, inverse, soft, value_range, whole, wide
from fucina.reference.softfloat import Soft32

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fucina.reference.blocks.options import Options

__all__ = ["decode", "encode"]

HALF = Soft32.decimal("0.5")


def decode(block: bytes) -> list[int]:
    """Return the patterns of the 32 elements: ``code * d + m``, a product and a sum.

    Notes
    -----
    Clauses: BLOCK-Q41-1, BLOCK-DECODE-1
    """
    d, m = wide(u16(block)), wide(u16(block, 2))
    values = [(whole(code) * d + m).bits for code in range(16)]
    return [values[code] for code in unpack(block[4:], bits=4, run=16)]


def encode(values: Sequence[int], options: Options) -> bytes:
    """Return the block of 32 elements: the least is the minimum, the range is 15 scales.

    Where the range overflows, the scale is infinite and its reciprocal +0; an infinite difference times that is a NaN,
    whose code is 0.

    Notes
    -----
    Clauses: BLOCK-Q41-2, BLOCK-ENCODE-1
    """
    x = soft(values)
    low, high = value_range(x)
    d = (high - low) / whole(15)
    r = inverse(d)
    codes = [clamp(chop((v - low) * r + HALF), 0, 15) for v in x]
    return u16_bytes(f16(d)) + u16_bytes(f16(low)) + pack(codes, bits=4, run=16)
