"""The pytest plugin: options, fixtures, one test run per target, and the rules that a suite has to keep.

``python -m fucina.conformance`` loads it; so can any pytest run:
``pytest -p fucina.conformance.plugin --impl your.module``.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import Phase, settings

import fucina.conformance.strategies  # noqa: F401 - registers the profiles of hypothesis
from fucina.conformance import watchdog as dog
from fucina.conformance.capabilities import GENERAL
from fucina.conformance.errors import UsageError, suggestion
from fucina.conformance.expectations import expected_failure
from fucina.conformance.expectations import load as load_expectations
from fucina.conformance.failures import describe
from fucina.conformance.results import Check, LeftOut, Outcome, Run
from fucina.conformance.targets import (
    DEFAULT_MODULES,
    JUDGE,
    Target,
    entry_point_modules,
    operations_of,
    resolve,
    windows_of,
)
from fucina.spec import IsaControl, Operations, Windows
from fucina.spec import clauses as specification

__all__ = ["RUN", "Listener"]

RUN = pytest.StashKey[Run]()
_CHECK = pytest.StashKey[Check]()
_LISTENERS = pytest.StashKey["list[Listener]"]()
_START = pytest.StashKey[float]()
_PARAMETER = "conformance_target"


class Listener:
    """Is told how a run goes on; the command line's progress bar is one.  Register it as a pytest plugin."""

    def planned(self, run: Run) -> None:
        """The tests are collected."""

    def checked(self, run: Run, check: Check) -> None:
        """A check has ended."""

    def pytest_configure(self, config: pytest.Config) -> None:
        """Join the listeners of this pytest run."""
        config.stash.setdefault(_LISTENERS, []).append(self)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("fucina", "Fucina conformance suite")
    group.addoption(
        "--impl", action="append", default=[], metavar="MODULE", help="implementation under test (repeatable)"
    )
    group.addoption("--entry-points", action="store_true", help="add the entry point group fucina.implementations")
    group.addoption("--isa", action="append", default=[], metavar="LEVEL", help="only this instruction-set level")
    group.addoption("--expect", metavar="FILE", help="TOML file of expected failures, each with its reason")
    group.addoption("--clauses", action="append", default=[], metavar="GLOB", help="only clauses whose id matches")
    group.addoption("--slow", action="store_true", help="also the slow tests, and many more random examples")
    group.addoption("--random-seed", type=int, metavar="N", help="draw other random examples than the usual ones")


def pytest_configure(config: pytest.Config) -> None:
    """Resolve what was asked for."""
    config.addinivalue_line("markers", "clause(*ids): the clauses of the specification that a test checks")
    config.addinivalue_line("markers", "slow: takes long; runs with --slow only")
    try:
        config.stash[RUN] = make_run(config.option)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from error
    config.stash.setdefault(_LISTENERS, [])
    config.stash[_START] = time.perf_counter()
    _load_profile(config.stash[RUN])
    dog.prepare(config)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Give back what the run has kept open."""
    dog.close(config)


def make_run(option: Any) -> Run:
    """Return the run that the options describe; raise UsageError where they cannot be met."""
    clauses = specification.load()
    for glob in option.clauses:
        if not Run([], clauses, globs=[glob]).clauses:
            raise UsageError(f"no clause matches {glob!r}{suggestion(glob, clauses)}")
    names = list(option.impl) or ([] if option.entry_points else list(DEFAULT_MODULES))
    names += entry_point_modules() if option.entry_points else []
    expectations = load_expectations(Path(option.expect), clauses) if option.expect else []
    targets = resolve(names, option.isa)
    return Run(targets, clauses, expectations, tuple(option.clauses), option.slow, option.random_seed)


def _load_profile(run: Run) -> None:
    phases = [phase for phase in Phase if phase is not Phase.explain]  # it explains the suite's code, not the target's
    settings.register_profile(
        "conformance",
        parent=settings.get_profile("nightly" if run.slow else "ci"),
        derandomize=run.seed is None,
        database=None,
        phases=phases,
    )
    settings.load_profile("conformance")


# -- fixtures


@pytest.fixture(scope="session")
def conformance_target(request: pytest.FixtureRequest) -> Target:
    """The target under test; a name of its own, so that a test may call a parameter ``target``."""
    found: Target = request.param
    return found


@pytest.fixture(scope="session")
def target(conformance_target: Target) -> Target:
    """The target under test."""
    return conformance_target


@pytest.fixture(scope="session")
def impl(conformance_target: Target) -> ModuleType:
    """The implementation under test, with its instruction-set level forced."""
    return conformance_target.module


@pytest.fixture(scope="session")
def judge() -> ModuleType:
    """The reference, for lockstep tests; they do not run on the reference itself."""
    return importlib.import_module(JUDGE)


@pytest.fixture(scope="session")
def windows(conformance_target: Target) -> Windows:
    """The windows of the implementation under test; a test that takes them does not run where there are none."""
    found = windows_of(conformance_target.module_name)
    assert isinstance(found, Windows), f"{conformance_target.module_name}.windows lacks a name of fucina.spec.Windows"
    return found


@pytest.fixture(scope="session")
def operations(conformance_target: Target) -> Operations:
    """The single operations of the implementation under test; a test of these does not run where there are none."""
    found = operations_of(conformance_target.module_name)
    assert isinstance(found, Operations)
    return found


@pytest.fixture
def watchdog(pytestconfig: pytest.Config) -> Iterator[None]:
    """End the process where a test hangs, for ``pytestmark = pytest.mark.usefixtures("watchdog")``."""
    with dog.watched(pytestconfig):
        yield


# -- collection


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give every test that takes ``impl`` or ``target`` one variant for each target."""
    if _PARAMETER in metafunc.fixturenames:
        targets = metafunc.config.stash[RUN].targets
        metafunc.parametrize(_PARAMETER, targets, ids=[t.label for t in targets], indirect=True, scope="session")


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Remember what could not be collected."""
    if report.failed and _run is not None:
        _run.problem("collection error", report.nodeid, report.longreprtext.strip())


_run: Run | None = None
"""The run whose tests are being collected: a collect report does not know its config."""


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Let collect reports find the run."""
    global _run
    _run = session.config.stash[RUN]
    try:
        return (yield)
    finally:
        _run = None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Plan a check for each test that is to run; say of each other one why it is left out."""
    run = config.stash[RUN]
    for item in items:
        fault = _fault(item, run)
        if fault:
            run.problem("collection error", _test(item), fault)
    if run.problems:
        listing = "\n".join(f"{p.where}: {p.message}" for p in run.problems)
        raise session.Interrupted(f"the suite breaks its own rules:\n{listing}")
    kept, dropped = [], []
    for item in items:
        on = _target(item)
        claimed = tuple(i for i in _clauses(item) if run.wanted(i) and run.claims(on.label, i))
        reason = _reason(item, run, on, claimed)
        if reason is None:
            item.stash[_CHECK] = Check(_test(item), item.nodeid, on.label, claimed)
            run.checks.append(item.stash[_CHECK])
            kept.append(item)
        else:
            run.left_out.append(LeftOut(_test(item), on.label, reason))
            dropped.append(item)
    items[:] = kept
    run.planned = True
    config.hook.pytest_deselected(items=dropped)
    for listener in config.stash[_LISTENERS]:
        listener.planned(run)


def _target(item: pytest.Item) -> Target:
    """Return the target of a test; ``_fault`` has seen that it has one."""
    found: Target = item.callspec.params[_PARAMETER]  # type: ignore[attr-defined]  # an Item with a callspec
    return found


def _test(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _clauses(item: pytest.Item) -> list[str]:
    return list(dict.fromkeys(i for mark in item.iter_markers("clause") for i in mark.args))


def _fault(item: pytest.Item, run: Run) -> str | None:
    """Return which rule of the suite a test breaks, if any."""
    ids = _clauses(item)
    for clause_id in ids:
        if clause_id not in run.all_clauses:
            return f"unknown clause {clause_id!r}{suggestion(str(clause_id), run.all_clauses)}"
    if not ids:
        return 'the test names no clause: add @clause("...")'
    if _PARAMETER not in getattr(getattr(item, "callspec", None), "params", {}):
        return "the test takes neither `impl` nor `target`, so it cannot check an implementation"
    if item.get_closest_marker("xfail"):
        return "xfail is not for the suite: expected failures stand in an expectations file, with their reason"
    return None


def _reason(item: pytest.Item, run: Run, on: Target, claimed: tuple[str, ...]) -> str | None:
    """Return why a test does not run on a target, or ``None`` if it does."""
    if not any(run.wanted(i) for i in _clauses(item)):
        return "outside the filter"
    needed = {run.all_clauses[i].chapter for i in _clauses(item)}
    missing = needed - run.capabilities[on.label]
    if missing - GENERAL or not claimed:
        return f"not claimed: {', '.join(sorted(missing))}"
    if "judge" in getattr(item, "fixturenames", ()) and on.module_name == JUDGE:
        return "lockstep with the reference itself"
    if "windows" in getattr(item, "fixturenames", ()) and windows_of(on.module_name) is None:
        return "no windows: its fills are not seen before the last rounding"
    if "operations" in getattr(item, "fixturenames", ()) and operations_of(on.module_name) is None:
        return "no single operations: what the environment does to one is not seen"
    if item.get_closest_marker("slow") and not run.slow:
        return "slow: runs with --slow"
    return None


# -- running


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Put the instruction-set level back after each test, and pass the result on."""
    run, check = item.config.stash[RUN], item.stash[_CHECK]
    module = _target(item).module
    original = module.isa() if isinstance(module, IsaControl) else None
    start = time.perf_counter()
    try:
        return (yield)
    finally:
        check.seconds = time.perf_counter() - start
        if original is not None:
            module.set_isa(original)
        for listener in item.config.stash[_LISTENERS]:
            listener.checked(run, check)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Force the target's instruction-set level; an error here is a failure of the test."""
    on = _target(item)
    if on.isa is None:
        return
    on.module.set_isa(on.isa)
    if on.module.isa() != on.isa:
        raise AssertionError(f"{on.module_name}.set_isa({on.isa!r}) did not take: isa() is {on.module.isa()!r}")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note the outcome; turn a failure that was expected into an expected failure."""
    report = yield
    run, check = item.config.stash[RUN], item.stash[_CHECK]
    if report.failed:
        check.failure = describe(call.excinfo.value) if call.excinfo else None
        entry = expected_failure(run.expectations, _target(item), check.test, check.case, check.blamed)
        if entry is None:
            check.outcome = Outcome.FAILED
        else:
            check.outcome, check.reason = Outcome.EXPECTED, entry.reason
            report.outcome, report.wasxfail = "skipped", entry.reason
    elif report.skipped:
        check.outcome, check.reason = Outcome.SKIPPED, _skip_reason(report)
    elif report.when == "call":
        check.outcome = Outcome.PASSED
    if report.when == "teardown":
        check.notes = tuple(str(value) for name, value in item.user_properties if name == "note")
    return report


def _skip_reason(report: pytest.TestReport) -> str:
    detail = report.longrepr
    return str(detail[2]).removeprefix("Skipped: ") if isinstance(detail, tuple) else str(detail)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> Generator[None, None, None]:
    """Close the books; a run with a missing test or a stale expectation does not end in success."""
    run = session.config.stash[RUN]
    run.stopped = str(session.shouldfail or session.shouldstop or "")
    if exitstatus == pytest.ExitCode.INTERRUPTED and not run.problems:
        run.stopped = "interrupted"
    run.finish(time.perf_counter() - session.config.stash[_START])
    if not run.agrees and exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    yield


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say, in a plain pytest run, what the command line would show in its matrix."""
    run: Run = terminalreporter.config.stash[RUN]
    write: Callable[[str], None] = terminalreporter.write_line
    for problem in run.problems:
        write(f"{problem.kind}: {problem.where}: {problem.message}")
    for (clause_id, label), cell in run.cells.items():
        if cell.text in ("NO TEST", "not claimed"):
            write(f"{cell.text}: {clause_id} on {label}")
