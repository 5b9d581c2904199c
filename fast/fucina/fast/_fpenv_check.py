"""Who changed my floats: import modules one by one, or run a script, and say which changed the float environment.

All that happens in a child process, where a watch looks on (``_fpenv_watch.py``).  Its parent prints the report
(``_fpenv_story.py``), which comes out whatever the program does to its streams or to the import system, and however it
ends.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import io
import json
import os
import runpy
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import PathFinder, SourceFileLoader
from importlib.util import find_spec
from types import ModuleType
from typing import Any, TextIO

from fucina.fast import fpenv
from fucina.fast._apart import Log, apart
from fucina.fast._fpenv_state import DEFAULT, state
from fucina.fast._fpenv_story import SAME, Story, report
from fucina.fast._fpenv_watch import Watch
from fucina.fast._parser import Parser

__all__ = ["main"]


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
        trace, ours = error.__traceback__, {frame.__code__.co_filename for frame in (_run, Watch.within)}
        while trace and trace.tb_frame.f_code.co_filename in ours:
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


def main(arguments: Sequence[str]) -> int:
    """Run ``fpenv check``; return 0 where nothing changed, 1 where something did, 2 where it could not be told."""
    parser = Parser(
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
        "thread": SAME,
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
        print(report(facts, story.changes), flush=True)
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
