"""Format mxfp4: 32 elements in 17 bytes, an e2m1 code each, and a power of two as scale.

A block is ``e`` (one byte, an exponent) and ``qs`` (16 bytes); element j is the low nibble of byte j, element 16 + j
the high one.  The table of levels holds the doubled values, the table of scales half of ``2**(e - 127)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fucina.reference.blocks.fp4 import decoded, nearest
from fucina.reference.blocks.packing import pack, unpack
from fucina.reference.blocks.rounding import clamp, peak, soft
from fucina.reference.softfloat import Soft32
from fucina.spec.block_tables import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fucina.reference.blocks.options import Options

__all__ = ["decode", "encode"]

LEAST = Soft32.rounded(0, 1, -125)

UP = (0, 0, 1, 2, 5, 11, 22, 44)
"""How many of the f32 below a power of two ``2**E`` have a logarithm that rounds up to E, by the bit length of h."""


def decode(block: bytes) -> list[int]:
    """Return the patterns of the 32 elements: ``level * scale``; every scale byte is an exponent, 255 too.

    Notes
    -----
    Clauses: BLOCK-MXFP4-1, BLOCK-DECODE-1
    """
    values = decoded(_scale(block[0]))
    return [values[code] for code in unpack(block[1:], bits=4, run=16)]


def encode(values: Sequence[int], options: Options) -> bytes:
    """Return the block of 32 elements: the scale from the logarithm of the largest magnitude, the nearest levels.

    Notes
    -----
    Clauses: BLOCK-MXFP4-2, BLOCK-ENCODE-1
    """
    x = soft(values)
    top, _ = peak(x)
    e = 0 if top < LEAST else clamp(_floor_log2(top.bits) + 125, 0, 255)
    return bytes([e]) + pack(nearest(x, _scale(e)), bits=4, run=16)


def _scale(e: int) -> Soft32:
    return Soft32.from_bits(table("e8m0_half_f32_bits")[e])


def _floor_log2(bits: int) -> int:
    """Return the floor of the base-2 logarithm rounded to f32, which may round up to an integer; of a normal f32.

    Notes
    -----
    Clauses: BLOCK-MXFP4-2
    """
    exponent, fraction = (bits >> 23) - 127, bits & 0x7FFFFF
    h = exponent if exponent >= 0 else -exponent - 1
    return exponent + (fraction >= (1 << 23) - UP[h.bit_length()])
