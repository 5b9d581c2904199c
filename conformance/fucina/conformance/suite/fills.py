"""The fills in one table: how each is called, what it writes, and parameters that show its mapping."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["ELEMENTWISE", "FILLS", "Fill", "by_name"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Fill:
    """One function of the ``rng`` module.

    ``counted``: it takes ``first`` after the seed; ``sequential``: the function that starts at element 0 with the same
    mapping, where there is one; ``names`` and ``values``: its parameters after ``out`` and a valid example of each.
    """

    name: str
    format: str
    names: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()
    counted: bool = False
    sequential: str | None = None
    clauses: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name

    def empty(self, length: int) -> Array:
        """Return an output of a length, filled with ones bits so that what is not written shows."""
        return np.full(length * np.dtype(self.format).itemsize, 0x01, dtype=np.uint8).view(self.format)

    def into(self, impl: Any, seed: Any, out: Any, *values: Any, first: Any = 0) -> None:
        """Call the fill on a given output (with the example parameters unless others are given)."""
        function = getattr(impl.rng, self.name)
        chosen = values or self.values
        answer = function(seed, first, out, *chosen) if self.counted else function(seed, out, *chosen)
        assert answer is None, f"{self.name} returned {answer!r}"

    def __call__(self, impl: Any, seed: int, length: int, *values: Any, first: int = 0) -> Array:
        """Return the elements ``first .. first + length`` of a stream."""
        out = self.empty(length)
        self.into(impl, seed, out, *values, first=first)
        return out

    def bound(self, impl: Any, seed: Any, out: Any, *values: Any, first: Any = 0) -> Callable[[], object]:
        """Return the call without arguments, for ``assert_raises``."""
        return lambda: self.into(impl, seed, out, *values, first=first)


_PAIRS = (
    Fill("gaussian_fill", "f4", ("scale",), (0.75,), clauses=("RNG-GAUSS-2",)),
    Fill("uniform_fill", "f4", ("lo", "hi"), (-1.5, 2.25), clauses=("RNG-UNIF-1",)),
    Fill("kaiming_uniform_fill", "f4", ("fan_in",), (23,), clauses=("RNG-KAIMING-1",)),
    Fill("normal_fill", "f4", ("mean", "std_dev"), (0.5, 1.25), clauses=("RNG-NORMAL-1",)),
    Fill("gumbel_fill", "f4", clauses=("RNG-GUMBEL-1",)),
    Fill("randint_fill", "i8", ("low", "high"), (-7, 1000), clauses=("RNG-INT-1",)),
)

FILLS: tuple[Fill, ...] = (
    *_PAIRS,
    *(Fill(f"{f.name}_at", f.format, f.names, f.values, True, f.name, f.clauses) for f in _PAIRS),
    Fill("gaussian_fill_at_fast", "f4", ("scale",), (0.75,), True, clauses=("RNG-FAST-2",)),
    Fill("dropout_mask", "?", ("p",), (0.25,), True, clauses=("RNG-DROPOUT-1",)),
    Fill("randperm_fill", "i8", clauses=("RNG-PERM-1",)),
)
"""Every fill of the interface."""

ELEMENTWISE: tuple[Fill, ...] = tuple(fill for fill in FILLS if fill.counted)
"""The fills of which one can ask for any element."""


def by_name(name: str) -> Fill:
    """Return the fill of this name."""
    return next(fill for fill in FILLS if fill.name == name)
