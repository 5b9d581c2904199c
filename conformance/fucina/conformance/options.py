"""The options of the command that runs the suite.  They can be read, and asked for help, with the library alone."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

__all__ = ["Parser", "parser"]

_SUITE = Path(__file__).parent / "suite"

_DESCRIPTION = """\
Check implementations of Fucina against the specification, clause by clause, bit for bit.

Runs every test of the suite on every implementation, on each instruction-set level that this machine can use, and ends
in a matrix of clause x implementation. For each disagreement it names the clause, the test, the index, the bits it got
and the bits it expected. `python -m fucina.conformance explain CLAUSE` tells all about one clause."""

_EPILOG = """\
examples:
  python -m fucina.conformance                            the reference and the C implementation, everything
  python -m fucina.conformance --impl yourmodule          your implementation, from a file in this folder or installed
  python -m fucina.conformance --filter 'RNG-*' -x        the streams only, stop at the first failure
  python -m fucina.conformance --isa baseline             only this instruction-set level
  python -m fucina.conformance --report out               also write out/index.html, report.json and junit.xml
  python -m fucina.conformance explain RNG-GAUSS-1        a clause, the code for it, its tests, vectors and faults

Your module has to have the shape of fucina.spec.Implementation, and names the chapters that it claims:
  capabilities = frozenset({"rng"})
Clauses of other chapters are listed as not claimed. Failures that you know about can stand in a file, with the reason:
  [[expect]]
  target = "yourmodule"
  clause = "RNG-GAUSS-1"
  reason = "uses the C library's log, which is not correctly rounded"

exit code: 0 if every claimed clause has a test and every test agrees (or fails as expected), 1 if not, 2 if the request
makes no sense (no such module, clause or level) or the output cannot be written."""


class Parser(argparse.ArgumentParser):
    """A parser whose help, if it cannot be written, is an error: argparse's own passes over a disk that is full."""

    def print_help(self, file: Any = None) -> None:
        """Print the help."""
        print(self.format_help(), end="", file=file, flush=True)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = Parser(
        prog="python -m fucina.conformance",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = made.add_argument

    def several(flag: str, metavar: str, dest: str, text: str) -> None:
        add(flag, metavar=metavar, dest=dest, help=text, action="extend", nargs="+", default=[])

    several("--impl", "MODULE", "impl", "implementations to check (usually: fucina.reference fucina.fast)")
    add("--entry-points", action="store_true", help="add those that installed packages offer (fucina.implementations)")
    several("--isa", "LEVEL", "isa", "only these instruction-set levels (usually: all that this machine can use)")
    several("--filter", "GLOB", "clauses", "only clauses whose id matches, such as 'RNG-*'")
    add("--expect", metavar="FILE", help="TOML file of failures that are expected, each with its reason")
    add("--report", metavar="DIR", type=Path, help="write index.html, report.json and junit.xml into this folder")
    add("-x", "--exitfirst", action="store_true", help="stop at the first failure")
    add("--slow", action="store_true", help="also the slow tests, and many more random examples")
    add("--seed", metavar="N", type=int, dest="random_seed", help="draw other random examples than the usual ones")
    add("--suite", metavar="DIR", type=Path, default=_SUITE, help="the tests of this folder instead of the suite's own")
    return made
