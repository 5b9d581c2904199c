"""The caller's accrued flags around work that numpy does: it clears and raises some even where it moves integers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fucina.fast.fpenv import raise_exceptions, test_exceptions

__all__ = ["kept_flags"]


@contextmanager
def kept_flags() -> Iterator[None]:
    """Put the accrued flags back as they were.

    Clauses: NUM-ENV-3
    """
    accrued = test_exceptions()
    try:
        yield
    finally:
        raise_exceptions(accrued)
