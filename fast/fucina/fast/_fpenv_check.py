"""Who changed my floats: import modules one by one, or run a script, and say which changed the float environment.

A module is watched while it is loaded: its shared library first, whose initialisers may already do it, then its code.
What it imports is watched on its own account, so that a change is laid at the door of the innermost module.  Only the
importing thread is seen, since each thread has an environment of its own; a thread that is started later inherits that
of its creator.

All that happens in a child process.  Its parent prints the report, which comes out whatever the program does to its
streams or to the import system, and however it ends.
"""

from __future__ import annotations

import argparse
import builtins
import contextlib
import importlib
import io
import json
import os
import platform
import runpy
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder, SourceFileLoader
from importlib.util import find_spec
from threading import get_ident
from types import ModuleType
from typing import TYPE_CHECKING, Any, TextIO

from fucina.fast import fpenv
from fucina.fast._apart import Ending, Log, apart
from fucina.fast._native import lib
from fucina.spec.fpenv import FLAGS

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

__all__ = ["DEFAULT", "Change", "Story", "Watch", "main", "sentence", "state"]

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


def _above(stack: Sequence[tuple[str, str | None]]) -> list[str]:
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
            self.log.put("change", module, file, _above(self._stack) if self._stack else [], self.seen, now)
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


def _told(error: BaseException) -> str:
    name = type(error).__name__
    try:
        message = str(error)
    except Exception:
        return name
    return f"{name}: {message}" if message else name


def _import_each(watch: Watch, names: Sequence[str]) -> int:
    """Import modules in order, up to one that fails."""
    terminal = _terminal()
    for name in names:
        already = name in sys.modules
        watch.log.put("begin", name)
        if terminal and watch.log.mine:  # an import may take long; a pipe gets the report alone
            with contextlib.suppress(OSError, ValueError):
                print(f"importing {name}", file=terminal, flush=True)
        watch.stand_first()
        try:
            watch.within(name, None, lambda name=name: importlib.import_module(name))  # type: ignore[misc]
        except KeyboardInterrupt:
            watch.stand_aside()
            raise
        except BaseException as error:  # pytest's skip and asyncio's CancelledError are no Exception
            if not watch.log.mine:
                raise
            watch.done("failed", f"importing {name} failed: {_told(error)}")
            return 0
        watch.done("imported before the check" if already else "imported")
    return 0


def _terminal() -> TextIO | None:
    return sys.stderr if sys.stderr is not None and sys.stderr.isatty() else None


def _run(watch: Watch, words: Sequence[str]) -> int:
    """Run ``SCRIPT.py ARGUMENT ...`` or ``-m MODULE ARGUMENT ...`` as Python would, and end as it would."""
    by_name = words[0] == "-m"
    name = words[1] if by_name else words[0]
    watch.log.put("begin", name)
    sys.argv = ["-m", *words[2:]] if by_name else list(words)
    sys.modules["__main__"] = main = ModuleType("__main__")
    vars(main).update(__builtins__=builtins, __annotations__={})
    if not by_name and not sys.flags.safe_path:  # the folder of the script is put where that of ``python -m`` was
        here = sys.path[:1] in ([""], [_folder()])
        sys.path[: 1 if here else 0] = [os.path.dirname(os.path.realpath(name))]
    try:
        # what ``python -m`` calls, of which the public functions differ: they take ``__main__`` away at the end
        run_module: Callable[[str], Any] = runpy._run_module_as_main  # type: ignore[attr-defined]
        watch.within(name, None, lambda: run_module(name) if by_name else _run_file(os.path.abspath(name), main))
    except KeyboardInterrupt:
        watch.stand_aside()
        raise
    except SystemExit:
        watch.done("ran")
        raise
    except BaseException as error:
        watch.done("failed", f"{name} raised {_told(error)}")
        trace = error.__traceback__
        while trace and trace.tb_frame.f_code.co_filename == _run.__code__.co_filename:
            trace = trace.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return 1
    watch.done("ran")
    return 0


def _run_file(path: str, main: ModuleType) -> None:
    vars(main).update(__file__=path, __cached__=None, __loader__=SourceFileLoader("__main__", path))
    with io.open_code(path) as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    exec(code, vars(main))


def _missing(words: Sequence[str]) -> str | None:
    """Return what a program that is not there should have been; what a script itself raises is another matter."""
    if words[0] != "-m":
        return None if os.path.exists(words[0]) else f"script {words[0]!r}"
    top = words[1].partition(".")[0]
    try:
        found = top in sys.modules or (top and (find_spec(top) or PathFinder.find_spec(top, [_folder()])))
    except Exception:  # somebody's finder: in the child it is part of the story
        return None
    return None if found else f"module {words[1]!r}"


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it has been removed
        return ""


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


@dataclass
class Story:
    """What a child has told of the program that it ran."""

    changes: list[Change] = field(default_factory=list)
    targets: list[dict[str, Any]] = field(default_factory=list)
    loading: list[tuple[str, str | None]] = field(default_factory=list)
    loaded: int = 0
    error: str | None = None
    begun: str | None = None
    removed_by: list[str] = field(default_factory=list)
    full: bool = False

    @classmethod
    def read(cls, entries: Iterable[list[Any]]) -> Story:
        """Return the story that a log tells."""
        story, had = cls(), 0
        for kind, *what in entries:
            match kind:
                case "begin":
                    (story.begun,), had = what, len(story.changes)
                case "load":
                    depth, module, file, story.loaded = what
                    story.loading[depth:] = [(module, file)]
                case "left":
                    depth, story.loaded = what
                    del story.loading[depth:]
                case "change":
                    story.changes.append(Change(*what))
                case "done":
                    outcome, story.error, stands = what
                    if not stands:
                        story.removed_by.append(story.begun or START)
                    changes = len(story.changes) - had
                    story.targets.append({"module": story.begun, "outcome": outcome, "changes": changes})
                    story.begun, story.loading = None, []
                case "full":
                    story.full = True
        if story.begun:
            changes = len(story.changes) - had
            story.targets.append({"module": story.begun, "outcome": "failed", "changes": changes})
        return story

    def end(self, ending: Ending, program: bool) -> None:
        """Say what was wrong with the end, if anything was."""
        last = self.targets[-1]["module"] if self.targets else START
        if self.full:
            self.error = "so much happened that the report could not hold it"
        elif self.error:
            return
        elif self.begun or not self.targets:
            if ending.signal:
                self.error = f"{ending.signal} ended the process {self._when(program)}"
            else:
                how = "without a word: os._exit, or another program in its place"
                self.error = f"the process ended with exit code {ending.code} {self._when(program)}, {how}"
        elif ending.signal:
            self.error = f"{ending.signal} ended the process when {last} was done"
        elif ending.code and program:
            self.error = f"{last} ended with exit code {ending.code}"
        elif ending.code:
            self.error = f"the process ended with exit code {ending.code} when {last} was done"
        if self.error and program and self.targets:
            self.targets[-1]["outcome"] = "failed"

    def _when(self, program: bool) -> str:
        if not self.loading:
            return START
        module, file = self.loading[-1]
        if program and len(self.loading) == 1:
            return f"while {module} ran"
        return f"while {module}{f' ({file})' if file else ''} was loaded{_by(_above(self.loading))}"


def _by(above: Sequence[str]) -> str:
    return f", imported by {' <- '.join(above)}" if above else ""


def _report(facts: dict[str, Any], changes: list[Change]) -> str:
    lines = [f"at the start: {sentence(facts['start'])}"]
    for change in changes:
        lines.append(f"{change.module}{f' ({change.file})' if change.file else ''}{_by(change.imported_by)}")
        lines += [f"    {words}" for words in change.words()]
    for target in facts["targets"]:
        if not target["changes"]:
            lines.append(f"{target['module']}: {target['outcome']}, no change")
    lines.append(f"at the end: {sentence(facts['end'])}")
    lines.append(f"{_counted(len(changes), 'change')}, {_counted(facts['modules_watched'], 'module')} watched, {_SAME}")
    for name in facts["watch_removed_by"]:
        lines.append(f"{name} took the watch out of sys.meta_path: what it imported from then on counts as its own")
    if facts["error"]:
        lines.append(f"error: {facts['error']}")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Run ``fpenv check``; return 0 where nothing changed, 1 where something did, 2 where it could not be told."""
    parser = argparse.ArgumentParser(
        prog="python -m fucina.fast fpenv",
        description="Import modules one by one, or run a script, and say which of them changed the floating-point "
        "environment: rounding, flush-to-zero, denormals-are-zero, trap masks.  The importing thread is watched, no "
        "other; what changed stays changed.  All that runs in a child process: the report comes when it has ended, "
        "however it does, and names the module during whose import it died.",
        epilog="exit code: 0 nothing changed, 1 something did, 2 usage, an import or script that failed or died "
        "(os._exit, a signal), or a machine whose environment cannot be seen",
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
        print(f"{parser.prog}: there is no {missing} in {_folder() or 'a folder that was removed'}", file=sys.stderr)
        return 2
    start = state()
    try:
        log = Log()
        ending = apart()
    except OSError as error:
        print(f"{parser.prog}: no process for it: {error}", file=sys.stderr)
        return 2
    if ending is None:
        return _child(log, words, program, options.json)
    story = Story.read(log.entries())
    story.end(ending, program)
    facts: dict[str, Any] = {
        "supported": True,
        "thread": _SAME,
        "start": start,
        "end": story.changes[-1].after if story.changes else start,
        "targets": story.targets,
        "modules_watched": story.loaded,
        "watch_removed_by": story.removed_by,
        "unfinished": list(dict.fromkeys(name for name, _ in reversed(story.loading))),
        "error": story.error,
    }
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name may be such that the encoding lacks it
        sys.stdout.reconfigure(errors="backslashreplace")
    if options.json:
        found = [{**vars(change), "changed": change.words()} for change in story.changes]
        print(json.dumps({**facts, "changes": found}, indent=2), flush=True)
    else:
        print(_report(facts, story.changes), flush=True)
    ending.follow()
    return 2 if story.error else int(bool(story.changes))


def _child(log: Log, words: Sequence[str], program: bool, quiet: bool) -> int:
    """Do in the child what was asked for; return its exit code."""
    log.begin()
    watch = Watch(log, dict(DEFAULT))
    watch.look()  # what the interpreter, numpy and this package brought
    watch.stand_first()
    if quiet and sys.stdout is not None:  # what the program says stays out of the JSON object
        os.dup2(os.open(os.devnull, os.O_WRONLY) if sys.stderr is None else sys.stderr.fileno(), sys.stdout.fileno())
    return (_run if program else _import_each)(watch, words)
