"""Measure fucina.fast beside its peers, one thread, as ratios: ``python bench/run.py --help``."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import block_rows
import cast_rows
import facade_rows
import memory_rows
import rng_rows
from harness import Row
from peers import optional
from rich.console import Console
from rich.progress import track
from rich.table import Table

import fucina.fast
from tools.ggml import SOURCE

SIZES = {"1e3": 1000, "1e6": 1_000_000, "2^24": 1 << 24}


def _versions() -> dict[str, str]:
    found = {}
    for name in ("fucina", "numpy", "ml_dtypes", "torch", "randomgen", "gguf"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _machine() -> dict[str, str | int]:
    """Return what the figures depend on."""
    found: dict[str, str | int] = {
        "arch": platform.machine(),
        "isa": fucina.fast.isa(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
    }
    with contextlib.suppress(OSError):  # Linux has it
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                found["cpu"] = value.strip()
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and only the sizes 1e3 and 1e6")
    parser.add_argument(
        "--all-pairs", action="store_true", help="all 169 casts, not only those with a goal of their own"
    )
    parser.add_argument("--blocks", action="store_true", help="the block formats, which have sizes of their own")
    parser.add_argument("--facade", action="store_true", help="tensors with tags, of sizes of their own")
    parser.add_argument("--memory", action="store_true", help="storage, views and raw operations, of one size")
    parser.add_argument("--size", action="append", choices=SIZES, help="only this size (repeatable)")
    parser.add_argument("--only", default="", help="only rows whose name contains this text")
    parser.add_argument("--json", type=Path, help="write the record to this file")
    return parser


def _parts(args: argparse.Namespace) -> Iterator[tuple[str, int, list[tuple[str, Callable[[], Row]]]]]:
    """Yield the parts of the run: title, rounds, rows still to be made."""
    if args.blocks:
        yield "block formats", 5 if args.quick else 9, block_rows.rows(quick=args.quick)
        return
    if args.facade:
        yield "tensors with tags", 7 if args.quick else 15, facade_rows.rows()
        return
    if args.memory:
        yield "memory", 7 if args.quick else 15, memory_rows.rows(quick=args.quick)
        return
    for size in args.size or (["1e3", "1e6"] if args.quick else list(SIZES)):
        n = SIZES[size]
        made = [*rng_rows.rows(n), *cast_rows.rows(n, every_pair=args.all_pairs)]
        yield f"n = {size}", 7 if args.quick or n > 1_000_000 else 15, made


def main() -> int:
    """Run the rows that the command line asks for, show them, write the record."""
    args = _parser().parse_args()
    fucina.fast.parallel.set_max_threads(1)  # the rows are about one thread; bench/team_rows.py is about several
    torch = optional("torch")
    if torch:
        torch.set_num_threads(1)
    console = Console() if sys.stdout.isatty() else Console(width=120)
    records: list[dict[str, object]] = []
    for title, rounds, made in _parts(args):
        wanted = [make for name, make in made if args.only in name]
        rows: list[Row] = []
        for make in track(wanted, description=title, console=console):
            row = make()
            row.measure(rounds)
            rows.append(row)
        console.print(_table(title, rows))
        records += [r.record() for r in rows]
    if args.json:
        record = {
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "machine": _machine(),
            "versions": _versions() | ({"ggml of": SOURCE} if args.blocks and block_rows.ggml() else {}),
            "quick": args.quick,
            "method": "one thread, thread CPU time, contestants interleaved, medians of the rounds' ratios",
            "rows": records,
        }
        if args.memory:
            record["chain"] = memory_rows.peak()
        args.json.write_text(json.dumps(record, indent=1) + "\n")
    return 0


def _table(title: str, rows: list[Row]) -> Table:
    table = Table(title=title)
    for column in ("row", "ours ns/item", "rival", "rival ns/item", "ratio", "±", "goal", "of memcpy"):
        table.add_column(column, justify="left" if column in ("row", "rival") else "right")
    for row in rows:
        limit = row.fastest(kind="limit")
        share = f"{row.ratio(limit)[0]:.2f}" if limit else ""
        for goal in row.goals:
            if goal.most is not None:
                spent = row.spent(row.ours)
                style = "" if spent <= goal.most else "bold red"
                table.add_row(
                    row.name, f"{spent:.3f}", "the clock", "", "", "", f"{goal.most:g} ns", share, style=style
                )
                continue
            rival = row.fastest(goal.against, goal.kind)
            if rival is None:
                continue
            ratio, spread = row.ratio(rival)
            style = "" if ratio <= goal.ratio else "bold red"
            table.add_row(
                row.name,
                f"{row.spent(row.ours):.3f}",
                rival.label,
                f"{row.spent(rival):.3f}",
                f"{ratio:.3f}",
                f"{spread:.3f}",
                f"{goal.ratio:.2f}",
                share,
                style=style,
            )
    return table


if __name__ == "__main__":
    sys.exit(main())
