"""The memory chapters for long: ``python -m tools.memory steps``, ``soak`` or ``cycles``.

``steps`` lets the suite's state machine drive both implementations at once, everything compared after each step.
``soak`` plays random programs for minutes; it is meant for an extension module with the sanitizers, started by
``tools.sanitized``.  ``cycles`` takes memory and gives it back a million times, in every way there is, and looks at how
much of it the process holds.

What is random depends on the number of a round and nothing else; ``--first`` goes on with other ones.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import json
import os
import platform
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from rich.console import Console

import fucina.fast as fast
import fucina.reference as reference
from fucina.conformance.suite import programs
from fucina.conformance.suite.test_memory_machine import Machine
from fucina.spec import DType
from fucina.spec.errors import FucinaError, OutOfMemory

from .fuzz_blocks import sanitizers

RECORD = Path(__file__).parents[1] / "docs" / "records" / "memory.json"
ROUND = settings(
    deadline=None, phases=[Phase.generate], database=None, print_blob=False, suppress_health_check=list(HealthCheck)
)
STEPS = 50
"""Of one program of the state machine."""
DTYPES = (DType.f32, DType.f32, DType.f64, DType.f16, DType.i32, DType.u8)
LENGTHS = (1, 3, 100, 1000, 1025, 5000, 40_000, 70_000)
IMPLEMENTATIONS: dict[str, Any] = {"fucina.fast": fast, "fucina.reference": reference}

console = Console()


class FindingError(AssertionError):
    """Two answers that must be equal are not."""


def demand(holds: bool, what: str) -> None:
    """Raise :class:`FindingError` unless it holds."""
    if not holds:
        raise FindingError(what)


# -- the suite's programs


class Counted(Machine):
    """The suite's state machine, which counts the steps that were taken and compared."""

    taken = 0

    def step(self, name: str, *arguments: Any) -> None:
        """Take a step."""
        super().step(name, *arguments)
        Counted.taken += 1


def machine_round(number: int, other: Any, examples: int) -> int:
    """Play programs of the state machine on the fast implementation; return how many steps that were."""
    factory: Any = partial(Counted, fast, other)
    factory._hypothesis_internal_use_seed = number  # what hypothesis.seed sets, which refuses what is no class
    before = Counted.taken
    run_state_machine_as_test(factory, settings=settings(ROUND, max_examples=examples, stateful_step_count=STEPS))
    return Counted.taken - before


def program_round(number: int, examples: int) -> int:
    """Play the suite's programs over storage and raw tensors, failing allocations among them."""
    taken = 0

    @seed(number)
    @settings(ROUND, max_examples=examples)
    @given(program=programs.steps)
    def play(program: list[Any]) -> None:
        nonlocal taken
        machine = programs.Machine(fast)
        for step in program:
            machine.step(step)
            taken += 1

    play()
    gc.collect()
    return taken


# -- what is too large for them: the GIL released, work shared out, other threads


def _view(rng: np.random.Generator, ctx: Any, tensor: Any, array: Any) -> tuple[Any, Any]:
    """Return a view of a tensor and of its array: cut, turned over, taken apart or repeated."""
    kind = int(rng.integers(4))
    if kind == 0:
        axis = int(rng.integers(array.ndim))
        start = int(rng.integers(array.shape[axis]))
        length = int(rng.integers(1, array.shape[axis] - start + 1))
        return ctx.narrow_axis(tensor, axis, start, length), array.take(range(start, start + length), axis)
    if kind == 1:
        order = [int(k) for k in rng.permutation(array.ndim)]
        shape, strides = [[of[k] for k in order] for of in (tensor.shape, tensor.strides)]
        return tensor.view_with_strides(shape, strides), array.transpose(order)
    if kind == 2 and tensor.is_contiguous():
        return tensor.reshape((array.size,)), array.reshape(-1)
    wide = (int(rng.integers(1, 4)), *array.shape)
    return ctx.broadcast_to(tensor, wide), np.broadcast_to(array, wide)


def _same(tensor: Any, array: Any, what: str) -> None:
    got = np.empty(tensor.len(), tensor.Element)
    tensor.copy_to(got)
    demand(got.tobytes() == np.ascontiguousarray(array).tobytes(), what)


def _operate(rng: np.random.Generator, ctx: Any, tensor: Any, array: Any) -> None:
    """Compute with a view and compare, with numpy where one rounding is all there is to it."""
    dtype = tensor.dtype
    name = ("add", "sub", "mul")[int(rng.integers(3))]
    with np.errstate(all="ignore"):
        wanted = getattr(np, {"add": "add", "sub": "subtract", "mul": "multiply"}[name])(array, array)
    result = getattr(ctx, name)(tensor, tensor)
    _same(result, wanted, f"{name} of {dtype.name} {array.shape}")
    whole = ctx.materialize(tensor)
    _same(whole, array, f"copy of {dtype.name} {array.shape}")
    axis = (None, *range(array.ndim))[int(rng.integers(array.ndim + 1))]
    one, other = ctx.sum(tensor, axis), ctx.sum(whole, axis)
    demand(np.asarray(one).tobytes() == np.asarray(other).tobytes(), f"sum of {dtype.name} {array.shape} along {axis}")
    if dtype is not DType.f64:
        wider = ctx.cast(tensor, DType.f64)
        _same(wider, array.astype(np.float64), f"cast of {dtype.name} {array.shape}")
    if result.shape == whole.shape:
        getattr(ctx, name)(result, whole, out=whole)
    for value in (result, whole, one, other):
        if rng.random() < 0.5:
            value.deinit()


def _starved(rng: np.random.Generator, ctx: Any, tensor: Any) -> bool:
    """Let an allocation fail on the way; nothing may be out that was not before."""
    pool = ctx.rt.buffers
    out = pool.outstanding_buffers()  # another thread may give something back meanwhile
    fast.internal.fail_allocation(int(rng.integers(1, 5)))
    result = None
    try:
        result = ctx.add(tensor, tensor) if rng.random() < 0.5 else ctx.sum(tensor, 0)
    except OutOfMemory:
        demand(pool.outstanding_buffers() <= out, "an operation without memory has kept some")
        return True
    finally:
        fast.internal.fail_allocation(None)
        del result
    return False


def large_round(number: int, elsewhere: ThreadPoolExecutor, done: Counter[str]) -> None:
    """Play one program on large tensors; another thread lets go of what it used."""
    rng = np.random.default_rng([2026, number])
    fast.parallel.set_max_threads(int(rng.integers(1, 4)))
    ctx = fast.ExecContext()
    ends: list[Future[None]] = []
    for _ in range(int(rng.integers(1, 5))):
        dtype = DTYPES[int(rng.integers(len(DTYPES)))]
        rank = int(rng.integers(1, 5))
        shape = tuple(int(n) for n in rng.integers(1, (200_000, 500, 60, 18)[rank - 1], rank))
        form = fast.dtype.storage(dtype)
        values = (rng.standard_normal(shape) * 9).astype(np.int8).astype(form)
        if rng.random() < 0.3:  # ends where its allocation ends
            tensor = ctx.from_borrowed_slice(shape, values, dtype)
        else:
            tensor = ctx.from_slice(shape, values, dtype)
        if rng.random() < 0.2:
            tensor, foreign = type(tensor).from_dlpack(np.asarray(tensor)), tensor
            foreign.deinit()
        array: Any = values
        for _ in range(int(rng.integers(3))):
            tensor, array = _view(rng, ctx, tensor, array)
        _operate(rng, ctx, tensor, array)
        done["operations on large tensors"] += 4
        done["operations without memory"] += _starved(rng, ctx, tensor)
        kept = np.asarray(tensor) if rng.random() < 0.5 else None
        ends.append(elsewhere.submit(_end, tensor, kept, array))
        del tensor, kept, array, values
    while ends:
        ends.pop().result()
    gc.collect()
    demand(ctx.rt.buffers.outstanding_buffers() == 0, "memory is out at the end of a program")
    ctx.deinit()


def _end(tensor: Any, kept: Any, array: Any) -> None:
    tensor.deinit()
    if kept is not None:
        demand(bool(np.array_equal(kept, array, equal_nan=kept.dtype.kind == "f")), "an array changed after deinit")


# -- the three jobs


def steps(options: argparse.Namespace) -> dict[str, Any]:
    """Drive both implementations at once until so many steps were compared."""
    number = options.first
    while Counted.taken < options.count:
        machine_round(number, reference, 200)
        number += 1
        console.print(f"{Counted.taken:,} steps")
    return {
        "steps": Counted.taken,
        "against": "fucina.reference",
        "first": options.first,
        "rounds": number - options.first,
    }


def soak(options: argparse.Namespace) -> dict[str, Any]:
    """Play random programs of every kind until the time is over."""
    done: Counter[str] = Counter()
    began, number, shown = time.monotonic(), options.first, 0.0
    elsewhere = ThreadPoolExecutor(2)
    while (spent := time.monotonic() - began) < options.minutes * 60:
        done["steps of the state machine"] += machine_round(number, None, 10)
        done["steps of the programs"] += program_round(number, 20)
        for k in range(20):
            try:
                large_round(20 * number + k, elsewhere, done)
            except (AssertionError, FucinaError):
                console.print(f"round {number}, large program {20 * number + k}")
                raise
        number += 1
        if spent > shown:
            console.print(f"{spent / 60:.1f} minutes, round {number}: {dict(done)}")
            shown = spent + 60
    minutes = round((time.monotonic() - began) / 60, 1)
    return {
        "minutes": minutes,
        "sanitizers": sanitizers(),
        "first": options.first,
        "rounds": number - options.first,
        "done": dict(done),
    }


def _resident() -> int:
    """Return how many bytes of memory the process holds."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _ways(impl: Any, ctx: Any) -> list[Callable[[int], None]]:
    """Return the ways to take memory and give it back."""
    create = impl.internal.storage_mod.BufferOf(DType.f32).create
    scratch = ctx.rt.buffers.acquire_scratch

    def told(n: int) -> None:
        ctx.empty((n,)).deinit()

    def forgotten(n: int) -> None:
        ctx.empty((n,)).clone_view()

    def seen_last_by_numpy(n: int) -> None:
        tensor = ctx.empty((n,), DType.f64)
        array = np.asarray(tensor)
        tensor.deinit()
        del array

    def by_hand(n: int) -> None:
        create(n).release()

    def leased(n: int) -> None:
        scratch("u1", n).release()

    def scoped(n: int) -> None:
        mark = ctx.open_exec_scope()
        ctx.reserve_scope_slot()
        ctx.adopt_scope_value_assume_capacity(ctx.empty((n,)), None, None)
        ctx.close_exec_scope(mark)

    return [told, forgotten, seen_last_by_numpy, by_hand, leased, scoped]


def cycles(options: argparse.Namespace) -> dict[str, Any]:
    """Take and give back on each implementation; look at the memory ten times on the way."""
    found: dict[str, Any] = {}
    for name, impl in IMPLEMENTATIONS.items():
        with impl.ExecContext() as ctx:
            ways = _ways(impl, ctx)
            held = []
            for part in range(10):
                for k in range(options.count // 10):
                    ways[k % len(ways)](LENGTHS[k // len(ways) % len(LENGTHS)])
                gc.collect()
                held.append(_resident())
                console.print(f"{name}: {(part + 1) * options.count // 10:,} cycles, {held[-1]:,} bytes")
            demand(ctx.rt.buffers.outstanding_buffers() == 0, "memory is out")
        found[name] = {"cycles": options.count, "resident": held}
        growth = held[-1] - held[0]
        demand(growth < 1 << 20, f"{name} holds {growth:,} bytes more than after the first tenth")
    return found


def main() -> int:
    """Do a job and put it into the record."""
    parser = argparse.ArgumentParser(prog="python -m tools.memory", description=__doc__)
    parser.add_argument("job", choices=("steps", "soak", "cycles"))
    parser.add_argument("--count", type=int, help="steps or cycles; default: 100000 and 1000000")
    parser.add_argument("--minutes", type=float, default=30.0, help="of the soak")
    parser.add_argument("--first", type=int, default=0, help="number of the first round")
    parser.add_argument("--record", type=Path, help="where the record goes; default: only whole runs write one")
    options = parser.parse_args()
    least = {"steps": 100_000, "cycles": 1_000_000, "soak": 0}[options.job]
    whole = options.minutes >= 30 if options.job == "soak" else (options.count or least) >= least
    options.count = options.count or least
    part = {"steps": steps, "soak": soak, "cycles": cycles}[options.job](options)
    target = options.record or (RECORD if whole else None)
    if target is not None:
        machine = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
        about = {"date": datetime.datetime.now(datetime.UTC).date().isoformat(), "machine": machine}
        versions = {name: version(name) for name in ("numpy", "hypothesis")}
        record = json.loads(target.read_text(encoding="utf-8")) if target.exists() else {}
        record[options.job] = {**about, "versions": versions, **part}
        target.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    console.print(part)
    return 0


if __name__ == "__main__":
    sys.exit(main())
