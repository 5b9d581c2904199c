"""Format q8_1: 32 elements in 36 bytes, a signed byte each, a scale and the scaled sum of the codes.

A block is ``d`` and ``s`` (f16) and ``qs`` (32 signed bytes); an element is ``code * d``.  The sum serves dot products
and plays no part in decoding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fucina.reference.blocks.packing import signed, u16, u16_bytes
from fucina.reference.blocks.rounding import away, clamp, f16, inverse, peak, products, soft, whole, wide

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fucina.reference.blocks.options import Options

__all__ = ["decode", "encode"]


def decode(block: bytes) -> list[int]:
    """Return the patterns of the 32 elements: ``code * d``; -128 counts too.

    Notes
    -----
    Clauses: BLOCK-Q81-1, BLOCK-DECODE-1
    """
    return products((signed(byte) for byte in block[4:]), wide(u16(block)))


def encode(values: Sequence[int], options: Options) -> bytes:
    """Return the block of 32 elements: codes and scale as in q8_0; the sum is scaled by d before d becomes an f16.

    Notes
    -----
    Clauses: BLOCK-Q81-2, BLOCK-ENCODE-1
    """
    x = soft(values)
    top, _ = peak(x)
    d = top / whole(127)
    r = inverse(d)
    codes = [clamp(away(v * r), -127, 127) for v in x]
    s = whole(sum(codes)) * d
    return u16_bytes(f16(d)) + u16_bytes(f16(s)) + bytes(code & 255 for code in codes)
