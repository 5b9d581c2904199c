"""Two threads against one, for what is shared out to the team.

Wall time, both contestants interleaved, the median of the rounds' ratios; below 1 two threads are faster.  It means
something on a machine with two idle cores only.  memcpy stands beside it as the memory's own limit: two threads that
copy one half each.  The rows of kind *busy* are measured while another process keeps one of the cores: there each
number of threads has all its calls in a row, since how the team fared before is what it goes by.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from neighbour import neighbour
from rich.console import Console
from rich.progress import track

import fucina.fast as fucina
from fucina.fast import DType

N, FEW = 1 << 24, 1 << 20
BLOCKS = tuple(d for d in DType if fucina.dtype.is_block_quantized(d))
GOALS = {"fill": 0.62, "cast": 0.62, "encode": 0.625, "decode": 0.625, "busy": 1.3, "f32 to bf16": None}
"""The most that two threads may take of the time of one, by kind or name; memory alone limits the cast to bf16."""
SHARED = (1 << 15, 1 << 17, 1 << 19, 1 << 21)
CASTS = (DType.f8_e4m3, DType.f8_e5m2, DType.bf16)

Work: TypeAlias = Callable[[], object]


def _rows(*, blocks: bool) -> Iterator[tuple[str, str, int, Work]]:
    """Yield what is measured: kind of work, what, how many values, a call."""
    weights, floats = np.random.default_rng(1).standard_normal(N).astype(np.float32), np.zeros(N, np.float32)
    rng, cast = fucina.rng, fucina.dtype.cast_array
    few = 4 * FEW
    yield "fill", "gaussian_fill", few, partial(rng.gaussian_fill, 1, floats[:few], 1.0)
    yield "fill", "gaussian_fill_at_fast", N, partial(rng.gaussian_fill_at_fast, 1, 0, floats, 1.0)
    yield "fill", "uniform_fill", N, partial(rng.uniform_fill, 1, floats, 0.0, 1.0)
    yield "fill", "gumbel_fill", few, partial(rng.gumbel_fill, 1, floats[:few])
    for target in CASTS:
        out = np.zeros(N, fucina.dtype.storage(target))
        yield "cast", f"f32 to {target.name}", N, partial(cast, DType.f32, target, weights, out=out)
    for dtype in BLOCKS if blocks else ():
        some = fucina.quant.quantize(dtype, weights[:FEW])
        every: Any = np.tile(some, N // FEW)
        yield "encode", dtype.name, FEW, partial(fucina.quant.quantize, dtype, weights[:FEW], out=some)
        yield "decode", dtype.name, N, partial(fucina.quant.dequantize, dtype, every, out=floats)


def _seconds(work: Work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _ratio(one: Work, two: Work, rounds: int) -> float:
    """Return the median over the rounds of the time of the second over that of the first."""
    return statistics.median(_seconds(two) / _seconds(one) for _ in range(rounds))


def _beside_another(console: Console, *, quick: bool) -> Iterator[dict[str, object]]:
    """Yield the rows of two threads of which one has to share its core."""
    calls = 40 if quick else 150
    with neighbour():
        for n in track(SHARED, description="beside a busy core", console=console):
            work = partial(fucina.rng.gaussian_fill, 1, np.zeros(n, np.float32), 1.0)
            times = {}
            for threads in (1, 2):
                _on(threads, work)
                times[threads] = [_seconds(partial(_on, threads, work)) for _ in range(calls)]
            ratio = statistics.median(times[2]) / statistics.median(times[1])
            mean = statistics.mean(times[2]) / statistics.mean(times[1])
            yield {
                "kind": "busy",
                "name": "gaussian_fill",
                "n": n,
                "ratio": ratio,
                "of means": mean,
                "goal": GOALS["busy"],
            }


def _on(threads: int, work: Work) -> None:
    fucina.parallel.set_max_threads(threads)
    work()


def _halves(target: Any, source: Any) -> None:
    """Copy one half on another thread and one here; numpy lets go of the GIL."""
    middle = len(target) // 2
    other = threading.Thread(target=np.copyto, args=(target[:middle], source[:middle]))
    other.start()
    np.copyto(target[middle:], source[middle:])
    other.join()


def measured(console: Console, *, quick: bool) -> list[dict[str, object]]:
    """Return the rows, memcpy first: kind, name, number of values, time of two threads over that of one, its goal."""
    rounds, count = (5, 4 + len(CASTS)) if quick else (9, 4 + len(CASTS) + 2 * len(BLOCKS))
    source, target = np.ones(N, np.float32), np.zeros(N, np.float32)
    copies = _ratio(partial(np.copyto, target, source), partial(_halves, target, source), rounds)
    found: list[dict[str, object]] = [{"kind": "copy", "name": "memcpy", "n": N, "ratio": copies, "goal": None}]
    rows = _rows(blocks=not quick)
    for kind, name, n, work in track(rows, description="two threads", total=count, console=console):
        work()
        ratio = _ratio(partial(_on, 1, work), partial(_on, 2, work), rounds)
        found.append({"kind": kind, "name": name, "n": n, "ratio": ratio, "goal": GOALS.get(name, GOALS[kind])})
    return [*found, *_beside_another(console, quick=quick)]
