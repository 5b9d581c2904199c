"""A watchdog for tests that may hang: the process ends, after the stack of each thread has gone to the real stderr.

It is faulthandler's, which needs no GIL, so it also ends what hangs in native code that holds it.  A process has one of
these: where pytest's ``faulthandler_timeout`` is set, that one stays and this does nothing; a timer that somebody else
has set is lost at the first test that is watched.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import sys
from collections.abc import Iterator

import pytest

__all__ = ["SECONDS", "close", "prepare", "watched"]

SECONDS = 300.0
"""How long a watched test may take: far more than any does."""

_STDERR = pytest.StashKey[int]()


def prepare(config: pytest.Config) -> None:
    """Keep a way to stderr, before pytest captures it."""
    with contextlib.suppress(AttributeError, OSError):  # it is closed, or nobody's
        config.stash[_STDERR] = os.dup((sys.__stderr__ or sys.stderr).fileno())


def close(config: pytest.Config) -> None:
    """Give it back."""
    if _STDERR in config.stash:
        os.close(config.stash[_STDERR])
        del config.stash[_STDERR]


def _of_the_user(config: pytest.Config) -> bool:
    return config.pluginmanager.hasplugin("faulthandler") and float(config.getini("faulthandler_timeout") or 0) > 0


@contextlib.contextmanager
def watched(config: pytest.Config) -> Iterator[None]:
    """End the process with exit code 1 if the block takes longer than ``SECONDS``."""
    if _STDERR not in config.stash or _of_the_user(config):
        yield
        return
    faulthandler.dump_traceback_later(SECONDS, file=config.stash[_STDERR], exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
