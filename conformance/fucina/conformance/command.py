"""The command that runs the suite: pytest in this process shielded from the current folder, the output."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from fucina.conformance import report, terminal
from fucina.conformance.errors import UsageError
from fucina.conformance.plugin import RUN, Listener, make_run
from fucina.conformance.progress import progress_for
from fucina.conformance.results import Run

__all__ = ["main"]


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


def main(options: argparse.Namespace) -> int:
    """Run the suite and return the exit code.

    Parameters
    ----------
    options : argparse.Namespace
        What the parser of :mod:`fucina.conformance.options` made of the command line.

    Raises
    ------
    UsageError
        If the request makes no sense.
    """
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
    try:
        terminal.show(run, console)
        console.file.flush()
    finally:  # a pipe that is gone or a disk that is full does not take the report along
        if options.report:
            report.write(run, options.report)
    good = run.agrees and status == pytest.ExitCode.OK
    if run.agrees and not good:
        print(f"fucina.conformance: pytest ended with exit code {int(status)}", file=sys.stderr)
    return 0 if good else 1
