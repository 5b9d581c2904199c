"""The implementations under test: found by name, one target for each instruction-set level that can be used."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

from fucina.conformance.errors import UsageError, suggestion
from fucina.spec import IsaControl, Operations

__all__ = [
    "DEFAULT_MODULES",
    "JUDGE",
    "Target",
    "entry_point_modules",
    "operations_of",
    "resolve",
    "version_of",
    "windows_of",
]

JUDGE = "fucina.reference"
"""The module that lockstep tests compare with."""

DEFAULT_MODULES = (JUDGE, "fucina.fast")

_GROUP = "fucina.implementations"


@dataclass(frozen=True, slots=True)
class Target:
    """One implementation as the suite runs it.

    ``label`` is its column in the matrix, such as ``fucina.fast[avx2]``; ``isa`` is the instruction-set level that is
    in force while its tests run, ``None`` for a module that has no such levels.
    """

    label: str
    module_name: str
    module: ModuleType
    isa: str | None = None


def entry_point_modules() -> list[str]:
    """Return the module names registered in the entry point group ``fucina.implementations``."""
    points = importlib.metadata.entry_points(group=_GROUP)
    return sorted({point.module for point in points})


def version_of(module: ModuleType) -> str:
    """Return the version of a module, or of the distribution it belongs to."""
    own = getattr(module, "__version__", None)
    if isinstance(own, str):
        return own
    try:
        return importlib.metadata.version(module.__name__.partition(".")[0])
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


@cache
def windows_of(module_name: str) -> ModuleType | None:
    """Return the submodule ``windows`` of an implementation, ``None`` where it has none.

    What it has to look like is :class:`fucina.spec.Windows`; a test that uses it finds out.
    """
    name = f"{module_name}.windows"
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name != name:
            raise
        return None


def operations_of(module_name: str) -> ModuleType | None:
    """Return the submodule ``windows`` of an implementation if it does single operations, else ``None``."""
    found = windows_of(module_name)
    return found if isinstance(found, Operations) else None


def _folder_modules(limit: int = 12) -> list[str]:
    found = [p.stem for p in Path.cwd().glob("*.py") if p.stem.isidentifier()]
    found += [p.parent.name for p in Path.cwd().glob("*/__init__.py")]
    return sorted(found)[:limit]


def _import(name: str) -> ModuleType:
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.append(os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if not (name == missing or name.startswith(f"{missing}.")):
            raise UsageError(f"importing {name!r} failed, because it needs {missing!r}: {error}") from error
        known = sorted({*DEFAULT_MODULES, *entry_point_modules()})
        here = _folder_modules()
        lines = [
            f"there is no module {name!r}{suggestion(name, [*known, *here])}",
            f"  registered implementations: {', '.join(known)}",
            f"  modules in the current folder: {', '.join(here) or 'none'}",
            "  any other importable module will do, if it has the shape of fucina.spec.Implementation",
        ]
        raise UsageError("\n".join(lines)) from error
    except (Exception, SystemExit) as error:  # whatever a third party's module raises, the person should read it
        raise UsageError(f"importing {name!r} failed: {type(error).__name__}: {error}") from error


def resolve(names: Iterable[str], isa: Sequence[str] = ()) -> list[Target]:
    """Import the named modules and return one target for each of their usable instruction-set levels.

    Parameters
    ----------
    names : iterable of str
        Module names; duplicates count once.
    isa : sequence of str
        Keep only these levels of the modules that have levels.  Modules without levels stay as they are.

    Raises
    ------
    UsageError
        If a module cannot be imported, or no module has one of the levels in ``isa``.
    """
    targets = []
    usable: dict[str, tuple[str, ...]] = {}
    for name in dict.fromkeys(names):
        module = _import(name)
        if not isinstance(module, IsaControl):
            targets.append(Target(name, name, module))
            continue
        usable[name] = tuple(module.isa_levels())
        kept = [level for level in usable[name] if not isa or level in isa]
        targets += [Target(f"{name}[{level}]", name, module, level) for level in kept]
    for level in isa:
        if not any(level in levels for levels in usable.values()):
            there = "; ".join(f"{name} can use {', '.join(levels)}" for name, levels in usable.items())
            raise UsageError(
                f"no selected implementation can use the instruction-set level {level!r} on this machine: "
                f"{there or 'none of them has levels'}"
            )
    if not targets:
        raise UsageError("no implementation is selected: name one with --impl")
    return targets
