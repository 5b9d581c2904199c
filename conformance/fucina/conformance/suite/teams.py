"""What tests of the team have in common: programs of their own with a watchdog, and meeting points for tasks."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fucina.conformance.targets import windows_of
from fucina.spec import Sharing

__all__ = ["PATIENCE", "SIZES", "Meeting", "program", "threads"]

PATIENCE = 60.0
"""Seconds after which a program or a meeting counts as hung."""

SIZES = (1, 2, 3, 5, 8)
"""Numbers of participants that the tests try."""


def program(impl: Any, text: str, *, variables: dict[str, str | None] | None = None, fails: bool = False) -> str:
    """Run a Python program that sees the implementation as ``fucina`` and numpy as ``np``; return what it wrote.

    stderr comes after stdout.  A program that hangs is killed and fails the test.
    """
    environment = {key: value for key, value in os.environ.items() if not key.startswith("FUCINA_")}
    for key in ("FUCINA_ISA", "FUCINA_FAULT"):
        if key in os.environ:
            environment[key] = os.environ[key]
    for name, value in (variables or {}).items():
        if value is None:
            environment.pop(name, None)
        else:
            environment[name] = value
    # Python 3.12 on warns of every fork beside threads; that it works is what the tests are about
    start = "import warnings\nwarnings.simplefilter('ignore', DeprecationWarning)\n"
    start += f"import faulthandler, sys\nfaulthandler.dump_traceback_later({PATIENCE - 10}, exit=True)\n"
    start += f"sys.path[:0] = {sys.path!r}\n"
    start += f"import numpy as np\nimport {impl.__name__} as fucina\n"
    done = subprocess.run(
        [sys.executable, "-c", start + text], capture_output=True, text=True, env=environment, timeout=PATIENCE
    )
    assert fails or done.returncode == 0, f"ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


@contextmanager
def threads(impl: Any, count: int) -> Iterator[None]:
    """Set the number of threads for a while, which do share the work of bulk calls if the implementation offers it."""
    parallel, windows = impl.parallel, windows_of(impl.__name__)
    before = parallel.cpu_thread_count(1 << 62)
    parallel.set_max_threads(count)
    try:
        if isinstance(windows, Sharing):  # else a call may be left to one thread, as beside other busy processes
            windows.share_always(True)
        yield
    finally:
        if isinstance(windows, Sharing):
            windows.share_always(False)
        parallel.set_max_threads(before)


class Meeting:
    """Tasks that wait for each other show that different threads run them; alone one gives up, and the test fails."""

    def __init__(self, parties: int) -> None:
        self._barrier = threading.Barrier(parties)
        self.identities: set[int] = set()

    def __call__(self, _: object = None) -> None:
        """Wait for the others."""
        self.identities.add(threading.get_ident())
        self._barrier.wait(PATIENCE / 2)
