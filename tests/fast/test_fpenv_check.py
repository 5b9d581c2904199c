"""``python -m fucina.fast fpenv check``: which module changed the floating-point environment."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).with_name("flush.c")

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the library that sets FTZ knows MXCSR only")


def _compiled(target: Path, *options: str) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    assert compiler, "the tests need the C compiler that built the library"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", *options, "-o", str(target), str(SOURCE)], check=True)
    return target


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of modules: ``flusher`` loads a library that sets FTZ and DAZ, ``calm`` does nothing."""
    place = tmp_path_factory.mktemp("modules")
    library = _compiled(place / "libflush.so")
    (place / "flusher.py").write_text(f"import ctypes\nctypes.CDLL({str(library)!r})\n")
    (place / "outer.py").write_text("import calm\nimport flusher\nimport calmer\n")
    (place / "calm.py").write_text("")
    (place / "calmer.py").write_text("")
    setting = "set(Environment(RoundingMode.{}, UnderflowMode.gradual))\n"
    words = "from fucina.fast.fpenv import Environment, RoundingMode, UnderflowMode, set\n"
    (place / "turns.py").write_text(words + setting.format("upward"))
    (place / "turns_back.py").write_text("import turns\n" + words + setting.format("nearest_even"))
    (place / "breaks.py").write_text("import flusher\nraise KeyError\n")
    (place / "script.py").write_text("import sys\nprint(sys.argv[1:])\nimport outer\nsys.exit(int(sys.argv[1]))\n")
    (place / "threaded.py").write_text(
        "import ctypes, threading\n"
        f"thread = threading.Thread(target=ctypes.CDLL, args=({str(library)!r},))\nthread.start()\nthread.join()\n"
    )
    return place


def _check(folder: Path, *words: str, code: int) -> str:
    return _said(folder, *words, code=code)[0]


def _said(folder: Path, *words: str, code: int) -> tuple[str, str]:
    """Run the command; return what it wrote on stdout and on stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "fucina.fast", "fpenv", "check", *words],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)])},
        check=False,
    )
    assert done.returncode == code, f"exit {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout, done.stderr


def _json(folder: Path, *words: str, code: int) -> Any:
    return json.loads(_check(folder, "--json", *words, code=code))


def test_nothing_changed(folder: Path) -> None:
    said = _check(folder, "--", "calm", "calmer", "json", code=0)
    assert "calm: imported, no change" in said
    assert "json: imported before the check, no change" in said
    assert "0 changes, 2 modules watched, importing thread only" in said
    facts = _json(folder, "--", "calm", code=0)
    assert facts["changes"] == []
    assert facts["start"] == facts["end"]


def test_a_library_that_flushes_from_now_on(folder: Path) -> None:
    """Case O-F01: loaded by a module that was imported by the one that was named."""
    said = _check(folder, "--", "calm", "outer", "calmer", code=1)
    assert f"flusher ({folder / 'flusher.py'}), imported by outer\n" in said
    assert "    flush to zero: off -> on\n    denormals are zero: off -> on\n" in said
    (change,) = _json(folder, "--", "calm", "outer", "calmer", code=1)["changes"]
    assert (change["module"], change["imported_by"]) == ("flusher", ["outer"])
    before = {"rounding": "nearest_even", "flush_to_zero": False, "denormals_are_zero": False, "traps": []}
    assert change["before"] == before
    assert change["after"] == {**before, "flush_to_zero": True, "denormals_are_zero": True}


@pytest.mark.parametrize(
    ("name", "sets", "clears", "after", "words"),
    [
        ("ftz", 0x8000, 0, {"flush_to_zero": True}, "flush to zero: off -> on"),
        ("daz", 0x0040, 0, {"denormals_are_zero": True}, "denormals are zero: off -> on"),
        ("down", 0x2000, 0, {"rounding": "downward"}, "rounding: nearest even -> downward"),
        ("up", 0x4000, 0, {"rounding": "upward"}, "rounding: nearest even -> upward"),
        ("zero", 0x6000, 0, {"rounding": "toward_zero"}, "rounding: nearest even -> toward zero"),
        ("trap", 0, 0x0200, {"traps": ["division_by_zero"]}, "traps: none -> division by zero"),
        ("traps", 0, 0x0480, {"traps": ["invalid", "overflow"]}, "traps: none -> invalid and overflow"),
    ],
)
def test_a_library_that_changes_one_thing(
    folder: Path, name: str, sets: int, clears: int, after: dict[str, Any], words: str
) -> None:
    library = _compiled(folder / f"lib{name}.so", f"-DSET={sets:#x}", f"-DCLEAR={clears:#x}")
    (folder / f"loads_{name}.py").write_text(f"import ctypes\nctypes.CDLL({str(library)!r})\n")
    (change,) = _json(folder, "--", "calm", f"loads_{name}", code=1)["changes"]
    assert change["module"] == f"loads_{name}"
    assert change["after"] == {**change["before"], **after}
    assert change["changed"] == [words]
    assert f"    {words}\n" in _check(folder, "--", "calm", f"loads_{name}", code=1)


def test_an_extension_module_that_flushes(folder: Path) -> None:
    include = Path(sysconfig.get_paths()["include"])
    if not (include / "Python.h").exists():
        pytest.skip("no headers of this interpreter")
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    _compiled(folder / f"flushing{suffix}", "-DMODULE", f"-I{include}")
    (change,) = _json(folder, "--", "calm", "flushing", code=1)["changes"]
    assert change["module"] == "flushing"
    assert change["file"] == str(folder / f"flushing{suffix}")
    assert change["imported_by"] == []


def test_each_change_goes_to_the_module_that_made_it(folder: Path) -> None:
    facts = _json(folder, "--", "turns_back", code=1)
    assert [(c["module"], c["imported_by"], c["changed"]) for c in facts["changes"]] == [
        ("turns", ["turns_back"], ["rounding: nearest even -> upward"]),
        ("turns_back", [], ["rounding: upward -> nearest even"]),
    ]
    assert facts["start"] == facts["end"]


def test_scripts_and_programs(folder: Path) -> None:
    said = _check(folder, "--", "script.py", "0", "--json", code=1)
    assert said.startswith("['0', '--json']\n")
    assert "imported by outer <- script.py\n" in said
    facts = _json(folder, "--", "script.py", "0", code=1)
    assert facts["targets"] == [{"module": "script.py", "outcome": "ran", "changes": 1}]
    (change,) = _json(folder, "--", "-m", "outer", code=1)["changes"]
    assert change["module"] == "flusher"


def test_what_could_not_be_told(folder: Path) -> None:
    for words in ([], ["--"], ["--", "-m"], ["--what"]):
        _check(folder, *words, code=2)
    assert "ModuleNotFoundError" in _json(folder, "--", "no_such_module", code=2)["error"]
    facts = _json(folder, "--", "breaks", code=2)
    assert "KeyError" in facts["error"]
    assert [change["module"] for change in facts["changes"]] == ["flusher"]
    assert "exit code 3" in _json(folder, "--", "script.py", "3", code=2)["error"]


@pytest.mark.parametrize(
    ("words", "says"), [(["nowhere.py"], "script 'nowhere.py'"), (["-m", "nowhere"], "module 'nowhere'")]
)
def test_a_program_that_is_not_there_takes_one_line(folder: Path, words: list[str], says: str) -> None:
    for options in ([], ["--json"]):
        said, error = _said(folder, *options, "--", *words, "argument", code=2)
        assert said == ""
        assert error == f"python -m fucina.fast fpenv: there is no {says} in {folder}\n"


def test_other_threads_are_not_seen(folder: Path) -> None:
    assert _json(folder, "--", "threaded", code=0)["changes"] == []


def test_a_guard_and_a_record_around_a_library(folder: Path) -> None:
    """Case O-F01, in the process itself."""
    script = f"""
import ctypes, importlib, sys
import fucina.fast as fast, fucina.reference as reference
fucina = importlib.import_module(sys.argv[1])
part, ctx = fucina.fpenv, fucina.ExecContext()
guard, record = part.Guard.begin(), part.Record.begin()
ctypes.CDLL({str(folder / "libflush.so")!r})
for check in (ctx.check_float_environment, record.check, part.assert_default):
    try:
        check()
    except RuntimeError as error:
        print(type(error).__name__, part.underflow_mode().name)
guard.restore()
part.assert_default()
record.check()
ctx.check_float_environment()
"""
    for name in ("fucina.fast", "fucina.reference"):
        ran = subprocess.run([sys.executable, "-c", script, name], capture_output=True, text=True, check=False)
        changed = "FloatEnvironmentChanged flush_to_zero\n"
        assert ran.stdout == f"{changed}{changed}NonDefaultFloatEnvironment flush_to_zero\n", ran
        assert ran.returncode == 0, ran.stderr
