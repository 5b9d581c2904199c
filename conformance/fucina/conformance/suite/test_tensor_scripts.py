"""Traces of the original: shapes, constructions, views, references, operations in place, ranges, blocks."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause, vectors
from fucina.conformance.suite.raw_scripts import RawScript, raises
from fucina.spec import DType

GROUPS = 10


def _replay(impl: Any, name: str, group: int = 0, groups: int = 1) -> None:
    scripts = vectors.load_json(name)["scripts"][group::groups]
    assert scripts
    for script in scripts:
        RawScript(impl, script).run()


@clause("TENSOR-TYPE-1", "TENSOR-GEOM-1", "TENSOR-GEOM-2", "TENSOR-VIEW-1", "TENSOR-VIEW-2", "TENSOR-VIEW-3")
@clause("TENSOR-VIEW-4", "TENSOR-TAKE-1", "TENSOR-COPY-1", "TENSOR-COPY-2", "TENSOR-COPY-3", "TENSOR-RANK-1")
@pytest.mark.parametrize("group", range(GROUPS))
def test_view_chains(impl: Any, group: int) -> None:
    _replay(impl, "tensor_view_chains", group, GROUPS)


@clause("TENSOR-COPY-2")
def test_copy_ranges(impl: Any) -> None:
    _replay(impl, "tensor_copy_ranges")


@clause("TENSOR-NEW-1", "TENSOR-NEW-2", "TENSOR-NEW-3", "TENSOR-NEW-4", "TENSOR-NEW-5", "TENSOR-ADD-1")
@clause("TENSOR-SCALE-1", "TENSOR-FILL-1", "TENSOR-DATA-1")
def test_construction_and_in_place(impl: Any) -> None:
    _replay(impl, "tensor_construct_inplace")


@clause("STORAGE-REF-1", "TENSOR-VIEW-1", "TENSOR-TAKE-1", "TENSOR-LIFE-1")
def test_references(impl: Any) -> None:
    _replay(impl, "tensor_refs")


@clause("TENSOR-BLOCK-1", "TENSOR-BLOCK-2")
def test_block_views(impl: Any) -> None:
    _replay(impl, "tensor_block_views")


@clause("SHAPE-COUNT-1", "SHAPE-COUNT-2", "SHAPE-RULE-1")
def test_counts(impl: Any) -> None:
    shape_mod = impl.internal.shape_mod
    table = vectors.load_json("shape_counts")
    for row in table["elementCount"]:
        _same(row, "count", partial(lambda row: shape_mod.element_count(row["shape"]), row))
    for row in table["storageElementCount"]:
        _same(
            row,
            "count",
            partial(lambda row: shape_mod.storage_element_count(DType(row["dtype"]), tuple(row["shape"])), row),
        )


@clause("SHAPE-TYPE-1", "SHAPE-RULE-1")
def test_shapes(impl: Any) -> None:
    for row in vectors.load_json("shape_counts")["Shape"]:
        make = {"init": impl.internal.shape_mod.Shape.init, "initStrides": impl.internal.shape_mod.Shape.init_strides}
        _same(row, "dims", partial(lambda row, make: list(make[row["fn"]](row["values"])), row, make))
        if "error" not in row:
            shape = make[row["fn"]](np.array(row["values"], dtype=object).tolist())
            assert (shape.len, list(shape.slice()), list(shape.dims)) == (row["len"], row["dims"], row["dims"])
            assert [shape.at(i) for i in range(shape.len)] == row["dims"]


def _same(row: dict[str, Any], key: str, call: Any) -> None:
    error = raises(call)
    assert error == row.get("error"), f"{row}: got {error or 'no error'}"
    if error is None:
        assert call() == row[key], f"{row}: got {call()}"
