"""Format tq2_0: 256 elements in 66 bytes, two bits each, and one scale: the ternary format of plain bits.

A block is ``qs`` (64 bytes) and ``d`` (f16); each half of the block has 32 bytes, whose lowest pairs of bits are its
first 32 elements, the next pairs the next 32.  An element is ``(code - 1) * d``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fucina.reference.blocks.packing import pack, u16, u16_bytes, unpack
from fucina.reference.blocks.rounding import away, clamp, f16, inverse, peak, products, soft, wide
from fucina.reference.softfloat import Soft32

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fucina.reference.blocks.options import Options

__all__ = ["decode", "encode"]


def decode(block: bytes) -> list[int]:
    """Return the patterns of the 256 elements: ``(code - 1) * d``; code 3 counts too.

    Notes
    -----
    Clauses: BLOCK-TQ20-1, BLOCK-DECODE-1
    """
    values = products(range(-1, 3), wide(u16(block, 64)))
    return [values[code] for code in unpack(block[:64], bits=2, run=32)]


def encode(values: Sequence[int], options: Options) -> bytes:
    """Return the block of 256 elements: the largest magnitude, or the given scale, is the scale.

    Codes round half away from zero.  Only under a given scale can they leave the three levels; they are limited.

    Notes
    -----
    Clauses: BLOCK-TQ20-2, BLOCK-ENCODE-1, BLOCK-SCALE-1
    """
    x = soft(values)
    d = peak(x)[0] if options.scale is None else Soft32.from_bits(options.scale)
    r = inverse(d)
    return pack([clamp(away(v * r), -1, 1) + 1 for v in x], bits=2, run=32) + u16_bytes(f16(d))
