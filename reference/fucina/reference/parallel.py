"""How many threads a team has, and why: the affinity mask, the cores behind it, the control groups, the environment.

Everything is asked once, on the first call.  ``root`` stands before every path, so that a test can bring its own tree.
"""

from __future__ import annotations

import os
import re
import sys
from functools import lru_cache
from pathlib import Path

from fucina.reference.arguments import shown, whole
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

vector_max_threads: int = 64
"""The most participants that a team may have (clause TEAM-SIZE-1)."""

vector_matmul_work_threshold: int = 1 << 18
"""Multiply-adds from which on a matrix times a vector might go to a team; here no product does (clause TEAM-BULK-2)."""

_wished: list[int] = []


def _count(name: str, value: object, clause: str) -> int:
    number = whole(name, value, clause)
    if number < 0:
        raise InvalidBounds(f"{name} must not be negative, got {shown(value)}", clause=clause)
    return number


def set_max_threads(count: int) -> None:
    """Set the number of threads, in place of what was or would be detected; 0 is ignored.

    Clauses: TEAM-SIZE-3
    """
    number = _count("count", count, "TEAM-SIZE-3")
    if number:
        _wished[:] = [number]


def cpu_thread_count(limit: int) -> int:
    """Return the number of threads that are to be used, at least 1 and at most ``limit``.

    Clauses: TEAM-SIZE-1, TEAM-SIZE-2, TEAM-SIZE-3
    """
    most = _count("limit", limit, "TEAM-SIZE-1")
    count = _wished[0] if _wished else _detected()
    return max(1, min(count, most))


@lru_cache(maxsize=1)
def _detected() -> int:
    limits = [
        physical_cpu_count(),
        performance_cpu_count(),
        cgroup_cpu_budget(),
        env_positive_usize("FUCINA_MAX_THREADS"),
    ]
    return min([len(logical_cpus()), *(limit for limit in limits if limit is not None)])


def env_positive_usize(name: str) -> int | None:
    """Return the value of an environment variable that holds a positive integer, None where it holds anything else.

    Clauses: TEAM-KNOB-1
    """
    if not isinstance(name, str) or "\0" in name:
        raise DTypeMismatch(f"name must be a string without NUL, got {shown(name)}", clause="TEAM-KNOB-1")
    return _decimal(os.environ.get(name), sys.maxsize * 2 + 1) or None


def env_spin_budget() -> int | None:
    """Return the value of ``FUCINA_SPIN_BUDGET``, None where it is unset; 0 is a value.

    Clauses: TEAM-KNOB-1, TEAM-SPIN-1
    """
    return _decimal(os.environ.get("FUCINA_SPIN_BUDGET"), (1 << 32) - 1)


def _decimal(text: str | None, most: int) -> int | None:
    if text is None or not re.fullmatch("[0-9]+", text):
        return None
    digits = text.lstrip("0") or "0"
    if len(digits) > len(str(most)) or int(digits) > most:  # Python refuses to read very long numbers
        return None
    return int(digits)


# -- the machine


def logical_cpus() -> list[int]:
    """Return the logical CPUs that this thread may run on."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


@lru_cache(maxsize=1)
def physical_cpu_count() -> int | None:
    """Return the number of physical cores behind the logical CPUs of the affinity mask, None where unknown.

    Clauses: TEAM-PHYSICAL-1
    """
    return physical_cores("")


def performance_cpu_count() -> int | None:
    """Return None: the number of performance cores of Apple silicon, which this implementation does not ask for.

    Clauses: TEAM-PHYSICAL-1
    """
    return None


@lru_cache(maxsize=1)
def cgroup_cpu_budget() -> int | None:
    """Return the CPU time that the control groups allow, in whole CPUs and at least 1; None where they set no limit.

    Clauses: TEAM-BUDGET-1
    """
    return cgroup_budget("")


def _first_number(path: str) -> int | None:
    try:
        found = re.match(r"\s*(\d+)", Path(path).read_text())
    except (OSError, ValueError):
        return None
    return int(found[1]) if found else None


def physical_cores(root: str) -> int | None:
    """Count the cores by the first of each CPU's siblings, or by package and core.

    Clauses: TEAM-PHYSICAL-1
    """
    cores: set[tuple[int | None, int | None]] = set()
    for cpu in logical_cpus():
        place = f"{root}/sys/devices/system/cpu/cpu{cpu}/topology"
        sibling = _first_number(f"{place}/core_cpus_list")
        if sibling is None:
            sibling = _first_number(f"{place}/thread_siblings_list")
        core: tuple[int | None, int | None] = (-1, sibling)
        if sibling is None:
            core = (_first_number(f"{place}/physical_package_id"), _first_number(f"{place}/core_id"))
        if None in core:  # one unknown CPU makes the count unknown
            return None
        cores.add(core)
    return len(cores) or None


def cgroup_budget(root: str) -> int | None:
    """Find the tightest quota of the process's groups, in both versions of the hierarchy, and of all groups above.

    Clauses: TEAM-BUDGET-1
    """
    quotas = [quota for version in (1, 2) for quota in _quotas(root, version)]
    return min(quotas) if quotas else None


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(errors="surrogateescape").splitlines()
    except OSError:
        return []


def _quotas(root: str, version: int) -> list[int]:
    group = mount = None
    for line in _lines(f"{root}/proc/self/cgroup"):
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if (version == 2 and number == "0" and not controllers) or (version == 1 and "cpu" in controllers.split(",")):
            group = path
            break
    for line in _lines(f"{root}/proc/self/mountinfo"):
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3:
            continue
        if (version == 2 and kind[0] == "cgroup2") or (
            version == 1 and kind[0] == "cgroup" and "cpu" in kind[2].split(",")
        ):
            mount = [re.sub(r"\\(\d{3})", lambda m: chr(int(m[1], 8)), field) for field in fields[3:5]]
            break
    if group is None or mount is None:
        return []
    top, point = mount
    top = "" if top == "/" else top
    # a group outside the mount (a container's namespace) is seen as the root of the mount
    within = (group == top or group.startswith(top + "/")) and "/.." not in group
    parts = [part for part in (group[len(top) :] if within else "").split("/") if part]
    places = ["/".join([root + point.rstrip("/"), *parts[:depth]]) for depth in range(len(parts) + 1)]
    return [quota for place in places if (quota := _quota(place, version)) is not None]


def _quota(place: str, version: int) -> int | None:
    if version == 2:
        words = " ".join(_lines(f"{place}/cpu.max")).split()
    else:
        words = [word for name in ("quota", "period") for word in _lines(f"{place}/cpu.cfs_{name}_us")[:1]]
    try:
        quota, period = (int(word) for word in words)
    except ValueError:  # "max", or a file that is not there
        return None
    return max(1, quota // period) if quota > 0 and period > 0 else None
