"""The counting of the peer comparison and of the weights report, on answers known by hand."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

import fucina.fast as fucina
from fucina.spec import DType
from tools.peers import samples

pytest.importorskip("gguf", reason="the peer is in the group of the session peers")
pytest.importorskip("safetensors", reason="the reader is in the group of the session weights")
from tools.peers import __main__ as peers
from tools.weights.__main__ import Figures, Sums


def _f32(values: list[list[float]]) -> npt.NDArray[np.float32]:
    return np.array(values, np.float32)


def test_values_are_compared_by_bits_and_nan_by_class() -> None:
    ours = _f32([[0.0, 1.0], [np.nan, 2.0], [3.0, 4.0]])
    theirs = _f32([[-0.0, 1.0], [-np.nan, 2.0], [3.0, np.nan]])
    assert peers.different_values(ours, theirs) == 2  # the sign of zero; a NaN against a number


def test_bytes_are_counted_by_block() -> None:
    ours = np.zeros((3, 4), np.uint8)
    theirs = ours.copy()
    theirs[1, :2] = 1
    assert peers.different_bytes(ours, theirs) == 1
    assert peers.different_bytes(ours, theirs.reshape(-1)) == 1


@pytest.mark.parametrize("dtype", samples.BLOCKS, ids=lambda d: d.name)
def test_special_scales_reach_nan_and_infinity(dtype: DType) -> None:
    made = samples.blocks(dtype, np.zeros((1, 256), np.float32))["special scales"]
    values = fucina.quant.dequantize(dtype, np.ascontiguousarray(made))
    if dtype.name in ("mxfp4", "nvfp4"):  # no scale of theirs is NaN
        assert np.isfinite(values).all() or dtype.name == "mxfp4"
        return
    assert np.isnan(values).any()
    assert np.isinf(values).any() or dtype.name == "q8_1"


def test_rows_are_finite_and_no_group_is_zero() -> None:
    for rows in samples.rows().values():
        assert np.isfinite(rows).all()
        assert np.abs(rows.reshape(-1, 32)).max(axis=1).min() > 2.0**-125


def test_sums_of_errors() -> None:
    sums = Sums()
    sums.add(_f32([[3.0, 4.0]]), _f32([[3.0, 3.0]]))
    sums.add(_f32([[0.0, 5.0]]), _f32([[1.0, 5.0]]))
    assert (sums.tensors, sums.weights, sums.largest) == (2, 4, 1.0)
    assert sums.plain == math.sqrt(2 / 4)
    assert sums.relative == math.sqrt(2 / 50)


def test_figures_agree_with_the_library() -> None:
    values = np.random.default_rng(3).standard_normal((4, 512), np.float32)
    figures = Figures(DType.q4_k)
    figures.measure(values)
    own = fucina.quant.error(DType.q4_k, values)
    assert figures.bits == own.bits_per_weight == 4.5
    assert figures.fitting.plain == pytest.approx(own.rmse, rel=1e-12)
    assert figures.fitting.largest == own.max_error
    assert figures.common == figures.fitting
