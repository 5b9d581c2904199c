"""Rows of the facade's heavy operations: products beside numpy's BLAS, dropout beside torch.

The result is made anew on both sides.  numpy's BLAS has to be held to one thread before numpy is imported:
``OPENBLAS_NUM_THREADS=1``, and with ``OPENBLAS_CORETYPE`` and ``OPENBLAS_L2_SIZE`` unset, as ``nox -s bench_products``
does.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from harness import Contestant, Goal, Row
from peers import memcpy, optional

import fucina.fast as fucina

torch = optional("torch")
Tagged: Any = fucina.Tensor

BIG = 1 << 24
OF_BLAS, OF_DROPOUT = 1 / 0.9, 0.15
"""Goals: 0.9 of the speed of the BLAS; 0.15 of the time of torch's dropout."""

PRODUCTS = {
    "matmul 512": (512, 512, 512),
    "matmul 1024": (1024, 1024, 1024),
    "matmul 64": (64, 64, 64),
    "vector times matrix 4096": (1, 4096, 4096),
    "matrix times vector 4096": (4096, 4096, 1),
}


def rows() -> list[tuple[str, Callable[[], Row]]]:
    """Return the rows, by name and ready to be measured; each makes its own operands."""
    ways = [(name, shape, turned) for name, shape in PRODUCTS.items() for turned in (False, True)]
    made: list[tuple[str, Callable[[], Row]]] = []
    for name, shape, turned in ways:
        label = f"{name}, transposed" if turned else name
        made.append((label, partial(_product, label, shape, turned=turned)))
    return [*made, ("dropout", _dropout)]


def _product(name: str, shape: tuple[int, int, int], *, turned: bool) -> Row:
    """Return a row for [m, k] times [k, n]; ``turned``: the larger operand lies column by column."""
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        raise SystemExit("OPENBLAS_NUM_THREADS=1 has to be set: the rows are about one thread")
    m, k, n = shape
    rng, ctx = np.random.default_rng(1), fucina.ExecContext()
    a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    x, y = Tagged("m", "k").from_slice(ctx, (m, k), a), Tagged("k", "n").from_slice(ctx, (k, n), b)
    if turned and n == 1:
        x = Tagged("k", "m").from_slice(ctx, (k, m), np.ascontiguousarray(a.T))
        a = np.asfortranarray(a)
    elif turned:
        y = Tagged("n", "k").from_slice(ctx, (n, k), np.ascontiguousarray(b.T))
        b = np.asfortranarray(b)

    def ours() -> object:
        with x.dot(ctx, y) as out:
            return out.shape

    return Row(
        name,
        m * n * k,
        [Contestant("ours", "fucina.fast", ours), Contestant("peer", "numpy", lambda: a @ b)],
        [Goal(OF_BLAS)],
    )


def _dropout() -> Row:
    ctx, values = fucina.ExecContext(), np.random.default_rng(1).standard_normal(BIG, np.float32)
    x = Tagged("n").from_slice(ctx, (BIG,), values)
    peers: list[Contestant] = []
    if torch:
        apply: Any = torch.nn.functional.dropout
        tensor = torch.from_numpy(values)
        peers.append(Contestant("peer", "torch dropout", lambda: apply(tensor, 0.1, True)))

    def ours() -> object:
        with x.dropout(ctx, 0.1, 1) as out:
            return out.shape

    return Row("dropout", BIG, [Contestant("ours", "fucina.fast", ours), *peers, memcpy(8 * BIG)], [Goal(OF_DROPOUT)])
