"""Command line: ``python -m tools.exhaustive [--step N] [--record FILE]``."""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

import fucina.fast as fast
from fucina.spec import DType
from tools.exhaustive import judges

RECORD = Path(__file__).parent.parent.parent / "docs" / "records" / "exhaustive.json"
CHUNK = 1 << 23  # patterns of one sign and one exponent
STORAGE = {"bf16": "u2", "f16": "f2", "f8_e4m3": "u1", "f8_e5m2": "u1"}

cast_array: Any = fast.dtype.cast_array  # numpy's stubs call an array a Buffer from Python 3.12 on

Counts = Counter[tuple[str, str]]
"""(row, column) -> wrong values; every pair that was looked at is a key."""


def _compare(counts: Counts, examples: list[str], row: str, column: str, given: Any, got: Any, expected: Any) -> None:
    wrong = np.flatnonzero(got != expected)
    counts[row, column] += wrong.size
    if wrong.size:
        i = wrong[0]
        examples.append(f"{row}, {column}: {int(given[i]):#x} gives {int(got[i]):#x}, expected {int(expected[i]):#x}")


def chunk(index: int) -> tuple[Counts, list[str]]:
    """Judge one chunk of f32 patterns on every level."""
    counts: Counts = Counter()
    examples: list[str] = []
    patterns = np.arange(index * CHUNK, (index + 1) * CHUNK, dtype=np.uint64).astype(np.uint32)
    values = patterns.view(np.float32)
    for name, format in judges.FORMATS.items():
        for saturate in (False, True):
            row = f"f32 -> {name}" + (", saturate" if saturate else "")
            expected = judges.encoded(name, patterns, saturate)
            if not saturate:
                counts[row, "peer"] += judges.peer_agrees(name, patterns, expected)
            for level in fast.isa_levels():
                fast.set_isa(level)
                out = np.empty(CHUNK, STORAGE[name])
                cast_array(DType.f32, DType[name], values, out=out, saturate=saturate)
                _compare(counts, examples, row, level, patterns, out.view(format.code), expected)
    expected = judges.truncated(patterns)
    counts["f32 -> i32", "peer"] += int(np.count_nonzero(judges.truncated_by_integers(patterns) != expected))
    for level in fast.isa_levels():
        fast.set_isa(level)
        got = cast_array(DType.f32, DType.i32, values)
        _compare(counts, examples, "f32 -> i32", level, patterns, got, expected)
    return counts, examples[:20]


def back() -> tuple[Counts, list[str]]:
    """Judge all codes of the small formats on their way back."""
    counts: Counts = Counter()
    examples: list[str] = []
    for name, format in judges.FORMATS.items():
        codes = np.arange(2 << format.sign_shift).astype(format.code)
        for target, width in ((DType.f32, 4), (DType.f64, 8)):
            row, expected = f"{name} -> {target.name}", judges.decoded(name, width)
            with np.errstate(all="ignore"):
                peer = codes.view(format.peer).astype(f"f{width}").view(f"u{width}")
            number = ~np.isnan(expected.view(f"f{width}"))
            counts[row, "peer"] += int(np.count_nonzero(number & (peer != expected)))
            counts[row, "peer"] += int(np.count_nonzero(number == np.isnan(peer.view(f"f{width}"))))
            for level in fast.isa_levels():
                fast.set_isa(level)
                got = cast_array(DType[name], target, codes.view(STORAGE[name])).view(f"u{width}")
                _compare(counts, examples, row, level, codes, got, expected)
    return counts, examples[:20]


def _show(counts: Counts, console: Console) -> None:
    columns = sorted({c for _, c in counts}, key=lambda c: (c == "peer", c))
    table = Table(title="Wrong values")
    table.add_column("conversion")
    for column in columns:
        table.add_column("numpy, ml_dtypes against the table" if column == "peer" else column, justify="right")
    for row in dict.fromkeys(r for r, _ in counts):
        table.add_row(row, *(f"{counts[row, c]:,}" if (row, c) in counts else "" for c in columns))
    console.print(table)


def main() -> int:
    """Run all chunks on two processes, print the table, write the record of a complete and clean run."""
    parser = argparse.ArgumentParser(prog="python -m tools.exhaustive", description=__doc__)
    parser.add_argument("--step", type=int, default=1, help="take every STEP-th chunk only; writes no record")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--record", type=Path, default=RECORD, help="where the record goes")
    options = parser.parse_args()
    console = Console()
    began = time.monotonic()
    counts, examples = back()
    indices = range(0, 2**32 // CHUNK, options.step)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with (
        Progress(*columns, TimeRemainingColumn(), console=console) as progress,
        ProcessPoolExecutor(options.jobs) as pool,
    ):
        task = progress.add_task("chunks of 2^23 patterns", total=len(indices))
        for done in as_completed([pool.submit(chunk, i) for i in indices]):
            more, shown = done.result()
            for key, wrong in more.items():
                counts[key] += wrong
            examples += shown
            progress.advance(task)
    _show(counts, console)
    for line in examples[:20]:
        console.print(line, style="red", markup=False)
    wrong = sum(counts.values())
    seconds = time.monotonic() - began
    if wrong:
        console.print(f"[bold red]{wrong:,} wrong values")
        return 1
    console.print(f"[bold green]no wrong value; {seconds:.0f} s")
    if options.step == 1:
        options.record.write_text(json.dumps(_record(counts, seconds), indent=1) + "\n", encoding="utf-8")
    return 0


def _record(counts: Counts, seconds: float) -> dict[str, Any]:
    def size(row: str) -> int:
        source = row.split(" -> ")[0]
        return 2**32 if source == "f32" else 2 << judges.FORMATS[source].sign_shift

    rows = list(dict.fromkeys(r for r, _ in counts))
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": f"{platform.machine()}, {platform.system()}",
        "levels": list(fast.isa_levels()),
        "seconds": round(seconds),
        "wrong": 0,
        "values": sum(size(row) for row in rows),
        "versions": {name: version(name) for name in ("fucina", "numpy", "ml_dtypes")}
        | {"python": platform.python_version()},
        "rows": [
            {"conversion": row, "patterns": size(row), "wrong": {c: n for (r, c), n in counts.items() if r == row}}
            for row in rows
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
