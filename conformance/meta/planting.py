"""``python -m conformance.meta.planting NAME ARGUMENT...``: the suite's command line with a Python fault in force.

An import hook changes one module's source on its way from the file to the interpreter; nothing on disk is touched, and
no cached bytecode is read or written.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

from .faults import Replacement, python_faults

__all__ = ["Planter"]


class _Loader(SourceFileLoader):
    """Compiles the changed source of one module."""

    replacement: Replacement

    def get_code(self, fullname: str) -> CodeType:
        source = self.replacement.apply(self.get_data(self.path).decode("utf-8"))
        return compile(source, self.path, "exec", dont_inherit=True)


class Planter(MetaPathFinder):
    """Finds the module that has the fault; everything else is found as usual."""

    def __init__(self, replacement: Replacement) -> None:
        self.replacement = replacement
        self.planted = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the module with the fault."""
        if fullname != self.replacement.module:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(f"no module {fullname} to plant a fault in", name=fullname)
        spec.loader = loader = _Loader(fullname, spec.origin)
        loader.replacement = self.replacement
        self.planted = True
        return spec


def main(arguments: Sequence[str]) -> int:
    """Run the suite with the fault ``arguments[0]``; the rest is for the suite."""
    (fault,) = (fault for fault in python_faults() if fault.name == arguments[0])
    assert fault.replacement is not None
    if fault.replacement.module in sys.modules:
        raise ImportError(f"{fault.replacement.module} was imported before its fault could be planted")
    planter = Planter(fault.replacement)
    sys.meta_path.insert(0, planter)
    from fucina.conformance.__main__ import main as suite

    code = suite(arguments[1:])
    if not planter.planted:
        raise ImportError(f"{fault.replacement.module} was never imported: the fault was not in force")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
