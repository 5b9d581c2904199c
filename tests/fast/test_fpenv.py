"""The core's words of the environment, and that the module and the core share one register with everybody."""

from __future__ import annotations

import ctypes
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fucina.fast import fpenv, rng, windows
from fucina.fast._native import lib
from fucina.spec.errors import InvalidBounds

if not fpenv.supported:
    pytest.skip("the registers cannot be reached here", allow_module_level=True)


def test_unused_and_reserved_bits_of_a_word_are_ignored() -> None:
    with fpenv.guard(), fpenv.probe():
        lib.fc_fpenv_set(0xFFFFFFE0)  # the processor stops a program that writes reserved bits
        assert lib.fc_fpenv_get() == 0
        lib.fc_fpenv_flags_set(0xFFFFFFC0)
        assert lib.fc_fpenv_flags() == 0


def test_it_is_the_register_that_an_instruction_reads(control_library: Path) -> None:
    control = ctypes.CDLL(str(control_library))
    control.control_get.restype = ctypes.c_uint32
    seen = {}
    for rounding in fpenv.RoundingMode:
        for underflow in fpenv.UnderflowMode:
            with fpenv.guard(), fpenv.probe():
                fpenv.set(fpenv.Environment(rounding, underflow))
                seen[rounding.name, underflow.name] = control.control_get()
    codes = {"nearest_even": 0, "downward": 1, "upward": 2, "toward_zero": 3}
    flushes = {"gradual": 0, "flush_to_zero": 0x8040}
    expected = {(r, u): 0x1F80 | codes[r] << 13 | flushes[u] for r in codes for u in flushes}
    assert {key: word & ~0x3F for key, word in seen.items()} == expected


def test_guarded_functions_between_ours_do_not_disturb() -> None:
    upward = fpenv.Environment(fpenv.RoundingMode.upward, fpenv.UnderflowMode.flush_to_zero)
    plain, out = np.zeros(4000, np.float32), np.zeros(4000, np.float32)
    rng.gaussian_fill(1, plain, 0.1)
    with fpenv.guard():
        fpenv.set(upward)
        with fpenv.probe() as probe:
            rng.gaussian_fill(1, out, 0.1)
        assert fpenv.get() == upward
    assert out.tobytes() == plain.tobytes()
    assert not probe.sample().overflow


@pytest.mark.parametrize(
    "call",
    [
        lambda: windows.operate("f16", "add", 0, 0),
        lambda: windows.operate("f32", "to_f32", 0),
        lambda: windows.operate("f64", "power", 0, 0),
    ],
)
def test_operations_that_there_are_not(call: Callable[[], int]) -> None:
    with pytest.raises(InvalidBounds, match="no operation"):
        call()


def test_values_pickle() -> None:
    for value in (fpenv.default_environment, fpenv.Exceptions(overflow=True), fpenv.RoundingMode.upward):
        assert pickle.loads(pickle.dumps(value)) == value
