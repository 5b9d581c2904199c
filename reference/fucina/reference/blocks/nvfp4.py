"""Format nvfp4: 64 elements in 36 bytes, an e2m1 code each, and a scale byte for every 16.

A block is ``d`` (4 scale bytes) and ``qs`` (32 bytes).  Group s has 16 elements and 8 bytes of ``qs``: element j is the
low nibble of its byte j, element 8 + j the high one.  A scale byte is an unsigned e4m3 whose sign bit counts for
nothing; the table of scales holds half of its value, the table of levels the doubled values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fucina.reference.blocks.fp4 import decoded, nearest
from fucina.reference.blocks.packing import pack, unpack
from fucina.reference.blocks.rounding import chop, peak, soft, whole
from fucina.reference.softfloat import Soft32
from fucina.spec.block_tables import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fucina.reference.blocks.options import Options

__all__ = ["decode", "encode"]

HALF = Soft32.decimal("0.5")
LARGEST = 0x7E  # the scale 448


def decode(block: bytes) -> list[int]:
    """Return the patterns of the 64 elements: ``level * scale``; the scale byte 0x7F, and only it, is 0.

    Notes
    -----
    Clauses: BLOCK-NVFP4-1, BLOCK-DECODE-1
    """
    found: list[int] = []
    for s in range(4):
        values = decoded(_scale(block[s]))
        found += [values[code] for code in unpack(block[4 + 8 * s : 12 + 8 * s], bits=4, run=8)]
    return found


def encode(values: Sequence[int], options: Options) -> bytes:
    """Return the block of 64 elements: per group, a sixth of the largest magnitude as scale, the nearest levels.

    Notes
    -----
    Clauses: BLOCK-NVFP4-2, BLOCK-ENCODE-1
    """
    x = soft(values)
    scales, packed = bytearray(), bytearray()
    for s in range(4):
        group = x[16 * s : 16 * s + 16]
        top, _ = peak(group)
        byte = _scale_byte(top / whole(6))
        scales.append(byte)
        packed += pack(nearest(group, _scale(byte)), bits=4, run=8)
    return bytes(scales + packed)


def _scale(byte: int) -> Soft32:
    return Soft32.from_bits(table("ue4m3_half_f32_bits")[byte])


def _scale_byte(y: Soft32) -> int:
    """Return the byte of a scale: the half is rounded up, and everything from 248 on is the largest.

    It is not the encoder of f8_e4m3.

    Notes
    -----
    Clauses: BLOCK-NVFP4-2
    """
    bits = min(y, whole(448)).bits
    g = (bits >> 23) - 120
    if g <= 0:  # subnormal: counted in steps of 2^-9
        return min(7, chop(y * whole(512) + HALF))
    # three fraction bits and, by the fourth, rounded half up; a carry goes on into the exponent by itself
    byte = 8 * g + (bits >> 20 & 7) + (bits >> 19 & 1)
    return byte if byte < 8 * 15 else LARGEST
