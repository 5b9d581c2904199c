"""Instruction-set levels: listed, named, changed, chosen at import; an implementation without levels shows none of it.

That no result depends on the level is held by the whole suite, which runs on each.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from fucina.conformance import clause
from fucina.conformance.compare import assert_raises
from fucina.spec import IsaControl
from fucina.spec.errors import InvalidBounds

FUNCTIONS = ("isa_levels", "isa", "set_isa")


def _levels(impl: Any) -> tuple[str, ...]:
    """Return the levels; of an implementation without levels none, and it must have none of the functions."""
    if isinstance(impl, IsaControl):
        return impl.isa_levels()
    there = [name for name in FUNCTIONS if hasattr(impl, name)]
    assert not there, f"NUM-ISA-1: {', '.join(there)} without the other functions"
    return ()


@clause("NUM-ISA-1")
def test_levels_are_listed(impl: Any) -> None:
    levels = _levels(impl)
    assert type(levels) is tuple, f"NUM-ISA-1: isa_levels() returns {levels!r}"
    assert all(type(level) is str and level for level in levels)
    assert len(set(levels)) == len(levels)
    if levels:
        assert impl.isa() in levels, f"NUM-ISA-1: isa() is {impl.isa()!r}, none of {levels}"
        assert impl.isa_levels() == levels
    else:
        assert not isinstance(impl, IsaControl), "NUM-ISA-1: some level is in force, but none is listed"


@clause("NUM-ISA-1")
def test_a_level_is_set_for_the_whole_process(impl: Any) -> None:
    levels = _levels(impl)
    for level in (*levels, *reversed(levels)):
        assert impl.set_isa(level) is None
        with ThreadPoolExecutor(1) as another:
            seen = impl.isa(), another.submit(impl.isa).result()
        assert seen == (level, level), f"NUM-ISA-1: after set_isa({level!r}) isa() is {seen[0]!r} and {seen[1]!r}"
        assert impl.isa_levels() == levels, "NUM-ISA-1: the list does not depend on the level in force"


@clause("NUM-ISA-1", "ERR-MSG-1", "ERR-STATE-1")
def test_other_levels_are_refused(impl: Any) -> None:
    for level in _levels(impl):
        impl.set_isa(level)
        for bad in ("", "no such level", f"{level} ", level.swapcase(), level.encode(), None, 0):
            assert_raises(InvalidBounds, "NUM-ISA-1", partial(impl.set_isa, bad), what=f"set_isa({bad!r})")
            assert impl.isa() == level, f"NUM-ISA-1: set_isa({bad!r}) changed the level"


_IMPORT = "import importlib, sys; print(importlib.import_module(sys.argv[1]).isa())"


def _imported(name: str, level: str | None) -> subprocess.CompletedProcess[str]:
    """Import an implementation in a process of its own, and print the level in force."""
    environment = {k: v for k, v in os.environ.items() if k != "FUCINA_ISA"}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    if level is not None:
        environment["FUCINA_ISA"] = level
    command = [sys.executable, "-c", _IMPORT, name]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)


@clause("NUM-ISA-1")
def test_the_environment_chooses_at_import(impl: Any, target: Any) -> None:
    levels = _levels(impl)
    if not levels:
        return  # _levels has seen that there is nothing to choose
    for chosen, expected in ((None, levels[-1]), ("", levels[-1]), *((level, level) for level in levels)):
        ran = _imported(target.module_name, chosen)
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout.strip() == expected, f"NUM-ISA-1: FUCINA_ISA={chosen}: {ran.stdout.strip()}, not {expected}"
    ran = _imported(target.module_name, "no such level")
    assert ran.returncode, "NUM-ISA-1: FUCINA_ISA names no level, and the import succeeds"
    last = ran.stderr.strip().rpartition("\n")[2]
    assert last.startswith("ImportError:"), f"NUM-ISA-1: FUCINA_ISA names no level: {last}"
