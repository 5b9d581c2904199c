"""What is said where the package cannot be loaded.

``python -m fucina.fast`` loads the package before its ``__main__``, which so cannot catch anything: to that command a
refusal is one line and exit code 2, to everybody else an ImportError.
"""

from __future__ import annotations

import sys
from typing import NoReturn

__all__ = ["refuse"]


def refuse(message: str) -> NoReturn:
    """Give up loading the package."""
    if _is_the_command():
        print(f"python -m fucina.fast: {message}", file=sys.stderr)
        sys.exit(2)
    raise ImportError(message)


def _is_the_command() -> bool:
    """Whether Python is still looking for the module that it was told to run, and that is this package.

    As long as it looks, the first of ``sys.argv`` is ``-m``; the words behind it are the last of ``sys.orig_argv``, and
    the module's name stands before them.
    """
    words: list[str] = getattr(sys, "argv", [])
    return words[:1] == ["-m"] and sys.orig_argv[-len(words)].endswith("fucina.fast")
