"""Command line: ``python -m tools.elsewhere [--only TEXT] [--record FILE]``."""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from fucina.conformance import vectors
from tools.elsewhere import targets
from tools.elsewhere.calls import CallSet
from tools.elsewhere.play import Played, play
from tools.elsewhere.sets import big_sets, vector_sets
from tools.elsewhere.targets import BUILDS, Build

RECORD = targets.ROOT / "docs" / "records" / "elsewhere.json"


def _one_build(
    build: Build, place: Path, files: dict[str, Path], sets: tuple[CallSet, ...], progress: Progress, task: Any
) -> tuple[list[Played], int]:
    """Compile one build, run its C tests and play every set on its targets."""
    try:
        programs = targets.build(build, place)
    except RuntimeError as error:
        progress.advance(task, 1 + len(build.targets))
        return [Played(target, problems=[str(error)]) for target in build.targets], 0
    tests = [
        "meson",
        "test",
        "-C",
        str(place),
        "--suite",
        "quick",
        "--num-processes",
        "1",
        "--no-rebuild",
        "--print-errorlogs",
    ]
    problems, passed = [], 0
    try:
        without_forks = {"FUCINA_TESTS_WITHOUT_FORKS": "1"} if build.cross else {}
        found = re.search(r"^Ok:\s+(\d+)", targets.run(tests, build.name, without_forks), re.MULTILINE)
        passed = int(found[1]) if found else 0
    except RuntimeError as error:
        problems.append(f"C tests: {error}")
    progress.advance(task)
    results = []
    for target in build.targets:
        played = play(target, programs / "vector_runner", files, sets)
        played.problems += problems
        if target.emulator[1:2] == ("-cpu",):  # the CPU that lacks every level above the lowest: they must be refused
            try:
                targets.run([*target.emulator, str(programs / "test_dispatch"), "only-baseline"], target.name)
            except RuntimeError as error:
                played.problems.append(f"C test of the levels: {error}")
        results.append(played)
        progress.advance(task)
    return results, passed


def _differences(results: list[Played], sets: tuple[CallSet, ...]) -> list[str]:
    """Return a line for every problem and for every digest that is not the first target's."""
    lines = [f"{r.target.name}: {problem}" for r in results for problem in r.problems]
    for calls in sets:
        played = [r for r in results if calls.name in r.digests]
        lines += [
            f"{r.target.name}: {calls.name}: digest {r.digests[calls.name]}, "
            f"{played[0].target.name} has {played[0].digests[calls.name]}"
            for r in played
            if r.digests[calls.name] != played[0].digests[calls.name]
        ]
    return lines


def _table(results: list[Played], sets: tuple[CallSet, ...]) -> Table:
    table = Table(title=f"One digest per set on {len(results)} targets")
    for column, justify in (("set", "left"), ("calls", "right"), ("values", "right"), ("prescribed", "right")):
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    table.add_column("SHA-256 of all outputs")
    table.add_column("targets that agree", justify="right")
    for calls in sets:
        digests = [r.digests[calls.name] for r in results if calls.name in r.digests]
        digest = digests[0] if digests else ""
        agree = digests.count(digest)
        style = "green" if digests and agree == len(digests) else "bold red"
        cells = (
            calls.name,
            f"{len(calls.calls):,}",
            f"{calls.values:,}",
            f"{calls.expected_values:,}",
            digest[:16] + "…",
        )
        table.add_row(*cells, f"[{style}]{agree} of {len(digests)}")
    return table


def _record(
    results: list[Played], sets: tuple[CallSet, ...], tests: dict[str, int], builds: tuple[Build, ...]
) -> dict[str, Any]:
    by_target = {t.name: b for b in builds for t in b.targets}
    tools = sorted({tool for b in builds for tool in b.tools})
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "contract": vectors.VERSION,
        "machine": f"{platform.machine()}, {platform.system()}",
        "mismatches": 0,
        "tools": {tool: targets.version(tool) for tool in tools},
        "targets": [
            {
                "name": r.target.name,
                "compiler": by_target[r.target.name].compiler,
                "optimisation": f"-O{by_target[r.target.name].optimisation}",
                "level": r.target.level,
                "runs": " ".join(r.target.emulator) or "native",
                "c_tests_passed": tests[by_target[r.target.name].name],
                "seconds": round(r.seconds, 1),
            }
            for r in results
        ],
        "sets": [
            {
                "name": calls.name,
                "calls": len(calls.calls),
                "values": calls.values,
                "prescribed_values": calls.expected_values,
                "sha256": results[0].digests[calls.name],
                "targets": sum(calls.name in r.digests for r in results),
            }
            for calls in sets
        ],
    }


def main() -> int:
    """Build, play, compare; write the record only when every target agrees."""
    parser = argparse.ArgumentParser(prog="python -m tools.elsewhere", description=__doc__)
    parser.add_argument("--only", default="", help="builds whose name contains this text; writes no record")
    parser.add_argument("--record", type=Path, default=RECORD, help="where the record goes")
    parser.add_argument("--jobs", type=int, default=2, help="builds at the same time")
    options = parser.parse_args()
    console = Console()
    builds = tuple(b for b in BUILDS if options.only in b.name)
    if not builds:
        console.print(f"no build's name contains {options.only!r}: " + ", ".join(b.name for b in BUILDS))
        return 2
    if not targets.native_architecture():
        console.print("the native targets need an x86-64 Linux machine")
        return 2
    if missing := targets.missing_tools(builds):
        for tool, packages in missing.items():
            console.print(f"[red]{tool} is missing: apt-get install {packages}")
        return 2
    with tempfile.TemporaryDirectory(prefix="fucina-elsewhere-") as folder:
        results, tests, sets = _all(builds, Path(folder), console, options.jobs)
    console.print(_table(results, sets))
    lines = _differences(results, sets)
    for line in lines:
        console.print(line, style="red", markup=False)
    if lines:
        console.print(f"[bold red]{len(lines)} differences")
        return 1
    if not options.only:
        record = json.dumps(_record(results, sets, tests, builds), indent=1, ensure_ascii=False)
        options.record.write_text(record + "\n", encoding="utf-8")
    console.print(f"[bold green]{len(results)} targets: the same bits everywhere")
    return 0


def _all(
    builds: tuple[Build, ...], place: Path, console: Console, jobs: int
) -> tuple[list[Played], dict[str, int], tuple[CallSet, ...]]:
    sets = vector_sets() + big_sets()
    files = {}
    for i, calls in enumerate(sets):
        files[calls.name] = place / f"{i}.calls"
        calls.write(files[calls.name])
    results: list[Played] = []
    tests: dict[str, int] = {}
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console) as progress, ThreadPoolExecutor(jobs) as pool:
        task = progress.add_task("builds and targets", total=sum(1 + len(b.targets) for b in builds))
        waiting = {
            b.name: pool.submit(_one_build, b, place / f"build{i}", files, sets, progress, task)
            for i, b in enumerate(builds)
        }
        for name, future in waiting.items():
            played, passed = future.result()
            results += played
            tests[name] = passed
    return results, tests, sets


if __name__ == "__main__":
    sys.exit(main())
