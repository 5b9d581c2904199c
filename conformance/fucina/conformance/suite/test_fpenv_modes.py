"""Rounding and underflow: seen, set, asserted, guarded and recorded, beside the C library's view of the registers."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import assert_raises
from fucina.conformance.suite import environment as fpenv
from fucina.spec.errors import (
    DTypeMismatch,
    FloatEnvironmentChanged,
    FucinaError,
    NonDefaultFloatEnvironment,
    WrongThread,
)

# what the names of environment.EVERY mean
_ROUNDING = {"nearest": "nearest_even", "upward": "upward", "downward": "downward", "toward zero": "toward_zero"}


def reached(impl: Any) -> None:
    """Skip the test where the implementation cannot reach the registers, or the suite cannot."""
    fpenv.needed()
    if not impl.fpenv.supported:
        pytest.skip("the implementation says that it cannot reach the floating-point environment here")


def meant(impl: Any, mode: str) -> Any:
    """Return the environment as the contract has it of one that EVERY names; FZ16 alone flushes no f32."""
    name, *flushes = mode.split(", ")
    flushing = set(flushes) - {"FZ16"}
    part = impl.fpenv
    underflow = part.UnderflowMode.flush_to_zero if flushing else part.UnderflowMode.gradual
    return part.Environment(part.RoundingMode[_ROUNDING[name]], underflow)


def settings(impl: Any) -> list[Any]:
    """Return the eight environments."""
    part = impl.fpenv
    return [part.Environment(rounding, underflow) for rounding in part.RoundingMode for underflow in part.UnderflowMode]


def caught(call: Callable[[], Any]) -> FucinaError | None:
    """Return what a call raised, so that it is looked at outside of the environment."""
    try:
        call()
    except FucinaError as error:
        return error
    return None


def elsewhere(call: Callable[[], Any]) -> Any:
    """Return what a call returns or raises on another thread."""
    got: list[Any] = []

    def run() -> None:
        try:
            got.append(call())
        except FucinaError as error:
            got.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return got[0]


@clause("FPENV-SUPPORT-1")
def test_support_is_told_and_kept(impl: Any) -> None:
    part = impl.fpenv
    assert type(part.supported) is bool
    answers = part.get(), part.rounding_mode(), part.underflow_mode(), part.Record.begin().environment
    if part.supported:
        assert [type(one) for one in answers] == [
            part.Environment,
            part.RoundingMode,
            part.UnderflowMode,
            part.Environment,
        ]
        return
    assert answers == (None,) * 4
    with part.guard(), part.probe() as probe:
        record = part.Record.begin()
        part.set(part.Environment(part.RoundingMode.upward, part.UnderflowMode.flush_to_zero))
        part.raise_exceptions(part.Exceptions(invalid=True))
        assert part.get() is None
        assert part.test_exceptions() == part.Exceptions()
        part.assert_default()
        record.check()
        part.clear_exceptions()
    assert probe.end() == part.Exceptions()


@clause("FPENV-MODE-1", "FPENV-MODE-2")
def test_modes_and_environments(impl: Any) -> None:
    part = impl.fpenv
    assert [mode.name for mode in part.RoundingMode] == ["nearest_even", "toward_zero", "upward", "downward"]
    assert [mode.name for mode in part.UnderflowMode] == ["gradual", "flush_to_zero"]
    every = settings(impl)
    assert len(set(every)) == 8
    assert [one for one in every if one.is_default()] == [part.default_environment]
    nearest, gradual = part.RoundingMode.nearest_even, part.UnderflowMode.gradual
    assert part.default_environment == part.Environment(nearest, gradual)
    assert part.Environment(underflow=gradual, rounding=nearest).is_default() is True
    with pytest.raises(AttributeError):
        part.default_environment.rounding = part.RoundingMode.upward


@clause("FPENV-GET-1")
@pytest.mark.parametrize("mode", fpenv.EVERY)
def test_get_tells_every_environment(impl: Any, mode: str) -> None:
    reached(impl)
    part = impl.fpenv
    with fpenv.environment(mode):
        got, rounding, underflow = part.get(), part.rounding_mode(), part.underflow_mode()
    expected = meant(impl, mode)
    assert got == expected
    assert (rounding, underflow) == (expected.rounding, expected.underflow)


@clause("FPENV-SET-1", "FPENV-SET-3", "FPENV-GET-1")
@pytest.mark.parametrize("before", fpenv.EVERY)
def test_set_sets_both_halves_and_nothing_else(impl: Any, before: str) -> None:
    reached(impl)
    part = impl.fpenv
    # what shall stand in the register: nothing flushed, or everything
    whole = {meant(impl, mode): bits for mode, bits in fpenv.EVERY.items() if mode.count(", ") in (0, 2)}
    for environment in settings(impl):
        for traps in (0, fpenv.TRAPPING):
            with fpenv.environment("nearest", traps=traps):
                base = fpenv.snapshot().control
            with fpenv.environment(before, fpenv.ALL_FLAGS, traps):
                part.set(environment)
                after, got = fpenv.snapshot(), part.get()
            assert got == environment
            assert after.control == base | whole[environment], f"{environment} from {before}: {after.control:#x}"
            assert after.flags == fpenv.ALL_FLAGS


def _expected(exact: Fraction, rounding: str) -> float:
    """Return the f64 that a number, which is none, rounds to."""
    near = exact.numerator / exact.denominator  # Python divides integers with one rounding
    below, above = (near, math.nextafter(near, math.inf)) if near < exact else (math.nextafter(near, -math.inf), near)
    if rounding == "toward_zero":
        return below if exact > 0 else above
    return {"nearest_even": near, "upward": above, "downward": below}[rounding]


@clause("FPENV-SET-2")
def test_the_thread_computes_as_set(impl: Any) -> None:
    reached(impl)
    part = impl.fpenv
    numbers = [(a * sign, b) for a, b in ((1, 3), (2, 3), (1, 10), (7, 9)) for sign in (1, -1)]
    operands = [(np.float64(a), np.float64(b)) for a, b in numbers]
    least, normal, two, large = map(np.float64, (5e-324, 2.0**-1022, 2.0, 2.0**60))
    for environment in settings(impl):
        with np.errstate(all="ignore"), part.guard():
            part.set(environment)
            quotients = [a / b for a, b in operands]
            result_subnormal, operand_subnormal = normal / two, least * large
        expected = [_expected(Fraction(a, b), environment.rounding.name) for a, b in numbers]
        assert quotients == expected, environment
        gradual = environment.underflow is part.UnderflowMode.gradual
        assert result_subnormal == (2.0**-1023 if gradual else 0.0), environment
        assert operand_subnormal == (2.0**-1014 if gradual else 0.0), environment


@clause("FPENV-SET-1", "FPENV-FLAGS-3")
def test_wrong_arguments_change_nothing(impl: Any) -> None:
    fpenv.needed()
    part = impl.fpenv
    rounding, underflow = part.RoundingMode.upward, part.UnderflowMode.flush_to_zero
    wrong = [None, rounding, "upward", (rounding, underflow), part.Environment(underflow, rounding)]
    wrong += [part.Environment(rounding, None), part.Environment("upward", underflow)]
    before = fpenv.snapshot()
    for value in wrong:
        assert_raises(DTypeMismatch, "FPENV-SET-1", partial(part.set, value))
    for value in (None, 1, True, "overflow", {"overflow"}, part.Exceptions):
        assert_raises(DTypeMismatch, "FPENV-FLAGS-3", partial(part.raise_exceptions, value))
    assert fpenv.snapshot().control == before.control


@clause("FPENV-ASSERT-1")
@pytest.mark.parametrize("mode", fpenv.EVERY)
@pytest.mark.parametrize("traps", [0, fpenv.TRAPPING], ids=["masked", "unmasked"])
def test_assert_default(impl: Any, mode: str, traps: int) -> None:
    reached(impl)
    with fpenv.environment(mode, fpenv.ALL_FLAGS, traps):
        can_trap = fpenv.snapshot().control != fpenv.EVERY[mode] + (0x1F80 if fpenv.TRAPPING == 0x0680 else 0)
        error = caught(impl.fpenv.assert_default)
    if mode == "nearest" and not can_trap:  # many aarch64 processors do not trap at all
        assert error is None
        return
    assert type(error) is NonDefaultFloatEnvironment
    assert error.clause == "FPENV-ASSERT-1"
    if can_trap:
        assert "overflow" in str(error)


@clause("FPENV-GUARD-1", "FPENV-GUARD-2", "FPENV-SET-3")
@pytest.mark.parametrize("before", fpenv.EVERY)
def test_a_guard_puts_back_the_very_bits(impl: Any, before: str) -> None:
    reached(impl)
    part = impl.fpenv
    other = part.Environment(part.RoundingMode.downward, part.UnderflowMode.flush_to_zero)
    for environment in (other, part.default_environment):
        for traps in (0, fpenv.TRAPPING):
            with fpenv.environment(before, 0, traps):
                at_first = fpenv.snapshot()
                guard = part.Guard.begin()
                begun = fpenv.snapshot()
                part.set(environment)
                part.raise_exceptions(part.Exceptions(underflow=True, inexact=True))
                guard.restore()
                restored, flags = fpenv.snapshot(), fpenv.raised()
                guard.restore()
                twice = fpenv.snapshot()
                part.set(environment)
                guard.restore()
                again = fpenv.snapshot()
            assert begun == at_first
            assert restored.control == at_first.control, f"{restored.control:#x}, not {at_first.control:#x}"
            assert flags == {"underflow", "inexact"}
            assert restored == twice == again


@clause("FPENV-GUARD-3", "FPENV-GUARD-1")
def test_a_guard_as_a_context_manager(impl: Any) -> None:
    reached(impl)
    part = impl.fpenv
    upward = part.Environment(part.RoundingMode.upward, part.UnderflowMode.gradual)
    with part.guard() as guard:
        part.set(upward)
        with part.Guard() as inner:
            part.set(part.Environment(part.RoundingMode.downward, part.UnderflowMode.flush_to_zero))
        within = part.get()
    assert within == upward
    assert (type(guard), type(inner)) == (part.Guard, part.Guard)
    assert part.get() == part.default_environment
    try:
        with part.guard():
            part.set(upward)
            raise KeyError
    except KeyError:
        pass
    assert part.get() == part.default_environment


@clause("FPENV-GUARD-1")
def test_case_o_f03_ask_set_and_restore(impl: Any) -> None:
    reached(impl)
    part = impl.fpenv
    for environment in settings(impl):
        guard = part.Guard.begin()
        part.set(environment)
        got = part.get()
        guard.restore()
        assert got == environment
        assert part.get().is_default()


@clause("FPENV-RECORD-2", "FPENV-ASSERT-1", "FPENV-GET-1", "FPENV-GUARD-1")
def test_case_o_f01_something_flushes_from_now_on(impl: Any) -> None:
    # what a library built with -Ofast does when it is loaded: sets both bits beside whatever is there
    reached(impl)
    part = impl.fpenv
    both = next(mode for mode in fpenv.EVERY if mode.startswith("nearest, ") and mode.count(", ") == 2)
    guard, record = part.Guard.begin(), part.Record.begin()
    ctx = impl.ExecContext() if "context" in impl.capabilities else None  # which holds such a record
    check = record.check if ctx is None else ctx.check_float_environment
    with fpenv.environment(both):
        changed, asserted, underflow = caught(check), caught(part.assert_default), part.underflow_mode()
        recorded = caught(record.check)
        guard.restore()
        after = caught(check), caught(part.assert_default)
    if ctx is not None:
        ctx.deinit()
    assert type(changed) is type(recorded) is FloatEnvironmentChanged
    assert type(asserted) is NonDefaultFloatEnvironment
    assert underflow is part.UnderflowMode.flush_to_zero
    assert after == (None, None)


@clause("FPENV-RECORD-1", "FPENV-RECORD-2")
@pytest.mark.parametrize("recorded", fpenv.EVERY)
def test_a_record_compares_with_what_was_recorded(impl: Any, recorded: str) -> None:
    reached(impl)
    with fpenv.environment(recorded):
        record, at_once = impl.fpenv.Record.begin(), impl.fpenv.Record()
        at_once.check()
    assert record.environment == at_once.environment == meant(impl, recorded)
    for now in fpenv.EVERY:
        with fpenv.environment(now, fpenv.ALL_FLAGS):
            error = caught(record.check)
        if now == recorded:
            assert error is None
        else:
            assert type(error) is FloatEnvironmentChanged, f"recorded {recorded}, now {now}: {error!r}"
            assert error.clause == "FPENV-RECORD-2"
    assert record.environment == meant(impl, recorded)


@clause("FPENV-RECORD-2")
def test_a_record_knows_the_trap_masks(impl: Any) -> None:
    reached(impl)
    record = impl.fpenv.Record.begin()
    with fpenv.environment("nearest", traps=fpenv.TRAPPING):
        seen = fpenv.snapshot().control
        error = caught(record.check)
    if seen == fpenv.snapshot().control:
        pytest.skip("this processor does not trap")
    assert type(error) is FloatEnvironmentChanged
    record.check()


@clause("FPENV-THREAD-1")
def test_threads_have_environments_of_their_own(impl: Any) -> None:
    reached(impl)
    part = impl.fpenv
    upward = part.Environment(part.RoundingMode.upward, part.UnderflowMode.flush_to_zero)

    def other() -> Any:
        at_first = part.get()
        part.set(upward)
        part.raise_exceptions(part.Exceptions(invalid=True, denormal=True))
        return at_first, part.get(), part.test_exceptions(), caught(record.check)

    record = part.Record.begin()
    with fpenv.environment("downward"):
        part.raise_exceptions(part.Exceptions(overflow=True))
        answers = elsewhere(other)
        here, flags = part.get(), part.test_exceptions()
    assert answers[1:3] == (upward, part.Exceptions(invalid=True, denormal=True))
    assert type(answers[3]) is FloatEnvironmentChanged
    assert here == meant(impl, "downward")
    assert flags == part.Exceptions(overflow=True)


@clause("FPENV-THREAD-1")
def test_guards_and_probes_stay_on_their_thread(impl: Any) -> None:
    reached(impl)
    part = impl.fpenv
    guard, probe = part.Guard.begin(), part.Probe.begin()
    try:

        def other(call: Callable[[], Any]) -> Any:
            part.set(part.Environment(part.RoundingMode.upward, part.UnderflowMode.gradual))
            part.raise_exceptions(part.Exceptions(overflow=True))
            error = caught(call)
            return error, part.get().rounding, part.test_exceptions()

        for call in (guard.restore, probe.sample, probe.end):
            error, rounding, flags = elsewhere(partial(other, call))
            assert type(error) is WrongThread
            assert error.clause == "FPENV-THREAD-1"
            assert rounding is part.RoundingMode.upward
            assert flags == part.Exceptions(overflow=True)
    finally:
        guard.restore()
        probe.end()


@clause("FPENV-THREAD-1")
def test_a_later_thread_is_another_one(impl: Any) -> None:
    """The number of a thread that has ended is given to a later one; what the first began is still not its own."""
    reached(impl)
    part = impl.fpenv
    upward = part.Environment(part.RoundingMode.upward, part.UnderflowMode.gradual)

    def use(guard: Any, probe: Any) -> list[Any]:
        part.set(upward)
        return [*(type(caught(call)) for call in (guard.restore, probe.sample, probe.end)), part.get()]

    for _ in range(10):
        guard, probe = elsewhere(lambda: (part.Guard.begin(), part.Probe.begin()))
        assert elsewhere(partial(use, guard, probe)) == [WrongThread] * 3 + [upward]
