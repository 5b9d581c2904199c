"""The 27 block formats: one module per format, each with the two directions of one block.

``decode(block)`` turns the bytes of a block into the f32 patterns of its elements, ``encode(values, options)`` goes the
other way.  The modules can be read one by one; what several formats truly share stands in
:mod:`~fucina.reference.blocks.rounding` (roundings, sums, scans) and :mod:`~fucina.reference.blocks.packing` (codes in
bytes).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import cast

from fucina.reference.blocks.options import Codec
from fucina.spec.types import GEOMETRY, DType, DTypeKind

__all__ = ["CODECS"]


class _Codecs(Mapping[DType, Codec]):
    """The modules by dtype, each imported when it is first asked for."""

    def __getitem__(self, dtype: DType) -> Codec:
        return cast("Codec", import_module(f"{__name__}.{dtype.name}"))

    def __iter__(self) -> Iterator[DType]:
        return (dtype for dtype, geometry in GEOMETRY.items() if geometry.kind is DTypeKind.block_quantized)

    def __len__(self) -> int:
        return sum(1 for _ in self)


CODECS: Mapping[DType, Codec] = _Codecs()
"""The module of each block format."""
