"""iq3_s: 256 elements in 110 bytes, 3.4375 bits each.

====== ===== ==================================================================================
offset bytes field
====== ===== ==================================================================================
0      2     ``d``, f16
2      64    ``qs``, the low 8 bits of the codebook index of each quad
66     8     ``qh``, the ninth bits of the indices, eight quads to a byte, the first one lowest
74     32    ``signs``, the sign byte of each octet
106    4     ``scales``, one nibble per group of 32, the lower one first
====== ===== ==================================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fucina.reference.blocks.group_scales import group_scales
from fucina.reference.blocks.iq3 import QuadRules, decode_quads, fit_quads
from fucina.reference.blocks.options import Options
from fucina.reference.blocks.rounding import ZERO, f16, soft, wide
from fucina.reference.blocks.signs import split_signs
from fucina.reference.softfloat import Soft32
from fucina.spec import block_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["decode", "encode"]

# only a group of zeros is silent: nothing else lies below the least subnormal
RULES = QuadRules("iq3s_grid", Soft32.from_bits(1), reach=9, flags_at_start=False, redo_all=True)
STORED = Soft32.decimal("1.033")  # the stored scale is a little larger than the one the codes are made with


def decode(block: bytes) -> list[int]:
    """Return the f32 patterns of the 256 elements of a block of 110 bytes.

    The value is ``(d*(1 + 2*code))*magnitude`` with the sign.

    Notes
    -----
    Clauses: BLOCK-IQ3S-1, BLOCK-DECODE-1
    """
    grid = block_tables.codebook("iq3s_grid")
    d = wide(int.from_bytes(block[:2], "little"))
    values: list[int] = []
    for group in range(8):
        qs, qh, signs = block[2 + 8 * group : 10 + 8 * group], block[66 + group], block[74 + 4 * group : 78 + 4 * group]
        code = block[106 + group // 2] >> 4 * (group % 2) & 15
        quads = [grid[low | (qh >> k & 1) << 8] for k, low in enumerate(qs)]
        values += decode_quads(d * Soft32.integer(1 + 2 * code), quads, signs)
    return values


def encode(values: Sequence[int], options: Options) -> bytes:
    """Return the 110 bytes of a block of 256 finite f32 patterns.

    A group of zeros has zero bytes at its own place, also before a group that is not zero.

    Raises
    ------
    Unencodable
        If sums overflow so far that a group finds no point or no scale.

    Notes
    -----
    Clauses: BLOCK-IQ3S-2, BLOCK-SEARCH-5, BLOCK-REJECT-1
    """
    x = soft(values)
    groups = [_encode_group(x[at : at + 32]) for at in range(0, 256, 32)]

    # without a scale only d and the scale codes are zero; what the groups found stays
    fitted = group_scales([scale for scale, _, _ in groups], 31, 15)
    d, codes = (f16(fitted[0] * STORED), fitted[1]) if fitted else (0, (0,) * 8)
    return (
        d.to_bytes(2, "little")
        + bytes(index & 255 for _, indices, _ in groups for index in indices)
        + bytes(sum(index >> 8 << k for k, index in enumerate(indices)) for _, indices, _ in groups)
        + bytes(byte for _, _, signs in groups for byte in signs)
        + bytes(codes[k] | codes[k + 1] << 4 for k in range(0, 8, 2))
    )


def _encode_group(x: Sequence[Soft32]) -> tuple[Soft32, list[int], list[int]]:
    """Return the scale of a group, the codebook indices of its quads and the sign bytes of its octets.

    Notes
    -----
    Clauses: BLOCK-IQ3S-2
    """
    octets = [split_signs(x[at : at + 8]) for at in range(0, 32, 8)]
    group = fit_quads(RULES, x, [v for magnitudes, _ in octets for v in magnitudes])
    if group is None:
        return ZERO, [0] * 8, [0] * 4
    return group.scale, group.indices, [signs ^ 255 if group.turned else signs for _, signs in octets]
