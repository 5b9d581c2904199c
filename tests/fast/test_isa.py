"""Instruction-set levels and the command line."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fucina.fast as fast
from fucina.fast import __main__
from fucina.spec.errors import InvalidBounds


@pytest.fixture(autouse=True)
def _same_level_afterwards() -> Iterator[None]:
    before = fast.isa()
    yield
    fast.set_isa(before)


def _run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )


def test_levels_are_ordered_and_the_highest_is_the_default() -> None:
    names = _run("-c", "import fucina.fast as f; print(*f.isa_levels()); print(f.isa())", FUCINA_ISA="").stdout.split()
    assert tuple(names[:-1]) == fast.isa_levels()
    assert names[-1] == fast.isa_levels()[-1]


@pytest.mark.parametrize("level", fast.isa_levels())
def test_set_isa(level: str) -> None:
    fast.set_isa(level)
    assert fast.isa() == level


@pytest.mark.parametrize("level", ["", "AVX2", "sse9", None, 3, "baseline\0"])
def test_unknown_level_is_refused_and_nothing_changes(level: Any) -> None:
    before = fast.isa()
    levels = ", ".join(fast.isa_levels())
    with pytest.raises(InvalidBounds, match=rf"^NUM-ISA-1: level must be one that this machine has \({levels}\), got "):
        fast.set_isa(level)
    assert fast.isa() == before


@pytest.mark.parametrize("level", fast.isa_levels())
def test_environment_variable_chooses(level: str) -> None:
    assert _run("-c", "import fucina.fast as f; print(f.isa())", FUCINA_ISA=level).stdout.strip() == level


def test_environment_variable_with_an_unknown_level_is_an_import_error() -> None:
    done = _run("-c", "import fucina.fast", FUCINA_ISA="sse9")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last == f"ImportError: NUM-ISA-1: FUCINA_ISA must name one of {', '.join(fast.isa_levels())}, got 'sse9'"


def test_the_command_says_so_in_one_line() -> None:
    """Python loads the package before its ``__main__``; exit code 1 would mean another float environment."""
    for words in (
        ["-m", "fucina.fast"],
        ["-m", "fucina.fast", "--json"],
        ["-mfucina.fast", "fpenv", "check", "--", "json"],
    ):
        done = _run(*words, FUCINA_ISA="sse9")
        levels = ", ".join(fast.isa_levels())
        assert done.stderr == f"python -m fucina.fast: NUM-ISA-1: FUCINA_ISA must name one of {levels}, got 'sse9'\n"
        assert (done.returncode, done.stdout) == (2, "")


def test_another_command_that_loads_the_package_gets_the_import_error(tmp_path: Path) -> None:
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "__init__.py").write_text("import fucina.fast\n")
    (tmp_path / "user" / "__main__.py").write_text("")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = _run("-m", "user", "fucina.fast", FUCINA_ISA="sse9", PYTHONPATH=path)
    assert done.returncode == 1
    assert "ImportError: NUM-ISA-1: " in done.stderr


def test_without_the_compiled_module_the_command_says_what_is_missing(tmp_path: Path) -> None:
    """As in a source tree: everything but the shared object."""
    package = Path(fast.__file__).parent
    shutil.copytree(package, tmp_path / "fucina" / "fast", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    shutil.copytree(package.parent / "spec", tmp_path / "fucina" / "spec", ignore=shutil.ignore_patterns("__pycache__"))
    done = _run("-S", "-c", "import fucina.fast", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert "ImportError: the compiled module fucina.fast._native is not here" in done.stderr
    done = _run("-S", "-m", "fucina.fast", PYTHONPATH=str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.startswith("python -m fucina.fast: the compiled module fucina.fast._native is not here")
    assert done.stderr.count("\n") == 1


def test_the_command_ends_quietly_when_nobody_reads() -> None:
    for words in ([], ["--json"]):
        reader, writer = os.pipe()
        os.close(reader)
        with open(writer, "wb") as closed:
            done = subprocess.run(
                [sys.executable, "-m", "fucina.fast", *words], stdout=closed, stderr=subprocess.PIPE, check=False
            )
        assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, b"")


def test_every_level_gives_the_same_bytes(fill: Any, noise: Any) -> None:
    dtype, call = fill
    found = set()
    for level in fast.isa_levels():
        fast.set_isa(level)
        out = np.zeros(1003, fast.dtype.storage(dtype))
        call(out)
        found.add(out.tobytes())
    assert len(found) == 1


def test_command_line() -> None:
    text = _run("-m", "fucina.fast").stdout
    assert fast.__version__ in text
    assert ", ".join(fast.isa_levels()) in text
    facts = json.loads(_run("-m", "fucina.fast", "--json", FUCINA_ISA=fast.isa_levels()[0]).stdout)
    assert facts["version"] == fast.__version__
    assert facts["isa_levels"] == list(fast.isa_levels())
    assert (facts["isa"], facts["isa_from"]) == (fast.isa_levels()[0], "FUCINA_ISA")
    assert "ffp-contract=off" in facts["build"]
    assert facts["numpy"] == np.__version__
    assert facts["team"]["threads"] == fast.parallel.cpu_thread_count(fast.parallel.vector_max_threads)
    assert facts["team"]["most_threads"] == fast.parallel.vector_max_threads
    assert facts["capabilities"] == sorted(fast.capabilities)
    assert not facts["float_environment"]["supported"] or facts["float_environment"]["default"]
    knob = json.loads(_run("-m", "fucina.fast", "--json", FUCINA_MAX_THREADS="1").stdout)["team"]
    assert (knob["threads"], knob["FUCINA_MAX_THREADS"]) == (1, 1)
    assert "ignored" not in text
    assert "FUCINA_MAX_THREADS='0x2'" in _run("-m", "fucina.fast", FUCINA_MAX_THREADS="0x2").stdout
    assert json.loads(_run("-m", "fucina.fast", "--json", FUCINA_SPIN_BUDGET="-1").stdout)["ignored"] == {
        "FUCINA_SPIN_BUDGET": "-1"
    }
    assert _run("-m", "fucina.fast", "--nonsense").returncode == 2
    said = _run("-m", "fucina.fast", "--help").stdout
    assert "exit code" in said
    for name in ("FUCINA_ISA", "FUCINA_MAX_THREADS", "FUCINA_SPIN_BUDGET", "FUCINA_POOL_PROFILE"):
        assert f"  {name} " in said


@pytest.mark.skipif(not fast.fpenv.supported, reason="the environment of this machine cannot be seen")
def test_command_line_in_another_float_environment() -> None:
    with fast.fpenv.guard():
        fast.fpenv.set(fast.fpenv.Environment(fast.fpenv.RoundingMode.upward, fast.fpenv.UnderflowMode.gradual))
        facts = __main__.facts()
        said = dict(__main__.lines(facts))["this thread's floats"]
    assert not facts["float_environment"]["default"]
    assert said.startswith("NOT THE DEFAULT: rounding upward, ")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is full")
@pytest.mark.parametrize("words", [(), ("--json",), ("--help",), ("fpenv", "check", "--help")], ids=" ".join)
def test_output_that_cannot_be_written(words: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "fucina.fast", *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (2, "python -m fucina.fast: [Errno 28] No space left on device\n")
