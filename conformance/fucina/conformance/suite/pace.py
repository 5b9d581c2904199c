"""How much of a long test an implementation gets: everything when it is quick, a reasoned part when it is not."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np

__all__ = ["Note", "quick", "scaled"]

Note = Callable[[str, object], None]
"""The type of pytest's ``record_property``: what a test says about itself in the reports."""

QUICK_SECONDS = 0.5
QUICK_VALUES = 100_000


@cache
def _seconds(impl: Any) -> float:
    """Time that ``QUICK_VALUES`` exact gaussian values take, from the best of three short fills."""
    out = np.empty(1000, dtype=np.float32)
    best = float("inf")
    for _ in range(3):
        start = perf_counter()
        impl.rng.gaussian_fill(1, out, 1.0)
        best = min(best, perf_counter() - start)
    return best * QUICK_VALUES / out.size


def quick(impl: Any) -> bool:
    """Say whether 100,000 exact gaussian values take less than half a second."""
    return _seconds(impl) < QUICK_SECONDS


def scaled(impl: Any, record_property: Note, full: int, part: int, what: str) -> int:
    """Return ``full`` for a quick implementation, else ``part`` and a note in the report that says so."""
    if quick(impl):
        return full
    record_property(
        "note",
        f"{what}: {part:,} of {full:,}, because this implementation needs {_seconds(impl):.1f} s "
        f"for {QUICK_VALUES:,} exact gaussian values",
    )
    return part
