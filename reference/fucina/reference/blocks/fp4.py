"""What the two fp4 formats share: the sixteen levels, and the choice among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fucina.reference.blocks.rounding import products, whole
from fucina.spec.block_tables import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fucina.reference.softfloat import Soft32

__all__ = ["decoded", "nearest"]

LEVELS = table("kvalues_e2m1_doubled")


def decoded(scale: Soft32) -> list[int]:
    """Return the patterns of the sixteen codes at a scale; code 8 is +0.

    Notes
    -----
    Clauses: BLOCK-DECODE-1
    """
    return products(LEVELS, scale)


def nearest(x: Sequence[Soft32], scale: Soft32) -> list[int]:
    """Return NEAREST of each element: the lowest code whose level times the scale is least far from it.

    Product and difference are one f32 operation each, and only a strictly smaller distance replaces an earlier code: an
    infinite product loses, and the scale 0 gives code 0.

    Notes
    -----
    Clauses: BLOCK-SCAN-1
    """
    points = [whole(level) * scale for level in LEVELS]
    codes = []
    for v in x:
        code, best = 0, abs(points[0] - v)
        for candidate, point in enumerate(points):
            distance = abs(point - v)
            if distance < best:
                code, best = candidate, distance
        codes.append(code)
    return codes
