"""Format q5_0: 32 elements in 22 bytes, five bits each, and one scale.

A block is ``d`` (f16), ``qh`` (4 bytes) and ``qs`` (16 bytes); element j is the low nibble of byte j of ``qs``, element
16 + j the high one, and the fifth bit of element i is bit ``i % 8`` of byte ``i // 8`` of ``qh``.  An element is
``(code - 16) * d``.
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

MIDDLE = Soft32.decimal("16.5")  # the code of zero, and the half that makes CHOP round


def decode(block: bytes) -> list[int]:
    """Return the patterns of the 32 elements: ``(code - 16) * d``.

    Notes
    -----
    Clauses: BLOCK-Q50-1, BLOCK-DECODE-1
    """
    values = products(range(-16, 16), wide(u16(block)))
    low = unpack(block[6:], bits=4, run=16)
    fifth = unpack(block[2:6], bits=1, run=1)
    return [values[code | bit << 4] for code, bit in zip(low, fifth, strict=True)]


def encode(values: Sequence[int], options: Options) -> bytes:
    """Return the block of 32 elements: the peak, with its sign, is -16 scales.

    A block of zeros has the scale -0.

    Notes
    -----
    Clauses: BLOCK-Q50-2, BLOCK-ENCODE-1
    """
    x = soft(values)
    _, extreme = peak(x)
    d = extreme / whole(-16)
    r = inverse(d)
    codes = [clamp(chop(v * r + MIDDLE), 0, 31) for v in x]
    fifth = pack([code >> 4 for code in codes], bits=1, run=1)
    return u16_bytes(f16(d)) + fifth + pack([code & 15 for code in codes], bits=4, run=16)
