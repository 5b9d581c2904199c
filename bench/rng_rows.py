"""Rows of the random streams: ours beside numpy, torch and randomgen."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from harness import Contestant, Goal, Row
from peers import memcpy, optional

import fucina.fast as fucina

torch = optional("torch")
randomgen = optional("randomgen")

rng = fucina.rng
SEED = 42
BIG = 1 << 24
AT_A_CALL = 0.5
"""Goal at 1000 elements, where the cost of a call counts: ours over numpy's."""


def _goals(n: int, *big: Goal) -> list[Goal]:
    if n == BIG:
        return list(big)
    return [Goal(AT_A_CALL, "numpy")] if n == 1000 else [Goal(1.0)]


def rows(n: int) -> list[tuple[str, Callable[[], Row]]]:
    """Return the rows of one size, by name and ready to be measured."""
    return [(row.name, partial(_itself, row)) for row in _rows(n)]


def _itself(row: Row) -> Row:
    return row


def _rows(n: int) -> list[Row]:
    f4, i8, u1 = np.zeros(n, np.float32), np.zeros(n, np.int64), np.zeros(n, np.bool_)
    pcg, sfc = np.random.Generator(np.random.PCG64(1)), np.random.Generator(np.random.SFC64(1))
    generators: dict[str, Any] = {"numpy PCG64": pcg, "numpy SFC64": sfc}
    if randomgen:
        generators["randomgen Romu"] = np.random.Generator(randomgen.Romu(1))
        generators["randomgen EFIIX64"] = np.random.Generator(randomgen.EFIIX64(1))
    tensors: dict[str, Any] = {}
    if torch:
        tensors = {"f4": torch.from_numpy(f4), "i8": torch.from_numpy(i8), "u1": torch.from_numpy(u1)}
    four, eight, one = memcpy(4 * n), memcpy(8 * n), memcpy(n)

    def ours(run: Any) -> Contestant:
        return Contestant("ours", "fucina.fast", run)

    def peers(make: Any) -> list[Contestant]:
        return [Contestant("peer", label, make(g)) for label, g in generators.items()]

    def with_torch(label: str, run: Any) -> list[Contestant]:
        return [Contestant("peer", f"torch {label}", run)] if torch else []

    def normal(g: Any) -> Any:
        return lambda: g.standard_normal(n, np.float32, f4)

    def less(g: Any) -> Any:
        return lambda: np.less(g.random(n, np.float32, f4), 0.9, out=u1)

    def normals() -> list[Contestant]:
        return [*peers(normal), *with_torch("normal_", lambda: tensors["f4"].normal_())]

    return [
        Row(
            "gaussian (exact)",
            n,
            [ours(lambda: rng.gaussian_fill(SEED, f4, 1.0)), *normals(), four],
            _goals(n, Goal(0.62), Goal(0.33, "numpy PCG64")),
        ),
        Row(
            "gaussian (fast mapping)",
            n,
            [
                ours(lambda: rng.gaussian_fill_at_fast(SEED, 0, f4, 1.0)),
                *normals(),
                memcpy(4 * n),
            ],
            _goals(n, Goal(0.30, "numpy PCG64"), Goal(0.30)),
        ),
        Row(
            "gumbel",
            n,
            [
                ours(lambda: rng.gumbel_fill(SEED, f4)),
                *[c for c in peers(lambda g: lambda: g.gumbel(size=n)) if c.label.startswith("numpy")],
                *with_torch("-log(exponential_)", lambda: tensors["f4"].exponential_().log_().neg_()),
                memcpy(4 * n),
            ],
            _goals(n, Goal(0.30, "numpy")),
        ),
        Row(
            "uniform",
            n,
            [
                ours(lambda: rng.uniform_fill(SEED, f4, 0.0, 1.0)),
                *peers(lambda g: lambda: g.random(n, np.float32, f4)),
                *with_torch("uniform_", lambda: tensors["f4"].uniform_()),
                memcpy(4 * n),
            ],
            _goals(n, Goal(0.22, "numpy PCG64"), Goal(0.22)),
        ),
        Row(
            "randint",
            n,
            [
                ours(lambda: rng.randint_fill(SEED, i8, 0, 1_000_003)),
                *peers(lambda g: lambda: g.integers(0, 1_000_003, n)),
                *with_torch("random_", lambda: tensors["i8"].random_(0, 1_000_003)),
                eight,
            ],
            _goals(n, Goal(0.40)),
        ),
        Row(
            "randperm",
            n,
            [
                ours(lambda: rng.randperm_fill(SEED, i8)),
                *[c for c in peers(lambda g: lambda: g.permutation(n)) if c.label == "numpy PCG64"],
                *with_torch("randperm", lambda: torch.randperm(n)),
                memcpy(8 * n),
            ],
            _goals(n, Goal(0.20)),
        ),
        Row(
            "dropout mask",
            n,
            [
                ours(lambda: rng.dropout_mask(SEED, 0, u1, 0.1)),
                *[c for c in peers(less) if c.label.startswith("numpy")],
                *with_torch("bernoulli_", lambda: tensors["u1"].bernoulli_(0.9)),
                one,
            ],
            _goals(n, Goal(0.30)),
        ),
    ]
