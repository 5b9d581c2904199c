"""The floating-point environment: results do not depend on it, and calls leave it as it was.

What can be seen from Python is seen through the C library; where its layout is not known the tests are skipped.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import Mismatch
from fucina.conformance.suite import environment as fpenv
from fucina.conformance.suite.work import arithmetic, calls, pattern, refused
from fucina.conformance.targets import Target
from fucina.spec.errors import FucinaError


@cache
def _answers(target: Target) -> dict[str, tuple[Callable[[], Any], Any]]:
    """Return every call with what it gives in the default environment."""
    return {name: (call, pattern(call())) for name, call in (calls(target.module) | arithmetic(target.module)).items()}


@clause("NUM-ENV-1", "NUM-ENV-2")
@pytest.mark.parametrize("mode", [mode for mode in fpenv.EVERY if mode != "nearest"] or ["nearest"])
def test_results_in_any_environment(target: Target, mode: str) -> None:
    fpenv.needed()
    wrong = []
    for name, (call, expected) in _answers(target).items():
        try:
            with fpenv.environment(mode):
                got = call()
        except fpenv.refusals(target.module):
            continue
        if pattern(got) != expected:
            wrong.append(name)
    if wrong:
        raise Mismatch(
            f"NUM-ENV-2: {mode}: other bits from {len(wrong)} calls: {', '.join(wrong[:5])}", count=len(wrong)
        )


@clause("NUM-ENV-1", "NUM-ENV-2")
def test_the_environments_do_change_arithmetic(impl: Any) -> None:
    # otherwise the tests above would prove nothing
    fpenv.needed()
    one, third = np.float64(1), np.float64(3)
    tiny = np.float64(2.0**-1070)
    seen = {}
    for mode in fpenv.MODES:
        with fpenv.environment(mode):
            seen[mode] = (one / third, -one / third, tiny / third)
    plain = seen["nearest"]
    assert seen["upward"][1] != plain[1] or seen["upward"][0] != plain[0]
    assert seen["downward"][1] != plain[1] or seen["downward"][0] != plain[0]
    assert seen["flush to zero"][2] == 0.0 != plain[2]
    assert fpenv.snapshot().control == fpenv.snapshot().control


@clause("NUM-ENV-3")
@pytest.mark.parametrize("mode", list(fpenv.MODES))
@pytest.mark.parametrize("flags", [0, fpenv.ALL_FLAGS], ids=["no flags", "all flags"])
def test_control_bits_and_flags_stay(impl: Any, mode: str, flags: int) -> None:
    fpenv.needed()
    wrong = []
    work = [(*one, fpenv.refusals(impl)) for one in calls(impl).items()]
    work += [(*one, (FucinaError,)) for one in refused(impl).items()]
    for name, call, allowed in work:
        try:
            with fpenv.environment(mode, flags):
                before = fpenv.snapshot()
                try:
                    call()
                finally:
                    after = fpenv.snapshot()
        except allowed:
            pass
        if after != before:
            wrong.append(f"{name} ({before.control:#x}, {before.flags:#x} -> {after.control:#x}, {after.flags:#x})")
    if wrong:
        listed = ", ".join(wrong[:5])
        raise Mismatch(f"NUM-ENV-3: {mode}: changed by {len(wrong)} calls: {listed}", count=len(wrong))


_TRAPPED = """
import importlib, sys
from fucina.conformance.suite import environment as fpenv
from fucina.conformance.suite.work import calls, pattern
impl = importlib.import_module(sys.argv[1])
if sys.argv[2]:
    impl.set_isa(sys.argv[2])
for name, call in calls(impl).items():
    print(name, flush=True)
    expected = pattern(call())
    try:
        with fpenv.environment("nearest", traps=fpenv.TRAPPING):
            got = call()
    except fpenv.refusals(impl):
        continue
    if pattern(got) != expected:
        sys.exit("other bits")
"""


@clause("NUM-ENV-1", "NUM-ENV-2")
def test_unmasked_traps(target: Any) -> None:
    # in a process of its own: where a trap strikes, the process ends
    fpenv.needed()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    ran = subprocess.run(
        [sys.executable, "-c", _TRAPPED, target.module_name, target.isa or ""],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        check=False,
    )
    if ran.returncode:
        last = ran.stdout.strip().rpartition("\n")[2]
        raise Mismatch(f"NUM-ENV-2: traps unmasked, exit code {ran.returncode} at {last}: {ran.stderr.strip()[-300:]}")
