"""The end of a run on a terminal: the matrix, what is not claimed, what disagrees, the verdict."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fucina.conformance.results import Check, Outcome, Run, State

__all__ = ["show"]

_STYLES = {
    State.OK: "green",
    State.FAIL: "bold white on red",
    State.NO_TEST: "bold red",
    State.SKIPPED: "bold red",
    State.NOT_RUN: "red",
    State.EXPECTED: "yellow",
    State.NOT_CLAIMED: "dim",
}
_SHOWN = 40


def show(run: Run, console: Console) -> None:
    """Print everything a person wants to know after a run; the last line is plain text."""
    if run.planned:
        console.print(_matrix(run))
        _left_out(run, console)
    _failures(run, console)
    _missing(run, console)
    for problem in run.problems:
        _plain(console, f"{problem.kind}: {problem.where}: {problem.message}", "bold red")
    if run.stopped:
        _plain(console, f"stopped early: {run.stopped}", "bold red")
    _plain(console, "")
    if run.agrees:
        _plain(console, f"{run.verdict}.", "bold green")
    else:
        _plain(console, "NOT CONFORMING: see above.", "bold red")
    _plain(console, run.last_line)


def _plain(console: Console, text: str, style: str = "") -> None:
    console.print(Text(text, style=style), soft_wrap=True, highlight=False)


def _matrix(run: Run) -> Table:
    table = Table(title="clause x implementation", header_style="bold", pad_edge=False, show_edge=False)
    table.add_column("clause", no_wrap=True)
    table.add_column("title", overflow="ellipsis", no_wrap=True, ratio=1, min_width=12)
    for target in run.targets:
        table.add_column(Text(target.label.removeprefix("fucina.")), overflow="fold", min_width=8, max_width=28)
    chapter = ""
    for clause_id, clause in run.clauses.items():
        if clause.chapter != chapter:
            chapter = clause.chapter
            table.add_section()
            table.add_row(Text(chapter, style="bold cyan"))
        cells = [run.cells[clause_id, t.label] for t in run.targets]
        table.add_row(clause_id, Text(clause.title), *[Text(c.text, style=_STYLES[c.state]) for c in cells])
    return table


def _left_out(run: Run, console: Console) -> None:
    for target in run.targets:
        missing = Counter(
            run.clauses[i].chapter for i, label in run.in_state(State.NOT_CLAIMED) if label == target.label
        )
        if missing:
            listed = ", ".join(f"{chapter} ({n} clauses)" for chapter, n in missing.items())
            _plain(console, f"{target.label} does not claim: {listed}", "yellow")
    reasons = Counter((e.reason, e.target) for e in run.left_out if e.reason != "outside the filter")
    for (reason, label), n in sorted(reasons.items()):
        if not reason.startswith("not claimed"):
            _plain(console, f"left out on {label}: {n} tests ({reason})", "dim")
    for check in run.checks:
        if check.outcome is Outcome.EXPECTED:
            _plain(console, f"failed as expected: {check.case}: {check.reason}", "yellow")
    for label, note in run.notes:
        _plain(console, f"note on {label}: {note}", "dim")


def _failures(run: Run, console: Console) -> None:
    grouped: dict[tuple[str, str], list[Check]] = {}
    for check in run.failures:
        grouped.setdefault((check.test, check.target), []).append(check)
    for first, *others in list(grouped.values())[:_SHOWN]:
        _failure(first, len(others), console)
    if len(grouped) > _SHOWN:
        _plain(console, f"... and {len(grouped) - _SHOWN} more: --report DIR writes them all", "bold red")


def _failure(check: Check, others: int, console: Console) -> None:
    _plain(console, "")
    _plain(console, f"FAIL {', '.join(check.blamed)} on {check.target}", "bold red")
    _plain(console, f"  test      {check.case}")
    if failure := check.failure:
        if failure.got:
            _plain(console, f"  index     {failure.index}")
            _plain(console, f"  got       {failure.got}")
            _plain(console, f"  expected  {failure.expected}")
        first, *rest = failure.message.splitlines() or [""]
        _plain(console, f"  message   {first}")
        for line in rest:
            _plain(console, f"            {line}")
    if others:
        _plain(console, f"  and {others} more of this test, with other parameters")


def _missing(run: Run, console: Console) -> None:
    for clause_id, label in run.in_state(State.NO_TEST):
        _plain(console, f"NO TEST: {clause_id} on {label}: no test of the suite checks this claimed clause", "bold red")
    for clause_id, label in run.in_state(State.SKIPPED):
        note = run.cells[clause_id, label].note
        _plain(console, f"skipped: {clause_id} on {label}: {note}", "bold red")
