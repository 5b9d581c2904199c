"""Bulk calls are shared out when the suite asks for it, so that it compares what several threads did (TEAM-BULK-1)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fucina.fast as fast
from fucina.conformance.suite.profiles import dispatches
from fucina.conformance.suite.teams import threads
from fucina.fast import DType, windows

pytestmark = pytest.mark.skipif(fast.parallel.vector_max_threads == 1, reason="this build has no team")

N = 1 << 19
NOISE = np.random.default_rng(4).normal(size=N).astype(np.float32)
ALONE = {"randperm_fill"}
"""Fills that one thread computes: each value depends on those before."""


@pytest.fixture(params=[2, 3])
def two_or_three(request: pytest.FixtureRequest) -> Iterator[None]:
    with threads(fast, request.param):
        yield


def shared_by(call: Callable[[], object]) -> int:
    """Return how many calls of the library another thread had a part of."""
    before = windows.shared_calls()
    call()
    return windows.shared_calls() - before


@pytest.mark.usefixtures("two_or_three")
def test_fills(fill: tuple[DType, Callable[[Any], object]], request: pytest.FixtureRequest) -> None:
    dtype, call = fill
    out = np.zeros(N, fast.dtype.storage(dtype))
    alone = any(name in request.node.name for name in ALONE)
    assert shared_by(lambda: [call(out) for _ in range(3)]) == (0 if alone else 3)


@pytest.mark.usefixtures("two_or_three")
def test_casts_and_blocks() -> None:
    blocks = fast.quant.quantize(DType.q4_0, NOISE)
    assert shared_by(lambda: fast.dtype.cast_array(DType.f32, DType.bf16, NOISE)) == 1
    assert shared_by(lambda: fast.quant.quantize(DType.q4_0, NOISE)) == 1
    assert shared_by(lambda: fast.quant.dequantize(DType.q4_0, blocks)) == 1
    rows = blocks.reshape(N // 512, -1)
    assert shared_by(lambda: fast.quant.dequantize_rows(DType.q4_0, rows, 512, np.arange(N // 512))) == 1


@pytest.mark.usefixtures("two_or_three")
@pytest.mark.parametrize("name", ["add", "sum", "cast", "clone"])
def test_raw_operations(name: str) -> None:
    with fast.ExecContext() as ctx, ctx.from_slice((N // 512, 512), NOISE) as x:
        turned = x.view_with_strides((512, N // 512), (1, 512))
        calls: dict[str, Callable[[], Any]] = {
            "add": lambda: ctx.add(x, x),
            "sum": lambda: ctx.sum(x),
            "cast": lambda: ctx.cast(x, DType.f16),
            "clone": lambda: ctx.clone(turned),
        }
        assert shared_by(lambda: calls[name]().deinit()) == 1
        turned.deinit()


def test_what_is_too_small_or_has_no_team_is_not_shared() -> None:
    small, large = np.zeros(10, np.float32), np.zeros(N, np.float32)
    with threads(fast, 2):
        assert shared_by(lambda: fast.rng.gaussian_fill(1, small, 1.0)) == 0
    with threads(fast, 1):
        assert shared_by(lambda: fast.rng.gaussian_fill(1, large, 1.0)) == 0


def test_bulk_functions_have_a_profile() -> None:
    """In fast they do use the team; the suite has to leave that open (clause TEAM-PROFILE-1)."""
    text = f"""
import numpy as np, fucina.fast as fucina
from fucina.fast import windows
fucina.parallel.set_max_threads(3)
windows.share_always(True)
fucina.rng.gaussian_fill(3, np.zeros({N}, np.float32), 1.0)
"""
    environment = {**os.environ, "FUCINA_POOL_PROFILE": "1"}
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=environment, check=True)
    (participants,) = dispatches(done.stderr)
    assert len(participants) == 3
    assert participants[0].chunks > 3
    assert sum(one.tasks > 0 for one in participants) > 1
