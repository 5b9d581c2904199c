"""What several row files need: optional peers, and memcpy as the machine's own limit."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
from typing import Any

import numpy as np
from harness import Contestant


def optional(name: str) -> Any:
    """Import a peer when it is installed, else return None."""
    return importlib.import_module(name) if importlib.util.find_spec(name) else None


def memcpy(moved: int) -> Contestant:
    """Return a copy that moves ``moved`` bytes in plus out."""
    half = max(moved // 2, 1)
    source, target = np.ones(half, np.uint8), np.zeros(half, np.uint8)
    into, from_, move = target.ctypes.data, source.ctypes.data, ctypes.memmove
    keep = (source, target)
    return Contestant("limit", "memcpy", lambda: (move(into, from_, half), keep))
