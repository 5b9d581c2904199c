"""Interleaved timing: contestants of a row take turns, so that a noisy neighbour touches all of them.

A sample is thread CPU time (what other processes do to the wall clock does not count), repeated until it lasts long
enough to measure; the figure of a contestant is the median of its samples, a ratio the median of the ratios taken round
by round.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

LEAST_SECONDS = 0.002


def _measured() -> object:
    raise RuntimeError("this row has been measured")


@dataclass
class Contestant:
    """One way to do the work of a row.  ``kind`` is ``ours``, ``peer`` or ``limit``."""

    kind: str
    label: str
    run: Callable[[], object]
    repeats: int = 0
    samples: list[float] = field(default_factory=list)

    def calibrate(self, least: float) -> None:
        """Find how many calls make a sample long enough."""
        self.run()
        self.repeats = 1
        while (seconds := self._once()) < least and self.repeats < 1 << 20:
            self.repeats = max(self.repeats * 2, min(self.repeats * 64, int(self.repeats * least / max(seconds, 1e-7))))

    def sample(self) -> None:
        """Take one sample, in seconds per call."""
        self.samples.append(self._once() / self.repeats)

    def _once(self) -> float:
        run, turns = self.run, range(self.repeats)
        start = time.thread_time_ns()
        for _ in turns:
            run()
        return (time.thread_time_ns() - start) * 1e-9

    @property
    def seconds(self) -> float:
        """Median seconds of one call."""
        return statistics.median(self.samples)


@dataclass
class Goal:
    """A ratio not to exceed: ours over the fastest contestant of that kind whose label starts with ``against``.

    With ``most`` it is no ratio, but so many nanoseconds for an item.
    """

    ratio: float = 0.0
    against: str = ""
    kind: str = "peer"
    most: float | None = None


@dataclass
class Row:
    """One piece of work at one size."""

    name: str
    n: int
    contestants: list[Contestant]
    goals: list[Goal] = field(default_factory=list)

    def measure(self, rounds: int, least: float = LEAST_SECONDS) -> None:
        """Let the contestants take turns for ``rounds`` rounds."""
        for contestant in self.contestants:
            contestant.calibrate(least)
        count = len(self.contestants)
        for turn in range(rounds):
            for i in range(count):
                self.contestants[(i + turn) % count].sample()
        for contestant in self.contestants:
            contestant.run = _measured  # lets go of the arrays: a row of 2^24 elements holds some hundred megabytes

    @property
    def ours(self) -> Contestant:
        """Our contestant."""
        return next(c for c in self.contestants if c.kind == "ours")

    def spent(self, contestant: Contestant) -> float:
        """Return the nanoseconds that a contestant takes for an item."""
        return contestant.seconds * 1e9 / self.n

    def ratio(self, other: Contestant) -> tuple[float, float]:
        """Ours over the other: the median of the rounds' ratios and their interquartile range."""
        ratios = [a / b for a, b in zip(self.ours.samples, other.samples, strict=True)]
        quarters = statistics.quantiles(ratios, n=4)
        return statistics.median(ratios), quarters[2] - quarters[0]

    def fastest(self, against: str = "", kind: str = "peer") -> Contestant | None:
        """Return the fastest contestant of that kind whose label starts with ``against``."""
        fitting = [c for c in self.contestants if c.kind == kind and c.label.startswith(against)]
        return min(fitting, key=lambda c: c.seconds, default=None)

    def record(self) -> dict[str, object]:
        """Return the row as plain data."""
        result: dict[str, object] = {
            "name": self.name,
            "n": self.n,
            "contestants": [{"kind": c.kind, "label": c.label, "ns_per_item": self.spent(c)} for c in self.contestants],
        }
        goals = []
        for goal in self.goals:
            if goal.most is not None:
                spent = self.spent(self.ours)
                goals.append(
                    {"goal": goal.most, "against": "the clock", "ns_per_item": spent, "met": spent <= goal.most}
                )
                continue
            rival = self.fastest(goal.against, goal.kind)
            if rival is None:
                goals.append({"goal": goal.ratio, "against": goal.against or "fastest peer", "rival": None})
                continue
            median, spread = self.ratio(rival)
            goals.append(
                {
                    "goal": goal.ratio,
                    "against": goal.against or "fastest peer",
                    "rival": rival.label,
                    "ratio": median,
                    "spread": spread,
                    "met": median <= goal.ratio,
                }
            )
        result["goals"] = goals
        limit = self.fastest(kind="limit")
        if limit is not None:
            result["of_memcpy"] = self.ratio(limit)[0]
        return result
