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

from .faults import ROOT, Fault

__all__ = ["Trial", "green", "trial"]

TIMEOUT = 600
ANYTHING = ("DTYPE-NAME-1", "RNG-STREAM-1")  # clauses of quick tests that have little in common


@dataclass
class Trial:
    """What became of a fault.

    ``by`` is the first test that disagreed; ``clauses_red`` are the clauses that this run found violated, ``named``
    says whether the fault's own is among them; ``problem`` says in words why the fault does not count as caught.
    """

    fault: Fault
    caught: bool = False
    by: str = ""
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


def green(implementation: str) -> tuple[bool, str]:
    """Run the whole suite without a fault; return whether it agrees, and its last line."""
    code, report, output = _suite(["--impl", implementation])
    if code or not report or not report["agrees"]:
        return False, output
    return True, report["summary"]


def _accident(failure: dict[str, Any]) -> bool:
    """Whether a check fell over instead of failing: it ended in an exception that is no answer of the library's."""
    kind = getattr(builtins, failure["message"].partition(":")[0], None)
    return isinstance(kind, type) and issubclass(kind, BaseException)


def _judge(found: Trial, code: int, report: dict[str, Any] | None, output: str) -> None:
    """Decide whether a run shows the fault: red, and by comparisons, on every level that has it."""
    found.problem = ""
    if code != 1 or report is None or report["problems"]:
        found.problem = f"the run broke down, exit code {code}: {output}"
        return
    disagreements = [f for f in report["failures"] if not _accident(f)]
    seen = {f["target"] for f in disagreements}
    missed = [t["label"] for t in report["targets"] if t["label"] not in seen]
    if missed:
        found.problem = f"not seen on {', '.join(missed)}"
        return
    found.caught = True
    found.by = disagreements[0]["test"]
    found.clauses_red = sorted({c["clause"] for c in report["cells"] if c["state"] == "FAIL"})


def trial(fault: Fault) -> Trial:
    """Run the suite with a fault in force: first the tests of its clause, then, if they do not see it, all of them."""
    found = Trial(fault)
    start = time.perf_counter()
    # the reference has one level and is slow: the first failure says it all
    chosen = ["--impl", fault.implementation] + ["-x"] * (fault.implementation == "fucina.reference")
    try:
        ended = _suite([*chosen, "--filter", fault.clause], fault)
        _judge(found, *ended)
        if not found.caught:
            first = found.problem
            ended = _suite(chosen, fault)
            _judge(found, *ended)
            found.problem = f"the tests of {fault.clause}: {first}; the whole suite: {found.problem or 'red'}"
        if found.caught and not _passed(ended[1]):
            ended = _suite(["--impl", fault.implementation, "--filter", *ANYTHING], fault)
            if not _passed(ended[1]):
                found.caught, found.problem = False, "broke everything: not a single check passed"
    except subprocess.TimeoutExpired as expired:
        found.caught, found.problem = False, f"no end after {expired.timeout:.0f} s"
    found.seconds = time.perf_counter() - start
    return found


def _passed(report: dict[str, Any] | None) -> int:
    return int(report["totals"]["passed"]) if report else 0
