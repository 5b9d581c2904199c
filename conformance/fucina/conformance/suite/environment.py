"""The calling thread's floating-point environment through the C library, where its layout is known."""

from __future__ import annotations

import ctypes
import ctypes.util
import gc
import platform
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import pytest

from fucina.spec.errors import NonDefaultFloatEnvironment

__all__ = [
    "ALL_FLAGS",
    "EVERY",
    "FLAG_BITS",
    "MACHINE",
    "MODES",
    "TRAPPING",
    "Snapshot",
    "environment",
    "flags_of",
    "needed",
    "raised",
    "refusals",
    "snapshot",
]

# fenv_t as the C libraries of Linux lay it out: the word that governs SSE or NEON arithmetic, and its fields
_X86 = {"size": 32, "control": 28, "status": 28}
_ARM = {"size": 8, "control": 0, "status": 4}
MACHINE = (
    {"x86_64": _X86, "AMD64": _X86, "aarch64": _ARM}.get(platform.machine()) if platform.system() == "Linux" else None
)
"""Where the words lie; ``None`` where nothing is known."""

# what each environment changes in the default control word
_X86_MODES = {"upward": 0x4000, "downward": 0x2000, "toward zero": 0x6000, "flush to zero": 0x8040, "both": 0xE040}
_ARM_MODES = {"upward": 1 << 22, "downward": 2 << 22, "toward zero": 3 << 22, "flush to zero": 1 << 24, "both": 7 << 22}
MODES: dict[str, int] = {"nearest": 0, **(_X86_MODES if MACHINE is _X86 else _ARM_MODES if MACHINE is _ARM else {})}
"""The environments in which a thread may safely run for a while, by name."""

_ROUNDINGS = {name: MODES.get(name, 0) for name in ("nearest", "upward", "downward", "toward zero")}
_FLUSHES = {"FTZ": 0x8000, "DAZ": 0x0040} if MACHINE is _X86 else {"FZ": 1 << 24, "FZ16": 1 << 19}
EVERY: dict[str, int] = (
    {
        ", ".join([name, *chosen]): rounding | sum(_FLUSHES[flush] for flush in chosen)
        for name, rounding in _ROUNDINGS.items()
        for n in range(len(_FLUSHES) + 1)
        for chosen in combinations(_FLUSHES, n)
    }
    if MACHINE
    else {"nearest": 0}
)
"""Every combination of a rounding mode with what may be flushed, by name; "nearest" is the default."""

TRAPPING = 0x0680 if MACHINE is _X86 else 0x0700
"""Traps on invalid operations, divisions by zero and overflows: a stray one ends the process."""

_CONTROL = 0xFFC0 if MACHINE is _X86 else 0x07F79F00
# the five flags of IEEE 754; the "denormal operand" of x86 is none of them
_FLAGS = 0x3D if MACHINE is _X86 else 0x1F

ALL_FLAGS = _FLAGS
"""Every exception flag raised."""

_NAMES = ("invalid", "division_by_zero", "overflow", "underflow", "inexact", "denormal")
FLAG_BITS: dict[str, int] = dict(
    zip(_NAMES, (1, 4, 8, 16, 32, 2) if MACHINE is _X86 else (1, 2, 4, 8, 16, 128), strict=True)
)
"""The bits of the six exceptions in the status word, by their documented names."""


@dataclass(frozen=True)
class Snapshot:
    """Control bits (rounding, underflow, trap masks) and accrued exception flags of a thread."""

    control: int
    flags: int


def needed() -> None:
    """Skip the test where nothing could be observed: it must not count as passed."""
    if MACHINE is None:
        pytest.skip("the floating-point environment of this platform cannot be reached")


def refusals(impl: Any) -> tuple[type[Exception], ...]:
    """Return what an implementation may raise in another environment: nothing, unless it says so (clause NUM-ENV-2)."""
    return (NonDefaultFloatEnvironment,) if getattr(impl, "refuses_environments", False) else ()


def _library() -> ctypes.CDLL:
    return ctypes.CDLL(ctypes.util.find_library("m") or "libm.so.6")


def _entry(name: str) -> Callable[[object], int]:
    function: Callable[[object], int] = getattr(_library(), name)
    return function


if MACHINE is not None:
    _get, _set = _entry("fegetenv"), _entry("fesetenv")


def _word(buffer: bytearray, place: str) -> int:
    assert MACHINE is not None
    return int.from_bytes(buffer[MACHINE[place] : MACHINE[place] + 4], "little")


def _put(buffer: bytearray, place: str, word: int) -> None:
    assert MACHINE is not None
    buffer[MACHINE[place] : MACHINE[place] + 4] = word.to_bytes(4, "little")


def _read() -> bytearray:
    assert MACHINE is not None
    words = bytearray(MACHINE["size"])
    if _get(_pointer(words)):
        raise OSError("fegetenv failed")
    return words


def _pointer(words: bytearray) -> object:
    return (ctypes.c_char * len(words)).from_buffer(words)


def snapshot() -> Snapshot:
    """Return the calling thread's control bits and flags."""
    buffer = _read()
    return Snapshot(_word(buffer, "control") & _CONTROL, _word(buffer, "status") & _FLAGS)


def raised() -> set[str]:
    """Return the names of the exceptions that have accrued on the calling thread."""
    status = _word(_read(), "status")
    return {name for name, bit in FLAG_BITS.items() if status & bit}


def flags_of(names: Iterable[str]) -> int:
    """Return the bits of named exceptions, for ``environment``."""
    return sum(FLAG_BITS[name] for name in names)


@contextmanager
def environment(mode: str, flags: int = 0, traps: int = 0) -> Iterator[None]:
    """Run the block in an environment of MODES or EVERY, with the given flags raised; put back what was there before.

    Keep the block short: everything in the thread computes in this environment, the interpreter too.  The garbage
    collector waits meanwhile: others hang work on it that computes with floats.
    """
    collects = gc.isenabled()
    gc.disable()
    before = _read()
    inside = _read()
    control = (0x1F80 if MACHINE is _X86 else 0) ^ (MODES | EVERY)[mode] ^ traps
    _put(inside, "control", (_word(inside, "control") & ~_CONTROL) | control)
    _put(inside, "status", (_word(inside, "status") & ~flags_of(FLAG_BITS)) | flags)
    try:
        if _set(_pointer(inside)):
            raise OSError("fesetenv failed")
        yield
    finally:
        _set(_pointer(before))
        if collects:
            gc.enable()
