"""``python -m fucina.fast fpenv check`` and programs that end, or treat the interpreter, as they please."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fucina.fast import fpenv
from fucina.fast._apart import Log

pytestmark = pytest.mark.skipif(not fpenv.supported, reason="nothing is seen on this machine")

COMMAND = [sys.executable, "-m", "fucina.fast", "fpenv", "check"]
TURN = """
from fucina.fast.fpenv import Environment, RoundingMode, UnderflowMode, set
set(Environment(RoundingMode.upward, UnderflowMode.gradual))
"""
CRASH = "import os\nos.abort()\n"  # no SIGSEGV, which a sanitizer takes for itself
WAIT = "import time\nprint('ready', flush=True)\ntime.sleep(60)\n"


def _environment(folder: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)]), **more}


def _run(folder: Path, *words: str, input: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *words],
        capture_output=True,
        text=True,
        errors="surrogateescape",
        cwd=folder,
        env=_environment(folder, **more),
        input=input,
        check=False,
        timeout=120,
    )


def _script(folder: Path, text: str, code: int, *words: str) -> Any:
    """Run a script; return the facts, which are there in both forms, once."""
    (folder / "script.py").write_text(text)
    said = _run(folder, "--", "script.py", *words)
    assert said.returncode == code, said
    assert said.stdout.count("at the start: ") == 1, said
    return _facts(folder, code, "script.py", *words)


def _facts(folder: Path, code: int, *words: str) -> Any:
    said = _run(folder, "--json", "--", *words)
    assert said.returncode == code, said
    return json.loads(said.stdout)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("class Skip(BaseException): pass\nraise Skip('not here')", "Skip: not here"),
        ("import asyncio\nraise asyncio.CancelledError()", "CancelledError"),
        ("raise ValueError('no')", "ValueError: no"),
        ("class Mute(Exception):\n    def __str__(self): raise self\nraise Mute", "Mute"),
        ("raise BrokenPipeError", "BrokenPipeError"),
        ("import sys\nsys.stderr = None\nraise ValueError(1)", "ValueError: 1"),
    ],
)
def test_whatever_is_raised_is_a_failure(tmp_path: Path, text: str, error: str) -> None:
    assert _script(tmp_path, text, 2)["error"] == f"script.py raised {error}"
    facts = _facts(tmp_path, 2, "script")
    assert facts["error"] == f"importing script failed: {error}"
    assert facts["targets"] == [{"module": "script", "outcome": "failed", "changes": 0}]


@pytest.mark.parametrize(
    "text",
    [
        "import sys\nsys.meta_path[:] = [f for f in sys.meta_path if type(f).__name__ != 'Watch']",
        "import sys\nsys.meta_path = list(sys.meta_path)[1:]",
    ],
)
def test_the_watch_may_be_removed(tmp_path: Path, text: str) -> None:
    assert _script(tmp_path, text, 0)["error"] is None
    (tmp_path / "turn.py").write_text(TURN)
    facts = _script(tmp_path, text + "\nimport turn", 1)
    assert [change["module"] for change in facts["changes"]] == ["script.py"]
    assert facts["watch_removed_by"] == ["script.py"]
    assert "script.py took the watch out of sys.meta_path" in _run(tmp_path, "--", "script.py").stdout
    (tmp_path / "script.py").write_text(text)
    facts = _facts(tmp_path, 1, "script", "turn")  # it stands again for the next
    assert [(change["module"], change["file"]) for change in facts["changes"]] == [("turn", str(tmp_path / "turn.py"))]


@pytest.mark.parametrize(
    "text",
    [
        "import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.detach(), encoding='utf-8')\nprint('hello')",
        "import sys\nsys.stdout.close()",
        "import sys\nsys.stdout = None",
        "import sys\nsys.stderr.close()",
        "import os\nos.close(1)",
        "import os\nos.closerange(0, 1000)",
        "import os\nos.closerange(0, 1000)\n[os.open('other', os.O_RDWR | os.O_CREAT) for _ in range(20)]",
    ],
)
def test_streams_and_descriptors_may_be_closed(tmp_path: Path, text: str) -> None:
    assert _script(tmp_path, text, 0)["error"] is None
    assert _facts(tmp_path, 0, "script")["error"] is None
    if (tmp_path / "other").exists():
        assert (tmp_path / "other").read_bytes() == b""


def test_words_stay_out_of_the_object_however_they_are_said(tmp_path: Path) -> None:
    words = "import os, subprocess, sys\nprint('one')\nos.write(1, b'two\\n')\nsubprocess.run(['echo', 'three'])\n"
    _script(tmp_path, words + "sys.__stdout__.write('four\\n')", 0)
    said = _run(tmp_path, "--json", "--", "script.py").stderr
    assert sorted(said.split()) == ["four", "one", "three", "two"]


@pytest.mark.parametrize("name", ["ünïcode", "b\udcff"])
def test_names_that_the_encoding_lacks(tmp_path: Path, name: str) -> None:
    try:
        (tmp_path / f"{name}.py").write_text(TURN)
    except (OSError, UnicodeEncodeError):
        pytest.skip("no such name in this file system")
    for words in ([f"{name}.py"], [name]):
        said = _run(tmp_path, "--", *words, PYTHONIOENCODING="ascii")
        assert said.returncode == 1, said
        assert name.encode("ascii", "backslashreplace").decode() in said.stdout
        assert _facts(tmp_path, 1, *words)["changes"][0]["module"] == words[0]


def test_a_child_of_the_program_reports_nothing(tmp_path: Path) -> None:
    fork = "import os, sys\npid = os.fork()\n"
    wait = "if pid: sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) - {})\n"
    assert _script(tmp_path, fork + wait.format(0), 0)["error"] is None
    assert _script(tmp_path, fork + wait.format(7) + "sys.exit(7)", 0)["error"] is None
    assert _script(tmp_path, fork + wait.format(1) + TURN + "raise ValueError", 0)["changes"] == []
    waits = "if pid: code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])\n"
    (tmp_path / "forks.py").write_text(fork + waits + "else: raise ValueError\nassert code == 1")
    assert _facts(tmp_path, 0, "forks")["error"] is None
    text = "import multiprocessing as mp\nif __name__ == '__main__':\n with mp.get_context({!r}).Pool(1) as p:"
    for way in ("fork", "spawn", "forkserver"):
        assert _script(tmp_path, text.format(way) + " print(p.map(abs, [-1]))", 0)["error"] is None


def test_an_end_without_a_word(tmp_path: Path) -> None:
    for code in (0, 3):
        facts = _script(tmp_path, f"{TURN}import os\nos._exit({code})", 2)
        how = "without a word: os._exit, or another program in its place"
        assert facts["error"] == f"the process ended with exit code {code} while script.py ran, {how}"
        assert facts["targets"] == [{"module": "script.py", "outcome": "failed", "changes": 0}]
        assert facts["unfinished"] == ["script.py"]
    assert _script(tmp_path, "import os\nos.execv('/bin/true', ['true'])", 2)["unfinished"] == ["script.py"]


def test_the_module_during_whose_import_the_process_died(tmp_path: Path) -> None:
    (tmp_path / "crash.py").write_text(CRASH)
    (tmp_path / "turn.py").write_text(TURN)
    (tmp_path / "outer.py").write_text("import turn\nimport crash\n")
    (tmp_path / "calm.py").write_text("")
    facts = _facts(tmp_path, 2, "calm", "outer", "calm")
    what = f"SIGABRT (Aborted) ended the process while crash ({tmp_path / 'crash.py'}) was loaded"
    assert facts["error"] == f"{what}, imported by outer"
    assert facts["unfinished"] == ["crash", "outer"]
    assert [change["module"] for change in facts["changes"]] == ["turn"]
    assert facts["end"]["rounding"] == "upward"
    outcomes = [(target["module"], target["outcome"], target["changes"]) for target in facts["targets"]]
    assert outcomes == [("calm", "imported", 0), ("outer", "failed", 1)]
    assert f"error: {what}, imported by outer\n" in _run(tmp_path, "--", "outer").stdout
    facts = _script(tmp_path, "import sys\nimport outer", 2)
    assert facts["error"] == f"{what}, imported by outer <- script.py"


def test_a_crash_when_all_is_done(tmp_path: Path) -> None:
    text = f"import atexit\n@atexit.register\ndef last():\n    {CRASH.replace(chr(10), ';')}\n"
    facts = _script(tmp_path, text, 2)
    assert facts["error"] == "SIGABRT (Aborted) ended the process when script.py was done"
    assert facts["unfinished"] == []
    assert _facts(tmp_path, 2, "script")["targets"][0]["outcome"] == "imported"


@pytest.mark.parametrize(
    ("argument", "code"),
    [("None", 0), ("0", 0), ("False", 0), ("256", 0), ("7", 7), ("2**70", 255), ("0.0", 1), ("'bye'", 1), ("[]", 1)],
)
def test_exit_codes_are_those_of_python(tmp_path: Path, argument: str, code: int) -> None:
    text = f"import sys\nsys.exit({argument})"
    facts = _script(tmp_path, text, 2 if code else 0)
    assert facts["error"] == (f"script.py ended with exit code {code}" if code else None)
    assert facts["targets"][0]["outcome"] == ("failed" if code else "ran")
    alone = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert alone.returncode == code
    if argument != "2**70":  # whether Python says that it is too large depends on its version and on ``-m``
        assert _run(tmp_path, "--json", "--", "script.py").stderr == alone.stderr


ASKS = """
import atexit, json, pickle, sys, threading, time, typing, warnings
import __main__
class Thing: pass
def late(): return type(pickle.loads(pickle.dumps(Thing()))) is sys.modules["__main__"].Thing
def say(*words): print(*words, flush=True)
atexit.register(lambda: say("atexit", late()))
threading.Thread(target=lambda: (time.sleep(0.3), say("thread", late()))).start()
say(sorted(name for name in vars(__main__) if name.startswith("__")))
say(__name__, __file__, __package__, __spec__ and __spec__.name, type(__loader__).__name__, __main__.Thing is Thing)
say(sys.argv, sys.path[0], sys.path.count(sys.path[0]), sys.stdin.read())
say(threading.current_thread() is threading.main_thread())
def annotated(x: int): pass
say(annotated.__annotations__)
warnings.warn("old", DeprecationWarning)
def hook(*_): say("hook", late())
if "hook" in sys.argv: sys.excepthook = hook
def inner(): raise KeyError("end")
inner()
"""


@pytest.mark.parametrize("words", [["sub/asks.py", "a", "--json"], ["link.py", "hook"], ["-m", "sub.asks", "hook"]])
@pytest.mark.parametrize("flags", [[], ["-P"]])
def test_a_script_finds_what_it_would_find_without_the_check(
    tmp_path: Path, words: list[str], flags: list[str]
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "asks.py").write_text(ASKS)
    (tmp_path / "link.py").symlink_to("sub/asks.py")
    place = tmp_path / "elsewhere"
    place.mkdir()
    environment = {**_environment(tmp_path), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    if "-P" in flags:
        environment["PYTHONPATH"] += os.pathsep + str(tmp_path)

    def run(*command: str) -> tuple[str, str]:
        done = subprocess.run(
            [sys.executable, *flags, *command],
            cwd=tmp_path,
            env=environment,
            input="given",
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout, done.stderr

    alone, checked = run(*words), run("-m", "fucina.fast", "fpenv", "check", "--", *words)
    assert checked[0].startswith(alone[0])
    assert checked[0].removeprefix(alone[0]).startswith("at the start: ")
    assert "atexit True" in alone[0]
    assert checked[1] == alone[1]


@pytest.fixture(autouse=True)
def signals_end_processes() -> Iterator[None]:
    """Let none be ignored that a job in the background, as the tests may be, has to ignore."""
    ignored = [n for n in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP) if signal.getsignal(n) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


def _started(folder: Path, text: str, **more: Any) -> subprocess.Popen[str]:
    (folder / "waits.py").write_text(text)
    return subprocess.Popen([*COMMAND, "--", "waits.py"], cwd=folder, env=_environment(folder), text=True, **more)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_both_and_leaves_a_report(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "hangs.py").write_text(WAIT)
    with _started(tmp_path, "import hangs", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == -number
    assert f"error: {number.name} (" in said
    assert f"ended the process while hangs ({tmp_path / 'hangs.py'}) was loaded, imported by waits.py\n" in said


def test_a_signal_that_the_program_handles_is_its_own_affair(tmp_path: Path) -> None:
    text = f"import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n{WAIT}"
    with _started(tmp_path, text, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "waits.py: ran, no change" in said


def test_the_program_does_not_outlive_the_command(tmp_path: Path) -> None:
    with _started(tmp_path, WAIT, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        began = time.monotonic()
        process.kill()
        assert process.stdout.read() == ""  # at once, since the program had it open
        assert time.monotonic() - began < 30


TERMINAL = """
import os, pty, sys
child, terminal = pty.fork()
if not child:
    os.execv(sys.argv[1], sys.argv[1:])
said = b""
while True:
    try:
        piece = os.read(terminal, 1024)
    except OSError:  # what Linux says when the last one has closed it
        break
    if not piece:
        break
    if b"ready" not in said and b"ready" in said + piece:
        os.write(terminal, b"\\x03")
    said += piece
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said.decode())
"""


def _on_a_terminal(folder: Path, text: str) -> tuple[int, str]:
    """Run a script on a terminal of its own, and press Ctrl-C when it says that it is ready."""
    (folder / "waits.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", TERMINAL, *COMMAND, "--", "waits.py"],
        cwd=folder,
        env=_environment(folder),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    code, _, said = done.stdout.partition(" ")
    return int(code), said


COUNTS = """
import signal, time
count = 0
def handler(*_):
    global count
    count += 1
signal.signal(signal.SIGINT, handler)
print("ready", flush=True)
end = time.monotonic() + 30
while not count and time.monotonic() < end: time.sleep(0.05)
time.sleep(1)
print("count", count, flush=True)
"""


def test_a_key_on_the_terminal_reaches_the_program_once(tmp_path: Path) -> None:
    code, said = _on_a_terminal(tmp_path, COUNTS)
    assert "count 1\n" in said
    assert "waits.py: ran, no change" in said
    assert code == 0


def test_a_key_on_the_terminal_ends_both(tmp_path: Path) -> None:
    code, said = _on_a_terminal(tmp_path, WAIT)
    assert "error: SIGINT (Interrupt) ended the process while waits.py ran" in said
    assert code == -signal.SIGINT


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is full")
def test_a_report_that_cannot_be_written_is_no_word_about_floats(tmp_path: Path) -> None:
    (tmp_path / "calm.py").write_text("")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "--", "calm"],
            cwd=tmp_path,
            env=_environment(tmp_path),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


def test_what_came_before_is_not_charged_to_the_program(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(TURN)
    facts = _script(tmp_path, "", 1)
    assert [change["module"] for change in facts["changes"]] == ["before the first import"]
    assert facts["targets"] == [{"module": "script.py", "outcome": "ran", "changes": 0}]


def test_a_folder_that_was_removed(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("")
    for words, code in ([str(tmp_path / "script.py")], 0), (["json"], 0), (["nowhere.py"], 2), (["-m", "nowhere"], 2):
        place = tmp_path / "place"
        place.mkdir()
        ask = f"import os\nos.rmdir({str(place)!r})\nos.execv({sys.executable!r}, {[*COMMAND, '--', *words]!r})"
        done = subprocess.run([sys.executable, "-c", ask], cwd=place, env=_environment(tmp_path), check=False)
        assert done.returncode == code, words


def test_a_log_that_is_full_says_so() -> None:
    log = Log(100)
    log.put("nothing")  # it has not begun
    log.begin()
    for number in range(20):
        log.put("load", number)
    *kept, last = log.entries()
    assert last == ["full"]
    assert kept == [["load", number] for number in range(len(kept))]
    assert len(kept) >= 5
