"""q2_k: 256 elements in 84 bytes, sixteen groups of 16 with a 4-bit scale and a 4-bit minimum, 2-bit codes.

==============  ======  ==================================================================
field           offset  holds
==============  ======  ==================================================================
``scales``      0       16 bytes, one per group: scale in the low nibble, minimum in the high
``qs``          16      64 bytes of codes: element ``128*h + 32*p + j`` is bits ``2*p`` and up of
                        byte ``32*h + j``
``d``           80      f16, the unit of the scales
``dmin``        82      f16, the unit of the minima
==============  ======  ==================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fucina.reference.blocks.packing import pack, u16, u16_bytes, unpack
from fucina.reference.blocks.rounding import even, f16, largest, soft, wide
from fucina.reference.blocks.scale_and_minimum import Search, elements, final_codes, magnitude
from fucina.reference.softfloat import Soft32

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fucina.reference.blocks.options import Options

__all__ = ["decode", "encode"]

TOP = 3
SEARCH = Search(top=TOP, start="-0.5", last=15, error=magnitude)
FIFTEEN = Soft32.integer(15)


def decode(block: bytes) -> list[int]:
    """Return the f32 patterns of the 256 elements: ``(d*scale)*code - dmin*minimum``.

    Notes
    -----
    Clauses: BLOCK-Q2K-1, BLOCK-DECODE-1
    """
    scales = [byte & 15 for byte in block[:16]]
    minima = [byte >> 4 for byte in block[:16]]
    codes = unpack(block[16:80], bits=2, run=32)
    d, dmin = wide(u16(block, 80)), wide(u16(block, 82))
    return elements(d, dmin, scales, minima, codes)


def encode(values: Sequence[int], options: Options) -> bytes:
    """Return the block of 256 f32 patterns.

    Notes
    -----
    Clauses: BLOCK-Q2K-2, BLOCK-SEARCH-3
    """
    x = soft(values)
    groups = [x[i : i + 16] for i in range(0, 256, 16)]
    fits = [SEARCH(group, [abs(v) for v in group]) for group in groups]

    # the largest scale becomes 15, and so does the largest minimum
    scales, d = _units([fit.scale for fit in fits])
    minima, dmin = _units([fit.minimum for fit in fits])
    # not limited to four bits: a large minimum loses its upper bits, a large scale runs into the minimum
    packed = bytes((scale | 16 * minimum) & 255 for scale, minimum in zip(scales, minima, strict=True))

    # the codes, for what can be read back
    codes = []
    for group, fit, byte in zip(groups, fits, packed, strict=True):
        codes += final_codes(group, fit, wide(d), wide(dmin), byte & 15, byte >> 4, TOP)
    return packed + pack(codes, bits=2, run=32) + u16_bytes(d) + u16_bytes(dmin)


def _units(found: list[Soft32]) -> tuple[list[int], int]:
    """Return the small integers of scales or minima, and the f16 field that is their unit."""
    most = largest(found)
    if most.is_zero:
        return [0] * len(found), 0
    f = FIFTEEN / most
    return [even(f * v) for v in found], f16(most / FIFTEEN)
