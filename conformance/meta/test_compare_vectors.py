"""The frozen vectors: the manifest is complete, every checksum is looked at, and nothing that changed gets through."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from fucina.conformance import vectors
from fucina.spec import DType

LIMIT = 5_500_000
BIG = {
    "gaussianFill",
    "gaussianFillAt_first0",
    "gaussianFillAt_offset",
    "gaussianFillAtFast_first0",
    "gaussianFillAtFast_offset",
    "gumbelFill",
}


def test_the_manifest_names_every_file_and_no_other() -> None:
    found = {path.name for path in vectors.folder().iterdir()} - {"MANIFEST.json"}
    assert found == set(vectors.manifest())
    assert sum(path.stat().st_size for path in vectors.folder().iterdir()) < LIMIT


def test_the_manifest_is_complete() -> None:
    text = json.loads((vectors.folder() / "MANIFEST.json").read_text(encoding="utf-8"))
    assert text["contract"] == vectors.VERSION
    for name, record in vectors.manifest().items():
        assert len(record.sha256) == 64, name
        assert record.origin, f"{name}: no origin"
        assert record.nan, f"{name}: no NaN rule"
        assert record.clauses, f"{name}: no clauses"
        assert all(clause.count("-") >= 2 and clause == clause.upper() for clause in record.clauses), name


@pytest.mark.parametrize("name", sorted(vectors.manifest()))
def test_contents_match_their_checksum(name: str) -> None:
    record = vectors.manifest()[name]
    content = (vectors.folder() / name).read_bytes()
    assert hashlib.sha256(content).hexdigest() == record.sha256
    stem = name.rpartition(".")[0]
    if name.endswith(".json"):
        assert vectors.load_json(stem)
        return
    arrays = vectors.load(stem)
    described = json.loads((vectors.folder() / "MANIFEST.json").read_text(encoding="utf-8"))["files"][name]["arrays"]
    if isinstance(described, dict):
        assert {key: f"{array.dtype.str[1:]}{list(array.shape)}" for key, array in arrays.items()} == described
    else:
        assert described == f"{len(arrays)} arrays"
    for array in arrays.values():
        assert array.dtype.kind in "ui"  # bits, never floats
        assert array.dtype.isnative
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


@pytest.mark.parametrize("name", [name for name in sorted(vectors.manifest()) if "fill" in name])
def test_tables_of_calls_are_whole(name: str) -> None:
    table = vectors.load(name.removesuffix(".npz"))
    ends = table["start"].astype(np.int64) + table["length"].astype(np.int64)
    assert ends.max() == table["values"].size
    rows = list(vectors.calls(name.removesuffix(".npz")))
    assert len(rows) == table["seed"].size
    assert sum(len(row.expected) for row in rows) == int(table["length"].sum())
    assert str(rows[0])


def test_the_tables_cover_what_the_suite_asks_of_them() -> None:
    assert set(vectors.load_json("rng_big")) == BIG
    names = [row["name"] for row in vectors.load_json("dtype_table")["dtypes"]]
    assert names == [dtype.name for dtype in DType]
    casts = vectors.load("dtype_cast_scalar")
    scalars = [dtype.name for dtype in DType][:13]
    assert set(casts) == {f"in_{s}" for s in scalars} | {f"{s}__to__{t}" for s in scalars for t in scalars}


def _copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    where = tmp_path / "v1"
    shutil.copytree(vectors.folder(), where)
    monkeypatch.setattr(vectors, "folder", lambda: where)
    for cached in (vectors.manifest, vectors.load, vectors.load_json):
        cached.cache_clear()
    return where


@pytest.fixture(autouse=True)
def _fresh_caches() -> None:
    for cached in (vectors.manifest, vectors.load, vectors.load_json):
        cached.cache_clear()


def test_one_changed_bit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = _copy(tmp_path, monkeypatch)
    vectors.load("rng_gumbel_fill")
    vectors.load.cache_clear()
    content = bytearray((where / "rng_gumbel_fill.npz").read_bytes())
    content[len(content) // 2] ^= 1
    (where / "rng_gumbel_fill.npz").write_bytes(content)
    with pytest.raises(vectors.VectorError, match=r"rng_gumbel_fill\.npz: SHA-256"):
        vectors.load("rng_gumbel_fill")


def test_a_file_that_is_missing_or_unknown_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = _copy(tmp_path, monkeypatch)
    (where / "rng_big.json").unlink()
    with pytest.raises(vectors.VectorError, match="cannot be read"):
        vectors.load_json("rng_big")
    np.savez(where / "extra.npz", a=np.zeros(3, np.uint8))
    with pytest.raises(vectors.VectorError, match="not in the manifest"):
        vectors.load("extra")


def test_nothing_in_the_module_writes() -> None:
    source = Path(vectors.__file__).read_text(encoding="utf-8")
    for call in ("write_bytes", "write_text", "savez", "tofile", "open("):
        assert call not in source.replace("np.load(", ""), f"vectors.py must not write: {call}"
