"""The targets: compiler, optimisation, instruction-set level and what runs the program; and how one is built."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["BUILDS", "Build", "Target", "build", "missing_tools", "native_architecture"]

HERE = Path(__file__).parent
ROOT = HERE.parent.parent

PACKAGES = {
    "gcc": "gcc",
    "clang": "clang",
    "musl-gcc": "musl-tools",
    "aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
    "s390x-linux-gnu-gcc": "gcc-s390x-linux-gnu libc6-dev-s390x-cross",
    "qemu-aarch64": "qemu-user",
    "qemu-s390x": "qemu-user",
    "qemu-x86_64": "qemu-user",
}
"""Program -> the Debian packages that bring it."""


@dataclass(frozen=True)
class Target:
    """A level of a build, and the emulator in front of it (empty: this machine runs it).

    ``big`` says whether it plays the fills of 2^24 values too, of which every target plays the start and samples: an
    emulator takes minutes for them without optimisation.
    """

    name: str
    level: str
    emulator: tuple[str, ...] = ()
    big: bool = True


@dataclass(frozen=True)
class Build:
    """One compilation of the C core; ``machine`` is the meson machine file, ``cross`` whether it is a cross file."""

    name: str
    machine: str
    compiler: str
    optimisation: str
    targets: tuple[Target, ...]
    cross: bool = False

    @property
    def tools(self) -> tuple[str, ...]:
        """The programs that it needs."""
        return (self.compiler, *sorted({t.emulator[0] for t in self.targets if t.emulator}))


def _native(compiler: str, name: str, optimisation: str, *extra: Target) -> Build:
    title = f"x86-64 {name} -O{optimisation}"
    levels = tuple(Target(f"{title} {level}", level) for level in ("baseline", "avx2"))
    machine = {"musl-gcc": "musl"}.get(compiler, compiler)
    return Build(title, f"{machine}.ini", compiler, optimisation, levels + extra)


def _cross(architecture: str, note: str, level: str, optimisation: str) -> Build:
    title = f"{architecture} gcc -O{optimisation}"
    target = Target(f"{title} {level}{note}", level, (f"qemu-{architecture}",), big=optimisation != "0")
    compiler = f"{architecture}-linux-gnu-gcc"
    return Build(title, f"{architecture}.ini", compiler, optimisation, (target,), cross=True)


# a CPU without AVX: an instruction that the baseline must not contain would stop the program there
_OLD_CPU = Target("x86-64 gcc -O3 baseline, CPU without AVX", "baseline", ("qemu-x86_64", "-cpu", "qemu64"), big=False)

BUILDS: tuple[Build, ...] = (
    _native("gcc", "gcc", "3", _OLD_CPU),
    _native("gcc", "gcc", "0"),
    _native("clang", "clang", "3"),
    _native("clang", "clang", "0"),
    _native("musl-gcc", "gcc musl", "3"),
    _cross("aarch64", "", "neon", "3"),
    _cross("aarch64", "", "neon", "0"),
    _cross("s390x", ", big-endian", "baseline", "3"),
    _cross("s390x", ", big-endian", "baseline", "0"),
)


def native_architecture() -> bool:
    """Return whether this machine is the x86-64 that the native targets are for."""
    return platform.machine() == "x86_64" and sys.platform == "linux"


def missing_tools(builds: tuple[Build, ...] = BUILDS) -> dict[str, str]:
    """Return the programs that are not installed, each with the Debian packages that bring it."""
    needed = sorted({tool for b in builds for tool in b.tools})
    return {tool: PACKAGES[tool] for tool in needed if shutil.which(tool) is None}


def version(program: str) -> str:
    """Return the first line of what a program says about its version."""
    output = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return output.splitlines()[0].strip()


def build(what: Build, place: Path) -> Path:
    """Compile a build into ``place`` with the flags of the project's own meson.build; return the folder of programs.

    Raises
    ------
    RuntimeError
        Meson or the compiler failed; the message holds their last lines.
    """
    kind = "--cross-file" if what.cross else "--native-file"
    options = ["-Dpython=false", "-Dctests=true", f"-Doptimization={what.optimisation}", "-Ddebug=false"]
    run(["meson", "setup", str(place), str(ROOT), kind, str(HERE / what.machine), *options], what.name)
    run(["meson", "compile", "-C", str(place), "-j", "2"], what.name)
    return place / "fast" / "csrc" / "tests"


def run(command: list[str], what: str, environment: dict[str, str] | None = None) -> str:
    """Run a program quietly, with more variables in its environment; on failure raise with its last lines."""
    variables = os.environ | (environment or {})
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=variables)
    if done.returncode:
        tail = "\n".join(done.stdout.splitlines()[-40:])
        raise RuntimeError(f"{what}: {' '.join(command)} ended with {done.returncode}\n{tail}")
    return done.stdout
