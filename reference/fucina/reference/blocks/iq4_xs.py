"""iq4_xs: 256 elements in 136 bytes, eight groups of 32 with a 6-bit scale, 4-bit codes of sixteen unequal levels.

==============  ======  ==================================================================
field           offset  holds
==============  ======  ==================================================================
``d``           0       f16, the unit of the scales
``scales_h``    2       16 bits: the upper two bits of scale g are bits ``2*g`` and up
``scales_l``    4       4 bytes: the lower four bits of scale g are in byte ``g // 2``, low nibble
                        for even g, high for odd
``qs``          8       128 bytes of codes: element ``32*g + j`` is the low nibble of byte
                        ``16*g + j``, element ``32*g + 16 + j`` the high one
==============  ======  ==================================================================

A scale means ``scale - 32``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fucina.reference.blocks.iq4 import LEVELS, group_scale, nearest_code, reciprocal
from fucina.reference.blocks.packing import pack, u16, u16_bytes, unpack
from fucina.reference.blocks.rounding import clamp, even, f16, peak, soft, wide
from fucina.reference.softfloat import Soft32

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fucina.reference.blocks.options import Options

__all__ = ["decode", "encode"]

INTEGERS = {k: Soft32.integer(k) for k in range(-32, 33)}


def decode(block: bytes) -> list[int]:
    """Return the f32 patterns of the 256 elements: ``(d*(scale - 32))*level``.

    Notes
    -----
    Clauses: BLOCK-IQ4XS-1, BLOCK-DECODE-1
    """
    d = wide(u16(block))
    high = unpack(block[2:4], bits=2, run=1)
    low = unpack(block[4:8], bits=4, run=1)
    steps = [d * INTEGERS[(a | b << 4) - 32] for a, b in zip(low, high, strict=True)]
    return [(steps[i // 32] * LEVELS[code]).bits for i, code in enumerate(unpack(block[8:], bits=4, run=16))]


def encode(values: Sequence[int], options: Options) -> bytes:
    """Return the block of 256 f32 patterns.

    Notes
    -----
    Clauses: BLOCK-IQ4XS-2, BLOCK-SEARCH-4
    """
    x = soft(values)
    groups = [x[i : i + 32] for i in range(0, 256, 32)]
    found = [group_scale(group, search=True)[0] for group in groups]

    # the scale of largest magnitude becomes -32; without one the unit is -0
    _, extreme = peak(found)
    unit = -extreme / INTEGERS[32]
    r = reciprocal(unit)
    scales = [clamp(even(r * scale), -32, 31) for scale in found]

    # the codes, for the unit before its rounding to f16; a group without a scale has the code of +0 everywhere
    codes = []
    for group, scale in zip(groups, scales, strict=True):
        r = reciprocal(unit * INTEGERS[scale])
        codes += [nearest_code(r * v) for v in group]
    stored = [scale + 32 for scale in scales]
    high = pack([u >> 4 for u in stored], bits=2, run=1)
    low = pack([u & 15 for u in stored], bits=4, run=1)
    return u16_bytes(f16(unit)) + high + low + pack(codes, bits=4, run=16)
