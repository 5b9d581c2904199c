"""The score of a session: a table for people and a record for the documentation."""

from __future__ import annotations

import datetime
import json
import platform
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .trial import Trial

__all__ = ["kept", "show", "write"]


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


def kept(path: Path, names: Collection[str]) -> list[dict[str, Any]]:
    """Return the entries of an earlier record whose faults still exist."""
    if not path.exists():
        return []
    record = json.loads(path.read_text(encoding="utf-8"))
    return [{"date": record["date"], **fault} for fault in record["faults"] if fault["name"] in names]


def write(trials: Sequence[Trial], path: Path, earlier: Sequence[dict[str, Any]] = ()) -> None:
    """Write the record: what was tried now, and the earlier entries of the other faults."""
    today = datetime.date.today().isoformat()
    entries = {entry["name"]: entry for entry in earlier}
    entries |= {
        found.fault.name: {
            "name": found.fault.name,
            "kind": found.fault.kind,
            "clause": found.fault.clause,
            "text": found.fault.text,
            "caught": found.caught,
            "by": found.by,
            "clauses_red": found.clauses_red,
            "seconds": round(found.seconds, 1),
            "date": today,
        }
        for found in trials
    }
    record = {
        "date": today,
        "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "seconds": round(sum(entry["seconds"] for entry in entries.values()), 1),
        "faults": list(entries.values()),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
