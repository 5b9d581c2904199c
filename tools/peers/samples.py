"""Blocks to decode and rows to encode, the same for everybody."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import fucina.fast as fucina
from fucina.spec import DType, DTypeKind

__all__ = ["BLOCKS", "blocks", "rows"]

BLOCKS = [d for d in DType if fucina.dtype.kind(d) is DTypeKind.block_quantized]
COLUMNS = 256

F16_SPECIALS = (
    *(0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x3C00, 0x7BFF, 0xFBFF),
    *(0x7C00, 0xFC00, 0x7E00, 0x7D01, 0xFE00),
)
F32_SPECIALS = (
    *(0x00000000, 0x80000000, 0x00000001, 0x007FFFFF, 0x00800000, 0x3F800000, 0x7F7FFFFF, 0xFF7FFFFF),
    *(0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001),
)
"""Both zeros, subnormals, the smallest normal, one, the largest, both infinities, quiet and signalling NaN."""


def rows() -> dict[str, npt.NDArray[np.float32]]:
    """Return rows of 256 finite values by kind; no group of them is all zero or tiny."""
    rng = np.random.default_rng(20_26)
    shape = (512, COLUMNS)
    return {
        "gaussian": rng.standard_normal((2048, COLUMNS), np.float32),
        "uniform": rng.uniform(-1, 1, shape).astype(np.float32),
        "heavy tails": (rng.standard_normal(shape) ** 3).astype(np.float32),
        "few values": rng.choice([-1, -0.5, 0, 0.25, 1], shape).astype(np.float32),
        "small": rng.standard_normal(shape, np.float32) * np.float32(1e-3),
    }


def blocks(dtype: DType, encoded: npt.NDArray[np.float32]) -> dict[str, npt.NDArray[np.uint8]]:
    """Return blocks as bytes, shape (n, bytes of a block), by kind: random, encoded, with special scales."""
    rng = np.random.default_rng(7)
    size = fucina.dtype.block_byte_size(dtype)
    return {
        "random": rng.integers(0, 256, (4096, size), np.uint8),
        "encoded": fucina.quant.quantize(dtype, encoded).view(np.uint8).reshape(-1, size),
        "special scales": _special(dtype, rng).view(np.uint8).reshape(-1, size),
    }


def _special(dtype: DType, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Return random blocks whose scales hold every special value, two scales every pair of them."""
    struct = fucina.dtype.storage(dtype)
    fields = [f for f in ("d", "dmin", "m", "s", "e") if f in (struct.names or ())]
    if dtype.name == "iq1_m":
        values: list[Any] = list(F16_SPECIALS)
        made = _random(struct, len(values), rng)
        for nibble in range(4):  # the scale is spread over the top nibbles of four words
            words = made["scales"].view("<u2").reshape(len(values), 4)
            words[:, nibble] = words[:, nibble] & 0x0FFF | np.array([v >> 4 * nibble & 15 for v in values], "u2") << 12
        return made
    if struct[fields[0]].base.itemsize == 1:  # mxfp4 and nvfp4: every byte, in every place
        made = _random(struct, 512, rng)
        flat = made[fields[0]]
        flat[...] = (np.arange(flat.size) % 256).reshape(flat.shape)
        return made
    if struct[fields[0]].itemsize == 4:
        made = _random(struct, len(F32_SPECIALS), rng)
        made[fields[0]] = np.array(F32_SPECIALS, np.uint32).view(struct[fields[0]])
        return made
    first, second = np.meshgrid(F16_SPECIALS, F16_SPECIALS)
    made = _random(struct, first.size, rng)
    for field, values_of in zip(fields, (first, second), strict=False):
        made[field] = values_of.ravel().astype("<u2").view(struct[field])
    return made


def _random(struct: np.dtype[Any], count: int, rng: np.random.Generator) -> npt.NDArray[Any]:
    made: npt.NDArray[Any] = rng.integers(0, 256, count * struct.itemsize, np.uint8).view(struct)
    return made
