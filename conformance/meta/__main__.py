"""``python -m conformance.meta``: plant one fault after the other and see that the suite turns red at each.

Run it from the root of the repository, with the suite and a build of the library with ``-Dfaults=true`` installed
(``nox -s meta`` sees to both).  It ends with exit code 0 only if the suite is green without a fault and red with each.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from .faults import ROOT, every_fault
from .score import kept, show, write
from .trial import green, trial

RECORD = ROOT / "docs" / "records" / "meta.json"
PROCESSES = 2

Item = TypeVar("Item")
Result = TypeVar("Result")


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m conformance.meta", description=str(__doc__).partition("\n")[0])
    made.add_argument("only", nargs="*", metavar="TEXT", help="only faults whose name, clause or kind contains this")
    made.add_argument("--update", action="store_true", help="put the trials into the record, keep its rest")
    made.add_argument("--list", action="store_true", help="list the faults and run nothing")
    made.add_argument("--record", metavar="FILE", type=Path, help="write the record there (usual: if complete, docs)")
    return made


def _each(work: Callable[[Item], Result], items: Iterable[Item], what: str, console: Console) -> dict[Item, Result]:
    """Do a piece of work on each item, two at a time, under a progress bar."""
    items = list(items)
    done: dict[Item, Result] = {}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress, ThreadPoolExecutor(PROCESSES) as pool:
        bar = progress.add_task(what, total=len(items))
        futures = {pool.submit(work, item): item for item in items}
        for future in as_completed(futures):
            done[futures[future]] = future.result()
            progress.advance(bar)
            if not console.is_terminal and len(done) % 10 == 0:
                console.print(f"{what}: {len(done)} of {len(items)}")
    return {item: done[item] for item in items}


def main(arguments: Sequence[str]) -> int:
    """Run the session and return the exit code."""
    options = _parser().parse_args(arguments)
    console = Console() if sys.stdout.isatty() else Console(width=160)
    faults = every_fault(options.only)
    if options.list:
        for fault in faults:
            print(f"{fault.name:32} {fault.kind:7} {fault.clause:16} {fault.text}")
        return 0
    if not faults:
        console.print(f"no fault matches {' '.join(options.only)}")
        return 2
    if any(fault.kind == "C" for fault in faults) and not _is_planted():
        console.print("this fucina.fast was built without its faults: pip install . -Csetup-args=-Dfaults=true")
        return 2

    start = time.perf_counter()
    implementations = sorted({fault.implementation for fault in faults})
    areas = sorted({fault.clause.partition("-")[0] for fault in faults}) if options.only else ()
    without = partial(green, areas=areas)
    for implementation, (agrees, last) in _each(without, implementations, "without a fault", console).items():
        console.print(f"{implementation}: {last}", markup=False)
        if not agrees:
            console.print("the suite has to be green before it can turn red")
            return 1
    trials = list(_each(trial, faults, "with a fault", console).values())
    seconds = time.perf_counter() - start

    show(trials, console)
    console.print(f"in {seconds:.0f} s")
    all_caught = all(found.caught for found in trials)
    record = options.record or (RECORD if options.update or (all_caught and not options.only) else None)
    if record:
        write(trials, record, kept(record, {fault.name for fault in every_fault()}) if options.update else [])
        console.print(f"recorded in {record}")
    return 0 if all_caught else 1


def _is_planted() -> bool:
    from fucina.fast._native import ffi, lib

    return b"planted faults" in ffi.string(lib.fc_build())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
