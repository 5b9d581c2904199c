"""iq2_xxs: 256 elements in 66 bytes, 2.0625 bits each.

====== ===== ==================================================================================
offset bytes field
====== ===== ==================================================================================
0      2     ``d``, f16
2      64    ``qs``, 8 groups of 32 elements: two little-endian 32-bit words each
====== ===== ==================================================================================

The first word of a group holds the codebook indices of its four octets, 8 bits each, the second their sign codes, 7
bits each, and in its top 4 bits the scale code of the group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fucina.reference.blocks.codebook import codebook
from fucina.reference.blocks.energy import block_weights
from fucina.reference.blocks.group_scales import group_scales
from fucina.reference.blocks.iq2 import OctetGroup, decode_octets
from fucina.reference.blocks.options import Options, Unencodable
from fucina.reference.blocks.rounding import ONE, ZERO, even, f16, largest, soft, total
from fucina.reference.blocks.signs import even_signs, parity_signs
from fucina.reference.softfloat import Soft32
from fucina.spec import block_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["decode", "encode"]

SILENT = Soft32.decimal("1e-15")
TENTH = Soft32.decimal("0.1")
N = Soft32.integer(4)  # the largest level of the one-sided fit
INTEGERS = [Soft32.integer(n) for n in range(256)]


def decode(block: bytes) -> list[int]:
    """Return the f32 patterns of the 256 elements of a block of 66 bytes.

    Notes
    -----
    Clauses: BLOCK-IQ2XXS-1, BLOCK-DECODE-1
    """
    grid = block_tables.codebook("iq2xxs_grid")
    values: list[int] = []
    for at in range(2, 66, 8):
        indices, word = block[at : at + 4], int.from_bytes(block[at + 4 : at + 8], "little")
        octets = [(grid[index], parity_signs(word >> 7 * k & 127)) for k, index in enumerate(indices)]
        values += decode_octets(int.from_bytes(block[:2], "little"), word >> 28, octets)
    return values


def encode(values: Sequence[int], options: Options) -> bytes:
    """Return the 66 bytes of a block of 256 finite f32 patterns.

    Raises
    ------
    Unencodable
        If sums overflow so far that a group finds no point or no scale.

    Notes
    -----
    Clauses: BLOCK-IQ2XXS-2, BLOCK-SEARCH-6, BLOCK-SEARCH-7, BLOCK-REJECT-1
    """
    x = soft(values)
    w = block_weights(x, 1, options.importance)
    groups = [_encode_group(x[at : at + 32], w[at : at + 32]) for at in range(0, 256, 32)]
    fitted = group_scales([scale for scale, _, _ in groups], 31, 15)
    if fitted is None:
        return bytes(66)
    d, codes = fitted
    block = f16(d).to_bytes(2, "little")
    for code, (_, indices, signs) in zip(codes, groups, strict=True):
        word = sum(sign << 7 * k for k, sign in enumerate(signs)) | code << 28
        block += bytes(indices) + word.to_bytes(4, "little")
    return block


def _encode_group(x: Sequence[Soft32], w: Sequence[Soft32]) -> tuple[Soft32, list[int], list[int]]:
    """Return the scale of a group, and the codebook indices and sign codes of its octets.

    Notes
    -----
    Clauses: BLOCK-IQ2XXS-2
    """
    silent = ZERO, [0] * 4, [0] * 4
    octets = [even_signs(x[at : at + 8], w[at : at + 8]) for at in range(0, 32, 8)]
    v = [value for magnitudes, _ in octets for value in magnitudes]
    signs = [code & 127 for _, code in octets]
    if largest(v) < SILENT:
        return silent

    # a first scale without the codebook, three times that for the level 3 of 1, 3, 5, then the search around it
    group = OctetGroup(codebook("iq2xxs_grid"), v, w)
    group.scale = one_sided_scale(v, w)
    reference = Soft32.integer(3) * group.scale
    if reference <= ZERO:
        return silent
    group.search(reference, 6)
    if group.scale > ZERO:
        group.refine(range(4))

    # a negative magnitude with a large weight can turn the scale over
    if group.scale < ZERO:
        group.scale = -group.scale
        signs = [code ^ 127 for code in signs]
    if not group.scale >= ZERO:
        raise Unencodable
    return group.scale, group.indices, signs


def one_sided_scale(v: Sequence[Soft32], w: Sequence[Soft32]) -> Soft32:
    """Return the scale with which integers from 0 to 4 fit a group of magnitudes.

    A level is stored as an unsigned byte: the integer -1, which a negative magnitude gives, is *stored* as 255.  Some
    steps use the integer, some what was stored.

    Parameters
    ----------
    v, w : sequence of Soft32
        Magnitudes, some of them perhaps negative, and weights.

    Returns
    -------
    Soft32
        The scale; zero if there is nothing to fit.

    Notes
    -----
    Clauses: BLOCK-SEARCH-7
    """
    top = largest(v)
    if top < SILENT:
        return ZERO
    wv = [weight * value for value, weight in zip(v, w, strict=True)]

    def misfit(h: Soft32, levels: Sequence[int]) -> Soft32:
        errors = [value - h * Soft32.integer(n) for value, n in zip(v, levels, strict=True)]
        return total(weight * e * e for weight, e in zip(w, errors, strict=True))

    def quantise(r: Soft32) -> list[int]:
        return [min(4, even(r * value)) for value in v]

    # the best of nine inverse scales; the first one's levels have no limit and are used as stored
    r = N / top
    least = misfit(ONE / r, [even(r * value) & 255 for value in v])
    for k in (-4, -3, -2, -1, 1, 2, 3, 4):
        trial = (TENTH * Soft32.integer(k) + N) / top
        error = misfit(ONE / trial, quantise(trial))
        if error < least:
            least, r = error, trial

    levels = quantise(r)
    p_all = total(a * Soft32.integer(n) for a, n in zip(wv, levels, strict=True))
    q_all = total(weight * Soft32.integer(n) * Soft32.integer(n) for weight, n in zip(w, levels, strict=True))

    # move one level at a time to where it is best for all others
    stored = [n & 255 for n in levels]
    for _ in range(5):
        changed = False
        for i, (value, weight) in enumerate(zip(v, w, strict=True)):
            old = INTEGERS[stored[i]]
            p = p_all - wv[i] * old
            q = q_all - weight * old * old
            if not (p > ZERO and q > ZERO):
                continue
            n = min(4, even(value * q / p))
            if n == stored[i]:
                continue
            new = Soft32.integer(n)
            p += wv[i] * new
            q += weight * new * new
            if p * p * q_all > p_all * p_all * q:
                stored[i], p_all, q_all = n & 255, p, q
                changed = True
        if not changed:
            break
    return p_all / q_all if q_all > ZERO else ZERO
