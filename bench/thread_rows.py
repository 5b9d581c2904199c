"""Two threads against one, for what is shared out to the team: ``python bench/thread_rows.py``.

Wall time, both contestants interleaved, the median of the rounds' ratios; below 1 two threads are faster.  It means
something on a machine with two idle cores only.  memcpy stands beside it as the memory's own limit: two threads that
copy one half each.
"""

from __future__ import annotations

import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import fucina.fast as fucina
from fucina.fast import DType

N, FEW, ROUNDS = 1 << 24, 1 << 20, 9
BLOCKS = tuple(d for d in DType if fucina.dtype.is_block_quantized(d))


def _rows() -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield what is measured."""
    weights, floats = np.random.default_rng(1).standard_normal(N).astype(np.float32), np.zeros(N, np.float32)
    rng, cast = fucina.rng, fucina.dtype.cast_array
    yield "gaussian_fill", partial(rng.gaussian_fill, 1, floats[: 4 * FEW], 1.0)
    yield "gaussian_fill_at_fast", partial(rng.gaussian_fill_at_fast, 1, 0, floats, 1.0)
    yield "uniform_fill", partial(rng.uniform_fill, 1, floats, 0.0, 1.0)
    yield "gumbel_fill", partial(rng.gumbel_fill, 1, floats[: 4 * FEW])
    for target in (DType.f8_e4m3, DType.f8_e5m2, DType.bf16):
        out = np.zeros(N, fucina.dtype.storage(target))
        yield f"f32 to {target.name}", partial(cast, DType.f32, target, weights, out=out)
    for dtype in BLOCKS:
        size = fucina.dtype.block_size(dtype)
        some = fucina.quant.quantize(dtype, weights[:FEW])
        every: Any = np.tile(some, N // FEW)
        assert every.size == N // size
        yield f"encode {dtype.name}", partial(fucina.quant.quantize, dtype, weights[:FEW], out=some)
        yield f"decode {dtype.name}", partial(fucina.quant.dequantize, dtype, every, out=floats)


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _ratio(one: Callable[[], object], two: Callable[[], object]) -> float:
    """Return the median over the rounds of the time of the second over that of the first."""
    return statistics.median(_seconds(two) / _seconds(one) for _ in range(ROUNDS))


def _on(threads: int, work: Callable[[], object]) -> None:
    fucina.parallel.set_max_threads(threads)
    work()


def _halves(target: Any, source: Any) -> None:
    """Copy one half on another thread and one here; numpy lets go of the GIL."""
    middle = len(target) // 2
    other = threading.Thread(target=np.copyto, args=(target[:middle], source[:middle]))
    other.start()
    np.copyto(target[middle:], source[middle:])
    other.join()


def main() -> int:
    """Measure and print."""
    source, target = np.ones(N, np.float32), np.zeros(N, np.float32)
    print(f"{'memcpy':24} {_ratio(partial(np.copyto, target, source), partial(_halves, target, source)):.2f}")
    for name, work in _rows():
        work()
        print(f"{name:24} {_ratio(partial(_on, 1, work), partial(_on, 2, work)):.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
