"""q6_k: 256 elements in 210 bytes, sixteen groups of 16 with an 8-bit scale, 6-bit codes.

==============  ======  ==================================================================
field           offset  holds
==============  ======  ==================================================================
``ql``          0       128 bytes, the lower four bits: element ``128*h + j`` is the low nibble of
                        byte ``64*h + j``, element ``128*h + 64 + j`` the high one
``qh``          128     64 bytes, the upper two bits: element ``128*h + 32*p + j`` is bits ``2*p``
                        and up of byte ``32*h + j``
``scales``      192     16 signed bytes
``d``           208     f16, the unit of the scales
==============  ======  ==================================================================

A code means ``code - 32``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fucina.reference.blocks.one_scale import INTEGERS, SILENT, elements, final_codes
from fucina.reference.blocks.packing import pack, signed, u16, u16_bytes, unpack
from fucina.reference.blocks.rounding import ONE, ZERO, clamp, even, f16, peak, soft, wide
from fucina.reference.softfloat import Soft32

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fucina.reference.blocks.options import Options

__all__ = ["decode", "encode", "search"]

MIDDLE = 32  # the code that means zero
TENTH = Soft32.decimal("0.1")
AIMS = [-(INTEGERS[MIDDLE] + TENTH * INTEGERS[s]) for s in range(-9, 10) if s]
"""What the further trials aim the peak at, around -32."""


def decode(block: bytes) -> list[int]:
    """Return the f32 patterns of the 256 elements: ``(d*scale)*(code - 32)``.

    Notes
    -----
    Clauses: BLOCK-Q6K-1, BLOCK-DECODE-1
    """
    low = unpack(block[:128], bits=4, run=64)
    high = unpack(block[128:192], bits=2, run=32)
    codes = [a | b << 4 for a, b in zip(low, high, strict=True)]
    scales = [signed(byte) for byte in block[192:208]]
    return elements(wide(u16(block, 208)), scales, codes, MIDDLE)


def encode(values: Sequence[int], options: Options) -> bytes:
    """Return the block of 256 f32 patterns.

    Notes
    -----
    Clauses: BLOCK-Q6K-2, BLOCK-SEARCH-1
    """
    x = soft(values)
    groups = [x[i : i + 16] for i in range(0, 256, 16)]
    fits = [search(group) for group in groups]

    # the scale of largest magnitude becomes -128
    top, extreme = peak(scale for scale, _ in fits)
    if top < SILENT:
        return bytes(210)
    f = INTEGERS[-128] / extreme
    d = f16(ONE / f)
    packed = bytes(min(127, even(f * scale)) & 255 for scale, _ in fits)

    # the codes, for the scales that are stored
    codes = []
    for group, (_, provisional), byte in zip(groups, fits, packed, strict=True):
        codes += final_codes(group, provisional, wide(d), signed(byte), MIDDLE)
    low = pack([code & 15 for code in codes], bits=4, run=64)
    high = pack([code >> 4 for code in codes], bits=2, run=32)
    return low + high + packed + u16_bytes(d)


def search(x: Sequence[Soft32]) -> tuple[Soft32, list[int]]:
    """Return the unrounded scale and the provisional codes of a group: the grid search.

    Notes
    -----
    Clauses: BLOCK-SEARCH-1
    """
    top, extreme = peak(x)
    if top < SILENT:
        return ZERO, [0] * len(x)
    w = [v * v for v in x]
    moments = [w_i * x_i for w_i, x_i in zip(w, x, strict=True)]  # (w*x), the same in every trial

    def trial(t: Soft32) -> tuple[list[int], Soft32, Soft32]:
        k = [clamp(even(t * v), -MIDDLE, MIDDLE - 1) for v in x]
        p = q = ZERO
        for k_i, w_i, m in zip(k, w, moments, strict=True):
            code = INTEGERS[k_i]
            p += m * code
            q += (w_i * code) * code
        return k, p, q

    # the first trial is kept whatever it gives
    k, p, q = trial(INTEGERS[-MIDDLE] / extreme)
    scale = ZERO if q.is_zero else p / q
    best = scale * p

    # the others have to be better
    for aim in AIMS:
        other, p, q = trial(aim / extreme)
        if q > ZERO and p * p > best * q:
            k, scale = other, p / q
            best = scale * p
    return scale, [k_i + MIDDLE for k_i in k]
