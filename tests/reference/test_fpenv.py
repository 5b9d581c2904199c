"""The reference's way to the registers: honest where it does not know them, and nothing of the x87 unit is touched."""

from __future__ import annotations

import ctypes
import platform
import subprocess
import sys

import pytest

from fucina.reference import registers
from fucina.reference.fpenv import Environment, Guard, RoundingMode, UnderflowMode, set

UNKNOWN = """
import platform, sys
{change}
import fucina.reference as fucina
part = fucina.fpenv
upward = part.Environment(part.RoundingMode.upward, part.UnderflowMode.flush_to_zero)
assert part.supported is False
with part.guard() as guard, part.probe() as probe:
    record = part.Record()
    part.set(upward)
    part.raise_exceptions(part.Exceptions(invalid=True))
    part.clear_exceptions()
    answers = part.get(), part.rounding_mode(), part.underflow_mode(), record.environment
    part.assert_default()
    record.check()
assert answers == (None,) * 4, answers
assert probe.end() == part.test_exceptions() == part.Exceptions()
print(guard, probe, record, 1.0 / float(sys.argv[1]))
"""


@pytest.mark.parametrize(
    "change",
    [
        "platform.machine = lambda: 'riscv64'",
        "sys.platform = 'darwin'",
        "import ctypes; ctypes.CDLL = lambda name: (_ for _ in ()).throw(OSError(name))",
        # a library that writes more than the layout has
        "import ctypes; write = lambda memory: ctypes.memset(memory, 0, 64) and 0; "
        "ctypes.CDLL = lambda name: type('L', (), {'fegetenv': staticmethod(write), 'fesetenv': staticmethod(write)})",
        # a word with reserved bits set is no MXCSR
        "import ctypes; write = lambda memory: ctypes.memset(memory, 255, 32) and 0; "
        "ctypes.CDLL = lambda name: type('L', (), {'fegetenv': staticmethod(write), 'fesetenv': staticmethod(write)})",
    ],
    ids=["another processor", "another system", "no library", "another size", "another layout"],
)
def test_where_the_registers_are_not_known(change: str) -> None:
    if platform.machine() != "x86_64" and "255" in change:
        pytest.skip("every bit of FPCR may be set")
    script = UNKNOWN.format(change=change)
    done = subprocess.run([sys.executable, "-c", script, "3"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "<Guard of None> <Probe of Exceptions()> <Record of None> 0.3333333333333333\n"


def test_the_x87_unit_keeps_its_environment() -> None:
    if registers.LAYOUT is None or platform.machine() != "x86_64":
        pytest.skip("no x87 unit, or not reached")
    library = ctypes.CDLL(None)

    def words() -> bytes:
        memory = (ctypes.c_ubyte * 32)()
        library.fegetenv(memory)
        return bytes(memory[:12])  # control, status and tag words; behind them stand addresses of instructions

    before, rounding = words(), library.fegetround()
    guard = Guard()
    try:
        set(Environment(RoundingMode.downward, UnderflowMode.flush_to_zero))
        within = words(), library.fegetround()
    finally:
        guard.restore()
    assert within == (before, rounding)
    assert words() == before


def test_reserved_bits_are_written_as_zeros() -> None:
    if registers.LAYOUT is None or platform.machine() != "x86_64":
        pytest.skip("the reserved bits are those of MXCSR")
    control = registers.read()[0]
    registers.write(control=(0xFFFF0000, 0xFFFF0000))  # the processor stops a program that writes them
    assert registers.read()[0] & ~0x3F == control & ~0x3F
