"""Rows of the memory chapters: allocation, views, copies and raw operations beside numpy and torch."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from harness import Contestant, Goal, Row
from peers import memcpy, optional

import fucina.fast as fucina

torch = optional("torch")

BIG = 1 << 24
SIDE = 1 << 12
MICROSECOND = 1000.0

DType = fucina.DType


def rows(*, quick: bool) -> list[tuple[str, Callable[[], Row]]]:
    """Return the rows, by name and ready to be measured; each makes its arrays when its turn comes."""
    side = SIDE // 4 if quick else SIDE
    count = side * side
    made: dict[str, Callable[[str], Row]] = {
        "allocate and drop, 2^24 f32": _allocation,
        "acquire and release, 2^24 f32": _acquisition,
        "view: a part of an axis": _slice,
        "view: reshape": _reshape,
        "raw add of one element": _one_element,
        "add, fresh result": partial(_add, count=count, fresh=True),
        "add, existing result": partial(_add, count=count, fresh=False),
        "transpose copy, fresh": partial(_transpose, side=side, fresh=True),
        "transpose copy, existing": partial(_transpose, side=side, fresh=False),
        "broadcast add of a row": partial(_broadcast, side=side),
        "sum of rows, f32": partial(_sum, side=side, axis=1, form=np.float32),
        "sum of rows, f16": partial(_sum, side=side, axis=1, form=np.float16),
        "sum along axis 0, f32": partial(_sum, side=side, axis=0, form=np.float32),
    }
    return [(name, partial(make, name)) for name, make in made.items()]


def _ours(run: Callable[[], object]) -> Contestant:
    return Contestant("ours", "fucina.fast", run)


def _peers(of_numpy: Callable[[], object], of_torch: Callable[[], object]) -> list[Contestant]:
    found = [Contestant("peer", "numpy", of_numpy)]
    return [*found, Contestant("peer", "torch", of_torch)] if torch else found


def _of_torch(*arrays: Any) -> Any:
    """Return the tensors over arrays, one by itself; nothing that could be used where there is no torch."""
    found = [torch.from_numpy(array) if torch else None for array in arrays]
    return found[0] if len(found) == 1 else found


def _values(*shape: int, form: type[Any] = np.float32) -> Any:
    return np.random.default_rng(1).standard_normal(shape, np.float32).astype(form)


def _allocation(name: str) -> Row:
    ctx = fucina.ExecContext()
    peers = _peers(lambda: np.empty(BIG, np.float32), lambda: torch.empty(BIG))
    return Row(name, 1, [_ours(lambda: ctx.empty((BIG,))), *peers], [Goal(most=MICROSECOND), Goal(1.0)])


def _acquisition(name: str) -> Row:
    pool = fucina.ExecContext().rt.buffers
    return Row(name, 1, [_ours(lambda: pool.acquire(BIG).release())], [Goal(most=MICROSECOND)])


def _slice(name: str) -> Row:
    ctx, array = fucina.ExecContext(), _values(8, 16)
    tensor = ctx.from_slice((8, 16), array)
    other = _of_torch(array)
    contestants = [_ours(lambda: ctx.narrow_axis(tensor, 0, 1, 2)), *_peers(lambda: array[1:3], lambda: other[1:3])]
    return Row(name, 1, contestants, [Goal(1.0, "numpy"), Goal(0.15, "torch")])


def _reshape(name: str) -> Row:
    ctx, array = fucina.ExecContext(), _values(8, 16)
    tensor = ctx.from_slice((8, 16), array)
    other = _of_torch(array)
    peers = _peers(lambda: array.reshape((128,)), lambda: other.reshape((128,)))
    return Row(name, 1, [_ours(lambda: tensor.reshape((128,))), *peers], [Goal(1.0, "numpy"), Goal(0.15, "torch")])


def _one_element(name: str) -> Row:
    ctx, array = fucina.ExecContext(), _values(1)
    a, b, c = ctx.from_slice((1,), array), ctx.from_slice((1,), array), array.copy()
    d, e = _of_torch(array, c)
    return Row(name, 1, [_ours(lambda: ctx.add(a, b)), *_peers(lambda: array + c, lambda: d + e)], [Goal(0.4, "numpy")])


def _add(name: str, *, count: int, fresh: bool) -> Row:
    ctx, array = fucina.ExecContext(), _values(count)
    a, b, out = (ctx.from_slice((count,), array) for _ in range(3))
    c, d = array.copy(), array.copy()
    x, y, z = _of_torch(array, c, d)
    if fresh:
        contestants = [_ours(lambda: ctx.add(a, b)), *_peers(lambda: array + c, lambda: x + y)]
        goals = [Goal(0.55, "numpy"), Goal(0.25, "torch")]
    else:
        peers = _peers(lambda: np.add(array, c, out=d), lambda: torch.add(x, y, out=z))
        contestants, goals = [_ours(lambda: ctx.add(a, b, out=out)), *peers], [Goal(0.9, "numpy"), Goal(0.9, "torch")]
    return Row(name, count, [*contestants, memcpy(12 * count)], goals)


def _transpose(name: str, *, side: int, fresh: bool) -> Row:
    ctx, array = fucina.ExecContext(), _values(side, side)
    turned = ctx.from_slice((side, side), array).view_with_strides((side, side), (1, side))
    out = np.zeros_like(array)
    x, y = _of_torch(array, out)
    if fresh:
        peers = _peers(lambda: array.T.copy(), lambda: x.t().contiguous())
        contestants = [_ours(lambda: ctx.materialize(turned)), *peers]
    else:
        peers = _peers(lambda: np.copyto(out, array.T), lambda: y.copy_(x.t()))
        contestants = [_ours(lambda: turned.copy_to(out)), *peers]
    return Row(name, side * side, [*contestants, memcpy(8 * side * side)], [Goal(0.5, "torch")])


def _broadcast(name: str, *, side: int) -> Row:
    ctx, array, line = fucina.ExecContext(), _values(side, side), _values(side)
    a, b = ctx.from_slice((side, side), array), ctx.from_slice((side,), line)
    x, y = _of_torch(array, line)
    contestants = [_ours(lambda: ctx.add(a, b)), *_peers(lambda: array + line, lambda: x + y)]
    return Row(name, side * side, [*contestants, memcpy(8 * side * side)], [Goal(0.8, "numpy")])


def _sum(name: str, *, side: int, axis: int, form: type[Any]) -> Row:
    ctx, array = fucina.ExecContext(), _values(side, side, form=form)
    tensor = ctx.from_slice((side, side), array, DType.f32 if form is np.float32 else DType.f16)
    other = _of_torch(array)
    # of halves both peers add in f32, as ours does
    peers = _peers(lambda: array.sum(axis), lambda: other.sum(axis))
    goals = {(1, np.float32): Goal(0.95), (1, np.float16): Goal(0.1, "numpy"), (0, np.float32): Goal(0.7, "numpy")}
    return Row(name, side * side, [_ours(lambda: ctx.sum(tensor, axis)), *peers], [goals[axis, form]])


# -- the memory of a chain

CHAIN = 32


def peak() -> dict[str, object]:
    """Return how much memory a chain of operations on 64 MB tensors held at most, each released as it was used."""
    command = [sys.executable, "-c", "import memory_rows; memory_rows.chain()"]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    held, one = map(int, done.stdout.split())
    return {
        "operations": CHAIN,
        "tensor": one,
        "peak": held,
        "buffers": held / one,
        "goal": 2.1,
        "met": held <= 2.1 * one,
    }


def _high_water() -> int:
    """Return the most bytes that the process has held since the mark was reset."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * int(next(line for line in status.splitlines() if line.startswith("VmHWM:")).split()[1])


def chain() -> None:
    """Run the chain in this process; print the memory that it added at most, and that of one tensor."""
    fucina.parallel.set_max_threads(1)
    with fucina.ExecContext() as ctx:
        ctx.add(ctx.ones((1,)), ctx.ones((1,))).deinit()
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        before = _high_water()
        value = ctx.ones((BIG,))
        for k in range(CHAIN):
            older, value = value, ctx.add(value, value) if k % 2 else ctx.scale(value, 0.5)
            older.deinit()
        print(_high_water() - before, 4 * BIG)
        value.deinit()
