"""Format q8_0: 32 elements in 34 bytes, a signed byte each, and one scale.

A block is ``d`` (f16) and ``qs`` (32 signed bytes); an element is ``code * d``.
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
    Clauses: BLOCK-Q80-1, BLOCK-DECODE-1
    """
    return products((signed(byte) for byte in block[2:]), wide(u16(block)))


def encode(values: Sequence[int], options: Options) -> bytes:
    """Return the block of 32 elements: the largest magnitude is 127 scales, codes round half away from zero.

    Notes
    -----
    Clauses: BLOCK-Q80-2, BLOCK-ENCODE-1
    """
    x = soft(values)
    top, _ = peak(x)
    d = top / whole(127)
    r = inverse(d)
    codes = [clamp(away(v * r), -127, 127) for v in x]
    return u16_bytes(f16(d)) + bytes(code & 255 for code in codes)
