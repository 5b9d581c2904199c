"""From which size on two threads beat one, for each kind of kernel: ``python bench/thresholds.py``.

It needs a build that shares out every size, ``-Csetup-args=-Dc_args=-DFC_SHARE_ALL``, and two idle cores; with
``--priority`` (root) the process runs at real-time priority, so that others cannot take a core from it.  Each figure
is the median of the rounds' ratios, two threads over one, one call after the other, or with ``--idle 5`` each after
5 ms in which the worker goes to sleep; the threshold is the first size from which on all ratios stay below 1.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import fucina.fast as fucina
from fucina.fast import DType

SIZES = tuple(1 << power for power in range(11, 21))
Work = Callable[[], object]


def _rows() -> Iterator[tuple[str, Callable[[int], Work]]]:
    """Yield the kinds of kernels, each with what makes the work for a size."""
    values = np.random.default_rng(1).standard_normal(SIZES[-1]).astype(np.float32)
    out, halves = np.empty_like(values), np.empty(len(values), np.float16)
    rng, cast, quant, ctx = fucina.rng, fucina.dtype.cast_array, fucina.quant, fucina.ExecContext()
    raw = fucina.internal.RawTensor
    yield "gaussian_fill", lambda n: partial(rng.gaussian_fill, 1, out[:n], 1.0)
    yield "gaussian_fill_at_fast", lambda n: partial(rng.gaussian_fill_at_fast, 1, 0, out[:n], 1.0)
    yield "gumbel_fill", lambda n: partial(rng.gumbel_fill, 1, out[:n])
    yield "uniform_fill", lambda n: partial(rng.uniform_fill, 1, out[:n], 0.0, 1.0)
    yield "f32 to f16", lambda n: partial(cast, DType.f32, DType.f16, values[:n], out=halves[:n])
    for dtype in (DType.f8_e4m3, DType.f8_e5m2):
        codes = np.empty(len(values), fucina.dtype.storage(dtype))
        yield f"f32 to {dtype.name}", partial(_cast, dtype, values, codes)
    for dtype in (DType.q8_0, DType.q4_0, DType.q4_k, DType.q6_k, DType.iq4_nl, DType.mxfp4):
        blocks = quant.quantize(dtype, values)
        yield f"encode {dtype.name}", partial(_encode, dtype, values, blocks)
        yield f"decode {dtype.name}", partial(_decode, dtype, blocks, out)
    a, b = raw.from_slice((len(values),), values), raw.from_slice((len(values),), values)
    c = raw.zeros((len(values),))
    yield "add", lambda n: partial(ctx.add, _part(a, n), _part(b, n), out=_part(c, n))
    yield "div", lambda n: partial(ctx.div, _part(a, n), _part(b, n), out=_part(c, n))
    yield "sum", lambda n: partial(ctx.sum, _part(a, n))


def _part(tensor: Any, n: int) -> Any:
    return tensor.view_with_strides((n,), (1,))


def _cast(dtype: DType, values: Any, codes: Any, n: int) -> Work:
    return partial(fucina.dtype.cast_array, DType.f32, dtype, values[:n], out=codes[:n])


def _encode(dtype: DType, values: Any, blocks: Any, n: int) -> Work:
    return partial(fucina.quant.quantize, dtype, values[:n], out=blocks[: n // fucina.dtype.block_size(dtype)])


def _decode(dtype: DType, blocks: Any, out: Any, n: int) -> Work:
    return partial(fucina.quant.dequantize, dtype, blocks[: n // fucina.dtype.block_size(dtype)], out=out[:n])


def _seconds(threads: int, work: Work, idle: float) -> float:
    fucina.parallel.set_max_threads(threads)
    if idle:
        time.sleep(idle * 1e-3)
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--idle", type=float, default=0.0, help="milliseconds of sleep before each call")
    parser.add_argument("--priority", action="store_true")
    args = parser.parse_args()
    if args.priority:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    print(f"{'two over one':24}" + "".join(f"{f'2^{n.bit_length() - 1}':>7}" for n in SIZES) + "   from   us of one")
    for name, make in _rows():
        ratios, times = [], []
        for n in SIZES:
            work = make(n)
            pairs = [(_seconds(1, work, args.idle), _seconds(2, work, args.idle)) for _ in range(args.rounds)]
            ratios.append(statistics.median(two / one for one, two in pairs[1:]))
            times.append(statistics.median(one for one, _ in pairs))
        above = [i for i, ratio in enumerate(ratios) if ratio >= 1]
        first = above[-1] + 1 if above else 0
        found = f"2^{SIZES[first].bit_length() - 1:<4} {times[first] * 1e6:8.1f}" if first < len(SIZES) else "never"
        print(f"{name:24}" + "".join(f"{ratio:7.2f}" for ratio in ratios) + f"   {found}", flush=True)
        time.sleep(0.2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
