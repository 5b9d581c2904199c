"""A child process that runs somebody else's code, and what its parent knows of it however it ends."""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import select
import signal
import struct
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

__all__ = ["Ending", "Log", "apart"]

_HEAD = struct.Struct("<Q")
_SIZE = 1 << 25
_FULL = b'["full"]\n'
_KEYS = {signal.SIGINT, signal.SIGQUIT}  # a terminal sends them to each process of the group
_PASSED = {*_KEYS, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2}
_PR_SET_PDEATHSIG = 1


class Log:
    """What a child tells its parent: in memory that both have, whatever the child closes and whatever ends it."""

    def __init__(self, size: int = _SIZE) -> None:
        self._memory = mmap.mmap(-1, size)  # takes pages as they are written
        self._end = _HEAD.size
        self._writer = 0
        _HEAD.pack_into(self._memory, 0, self._end)

    def begin(self) -> None:
        """Write from now on: in this process, and in no child that it may come to have."""
        self._writer = os.getpid()

    @property
    def mine(self) -> bool:
        """Whether this process is the one that writes."""
        return os.getpid() == self._writer

    def put(self, kind: str, *what: Any) -> None:
        """Write an entry; what there is no room for is dropped, and the last entry says that something was."""
        if not self.mine or self._end == len(self._memory):
            return
        line = json.dumps([kind, *what]).encode() + b"\n"
        if self._end + len(line) + len(_FULL) > len(self._memory):
            line = _FULL.rjust(len(self._memory) - self._end)
        end = self._end + len(line)
        self._memory[self._end : end] = line
        self._end = end
        _HEAD.pack_into(self._memory, 0, end)  # last, so that an entry is there as a whole or not at all

    def entries(self) -> Iterator[list[Any]]:
        """Yield what the child wrote."""
        (end,) = _HEAD.unpack_from(self._memory, 0)
        yield from map(json.loads, self._memory[_HEAD.size : end].splitlines())


@dataclass
class Ending:
    """How a child ended."""

    code: int
    """The exit code, or minus the number of the signal that killed it."""
    sent: set[int] = field(default_factory=set)
    """The signals that the parent was sent meanwhile."""

    @property
    def signal(self) -> str | None:
        """The signal by name, and what it means."""
        if self.code >= 0:
            return None
        try:
            name = signal.Signals(-self.code).name
        except ValueError:  # one of the real-time signals
            name = f"signal {-self.code}"
        meaning = signal.strsignal(-self.code)
        return f"{name} ({meaning})" if meaning else name

    def follow(self) -> None:
        """End this process by the signal that ended the child, if it was meant for both."""
        number = -self.code
        if number == signal.SIGINT or number in self.sent:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)


def apart() -> Ending | None:
    """Fork; return None in the child, and in the parent how the child ended.

    The parent passes on the signals that it is sent, and the child does not outlive it.
    """
    sent: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        if number != signal.SIGCHLD:
            sent.append(number)

    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    ignored = {number for number in _PASSED if signal.getsignal(number) in (signal.SIG_IGN, None)}
    parent = os.getpid()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED)
    before = {number: signal.signal(number, note) for number in {*_PASSED, signal.SIGCHLD} - ignored}
    try:
        with warnings.catch_warnings():  # of threads, such as those of a BLAS library, which sees to forks itself
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            return _wait(child, sent)
        _end_with(parent)
        return None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _end_with(parent: int) -> None:
    """Let the kernel kill this process when its parent is killed: nobody else would."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:
        os._exit(128 + signal.SIGKILL)


def _wait(child: int, sent: list[int]) -> Ending:
    """Wait for the child, and pass signals on; a signal may come in another thread, so it is a pipe that wakes."""
    reader, writer = os.pipe()
    for end in (reader, writer):
        os.set_blocking(end, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    passed = 0
    try:
        while True:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return Ending(os.waitstatus_to_exitcode(status), set(sent))
            for number in sent[passed:]:
                passed += 1
                if number not in _KEYS or not _in_front(child):
                    os.kill(child, number)
            select.select([reader], [], [])
            with contextlib.suppress(BlockingIOError):
                while os.read(reader, 512):
                    pass
    finally:
        signal.set_wakeup_fd(before)
        os.close(reader)
        os.close(writer)


def _in_front(child: int) -> bool:
    """Return whether the child is in the foreground of the terminal, and is sent itself what a key sends."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgid(child)
    except OSError:
        return False
    finally:
        os.close(terminal)
