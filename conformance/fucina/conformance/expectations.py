"""Expected failures: a TOML file in which every entry says why.

    [[expect]]
    target = "your.module"          # or a label of the matrix, "your.module[avx2]"
    clause = "RNG-GAUSS-1"          # or: test = "test_rng.py::test_hard_gaussian"
    reason = "uses the C library's log, which is not correctly rounded"

An entry whose clause or test agrees after all is an error: a stale excuse hides the next failure.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from fucina.conformance.errors import UsageError, suggestion
from fucina.conformance.targets import Target

__all__ = ["Expectation", "expected_failure", "load"]

_KEYS = frozenset({"target", "clause", "test", "reason"})


@dataclass(frozen=True, slots=True)
class Expectation:
    """One entry: the checks of ``clause`` or of ``test`` are expected to fail on ``target``, because of ``reason``."""

    target: str
    reason: str
    clause: str | None = None
    test: str | None = None

    @property
    def subject(self) -> str:
        """What is expected to fail: the clause id or the test's name."""
        return self.clause or self.test or ""

    def on(self, target: Target) -> bool:
        """Whether the entry speaks about this target."""
        return self.target in (target.label, target.module_name)

    def matches(self, test: str, case: str, clauses: Collection[str]) -> bool:
        """Whether the entry speaks about this check; a test may be named with or without its file and parameters."""
        if self.clause is not None:
            return self.clause in clauses
        return self.test in (test, case, test.rpartition("::")[2])


def load(path: Path, known: Collection[str]) -> list[Expectation]:
    """Read an expectations file.

    Raises
    ------
    UsageError
        If it cannot be read, or an entry lacks a target, a reason, or exactly one of clause and test, names a clause
        outside ``known``, or has any other key.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read the expectations file {path}: {error}") from error
    entries = document.pop("expect", [])
    if document or not isinstance(entries, list):
        raise UsageError(f"{path}: only [[expect]] tables are allowed, found {', '.join(document) or 'expect = ...'}")
    return [_entry(f"{path}: [[expect]] number {n}", entry, known) for n, entry in enumerate(entries, 1)]


def _entry(where: str, entry: dict[str, object], known: Collection[str]) -> Expectation:
    for key, value in entry.items():
        if key not in _KEYS:
            raise UsageError(f"{where}: unknown key {key!r}, allowed are {', '.join(sorted(_KEYS))}")
        if not isinstance(value, str) or not value.strip():
            raise UsageError(f"{where}: {key} must be a text that says something, got {value!r}")
    text = {key: str(value).strip() for key, value in entry.items()}
    if "target" not in text:
        raise UsageError(f"{where}: a target is missing: the module, or its label in the matrix")
    if "reason" not in text:
        raise UsageError(f"{where}: a reason is missing: say why {text['target']} is expected to fail here")
    if ("clause" in text) == ("test" in text):
        raise UsageError(f"{where}: name either a clause or a test, exactly one of the two")
    if "clause" in text and text["clause"] not in known:
        raise UsageError(f"{where}: there is no clause {text['clause']!r}{suggestion(text['clause'], known)}")
    return Expectation(text["target"], text["reason"], text.get("clause"), text.get("test"))


def expected_failure(
    entries: Sequence[Expectation], target: Target, test: str, case: str, clauses: Collection[str]
) -> Expectation | None:
    """Return the first entry that speaks about a check, if there is one."""
    return next((e for e in entries if e.on(target) and e.matches(test, case, clauses)), None)
