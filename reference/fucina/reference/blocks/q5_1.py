"""Format q5_1: 32 elements in 24 bytes, five bits each, a scale and a minimum.

A block is ``d`` and ``m`` (f16), ``qh`` (4 bytes) and ``qs`` (16 bytes); element j is the low nibble of byte j of
``qs``, element 16 + j the high one, and the fifth bit of element i is bit ``i % 8`` of byte ``i // 8`` of ``qh``.  An
element is ``code * d + m``.
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
    Clauses: BLOCK-Q51-1, BLOCK-DECODE-1
    """
    d, m = wide(u16(block)), wide(u16(block, 2))
    values = [(whole(code) * d + m).bits for code in range(32)]
    low = unpack(block[8:], bits=4, run=16)
    fifth = unpack(block[4:8], bits=1, run=1)
    return [values[code | bit << 4] for code, bit in zip(low, fifth, strict=True)]


def encode(values: Sequence[int], options: Options) -> bytes:
    """Return the block of 32 elements: the least is the minimum, the range is 31 scales.

    Where the range overflows, the scale is infinite and its reciprocal +0; an infinite difference times that is a NaN,
    whose code is 0.

    Notes
    -----
    Clauses: BLOCK-Q51-2, BLOCK-ENCODE-1
    """
    x = soft(values)
    low, high = value_range(x)
    d = (high - low) / whole(31)
    r = inverse(d)
    codes = [clamp(chop((v - low) * r + HALF), 0, 31) for v in x]
    fifth = pack([code >> 4 for code in codes], bits=1, run=1)
    return u16_bytes(f16(d)) + u16_bytes(f16(low)) + fifth + pack([code & 15 for code in codes], bits=4, run=16)
