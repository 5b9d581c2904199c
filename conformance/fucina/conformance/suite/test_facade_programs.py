"""Random programs over tagged tensors: in lockstep with the judge, and by themselves."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from fucina.conformance import clause
from fucina.conformance.suite.tagged_programs import Machine, steps

GOVERNED = clause(
    *(
        "FACADE-OWN-1",
        "FACADE-OWN-2",
        "FACADE-OWN-4",
        "FACADE-VIEW-1",
        "FACADE-VIEW-2",
        "FACADE-VIEW-3",
        "FACADE-VIEW-4",
    ),
    *(
        "FACADE-RAW-1",
        "FACADE-LOOK-1",
        "FACADE-LOOK-2",
        "FACADE-CTX-1",
        "POLICY-ARITH-1",
        "POLICY-SCALAR-1",
        "POLICY-SUM-1",
    ),
    *("POLICY-TAKE-1", "POLICY-TAGS-1", "POLICY-RESULT-1", "AUTOGRAD-TRACK-1", "AUTOGRAD-LIFE-1", "AUTOGRAD-BACK-1"),
    *(
        "AUTOGRAD-BACK-2",
        "AUTOGRAD-GRAD-1",
        "AUTOGRAD-SAVED-1",
        "AUTOGRAD-NOGRAD-1",
        "AUTOGRAD-SCOPE-1",
        "AUTOGRAD-VJP-1",
    ),
    *("CONTEXT-REPLACE-1", "SCOPE-ADOPT-1", "SCOPE-AFTER-1"),
)


def in_lockstep(impl: Any, judge: Any, program: list[Any]) -> None:
    one, other = Machine(impl), Machine(judge)
    for number, step in enumerate(program):
        got, expected = one.step(step), other.step(step)
        assert got[0] == expected[0], f"step {number}, {step}: {got[0]}, on the judge {expected[0]}"
        for place, (mine, theirs) in enumerate(zip(got[1][3], expected[1][3], strict=True)):
            assert mine == theirs, f"step {number}, {step}: tensor {place} is {mine}, on the judge {theirs}"
        assert got == expected, f"step {number}, {step}: {got[1][:3]}, on the judge {expected[1][:3]}"
    one.finish()
    other.finish()


@GOVERNED
@given(program=steps)
def test_programs_in_lockstep(impl: Any, judge: Any, program: list[Any]) -> None:
    in_lockstep(impl, judge, program)


@GOVERNED
@pytest.mark.slow
@settings(max_examples=1000)
@given(program=steps)
def test_many_programs_in_lockstep(impl: Any, judge: Any, program: list[Any]) -> None:
    in_lockstep(impl, judge, program)


@GOVERNED
@given(program=steps)
def test_nothing_is_left(impl: Any, program: list[Any]) -> None:
    """Whatever a program did: when everything is forgotten, nothing is out."""
    machine = Machine(impl)
    for step in program:
        machine.step(step)
    machine.finish()


@GOVERNED
@given(program=steps)
def test_an_error_changes_nothing(impl: Any, program: list[Any]) -> None:
    """The same is seen after a step that raised as before it."""
    machine = Machine(impl)
    before: Any = None
    for step in program:
        error, after = machine.step(step)
        if error is not None and before is not None:
            assert after == before, f"FACADE-CTX-1: {step} raised {error} and changed something"
        before = after
    machine.finish()
