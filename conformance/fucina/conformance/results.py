"""What a run found out: checks, cells of the matrix, problems, the verdict.  No pytest here, and no printing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING

from fucina.conformance.capabilities import capabilities_of, chapters
from fucina.conformance.expectations import Expectation
from fucina.conformance.targets import Target

if TYPE_CHECKING:
    from fucina.spec.clauses import Clause

__all__ = ["Cell", "Check", "Failure", "LeftOut", "Outcome", "Problem", "Run", "State"]


class Outcome(Enum):
    """How one check ended."""

    NOT_RUN = "not run"
    PASSED = "passed"
    FAILED = "failed"
    EXPECTED = "expected"
    SKIPPED = "skipped"


class State(Enum):
    """What a cell of the matrix says."""

    OK = "ok"
    FAIL = "FAIL"
    EXPECTED = "expected"
    NOT_CLAIMED = "not claimed"
    NO_TEST = "NO TEST"
    SKIPPED = "skipped"
    NOT_RUN = "not run"


GOOD = frozenset({State.OK, State.EXPECTED, State.NOT_CLAIMED})


@dataclass(frozen=True, slots=True)
class Failure:
    """Where a check disagreed.

    ``index``, ``got``, ``expected`` (bit patterns in hex) and ``worst`` (distance in representable values) are empty
    when the check was no comparison of patterns; ``message`` then says what happened.  ``clause`` is the one that the
    message names, where a test checks several.
    """

    message: str
    index: str = ""
    got: str = ""
    expected: str = ""
    worst: str = ""
    clause: str = ""


@dataclass(slots=True)
class Check:
    """One test with one set of parameters on one target.

    ``test`` names the test function with its file, ``case`` is the full pytest id, ``clauses`` are those that the
    target claims and the filter lets through, ``notes`` what the test says of itself
    (``record_property("note", ...)``).
    """

    test: str
    case: str
    target: str
    clauses: tuple[str, ...]
    outcome: Outcome = Outcome.NOT_RUN
    seconds: float = 0.0
    reason: str = ""
    failure: Failure | None = None
    notes: tuple[str, ...] = ()

    @property
    def blamed(self) -> tuple[str, ...]:
        """The clauses that a failure speaks against: the one it names, or all that the test checks."""
        named = self.failure.clause if self.failure else ""
        return (named,) if named in self.clauses else self.clauses


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A test that was not run on a target, and why."""

    test: str
    target: str
    reason: str


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with the suite or the run itself, rather than with an implementation."""

    kind: str
    where: str
    message: str


@dataclass(frozen=True, slots=True)
class Cell:
    """One clause on one target."""

    state: State
    counts: Mapping[Outcome, int]
    note: str = ""

    @property
    def text(self) -> str:
        """What the matrix shows."""
        if self.state is State.OK:
            return f"ok {self.counts[Outcome.PASSED]}"
        if self.state is State.FAIL and self.counts[Outcome.FAILED]:
            return f"FAIL {self.counts[Outcome.FAILED]}"
        if self.state in (State.EXPECTED, State.SKIPPED):
            return f"{self.state.value}: {self.note}"
        return str(self.state.value)


@dataclass
class Run:
    """One run of the suite: what was asked for and everything that came of it."""

    targets: Sequence[Target]
    all_clauses: Mapping[str, Clause]
    expectations: Sequence[Expectation] = ()
    globs: Sequence[str] = ()
    slow: bool = False
    seed: int | None = None
    checks: list[Check] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    planned: bool = False
    seconds: float = 0.0
    stopped: str = ""

    def __post_init__(self) -> None:
        known = chapters(self.all_clauses)
        self.capabilities = {t.label: capabilities_of(t.module, known) for t in self.targets}
        self.clauses = {i: c for i, c in self.all_clauses.items() if self.wanted(i)}

    def wanted(self, clause_id: str) -> bool:
        """Whether the filter lets a clause through."""
        return not self.globs or any(fnmatchcase(clause_id, glob) for glob in self.globs)

    def claims(self, label: str, clause_id: str) -> bool:
        """Whether a target claims the chapter of a clause."""
        return self.all_clauses[clause_id].chapter in self.capabilities[label]

    def problem(self, kind: str, where: str, message: str) -> None:
        """Note a problem, once."""
        found = Problem(kind, where, message)
        if found not in self.problems:
            self.problems.append(found)

    # -- after the run

    def finish(self, seconds: float) -> None:
        """Close the books: tests that ran nowhere, expectations that did not come true, nothing checked at all."""
        self.seconds = seconds
        ran = {c.test for c in self.checks if c.outcome not in (Outcome.SKIPPED, Outcome.NOT_RUN)}
        for check in self.checks:
            if check.test not in ran and check.outcome is Outcome.SKIPPED:
                self.problem("ran zero times", check.test, f"skipped everywhere: {check.reason}")
        if not ran and not self.problems and not self.stopped:
            self.problem("nothing checked", "suite", "no test of the suite ran")
        if self.planned and not self.stopped:
            for stale in self.stale:
                self.problem("stale expectation", f"{stale[0].subject} on {stale[1]}", self._stale_text(*stale))

    @cached_property
    def stale(self) -> list[tuple[Expectation, str]]:
        """Expectations, each with the label of a target on which nothing failed as expected."""
        found = []
        for entry in self.expectations:
            for target in self.targets:
                if not entry.on(target):
                    continue
                mine = [c for c in self.checks if c.target == target.label and entry.matches(c.test, c.case, c.clauses)]
                outside = bool(self.globs) and not mine
                if not outside and not any(c.outcome is Outcome.EXPECTED for c in mine):
                    found.append((entry, target.label))
        return found

    def _stale_text(self, entry: Expectation, label: str) -> str:
        ran = any(c.target == label and entry.matches(c.test, c.case, c.clauses) for c in self.checks)
        what = "agrees after all" if ran else "matches no test that ran"
        return f"expected to fail ({entry.reason}), but it {what}: delete the expectation"

    @cached_property
    def cells(self) -> dict[tuple[str, str], Cell]:
        """The matrix, by (clause id, target label); to be read after :meth:`finish`."""
        found: dict[tuple[str, str], list[Check]] = {}
        for check in self.checks:
            for clause_id in check.clauses:
                mine = found.setdefault((clause_id, check.target), [])
                if check.failure is None or clause_id in check.blamed:
                    mine.append(check)  # else it stopped at another clause, and shows nothing about this one
        stale = {(e.clause, label): self._stale_text(e, label) for e, label in self.stale if e.clause}
        return {
            (i, t.label): self._cell(i, t.label, found.get((i, t.label)), stale.get((i, t.label), ""))
            for i in self.clauses
            for t in self.targets
        }

    def _cell(self, clause_id: str, label: str, found: list[Check] | None, stale: str) -> Cell:
        checks = found or []
        counts = Counter(c.outcome for c in checks)

        def note(outcome: Outcome) -> str:
            return next((c.reason for c in checks if c.outcome is outcome), "")

        if not self.claims(label, clause_id):
            return Cell(State.NOT_CLAIMED, counts)
        if counts[Outcome.FAILED]:
            return Cell(State.FAIL, counts)
        if stale and not self.stopped:
            return Cell(State.FAIL, counts, stale)
        if counts[Outcome.EXPECTED]:
            return Cell(State.EXPECTED, counts, note(Outcome.EXPECTED))
        if counts[Outcome.NOT_RUN] or not self.planned:
            return Cell(State.NOT_RUN, counts)
        if counts[Outcome.PASSED]:
            return Cell(State.OK, counts)
        if counts[Outcome.SKIPPED]:
            return Cell(State.SKIPPED, counts, note(Outcome.SKIPPED))
        return Cell(State.NO_TEST if found is None else State.NOT_RUN, counts)

    @cached_property
    def totals(self) -> Mapping[Outcome, int]:
        """Number of checks by outcome."""
        return Counter(c.outcome for c in self.checks)

    @property
    def failures(self) -> list[Check]:
        """The checks that disagreed, in the order in which they ran."""
        return [c for c in self.checks if c.outcome is Outcome.FAILED]

    @property
    def notes(self) -> list[tuple[str, str]]:
        """What tests said about themselves, such as doing less on a slow implementation: (target label, note)."""
        return list(dict.fromkeys((c.target, note) for c in self.checks for note in c.notes))

    def in_state(self, state: State) -> list[tuple[str, str]]:
        """The (clause id, target label) pairs whose cells are in a state."""
        return [where for where, cell in self.cells.items() if cell.state is state]

    @property
    def agrees(self) -> bool:
        """The verdict: every claimed clause has a test that ran, every test agrees, nothing was wrong with the run."""
        return (
            not self.problems
            and not self.stopped
            and not self.failures
            and all(cell.state in GOOD for cell in self.cells.values())
        )

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        if not self.agrees:
            return "Not conforming"
        excuse = " or fails as expected" if self.totals[Outcome.EXPECTED] else ""
        return f"Every claimed clause has a test, and every test agrees{excuse}"

    @property
    def errors(self) -> int:
        """Number of problems and of cells that are bad without a failed check."""
        missing = (State.NO_TEST, State.SKIPPED) if self.planned else ()
        return len(self.problems) + sum(cell.state in missing for cell in self.cells.values())

    @property
    def last_line(self) -> str:
        """The line that ends the output, in words that CI tools know."""
        parts = [f"{self.totals[Outcome.PASSED]} passed", f"{self.totals[Outcome.FAILED]} failed"]
        optional = {
            "expected to fail": self.totals[Outcome.EXPECTED],
            "skipped": self.totals[Outcome.SKIPPED],
            "not run": self.totals[Outcome.NOT_RUN],
            "errors": self.errors,
        }
        parts += [f"{n} {what}" for what, n in optional.items() if n]
        return f"{', '.join(parts)} in {self.seconds:.1f} s"
