"""The score of a session: a table for people and a record for the documentation."""

from __future__ import annotations

import datetime
import json
import platform
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .trial import Trial

__all__ = ["show", "write"]


def show(trials: Sequence[Trial], console: Console) -> None:
    """Print the table, then what went wrong, then the score."""
    table = Table(title="Planted faults")
    for column in ("fault", "in", "clause", "seen by"):
        table.add_column(column, overflow="fold")
    table.add_column("s", justify="right")
    for found in trials:
        if not found.caught:
            by = "[bold red]NOT SEEN"
        elif not found.named:
            by = f"[yellow]{escape(found.by)} (clause {', '.join(found.clauses_red)})"
        else:
            by = escape(found.by)
        fault = found.fault
        table.add_row(fault.name, fault.kind, fault.clause, by, f"{found.seconds:.1f}")
    console.print(table)
    for found in trials:
        if found.problem:
            console.print(f"{found.fault.name} ({found.fault.text}): {found.problem}", markup=False)
    caught = sum(found.caught for found in trials)
    named = sum(found.named for found in trials)
    console.print(f"{caught} of {len(trials)} planted faults turned the suite red, {named} at their own clause")


def write(trials: Sequence[Trial], seconds: float, path: Path) -> None:
    """Write the record."""
    record = {
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "seconds": round(seconds, 1),
        "faults": [
            {
                "name": found.fault.name,
                "kind": found.fault.kind,
                "clause": found.fault.clause,
                "text": found.fault.text,
                "caught": found.caught,
                "by": found.by,
                "clauses_red": found.clauses_red,
                "seconds": round(found.seconds, 1),
            }
            for found in trials
        ],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
