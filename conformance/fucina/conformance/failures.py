"""From the exception of a failed test to the clause, index, got and expected of a report."""

from __future__ import annotations

import re

from fucina.conformance.results import Failure

__all__ = ["describe"]

_LONGEST = 2000
_NAMED = re.compile(r"([A-Z][A-Z0-9]*-[A-Z0-9]+-\d+): ")


def _leaf(error: BaseException) -> BaseException:
    """Return the first exception of a group: hypothesis raises one when examples fail in several ways."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _pattern(value: object) -> str:
    """Show a bit pattern in hex, anything else as it is."""
    if value is None:
        return ""
    if isinstance(value, bool | str | float):
        return str(value)
    try:
        return hex(value)  # type: ignore[arg-type]  # numpy integers have __index__ too
    except TypeError:
        return repr(value)


def _text(value: object) -> str:
    return "" if value is None else str(value)


def describe(error: BaseException) -> Failure:
    """Return what a failed test says about the disagreement.

    Parameters
    ----------
    error : BaseException
        What the test raised.  The attributes of ``fucina.conformance.compare.Mismatch`` are used where they are there.
    """
    error = _leaf(error)
    named = _NAMED.match(str(error))
    message = str(error).strip() or "no message"
    if not isinstance(error, AssertionError):
        message = f"{type(error).__name__}: {message}"
    notes = "\n".join(getattr(error, "__notes__", ()))
    if notes:
        message = f"{message}\n{notes}"
    if len(message) > _LONGEST:
        message = f"{message[:_LONGEST]} ... ({len(message) - _LONGEST} more characters)"
    return Failure(
        message=message,
        clause=_text(getattr(error, "clause", None)) or (named[1] if named else ""),
        index=_text(getattr(error, "index", None)),
        got=_pattern(getattr(error, "got", None)),
        expected=_pattern(getattr(error, "expected", None)),
        worst=f"{error.worst:g}" if getattr(error, "got", None) is not None and hasattr(error, "worst") else "",
    )
