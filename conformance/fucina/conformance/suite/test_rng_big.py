"""Fills of 2^24 values: samples on every implementation, the SHA-256 of the whole on the quick ones."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause, vectors
from fucina.conformance.compare import Mismatch, assert_bits
from fucina.conformance.suite.fills import Fill, by_name
from fucina.conformance.suite.pace import Note, quick, scaled
from fucina.spec import DType

RECORDS = {
    "gaussianFill": "gaussian_fill",
    "gaussianFillAt_first0": "gaussian_fill_at",
    "gaussianFillAt_offset": "gaussian_fill_at",
    "gaussianFillAtFast_first0": "gaussian_fill_at_fast",
    "gaussianFillAtFast_offset": "gaussian_fill_at_fast",
    "gumbelFill": "gumbel_fill",
}
PIECE = 1 << 20


def _record(name: str) -> tuple[dict[str, Any], Fill, tuple[float, ...]]:
    record = vectors.load_json("rng_big")[name]
    fill = by_name(RECORDS[name])
    return record, fill, (record["scale"],) if fill.names else ()


@clause("RNG-ELEMENT-1", "RNG-GAUSS-3", "RNG-FAST-2", "RNG-GUMBEL-1", "RNG-CONTRACT-1")
@pytest.mark.parametrize("name", RECORDS)
def test_samples(impl: Any, name: str) -> None:
    record, fill, values = _record(name)
    counted = fill if fill.counted else by_name(f"{fill.name}_at")
    every, first = record["sample_every"], record.get("first") or 0
    got = [
        counted(impl, record["seed"], 1, *values, first=first + j * every) for j in range(len(record["sample_bits"]))
    ]
    expected = np.array(record["sample_bits"], dtype=np.uint32)
    assert_bits(np.concatenate(got), expected, dtype=DType.f32, what=f"{name}, every {every}th", clause=fill.clauses[0])


@clause("RNG-CONTRACT-1", "RNG-CHUNK-1", "RNG-GAUSS-2", "RNG-GAUSS-3", "RNG-FAST-2", "RNG-GUMBEL-1")
@pytest.mark.parametrize("name", RECORDS)
def test_digest(impl: Any, name: str, record_property: Note) -> None:
    # whole or in uneven pieces: one digest; a slow implementation shows a stretch between two samples
    record, fill, values = _record(name)
    if not quick(impl):
        length = scaled(
            impl, record_property, record["count"], record["sample_every"] // 32 + 1, "values of a frozen digest"
        )
        counted = fill if fill.counted else by_name(f"{fill.name}_at")
        start = record["sample_every"] - length + 1
        got = counted(impl, record["seed"], length, *values, first=(record.get("first") or 0) + start)
        expected = np.array(record["sample_bits"][1:2], dtype=np.uint32)
        assert_bits(got[-1:], expected, dtype=DType.f32, what=name, clause=fill.clauses[0])
        return
    digest = hashlib.sha256()
    if fill.counted:
        done, piece = 0, PIECE - 1
        while done < record["count"]:
            length = min(piece, record["count"] - done)
            first = (record.get("first") or 0) + done
            digest.update(fill(impl, record["seed"], length, *values, first=first).astype("<f4").tobytes())
            done += length
    else:
        digest.update(fill(impl, record["seed"], record["count"], *values).astype("<f4").tobytes())
    if digest.hexdigest() != record["sha256_le_f32"]:
        raise Mismatch(
            f"RNG-CONTRACT-1: {name}, {record['count']} values: SHA-256 {digest.hexdigest()}, "
            f"expected {record['sha256_le_f32']}"
        )
