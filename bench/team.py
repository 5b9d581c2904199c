"""The worker team: what a dispatch costs beside OpenMP and a pool of threads, and what two threads gain."""

from __future__ import annotations

from typing import Any

import dispatch
import gain
from rich.console import Console
from rich.table import Table

__all__ = ["measured"]


def measured(console: Console, *, quick: bool) -> dict[str, object]:
    """Measure and show both; return what a record says of them."""
    cases: list[Any] = dispatch.measured(console, quick=quick)
    table = Table("empty work on two participants", *cases[0]["microseconds"], title="dispatch, microseconds")
    for case in cases:
        table.add_row(case["case"], *(f"{time:.3g}" for time in case["microseconds"].values()))
    console.print(table)
    rows: list[Any] = gain.measured(console, quick=quick)
    table = Table("work", "values", "two threads over one", "goal", title="two threads")
    for row in rows:
        goal, ratio = row["goal"], row["ratio"]
        style = "bold red" if goal is not None and ratio > goal else ""
        line = (f"{row['kind']} {row['name']}", f"{row['n']:,}", f"{ratio:.2f}", f"{goal or '':}")
        table.add_row(*line, style=style)
    console.print(table)
    return {
        "method": "wall time, contestants interleaved, medians of nine rounds",
        "dispatch": cases,
        "gain": rows,
    }
