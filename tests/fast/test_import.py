"""Importing the package: quick, without a thread, without a trace in the floating-point environment."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

import fucina.fast as fast

TIMES = 8


def _said(code: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def _seconds(code: str) -> float:
    """Return the processor time of a new interpreter that runs this."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def test_it_takes_hardly_longer_than_numpy() -> None:
    numpy, ours = [], []
    for _ in range(TIMES):  # in turns, so that a noisy neighbour touches both
        numpy.append(_seconds("import numpy"))
        ours.append(_seconds("import fucina.fast"))
    assert min(ours) <= 1.3 * min(numpy)


def test_it_starts_no_thread() -> None:
    count = "len(os.listdir('/proc/self/task'))"
    assert _said(f"import os, numpy; before = {count}; import fucina.fast; print({count} - before)") == ["0"]


@pytest.mark.skipif(not fast.fpenv.supported, reason="the environment of this machine cannot be seen")
def test_it_changes_no_float_environment() -> None:
    code = (
        "import numpy; from fucina.fast._native import lib; before = lib.fc_fpenv_get(); import fucina.fast as f; "
        "print(before == lib.fc_fpenv_get(), lib.fc_fpenv_get() == lib.FC_FPENV_NEAREST_EVEN)"
    )
    assert _said(code) == ["True", "True"]


@pytest.mark.skipif(not fast.fpenv.supported, reason="the environment of this machine cannot be seen")
def test_what_is_loaded_later_leaves_no_trace() -> None:
    code = """
import fucina.fast as f
from fucina.fast._native import lib
for name in f.__all__:
    if name in vars(f):
        continue
    lib.fc_fpenv_flags_set(lib.FC_FLAG_OVERFLOW)
    lib.fc_fpenv_set(lib.FC_FPENV_UPWARD)
    getattr(f, name)
    word, flags = lib.fc_fpenv_get(), lib.fc_fpenv_flags()
    lib.fc_fpenv_set(lib.FC_FPENV_NEAREST_EVEN)
    if (word, flags) != (lib.FC_FPENV_UPWARD, lib.FC_FLAG_OVERFLOW):
        print(name)
"""
    assert _said(code) == []


def test_every_name_is_there() -> None:
    assert set(fast.__all__) <= set(dir(fast))
    assert all(getattr(fast, name) is not None for name in fast.__all__)
    with pytest.raises(AttributeError, match="nonsense"):
        fast.nonsense  # noqa: B018
