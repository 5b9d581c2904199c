"""iq1_m: 256 elements in 56 bytes, 1.75 bits each.

====== ===== ==================================================================================
offset bytes field
====== ===== ==================================================================================
0      32    ``qs``, the low 8 bits of the codebook index of each octet
32     16    ``qh``, a nibble per octet, the lower one first: 3 bits of index, 1 for a shift down
48     8     ``scales``, 4 little-endian 16-bit words
====== ===== ==================================================================================

The low 12 bits of a word of ``scales`` are the scale codes of four groups of 16, 3 bits each, the first one lowest.
The top nibbles of the four words, the first one lowest, are the scale of the block, an f16.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from fucina.reference.blocks.codebook import codebook
from fucina.reference.blocks.energy import block_weights
from fucina.reference.blocks.group_scales import group_scales
from fucina.reference.blocks.iq1 import (
    SHIFTED,
    Moments,
    ascending,
    decode_octet,
    octet_scale,
    snap_group,
    three_level_fit,
)
from fucina.reference.blocks.options import Options
from fucina.reference.blocks.rounding import ZERO, f16, peak, soft, total
from fucina.reference.softfloat import Soft32

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["decode", "encode"]

SILENT = Soft32.decimal("1e-7")
STORED = Soft32.decimal("1.1125")  # the stored scale is larger than the one the codes are made with
SHIFT_PAIRS = tuple(product((0, 1), repeat=2))
EDGES = tuple(tuple(Soft32.decimal(e) for e in pair) for pair in (("0.75", "-1.25"), ("1.25", "-0.75")))
"""z0*z0 - z1*z1 and z1*z1 - z2*z2 of the shifted levels: what an element adds to B by being below i, below j."""


def decode(block: bytes) -> list[int]:
    """Return the f32 patterns of the 256 elements of a block of 56 bytes.

    Notes
    -----
    Clauses: BLOCK-IQ1M-1, BLOCK-DECODE-1
    """
    words = [int.from_bytes(block[at : at + 2], "little") for at in range(48, 56, 2)]
    d = sum(word >> 12 << 4 * k for k, word in enumerate(words))
    values: list[int] = []
    for octet in range(32):
        group = octet // 2
        scale = octet_scale(d, words[group // 4] >> 3 * (group % 4) & 7)
        nibble = block[32 + group] >> 4 * (octet % 2) & 15
        values += decode_octet(scale, block[octet] | (nibble & 7) << 8, nibble >> 3)
    return values


def encode(values: Sequence[int], options: Options) -> bytes:
    """Return the 56 bytes of a block of 256 finite f32 patterns.

    Raises
    ------
    Unencodable
        If sums overflow so far that a group finds no point or no scale.

    Notes
    -----
    Clauses: BLOCK-IQ1M-2, BLOCK-SEARCH-8, BLOCK-REJECT-1
    """
    x = soft(values)
    w = block_weights(x, 2, options.importance)
    groups = [_encode_group(x[at : at + 16], w[at : at + 16]) for at in range(0, 256, 16)]
    indices = [index for _, pair, _ in groups for index in pair]
    shifts = [shift for _, _, pair in groups for shift in pair]

    # without a scale the words of `scales` and the shift bits are zero; the indices found stay
    fitted = group_scales([scale for scale, _, _ in groups], 15, 7)
    words = [0] * 4
    if fitted:
        d, codes = fitted
        d_bits = f16(_refit(d, x, w, codes, indices, shifts) * STORED)
        for k in range(4):
            words[k] = sum(codes[4 * k + n] << 3 * n for n in range(4)) | (d_bits >> 4 * k & 15) << 12
    else:
        shifts = [0] * 32

    nibbles = [index >> 8 | shift << 3 for index, shift in zip(indices, shifts, strict=True)]
    qh = bytes(nibbles[k] | nibbles[k + 1] << 4 for k in range(0, 32, 2))
    return bytes(index & 255 for index in indices) + qh + b"".join(word.to_bytes(2, "little") for word in words)


def _encode_group(x: Sequence[Soft32], w: Sequence[Soft32]) -> tuple[Soft32, list[int], tuple[int, ...]]:
    """Return the scale of a group, and the codebook indices and shifts of its two octets.

    Notes
    -----
    Clauses: BLOCK-IQ1M-2
    """
    silent = ZERO, [0, 0], (0, 0)
    if peak(x)[0] < SILENT:
        return silent
    fit = three_level_fit(x, _candidates(x, w), SHIFT_PAIRS)
    if fit is None:
        return silent
    return *snap_group(fit, x, w), fit.shifts


def _candidates(x: Sequence[Soft32], w: Sequence[Soft32]) -> Callable[[int, int], Iterator[Moments]]:
    """Return the moments of the splits of a group, for each pair of shifts.

    They come from sums over the sorted values, Y of w*x and W of w, of each octet by itself:

    ``A = Y_16*z2 - (Y_i + Y_j)``,
    ``B = (W_16*z2*z2 + W_i*e1) + W_j*e2``.

    The moments of the group are the sums of those of its octets.  This is the sum of iq1_s in other words, but not in
    other roundings: the two are not interchangeable.

    Notes
    -----
    Clauses: BLOCK-SEARCH-8
    """
    y, s = ([ZERO], [ZERO]), ([ZERO], [ZERO])
    for k in ascending(x):
        for octet in (0, 1):
            here = k // 8 == octet
            y[octet].append(y[octet][-1] + w[k] * x[k] if here else y[octet][-1])
            s[octet].append(s[octet][-1] + w[k] if here else s[octet][-1])

    # what does not depend on both i and j, by octet and shift
    y_all = [[v[-1] * z2 for _, _, z2 in SHIFTED] for v in y]
    s_low = [
        [[v[-1] * z2 * z2 + v_i * e1 for v_i in v] for (_, _, z2), (e1, _) in zip(SHIFTED, EDGES, strict=True)]
        for v in s
    ]
    s_high = [[[v_j * e2 for v_j in v] for _, e2 in EDGES] for v in s]

    def moments(i: int, j: int) -> Iterator[Moments]:
        inner = [v[i] + v[j] for v in y]
        a = [[y_all[octet][shift] - inner[octet] for shift in (0, 1)] for octet in (0, 1)]
        b = [[s_low[octet][shift][i] + s_high[octet][shift][j] for shift in (0, 1)] for octet in (0, 1)]
        for first, second in SHIFT_PAIRS:
            yield a[0][first] + a[1][second], b[0][first] + b[1][second]

    return moments


def _refit(
    d: Soft32,
    x: Sequence[Soft32],
    w: Sequence[Soft32],
    codes: Sequence[int],
    indices: Sequence[int],
    shifts: Sequence[int],
) -> Soft32:
    """Return the scale of the block fitted to all that is stored, silent groups included; d if nothing can be fitted.

    Notes
    -----
    Clauses: BLOCK-IQ1M-2
    """
    book = codebook("iq1s_grid")
    q = [
        SHIFTED[shifts[octet]][level] * Soft32.integer(2 * codes[octet // 2] + 1)
        for octet in range(32)
        for level in book.levels[indices[octet]]
    ]
    wq = [weight * number for weight, number in zip(w, q, strict=True)]
    a = total(term * value for term, value in zip(wq, x, strict=True))
    b = total(term * number for term, number in zip(wq, q, strict=True))
    return a / b if b > ZERO else d
