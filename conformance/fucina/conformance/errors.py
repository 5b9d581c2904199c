"""The error of the command line and of the plugin's options."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["UsageError", "suggestion"]


class UsageError(Exception):
    """The request cannot be carried out as written; the message says what would be possible."""


def suggestion(given: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean A, B?"`` for the names nearest to ``given``, or an empty string."""
    near = difflib.get_close_matches(given, list(known), n=3, cutoff=0.5)
    near.sort(key=lambda name: name.rpartition("-")[0] != given.rpartition("-")[0])  # another number of the same topic
    return f"; did you mean {', '.join(near)}?" if near else ""
