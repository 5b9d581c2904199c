"""Run a command with the sanitizers' runtimes loaded first: ``python -m tools.sanitized pytest tests/fast``.

For an extension module built with ``-Db_sanitize=address,undefined -Db_lundef=false``: Python itself is not
instrumented, so the runtimes have to be preloaded.  Leaks are not looked for (the interpreter keeps memory on purpose),
the first finding ends the process, malloc refuses what is too large as it does otherwise (the suite asks for that
error), and Python's small objects come from malloc so that their borders are watched too.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["environment", "main"]


def _runtime(library: str) -> str:
    path = subprocess.run(["gcc", f"-print-file-name={library}"], capture_output=True, text=True, check=True).stdout
    if not Path(path.strip()).is_absolute():  # gcc echoes the bare name of what it does not find
        raise SystemExit(f"{library} is missing: apt-get install gcc")
    return path.strip()


def environment() -> dict[str, str]:
    """Return the variables that a program with sanitized extension modules needs."""
    return {
        "LD_PRELOAD": f"{_runtime('libasan.so')} {_runtime('libubsan.so')}",
        "ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1:detect_stack_use_after_return=1:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        "PYTHONMALLOC": "malloc",
    }


def main() -> int:
    """Run the rest of the command line in that environment."""
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    return subprocess.run(sys.argv[1:], env=os.environ | environment()).returncode


if __name__ == "__main__":
    sys.exit(main())
