"""What ``quant.error`` measures: the difference between values and what their blocks decode to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fucina.reference.blocks import CODECS
from fucina.reference.formats import Kind
from fucina.reference.softfloat import Soft32, Soft64
from fucina.spec.quant import ErrorFigures
from fucina.spec.types import GEOMETRY, DType

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["figures"]


def figures(dtype: DType, blocks: Sequence[bytes], values: Sequence[int]) -> ErrorFigures:
    """Return what encoding and decoding cost, in f64 operations in a fixed order.

    Parameters
    ----------
    dtype : DType
        The format.
    blocks : sequence of bytes
        One block at least.
    values : sequence of int
        The f32 patterns that the blocks were made of.

    Notes
    -----
    Clauses: BLOCK-FIGURES-1
    """
    size = GEOMETRY[dtype].byte_size
    elements = len(values) // len(blocks)

    largest = total = Soft64.integer(0)
    for i, block in enumerate(blocks):
        in_block = Soft64.integer(0)
        for decoded, value in zip(CODECS[dtype].decode(block), values[i * elements : (i + 1) * elements], strict=True):
            d = Soft64.nearest(Soft32.from_bits(decoded)) - Soft64.nearest(Soft32.from_bits(value))
            in_block += d * d
            if largest.kind is not Kind.NAN and not abs(d) <= largest:  # a NaN takes the place and keeps it
                largest = abs(d)
        total += in_block

    rmse = (total / Soft64.integer(len(values))).sqrt()
    bits_per_weight = Soft64.ratio(0, 8 * size, elements)
    return ErrorFigures(dtype, rmse.to_float(), largest.to_float(), bits_per_weight.to_float())
