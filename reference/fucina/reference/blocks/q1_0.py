"""Format q1_0: 128 elements in 18 bytes, one bit each, and one scale.

A block is ``d`` (f16) and ``qs`` (16 bytes); element i is bit ``i % 8`` of byte ``i // 8``.  A set bit stands for +d, a
clear one for -d.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fucina.reference.blocks.packing import pack, u16, u16_bytes, unpack
from fucina.reference.blocks.rounding import ZERO, f16, soft, total, whole, wide

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fucina.reference.blocks.options import Options

__all__ = ["decode", "encode"]


def decode(block: bytes) -> list[int]:
    """Return the patterns of the 128 elements: d or -d.

    Notes
    -----
    Clauses: BLOCK-Q10-1, BLOCK-DECODE-1
    """
    d = wide(u16(block))
    values = ((-d).bits, d.bits)
    return [values[bit] for bit in unpack(block[2:], bits=1, run=1)]


def encode(values: Sequence[int], options: Options) -> bytes:
    """Return the block of 128 elements: the mean magnitude is the scale, the bit says whether x >= 0.

    Notes
    -----
    Clauses: BLOCK-Q10-2, BLOCK-ENCODE-1
    """
    x = soft(values)
    d = total(abs(v) for v in x) / whole(128)
    return u16_bytes(f16(d)) + pack([int(v >= ZERO) for v in x], bits=1, run=1)
