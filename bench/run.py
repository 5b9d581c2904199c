"""Measure fucina.fast beside its peers, side by side in interleaved runs, as ratios.

The parts: values (random streams and casts), blocks (block formats), memory (storage, views, raw operations), facade
(tensors with tags), each on one thread; and team (what a dispatch costs and what two threads gain), which means
something on two idle cores only.
"""

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
import team
from harness import Row
from peers import optional
from rich.console import Console
from rich.progress import track
from rich.table import Table

import fucina.fast
from tools.ggml import SOURCE

PARTS = ("values", "blocks", "memory", "facade", "team")
QUICK_SIZES = {"1e3": 1000, "1e6": 1_000_000}
SIZES = QUICK_SIZES | {"2^24": 1 << 24}


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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"which parts to measure, of {', '.join(PARTS)}; all if none is named"
    )
    parser.add_argument("--quick", action="store_true", help="a look in two minutes: fewer rounds, rows and values")
    parser.add_argument("--only", default="", help="only rows whose name contains this text (not in the part team)")
    parser.add_argument("--record", type=Path, metavar="DIR", help="write a record of each part into this folder")
    return parser


def _arguments() -> argparse.Namespace:
    parser = _parser()
    args = parser.parse_args()
    if unknown := [part for part in args.parts if part not in PARTS]:
        parser.error(f"no part is called {', '.join(unknown)}: they are {', '.join(PARTS)}")
    if args.record and (args.quick or args.only):
        parser.error("a record holds all rows of a full run: leave out --quick and --only, or --record")
    if args.record and not args.record.is_dir():
        parser.error(f"--record: {args.record} is no folder")
    return args


def _groups(part: str, *, quick: bool) -> Iterator[tuple[str, int, list[tuple[str, Callable[[], Row]]]]]:
    """Yield the groups of rows of a part: title, rounds, rows still to be made."""
    few = 7 if quick else 15
    if part == "blocks":
        yield "block formats", 3 if quick else 9, block_rows.rows(quick=quick)
    elif part == "facade":
        yield "tensors with tags", few, facade_rows.rows()
    elif part == "memory":
        yield "memory", few, memory_rows.rows(quick=quick)
    else:
        for title, n in QUICK_SIZES.items() if quick else SIZES.items():
            rows = [*rng_rows.rows(n), *cast_rows.rows(n, every_pair=not quick)]
            yield f"n = {title}", 7 if n > 1_000_000 else few, rows


def _measured(part: str, args: argparse.Namespace, console: Console) -> dict[str, object]:
    """Measure the rows of a part on one thread, show them, return what a record says of them."""
    records: list[dict[str, object]] = []
    for title, rounds, made in _groups(part, quick=args.quick):
        rows: list[Row] = []
        for make in track([make for name, make in made if args.only in name], description=title, console=console):
            row = make()
            row.measure(rounds)
            rows.append(row)
        console.print(_table(title, rows))
        records += [r.record() for r in rows]
    return {
        "method": "one thread, thread CPU time, contestants interleaved, medians of the rounds' ratios",
        "rows": records,
    } | ({"chain": memory_rows.peak()} if part == "memory" else {})


def main() -> int:
    """Measure the parts that the command line asks for, show them, write their records."""
    args = _arguments()
    torch = optional("torch")
    if torch:
        torch.set_num_threads(1)
    console = Console() if sys.stdout.isatty() else Console(width=120)
    for part in args.parts or PARTS:
        if part == "team":
            found = team.measured(console, quick=args.quick)
        else:
            fucina.fast.parallel.set_max_threads(1)
            found = _measured(part, args, console)
        if args.record:
            record = {
                "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
                "machine": _machine(),
                "versions": _versions() | ({"ggml of": SOURCE} if part == "blocks" and block_rows.ggml() else {}),
            }
            path = args.record / f"bench_{part}.json"
            path.write_text(json.dumps(record | found, indent=1) + "\n")
            console.print(f"{path} written")
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
