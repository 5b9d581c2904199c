"""Format q2_0: 128 elements in 34 bytes, two bits each, and one scale.

A block is ``d`` (f16) and ``qs`` (32 bytes); byte ``i // 4`` holds element i, the first of four in the lowest bits.  An
element is ``(code - 1) * d``.  Upstream gave the same type id to a variant of 64 elements in 18 bytes, which is another
format (clause BLOCK-IN-2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fucina.reference.blocks.packing import pack, u16, u16_bytes, unpack
from fucina.reference.blocks.rounding import away, clamp, f16, inverse, peak, products, soft, wide

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fucina.reference.blocks.options import Options

__all__ = ["decode", "encode"]


def decode(block: bytes) -> list[int]:
    """Return the patterns of the 128 elements: ``(code - 1) * d``; code 3 counts too.

    Notes
    -----
    Clauses: BLOCK-Q20-1, BLOCK-DECODE-1
    """
    values = products(range(-1, 3), wide(u16(block)))
    return [values[code] for code in unpack(block[2:], bits=2, run=1)]


def encode(values: Sequence[int], options: Options) -> bytes:
    """Return the block of 128 elements: the largest magnitude is the scale, codes round half away from zero.

    Notes
    -----
    Clauses: BLOCK-Q20-2, BLOCK-ENCODE-1
    """
    x = soft(values)
    d, _ = peak(x)
    r = inverse(d)
    return u16_bytes(f16(d)) + pack([clamp(away(v * r) + 1, 0, 3) for v in x], bits=2, run=1)
