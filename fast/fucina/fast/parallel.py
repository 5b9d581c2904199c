"""How many threads the team has, and why (chapter ``team``).

Nothing here changes a result, only how long it takes.  What the machine has is asked once, on the first call.
"""

from __future__ import annotations

import atexit

from fucina.fast._arguments import whole
from fucina.fast._native import ffi, lib
from fucina.fast._shown import integer_shown, shown
from fucina.spec.errors import DTypeMismatch, InvalidBounds

__all__ = [
    "cgroup_cpu_budget",
    "cpu_thread_count",
    "env_positive_usize",
    "env_spin_budget",
    "performance_cpu_count",
    "physical_cpu_count",
    "set_max_threads",
    "vector_matmul_work_threshold",
    "vector_max_threads",
]

vector_max_threads: int = lib.fc_max_threads()
"""The most participants that a team may have, the build option ``max_threads`` (clause TEAM-SIZE-1)."""

vector_matmul_work_threshold: int = 1 << 18
"""Multiply-adds from which on a matrix times a vector goes to the team; two matrices do from 2^20 (TEAM-BULK-2)."""

_MOST = (1 << 63) - 1  # what the core can count to
_wished: list[int] = []  # what was set last, and may be more

atexit.register(lib.fc_team_shut)  # the process's own team; it starts again for who computes even later


def _count(name: str, value: object, clause: str) -> int:
    number = whole(name, value, clause)
    if number < 0:
        raise InvalidBounds(f"{name} must not be negative, got {integer_shown(number)}", clause=clause)
    return number


def set_max_threads(count: int) -> None:
    """Set the number of threads, in place of what was or would be detected.

    Parameters
    ----------
    count : int
        0 is ignored; InvalidBounds for a negative one.

    Clauses: TEAM-SIZE-3
    """
    number = _count("count", count, "TEAM-SIZE-3")
    if number:
        _wished[:] = [number]
    lib.fc_set_max_threads(min(number, _MOST))


def cpu_thread_count(limit: int) -> int:
    """Return the number of threads that are to be used, at least 1 and at most ``limit``.

    Parameters
    ----------
    limit : int
        Usually ``vector_max_threads``; InvalidBounds for a negative one.

    Clauses: TEAM-SIZE-1, TEAM-SIZE-2, TEAM-SIZE-3
    """
    number = _count("limit", limit, "TEAM-SIZE-1")
    found = int(lib.fc_cpu_thread_count(min(number, _MOST)))
    return min(number, _wished[0]) if found == _MOST and _wished else found


def physical_cpu_count() -> int | None:
    """Return the number of physical cores behind the logical CPUs of the affinity mask, None where unknown.

    Clauses: TEAM-PHYSICAL-1
    """
    return lib.fc_physical_cpu_count() or None


def performance_cpu_count() -> int | None:
    """Return the number of performance cores of Apple silicon, None elsewhere.

    Clauses: TEAM-PHYSICAL-1
    """
    return lib.fc_performance_cpu_count() or None


def cgroup_cpu_budget() -> int | None:
    """Return the CPU time that the control groups allow, in whole CPUs and at least 1; None where they set no limit.

    Clauses: TEAM-BUDGET-1
    """
    return lib.fc_cgroup_cpu_budget() or None


def env_positive_usize(name: str) -> int | None:
    """Return the value of an environment variable that holds a positive integer, None where it holds anything else.

    Parameters
    ----------
    name : str

    Clauses: TEAM-KNOB-1
    """
    if not isinstance(name, str) or "\0" in name:
        raise DTypeMismatch(f"name must be a string without NUL, got {shown(name)}", clause="TEAM-KNOB-1")
    value = ffi.new("uint64_t *")
    return int(value[0]) if lib.fc_env_positive(name.encode("utf-8", "surrogateescape"), value) else None


def env_spin_budget() -> int | None:
    """Return the value of ``FUCINA_SPIN_BUDGET``, None where it is unset; 0 is a value.

    Clauses: TEAM-KNOB-1, TEAM-SPIN-1
    """
    value = ffi.new("uint32_t *")
    return int(value[0]) if lib.fc_env_spin_budget(value) else None
