"""Allocation: where memory comes from, and the switch that makes a chosen allocation fail.

Everything that the memory chapters call an allocation goes through here.  Memory is a numpy array of bytes whose first
byte lies at a multiple of 64; what it holds is not promised.
"""

from __future__ import annotations

import threading
from typing import Any, TypeAlias

import numpy as np

from fucina.reference.arguments import whole
from fucina.spec.errors import InvalidBounds, OutOfMemory
from fucina.spec.runtime import SLAB_ALIGN

__all__ = ["Bytes", "address_of", "allocate", "allocation_count", "charge", "fail_allocation"]

Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]
LARGEST = (1 << 63) - 1

_lock = threading.Lock()
_count = 0
_countdown = 0  # allocations until the one that fails; 0: none will


def fail_allocation(n: int | None) -> None:
    """Make the n-th allocation from now on fail, once; None: none.

    Parameters
    ----------
    n : int or None
        1 for the next allocation.

    Raises
    ------
    InvalidInteger, InvalidBounds
        If n is no integer, or below 1.

    Notes
    -----
    Clauses: STORAGE-FAULT-1
    """
    global _countdown
    found = 0 if n is None else whole("n", n, "STORAGE-FAULT-1")
    if n is not None and found < 1:
        raise InvalidBounds(f"n must be at least 1, got {found}", clause="STORAGE-FAULT-1")
    with _lock:
        _countdown = found


def allocation_count() -> int:
    """Return how many allocations there have been in this process, failed ones included.

    Notes
    -----
    Clauses: STORAGE-FAULT-1
    """
    return _count


def charge(what: str, clause: str) -> None:
    """Count one allocation; raise if it is the one that was chosen to fail.

    Raises
    ------
    OutOfMemory
        If it was.

    Notes
    -----
    Clauses: STORAGE-FAULT-1
    """
    global _count, _countdown
    with _lock:
        _count += 1
        fails = _countdown == 1
        _countdown = max(_countdown - 1, 0)
    if fails:
        raise OutOfMemory(f"no memory for {what} (this allocation was made to fail)", clause=clause)


def allocate(size: int, clause: str) -> Bytes:
    """Return ``size`` bytes at an address that is a multiple of 64.

    Raises
    ------
    OutOfMemory
        If there is no memory, or no memory could ever be that large.

    Notes
    -----
    Clauses: STORAGE-CREATE-1, STORAGE-FAULT-1
    """
    charge(f"{size} bytes", clause)
    if size > LARGEST - SLAB_ALIGN:
        raise OutOfMemory(f"no memory for {size} bytes", clause=clause)
    try:
        room = np.empty(size + SLAB_ALIGN, np.uint8)
    except (MemoryError, ValueError) as refusal:
        raise OutOfMemory(f"no memory for {size} bytes ({refusal})", clause=clause) from None
    skip = -address_of(room) % SLAB_ALIGN
    return np.ndarray((size,), np.uint8, buffer=room, offset=skip)


def address_of(memory: np.ndarray[Any, Any]) -> int:
    """Return the address of the first byte."""
    return int(memory.__array_interface__["data"][0])
