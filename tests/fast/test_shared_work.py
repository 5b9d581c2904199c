"""The suite's calls for teams are large enough: of each another thread has a part (clauses TEAM-BULK-1, NUM-ENV-2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

import fucina.fast as fast
from fucina.conformance.suite.blocks import FORMATS
from fucina.conformance.suite.casts import SCALARS
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
from fucina.conformance.suite.teams import threads
from fucina.fast import windows

pytestmark = pytest.mark.skipif(fast.parallel.vector_max_threads == 1, reason="this build has no team")

# one thread's work however large it is: numpy's copies and fills, a part of a copy, swaps that depend on each other
ALONE = {
    *("randperm_fill", "randperm", "fill", "copy_range_to", "from_storage_slice", "from_slice", "full", "one_hot"),
}


def groups() -> Iterator[AbstractContextManager[dict[str, Callable[[], Any]]]]:
    """Yield everything that the suite's tests of teams compute."""
    yield nullcontext(fill_calls(fast))
    for dtype in SCALARS:
        yield nullcontext(cast_calls(fast, dtype))
        yield raw_calls(fast, dtype)
    for dtype in FORMATS:
        yield nullcontext(block_calls(fast, dtype))
    yield streamed_calls(fast)
    for dtype in TAGGED:
        yield tagged_calls(fast, dtype)
    yield made_calls(fast)
    for dtype in SOME_FORMATS:
        yield rows_of_blocks_calls(fast, dtype)
    for dtype in DIFFERENTIABLE:
        yield gradient_calls(fast, dtype)


@pytest.mark.parametrize("count", [2, 8])
def test_each_call_is_shared(count: int) -> None:
    shared, alone = 0, set()
    with threads(fast, count):
        for made in groups():
            with made as work:
                for name, call in work.items():
                    before = windows.shared_calls()
                    call()
                    if windows.shared_calls() > before:
                        shared += 1
                    else:
                        alone.add(name)
    assert alone == ALONE
    assert shared > 1000
