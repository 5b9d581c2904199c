"""The first call of a process does what every later one does: it imports nothing and raises no flag."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fucina.conformance.suite import environment

SCRIPT = """
import importlib, sys
from fucina.conformance.suite import environment
from fucina.conformance.suite.work import calls
work = calls(importlib.import_module(sys.argv[1]))
loaded = set(sys.modules)
for name, call in work.items():
    with environment.environment("nearest"):
        call()
        flags = environment.snapshot().flags
    if flags:
        print(f"{name} raised {flags:#x}")
print(*sorted(set(sys.modules) - loaded))
"""


@pytest.mark.skipif(
    environment.MACHINE is None, reason="the floating-point environment of this platform is out of reach"
)
@pytest.mark.parametrize("module", ["fucina.reference", "fucina.fast"])
def test_the_first_call_raises_no_flag_and_imports_nothing(module: str) -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT, module], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
