"""The planted faults: what there are, read from where they are listed.

Those of the C core stand in ``fast/csrc/core/faults.def``, each one wrong expression beside the right one in the source
(``core/fault.h``).  Those in Python stand in ``faults_*.toml``, each one replacement of text in one module.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CORE", "ROOT", "Fault", "Replacement", "c_faults", "every_fault", "python_faults"]

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CORE = ROOT / "fast" / "csrc"

_FAULT = re.compile(r'^FC_FAULT\((\w+), "([^"]+)", "([^"]+)"\)$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Replacement:
    """One edit of a module's source: ``right``, which stands in it exactly once, becomes ``wrong``."""

    module: str
    right: str
    wrong: str

    def apply(self, source: str) -> str:
        """Return the source with the fault in it."""
        if source.count(self.right) != 1:
            raise LookupError(f"{self.module} has {source.count(self.right)} places, not one, that read {self.right!r}")
        return source.replace(self.right, self.wrong)

    @property
    def path(self) -> Path:
        """The module's file in the source tree."""
        portion = self.module.split(".")[1]
        return ROOT / portion / Path(*self.module.split(".")).with_suffix(".py")


@dataclass(frozen=True, slots=True)
class Fault:
    """One planted fault.

    ``clause`` is the one that its tests must hold against the implementation; ``replacement`` is None for a fault of
    the C core.
    """

    name: str
    clause: str
    text: str
    replacement: Replacement | None = None

    @property
    def kind(self) -> str:
        """In which language it is."""
        return "Python" if self.replacement else "C"

    @property
    def implementation(self) -> str:
        """The implementation that has it."""
        of_fast = self.replacement is None or self.replacement.module.startswith("fucina.fast.")
        return "fucina.fast" if of_fast else "fucina.reference"  # what both share is tried on the reference


def c_faults() -> list[Fault]:
    """Return the faults of the C core."""
    source = (CORE / "core" / "faults.def").read_text(encoding="utf-8")
    return [Fault(*found) for found in _FAULT.findall(source)]


def python_faults() -> list[Fault]:
    """Return the faults in Python."""
    found = []
    for path in sorted(HERE.glob("faults_*.toml")):
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["fault"]:
            place = Replacement(entry.pop("module"), entry.pop("right").strip("\n"), entry.pop("wrong").strip("\n"))
            found.append(Fault(**entry, replacement=place))
    return found


def every_fault(wanted: Sequence[str] = ()) -> list[Fault]:
    """Return all faults, or those whose name, clause or kind contains one of the given texts."""
    everything = c_faults() + python_faults()
    return [f for f in everything if not wanted or any(w in f"{f.name} {f.clause} {f.kind}" for w in wanted)]
