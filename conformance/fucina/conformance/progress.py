"""How far the run is: a bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import contextlib
import time

import pytest
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from fucina.conformance.plugin import Listener
from fucina.conformance.results import Check, Outcome, Run

__all__ = ["Bar", "Lines", "progress_for"]


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


class Bar(Listener):
    """A live bar: what runs now, how many are done, how many disagree."""

    def __init__(self, console: Console) -> None:
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[bad]}"),
            TimeElapsedColumn(),
            console=console,
            redirect_stdout=False,
            redirect_stderr=False,
            transient=True,
            expand=True,
        )
        self._task: TaskID | None = None
        self._bad = 0

    def pytest_configure(self, config: pytest.Config) -> None:
        """Start the bar: to collect the tests takes some seconds already."""
        super().pytest_configure(config)
        self._task = self._bar.add_task("collecting the tests", total=None, bad="")
        self._bar.start()

    def planned(self, run: Run) -> None:
        """Say how much there is to do."""
        if self._task is not None:
            self._bar.update(self._task, total=len(run.checks), description="starting")

    def checked(self, run: Run, check: Check) -> None:
        """Move on by one."""
        if self._task is None:
            return
        self._bad += check.outcome is Outcome.FAILED
        bad = f"[red]{self._bad} failed[/]" if self._bad else "[green]0 failed[/]"
        self._bar.update(self._task, advance=1, description=escape(check.target), bad=bad)

    def pytest_unconfigure(self) -> None:
        """Take the bar away."""
        self._bar.stop()


class Lines(Listener):
    """A line at every tenth of the way and at least every half minute."""

    def __init__(self, console: Console, every: float = 30.0) -> None:
        self._console = console
        self._every = every
        self._done = self._bad = self._tenths = 0
        self._last = time.monotonic()

    def pytest_configure(self, config: pytest.Config) -> None:
        """Say a word: to collect the tests takes some seconds already."""
        super().pytest_configure(config)
        with contextlib.suppress(pytest.exit.Exception):  # too early to end; the next word will
            self._say("collecting the tests")

    def planned(self, run: Run) -> None:
        """Say how much there is to do."""
        clauses = _counted(len(run.clauses), "clause")
        self._say(f"{_counted(len(run.checks), 'check')} of {clauses} on {_counted(len(run.targets), 'target')}")

    def checked(self, run: Run, check: Check) -> None:
        """Speak when there is something new to say."""
        self._done += 1
        self._bad += check.outcome is Outcome.FAILED
        tenths = 10 * self._done // len(run.checks)
        if tenths > self._tenths or time.monotonic() - self._last >= self._every:
            self._tenths = tenths
            self._say(f"{self._done:6d} of {len(run.checks)} checks, {self._bad} failed, now {check.target}")

    def _say(self, text: str) -> None:
        self._last = time.monotonic()
        try:
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)
            self._console.file.flush()
        except (SystemExit, BrokenPipeError):  # rich makes the first of the second; `head` has seen enough
            pytest.exit("nobody reads the output any more", returncode=1)
        except OSError as error:
            pytest.exit(f"the output cannot be written: {error}", returncode=1)


def progress_for(console: Console) -> Listener:
    """Return the listener that suits where the output goes."""
    return Bar(console) if console.is_terminal else Lines(console)
