"""The caller's floating-point environment moves no bit and comes back as it was (clauses NUM-ENV-2, NUM-ENV-3)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import fucina.fast as fast


def _probe(library: Path, *arguments: str, level: str = "") -> Any:
    script = Path(__file__).with_name("environment_probe.py")
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", str(script), str(library), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "FUCINA_ISA": level},
        check=False,
    )
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr[-2000:]}"
    return json.loads(done.stdout)


@pytest.mark.parametrize("level", fast.isa_levels())
@pytest.mark.parametrize("part", ["fills", "casts", "refused"])
def test_no_environment_moves_a_bit_or_is_changed(control_library: Path, part: str, level: str) -> None:
    seen = _probe(control_library, part, level=level)
    assert seen["witness"], "the probe does not change the environment"
    assert seen["runs"] == 63 * seen["cases"] >= 63 * 10
    assert seen["moved"] == []
    assert seen["leaked"] == []


@pytest.mark.parametrize("environment", [0x1F80, 0xFFC0, 0x5F80])
def test_import_leaves_the_control_bits(control_library: Path, environment: int) -> None:
    before, after = _probe(control_library, "import", hex(environment))
    assert before == environment
    assert after == environment
