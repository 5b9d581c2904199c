"""The comparison of targets: differences do not pass, what is missing is named."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fucina.conformance import vectors
from tools.elsewhere import __main__ as run
from tools.elsewhere import targets
from tools.elsewhere.calls import Call, CallSet, Operation
from tools.elsewhere.play import Played
from tools.elsewhere.sets import big_sets, vector_sets

SETS = (CallSet("small", (Call(Operation.AT, (), 1, 8),)), CallSet("big", (), sha256="00"))
HERE, THERE, SLOW = targets.Target("here", "a"), targets.Target("there", "b"), targets.Target("slow", "c", big=False)


def test_agreement_has_no_difference() -> None:
    played = [Played(t, {"small": "1", "big": "2"}) for t in (HERE, THERE)] + [Played(SLOW, {"small": "1"})]
    assert run._differences(played, SETS) == []


def test_another_digest_is_a_difference() -> None:
    played = [Played(HERE, {"small": "1", "big": "2"}), Played(THERE, {"small": "1", "big": "3"})]
    assert run._differences(played, SETS) == ["there: big: digest 3, here has 2"]


def test_a_problem_is_a_difference() -> None:
    played = [Played(HERE, {"small": "1"}), Played(THERE, problems=["no compiler"])]
    assert run._differences(played, SETS) == ["there: no compiler"]


def test_a_missing_tool_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda tool: None if tool == "s390x-linux-gnu-gcc" else "/" + tool)
    assert targets.missing_tools() == {"s390x-linux-gnu-gcc": "gcc-s390x-linux-gnu libc6-dev-s390x-cross"}


def test_every_tool_has_a_package_and_every_machine_file_is_there() -> None:
    for build in targets.BUILDS:
        assert set(build.tools) <= set(targets.PACKAGES)
        assert (targets.HERE / build.machine).is_file()
    names = [t.name for b in targets.BUILDS for t in b.targets]
    assert len(set(names)) == len(names)


def test_the_call_file_is_little_endian(tmp_path: Path) -> None:
    given, expected = np.array([0x3F80], ">u2"), np.array([0x3F800000], ">u4")
    call = Call(Operation.CAST, (8, 9, 0), 1, 4, expected, given)
    CallSet("one", (call,)).write(tmp_path / "one.calls")
    data = (tmp_path / "one.calls").read_bytes()
    assert data[:16] == b"FUCALLS1" + struct.pack("<Q", 1)
    assert struct.unpack("<13Q", data[16:120]) == (0, 8, 9, 0, 0, 1, 0, 0, 0, 2, 4, 4, 2)
    assert data[120:] == bytes.fromhex("803f0000000000000000803f00000000")


def test_a_call_with_too_few_expected_values_is_refused() -> None:
    with pytest.raises(ValueError, match="AT: 8 bytes expected of 2 items"):
        Call(Operation.AT, (), 2, 8, np.zeros(1, np.uint64)).encoded()


def test_every_vector_file_is_played(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: set[str] = set()
    load = vectors.load

    def noted(name: str) -> Mapping[str, Any]:
        loaded.add(name)
        return load(name)

    monkeypatch.setattr(vectors, "load", noted)
    assert vector_sets() + big_sets()
    files = targets.ROOT.glob("conformance/fucina/conformance/vectors/v1/*.npz")
    assert {path.stem for path in files} <= loaded
    assert all(s.expected_values for s in vector_sets() if not s.name.startswith("sweep"))
