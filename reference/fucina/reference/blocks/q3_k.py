"""q3_k: 256 elements in 110 bytes, sixteen groups of 16 with a 6-bit scale, 3-bit codes.

==============  ======  ==================================================================
field           offset  holds
==============  ======  ==================================================================
``hmask``       0       32 bytes: bit p of byte j is the third bit of the code of element
                        ``32*p + j``
``qs``          32      64 bytes, the lower two bits: element ``128*h + 32*p + j`` is bits ``2*p``
                        and up of byte ``32*h + j``
``scales``      96      12 bytes: the lower four bits of scale g are in byte ``g % 8``, low nibble
                        for ``g < 8``, high for the others; the upper two are bits ``2*(g//4)``
                        and up of byte ``8 + g % 4``
``d``           108     f16, the unit of the scales
==============  ======  ==================================================================

A code means ``code - 4``, a scale ``scale - 32``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fucina.reference.blocks.one_scale import INTEGERS, SILENT, elements, final_codes
from fucina.reference.blocks.packing import pack, signed, u16, u16_bytes, unpack
from fucina.reference.blocks.rounding import ONE, ZERO, clamp, even, f16, peak, soft, total, wide
from fucina.reference.softfloat import Soft32

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fucina.reference.blocks.options import Options

__all__ = ["decode", "encode", "search"]

MIDDLE = 4  # the code that means zero
SWEEPS = 5


def decode(block: bytes) -> list[int]:
    """Return the f32 patterns of the 256 elements: ``(d*(scale - 32))*(code - 4)``.

    Notes
    -----
    Clauses: BLOCK-Q3K-1, BLOCK-DECODE-1
    """
    high = unpack(block[:32], bits=1, run=32)
    low = unpack(block[32:96], bits=2, run=32)
    codes = [a | b << 2 for a, b in zip(low, high, strict=True)]
    scales = [u - 32 for u in _unpack_scales(block[96:108])]
    return elements(wide(u16(block, 108)), scales, codes, MIDDLE)


def encode(values: Sequence[int], options: Options) -> bytes:
    """Return the block of 256 f32 patterns.

    Notes
    -----
    Clauses: BLOCK-Q3K-2, BLOCK-SEARCH-2
    """
    x = soft(values)
    groups = [x[i : i + 16] for i in range(0, 256, 16)]
    fits = [search(group) for group in groups]

    # the scale of largest magnitude becomes -32; without one the scales are stored as 0, which is -32, too
    _, extreme = peak(scale for scale, _ in fits)
    if extreme.is_zero:
        scales, d = [0] * 16, 0
    else:
        f = INTEGERS[-32] / extreme
        scales = [clamp(signed(even(f * scale) & 255), -32, 31) + 32 for scale, _ in fits]
        d = f16(ONE / f)

    # the codes, for the scales that are stored
    codes = []
    for group, (_, provisional), scale in zip(groups, fits, scales, strict=True):
        codes += final_codes(group, provisional, wide(d), scale - 32, MIDDLE)
    high = pack([code >> 2 for code in codes], bits=1, run=32)
    low = pack([code & 3 for code in codes], bits=2, run=32)
    return high + low + _pack_scales(scales) + u16_bytes(d)


def search(x: Sequence[Soft32]) -> tuple[Soft32, list[int]]:
    """Return the unrounded scale and the provisional codes of a group: the coordinate search.

    Each code in turn is set to what the other fifteen make best for it, if that raises ``P*P/Q``.

    Notes
    -----
    Clauses: BLOCK-SEARCH-2
    """
    top, extreme = peak(x)
    if top < SILENT:
        return ZERO, [0] * len(x)

    # the peak aims at -4
    t = INTEGERS[-MIDDLE] / extreme
    k = [clamp(even(t * v), -MIDDLE, MIDDLE - 1) for v in x]
    w = [v * v for v in x]
    moments = [w_i * x_i for w_i, x_i in zip(w, x, strict=True)]  # (w*x), each a factor of every product below
    p_all = total(m * INTEGERS[k_i] for m, k_i in zip(moments, k, strict=True))
    q_all = total((w_i * INTEGERS[k_i]) * INTEGERS[k_i] for w_i, k_i in zip(w, k, strict=True))

    for _ in range(SWEEPS):
        changed = False
        for i, x_i in enumerate(x):
            code = INTEGERS[k[i]]
            p = p_all - moments[i] * code
            if not p > ZERO:
                continue
            q = q_all - (w[i] * code) * code
            j = clamp(even((x_i * q) / p), -MIDDLE, MIDDLE - 1)
            if j == k[i]:
                continue
            code = INTEGERS[j]
            p += moments[i] * code
            q += (w[i] * code) * code
            if q > ZERO and (p * p) * q_all > (p_all * p_all) * q:
                k[i], p_all, q_all = j, p, q
                changed = True
        if not changed:
            break
    return p_all / q_all if q_all > ZERO else ZERO, [k_i + MIDDLE for k_i in k]


def _unpack_scales(data: bytes) -> list[int]:
    return [data[g % 8] >> 4 * (g // 8) & 15 | (data[8 + g % 4] >> 2 * (g // 4) & 3) << 4 for g in range(16)]


def _pack_scales(scales: Sequence[int]) -> bytes:
    return pack([u & 15 for u in scales], bits=4, run=8) + pack([u >> 4 for u in scales], bits=2, run=4)
