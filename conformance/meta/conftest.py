"""What the tests of the suite share: runs of the command line in a process and a folder of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

THIRD = '''
"""A third party's module: words of the stream, and an instruction-set level if it is asked for one."""
from types import SimpleNamespace

capabilities = frozenset({"rng"})
M64 = (1 << 64) - 1


def at(seed, i):
    z = (seed + (i + 1) * 0x9E3779B97F4A7C15) & M64
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & M64
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & M64
    return z ^ z >> 31


rng = SimpleNamespace(at=at)
'''

SUITE = """
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fucina.conformance import clause
from fucina.conformance.compare import assert_bits


@clause("RNG-AT-1")
def test_words(impl):
    got = np.array([impl.rng.at(0, i) for i in range(3)], dtype=np.uint64)
    assert_bits(got, np.array([0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F], dtype=np.uint64))


@clause("RNG-SEED-1", "ERR-NAME-1")
@given(seed=st.integers(0, 2**64 - 1))
def test_range(impl, seed):
    assert 0 <= impl.rng.at(seed, 0) < 2**64
"""


@dataclass(frozen=True)
class Ended:
    """A process that has ended."""

    code: int
    out: str
    err: str

    @property
    def last_line(self) -> str:
        """The line that CI tools read."""
        return self.out.strip().splitlines()[-1]

    def row(self, clause: str) -> str:
        """The line of the matrix for a clause, without the drawing of the table."""
        (line,) = re.findall(rf"^{clause} .*$", self.out, re.MULTILINE)
        return " ".join(str(line).replace("│", " ").split())


@dataclass
class House:
    """A folder to run in: modules and suites are written into it by name."""

    folder: Path

    def write(self, name: str, text: str) -> Path:
        """Write a file of the folder and return its path."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def python(self, *arguments: str | Path, **environment: str) -> Ended:
        """Run Python in the folder."""
        done = subprocess.run(
            [sys.executable, *map(str, arguments)],
            cwd=self.folder,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=600,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def run(self, *arguments: str | Path, **environment: str) -> Ended:
        """Run the command line in the folder."""
        return self.python("-m", "fucina.conformance", *arguments, **environment)

    def check(self, *arguments: str | Path, suite: str = SUITE, third: str = THIRD, clauses: str = "RNG-AT-1") -> Ended:
        """Run a suite on a module ``third``, both given as text, with a filter of clauses."""
        self.write("third.py", third)
        self.write("suite/test_it.py", suite)
        return self.run("--impl", "third", "--suite", "suite", "--filter", *clauses.split(), *arguments)


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


@pytest.fixture
def broken() -> str:
    """The module ``third`` with its second word wrong in the last bit."""
    return THIRD.replace("return z ^ z >> 31", "return z ^ z >> 31 ^ (i == 1)")


@pytest.fixture
def suite_with() -> Callable[[str], str]:
    """Return the suite with more text at its end."""
    return lambda text: f"{SUITE}\n\n{text}\n"
