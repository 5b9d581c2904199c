"""What /sys and /proc say about cores and CPU time, on trees of files made for the purpose.

Four readers see each tree: the reference, fucina.fast, and the C files of the latter linked with musl and under
MemorySanitizer, which ends a program that decides by memory nobody wrote.  Each takes the root of the tree, a hook for
tests that is no public name.  The CPUs are those of this process, which a tree cannot change; the expected numbers are
written down here.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from fucina.fast._native import ffi, lib
from fucina.reference import parallel as reference

Answer: TypeAlias = tuple[int | None, int | None]
Reader: TypeAlias = Callable[[Path], Answer]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/sys and /proc are of Linux")

CSRC = Path(__file__).parents[1] / "fast/csrc"
PROGRAM = """
#include "team/topology.h"
#include <stdio.h>
int main(int count, char **arguments) {
    const char *root = count > 1 ? arguments[1] : "";
    printf("%zu %zu\\n", fc_physical_cores(root), fc_cgroup_budget(root));
    return 0;
}
"""


def _reference(root: Path) -> Answer:
    return reference.physical_cores(str(root)), reference.cgroup_budget(str(root))


def _probed(root: bytes) -> tuple[int, int, int]:
    """Return what fucina.fast finds: cores, budget, and how many threads can run at once."""
    found = ffi.new("size_t[3]")
    lib.fc_probe_cpus(root, found, found + 1, found + 2)
    return found[0], found[1], found[2]


def _fast(root: Path) -> Answer:
    cores, budget, _ = _probed(bytes(root))
    return cores or None, budget or None


def _compiled(place: Path, compiler: str, *flags: str) -> Reader:
    """Return a reader that is a program of the C files."""
    (place / "main.c").write_text(PROGRAM)
    sources = [str(place / "main.c"), *(str(CSRC / "team" / name) for name in ("cgroup.c", "topology.c"))]
    program = str(place / "readers")
    warnings = ["-std=c11", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([compiler, *warnings, *flags, f"-I{CSRC}", *sources, "-o", program], check=True)

    def read(root: Path) -> Answer:
        done = subprocess.run([program, root], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        cores, budget = done.stdout.split()
        return int(cores) or None, int(budget) or None

    return read


@pytest.fixture(scope="module")
def musl(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    if shutil.which("musl-gcc") is None:
        pytest.skip("musl-gcc is not here: apt-get install musl-tools")
    return _compiled(tmp_path_factory.mktemp("musl"), "musl-gcc", "-O2", "-static")


@pytest.fixture(scope="module")
def msan(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    place = tmp_path_factory.mktemp("msan")
    flags = ("-O1", "-g", "-fsanitize=memory", "-fno-sanitize-recover=all")
    (place / "empty.c").write_text("int main(void) { return 0; }\n")
    attempt = ["clang", *flags, str(place / "empty.c"), "-o", str(place / "empty")]
    if shutil.which("clang") is None or subprocess.run(attempt, capture_output=True).returncode:
        pytest.skip("clang with MemorySanitizer is not here: apt-get install clang")
    return _compiled(place, "clang", *flags)


@pytest.fixture(params=["reference", "fast", "musl", "msan"])
def reader(request: pytest.FixtureRequest) -> Reader:
    if request.param in ("musl", "msan"):
        found: Reader = request.getfixturevalue(request.param)
        return found
    return _reference if request.param == "reference" else _fast


def plant(root: Path, files: dict[str, str]) -> Path:
    """Write the files of a tree."""
    for name, text in files.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


# -- cores


@contextmanager
def mask(cpus: list[int]) -> Iterator[list[int]]:
    """Let this thread run on these CPUs only."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield cpus
    finally:
        os.sched_setaffinity(0, before)


def topology(cpu: int, **files: str) -> dict[str, str]:
    return {f"/sys/devices/system/cpu/cpu{cpu}/topology/{name}": text for name, text in files.items()}


MINE = sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else []
FIRST, N = (MINE or [0])[0], len(MINE)
FIELDS: dict[str, tuple[Callable[[int], dict[str, str]], int | None]] = {
    "a core each": (lambda cpu: {"core_cpus_list": f"{cpu}\n"}, N),
    "one core of many threads": (lambda cpu: {"core_cpus_list": f"{FIRST}-{MINE[-1]}\n"}, 1),
    "one core, a list": (lambda cpu: {"core_cpus_list": f"{FIRST},{FIRST + 4096}\n"}, 1),
    "the older name": (lambda cpu: {"thread_siblings_list": f"{cpu}\n"}, N),
    "the newer name counts": (lambda cpu: {"core_cpus_list": f"{FIRST}\n", "thread_siblings_list": f"{cpu}\n"}, 1),
    "package and core": (lambda cpu: {"physical_package_id": "0\n", "core_id": f"{cpu}\n"}, N),
    "packages number their cores alike": (lambda cpu: {"physical_package_id": f"{cpu}\n", "core_id": "0\n"}, N),
    "one package and core": (lambda cpu: {"physical_package_id": "0\n", "core_id": "0\n"}, 1),
    "an empty list is none": (lambda cpu: {"core_cpus_list": "\n", "thread_siblings_list": f"{FIRST}\n"}, 1),
    "a core without its package": (lambda cpu: {"core_id": f"{cpu}\n"}, None),
    "an unknown package": (lambda cpu: {"physical_package_id": "-1\n", "core_id": "0\n"}, None),
    "words": (lambda cpu: {"core_cpus_list": "none\n", "physical_package_id": "zero\n", "core_id": "0\n"}, None),
    "empty files": (lambda cpu: {"core_cpus_list": "", "physical_package_id": "", "core_id": ""}, None),
    "other files": (lambda cpu: {"book_id": "0\n"}, None),
}


@pytest.mark.parametrize("name", FIELDS)
def test_cores(name: str, tmp_path: Path, reader: Reader) -> None:
    fields, expected = FIELDS[name]
    for cpu in MINE:
        plant(tmp_path, topology(cpu, **fields(cpu)))
    assert reader(tmp_path)[0] == expected


def test_cores_of_the_mask_alone(tmp_path: Path, reader: Reader) -> None:
    for cpu in MINE:
        plant(tmp_path, topology(cpu, core_cpus_list=f"{cpu}\n"))
    plant(tmp_path, topology(MINE[-1] + 1, core_cpus_list=f"{MINE[-1] + 1}\n"))
    for most in range(1, N + 1):
        with mask(MINE[:most]):
            assert reader(tmp_path)[0] == most


def test_one_unknown_cpu_makes_the_count_unknown(tmp_path: Path, reader: Reader) -> None:
    for cpu in MINE[:-1]:
        plant(tmp_path, topology(cpu, core_cpus_list=f"{cpu}\n"))
    assert reader(tmp_path)[0] is None


@pytest.mark.parametrize("shut", ["", "/sys", "/sys/devices/system/cpu", "core_cpus_list"])
def test_a_restricted_sys(shut: str, tmp_path: Path, reader: Reader) -> None:
    """Files that cannot be opened or read: a directory stands in their place, for root reads what has no permission."""
    if shut == "core_cpus_list":
        for cpu in MINE:
            (tmp_path / next(iter(topology(cpu, core_cpus_list="")))[1:]).mkdir(parents=True)
    elif shut:
        plant(tmp_path, {shut: "a file"})
    assert reader(tmp_path) == (None, None)


# -- control groups

V2 = "31 24 0:27 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = "33 25 0:29 {top} /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:11 - cgroup cgroup rw,cpu,cpuacct\n"
V1_SET = "34 25 0:30 / /sys/fs/cgroup/cpuset rw,nosuid shared:12 - cgroup cgroup rw,cpuset\n"
CPU, SET, GROUP = "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpuset", "/sys/fs/cgroup"


def groups(of_process: str, mounts: str, **quotas: str) -> dict[str, str]:
    return {"/proc/self/cgroup": of_process, "/proc/self/mountinfo": mounts} | quotas


def version_2(group: str, mounts: str = V2, **maxima: str) -> dict[str, str]:
    """Return a tree of version 2 with ``cpu.max`` in some groups; ``__`` stands for a slash."""
    quotas = {f"{GROUP}{name.replace('__', '/')}/cpu.max": f"{text}\n" for name, text in maxima.items()}
    return groups(f"0::{group}\n", mounts, **quotas)


def version_1(group: str, *levels: tuple[str, str, str], top: str = "/", mounts: str = V1) -> dict[str, str]:
    """Return a tree of version 1 with quota and period in some groups."""
    files = {f"{CPU}{name}/cpu.cfs_quota_us": f"{quota}\n" for name, quota, _ in levels}
    files |= {f"{CPU}{name}/cpu.cfs_period_us": f"{period}\n" for name, _, period in levels if period}
    of_process = f"5:cpuset:/elsewhere\n4:cpu,cpuacct:{group}\n1:name=systemd:{group}\n"
    return groups(of_process, V1_SET + mounts.format(top=top), **files)


TREES: dict[str, tuple[dict[str, str], int | None]] = {
    "nothing at all": ({}, None),
    "no mounts": ({"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "100000 100000\n"}, None),
    "no groups": ({"/proc/self/mountinfo": V2, "/sys/fs/cgroup/cpu.max": "100000 100000\n"}, None),
    "2: max": (version_2("/a", __a="max 100000"), None),
    "2: one CPU": (version_2("/a", __a="100000 100000"), 1),
    "2: less than one": (version_2("/a", __a="25000 100000"), 1),
    "2: rounded down": (version_2("/a", __a="399999 100000"), 3),
    "2: another period": (version_2("/a", __a="250000 50000"), 5),
    "2: no limit in the group, one above": (version_2("/a/b/c", __a="200000 100000", __a__b="max 100000"), 2),
    "2: the tightest is above": (version_2("/a/b", __a="300000 100000", __a__b="700000 100000"), 3),
    "2: the tightest is the group": (version_2("/a/b", __a="700000 100000", __a__b="300000 100000"), 3),
    "2: the tightest is between": (version_2("/a/b/c", __a="8 1", __a__b="4 1", __a__b__c="6 1"), 4),
    "2: the root of the mount": (version_2("/", **{"": "300000 100000"}), 3),
    "2: a brother": (version_2("/a/b", __a__c="100000 100000"), None),
    "2: below": (version_2("/a", __a__b="100000 100000"), None),
    "2: a prefix of the name": (version_2("/ab", __a="100000 100000"), None),
    "2: a word": (version_2("/a", __a="much 100000"), None),
    "2: the quota alone": (version_2("/a", __a="100000"), None),
    "2: an empty file": (version_2("/a", __a=""), None),
    "2: a period of 0": (version_2("/a", __a="100000 0"), None),
    "2: a quota of 0": (version_2("/a", __a="0 100000"), None),
    "2: a namespace": (version_2("/", V2.replace(" / ", " /docker/4f "), **{"": "200000 100000"}), 2),
    "2: within the mount": (version_2("/docker/4f/a", V2.replace(" / ", " /docker/4f "), __a="200000 100000"), 2),
    "2: beside the mount": (
        version_2("/docker/4fff", V2.replace(" / ", " /docker/4f "), **{"ff": "1 1", "": "5 1"}),
        5,
    ),
    "2: above the namespace": (version_2("/../../other", **{"": "600000 100000", "__other": "100000 100000"}), 6),
    "2: a slash at the end": (version_2("/a/", __a="200000 100000"), 2),
    "2: a blank in the mount": (
        version_2("/", V2.replace(GROUP, GROUP + "\\040v2")) | {GROUP + " v2/cpu.max": "200000 100000\n"},
        2,
    ),
    "2: a backslash in the group": (version_2("/a\\040b") | {GROUP + "/a\\040b/cpu.max": "200000 100000\n"}, 2),
    "2: long lines before": (version_2("/a", "9 9 0:9 / /o rw - overlay o rw," + "l" * 9000 + "\n" + V2, __a="2 1"), 2),
    "2: a mount without fields": (version_2("/a", "nonsense\n - \n\n" + V2, __a="2 1"), 2),
    "2: optional fields": (version_2("/a", V2.replace("shared:9 ", "shared:9 master:3 "), __a="2 1"), 2),
    "2: no optional field": (version_2("/a", V2.replace("shared:9 ", ""), __a="2 1"), 2),
    "1: none": (version_1("/a", ("/a", "-1", "100000")), None),
    "1: two CPUs": (version_1("/a", ("/a", "250000", "100000")), 2),
    "1: less than one": (version_1("/a", ("/a", "1000", "100000")), 1),
    "1: above": (version_1("/a/b", ("/a", "300000", "100000"), ("/a/b", "-1", "100000")), 3),
    "1: the root": (version_1("/a/b", ("", "300000", "100000"), ("/a/b", "900000", "100000")), 3),
    "1: no period": (version_1("/a", ("/a", "100000", "")), None),
    "1: a period of 0": (version_1("/a", ("/a", "100000", "0")), None),
    "1: no group of the controller": (version_1("/a", ("/b", "100000", "100000")), None),
    "1: of a container": (version_1("/docker/4f", ("", "400000", "100000"), top="/docker/4f"), 4),
    "1: only cpuset": (groups("5:cpuset:/a\n", V1_SET, **{f"{SET}/a/cpu.cfs_quota_us": "1 1"}), None),
    "1: the controller alone": (
        groups(
            "9:cpu:/a\n",
            V1.format(top="/").replace("cpu,cpuacct", "cpu"),
            **{f"{GROUP}/cpu/a/cpu.cfs_quota_us": "200000\n", f"{GROUP}/cpu/a/cpu.cfs_period_us": "100000\n"},
        ),
        2,
    ),
    "both: version 1 has the controller": (
        version_1("/a", ("/a", "300000", "100000"))
        | groups("4:cpuacct,cpu:/a\n0::/b\n", V1.format(top="/") + V2.replace(GROUP, GROUP + "/unified")),
        3,
    ),
    "both: the tighter": (
        version_1("/a", ("/a", "300000", "100000"))
        | groups("4:cpu,cpuacct:/a\n0::/b\n", V2 + V1.format(top="/"), **{f"{GROUP}/b/cpu.max": "200000 100000\n"}),
        2,
    ),
}


@pytest.mark.parametrize("name", TREES)
def test_budgets(name: str, tmp_path: Path, reader: Reader) -> None:
    files, expected = TREES[name]
    assert reader(plant(tmp_path, files))[1] == expected


def test_random_trees_are_read_alike(tmp_path: Path) -> None:
    chance = random.Random(6)
    for number in range(150):
        depth = chance.randint(0, 5)
        names = [chance.choice(["a", "b.slice", "c d", "k\\x2d", "é"]) for _ in range(depth)]
        places = ["/".join(["", *names[:i]]) for i in range(depth + 1)]
        quotas = [chance.choice([-1, 0, 1, 99999, 100000, 250000, 10**6, 10**9]) for _ in places]
        periods = [chance.choice([0, 1000, 50000, 100000]) for _ in places]
        there = [chance.random() < 0.7 for _ in places]
        group = places[-1] or "/"
        if chance.random() < 0.5:
            maxima = {
                f"{GROUP}{place}/cpu.max": f"{'max' if quota < 0 else quota} {period}\n"
                for place, quota, period, here in zip(places, quotas, periods, there, strict=True)
                if here
            }
            files = groups(f"0::{group}\n", V2, **maxima)
        else:
            levels = zip(places, map(str, quotas), map(str, periods), strict=True)
            files = version_1(group, *(level for level, here in zip(levels, there, strict=True) if here))
        root = plant(tmp_path / str(number), files)
        expected = min(
            [max(1, q // p) for q, p, here in zip(quotas, periods, there, strict=True) if here and q > 0 and p > 0],
            default=None,
        )
        assert _reference(root)[1] == _fast(root)[1] == expected, (number, files)


def test_this_machine_is_read_by_the_same_readers() -> None:
    cores, budget, at_once = _probed(b"")
    assert (cores or None, budget or None) == (reference.physical_cores(""), reference.cgroup_budget(""))
    assert (reference.physical_cpu_count(), reference.cgroup_cpu_budget()) == (cores or None, budget or None)
    assert lib.fc_schedulable_cores() == at_once


# -- how many threads can run at once: what makes a team oversubscribed (clause TEAM-SPIN-1)

ONE_CORE = {name: text for cpu in MINE for name, text in topology(cpu, core_cpus_list=f"{FIRST}\n").items()}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, N),
        (ONE_CORE, 1),
        (version_2("/a", __a="1 1"), 1),
        (version_2("/a", __a=f"{N + 3} 1"), N),
        (ONE_CORE | version_2("/a", __a="5 1"), 1),
    ],
    ids=["nothing is known", "cores", "a budget", "a budget above the mask", "both"],
)
def test_how_many_at_once(files: dict[str, str], expected: int, tmp_path: Path) -> None:
    assert _probed(bytes(plant(tmp_path, files)))[2] == expected


def test_the_mask_stands_for_unknown_cores(tmp_path: Path) -> None:
    for most in range(1, N + 1):
        with mask(MINE[:most]):
            assert _probed(bytes(tmp_path))[2] == most
