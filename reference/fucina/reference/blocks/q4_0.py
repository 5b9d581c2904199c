"""Format q4_0: 32 elements in 18 bytes, four bits each, and one scale.

A block is ``d`` (f16), ``qs`` (16 bytes); element j is the low nibble of byte j, element 16 + j the high one.  An
element is ``(code - 8) * d``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fucina.reference.blocks.packing import pack, u16, u16_bytes, unpack
from fucina.reference.blocks.rounding import chop, clamp, f16, inverse, peak, products, soft, whole, wide
from fucina.reference.softfloat import Soft32

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fucina.reference.blocks.options import Options

__all__ = ["decode", "encode"]

MIDDLE = Soft32.decimal("8.5")  # the code of zero, and the half that makes CHOP round


def decode(block: bytes) -> list[int]:
    """Return the patterns of the 32 elements: ``(code - 8) * d``.

    Notes
    -----
    Clauses: BLOCK-Q40-1, BLOCK-DECODE-1
    """
    values = products(range(-8, 8), wide(u16(block)))
    return [values[code] for code in unpack(block[2:], bits=4, run=16)]


def encode(values: Sequence[int], options: Options) -> bytes:
    """Return the block of 32 elements: the peak, with its sign, is -8 scales.

    A block of zeros has the scale -0.

    Notes
    -----
    Clauses: BLOCK-Q40-2, BLOCK-ENCODE-1
    """
    x = soft(values)
    _, extreme = peak(x)
    d = extreme / whole(-8)
    r = inverse(d)
    codes = [clamp(chop(v * r + MIDDLE), 0, 15) for v in x]
    return u16_bytes(f16(d)) + pack(codes, bits=4, run=16)
