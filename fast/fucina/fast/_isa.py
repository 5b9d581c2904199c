"""Instruction-set levels: which this machine can use, and which is in force."""

from __future__ import annotations

import os

from fucina.fast._native import ffi, lib
from fucina.fast._refusal import refuse
from fucina.fast._shown import shown
from fucina.spec.errors import InvalidBounds

__all__ = ["isa", "isa_levels", "set_isa"]


def _name(level: int) -> str:
    return ffi.string(lib.fc_isa_name(level)).decode("ascii")


_USABLE = {_name(level): level for level in range(lib.fc_isa_count()) if lib.fc_isa_usable(level)}


def isa_levels() -> tuple[str, ...]:
    """Return the levels that this machine can use, lowest first.

    Clauses: NUM-ISA-1
    """
    return tuple(_USABLE)


def isa() -> str:
    """Return the level in force.

    It is the highest one unless the environment variable ``FUCINA_ISA`` named another when ``fucina.fast`` was
    imported, or :func:`set_isa` did since.  Results do not depend on it.

    Clauses: NUM-ISA-1, RNG-CHUNK-1, BRIDGE-ARRAY-4
    """
    return _name(lib.fc_isa_get())


def set_isa(level: str) -> None:
    """Choose the level that every later call uses, in the whole process.

    Parameters
    ----------
    level : str
        One of :func:`isa_levels`.

    Raises
    ------
    InvalidBounds
        For a level that does not exist or that this machine lacks.

    Clauses: NUM-ISA-1
    """
    known = _USABLE.get(level) if isinstance(level, str) else None
    if known is None or lib.fc_isa_set(known) != lib.FC_OK:
        raise InvalidBounds(
            f"level must be one that this machine has ({_listed()}), got {shown(level)}", clause="NUM-ISA-1"
        )


def _listed() -> str:
    return ", ".join(_USABLE)


def _from_environment() -> None:
    """Take the level that the environment names.

    Clauses: NUM-ISA-1
    """
    wanted = os.environ.get("FUCINA_ISA")
    if not wanted:
        return
    try:
        set_isa(wanted)
    except InvalidBounds:
        refuse(f"NUM-ISA-1: FUCINA_ISA must name one of {_listed()}, got {shown(wanted)}")


_from_environment()
