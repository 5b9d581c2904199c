"""The head that q4_k and q5_k share: two f16 fields, eight 6-bit scales and eight 6-bit minima in sixteen bytes.

======  =======================  ======================================
byte    bits 0-5                 bits 6-7
======  =======================  ======================================
4-7     scale 0-3                the upper two bits of scale 4-7
8-11    minimum 0-3              the upper two bits of minimum 4-7
======  =======================  ======================================

Bytes 0 and 1 are the f16 field ``d``, the unit of the scales, bytes 2 and 3 ``dmin``, the unit of the minima.  Bytes 12
to 15 hold the lower four bits of scale 4-7 in their low nibble and those of minimum 4-7 in their high one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fucina.reference.blocks.packing import u16, u16_bytes
from fucina.reference.blocks.rounding import ZERO, even, f16, largest, soft, wide
from fucina.reference.blocks.scale_and_minimum import Search, final_codes, spread_weights
from fucina.reference.softfloat import Soft32

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["fit", "pack", "read", "unpack"]

MOST = Soft32.integer(63)


def unpack(data: bytes) -> tuple[list[int], list[int]]:
    """Return the eight scales and the eight minima of the twelve bytes ``scales``.

    Notes
    -----
    Clauses: BLOCK-Q4K-1, BLOCK-Q5K-1
    """
    scales = [data[j] & 63 for j in range(4)] + [data[8 + j] & 15 | data[j] >> 6 << 4 for j in range(4)]
    minima = [data[4 + j] & 63 for j in range(4)] + [data[8 + j] >> 4 | data[4 + j] >> 6 << 4 for j in range(4)]
    return scales, minima


def pack(scales: Sequence[int], minima: Sequence[int]) -> bytes:
    """Return the twelve bytes ``scales`` of eight scales and eight minima, each 0 to 63.

    Notes
    -----
    Clauses: BLOCK-Q4K-2, BLOCK-Q5K-2
    """
    return bytes(
        [scales[j] | scales[4 + j] >> 4 << 6 for j in range(4)]
        + [minima[j] | minima[4 + j] >> 4 << 6 for j in range(4)]
        + [scales[4 + j] & 15 | (minima[4 + j] & 15) << 4 for j in range(4)]
    )


def read(head: bytes) -> tuple[Soft32, Soft32, list[int], list[int]]:
    """Return ``d``, ``dmin``, the scales and the minima of the sixteen bytes of a head.

    Notes
    -----
    Clauses: BLOCK-Q4K-1, BLOCK-Q5K-1
    """
    return wide(u16(head)), wide(u16(head, 2)), *unpack(head[4:])


def fit(values: Sequence[int], search: Search) -> tuple[bytes, list[int]]:
    """Return the head and the codes of a block of 256 f32 patterns.

    Notes
    -----
    Clauses: BLOCK-Q4K-2, BLOCK-Q5K-2, BLOCK-SEARCH-3
    """
    x = soft(values)
    groups = [x[i : i + 32] for i in range(0, 256, 32)]
    fits = [search(group, spread_weights(group)) for group in groups]

    # the largest scale becomes 63, and so does the largest minimum
    scales, d = _units([found.scale for found in fits])
    minima, dmin = _units([found.minimum for found in fits])

    # the codes, for what is stored
    codes = []
    for group, found, scale, minimum in zip(groups, fits, scales, minima, strict=True):
        codes += final_codes(group, found, wide(d), wide(dmin), scale, minimum, search.top)
    return u16_bytes(d) + u16_bytes(dmin) + pack(scales, minima), codes


def _units(found: list[Soft32]) -> tuple[list[int], int]:
    """Return the small integers of scales or minima, and the f16 field that is their unit.

    First eight bits, then the limit: what would be negative ends as 63.
    """
    most = largest(found)
    f = ZERO if most.is_zero else MOST / most
    return [min(63, even(f * v) & 255) for v in found], f16(most / MOST)
