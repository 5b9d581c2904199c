"""Who changed my floats: import modules one by one, or run a script, and say which changed the float environment.

A module is watched while it is loaded: its shared library first, whose initialisers may already do it, then its code.
What it imports is watched on its own account, so that a change is laid at the door of the innermost module.  Only the
importing thread is seen, since each thread has an environment of its own; a thread that is started later inherits that
of its creator.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import platform
import runpy
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder
from importlib.util import find_spec
from threading import get_ident
from typing import TYPE_CHECKING, Any

from fucina.fast import fpenv
from fucina.fast._native import lib
from fucina.spec.fpenv import FLAGS

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

__all__ = ["DEFAULT", "Change", "Watch", "main", "sentence", "state"]

START = "before the first import"
_SAME = "importing thread only"


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


@dataclass
class Change:
    """One module and what it changed."""

    module: str
    file: str | None
    imported_by: list[str]
    before: dict[str, Any]
    after: dict[str, Any]

    def words(self) -> list[str]:
        """Return a phrase for each thing that changed."""
        return [
            f"{key.replace('_', ' ')}: {_shown(old)} -> {_shown(self.after[key])}"
            for key, old in self.before.items()
            if old != self.after[key]
        ]


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list):
        return " and ".join(value).replace("_", " ") if value else "none"
    return str(value).replace("_", " ")


def sentence(now: dict[str, Any]) -> str:
    """Return what ``state`` returned as a person would say it."""
    return ", ".join(f"{key.replace('_', ' ')} {_shown(value)}" for key, value in now.items())


@dataclass
class Watch(MetaPathFinder):
    """Stands before the other finders, and looks at the environment around each step of loading a module."""

    seen: dict[str, Any] = field(default_factory=state)
    changes: list[Change] = field(default_factory=list)
    loaded: int = 0
    thread: int = field(default_factory=get_ident)
    _stack: list[tuple[str, str | None]] = field(default_factory=list)
    _asking: set[str] = field(default_factory=set)

    def look(self) -> None:
        """Charge what has changed since the last look to the module that is being loaded."""
        now = state()
        if now != self.seen:
            module, file = self._stack[-1] if self._stack else (START, None)
            above = [name for name in dict.fromkeys(name for name, _ in reversed(self._stack)) if name != module]
            self.changes.append(Change(module, file, above, self.seen, now))
            self.seen = now

    def within(self, module: str, file: str | None, call: Callable[[], Any]) -> Any:
        """Return what a call returns; what it changes is charged to the module."""
        self.look()
        self._stack.append((module, file))
        try:
            return call()
        finally:
            self.look()
            self._stack.pop()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Let the other finders find the module, and watch its loader."""
        if fullname in self._asking or get_ident() != self.thread:
            return None
        self._asking.add(fullname)
        try:
            for finder in sys.meta_path:
                find = None if finder is self else getattr(finder, "find_spec", None)
                spec: ModuleSpec | None = find(fullname, path, target) if find else None
                if spec is not None:
                    self._watch(spec.loader)
                    return spec
        finally:
            self._asking.discard(fullname)
        return None

    def _watch(self, loader: Any) -> None:
        """Put a look around the two steps of a loader, of which some load one module and some many."""
        if loader is None or isinstance(loader, type):  # a namespace, or what is built into the interpreter
            return
        self.loaded += 1
        if getattr(loader, "_watched_by", None) is self:
            return
        try:
            loader._watched_by = self
            for step in ("create_module", "exec_module"):
                if hasattr(loader, step):
                    setattr(loader, step, self._looking(getattr(loader, step)))
        except AttributeError:  # a loader of a closed kind: its modules count for the one that imports them
            return

    def _looking(self, step: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def looking(argument: Any) -> Any:
            spec = getattr(argument, "__spec__", argument)  # a module, or its specification
            if get_ident() != self.thread or spec is None:
                return step(argument)
            return self.within(spec.name, spec.origin, lambda: step(argument))

        return looking


def _import_each(watch: Watch, names: Sequence[str]) -> tuple[list[dict[str, Any]], str | None]:
    """Import modules in order; return what became of each, and the error that stopped it."""
    done: list[dict[str, Any]] = []
    for name in names:
        already = name in sys.modules
        had = len(watch.changes)
        if sys.stderr is not None and sys.stderr.isatty():  # an import may take long; a pipe gets the report alone
            print(f"importing {name}", file=sys.stderr, flush=True)
        try:
            watch.within(name, None, lambda name=name: importlib.import_module(name))  # type: ignore[misc]
        except (Exception, SystemExit) as error:
            done.append({"module": name, "outcome": "failed", "changes": len(watch.changes) - had})
            return done, f"importing {name} failed: {type(error).__name__}: {error}"
        outcome = "imported before the check" if already else "imported"
        done.append({"module": name, "outcome": outcome, "changes": len(watch.changes) - had})
    return done, None


def _run(watch: Watch, words: Sequence[str]) -> tuple[list[dict[str, Any]], str | None]:
    """Run ``SCRIPT.py ARGUMENT ...`` or ``-m MODULE ARGUMENT ...`` as a program; return what became of it."""
    by_name = words[0] == "-m"
    name, *rest = words[1:] if by_name else words
    argv, error = sys.argv, None
    folder = os.getcwd() if by_name else os.path.dirname(os.path.abspath(name))
    sys.argv = [name, *rest]
    sys.path.insert(0, folder)
    try:
        if by_name:
            watch.within(name, None, lambda: runpy.run_module(name, run_name="__main__", alter_sys=True))
        else:
            watch.within(name, None, lambda: runpy.run_path(name, run_name="__main__"))
    except SystemExit as end:
        if end.code not in (None, 0):
            error = f"{name} ended with exit code {end.code}"
    except Exception:
        traceback.print_exc()
        error = f"{name} raised an exception"
    finally:
        sys.argv = argv
        if folder in sys.path:
            sys.path.remove(folder)
    return [{"module": name, "outcome": "failed" if error else "ran", "changes": len(watch.changes)}], error


def _missing(words: Sequence[str]) -> str | None:
    """Return what a program that is not there should have been; what a script itself raises is another matter."""
    if words[0] != "-m":
        return None if os.path.exists(words[0]) else f"script {words[0]!r}"
    top = words[1].partition(".")[0]
    found = top in sys.modules or (top and (find_spec(top) or PathFinder.find_spec(top, [os.getcwd()])))
    return None if found else f"module {words[1]!r}"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _report(facts: dict[str, Any], changes: list[Change]) -> str:
    lines = [f"at the start: {sentence(facts['start'])}"]
    for change in changes:
        by = f", imported by {' <- '.join(change.imported_by)}" if change.imported_by else ""
        lines.append(f"{change.module}{f' ({change.file})' if change.file else ''}{by}")
        lines += [f"    {words}" for words in change.words()]
    for target in facts["targets"]:
        if not target["changes"]:
            lines.append(f"{target['module']}: {target['outcome']}, no change")
    lines.append(f"at the end: {sentence(facts['end'])}")
    lines.append(f"{_counted(len(changes), 'change')}, {_counted(facts['modules_watched'], 'module')} watched, {_SAME}")
    if facts["error"]:
        lines.append(f"error: {facts['error']}")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Run ``fpenv check``; return 0 where nothing changed, 1 where something did, 2 where it could not be told."""
    parser = argparse.ArgumentParser(
        prog="python -m fucina.fast fpenv",
        description="Import modules one by one, or run a script, and say which of them changed the floating-point "
        "environment: rounding, flush-to-zero, denormals-are-zero, trap masks.  The importing thread is watched, no "
        "other; what changed stays changed.",
        epilog="exit code: 0 nothing changed, 1 something did, 2 usage, a failed import or script, or a machine whose "
        "environment cannot be seen",
    )
    parser.add_argument("action", choices=["check"])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "what", nargs="*", metavar="-- MODULE ... | SCRIPT.py [ARGUMENT ...] | -m MODULE [ARGUMENT ...]"
    )
    given = list(arguments)
    split = given.index("--") if "--" in given else len(given)
    options = parser.parse_args(given[:split])
    words: list[str] = [*options.what, *given[split + 1 :]]
    if not words or words == ["-m"]:
        parser.error("name modules to import, or a script to run")
    if not fpenv.supported:
        print("the floating-point environment of this machine cannot be seen", file=sys.stderr)
        return 2
    program = words[0] == "-m" or words[0].endswith(".py")
    missing = _missing(words) if program else None
    if missing:
        print(f"{parser.prog}: there is no {missing} in {os.getcwd()}", file=sys.stderr)
        return 2
    start = state()
    watch = Watch(dict(DEFAULT))
    watch.look()  # what the interpreter, numpy and this package brought
    sys.meta_path.insert(0, watch)
    said = sys.stderr if options.json else sys.stdout  # a script's words stay out of the JSON object
    try:
        with contextlib.redirect_stdout(said):
            run = _run if program else _import_each
            targets, error = run(watch, words)
    finally:
        sys.meta_path.remove(watch)
    facts: dict[str, Any] = {
        "supported": True,
        "thread": _SAME,
        "start": start,
        "end": state(),
        "targets": targets,
        "modules_watched": watch.loaded,
        "error": error,
    }
    if options.json:
        found = [{**vars(change), "changed": change.words()} for change in watch.changes]
        print(json.dumps({**facts, "changes": found}, indent=2))
    else:
        print(_report(facts, watch.changes))
    return 2 if error else int(bool(watch.changes))
