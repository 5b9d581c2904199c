"""The GIL is released by bulk functions: another thread runs Python while one of them computes."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.suite.blocks import gaussian
from fucina.conformance.suite.pace import Note, quick, scaled
from fucina.conformance.suite.teams import threads
from fucina.spec import DType

pytestmark = pytest.mark.usefixtures("watchdog")

ATTEMPTS = 300
"""Calls after which nobody else has had a turn: the first is enough on a machine with a core to spare."""


def others_run_during(impl: Any, call: Callable[[], Any]) -> bool:
    """Say whether another thread ran Python within a call.

    The other one waits for the GIL all the time, and the interpreter takes it from nobody, so it is the call that lets
    go of it.  An implementation that is not quick may be written in Python: it is interrupted between its instructions.
    """
    ticks: list[float] = []
    stop = threading.Event()

    def tick() -> None:
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0)  # gives the GIL back

    other, interval = threading.Thread(target=tick), sys.getswitchinterval()
    other.start()
    sys.setswitchinterval(1000.0 if quick(impl) else 1e-4)
    try:
        for _ in range(ATTEMPTS):
            ticks.clear()
            start = time.perf_counter()
            call()
            end = time.perf_counter()
            if any(start < at < end for at in ticks):
                return True
        return False
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        other.join()


def check(impl: Any, name: str, call: Callable[[], Any]) -> None:
    for count in (1, 3):
        with threads(impl, count):
            assert others_run_during(impl, call), f"TEAM-THREADS-1: {name} on {count} threads keeps the GIL"


@clause("TEAM-THREADS-1", "RNG-CHUNK-1", "BRIDGE-ARRAY-1")
@pytest.mark.parametrize("name", ["gaussian_fill", "randint_fill", "randperm_fill", "cast_array"])
def test_streams_and_casts(impl: Any, name: str, record_property: Note) -> None:
    length = scaled(impl, record_property, 1 << 20, 500, "elements of a bulk call")
    out, whole = np.ones(length, np.float32), np.zeros(length, np.int64)
    calls = {
        "gaussian_fill": lambda: impl.rng.gaussian_fill(1, out, 1.0),
        "randint_fill": lambda: impl.rng.randint_fill(1, whole, -5, 9),
        "randperm_fill": lambda: impl.rng.randperm_fill(1, whole),
        "cast_array": lambda: impl.dtype.cast_array(DType.f32, DType.f8_e4m3, out),
    }
    check(impl, name, calls[name])


@clause("TEAM-THREADS-1", "BLOCK-CHUNK-1")
@pytest.mark.parametrize("name", ["quantize", "dequantize", "dequantize_rows"])
def test_blocks(impl: Any, name: str, record_property: Note) -> None:
    rows = scaled(impl, record_property, 4096, 4, "rows of blocks")
    values = gaussian(rows * 256).reshape(rows, 256)
    blocks = impl.quant.quantize(DType.q8_0, values)
    calls = {
        "quantize": partial(impl.quant.quantize, DType.q8_0, values),
        "dequantize": partial(impl.quant.dequantize, DType.q8_0, blocks),
        "dequantize_rows": partial(impl.quant.dequantize_rows, DType.q8_0, blocks, 256, np.arange(rows)),
    }
    check(impl, name, calls[name])


@clause("TEAM-THREADS-1", "CONTEXT-OP-1", "TENSOR-COPY-1")
@pytest.mark.parametrize("name", ["add", "scale", "sum", "cast", "clone", "add_in_place", "scale_in_place", "copy_to"])
def test_raw_tensors(impl: Any, name: str, record_property: Note) -> None:
    side = scaled(impl, record_property, 1536, 12, "rows of a matrix")
    out = np.zeros(side * side, np.float32)
    with (
        impl.ExecContext() as ctx,
        ctx.from_slice((side, side), np.ones(side * side, np.float32)) as x,
        x.view_with_strides((side, side), (1, side)) as turned,
        x.clone() as y,
    ):
        calls = {
            "add": lambda: ctx.add(x, x),
            "scale": lambda: ctx.scale(x, 0.5),
            "sum": lambda: ctx.sum(turned),
            "cast": lambda: ctx.cast(x, DType.f8_e4m3),
            "clone": lambda: ctx.clone(turned),
            "add_in_place": lambda: y.add_in_place(x),
            "scale_in_place": lambda: y.scale_in_place(1.0),
            "copy_to": lambda: turned.copy_to(out),
        }
        check(impl, name, calls[name])


@clause("TEAM-THREADS-1", "POLICY-DOT-1", "POLICY-SORT-1", "POLICY-ROWS-1", "POLICY-DROPOUT-1")
@pytest.mark.parametrize("name", ["dot", "dot of a vector", "sort", "argmax", "top_k", "get_rows", "dropout"])
def test_tensors_with_tags(impl: Any, name: str, record_property: Note) -> None:
    side = scaled(impl, record_property, 1024, 12, "rows of a matrix")
    with impl.ExecContext() as ctx, ctx.exec_scope(), impl.Tensor("a", "b").rand(ctx, (side, side), 1) as x:
        few = x.narrow(ctx, "a", 0, min(side, 32))
        other, row = few.reshape(ctx, few.shape, ("c", "b")), impl.Tensor("b").rand(ctx, (side,), 2)
        calls = {
            "dot": lambda: few.dot(ctx, other),
            "dot of a vector": lambda: x.dot(ctx, row),
            "sort": lambda: x.sort(ctx, "b"),
            "argmax": lambda: x.argmax(ctx, "a"),
            "top_k": lambda: x.top_k(ctx, "b", 5),
            "get_rows": lambda: x.get_rows(ctx, range(side)),
            "dropout": lambda: x.dropout(ctx, 0.3, 4),
        }
        with row:
            check(impl, name, lambda: calls[name]().deinit())
