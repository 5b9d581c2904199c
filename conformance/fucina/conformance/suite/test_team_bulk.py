"""No bit depends on the team: bulk functions on 1, 2, 3, 5 and 8 participants, cut anyhow."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import assert_bits, assert_raises
from fucina.conformance.suite.blocks import (
    FORMATS,
    MAY_REJECT,
    SLOW_ENCODERS,
    WITH_IMPORTANCE,
    as_bytes,
    gaussian,
    sizes,
)
from fucina.conformance.suite.casts import SCALARS
from fucina.conformance.suite.fills import FILLS, Fill
from fucina.conformance.suite.pace import Note, quick, scaled
from fucina.conformance.suite.teams import PATIENCE, SIZES, program, threads
from fucina.spec import DType
from fucina.spec.errors import UnencodableBlock

pytestmark = pytest.mark.usefixtures("watchdog")


def counts(impl: Any) -> tuple[int, ...]:
    """Return the numbers of participants that are compared with one: all, or one if encoding takes its time."""
    return SIZES[1:] if quick(impl) else (3,)


def lengths(impl: Any, note: Note) -> tuple[int, ...]:
    """Return lengths on both sides of any threshold, and one that a team surely gets."""
    return (
        scaled(impl, note, 16_385, 31, "length of a bulk call"),
        scaled(impl, note, 300_007, 70, "length of a bulk call"),
    )


@clause("TEAM-BULK-1", "RNG-CHUNK-1")
@pytest.mark.parametrize("fill", FILLS, ids=str)
def test_fills(impl: Any, fill: Fill, record_property: Note) -> None:
    for length in lengths(impl, record_property):
        for first in (0, 1, 2**40 + 3) if fill.counted else (0,):
            with threads(impl, 1):
                expected = fill(impl, 97, length, first=first)
            for count in SIZES[1:]:
                with threads(impl, count):
                    assert_bits(fill(impl, 97, length, first=first), expected, what=f"{fill}, {count} threads")


@clause("TEAM-BULK-1", "BRIDGE-ARRAY-4")
@pytest.mark.parametrize("source", SCALARS, ids=lambda dtype: dtype.name)
def test_casts(impl: Any, source: DType, record_property: Note) -> None:
    length = scaled(impl, record_property, 600_011, 70, "length of a cast")
    width = np.dtype(impl.dtype.storage(source)).itemsize
    noise = np.random.default_rng(5).integers(0, 256, length * width, np.uint8)
    if source is DType.bool:
        noise &= 1
    values = noise.view(impl.dtype.storage(source))
    for target in SCALARS:
        with threads(impl, 1):
            expected = impl.dtype.cast_array(source, target, values)
        for count in SIZES[1:] if target in (DType.f32, DType.f8_e4m3) else (3,):
            with threads(impl, count):
                got = impl.dtype.cast_array(source, target, values)
            assert_bits(got, expected, what=f"{source.name} -> {target.name}, {count} threads")


@clause("TEAM-BULK-1", "BLOCK-CHUNK-1")
@pytest.mark.parametrize("dtype", FORMATS, ids=lambda dtype: dtype.name)
def test_blocks(impl: Any, dtype: DType, record_property: Note) -> None:
    elements, _ = sizes(dtype)
    slow = dtype in SLOW_ENCODERS
    most = scaled(impl, record_property, 40_000 if slow else 200_000, 512, "values of a bulk call")
    rows = most // 512
    values = gaussian(rows * 512 // elements * elements).reshape(rows, 512)
    options = {"imatrix": np.linspace(0.5, 2.0, 512, dtype=np.float32)} if dtype in WITH_IMPORTANCE else {}
    with threads(impl, 1):
        blocks = impl.quant.quantize(dtype, values, **options)
        many = np.tile(blocks, (4, 1)) if quick(impl) else blocks
        back = impl.quant.dequantize(dtype, many)
        indices = np.arange(len(many))[::-1] // 2 * 2
        some = impl.quant.dequantize_rows(dtype, many, 512, indices)
    assert some.tobytes() == back.reshape(len(many), 512)[indices].tobytes()
    for count in counts(impl):
        with threads(impl, count):
            assert_bits(
                as_bytes(impl.quant.quantize(dtype, values, **options)),
                as_bytes(blocks),
                what=f"quantize {dtype.name}, {count} threads",
            )
            assert_bits(impl.quant.dequantize(dtype, many), back, what=f"dequantize {dtype.name}, {count} threads")
            got = impl.quant.dequantize_rows(dtype, many, 512, indices)
            assert_bits(got, some, what=f"dequantize_rows {dtype.name}, {count} threads")


def _raw_work(impl: Any, ctx: Any, x: Any, y: Any) -> dict[str, Callable[[], Any]]:
    """Return every operation on raw tensors that a team may share, on two matrices."""
    rows, cols = tuple(x.shape)
    turned = x.view_with_strides((cols, rows), (1, cols))
    row = y.view_with_strides((cols,), (1,))
    work: dict[str, Callable[[], Any]] = {
        name: partial(getattr(ctx, name), x, y) for name in ("add", "sub", "mul", "div")
    }
    work |= {
        "add of a turned one": lambda: ctx.add(turned, turned),
        "mul of a row": lambda: ctx.mul(x, row),
        "sum": lambda: ctx.sum(x),
        "sum down": lambda: ctx.sum(x, 0),
        "sum across": lambda: ctx.sum(x, 1),
        "sum of a turned one": lambda: ctx.sum(turned, 0),
        "clone": lambda: ctx.clone(turned),
        "materialize": lambda: ctx.materialize(ctx.broadcast_to(row, (rows, cols))),
        "add_in_place": lambda: _changed(x, "add_in_place", y),
        "fill": lambda: _changed(x, "fill", y.view_with_strides((1,), (1,)).item()),
    }
    if x.dtype is not DType.i32:
        work |= {"scale": lambda: ctx.scale(x, 0.3), "scale_in_place": lambda: _changed(x, "scale_in_place", 0.3)}
    work |= {f"cast to {target.name}": partial(ctx.cast, x, target) for target in (DType.f16, DType.f64, DType.u8)}
    return work


def _changed(x: Any, change: str, by: Any) -> Any:
    made = x.clone()
    getattr(made, change)(by)
    return made


@clause("TEAM-BULK-1", "CONTEXT-ARITH-1", "CONTEXT-SUM-1", "CONTEXT-SCALE-1", "CONTEXT-CAST-1", "TENSOR-COPY-1")
@pytest.mark.parametrize(
    "dtype", [DType.f16, DType.bf16, DType.f32, DType.f64, DType.i32], ids=lambda dtype: dtype.name
)
def test_raw_operations(impl: Any, dtype: DType, record_property: Note) -> None:
    rows = scaled(impl, record_property, 701, 7, "rows of a matrix")
    cols = scaled(impl, record_property, 523, 11, "columns of a matrix")
    values = np.random.default_rng(8).uniform(1.0, 90.0, (2, rows * cols))
    kind = impl.internal.tensor_mod.TensorOf(dtype)
    given = [impl.dtype.cast_array(DType.f64, dtype, row.copy()) for row in values]
    with impl.ExecContext() as ctx:
        x, y = (kind.from_storage_slice((rows, cols), one) for one in given)
        work = _raw_work(impl, ctx, x, y)
        with threads(impl, 1):
            expected = {name: bytes(call().data_const()) for name, call in work.items()}
        for count in SIZES[1:]:
            with threads(impl, count):
                for name, call in work.items():
                    assert bytes(call().data_const()) == expected[name], (
                        f"TEAM-BULK-1: {name} of {dtype.name}: other bits from {count} threads"
                    )


@clause("TEAM-THREADS-1", "TEAM-BULK-1")
def test_two_contexts_on_two_threads(impl: Any) -> None:
    text = """
import threading
n = 300_001 if "fast" in fucina.__name__ else 101
values = np.arange(n, dtype=np.float32)
def work():
    with fucina.ExecContext() as ctx:
        with ctx.from_slice((n,), values) as x, ctx.add(x, x) as a, ctx.scale(x, 0.1) as b, ctx.sum(x) as c:
            return b"".join(bytes(t.data_const()) for t in (a, b, c))
fucina.parallel.set_max_threads(3)
expected, got = work(), []
threads = [threading.Thread(target=lambda: [got.append(work()) for _ in range(10)]) for _ in range(2)]
for t in threads: t.start()
for t in threads: t.join()
print(len(got), all(g == expected for g in got))
"""
    assert program(impl, text).split() == ["20", "True"]


def refused(impl: Any, dtype: DType) -> Any:
    """Find values that the encoder refuses."""
    for scale in (1e15, 1e18, 1e20, 1e25, 1e30):
        values = gaussian(256, seed=2, scale=scale)
        try:
            impl.quant.quantize(dtype, values)
        except UnencodableBlock:
            return values
    raise AssertionError(f"{dtype.name} refuses nothing")


@clause("TEAM-BULK-1", "BLOCK-REJECT-1")
@pytest.mark.parametrize("dtype", [d for d in MAY_REJECT if d not in (DType.iq1_s, DType.iq1_m)], ids=lambda d: d.name)
def test_the_first_block_that_cannot_be_encoded_is_named(impl: Any, dtype: DType, record_property: Note) -> None:
    rows = scaled(impl, record_property, 96, 4, "blocks")
    values = gaussian(rows * 256).reshape(rows, 256)
    bad = [rows // 4, rows // 4 + 1, rows // 2, rows - 1]
    values[bad] = refused(impl, dtype)
    out = np.zeros(rows * sizes(dtype)[1], np.uint8)
    for count in SIZES if quick(impl) else counts(impl):
        with threads(impl, count):
            assert_raises(
                UnencodableBlock,
                "BLOCK-REJECT-1",
                lambda: impl.quant.quantize(dtype, values, out=out),
                shows=[f"[{bad[0]}, 0]"],
                out=out,
            )


@clause("TEAM-BULK-1", "BLOCK-REJECT-1")
@pytest.mark.parametrize("dtype", [DType.iq2_xs, DType.iq3_s], ids=lambda dtype: dtype.name)
def test_the_first_block_is_named_where_later_ones_are_found_later(
    impl: Any, dtype: DType, record_property: Note
) -> None:
    # Searches are slow, so a worker has the second piece before the caller finds the bad block at the end of the first;
    # what the worker finds at the end of its own comes after that.
    rows, period = scaled(impl, record_property, 1024, 4, "blocks"), 32 if quick(impl) else 2
    values = gaussian(rows * 256).reshape(rows, 256)
    values[period - 1 :: period] = refused(impl, dtype)
    out = np.zeros(rows * sizes(dtype)[1], np.uint8)
    for count in (1, *[2] * 30, *[8] * 30) if quick(impl) else (3,):
        with threads(impl, count):
            assert_raises(
                UnencodableBlock,
                "BLOCK-REJECT-1",
                lambda: impl.quant.quantize(dtype, values, out=out),
                shows=[f"[{period - 1}, 0]"],
                out=out,
            )


@clause("TEAM-BULK-2")
def test_importing_starts_no_thread(impl: Any) -> None:
    if not os.path.isdir("/proc/self/task"):
        pytest.skip("the threads of a process are counted in /proc")
    # numpy comes first: its own threads are not ours
    text = f"""
import os, sys, threading
sys.path[:0] = {sys.path!r}
import numpy as np
def count(): return len(os.listdir("/proc/self/task"))
before = count()
import {impl.__name__} as fucina
print(before, count(), threading.active_count())
fucina.rng.gaussian_fill(1, np.zeros(50, np.float32), 1.0)
pool = fucina.thread_mod.Pool(max_workers=3)
worker = fucina.thread_mod.OneShotWorker()
pool.parallel_chunks([1], lambda task: None)
print(count())
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    numbers = [int(word) for word in done.stdout.split()]
    assert numbers[0] == numbers[1] == numbers[3]
    assert numbers[2] == 1


@clause("TEAM-BULK-1", "TEAM-THREADS-1")
def test_two_threads_fill_and_cast_at_once(impl: Any) -> None:
    text = """
import threading
n = 300_001 if "fast" in fucina.__name__ else 101
def work():
    out = np.zeros(n, np.float32)
    fucina.rng.gaussian_fill(3, out, 1.0)
    return out.tobytes() + fucina.dtype.cast_array(fucina.DType.f32, fucina.DType.bf16, out).tobytes()
fucina.parallel.set_max_threads(3)
expected, got = work(), []
threads = [threading.Thread(target=lambda: [got.append(work()) for _ in range(10)]) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print(len(got), all(g == expected for g in got))
"""
    assert program(impl, text).split() == ["40", "True"]
