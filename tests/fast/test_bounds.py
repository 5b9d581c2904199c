"""The error bounds that the exact fills rely on are derived anew from the C sources, in exact rational arithmetic."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "fast" / "csrc" / "rng" / "bounds.py"


def test_the_bounds_in_the_sources_follow_from_the_kernels() -> None:
    done = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
