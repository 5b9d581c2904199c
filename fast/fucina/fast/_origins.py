"""Origins: where in the caller's program something was made (clauses POOL-LEAK-1, CONTEXT-TRACE-1)."""

from __future__ import annotations

import sys

__all__ = ["calling_line"]

_OURS = __name__.rpartition(".")[0]


def calling_line() -> str | None:
    """Return ``file:line in function`` of the nearest caller outside ``fucina.fast``.

    Clauses: POOL-LEAK-1
    """
    frame = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module != _OURS and not module.startswith(f"{_OURS}."):
            return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
        if frame.f_back is None:
            break
        frame = frame.f_back
    return None
