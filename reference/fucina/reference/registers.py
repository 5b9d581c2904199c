"""The registers of the calling thread's floating-point unit, reached through the C library.

``fegetenv`` writes them to memory and ``fesetenv`` loads them from there; between the two one word is exchanged and
everything else, the x87 unit's part above all, goes back as it came.  That takes the layout of the C library's
``fenv_t``; glibc and musl agree about it on the two architectures below.  Where the layout is not known, or the library
is found to write something else, :data:`LAYOUT` is ``None``: nothing is read and nothing is written.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["LAYOUT", "Layout", "read", "write"]


class Layout(NamedTuple):
    """Where things are: ``fenv_t`` in bytes, the rest as bits of its control and status words.

    ``flush`` is all that flushes, ``reported`` what counts as flush_to_zero when it is seen.
    ``rounding`` holds the bits of each mode in the order nearest, toward zero, upward, downward; ``flags`` and
    ``traps`` hold a bit for each exception, in the order of ``fucina.spec.fpenv.FLAGS``.  ``traps_inverted``: a set bit
    is a mask.
    """

    size: int
    control_at: int
    status_at: int
    writable: int
    rounding: tuple[int, int, int, int]
    flush: int
    reported: int
    flags: tuple[int, ...]
    traps: tuple[int, ...]
    traps_inverted: bool


# MXCSR behind the 28 bytes of the x87 unit: flags 0-5, DAZ 6, masks 7-12, rounding 13-14, FTZ 15; the rest is reserved
_X86 = Layout(
    size=32,
    control_at=28,
    status_at=28,
    writable=0xFFFF,
    rounding=(0x0000, 0x6000, 0x4000, 0x2000),
    flush=0x8040,
    reported=0x8040,
    flags=(0x01, 0x04, 0x08, 0x10, 0x20, 0x02),
    traps=(0x0080, 0x0200, 0x0400, 0x0800, 0x1000, 0x0100),
    traps_inverted=True,
)
# FPCR, then FPSR
_ARM = Layout(
    size=8,
    control_at=0,
    status_at=4,
    writable=0xFFFFFFFF,
    rounding=(0x000000, 0xC00000, 0x400000, 0x800000),
    flush=0x01080000,
    reported=0x01000000,
    flags=(0x01, 0x02, 0x04, 0x08, 0x10, 0x80),
    traps=(0x0100, 0x0200, 0x0400, 0x0800, 0x1000, 0x8000),
    traps_inverted=False,
)

_FILL = 0xA5


def _find() -> tuple[Layout, Callable[[object], int], Callable[[object], int]] | None:
    """Return the layout and the two functions, None where they cannot be trusted.

    Clauses: FPENV-SUPPORT-1
    """
    layout = {"x86_64": _X86, "aarch64": _ARM}.get(platform.machine())
    if layout is None or sys.platform != "linux" or sys.maxsize < 1 << 32 or sys.byteorder != "little":
        return None
    for name in (None, "libm.so.6"):  # what the interpreter itself is linked to, then the library by name
        try:
            library = ctypes.CDLL(name)
            functions = library.fegetenv, library.fesetenv
        except (OSError, AttributeError):
            continue
        memory = (ctypes.c_ubyte * 256)(*[_FILL] * 256)
        if functions[0](memory) or bytes(memory[layout.size :]) != bytes([_FILL]) * (256 - layout.size):
            return None
        control = int.from_bytes(bytes(memory[layout.control_at : layout.control_at + 4]), "little")
        if control & ~layout.writable:
            return None
        return layout, *functions
    return None


_FOUND = _find()

LAYOUT: Layout | None = _FOUND[0] if _FOUND else None
"""Where the registers are, ``None`` where they cannot be reached."""


def _memory() -> ctypes.Array[ctypes.c_ubyte]:
    assert _FOUND
    memory = (ctypes.c_ubyte * _FOUND[0].size)()
    _FOUND[1](memory)
    return memory


def _word(memory: ctypes.Array[ctypes.c_ubyte], at: int) -> int:
    return int.from_bytes(bytes(memory[at : at + 4]), "little")


def read() -> tuple[int, int]:
    """Return the control and the status word; 0 and 0 where they cannot be reached.

    Clauses: FPENV-GET-1, FPENV-FLAGS-1, FPENV-SUPPORT-1
    """
    if LAYOUT is None:
        return 0, 0
    memory = _memory()
    return _word(memory, LAYOUT.control_at), _word(memory, LAYOUT.status_at)


def write(*, control: tuple[int, int] = (0, 0), status: tuple[int, int] = (0, 0)) -> None:
    """Exchange bits of the two words, each given as a mask and the new bits under it; all others stay.

    Clauses: FPENV-SET-1, FPENV-SET-3, FPENV-FLAGS-3, FPENV-SUPPORT-1
    """
    if LAYOUT is None:
        return
    memory = _memory()
    for at, (mask, bits) in ((LAYOUT.control_at, control), (LAYOUT.status_at, status)):
        word = (_word(memory, at) & ~mask | bits & mask) & LAYOUT.writable
        memory[at : at + 4] = list(word.to_bytes(4, "little"))
    assert _FOUND
    _FOUND[2](memory)
