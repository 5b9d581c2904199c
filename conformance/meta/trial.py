"""A trial of the suite: one run of its command line in a process of its own, with a fault in force or without."""

from __future__ import annotations

import builtins
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fucina.fast import isa_levels

from .faults import ROOT, Fault

__all__ = ["Trial", "green", "trial"]

TIMEOUT = 600
ANYTHING = ("DTYPE-NAME-1", "RNG-STREAM-1")  # clauses of quick tests that have little in common


@dataclass
class Trial:
    """What became of a fault.

    ``by`` is the first test that disagreed, ``passed`` the number of checks before it that did not; ``clauses_red`` are
    the clauses found violated, ``named`` says whether the fault's own is among them; ``problem`` says in words
    why the fault does not count as caught, or was not seen where it should have been.
    """

    fault: Fault
    caught: bool = False
    by: str = ""
    passed: int = 0
    clauses_red: list[str] = field(default_factory=list)
    seconds: float = 0.0
    problem: str = ""

    @property
    def named(self) -> bool:
        """Whether a test of the fault's own clause saw it."""
        return self.fault.clause in self.clauses_red


def _suite(arguments: Sequence[str], fault: Fault | None = None) -> tuple[int, dict[str, Any] | None, str]:
    """Run the suite's command line; return its exit code, its report if it came to one, and the end of its output."""
    environment = {k: v for k, v in os.environ.items() if k not in ("FUCINA_FAULT", "FUCINA_ISA")}
    command = ["-m", "fucina.conformance"]
    if fault and fault.replacement:
        command = ["-m", "conformance.meta.planting", fault.name]
    elif fault:
        environment["FUCINA_FAULT"] = fault.name
    with tempfile.TemporaryDirectory(prefix="fucina-meta-") as folder:
        ended = subprocess.run(
            [sys.executable, *command, *arguments, "--report", folder],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            timeout=TIMEOUT,
            check=False,
        )
        path = Path(folder) / "report.json"
        report = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    return ended.returncode, report, ended.stdout[-2000:]


def green(implementation: str, areas: Sequence[str] = ()) -> tuple[bool, str]:
    """Run the suite without a fault, all of it or the clauses of some areas.

    Return whether it agrees, and its last line.
    """
    only = ["--filter", *(f"{area}-*" for area in areas)] if areas else []
    code, report, output = _suite(["--impl", implementation, *only])
    if code or not report or not report["agrees"]:
        return False, output
    return True, report["summary"]


def _accident(failure: dict[str, Any]) -> bool:
    """Whether a check fell over instead of failing: it ended in an exception that is no answer of the library's."""
    kind = getattr(builtins, failure["message"].partition(":")[0], None)
    return isinstance(kind, type) and issubclass(kind, BaseException)


def _problem(code: int, report: dict[str, Any] | None, output: str) -> str:
    """Return why a run does not show a fault, or nothing: it is red by a failed check, and was not red all over."""
    if code == 0:
        return "green"
    if code != 1 or report is None or report["problems"] or not report["failures"]:
        return f"the run broke down, exit code {code}: {output}"
    if all(_accident(failure) for failure in report["failures"]):
        return f"a test fell over: {report['failures'][0]['message']}"
    return ""


def _try(found: Trial, where: Sequence[str]) -> bool:
    """Run the suite on one level with the fault in force, up to its first failure; return whether it shows the fault.

    First come the tests of the fault's clause, then, if they do not see it, all of them.
    """
    stop = [*where, "-x"]
    ended = _suite([*stop, "--filter", found.fault.clause], found.fault)
    problem = _problem(*ended)
    if problem:
        found.problem += f"{' '.join(where)}: the tests of {found.fault.clause}: {problem}\n"
        ended = _suite(stop, found.fault)
        problem = _problem(*ended)
        found.problem += f"{' '.join(where)}: the whole suite: {problem or 'red'}\n"
        if problem:
            return False
    report = ended[1]
    assert report is not None
    found.passed += report["totals"]["passed"]
    found.by = found.by or next(f["test"] for f in report["failures"] if not _accident(f))
    red = {cell["clause"] for cell in report["cells"] if cell["state"] == "FAIL"}
    found.clauses_red = sorted({*found.clauses_red, *red})
    return True


def _places(fault: Fault) -> list[list[str]]:
    """Return where a fault has to show: of the C core on every level that this machine can use."""
    chosen = ["--impl", fault.implementation]
    if fault.implementation == "fucina.reference":
        return [chosen]
    levels = isa_levels() if fault.kind == "C" else isa_levels()[-1:]
    return [[*chosen, "--isa", level] for level in levels]


def trial(fault: Fault) -> Trial:
    """Try one fault."""
    found = Trial(fault)
    start = time.perf_counter()
    try:
        found.caught = all(_try(found, where) for where in _places(fault))
        if found.caught and not found.passed:  # the very first tests failed: is there one that passes at all?
            control = _suite([*_places(fault)[-1], "--filter", *ANYTHING], fault)[1]
            if control is None or not control["totals"]["passed"]:
                found.caught, found.problem = False, "broke everything: not a single check passed"
    except subprocess.TimeoutExpired as expired:
        found.problem += f"no end after {expired.timeout:.0f} s"
    found.seconds = time.perf_counter() - start
    return found
