"""The 27 block formats: one module per format, each with the two directions of one block.

``decode(block)`` turns the bytes of a block into the f32 patterns of its elements, ``encode(values, options)`` goes the
other way.  The modules can be read one by one; what several formats truly share stands in
:mod:`~fucina.reference.blocks.rounding` (roundings, sums, scans), :mod:`~fucina.reference.blocks.packing` (codes in
bytes) and in the modules that are named after what they do.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from fucina.reference.blocks import (
    iq1_m,
    iq1_s,
    iq2_s,
    iq2_xs,
    iq2_xxs,
    iq3_s,
    iq3_xxs,
    iq4_nl,
    iq4_xs,
    mxfp4,
    nvfp4,
    q1_0,
    q2_0,
    q2_k,
    q3_k,
    q4_0,
    q4_1,
    q4_k,
    q5_0,
    q5_1,
    q5_k,
    q6_k,
    q8_0,
    q8_1,
    q8_k,
    tq1_0,
    tq2_0,
)
from fucina.reference.blocks.options import Codec
from fucina.spec.types import DType

__all__ = ["CODECS"]

CODECS: Mapping[DType, Codec] = MappingProxyType(
    {
        DType.q1_0: q1_0,
        DType.q2_0: q2_0,
        DType.q4_0: q4_0,
        DType.q4_1: q4_1,
        DType.q5_0: q5_0,
        DType.q5_1: q5_1,
        DType.q8_0: q8_0,
        DType.q8_1: q8_1,
        DType.q2_k: q2_k,
        DType.q3_k: q3_k,
        DType.q4_k: q4_k,
        DType.q5_k: q5_k,
        DType.q6_k: q6_k,
        DType.q8_k: q8_k,
        DType.iq1_s: iq1_s,
        DType.iq1_m: iq1_m,
        DType.iq2_xxs: iq2_xxs,
        DType.iq2_xs: iq2_xs,
        DType.iq2_s: iq2_s,
        DType.iq3_xxs: iq3_xxs,
        DType.iq3_s: iq3_s,
        DType.iq4_nl: iq4_nl,
        DType.iq4_xs: iq4_xs,
        DType.tq1_0: tq1_0,
        DType.tq2_0: tq2_0,
        DType.mxfp4: mxfp4,
        DType.nvfp4: nvfp4,
    }
)
"""The module of each block format."""
