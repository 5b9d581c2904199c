"""Arrays larger than the caches, where an implementation may write in another way: bodies, tails and neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause, vectors
from fucina.conformance.compare import PATTERN, assert_bits
from fucina.conformance.suite.casts import SCALARS, STORAGE, cast
from fucina.conformance.suite.fills import ELEMENTWISE, Fill, by_name
from fucina.conformance.suite.pace import Note, scaled
from fucina.spec import DType

CAST_BYTES = 20 << 20
FILL_BYTES = 6 << 20
GUARD = 40


@clause("BRIDGE-ARRAY-4", "BRIDGE-ARRAY-3")
@pytest.mark.parametrize("source", SCALARS, ids=lambda d: d.name)
def test_casts(impl: Any, source: DType, record_property: Note) -> None:
    # the answer of a long array is that of a short one, over and over
    some = vectors.load("dtype_cast_scalar")[f"in_{source.name}"]
    inputs = np.tile(some, 1 + 500 // some.size)
    touched = scaled(impl, record_property, CAST_BYTES, 3_000, "bytes touched by one cast")
    for into in SCALARS:
        n = touched // (STORAGE[source].itemsize + STORAGE[into].itemsize) + 29
        answer = cast(impl, source, into, inputs)
        given = np.resize(inputs, n).view(STORAGE[source])
        around = np.full((n + 2 * GUARD) * STORAGE[into].itemsize, 0xAA, dtype=np.uint8)
        for lead in (GUARD, GUARD - 1) if source in (DType.f32, DType.u16) else (GUARD - 1,):
            out = around.view(STORAGE[into])[lead : lead + n]
            impl.dtype.cast_array(source, into, given, out=out)
            what = f"{source.name} -> {into.name}, n={n}"
            got = out.view(PATTERN[into])
            whole = n // inputs.size * inputs.size
            rows = got[:whole].reshape(-1, inputs.size)
            if not (rows == answer).all():
                assert_bits(got, np.resize(answer, n), dtype=into, what=what, clause="BRIDGE-ARRAY-4")
            assert_bits(got[whole:], answer[: n - whole], dtype=into, what=f"{what}, tail", clause="BRIDGE-ARRAY-4")
            out.view(np.uint8)[...] = 0xAA
            assert (around == 0xAA).all(), f"BRIDGE-ARRAY-3: {what}: a neighbour of out was written"


@clause("RNG-CHUNK-1", "RNG-ELEMENT-1", "RNG-OUT-1")
@pytest.mark.parametrize("fill", ELEMENTWISE, ids=str)
def test_fills(impl: Any, fill: Fill, record_property: Note) -> None:
    size = np.dtype(fill.format).itemsize
    n = scaled(impl, record_property, FILL_BYTES, 2_400, "bytes of one fill, whole and in pieces") // size + 37
    for first in (0, 1):
        around = np.full((n + 2 * GUARD) * size, 0xAA, dtype=np.uint8)
        out = around.view(fill.format)[GUARD - 1 : GUARD - 1 + n]
        fill.into(impl, 19, out, first=first)
        pieces, step = fill.empty(n), max(8191, n // 40 | 1) if n > 100_000 else 101
        for start in range(0, n, step):
            fill.into(impl, 19, pieces[start : start + step], first=first + start)
        assert_bits(out, pieces, what=f"{fill}, n={n}, first={first}", clause="RNG-CHUNK-1")
        out.view(np.uint8)[...] = 0xAA
        assert (around == 0xAA).all(), f"RNG-OUT-1: {fill}, n={n}: a neighbour of out was written"


@clause("RNG-PERM-1", "RNG-OUT-1")
def test_permutation(impl: Any, record_property: Note) -> None:
    n = scaled(impl, record_property, 700_001, 2_001, "elements of a permutation")
    out = by_name("randperm_fill")(impl, 23, n)
    assert_bits(np.sort(out), np.arange(n), what=f"n={n}, sorted", clause="RNG-PERM-1")
