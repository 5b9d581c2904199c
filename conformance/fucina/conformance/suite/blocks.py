"""The block formats as the suite sees them: their vectors, what of these binds, and data to encode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fucina.conformance import vectors
from fucina.conformance.compare import Mismatch, assert_bits
from fucina.spec import GEOMETRY, DType

__all__ = [
    "CHOSEN_ROWS",
    "FORMATS",
    "MAY_REJECT",
    "SEARCHES",
    "SLOW_ENCODERS",
    "WITH_IMPORTANCE",
    "Case",
    "as_bytes",
    "assert_blocks",
    "cases",
    "clause_of",
    "encode",
    "gaussian",
    "misaligned",
    "random_blocks",
    "sizes",
]

Bytes = npt.NDArray[np.uint8]
F32s = npt.NDArray[np.float32]

FORMATS = tuple(dtype for dtype, geometry in GEOMETRY.items() if geometry.block_size)
"""The 27 block dtypes."""

WITH_IMPORTANCE = (DType.iq1_s, DType.iq1_m, DType.iq2_xxs, DType.iq2_xs)
MAY_REJECT = (*WITH_IMPORTANCE, DType.iq2_s, DType.iq3_xxs, DType.iq3_s)

SLOW_ENCODERS = {
    **dict.fromkeys((DType.iq1_s, DType.iq1_m, DType.iq2_xxs, DType.iq2_xs, DType.iq2_s), 10),
    **dict.fromkeys((DType.iq3_xxs, DType.iq3_s), 10),
    **dict.fromkeys((DType.q2_k, DType.q3_k, DType.q4_k, DType.q5_k, DType.q6_k, DType.iq4_xs, DType.iq4_nl), 20),
}
"""Rows of 256 values that an implementation that is not quick encodes, of formats whose encoder searches."""

SEARCHES: dict[DType, tuple[str, ...]] = {
    DType.q6_k: ("BLOCK-SEARCH-1",),
    DType.q3_k: ("BLOCK-SEARCH-2",),
    **dict.fromkeys((DType.q2_k, DType.q4_k, DType.q5_k), ("BLOCK-SEARCH-3",)),
    **dict.fromkeys((DType.iq4_nl, DType.iq4_xs), ("BLOCK-SEARCH-4",)),
    **dict.fromkeys((DType.iq3_xxs, DType.iq3_s), ("BLOCK-SEARCH-5",)),
    **dict.fromkeys((DType.iq2_xs, DType.iq2_s), ("BLOCK-SEARCH-6",)),
    DType.iq2_xxs: ("BLOCK-SEARCH-6", "BLOCK-SEARCH-7"),
    **dict.fromkeys((DType.iq1_s, DType.iq1_m), ("BLOCK-SEARCH-8",)),
}
"""The clauses of the searches that the encoders use."""

CHOSEN_ROWS = {DType.iq2_xxs: (68,), DType.iq4_nl: (88,), DType.iq1_m: (31, 56)}
"""Rows that are encoded beside these, for few others show a step: a magnitude below zero that rounds to -1; values in
the middle of two levels; equal values, and silent groups."""


def sizes(dtype: DType) -> tuple[int, int]:
    """Return the elements and the bytes of a block."""
    geometry = GEOMETRY[dtype]
    assert geometry.block_size is not None
    return geometry.block_size, geometry.byte_size


def clause_of(dtype: DType, number: int) -> str:
    """Return the id of a format's clause: 1 decoding, 2 encoding."""
    return f"BLOCK-{dtype.name.upper().replace('_', '')}-{number}"


def as_bytes(blocks: npt.NDArray[Any]) -> Bytes:
    """Return an array of blocks, structs or bytes, as one row of bytes for each block."""
    flat = np.ascontiguousarray(blocks)
    return flat.reshape(-1).view(np.uint8).reshape(-1, blocks.dtype.itemsize) if blocks.dtype.names else flat


def encode(impl: Any, dtype: DType, values: F32s, **options: Any) -> Bytes:
    """Encode and return one row of bytes for each block, after a look at the form of the result."""
    made = impl.quant.quantize(dtype, values, **options)
    block, size = sizes(dtype)
    if made.dtype != impl.dtype.storage(dtype) or made.shape != (*values.shape[:-1], values.shape[-1] // block):
        raise Mismatch(f"quantize({dtype.name}) gave {made.dtype} of shape {made.shape} for values {values.shape}")
    return as_bytes(made).reshape(-1, size)


def assert_blocks(got: Bytes, expected: Bytes, dtype: DType, what: str, number: int = 2) -> None:
    """Compare rows of bytes."""
    assert_bits(got, expected, what=f"{dtype.name}, {what} (block, byte)", clause=clause_of(dtype, number))


@dataclass(frozen=True)
class Case:
    """Rows and the bytes they have to give; ``binds`` has one entry for each block."""

    rows: F32s
    blocks: Bytes
    binds: npt.NDArray[np.bool_]

    def of(self, chosen: npt.NDArray[Any] | slice) -> Case:
        """Return the chosen rows."""
        per_row = len(self.blocks) // len(self.rows)
        shaped = self.blocks.reshape(len(self.rows), per_row, -1)[chosen]
        return Case(
            self.rows[chosen], shaped.reshape(-1, shaped.shape[-1]), self.binds.reshape(-1, per_row)[chosen].ravel()
        )


def cases(dtype: DType, kind: str) -> Case | None:
    """Return encoder vectors.

    Parameters
    ----------
    dtype : DType
        A block dtype.
    kind : str
        ``blocks`` the ordinary rows, ``hard`` those on which one wrong step shows, ``disputed`` those on which a
        reciprocal overflows, ``plain`` iq4_nl without its search, ``scaled`` tq2_0 with a given scale.
    """
    table = vectors.load(f"block_encode_{dtype.name}")
    key = {"blocks": "row", "plain": "row", "hard": "hard_row", "disputed": "disputed_row", "scaled": "scaled_row"}[
        kind
    ]
    name = {"hard": "hard_blocks", "disputed": "disputed_blocks_original", "scaled": "scaled_blocks"}.get(
        kind, "blocks"
    )
    if kind == "blocks" and dtype is DType.iq4_nl:
        name = "blocks_searched"
    if key not in table or (kind == "plain" and dtype is not DType.iq4_nl):
        return None
    rows = vectors.load("block_rows")["bits"].view(np.float32)[table[key]]
    blocks = table[name]
    return Case(rows, blocks, _binding(dtype, kind, table, rows, len(blocks)))


def _binding(dtype: DType, kind: str, table: Any, rows: F32s, count: int) -> npt.NDArray[np.bool_]:
    """Say of each block whether its vector binds (BLOCK-MXFP4-2, BLOCK-IQ3S-2, BLOCK-ENCODE-1)."""
    binds = np.ones(count, np.bool_)
    if kind in ("blocks", "plain"):
        binds &= np.repeat(table["in_normal_range"].astype(np.bool_), count // len(rows))
    values = np.abs(rows.reshape(count, -1))
    if dtype is DType.mxfp4:  # the original wraps the exponent byte of tiny blocks
        top = values.max(axis=1)
        binds &= (top == 0) | (top >= np.float32(2.0**-125))
    if dtype is DType.iq3_s:  # the original misplaces codes behind an all-zero group
        silent = (values.reshape(count, 8, 32) == 0).all(axis=2)
        binds &= ~(silent[:, :-1] & (np.cumsum(~silent[:, ::-1], axis=1)[:, ::-1][:, 1:] > 0)).any(axis=1)
    return binds


def gaussian(n: int, seed: int = 1, scale: float = 0.02) -> F32s:
    """Return values that look like weights."""
    return (np.random.default_rng(seed).standard_normal(n) * scale).astype(np.float32)


def misaligned(values: F32s) -> F32s:
    """Return the same values at an address that is no multiple of four."""
    room = np.zeros(values.nbytes + 8, np.uint8)
    start = 1 + -room.ctypes.data % 4
    made = room[start : start + values.nbytes].view(np.float32).reshape(values.shape)
    made[...] = values
    return made


def random_blocks(dtype: DType, n: int, seed: int = 1) -> Bytes:
    """Return blocks of random bytes."""
    return np.random.default_rng(seed).integers(0, 256, (n, sizes(dtype)[1]), np.uint8)
