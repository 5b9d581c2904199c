"""q8_k: 256 elements in 292 bytes, one f32 scale, 8-bit codes and their sums.

==============  ======  ==================================================================
field           offset  holds
==============  ======  ==================================================================
``d``           0       f32, the scale
``qs``          4       256 signed bytes
``bsums``       260     16 signed 16-bit integers: the sum of each run of 16 codes
==============  ======  ==================================================================

Decoding does not look at the sums.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fucina.reference.blocks.one_scale import INTEGERS
from fucina.reference.blocks.packing import signed
from fucina.reference.blocks.rounding import ONE, even, peak, soft
from fucina.reference.softfloat import Soft32

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fucina.reference.blocks.options import Options

__all__ = ["decode", "encode"]


def decode(block: bytes) -> list[int]:
    """Return the f32 patterns of the 256 elements: ``d*code``.

    Notes
    -----
    Clauses: BLOCK-Q8K-1, BLOCK-DECODE-1
    """
    d = Soft32.from_bits(int.from_bytes(block[:4], "little"))
    return [(d * INTEGERS[signed(byte)]).bits for byte in block[4:260]]


def encode(values: Sequence[int], options: Options) -> bytes:
    """Return the block of 256 f32 patterns.

    Notes
    -----
    Clauses: BLOCK-Q8K-2, BLOCK-SCAN-1
    """
    x = soft(values)
    top, extreme = peak(x)
    # the peak becomes -127; where the multiplier for that is beyond f32, the block is zeros
    if top.is_zero or not (f := INTEGERS[-127] / extreme).is_finite:
        return bytes(292)
    codes = [min(127, even(f * v)) for v in x]
    sums = [sum(codes[i : i + 16]) for i in range(0, 256, 16)]
    return (
        (ONE / f).bits.to_bytes(4, "little")
        + bytes(code & 255 for code in codes)
        + b"".join(s.to_bytes(2, "little", signed=True) for s in sums)
    )
