"""What a team writes with ``FUCINA_POOL_PROFILE=1``, read back (clause TEAM-PROFILE-1)."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Participant", "dispatches"]

_LINE = re.compile(
    r"fucina pool: participant (\d+) of (\d+), (\d+) chunks, (\d+) tasks, "
    r"claim \+(\d+(?:\.\d+)?) us, completion \+(\d+(?:\.\d+)?) us\b"
)


@dataclass(frozen=True)
class Participant:
    """What one line says."""

    number: int
    of: int
    chunks: int
    tasks: int
    claim: float
    completion: float


def dispatches(written: str) -> list[list[Participant]]:
    """Return the participants of each dispatch; every line has the form of the clause, and every dispatch is whole."""
    found: list[list[Participant]] = []
    for line in written.splitlines():
        match = _LINE.match(line)
        assert match, f"TEAM-PROFILE-1: not the form of a line: {line!r}"
        one = Participant(*map(int, match.groups()[:4]), *map(float, match.groups()[4:]))
        if one.number == 0:
            found.append([])
        before = len(found[-1]) if found else -1
        assert one.number == before < one.of, f"TEAM-PROFILE-1: a line out of place: {line!r}"
        assert one.claim <= one.completion, f"TEAM-PROFILE-1: completion before claim: {line!r}"
        found[-1].append(one)
    for participants in found:
        assert {one.of for one in participants} == {len(participants)}
        (chunks,) = {one.chunks for one in participants}
        tasks = [one.tasks for one in participants]
        assert sum(tasks) == chunks, f"TEAM-PROFILE-1: {chunks} chunks, but the tasks of all are {tasks}"
    return found
