"""Groups with a signed scale and no minimum, as q3_k and q6_k have them: the codes and the way back.

An element is ``scale * code`` with a code around zero; the scale of a group is a small integer times the f16 field
``d`` of the block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fucina.reference.blocks.rounding import clamp, even
from fucina.reference.softfloat import Soft32

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["INTEGERS", "SILENT", "elements", "final_codes"]

INTEGERS = {k: Soft32.integer(k) for k in range(-128, 128)}
"""Every code and every small scale as an f32."""

SILENT = Soft32.decimal("1e-15")
"""Below this magnitude a group has no scale."""


def final_codes(x: Sequence[Soft32], provisional: list[int], d: Soft32, scale: int, middle: int) -> list[int]:
    """Return the codes of a group for the scale that is stored.

    Parameters
    ----------
    x : sequence of Soft32
        The group.
    provisional : list of int
        The codes of the search; they stay where the stored scale is zero.
    d : Soft32
        The field of the block, as it is stored.
    scale : int
        The small integer of the group.
    middle : int
        The code that means zero; codes lie in ``[0, 2*middle)``.

    Returns
    -------
    list of int
        One code per element.

    Notes
    -----
    Clauses: BLOCK-Q3K-2, BLOCK-Q6K-2
    """
    step = d * INTEGERS[scale]
    if step.is_zero:
        return provisional
    return [clamp(even(v / step), -middle, middle - 1) + middle for v in x]


def elements(d: Soft32, scales: Sequence[int], codes: Sequence[int], middle: int) -> list[int]:
    """Return the f32 patterns ``(d*scale)*(code - middle)``.

    Parameters
    ----------
    d : Soft32
        The field of the block.
    scales : sequence of int
        One per group of 16.
    codes : sequence of int
        One per element.
    middle : int
        The code that means zero.

    Returns
    -------
    list of int
        One pattern per element.

    Notes
    -----
    Clauses: BLOCK-DECODE-1, BLOCK-Q3K-1, BLOCK-Q6K-1
    """
    steps = [d * INTEGERS[scale] for scale in scales]
    return [(steps[i // 16] * INTEGERS[code - middle]).bits for i, code in enumerate(codes)]
