"""The calling thread's control bits by name, and in a person's words."""

from __future__ import annotations

import platform
from typing import Any

from fucina.fast import fpenv
from fucina.fast._native import lib
from fucina.spec.fpenv import FLAGS

__all__ = ["DEFAULT", "sentence", "shown", "state"]


def state() -> dict[str, Any]:
    """Return the calling thread's control bits by name."""
    word = lib.fc_fpenv_get()
    rounding = fpenv.rounding_mode()
    traps = word >> lib.FC_FPENV_TRAP_SHIFT
    found: dict[str, Any] = {"rounding": rounding.name if rounding else None}
    found |= {name: bool(word & bit) for name, bit in _SWITCHES.items()}
    return {**found, "traps": [flag for bit, flag in enumerate(FLAGS) if traps >> bit & 1]}


_SWITCHES = {
    "flush_to_zero": lib.FC_FPENV_FLUSH_RESULTS,
    "denormals_are_zero": lib.FC_FPENV_FLUSH_OPERANDS,
    "flush_f16_to_zero": lib.FC_FPENV_FLUSH_HALVES,
}
if platform.machine() != "aarch64":
    del _SWITCHES["flush_f16_to_zero"]

DEFAULT: dict[str, Any] = {"rounding": "nearest_even", **dict.fromkeys(_SWITCHES, False), "traps": []}


def shown(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list):
        return " and ".join(value).replace("_", " ") if value else "none"
    return str(value).replace("_", " ")


def sentence(now: dict[str, Any]) -> str:
    """Return what ``state`` returned as a person would say it."""
    return ", ".join(f"{key.replace('_', ' ')} {shown(value)}" for key, value in now.items())
