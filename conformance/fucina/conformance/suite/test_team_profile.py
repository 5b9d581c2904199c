"""What a team says of its dispatches with ``FUCINA_POOL_PROFILE=1``: programs of their own, whose stderr is read."""

from __future__ import annotations

from typing import Any

import pytest

from fucina.conformance import clause
from fucina.conformance.suite.profiles import Participant, dispatches
from fucina.conformance.suite.team_programs import forks
from fucina.conformance.suite.teams import program

START = """
import os, threading, time
pool = fucina.thread_mod.Pool(3)
def nap(task, chain=None):
    time.sleep(0.004)
    return chain
"""
NAP = 4000.0
"""Microseconds."""


def profile(impl: Any, text: str) -> list[list[Participant]]:
    """Run a program with the variable set; return the dispatches that it did."""
    return dispatches(program(impl, START + text, variables={"FUCINA_POOL_PROFILE": "1"}))


@clause("TEAM-PROFILE-1")
@pytest.mark.parametrize(
    ("dispatch", "tasks"),
    [
        ("pool.parallel_chunks(range(2), nap)", 2),
        ("pool.parallel_chunks(range(11), nap)", 11),
        ("assert pool.parallel_chained(range(10), 10, nap)", 10),
        ("assert pool.parallel_chained(range(7), 1, lambda i, chain: nap(i, i < 6 and chain.enqueue(i + 1)))", 7),
        ("assert pool.parallel_chained(range(1), 1, nap)", 1),
    ],
    ids=["two", "plain", "chain", "chain of a line", "chain of one"],
)
def test_a_line_for_each_participant(impl: Any, dispatch: str, tasks: int) -> None:
    (participants,) = profile(impl, dispatch)
    assert len(participants) == 4
    assert participants[0].chunks == tasks
    for one in participants:  # from the first task to the end of the last it was at work
        assert one.completion - one.claim >= 0.99 * NAP * one.tasks, f"TEAM-PROFILE-1: {one}"


@clause("TEAM-PROFILE-1")
def test_bulk_functions(impl: Any) -> None:
    """Whether they use the team is theirs to choose; if one does, its lines are like any."""
    text = """
fucina.parallel.set_max_threads(3)
n = 400_001 if "fast" in fucina.__name__ else 70
out = np.zeros(n, np.float32)
fucina.rng.gaussian_fill(3, out, 1.0)
fucina.dtype.cast_array(fucina.DType.f32, fucina.DType.bf16, out)
"""
    for participants in profile(impl, text):
        assert len(participants) <= 3
        assert participants[0].chunks > 1


@clause("TEAM-PROFILE-1")
def test_what_is_not_dispatched_has_no_lines(impl: Any) -> None:
    text = """
pool.parallel_chunks([], nap)
pool.parallel_chunks([1], nap)
assert pool.parallel_chained([], 0, nap)
fucina.thread_mod.Pool(0).parallel_chunks(range(5), nap)
"""
    assert profile(impl, text) == []
    inner = "pool.parallel_chunks(range(2), lambda task: pool.parallel_chunks(range(5), nap))"
    (participants,) = profile(impl, inner)
    assert participants[0].chunks == 2


@clause("TEAM-PROFILE-1")
@pytest.mark.parametrize("value", [None, "", "0", "2", "11", "yes"])
def test_another_value_is_none(impl: Any, value: str | None) -> None:
    text = START + "pool.parallel_chunks(range(4), nap)\nassert pool.parallel_chained(range(4), 4, nap)"
    assert program(impl, text, variables={"FUCINA_POOL_PROFILE": value}) == ""


@forks
@clause("TEAM-PROFILE-1", "TEAM-FORK-2")
@pytest.mark.parametrize("lost", [True, False], ids=["a task is lost", "nothing is lost"])
def test_a_dispatch_that_forked_is_told_by_the_parent(impl: Any, lost: bool) -> None:
    text = (
        f"lost = {lost}"
        + """
from fucina.spec.errors import ForkedInTask
other, forked, children = threading.Event(), threading.Event(), []
def work(task):
    if task == 0:
        assert other.wait(20)
        time.sleep(0.05)  # a task that is not held up has been reported by now
        children.append(os.fork())
        forked.set()
    else:
        other.set()
        assert not lost or forked.wait(20)
told = False
try:
    pool.parallel_chunks(range(2), work)
except ForkedInTask:
    told = True
if not children[0]:
    os._exit(told != lost)
assert not told and os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0
"""
    )
    (participants,) = profile(impl, text)
    assert participants[0].chunks == 2
