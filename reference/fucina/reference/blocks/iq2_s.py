"""iq2_s: 256 elements in 82 bytes, 2.5625 bits each.

====== ===== ==================================================================================
offset bytes field
====== ===== ==================================================================================
0      2     ``d``, f16
2      32    ``qs``, the low 8 bits of the codebook index of each octet
34     32    ``signs``, the sign byte of each octet
66     8     ``qh``, the upper 2 bits of the indices, four octets to a byte, the first one lowest
74     8     ``scales``, one nibble per group of 16, the lower one first
====== ===== ==================================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fucina.reference.blocks.codebook import codebook
from fucina.reference.blocks.energy import block_energy
from fucina.reference.blocks.group_scales import group_scales
from fucina.reference.blocks.iq2 import FIVE, QUARTER, OctetGroup, decode_octets
from fucina.reference.blocks.options import Options, Unencodable
from fucina.reference.blocks.rounding import ZERO, f16, largest, soft
from fucina.reference.blocks.signs import split_signs
from fucina.reference.softfloat import Soft32
from fucina.spec import block_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["decode", "encode"]

SILENT = Soft32.decimal("1e-8")
STORED = Soft32.decimal("0.9875")  # the stored scale is a little smaller than the one the codes are made with


def decode(block: bytes) -> list[int]:
    """Return the f32 patterns of the 256 elements of a block of 82 bytes.

    Notes
    -----
    Clauses: BLOCK-IQ2S-1, BLOCK-DECODE-1
    """
    grid = block_tables.codebook("iq2s_grid")
    qs, signs, qh, scales = block[2:34], block[34:66], block[66:74], block[74:82]
    values: list[int] = []
    for group in range(16):
        octets = [(grid[qs[k] | (qh[k // 4] >> 2 * (k % 4) & 3) << 8], signs[k]) for k in (2 * group, 2 * group + 1)]
        code = scales[group // 2] >> 4 * (group % 2) & 15
        values += decode_octets(int.from_bytes(block[:2], "little"), code, octets)
    return values


def encode(values: Sequence[int], options: Options) -> bytes:
    """Return the 82 bytes of a block of 256 finite f32 patterns.

    Raises
    ------
    Unencodable
        If sums overflow so far that a group finds no point or no scale.

    Notes
    -----
    Clauses: BLOCK-IQ2S-2, BLOCK-SEARCH-6, BLOCK-REJECT-1
    """
    x = soft(values)
    energy = block_energy(x, 2)
    w = [QUARTER * energy + v * v for v in x]
    groups = [_encode_group(x[at : at + 16], w[at : at + 16]) for at in range(0, 256, 16)]
    indices = [index for _, pair, _ in groups for index in pair]
    signs = [sign for _, _, pair in groups for sign in pair]

    # without a scale only d and the scale codes are zero; what the groups found stays
    fitted = group_scales([scale for scale, _, _ in groups], 31, 15)
    d, codes = (f16(fitted[0] * STORED), fitted[1]) if fitted else (0, (0,) * 16)
    return (
        d.to_bytes(2, "little")
        + bytes(index & 255 for index in indices)
        + bytes(signs)
        + bytes(sum(indices[at + k] >> 8 << 2 * k for k in range(4)) for at in range(0, 32, 4))
        + bytes(codes[k] | codes[k + 1] << 4 for k in range(0, 16, 2))
    )


def _encode_group(x: Sequence[Soft32], w: Sequence[Soft32]) -> tuple[Soft32, list[int], list[int]]:
    """Return the scale of a group, and the codebook indices and sign bytes of its octets.

    Notes
    -----
    Clauses: BLOCK-IQ2S-2
    """
    octets = [split_signs(x[at : at + 8]) for at in (0, 8)]
    v = [value for magnitudes, _ in octets for value in magnitudes]
    signs = [byte for _, byte in octets]
    top = largest(v)
    if top < SILENT:
        return ZERO, [0, 0], [0, 0]

    group = OctetGroup(codebook("iq2s_grid"), v, w)
    group.scale = top / FIVE
    group.search(top, 9)
    off_grid = [k for k in (0, 1) if not group.on_grid[k]]
    if off_grid and group.scale > ZERO:
        group.refine(off_grid)

    # all magnitudes are positive, so the scale is not negative: only an overflow can spoil it
    if not group.scale >= ZERO:
        raise Unencodable
    return group.scale, group.indices, signs
