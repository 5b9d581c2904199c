"""iq2_xs: 256 elements in 74 bytes, 2.3125 bits each.

====== ===== ==================================================================================
offset bytes field
====== ===== ==================================================================================
0      2     ``d``, f16
2      64    ``qs``, 32 little-endian 16-bit words, one per octet: 9 bits of index, 7 of sign code
66     8     ``scales``, one nibble per group of 16, the lower one first
====== ===== ==================================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fucina.reference.blocks.codebook import codebook
from fucina.reference.blocks.energy import block_weights
from fucina.reference.blocks.group_scales import group_scales
from fucina.reference.blocks.iq2 import FIVE, OctetGroup, decode_octets
from fucina.reference.blocks.options import Options, Unencodable
from fucina.reference.blocks.rounding import ZERO, f16, largest, soft
from fucina.reference.blocks.signs import even_signs, parity_signs
from fucina.reference.softfloat import Soft32
from fucina.spec import block_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["decode", "encode"]

SILENT = Soft32.decimal("1e-15")


def decode(block: bytes) -> list[int]:
    """Return the f32 patterns of the 256 elements of a block of 74 bytes.

    Notes
    -----
    Clauses: BLOCK-IQ2XS-1, BLOCK-DECODE-1
    """
    grid = block_tables.codebook("iq2xs_grid")
    values: list[int] = []
    for group in range(16):
        at = 2 + 4 * group
        words = [int.from_bytes(block[k : k + 2], "little") for k in (at, at + 2)]
        octets = [(grid[word & 511], parity_signs(word >> 9)) for word in words]
        code = block[66 + group // 2] >> 4 * (group % 2) & 15
        values += decode_octets(int.from_bytes(block[:2], "little"), code, octets)
    return values


def encode(values: Sequence[int], options: Options) -> bytes:
    """Return the 74 bytes of a block of 256 finite f32 patterns.

    Raises
    ------
    Unencodable
        If sums overflow so far that a group finds no point or no scale.

    Notes
    -----
    Clauses: BLOCK-IQ2XS-2, BLOCK-SEARCH-6, BLOCK-REJECT-1
    """
    x = soft(values)
    w = block_weights(x, 1, options.importance)
    groups = [_encode_group(x[at : at + 16], w[at : at + 16]) for at in range(0, 256, 16)]
    fitted = group_scales([scale for scale, _ in groups], 31, 15)
    if fitted is None:
        return bytes(74)
    d, codes = fitted
    qs = b"".join(word.to_bytes(2, "little") for _, words in groups for word in words)
    return f16(d).to_bytes(2, "little") + qs + bytes(codes[k] | codes[k + 1] << 4 for k in range(0, 16, 2))


def _encode_group(x: Sequence[Soft32], w: Sequence[Soft32]) -> tuple[Soft32, list[int]]:
    """Return the scale of a group and the two words of its octets.

    Notes
    -----
    Clauses: BLOCK-IQ2XS-2
    """
    octets = [even_signs(x[at : at + 8], w[at : at + 8]) for at in (0, 8)]
    v = [value for magnitudes, _ in octets for value in magnitudes]
    signs = [code & 127 for _, code in octets]
    top = largest(v)
    if top < SILENT:
        return ZERO, [0, 0]

    group = OctetGroup(codebook("iq2xs_grid"), v, w)
    group.scale = top / FIVE
    group.search(top, 9)
    off_grid = [k for k in (0, 1) if not group.on_grid[k]]
    if off_grid and group.scale > ZERO:
        group.refine(off_grid)

    # a negative magnitude with a large weight can turn the scale over
    if group.scale < ZERO:
        group.scale = -group.scale
        signs = [code ^ 127 for code in signs]
    if not group.scale >= ZERO:
        raise Unencodable
    return group.scale, [index | code << 9 for index, code in zip(group.indices, signs, strict=True)]
