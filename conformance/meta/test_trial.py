"""When a run of the suite counts as having seen a fault, and that planting one in Python takes."""

from __future__ import annotations

from typing import Any

import pytest

from .faults import Fault, python_faults
from .trial import _problem, _suite


def report(*messages: str, problems: int = 0) -> dict[str, Any]:
    """Return what matters here of a report with these failures."""
    return {"problems": [{}] * problems, "failures": [{"message": message, "test": "t"} for message in messages]}


def test_a_failed_comparison_counts() -> None:
    assert _problem(1, report("RNG-AT-1: index 0: got 0x1, expected 0x2"), "") == ""
    assert _problem(1, report("Overflow: RNG-RANGE-1: first + len(out) must be at most 2^64"), "") == ""
    assert _problem(1, report("KeyError: 'x'", "assert 1 == 2"), "") == ""


@pytest.mark.parametrize(
    ("code", "found", "word"),
    [
        (0, report(), "green"),
        (-11, None, "broke down"),
        (2, None, "broke down"),
        (1, report("assert 1 == 2", problems=1), "broke down"),
        (1, report("ZeroDivisionError: division by zero"), "fell over"),
        (1, report(), "broke down"),
    ],
)
def test_an_accident_does_not_count(code: int, found: dict[str, Any] | None, word: str) -> None:
    assert word in _problem(code, found, "the end of the output")


def test_a_fault_in_python_is_in_force_in_its_own_process_alone() -> None:
    (fault,) = (fault for fault in python_faults() if fault.name == "WORD_SHIFTED")
    arguments = ["--impl", fault.implementation, "--filter", fault.clause]
    planted, plain = _suite([*arguments, "-x"], fault), _suite(arguments)
    assert _problem(*planted) == ""
    assert plain[0] == 0, plain[2]


def test_a_fault_that_does_not_fit_its_module_is_no_red_suite() -> None:
    unknown = Fault("NO_SUCH_FAULT", "RNG-AT-1", "not in the list", python_faults()[0].replacement)
    code, found, output = _suite(["--impl", "fucina.reference", "--filter", "RNG-AT-1"], unknown)
    assert "broke down" in _problem(code, found, output)
