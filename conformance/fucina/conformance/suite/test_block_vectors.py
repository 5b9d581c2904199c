"""Each block format against vectors of software that is not ours: decoders, encoders, and rows that aim at one step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause, vectors
from fucina.conformance.compare import assert_bits
from fucina.conformance.suite.blocks import (
    CHOSEN_ROWS,
    FORMATS,
    MAY_REJECT,
    SEARCHES,
    SLOW_ENCODERS,
    Case,
    as_bytes,
    assert_blocks,
    cases,
    clause_of,
    encode,
    gaussian,
    sizes,
)
from fucina.conformance.suite.pace import Note, quick
from fucina.spec import DType
from fucina.spec.errors import UnencodableBlock

each_decoder = [pytest.param(d, id=d.name, marks=clause(clause_of(d, 1))) for d in FORMATS]
each_encoder = [pytest.param(d, id=d.name, marks=clause(clause_of(d, 2), *SEARCHES.get(d, ()))) for d in FORMATS]


def _dtype(parameter: Any) -> DType:
    found: DType = parameter.values[0]
    return found


with_hard_rows = [p for p in each_encoder if cases(_dtype(p), "hard")]
disputed = [p for p in each_encoder if cases(_dtype(p), "disputed")]


def _decoded(impl: Any, dtype: DType, blocks: Any, expected: Any, what: str) -> None:
    got = impl.quant.dequantize(dtype, blocks)
    assert_bits(got, expected, nan="any", dtype=DType.f32, what=f"{dtype.name}, {what}", clause=clause_of(dtype, 1))


@clause("BLOCK-DECODE-1", "BLOCK-TABLE-1", "NUM-NAN-2")
@pytest.mark.parametrize("dtype", each_decoder)
def test_decode(impl: Any, dtype: DType) -> None:
    table = vectors.load(f"block_decode_{dtype.name}")
    _decoded(impl, dtype, table["blocks"], table["values_bits"], "ordinary scales (block, element)")


@clause("BLOCK-DECODE-1", "NUM-NAN-2", "NUM-ARITH-1")
@pytest.mark.parametrize("dtype", each_decoder)
def test_decode_special_scales(impl: Any, dtype: DType) -> None:
    table = vectors.load(f"block_decode_{dtype.name}")
    _decoded(impl, dtype, table["special_blocks"], table["special_values_bits"], "special scales (block, element)")


def _encoded(impl: Any, dtype: DType, case: Case, what: str, **options: Any) -> None:
    got = encode(impl, dtype, case.rows, **options)
    assert_blocks(got[case.binds], case.blocks[case.binds], dtype, what)


def _sampled(impl: Any, dtype: DType, case: Case, note: Note) -> Case:
    """Return every row for a quick implementation, else a fixed sample; ``--slow`` has a test of all rows."""
    few = SLOW_ENCODERS.get(dtype)
    if few is None or quick(impl):
        return case
    binding = np.flatnonzero(case.binds.reshape(len(case.rows), -1).any(axis=1))
    spread = binding[np.linspace(0, len(binding) - 1, few).astype(int)]
    chosen = np.union1d(spread, np.array(CHOSEN_ROWS.get(dtype, ()), int))
    note("note", f"{dtype.name}: {len(chosen)} of {len(binding)} rows; all of them with --slow")
    return case.of(chosen)


@clause("BLOCK-ENCODE-1", "BLOCK-ROUND-1", "BLOCK-SCAN-1", "NUM-ARITH-1")
@pytest.mark.parametrize("dtype", each_encoder)
def test_encode(impl: Any, dtype: DType, record_property: Note) -> None:
    case = cases(dtype, "blocks")
    assert case is not None
    _encoded(impl, dtype, _sampled(impl, dtype, case, record_property), "ordinary rows")


@clause("BLOCK-ENCODE-1")
@pytest.mark.slow
@pytest.mark.parametrize("dtype", each_encoder)
def test_encode_every_row(impl: Any, dtype: DType) -> None:
    case = cases(dtype, "blocks")
    assert case is not None
    _encoded(impl, dtype, case, "every row")


def _kills(dtype: DType) -> list[str]:
    """Return, for each hard row, the wrong step that it betrays."""
    return vectors.load(f"block_encode_{dtype.name}")["hard_kills"].tobytes().decode("ascii").split("\n")


@clause("BLOCK-ENCODE-1", "BLOCK-ROUND-1", "BLOCK-SCAN-1")
@pytest.mark.parametrize("dtype", with_hard_rows)
def test_encode_rows_that_aim_at_one_step(impl: Any, dtype: DType) -> None:
    case, kills = cases(dtype, "hard"), _kills(dtype)
    assert case is not None
    assert len(kills) == len(case.rows)
    for row, kill in enumerate(kills):
        _encoded(impl, dtype, case.of(np.array([row])), f"row {row}, which betrays: {kill}")


@clause("BLOCK-SCAN-1", "BLOCK-ENCODE-1")
@pytest.mark.parametrize("dtype", disputed)
def test_a_reciprocal_that_overflows_counts_as_zero(impl: Any, dtype: DType) -> None:
    case = cases(dtype, "disputed")
    assert case is not None
    got = encode(impl, dtype, case.rows)
    if dtype in (DType.q4_0, DType.q5_0, DType.q2_0):
        assert_blocks(got, case.blocks, dtype, "a reciprocal that overflows")
        return
    # the original's codes are garbage there: with the reciprocal 0 a block is that of zeros
    tops = np.abs(case.rows.reshape(len(got), -1)).max(axis=1)
    scales = tops if dtype is DType.tq2_0 else tops / np.float32(127)
    tiny = (tops > 0) & (scales < 2.0**-128)
    assert tiny.any()
    zeros = encode(impl, dtype, np.zeros((tiny.sum(), sizes(dtype)[0]), np.float32))
    assert_blocks(got[tiny], zeros, dtype, "a reciprocal that overflows")


@clause("BLOCK-IQ4NL-2", "BLOCK-SEARCH-4", "BLOCK-ARG-1")
def test_iq4_nl_without_its_search(impl: Any, record_property: Note) -> None:
    case = cases(DType.iq4_nl, "plain")
    assert case is not None
    case = _sampled(impl, DType.iq4_nl, case, record_property)
    got, expected = encode(impl, DType.iq4_nl, case.rows, search=False), case.blocks.copy()
    degenerate = np.abs(case.rows.reshape(len(got), -1)).max(axis=1) < np.float32(1e-15)
    expected[degenerate, 2:] = 0x88  # the original leaves there what stood in its array
    assert_blocks(got[case.binds], expected[case.binds], DType.iq4_nl, "search=False")


@clause("BLOCK-TQ20-2", "BLOCK-SCALE-1")
def test_tq2_0_with_a_given_scale(impl: Any) -> None:
    case = cases(DType.tq2_0, "scaled")
    assert case is not None
    scales = vectors.load("block_encode_tq2_0")["scaled_d_bits"].view(np.float32)
    assert len(scales) == len(case.rows)
    for row, scale in enumerate(scales):
        _encoded(impl, DType.tq2_0, case.of(np.array([row])), f"scale={scale}, row {row}", scale=float(scale))


@clause("BLOCK-IQ3S-2")
def test_a_group_of_zeros_keeps_its_place(impl: Any) -> None:
    # the original stores what follows a group of zeros in its place, so no vector can bind here
    values = gaussian(256, seed=3, scale=1.0).reshape(8, 32)
    for silent in ((0,), (2, 3), (0, 1, 2, 5), (7,)):
        given = values.copy()
        given[list(silent)] = 0
        blocks = impl.quant.quantize(DType.iq3_s, given.reshape(-1))
        decoded = impl.quant.dequantize(DType.iq3_s, blocks).reshape(8, 32).astype(np.float64)
        for group in range(8):
            what = f"BLOCK-IQ3S-2: group {group} with the groups {silent} zero"
            if group in silent:
                assert not blocks["qs"][0, 8 * group : 8 * group + 8].any(), f"{what}: codes {blocks['qs']}"
                assert not blocks["signs"][0, 4 * group : 4 * group + 4].any(), f"{what}: signs {blocks['signs']}"
                assert np.abs(decoded[group]).max() < 0.1 * np.abs(values).max(), f"{what} decodes to {decoded[group]}"
            else:
                error = np.sqrt(np.mean((decoded[group] - given[group]) ** 2) / np.mean(given[group] ** 2))
                assert error < 0.3, f"{what}: relative error {error:.2f}"


@clause("BLOCK-IQ3S-2")
def test_groups_of_zeros_in_lockstep(impl: Any, judge: Any) -> None:
    for silent in ((0,), (1, 2, 6)):
        values = gaussian(256, seed=5).reshape(8, 32)
        values[list(silent)] = 0
        got, expected = (encode(module, DType.iq3_s, values.reshape(-1)) for module in (impl, judge))
        assert_blocks(got, expected, DType.iq3_s, f"groups {silent} zero")


@clause("BLOCK-ENCODE-1", "BLOCK-REJECT-1")
@pytest.mark.parametrize("dtype", each_encoder)
def test_rows_out_of_the_normal_range_have_one_answer(impl: Any, dtype: DType, judge: Any) -> None:
    case = cases(dtype, "blocks")
    assert case is not None
    odd = np.flatnonzero(~case.binds.reshape(len(case.rows), -1).any(axis=1))
    odd = odd[: 2 if dtype in SLOW_ENCODERS else 12]
    for row in case.rows[odd]:
        answers = []
        for module in (impl, judge):
            try:
                answers.append(as_bytes(module.quant.quantize(dtype, row)).tobytes())
            except UnencodableBlock:
                answers.append(b"no answer")
        assert dtype in MAY_REJECT or b"no answer" not in answers, f"{clause_of(dtype, 2)}: {dtype.name} refuses a row"
        assert answers[0] == answers[1], f"{clause_of(dtype, 2)}: {dtype.name} has two answers to {row[:4]}..."
