"""Whose code changed the float environment: a look around each step of loading a module.

A module is watched while it is loaded: its shared library first, whose initialisers may already do it, then its code.
What it imports is watched on its own account, so that a change is laid at the door of the innermost module.  Only the
importing thread is seen, since each thread has an environment of its own; a thread that is started later inherits that
of its creator.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder
from threading import get_ident
from types import ModuleType
from typing import TYPE_CHECKING, Any

from fucina.fast._apart import Log
from fucina.fast._fpenv_state import state

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

__all__ = ["START", "Watch", "above"]

START = "before the first import"


def above(stack: Sequence[tuple[str, str | None]]) -> list[str]:
    """Return the modules that wait for the last of a stack, from the nearest on."""
    return [name for name in dict.fromkeys(name for name, _ in reversed(stack)) if name != stack[-1][0]]


@dataclass(eq=False)
class Watch(MetaPathFinder):
    """Stands before the other finders, and looks at the environment around each step of loading a module."""

    log: Log
    seen: dict[str, Any] = field(default_factory=state)
    loaded: int = 0
    thread: int = field(default_factory=get_ident)
    _stack: list[tuple[str, str | None]] = field(default_factory=list)
    _asking: set[str] = field(default_factory=set)

    def look(self) -> None:
        """Charge what has changed since the last look to the module that is being loaded."""
        now = state()
        if now != self.seen:
            module, file = self._stack[-1] if self._stack else (START, None)
            self.log.put("change", module, file, above(self._stack) if self._stack else [], self.seen, now)
            self.seen = now

    def within(self, module: str, file: str | None, call: Callable[[], Any]) -> Any:
        """Return what a call returns; what it changes is charged to the module."""
        self.look()
        depth = len(self._stack)
        self._stack.append((module, file))
        self.log.put("load", depth, module, file, self.loaded)
        interrupted = False
        try:
            return call()
        except KeyboardInterrupt:
            interrupted = True
            raise
        finally:
            self.look()
            self._stack.pop()
            if not interrupted:  # the module during which it came is the one to name
                self.log.put("left", depth, self.loaded)

    @property
    def stands(self) -> bool:
        """Whether it is still asked; a program may replace ``sys.meta_path``."""
        return any(finder is self for finder in sys.meta_path)

    def stand_first(self) -> None:
        """Stand before the other finders, unless it is asked already."""
        if not self.stands:
            sys.meta_path.insert(0, self)

    def stand_aside(self) -> None:
        """Be asked no more: what an interrupt makes Python load, to print a traceback, is not what it came into."""
        if self.stands:
            sys.meta_path.remove(self)

    def done(self, outcome: str, error: str | None = None) -> None:
        """Tell how a module or a script came to its end."""
        self.log.put("done", outcome, error, self.stands)

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
