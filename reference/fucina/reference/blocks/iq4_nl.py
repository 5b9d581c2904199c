"""iq4_nl: 32 elements in 18 bytes, one scale, 4-bit codes of sixteen unequal levels.

==============  ======  ==================================================================
field           offset  holds
==============  ======  ==================================================================
``d``           0       f16, the scale
``qs``          2       16 bytes of codes: element j is the low nibble of byte j, element
                        ``16 + j`` the high one
==============  ======  ==================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fucina.reference.blocks.iq4 import LEVELS, group_scale, nearest_code, reciprocal
from fucina.reference.blocks.packing import pack, u16, u16_bytes, unpack
from fucina.reference.blocks.rounding import f16, soft, wide

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fucina.reference.blocks.options import Options

__all__ = ["decode", "encode"]


def decode(block: bytes) -> list[int]:
    """Return the f32 patterns of the 32 elements: ``d*level``.

    Notes
    -----
    Clauses: BLOCK-IQ4NL-1, BLOCK-DECODE-1
    """
    d = wide(u16(block))
    return [(d * LEVELS[code]).bits for code in unpack(block[2:], bits=4, run=16)]


def encode(values: Sequence[int], options: Options) -> bytes:
    """Return the block of 32 f32 patterns.

    With the search the codes are chosen for the scale that was found, without it they are those of the first trial.

    Notes
    -----
    Clauses: BLOCK-IQ4NL-2, BLOCK-SEARCH-4
    """
    x = soft(values)
    scale, codes = group_scale(x, options.search)
    if options.search:
        r = reciprocal(scale)
        codes = [nearest_code(r * v) for v in x]
    return u16_bytes(f16(scale)) + pack(codes, bits=4, run=16)
