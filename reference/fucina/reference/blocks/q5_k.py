"""q5_k: 256 elements in 176 bytes, eight groups of 32 with a 6-bit scale and a 6-bit minimum, 5-bit codes.

==============  ======  ==================================================================
field           offset  holds
==============  ======  ==================================================================
``d``           0       f16, the unit of the scales
``dmin``        2       f16, the unit of the minima
``scales``      4       12 bytes: scales and minima, see :mod:`~fucina.reference.blocks.k_scales`
``qh``          16      32 bytes: bit p of byte j is the fifth bit of the code of element
                        ``32*p + j``
``qs``          48      128 bytes, the lower four bits: element ``64*h + j`` is the low nibble of
                        byte ``32*h + j``, element ``64*h + 32 + j`` the high one
==============  ======  ==================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fucina.reference.blocks import k_scales
from fucina.reference.blocks.packing import pack, unpack
from fucina.reference.blocks.scale_and_minimum import Search, elements, square

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fucina.reference.blocks.options import Options

__all__ = ["decode", "encode"]

SEARCH = Search(top=31, start="-0.5", last=15, error=square)


def decode(block: bytes) -> list[int]:
    """Return the f32 patterns of the 256 elements: ``(d*scale)*code - dmin*minimum``.

    Notes
    -----
    Clauses: BLOCK-Q5K-1, BLOCK-DECODE-1
    """
    d, dmin, scales, minima = k_scales.read(block[:16])
    high = unpack(block[16:48], bits=1, run=32)
    low = unpack(block[48:], bits=4, run=32)
    return elements(d, dmin, scales, minima, [a | b << 4 for a, b in zip(low, high, strict=True)])


def encode(values: Sequence[int], options: Options) -> bytes:
    """Return the block of 256 f32 patterns.

    Notes
    -----
    Clauses: BLOCK-Q5K-2, BLOCK-SEARCH-3
    """
    head, codes = k_scales.fit(values, SEARCH)
    return head + pack([c >> 4 for c in codes], bits=1, run=32) + pack([c & 15 for c in codes], bits=4, run=32)
