"""How many threads: what was set, what is found, and the knobs of the environment."""

from __future__ import annotations

import ast
import os
from typing import Any

import pytest

from fucina.conformance import clause
from fucina.conformance.compare import assert_raises
from fucina.conformance.suite.teams import program, threads
from fucina.spec.errors import DTypeMismatch, InvalidBounds, InvalidInteger

GARBAGE = (
    "",
    " ",
    "abc",
    "-1",
    "+1",
    "1e3",
    "99999999999999999999",
    "4 ",
    " 4",
    "4,3,2",
    "0x4",
    "4.0",
    "٤",
    "1_0",
    "4\n",
)


@clause("TEAM-SIZE-1")
def test_the_count_is_cut_at_the_limit(impl: Any) -> None:
    part = impl.parallel
    assert type(part.vector_max_threads) is int
    assert 1 <= part.vector_max_threads <= 64
    with threads(impl, 5):
        assert [part.cpu_thread_count(limit) for limit in (0, 1, 4, 5, 6, 10**30)] == [1, 1, 4, 5, 5, 5]
    assert_raises(InvalidBounds, "TEAM-SIZE-1", lambda: part.cpu_thread_count(-1), shows=[-1])
    assert_raises(InvalidInteger, "TEAM-SIZE-1", lambda: part.cpu_thread_count(2.0), shows=[2.0])


@clause("TEAM-SIZE-3")
def test_a_count_is_taken_as_it_is(impl: Any) -> None:
    part = impl.parallel
    for count in (1, 7, 1000):
        with threads(impl, count):
            assert part.cpu_thread_count(1 << 40) == count
            part.set_max_threads(0)
            assert part.cpu_thread_count(1 << 40) == count
    for count in (2**31, 2**32 + 1, 2**63 - 1, 2**63, 2**64 + 1, 10**30):
        with threads(impl, count):
            assert part.cpu_thread_count(10**40) == count
            assert part.cpu_thread_count(count - 1) == count - 1
            assert part.cpu_thread_count(3) == 3
    before = part.cpu_thread_count(1 << 40)
    assert_raises(InvalidBounds, "TEAM-SIZE-3", lambda: part.set_max_threads(-1), shows=[-1])
    assert_raises(InvalidInteger, "TEAM-SIZE-3", lambda: part.set_max_threads(True), shows=[True])
    assert part.cpu_thread_count(1 << 40) == before


@clause("TEAM-SIZE-2")
def test_nothing_found_is_exceeded(impl: Any) -> None:
    names = "physical_cpu_count", "performance_cpu_count", "cgroup_cpu_budget"
    text = f"p = fucina.parallel\nprint([p.cpu_thread_count(1 << 40), *(getattr(p, n)() for n in {names})])"
    count, *limits = ast.literal_eval(program(impl, text))
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    assert count == min([cpus, *(limit for limit in limits if limit is not None)])


@clause("TEAM-SIZE-2", "TEAM-SIZE-3")
def test_the_variable_lowers_and_never_raises(impl: Any) -> None:
    text = "print(fucina.parallel.cpu_thread_count(1 << 40))"
    plain = int(program(impl, text))
    assert int(program(impl, text, variables={"FUCINA_MAX_THREADS": "1"})) == 1
    assert int(program(impl, text, variables={"FUCINA_MAX_THREADS": str(plain + 3)})) == plain
    assert int(program(impl, text, variables={"FUCINA_MAX_THREADS": "18446744073709551615"})) == plain
    wished = "fucina.parallel.set_max_threads(6)\n" + text
    assert int(program(impl, wished, variables={"FUCINA_MAX_THREADS": "1"})) == 6


@clause("TEAM-SIZE-2", "TEAM-PHYSICAL-1")
def test_what_is_found_is_found_once(impl: Any) -> None:
    text = """
import os
p = fucina.parallel
def look(): return p.cpu_thread_count(1 << 40), p.physical_cpu_count(), p.cgroup_cpu_budget()
first = look()
os.environ["FUCINA_MAX_THREADS"] = "1"
if hasattr(os, "sched_setaffinity"): os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
print(first == look())
"""
    assert program(impl, text).strip() == "True"


@clause("TEAM-PHYSICAL-1", "TEAM-BUDGET-1")
def test_counts_are_positive_or_unknown(impl: Any) -> None:
    part = impl.parallel
    for count in (part.physical_cpu_count(), part.performance_cpu_count(), part.cgroup_cpu_budget()):
        assert count is None or (type(count) is int and count >= 1)


@clause("TEAM-KNOB-1")
@pytest.mark.parametrize("text", [g for g in GARBAGE if "\0" not in g], ids=repr)
def test_garbage_is_the_same_as_unset(impl: Any, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUCINA_TEST_KNOB", text)
    monkeypatch.setenv("FUCINA_SPIN_BUDGET", text)
    assert impl.parallel.env_positive_usize("FUCINA_TEST_KNOB") is None
    assert impl.parallel.env_spin_budget() is None


@clause("TEAM-KNOB-1")
def test_digits_in_range_count(impl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    part = impl.parallel
    for text, count in (("1", 1), ("007", 7), ("18446744073709551615", 2**64 - 1), ("0" * 5000 + "3", 3)):
        monkeypatch.setenv("FUCINA_TEST_KNOB", text)
        assert part.env_positive_usize("FUCINA_TEST_KNOB") == count
    for text in ("0", "000", "18446744073709551616", "9" * 5000):
        monkeypatch.setenv("FUCINA_TEST_KNOB", text)
        assert part.env_positive_usize("FUCINA_TEST_KNOB") is None
    monkeypatch.delenv("FUCINA_TEST_KNOB")
    assert part.env_positive_usize("FUCINA_TEST_KNOB") is None
    for text, budget in (("0", 0), ("512", 512), ("4294967295", 2**32 - 1), ("4294967296", None)):
        monkeypatch.setenv("FUCINA_SPIN_BUDGET", text)
        assert part.env_spin_budget() == budget
    monkeypatch.delenv("FUCINA_SPIN_BUDGET")
    assert part.env_spin_budget() is None
    for bad in (1, b"PATH", "PA\0TH"):
        assert_raises(DTypeMismatch, "TEAM-KNOB-1", lambda bad=bad: part.env_positive_usize(bad))  # type: ignore[misc]


@clause("TEAM-SIZE-1", "TEAM-SIZE-3")
def test_the_documents_example(impl: Any) -> None:
    text = """
assert fucina.parallel.vector_max_threads >= 1
fucina.parallel.set_max_threads(2)
n = fucina.parallel.cpu_thread_count(fucina.parallel.vector_max_threads)
assert 1 <= n <= 2
print("ran")
"""
    assert program(impl, text).strip() == "ran"
