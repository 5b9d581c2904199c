"""Instruction-set levels: which this machine can use, and which is in force."""

from __future__ import annotations

import os

from fucina.fast._native import ffi, lib
from fucina.spec.errors import InvalidBounds

__all__ = ["isa", "isa_levels", "set_isa"]


def _name(level: int) -> str:
    return ffi.string(lib.fc_isa_name(level)).decode("ascii")


_USABLE = {_name(level): level for level in range(lib.fc_isa_count()) if lib.fc_isa_usable(level)}


def isa_levels() -> tuple[str, ...]:
    """Return the levels that this machine can use, lowest first.

    Clauses: RNG-CHUNK-1
    """
    return tuple(_USABLE)


def isa() -> str:
    """Return the level in force.

    It is the highest one unless the environment variable ``FUCINA_ISA`` named another when ``fucina.fast`` was
    imported, or :func:`set_isa` did since.  Results do not depend on it.

    Clauses: RNG-CHUNK-1, BRIDGE-ARRAY-4
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

    Clauses: RNG-CHUNK-1
    """
    known = _USABLE.get(level) if isinstance(level, str) else None
    if known is None or lib.fc_isa_set(known) != lib.FC_OK:
        raise InvalidBounds(
            f"unknown or unusable instruction-set level {level!r}; this machine has {_listed()}", clause="RNG-CHUNK-1"
        )


def _listed() -> str:
    return ", ".join(_USABLE)


def _from_environment() -> None:
    wanted = os.environ.get("FUCINA_ISA")
    if not wanted:
        return
    try:
        set_isa(wanted)
    except InvalidBounds:
        raise ImportError(f"FUCINA_ISA={wanted}: unknown or unusable level; this machine has {_listed()}") from None


_from_environment()
