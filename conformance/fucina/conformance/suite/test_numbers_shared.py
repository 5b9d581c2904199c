"""The floating-point environment of the caller beside a team: no bit of what several threads compute depends on it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

from fucina.conformance import clause
from fucina.conformance.suite import environment as fpenv
from fucina.conformance.suite.blocks import FORMATS
from fucina.conformance.suite.casts import SCALARS
from fucina.conformance.suite.pace import Note, quick
from fucina.conformance.suite.raw_arithmetic import REAL
from fucina.conformance.suite.shared_tagged import (
    SOME_FORMATS,
    gradient_calls,
    made_calls,
    rows_of_blocks_calls,
    tagged_calls,
)
from fucina.conformance.suite.shared_work import block_calls, cast_calls, fill_calls, raw_calls
from fucina.conformance.suite.teams import threads
from fucina.conformance.suite.work import pattern
from fucina.spec import DType

pytestmark = pytest.mark.usefixtures("watchdog")

Work = dict[str, Callable[[], Any]]


def compare(impl: Any, work: Work, note: Note, *, flags: bool = True) -> None:
    """Ask for the bits of the default environment in each other one, and that this one stays; of flags too, or not.

    A thread inherits the environment of the one that starts it, so each environment gets a team of another size, whose
    threads are started in it.
    """
    fpenv.needed()
    modes = [mode for mode in fpenv.EVERY if mode != "nearest"]
    promised = "numbers" in impl.capabilities
    if not promised:
        note("note", "the default environment alone, because numbers is not claimed")
        modes = ["nearest"]
    elif not quick(impl):  # the tour of work.py has all of them
        note("note", f"one environment of {len(modes)}, because this implementation is not quick")
        modes = modes[-1:]
    team = "team" in impl.capabilities
    with threads(impl, 1) if team else nullcontext():
        expected = {name: pattern(call()) for name, call in work.items()}
    other, changed = [], []
    for count, mode in enumerate(modes):
        with threads(impl, 3 + count % 2) if team else nullcontext():
            for name, call in work.items():
                try:
                    with fpenv.environment(mode):
                        before = fpenv.snapshot()
                        got = call()
                        after = fpenv.snapshot()
                except fpenv.refusals(impl):
                    continue
                if pattern(got) != expected[name]:
                    other.append(f"{name} ({mode})")
                if promised and (after.control != before.control or (flags and after.flags != before.flags)):
                    changed.append(f"{name} ({mode})")
    assert not other, f"NUM-ENV-2: other bits from {len(other)} calls: {', '.join(other[:5])}"
    assert not changed, f"NUM-ENV-3: the environment after {len(changed)} calls: {', '.join(changed[:5])}"


@clause("NUM-ENV-2", "NUM-ENV-3", "RNG-CHUNK-1")
def test_fills(impl: Any, record_property: Note) -> None:
    compare(impl, fill_calls(impl), record_property)


@clause("NUM-ENV-2", "NUM-ENV-3", "BRIDGE-ARRAY-4")
@pytest.mark.parametrize("source", SCALARS, ids=lambda d: d.name)
def test_casts(impl: Any, source: DType, record_property: Note) -> None:
    compare(impl, cast_calls(impl, source), record_property)


@clause("NUM-ENV-2", "NUM-ENV-3", "BLOCK-CHUNK-1")
@pytest.mark.parametrize("dtype", FORMATS, ids=lambda d: d.name)
def test_blocks(impl: Any, dtype: DType, record_property: Note) -> None:
    compare(impl, block_calls(impl, dtype), record_property)


@clause("NUM-ENV-2", "CONTEXT-OP-1", "CONTEXT-SUM-1", "CONTEXT-CAST-1", "TENSOR-COPY-1")
@pytest.mark.parametrize("dtype", [*REAL, DType.f8_e4m3, DType.i32], ids=lambda d: d.name)
def test_raw_tensors(impl: Any, dtype: DType, record_property: Note) -> None:
    with raw_calls(impl, dtype) as work:
        compare(impl, work, record_property, flags=False)


@clause("NUM-ENV-2", "POLICY-SAME-1")
@pytest.mark.parametrize("dtype", [*REAL, DType.i32], ids=lambda d: d.name)
def test_tensors_with_tags(impl: Any, dtype: DType, record_property: Note) -> None:
    with tagged_calls(impl, dtype) as work:
        compare(impl, work, record_property, flags=False)


@clause("NUM-ENV-2", "FACADE-NEW-5", "FACADE-NEW-7")
def test_constructors(impl: Any, record_property: Note) -> None:
    with made_calls(impl) as work:
        compare(impl, work, record_property, flags=False)


@clause("NUM-ENV-2", "POLICY-TO-1", "POLICY-ROWS-1", "BLOCK-CHUNK-1")
@pytest.mark.parametrize("dtype", SOME_FORMATS, ids=lambda d: d.name)
def test_tensors_of_blocks(impl: Any, dtype: DType, record_property: Note) -> None:
    with rows_of_blocks_calls(impl, dtype) as work:
        compare(impl, work, record_property, flags=False)


@clause("NUM-ENV-2", "AUTOGRAD-VJP-1", "AUTOGRAD-VJP-5")
@pytest.mark.parametrize("dtype", [DType.f16, DType.f32], ids=lambda d: d.name)
def test_gradients(impl: Any, dtype: DType, record_property: Note) -> None:
    with gradient_calls(impl, dtype) as work:
        compare(impl, work, record_property, flags=False)
