"""Levels, expectations, hostile folders, plain pytest, and the report files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from fucina.spec import clauses

if TYPE_CHECKING:
    from meta.conftest import House

LEVELS = """
level = "high"
def isa_levels(): return ("low", "high")
def isa(): return level
def set_isa(name):
    global level
    assert name in isa_levels()
    level = name
"""
LEVEL_SUITE = """
from fucina.conformance import clause

@clause("RNG-AT-1")
def test_level(impl, target):
    assert impl.isa() == target.isa
    assert target.label == f"third[{target.isa}]"
    impl.set_isa("low")  # a test that changes the level and does not put it back

@clause("RNG-AT-1")
def test_level_again(impl, target):
    assert impl.isa() == target.isa

@clause("RNG-SEED-1")
def test_low(impl):
    assert impl.isa() == "low"
"""


def test_each_level_is_a_target(house: House) -> None:
    house.write("third.py", "capabilities = {'rng'}" + LEVELS)
    ended = house.check(third="capabilities = {'rng'}" + LEVELS, suite=LEVEL_SUITE, clauses="RNG-AT-1 RNG-SEED-1")
    assert ended.code == 1
    assert ended.row("RNG-AT-1").endswith("ok 2 ok 2")
    assert ended.row("RNG-SEED-1").endswith("ok 1 FAIL 1")
    assert "FAIL RNG-SEED-1 on third[high]" in ended.out


def test_one_level_alone(house: House) -> None:
    third = "capabilities = {'rng'}" + LEVELS
    ended = house.check("--isa", "low", third=third, suite=LEVEL_SUITE, clauses="RNG-AT-1 RNG-SEED-1")
    assert ended.code == 0
    assert ended.last_line.startswith("3 passed, 0 failed")


def test_the_level_is_put_back(house: House) -> None:
    at_exit = "\nimport atexit\natexit.register(lambda: print('level at the end:', level))\n"
    ended = house.check(third="capabilities = {'rng'}" + LEVELS + at_exit, suite=LEVEL_SUITE)
    assert "level at the end: high" in ended.out


def test_a_level_that_does_not_take(house: House) -> None:
    third = "capabilities = {'rng'}" + LEVELS.replace("    level = name", "    pass")
    ended = house.check(third=third, suite=LEVEL_SUITE)
    assert ended.code == 1
    assert "third.set_isa('low') did not take" in ended.out


# -- expectations

ENTRY = '[[expect]]\ntarget = "third"\nclause = "RNG-AT-1"\nreason = "known since the spring"\n'


def test_expected_failure(house: House, broken: str) -> None:
    house.write("known.toml", ENTRY)
    ended = house.check("--expect", "known.toml", "--report", "out", third=broken)
    assert ended.code == 0, ended
    assert "expected: known since" in ended.row("RNG-AT-1")
    assert "failed as expected: test_it.py::test_words[third]: known since the spring" in ended.out
    assert re.fullmatch(r"0 passed, 0 failed, 1 expected to fail in .* s", ended.last_line)
    assert 'message="expected: known since the spring"' in (house.folder / "out" / "junit.xml").read_text()


@pytest.mark.parametrize("name", ["test_words", "test_it.py::test_words", "test_it.py::test_words[third]"])
def test_expected_failure_of_a_test(house: House, broken: str, name: str) -> None:
    house.write("known.toml", ENTRY.replace('clause = "RNG-AT-1"', f'test = "{name}"'))
    assert house.check("--expect", "known.toml", third=broken).code == 0


def test_an_expectation_excuses_nothing_else(house: House, broken: str) -> None:
    house.write("known.toml", ENTRY.replace("RNG-AT-1", "RNG-SEED-1"))
    ended = house.check("--expect", "known.toml", third=broken, clauses="RNG-AT-1 RNG-SEED-1")
    assert ended.code == 1
    assert "FAIL RNG-AT-1 on third" in ended.out


def test_an_expected_failure_that_agrees_is_an_error(house: House) -> None:
    house.write("known.toml", ENTRY)
    ended = house.check("--expect", "known.toml")
    assert ended.code == 1
    assert ended.row("RNG-AT-1").endswith("FAIL")
    assert "stale expectation: RNG-AT-1 on third" in ended.out
    assert "agrees after all" in ended.out


def test_an_expectation_that_matches_nothing_is_an_error(house: House) -> None:
    house.write("known.toml", ENTRY.replace('clause = "RNG-AT-1"', 'test = "test_wrods"'))
    house.write("third.py", "capabilities = {'rng'}")
    house.write("suite/test_it.py", "")
    ended = house.run("--impl", "third", "--suite", "suite", "--expect", "known.toml")
    assert ended.code == 1
    assert "matches no test that ran" in ended.out


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (('reason = "known since the spring"', ""), "a reason is missing"),
        (('"known since the spring"', '" "'), "reason must be a text that says something"),
        (('clause = "RNG-AT-1"', ""), "name either a clause or a test"),
        (("reason", 'test = "test_words"\nreason'), "name either a clause or a test"),
        (("RNG-AT-1", "RNG-AT-9"), "there is no clause 'RNG-AT-9'; did you mean RNG-AT-1"),
        (('target = "third"', ""), "a target is missing"),
        (("reason", "raison"), "unknown key 'raison'"),
        (("[[expect]]", "[[expected]]"), "only [[expect]] tables are allowed"),
        (('"third"', "third"), "cannot read the expectations file"),
    ],
)
def test_expectations_that_are_refused(house: House, change: tuple[str, str], says: str) -> None:
    house.write("known.toml", ENTRY.replace(*change))
    ended = house.check("--expect", "known.toml")
    assert ended.code == 2
    assert says in ended.err


# -- surroundings


def test_hostile_folder(house: House) -> None:
    house.write("third.py", "")
    house.check()  # writes the module and the suite
    for folder in ("", "sub/"):
        house.write(f"{folder}conftest.py", "raise RuntimeError('a conftest of somebody else')")
        house.write(f"{folder}pytest.ini", "[pytest]\naddopts = --no-such-option\ntestpaths = elsewhere\n")
        house.write(f"{folder}pyproject.toml", "[tool.pytest.ini_options]\npython_functions = 'nothing_*'\n")
    before = {p.relative_to(house.folder) for p in house.folder.rglob("*") if "__pycache__" not in p.parts}
    ended = house.run(
        *("--impl", "third", "--suite", "suite", "--filter", "RNG-AT-1", "RNG-SEED-1"),
        PYTEST_ADDOPTS="--no-such-option",
        PYTEST_PLUGINS="no_such_plugin",
        HYPOTHESIS_PROFILE="no_such_profile",
        CI="true",
    )
    assert ended.code == 0, ended
    assert ended.last_line.startswith("2 passed, 0 failed")
    after = {p.relative_to(house.folder) for p in house.folder.rglob("*") if "__pycache__" not in p.parts}
    assert after == before, "nothing is left behind"


def test_what_a_test_prints_stays_out_of_the_output(house: House, suite_with: Callable[[str], str]) -> None:
    noisy = suite_with(
        '@clause("RNG-AT-1")\ndef test_noise(impl):\n    import os\n    os.write(1, b"NOISE")\n    print("NOISE")'
    )
    assert "NOISE" not in house.check(suite=noisy).out


def test_plugin_in_a_plain_pytest_run(house: House, broken: str) -> None:
    house.check()
    base = ("-m", "pytest", "-p", "fucina.conformance.plugin", "--impl", "third", "--clauses", "RNG-AT-1", "suite")
    assert house.python(*base, PYTHONPATH=_with(house)).code == 0
    ended = house.python(*base, "--clauses", "RNG-PERM-1", PYTHONPATH=_with(house))
    assert ended.code == 1
    assert "NO TEST: RNG-PERM-1 on third" in ended.out
    house.write("third.py", broken)
    assert house.python(*base, PYTHONPATH=_with(house)).code == 1


def _with(house: House) -> str:
    import os

    return os.pathsep.join(filter(None, [str(house.folder), os.environ.get("PYTHONPATH", "")]))


def test_report_files(house: House, broken: str) -> None:
    ended = house.check("--report", "new/out", third=broken, clauses="RNG-*")
    out = house.folder / "new" / "out"
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    assert (report["schema"], report["schema_version"]) == ("fucina.conformance.report", 1)
    keys = {"targets", "versions", "machine", "options", "totals", "clauses", "cells", "notes", "failures", "problems"}
    assert keys | {"created", "seconds", "agrees", "summary", "stopped", "left_out"} <= set(report)
    assert {"arch", "system", "byteorder", "python", "numpy", "isa"} == set(report["machine"])
    assert report["agrees"] is False
    assert report["summary"] == ended.last_line
    ids = [i for i, c in clauses.load().items() if c.chapter == "rng"]
    assert [c["id"] for c in report["clauses"]] == ids
    assert [c["clause"] for c in report["cells"]] == ids
    states = {c["clause"]: c["state"] for c in report["cells"]}
    assert states["RNG-AT-1"] == "FAIL"
    assert states["RNG-SEED-1"] == "ok"
    assert states["RNG-PERM-1"] == "NO TEST"
    (failure,) = report["failures"]
    assert failure["clauses"] == ["RNG-AT-1"]
    assert (failure["index"], failure["got"], failure["expected"], failure["worst"]) == (
        *("1", "0x6e789e6aa1b965f5", "0x6e789e6aa1b965f4", "1"),
    )
    (suite,) = ElementTree.parse(out / "junit.xml").getroot()
    assert suite.get("name") == "third"
    assert int(suite.get("tests", "")) == len(suite.findall("testcase")) == 2 + len(ids) - 2
    assert int(suite.get("failures", "")) == len(suite.findall("testcase/failure")) == 1 + len(ids) - 2
    page = (out / "index.html").read_text(encoding="utf-8")
    assert all(f"<tr id='{i}'>" in page for i in ids)
    assert page.index("0x6e789e6aa1b965f5") < page.index("<table>"), "failures stand above the matrix"
    assert "http" not in page, "the page needs nothing from elsewhere"


def test_report_escapes_what_it_shows(house: House) -> None:
    suite = (
        'from fucina.conformance import clause\n@clause("RNG-AT-1")\n'
        'def test_odd(impl): raise AssertionError("<script>&\\x00\\x1b[31m ]]> [bold]")\n'
    )
    ended = house.check("--report", "out", suite=suite)
    assert "[bold]" in ended.out
    ElementTree.parse(house.folder / "out" / "junit.xml")
    assert "<script>" not in (house.folder / "out" / "index.html").read_text(encoding="utf-8")
