"""No bit depends on the team: every kernel that may be shared out, at a size at which it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fucina.conformance import clause
from fucina.conformance.suite.blocks import FORMATS
from fucina.conformance.suite.casts import SCALARS
from fucina.conformance.suite.pace import quick
from fucina.conformance.suite.shared_tagged import (
    DIFFERENTIABLE,
    SOME_FORMATS,
    TAGGED,
    gradient_calls,
    made_calls,
    rows_of_blocks_calls,
    tagged_calls,
)
from fucina.conformance.suite.shared_work import block_calls, cast_calls, fill_calls, raw_calls, streamed_calls
from fucina.conformance.suite.teams import SIZES, threads
from fucina.conformance.suite.work import pattern
from fucina.spec import DType

pytestmark = pytest.mark.usefixtures("watchdog")


def compare(impl: Any, work: dict[str, Callable[[], Any]]) -> None:
    """Ask for the same bits from each number of threads; of an implementation that is not quick, from three."""
    with threads(impl, 1):
        expected = {name: pattern(call()) for name, call in work.items()}
    for count in SIZES[1:] if quick(impl) else (3,):
        with threads(impl, count):
            other = [name for name, call in work.items() if pattern(call()) != expected[name]]
        assert not other, f"TEAM-BULK-1: other bits from {count} threads: {', '.join(other)}"


@clause("TEAM-BULK-1", "RNG-CHUNK-1")
def test_fills_of_normal_and_subnormal_values(impl: Any) -> None:
    compare(impl, fill_calls(impl))


@clause("TEAM-BULK-1", "BRIDGE-ARRAY-4", "BRIDGE-SAT-1", "BRIDGE-SINGLE-1")
@pytest.mark.parametrize("source", SCALARS, ids=lambda d: d.name)
def test_casts_under_each_switch(impl: Any, source: DType) -> None:
    compare(impl, cast_calls(impl, source))


@clause("TEAM-BULK-1", "BLOCK-CHUNK-1", "BLOCK-FIGURES-1")
@pytest.mark.parametrize("dtype", FORMATS, ids=lambda d: d.name)
def test_blocks_with_each_option(impl: Any, dtype: DType) -> None:
    compare(impl, block_calls(impl, dtype))


@clause(
    "TEAM-BULK-1", "CONTEXT-OP-1", "CONTEXT-SUM-1", "CONTEXT-CAST-1", "TENSOR-COPY-1", "TENSOR-COPY-2", "TENSOR-FILL-1"
)
@pytest.mark.parametrize("dtype", SCALARS, ids=lambda d: d.name)
def test_raw_tensors(impl: Any, dtype: DType) -> None:
    with raw_calls(impl, dtype) as work:
        compare(impl, work)


@clause("TEAM-BULK-1", "CONTEXT-ARITH-1", "TENSOR-COPY-1", "BRIDGE-ARRAY-4", "BLOCK-CHUNK-1")
def test_what_no_cache_holds(impl: Any) -> None:
    with streamed_calls(impl) as work:
        compare(impl, work)


@clause("TEAM-BULK-1", "POLICY-SAME-1")
@pytest.mark.parametrize("dtype", TAGGED, ids=lambda d: d.name)
def test_tensors_with_tags(impl: Any, dtype: DType) -> None:
    with tagged_calls(impl, dtype) as work:
        compare(impl, work)


@clause("TEAM-BULK-1", "FACADE-NEW-5", "FACADE-NEW-7")
def test_constructors(impl: Any) -> None:
    with made_calls(impl) as work:
        compare(impl, work)


@clause("TEAM-BULK-1", "POLICY-TO-1", "POLICY-ROWS-1", "BLOCK-CHUNK-1")
@pytest.mark.parametrize("dtype", SOME_FORMATS, ids=lambda d: d.name)
def test_tensors_of_blocks(impl: Any, dtype: DType) -> None:
    with rows_of_blocks_calls(impl, dtype) as work:
        compare(impl, work)


@clause("TEAM-BULK-1", "AUTOGRAD-VJP-1", "AUTOGRAD-VJP-5")
@pytest.mark.parametrize("dtype", DIFFERENTIABLE, ids=lambda d: d.name)
def test_gradients(impl: Any, dtype: DType) -> None:
    with gradient_calls(impl, dtype) as work:
        compare(impl, work)
