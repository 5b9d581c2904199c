"""Origins: where in the caller's program something was made."""

from __future__ import annotations

import sys

__all__ = ["calling_line"]

OURS = __name__.rpartition(".")[0]


def calling_line() -> str | None:
    """Return ``file:line in function`` of the nearest caller outside this implementation.

    Notes
    -----
    Clauses: POOL-LEAK-1, CONTEXT-TRACE-1
    """
    frame = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module != OURS and not module.startswith(OURS + "."):
            return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
        if frame.f_back is None:
            break
        frame = frame.f_back
    return None
