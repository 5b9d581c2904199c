"""Run a test program over and over for some minutes: ``python -m tools.soak PROGRAM MINUTES``.

The program ends itself when it hangs; the first run that fails, or lasts ten minutes, ends the soak.
"""

from __future__ import annotations

import subprocess
import sys
import time

__all__ = ["main"]


def main() -> int:
    """Soak, and say how many runs there were."""
    program, minutes = sys.argv[1], float(sys.argv[2])
    start = told = time.monotonic()
    end, runs = start + minutes * 60, 0
    while time.monotonic() < end or not runs:
        done = subprocess.run([program], capture_output=True, text=True, timeout=600)
        runs += 1
        if done.returncode:
            print(f"run {runs} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
            return 1
        if time.monotonic() - told >= 30:
            told = time.monotonic()
            print(f"{(told - start) / 60:.1f} of {minutes:g} minutes, {runs} runs", flush=True)
    print(f"{runs} runs in {minutes:g} minutes, none failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
