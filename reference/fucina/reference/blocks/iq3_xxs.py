"""iq3_xxs: 256 elements in 98 bytes, 3.0625 bits each.

====== ===== ==================================================================================
offset bytes field
====== ===== ==================================================================================
0      2     ``d``, f16
2      64    ``qs``, the codebook index of each quad
66     32    ``sas``, a little-endian 32-bit word per group of 32
====== ===== ==================================================================================

A word of ``sas`` holds the sign codes of four octets, 7 bits each, and in its top 4 bits the scale code of the group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fucina.reference.blocks.group_scales import HALF, group_scales
from fucina.reference.blocks.iq3 import QuadRules, decode_quads, fit_quads
from fucina.reference.blocks.options import Options
from fucina.reference.blocks.rounding import ZERO, f16, soft, wide
from fucina.reference.blocks.signs import even_signs, parity_signs
from fucina.reference.softfloat import Soft32
from fucina.spec import block_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["decode", "encode"]

RULES = QuadRules("iq3xxs_grid", Soft32.decimal("1e-8"), reach=15, flags_at_start=True, redo_all=False)
STORED = Soft32.decimal("1.0125")  # the stored scale is a little larger than the one the codes are made with


def decode(block: bytes) -> list[int]:
    """Return the f32 patterns of the 256 elements of a block of 98 bytes.

    The value is ``((d*(0.5 + code))*0.5)*magnitude`` with the sign.

    Notes
    -----
    Clauses: BLOCK-IQ3XXS-1, BLOCK-DECODE-1
    """
    grid = block_tables.codebook("iq3xxs_grid")
    d = wide(int.from_bytes(block[:2], "little"))
    values: list[int] = []
    for group in range(8):
        word = int.from_bytes(block[66 + 4 * group : 70 + 4 * group], "little")
        scale = d * (HALF + Soft32.integer(word >> 28)) * HALF
        quads = [grid[index] for index in block[2 + 8 * group : 10 + 8 * group]]
        values += decode_quads(scale, quads, [parity_signs(word >> 7 * k & 127) for k in range(4)])
    return values


def encode(values: Sequence[int], options: Options) -> bytes:
    """Return the 98 bytes of a block of 256 finite f32 patterns.

    Raises
    ------
    Unencodable
        If sums overflow so far that a group finds no point or no scale.

    Notes
    -----
    Clauses: BLOCK-IQ3XXS-2, BLOCK-SEARCH-5, BLOCK-REJECT-1
    """
    x = soft(values)
    groups = [_encode_group(x[at : at + 32]) for at in range(0, 256, 32)]
    fitted = group_scales([scale for scale, _, _ in groups], 31, 15)
    if fitted is None:
        return bytes(98)
    d, codes = fitted
    sas = b"".join((word | code << 28).to_bytes(4, "little") for code, (_, _, word) in zip(codes, groups, strict=True))
    return f16(d * STORED).to_bytes(2, "little") + bytes(index for _, qs, _ in groups for index in qs) + sas


def _encode_group(x: Sequence[Soft32]) -> tuple[Soft32, list[int], int]:
    """Return the scale of a group, the codebook indices of its quads and the word of its sign codes.

    Notes
    -----
    Clauses: BLOCK-IQ3XXS-2
    """
    octets = [even_signs(x[at : at + 8], [v * v for v in x[at : at + 8]]) for at in range(0, 32, 8)]
    group = fit_quads(RULES, x, [v for magnitudes, _ in octets for v in magnitudes])
    if group is None:
        return ZERO, [0] * 8, 0
    turn = 127 if group.turned else 0
    return group.scale, group.indices, sum(((signs ^ turn) & 127) << 7 * k for k, (_, signs) in enumerate(octets))
