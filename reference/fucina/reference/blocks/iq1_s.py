"""iq1_s: 256 elements in 50 bytes, 1.5625 bits each.

====== ===== ==================================================================================
offset bytes field
====== ===== ==================================================================================
0      2     ``d``, f16
2      32    ``qs``, the low 8 bits of the codebook index of each octet
34     16    ``qh``, a little-endian 16-bit word per group of 32
====== ===== ==================================================================================

A word of ``qh`` holds the upper 3 bits of the indices of four octets, the first one lowest, the scale code in bits 12
to 14, and in bit 15 whether the shift is down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
from fucina.reference.blocks.rounding import ZERO, f16, peak, soft
from fucina.reference.softfloat import Soft32

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["decode", "encode"]

SILENT = Soft32.decimal("1e-12")
STORED = Soft32.decimal("1.125")  # the stored scale is larger than the one the codes are made with


def decode(block: bytes) -> list[int]:
    """Return the f32 patterns of the 256 elements of a block of 50 bytes.

    Notes
    -----
    Clauses: BLOCK-IQ1S-1, BLOCK-DECODE-1
    """
    d = int.from_bytes(block[:2], "little")
    values: list[int] = []
    for group in range(8):
        word = int.from_bytes(block[34 + 2 * group : 36 + 2 * group], "little")
        scale = octet_scale(d, word >> 12 & 7)
        for k in range(4):
            index = block[2 + 4 * group + k] | (word >> 3 * k & 7) << 8
            values += decode_octet(scale, index, word >> 15)
    return values


def encode(values: Sequence[int], options: Options) -> bytes:
    """Return the 50 bytes of a block of 256 finite f32 patterns.

    Raises
    ------
    Unencodable
        If sums overflow so far that a group finds no point or no scale.

    Notes
    -----
    Clauses: BLOCK-IQ1S-2, BLOCK-SEARCH-8, BLOCK-REJECT-1
    """
    x = soft(values)
    w = block_weights(x, 2, options.importance)
    groups = [_encode_group(x[at : at + 32], w[at : at + 32]) for at in range(0, 256, 32)]

    # without a scale only d and the upper bits of qh are zero; the indices found stay
    fitted = group_scales([scale for scale, _, _ in groups], 15, 7)
    d = f16(fitted[0] * STORED) if fitted else 0
    words = []
    for group, (_, indices, shift) in enumerate(groups):
        word = sum(index >> 8 << 3 * k for k, index in enumerate(indices))
        if fitted:
            word |= fitted[1][group] << 12 | shift << 15
        words.append(word)
    qs = bytes(index & 255 for _, indices, _ in groups for index in indices)
    return d.to_bytes(2, "little") + qs + b"".join(word.to_bytes(2, "little") for word in words)


def _encode_group(x: Sequence[Soft32], w: Sequence[Soft32]) -> tuple[Soft32, list[int], int]:
    """Return the scale of a group, the codebook indices of its octets and its shift.

    Notes
    -----
    Clauses: BLOCK-IQ1S-2
    """
    silent = ZERO, [0] * 4, 0
    if peak(x)[0] < SILENT:
        return silent
    fit = three_level_fit(x, _candidates(x, w), [(0,) * 4, (1,) * 4])
    if fit is None:
        return silent
    return *snap_group(fit, x, w), fit.shifts[0]


def _candidates(x: Sequence[Soft32], w: Sequence[Soft32]) -> Callable[[int, int], Iterator[Moments]]:
    """Return the moments of the splits of a group, shift up first, then down.

    They come from sums over the sorted values, Y of w*x and W of w:

    ``A = ((Y_i - Y_0)*z0 + (Y_j - Y_i)*z1) + (Y_32 - Y_j)*z2``,
    ``B = ((W_i - W_0)*z0*z0 + (W_j - W_i)*z1*z1) + (W_32 - W_j)*z2*z2``.

    Notes
    -----
    Clauses: BLOCK-SEARCH-8
    """
    y, s = [ZERO], [ZERO]
    for k in ascending(x):
        y.append(y[-1] + w[k] * x[k])
        s.append(s[-1] + w[k])

    # the first product of each sum depends on i alone, the last one on j alone
    y_low = [[(v - y[0]) * z0 for v in y] for z0, _, _ in SHIFTED]
    y_high = [[(y[-1] - v) * z2 for v in y] for _, _, z2 in SHIFTED]
    s_low = [[(v - s[0]) * z0 * z0 for v in s] for z0, _, _ in SHIFTED]
    s_high = [[(s[-1] - v) * z2 * z2 for v in s] for _, _, z2 in SHIFTED]

    def moments(i: int, j: int) -> Iterator[Moments]:
        y_middle, s_middle = y[j] - y[i], s[j] - s[i]
        for shift, (_, z1, _) in enumerate(SHIFTED):
            a = y_low[shift][i] + y_middle * z1 + y_high[shift][j]
            b = s_low[shift][i] + s_middle * z1 * z1 + s_high[shift][j]
            yield a, b

    return moments
