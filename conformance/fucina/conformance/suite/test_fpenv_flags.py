"""Exception flags: sets of them, what has accrued, and probes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.suite import environment as fpenv
from fucina.conformance.suite.test_fpenv_modes import reached

NAMES = ("invalid", "division_by_zero", "overflow", "underflow", "inexact", "denormal")
SUBSETS = [frozenset(chosen) for n in range(7) for chosen in itertools.combinations(NAMES, n)]


def made(impl: Any, names: Any) -> Any:
    """Return a set of exceptions by name."""
    return impl.fpenv.Exceptions(**dict.fromkeys(names, True))


@clause("FPENV-EXC-1")
def test_a_set_of_exceptions(impl: Any) -> None:
    part = impl.fpenv
    assert part.Exceptions() == part.Exceptions(False, False, False, False, False, False)
    for names in SUBSETS:
        flags = made(impl, names)
        assert {name for name in NAMES if getattr(flags, name)} == names
        assert flags == part.Exceptions(*(name in names for name in NAMES)), "the order of the documents"
        assert repr(flags) == f"Exceptions({', '.join(f'{name}=True' for name in NAMES if name in names)})"
        assert eval(repr(flags), {"Exceptions": part.Exceptions}) == flags
    assert len({made(impl, names) for names in SUBSETS}) == 64
    with pytest.raises(AttributeError):
        part.Exceptions().invalid = True


@clause("FPENV-EXC-2")
def test_questions_to_a_set(impl: Any) -> None:
    for names in SUBSETS:
        flags = made(impl, names)
        assert flags.any() is bool(flags) is bool(names)
        assert flags.any_significant() is bool(names - {"inexact"})
    for one, two in itertools.product(SUBSETS[::3], SUBSETS[::5]):
        assert made(impl, one).union_with(made(impl, two)) == made(impl, one | two)
        assert made(impl, one) | made(impl, two) == made(impl, one | two)


@clause("FPENV-FLAGS-1", "FPENV-FLAGS-2", "FPENV-FLAGS-3")
@pytest.mark.parametrize("traps", [0, fpenv.TRAPPING], ids=["masked", "unmasked"])
@pytest.mark.parametrize("mode", ["nearest", next(reversed(fpenv.EVERY))])
def test_what_has_accrued(impl: Any, mode: str, traps: int) -> None:
    reached(impl)
    part = impl.fpenv
    for names, later in zip(SUBSETS, reversed(SUBSETS), strict=True):
        first, second = made(impl, names), made(impl, later)
        with fpenv.environment(mode, fpenv.flags_of(names), traps):
            before = fpenv.snapshot().control
            tested, still = part.test_exceptions(), fpenv.raised()
            part.raise_exceptions(second)
            replaced = fpenv.raised()
            part.raise_exceptions(first)
            once_more = fpenv.raised()
            part.clear_exceptions()
            cleared, after = fpenv.raised(), fpenv.snapshot().control
        assert tested == first
        assert still == names
        assert replaced == later
        assert once_more == names
        assert cleared == set()
        assert after == before


@clause("FPENV-PROBE-1", "FPENV-PROBE-2")
def test_probes_keep_the_account_of_the_outer_one(impl: Any) -> None:
    reached(impl)
    part = impl.fpenv
    for outer, middle, inner in itertools.product(SUBSETS[::7], SUBSETS[::9], SUBSETS[::11]):
        with fpenv.environment("nearest", fpenv.flags_of(outer)):
            control = fpenv.snapshot().control
            one = part.Probe.begin()
            cleared = fpenv.raised()
            part.raise_exceptions(made(impl, middle))
            two = part.Probe()
            part.raise_exceptions(made(impl, inner))
            sampled, left = two.sample(), fpenv.raised()
            ended = two.end()
            between = fpenv.raised()
            whole = one.end()
            after = fpenv.raised()
            part.clear_exceptions()
            again = two.end(), two.sample(), one.end(), one.sample()
            untouched = fpenv.raised()
            same = fpenv.snapshot().control == control
        assert cleared == set()
        assert sampled == ended == made(impl, inner)
        assert left == inner
        assert between == middle | inner
        assert whole == made(impl, middle | inner)
        assert after == outer | middle | inner
        assert again == (ended, ended, whole, whole)
        assert untouched == set()
        assert same


@clause("FPENV-PROBE-3")
def test_a_probe_as_a_context_manager(impl: Any) -> None:
    reached(impl)
    part = impl.fpenv
    with fpenv.environment("nearest", fpenv.flags_of(["denormal"])):
        with part.probe() as probe:
            part.raise_exceptions(made(impl, ["overflow"]))
        after = fpenv.raised()
        try:
            with part.Probe() as other:
                part.raise_exceptions(made(impl, ["invalid"]))
                raise KeyError
        except KeyError:
            at_last = fpenv.raised()
        with part.probe() as ended:
            early = ended.end()
            part.raise_exceptions(made(impl, ["inexact"]))
        left = fpenv.raised()
    assert type(probe) is type(other) is part.Probe
    assert probe.sample() == made(impl, ["overflow"])
    assert after == {"overflow", "denormal"}
    assert other.end() == made(impl, ["invalid"])
    assert at_last == {"overflow", "denormal", "invalid"}
    assert early == ended.sample() == part.Exceptions()
    assert left == {"inexact"}, "a probe that has ended changes nothing at the end of its block"


@clause("FPENV-PROBE-1", "FPENV-GUARD-1", "FPENV-ASSERT-1", "FPENV-EXC-2", "FPENV-RECORD-2")
def test_the_example_of_the_documents(impl: Any) -> None:
    part = impl.fpenv
    if not part.supported:
        return  # as the example has it: nothing to observe on this machine

    # the contract that every pinned numeric result assumes
    part.assert_default()

    # a scoped change: the guard puts the environment back
    guard = part.Guard.begin()
    try:
        part.set(part.Environment(rounding=part.RoundingMode.toward_zero, underflow=part.UnderflowMode.gradual))
        assert part.rounding_mode() is part.RoundingMode.toward_zero
    finally:
        guard.restore()
    part.assert_default()

    # which exceptions did this region raise?  an f32 operation: a Python float would not overflow
    huge = np.float32(3.0e38)
    with np.errstate(all="ignore"):
        probe = part.Probe.begin()
        squared = huge * huge
        raised = probe.end()
    assert np.isinf(squared)
    assert raised.overflow
    assert raised.any_significant()
    part.clear_exceptions()
    assert part.test_exceptions() == part.Exceptions()

    # compare with the creation of a context, or, where there is none, of the record that it would hold
    if "context" in impl.capabilities:
        with impl.ExecContext() as ctx:
            ctx.check_float_environment()
    else:
        part.Record.begin().check()
