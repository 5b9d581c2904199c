"""The command that runs the suite: its options, pytest in this process shielded from the current folder, the output."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from rich.console import Console

from fucina.conformance import report, terminal
from fucina.conformance.errors import UsageError
from fucina.conformance.plugin import RUN, Listener, make_run
from fucina.conformance.progress import progress_for
from fucina.conformance.results import Run

__all__ = ["main", "parser"]

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
makes no sense (no such module, clause or level)."""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(
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


@contextlib.contextmanager
def _shielded() -> Iterator[None]:
    """Keep plugins and options of the surroundings out of this pytest run, and hypothesis out of the current folder."""
    saved = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="fucina-conformance-") as scratch:
        for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_THEME", "HYPOTHESIS_PROFILE"):
            os.environ.pop(name, None)
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = scratch
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(saved)


def _pytest_arguments(options: argparse.Namespace) -> list[str]:
    suite = str(options.suite.resolve())
    made = [suite, f"--rootdir={suite}", f"--confcutdir={suite}", "-c", os.devnull, "--import-mode=importlib"]
    made += ["--strict-markers", "--strict-config", "-o", "empty_parameter_set_mark=fail_at_collect"]
    made += ["-o", "consider_namespace_packages=true"]  # the tests are modules of fucina.conformance.suite
    for plugin in ("no:terminal", "no:cacheprovider", "_hypothesis_pytestplugin", "fucina.conformance.plugin"):
        made += ["-p", plugin]
    for option, values in (("impl", options.impl), ("isa", options.isa), ("clauses", options.clauses)):
        made += [f"--{option}={value}" for value in values]
    made += ["--entry-points"] * options.entry_points + ["--slow"] * options.slow + ["-x"] * options.exitfirst
    if options.expect:
        made.append(f"--expect={Path(options.expect).resolve()}")
    if options.random_seed is not None:
        made += [f"--random-seed={options.random_seed}", f"--hypothesis-seed={options.random_seed}"]
    return made


class _Keeper(Listener):
    """Holds on to the run, for the report after pytest has ended."""

    run: Run | None = None

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self.run = session.config.stash[RUN]


def _console() -> Console:
    """Return a console on a copy of the standard output, which pytest's capturing does not touch."""
    if sys.stdout is None:  # closed by the caller; the exit code and the report are left
        return Console(file=open(os.devnull, "w", encoding="utf-8"))
    try:
        stream = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding=sys.stdout.encoding or "utf-8", errors="replace")
    except (OSError, io.UnsupportedOperation):
        return Console(file=sys.stdout)
    console = Console(file=stream)
    return console if console.is_terminal else Console(file=stream, width=160)


def main(arguments: Sequence[str]) -> int:
    """Run the suite and return the exit code.

    Raises
    ------
    UsageError
        If the request makes no sense.
    """
    options = parser().parse_args(arguments)
    if not options.suite.is_dir():
        raise UsageError(f"there is no folder {str(options.suite)!r} to take the tests from")
    console = _console()
    with _shielded():
        make_run(options)  # a usage error is raised here, where it can be shown in few words
        if options.report:
            try:  # before the run, which takes a while
                report.prepare(options.report)
            except OSError as error:
                raise UsageError(f"the report cannot be written to {str(options.report)!r}: {error}") from error
        keeper = _Keeper()
        status = pytest.main(_pytest_arguments(options), plugins=[progress_for(console), keeper])
    run = keeper.run
    if run is None:
        print(f"fucina.conformance: pytest did not start (exit code {int(status)})", file=sys.stderr)
        return 1
    terminal.show(run, console)
    if options.report:
        report.write(run, options.report)
    good = run.agrees and status == pytest.ExitCode.OK
    if run.agrees and not good:
        print(f"fucina.conformance: pytest ended with exit code {int(status)}", file=sys.stderr)
    return 0 if good else 1
