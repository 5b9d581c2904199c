"""The ``gguf`` package: what it decodes and encodes of the block formats."""

from __future__ import annotations

from typing import Any

import gguf
import numpy as np
import numpy.typing as npt

from fucina.spec import DType

__all__ = ["decode", "decodes", "encode", "encodes"]


def _traits(dtype: DType) -> Any:
    kind = gguf.GGMLQuantizationType.__members__.get(dtype.name.upper())
    return None if kind is None else gguf.quants._type_traits.get(kind)


def decodes(dtype: DType) -> bool:
    """Return whether it has the format at all."""
    return _traits(dtype) is not None


def encodes(dtype: DType) -> bool:
    """Return whether it has an encoder: every format inherits one that raises."""
    return decodes(dtype) and "quantize_blocks" in vars(_traits(dtype))


def decode(dtype: DType, blocks: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """Decode blocks, shape (n, bytes), to shape (n, elements)."""
    with np.errstate(all="ignore"):
        values: npt.NDArray[np.float32] = _traits(dtype).dequantize(blocks)
    return values


def encode(dtype: DType, values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint8]:
    """Encode rows to blocks as bytes, one line of bytes a row."""
    with np.errstate(all="ignore"):
        blocks: npt.NDArray[np.uint8] = _traits(dtype).quantize(values)
    return blocks
