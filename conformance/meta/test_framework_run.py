"""The command line: what it finds, what it refuses, how it ends."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from meta.conftest import House

Suite = Callable[[str], str]


def test_conforming_module(house: House) -> None:
    ended = house.check(clauses="RNG-AT-1 RNG-SEED-1")
    assert ended.code == 0, ended
    assert ended.row("RNG-AT-1").endswith("ok 1")
    assert re.fullmatch(r"2 passed, 0 failed in \d+\.\d s", ended.last_line)


def test_broken_module_is_named_with_clause_index_got_expected(house: House, broken: str) -> None:
    ended = house.check(third=broken)
    assert ended.code == 1
    assert ended.row("RNG-AT-1").endswith("FAIL 1")
    assert "FAIL RNG-AT-1 on third" in ended.out
    assert "test      test_it.py::test_words[third]" in ended.out
    assert "index     1\n" in ended.out
    assert "got       0x6e789e6aa1b965f5\n" in ended.out
    assert "expected  0x6e789e6aa1b965f4\n" in ended.out
    assert re.fullmatch(r"0 passed, 1 failed in .* s", ended.last_line)


def test_a_property_names_its_example(house: House) -> None:
    ended = house.check(third="capabilities = {'rng'}\nclass rng:\n  at = lambda s, i: -1", clauses="RNG-SEED-1")
    assert ended.code == 1
    assert "seed=0" in ended.out


def test_module_without_the_function(house: House) -> None:
    ended = house.check(third="capabilities = {'rng'}")
    assert ended.code == 1
    assert "AttributeError: module 'third' has no attribute 'rng'" in ended.out


def test_what_is_not_claimed_is_listed(house: House, suite_with: Suite) -> None:
    suite = suite_with('@clause("BRIDGE-BOOL-1", "RNG-AT-1")\ndef test_two_chapters(impl):\n    impl.dtype')
    ended = house.check(suite=suite, clauses="RNG-AT-1 RNG-SEED-1 BRIDGE-BOOL-1 ERR-NAME-1")
    assert ended.code == 0, ended
    assert ended.row("BRIDGE-BOOL-1").endswith("not claimed")
    assert ended.row("ERR-NAME-1").endswith("not claimed")
    assert ended.row("RNG-SEED-1").endswith("ok 1"), "a general chapter that is not claimed keeps no test away"
    assert "third does not claim: bridge (1 clauses), errors (1 clauses)" in ended.out


def test_clause_without_test(house: House) -> None:
    ended = house.check(clauses="RNG-AT-1 RNG-PERM-1")
    assert ended.code == 1
    assert ended.row("RNG-PERM-1").endswith("NO TEST")
    assert "NO TEST: RNG-PERM-1 on third" in ended.out
    assert ended.last_line.startswith("1 passed, 0 failed, 1 errors")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("def test_bare(impl):\n    pass", "test_it.py::test_bare: the test names no clause"),
        ('@clause("RNG-ATT-1")\ndef test_bad(impl):\n    pass', "unknown clause 'RNG-ATT-1'; did you mean RNG-AT-1"),
        ('@clause("RNG-AT-1")\ndef test_alone():\n    pass', "takes neither `impl` nor `target`"),
        ('@pytest.mark.xfail\n@clause("RNG-AT-1")\ndef test_x(impl):\n    pass', "xfail is not for the suite"),
        ('@pytest.mark.clausse("RNG-AT-1")\ndef test_x(impl):\n    pass', "'clausse' not found in `markers`"),
        ("@clause()\ndef test_x(impl):\n    pass", "clause() takes one or more clause ids"),
        (
            '@clause("RNG-AT-1")\n@pytest.mark.parametrize("n", [])\ndef test_n(impl, n):\n    pass',
            "Empty parameter set",
        ),
        ("import nothing_of_this_name", "No module named 'nothing_of_this_name'"),
    ],
)
def test_collection_errors(house: House, suite_with: Suite, text: str, says: str) -> None:
    ended = house.check(suite=suite_with(text))
    assert ended.code == 1
    assert "collection error: test_it.py" in ended.out
    assert says in ended.out
    assert ended.last_line.startswith("0 passed, 0 failed, 1 errors")


def test_empty_suite(house: House) -> None:
    ended = house.check(suite="")
    assert ended.code == 1
    assert "nothing checked" in ended.out


def test_skipped_everywhere(house: House, suite_with: Suite) -> None:
    ended = house.check(suite=suite_with('@clause("RNG-AT-1")\ndef test_s(impl):\n    pytest.skip("no time")'))
    assert ended.code == 1
    assert "ran zero times: test_it.py::test_s: skipped everywhere: no time" in ended.out


def test_stop_at_the_first_failure(house: House, broken: str) -> None:
    ended = house.check("-x", third=broken, clauses="RNG-AT-1 RNG-SEED-1")
    assert ended.code == 1
    assert "stopped early" in ended.out
    assert ended.row("RNG-SEED-1").endswith("not run")


def test_slow_tests_wait_for_their_switch(house: House) -> None:
    suite = (
        "import pytest\nfrom fucina.conformance import clause\n"
        '@pytest.mark.slow\n@clause("RNG-AT-1")\ndef test_s(impl): pass\n'
    )
    ended = house.check(suite=suite)
    assert ended.code == 1
    assert "left out on third: 1 tests (slow: runs with --slow)" in ended.out
    assert house.check("--slow", suite=suite).code == 0


def test_random_examples_are_the_same_unless_seeded(house: House) -> None:
    suite = (
        "from hypothesis import given, strategies as st\nfrom fucina.conformance import clause\n"
        'seen = []\n@clause("RNG-AT-1")\n@given(n=st.integers())\ndef test_n(impl, n): seen.append(n)\n'
        '@clause("RNG-AT-1")\ndef test_show(impl): raise AssertionError(f"drew {hash(tuple(seen))}")\n'
    )
    drew = [
        re.findall(r"drew .*", house.check(*seed, suite=suite).out)
        for seed in ([], [], ["--seed", "1"], ["--seed", "2"])
    ]
    assert len(drew[0]) == 1
    assert drew[0] == drew[1]
    assert drew[2] != drew[3]


def test_a_lockstep_test_leaves_its_judge_alone(house: House) -> None:
    suite = (
        'from fucina.conformance import clause\n@clause("RNG-AT-1")\n'
        "def test_lock(impl, judge): assert impl.rng.at(3, 4) == judge.rng.at(3, 4)\n"
    )
    assert house.check(suite=suite).code == 0
    ended = house.check("--impl", "fucina.reference", suite=suite)
    assert ended.code == 1, "the reference has no test of its own then"
    assert ended.row("RNG-AT-1").endswith("ok 1 NO TEST")
    assert "left out on fucina.reference: 1 tests (lockstep with the reference itself)" in ended.out


def test_notes_of_tests_are_shown(house: House) -> None:
    suite = (
        'from fucina.conformance import clause\n@clause("RNG-AT-1")\n'
        'def test_part(impl, record_property): record_property("note", "only a part of it")\n'
    )
    assert "note on third: only a part of it" in house.check(suite=suite).out


def test_a_parameter_may_be_called_target(house: House) -> None:
    suite = (
        "import pytest\nfrom fucina.conformance import clause\n"
        '@clause("RNG-AT-1")\n@pytest.mark.parametrize("target", [1, 2])\n'
        "def test_p(impl, target): assert target in (1, 2)\n"
        '@clause("RNG-AT-1")\ndef test_t(target): assert (target.label, target.isa) == ("third", None)\n'
    )
    ended = house.check(suite=suite)
    assert ended.last_line.startswith("3 passed, 0 failed")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--impl", "thrid"], "there is no module 'thrid'; did you mean third?"),
        (["--impl", "fucina.slow"], "registered implementations: fucina.fast, fucina.reference"),
        (["--impl", "needy"], "importing 'needy' failed, because it needs 'missing_thing'"),
        (["--impl", "raising"], "importing 'raising' failed: ZeroDivisionError"),
        (["--report", "third.py"], "the report cannot be written to 'third.py': "),
        (["--report", "third.py/out"], "the report cannot be written to"),
        (["--impl", "leaving"], "importing 'leaving' failed: SystemExit: 0"),
        (["--impl", "silent"], "silent does not say what it claims: define `capabilities"),
        (["--impl", "vain"], "vain claims the chapter 'rngs', which the specification does not have"),
        (["--impl", "idle"], "idle claims no chapter at all"),
        (["--impl", "third", "--isa", "avx9"], "no selected implementation can use the instruction-set level 'avx9'"),
        (["--impl", "third", "--filter", "RNX-*"], "no clause matches 'RNX-*'"),
        (["--impl", "third", "--suite", "nowhere"], "there is no folder 'nowhere'"),
        (["--impl", "third", "--expect", "nowhere.toml"], "cannot read the expectations file"),
        (["--colour"], "unrecognized arguments"),
    ],
)
def test_requests_that_make_no_sense(house: House, arguments: list[str], says: str) -> None:
    house.write("third.py", "capabilities = {'rng'}")
    house.write("needy.py", "import missing_thing")
    house.write("raising.py", "1 / 0")
    house.write("leaving.py", "raise SystemExit(0)")
    house.write("silent.py", "")
    house.write("vain.py", "capabilities = {'rngs'}")
    house.write("idle.py", "capabilities = frozenset()")
    ended = house.run(*arguments)
    assert ended.code == 2
    assert says in ended.err
    assert "Traceback" not in ended.err


def test_closed_standard_output(house: House) -> None:
    assert house.check().code == 0
    start = "from fucina.conformance.__main__ import main; sys.exit(main(sys.argv[1:]))"
    program = f"import sys; sys.stdout = None; {start}"
    request = ("--impl", "third", "--suite", "suite", "--filter", "RNG-AT-1", "--report", "out")
    ended = house.python("-c", program, *request)
    assert ended.code == 0, ended
    assert (house.folder / "out" / "report.json").is_file()


def test_it_speaks_before_the_tests_are_collected(house: House) -> None:
    said = house.check().out.splitlines()
    assert said[:2] == ["collecting the tests", "1 check of 1 clause on 1 target"]


def test_a_reader_that_has_seen_enough(house: House) -> None:
    assert house.check().code == 0
    request = ("--impl", "third", "--suite", "suite", "--filter", "RNG-AT-1")
    program = (
        "import os, subprocess, sys\n"
        "reading, writing = os.pipe()\n"
        "os.close(reading)\n"
        "command = [sys.executable, '-m', 'fucina.conformance', *sys.argv[1:]]\n"
        "sys.exit(subprocess.run(command, stdout=writing).returncode)\n"
    )
    ended = house.python("-c", program, *request)
    assert (ended.code, ended.err) == (1, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the machine has no disk that is always full")
@pytest.mark.parametrize(
    "request_",
    [
        ("--impl", "third", "--suite", "suite", "--filter", "RNG-AT-1", "--report", "out"),
        ("--help",),
        ("explain", "RNG-AT-1"),
    ],
    ids=["run", "help", "explain"],
)
def test_a_disk_that_is_full(house: House, request_: tuple[str, ...]) -> None:
    assert house.check().code == 0
    program = (
        "import subprocess, sys\n"
        "command = [sys.executable, '-m', 'fucina.conformance', *sys.argv[1:]]\n"
        "sys.exit(subprocess.run(command, stdout=open('/dev/full', 'w')).returncode)\n"
    )
    ended = house.python("-c", program, *request_)
    assert (ended.code, ended.err) == (2, "fucina.conformance: [Errno 28] No space left on device\n")
    assert (house.folder / "out" / "report.json").is_file() == ("--report" in request_)


def test_help_explains_itself(house: House) -> None:
    ended = house.run("--help")
    assert ended.code == 0
    for word in (
        "--impl",
        "--isa",
        "--report",
        "--expect",
        "--filter",
        "--slow",
        "--seed",
        "explain",
        "examples:",
        "exit code",
    ):
        assert word in ended.out


def test_a_failure_that_names_its_clause_spares_the_others(house: House) -> None:
    suite = (
        "import pytest\nfrom fucina.conformance import clause\n"
        '@clause("RNG-AT-1", "RNG-SEED-1", "RNG-PERM-1")\n@pytest.mark.parametrize("n", [0, 1])\n'
        'def test_many(impl, n): assert n == 0, "RNG-SEED-1: one is wrong"\n'
        '@clause("RNG-INT-1", "RNG-SEED-1")\n'
        'def test_one(impl): raise AssertionError("RNG-SEED-1: wrong again")\n'
    )
    ended = house.check(suite=suite, clauses="RNG-AT-1 RNG-SEED-1 RNG-INT-1")
    assert ended.code == 1
    assert ended.row("RNG-SEED-1").endswith("FAIL 2")
    assert ended.row("RNG-AT-1").endswith("ok 1")
    assert ended.row("RNG-INT-1").endswith("not run"), "the only test of it stopped at another clause"
    assert "FAIL RNG-SEED-1 on third" in ended.out
    expect = '[[expect]]\ntarget = "third"\nclause = "RNG-AT-1"\nreason = "it names another clause"\n'
    house.write("known.toml", expect)
    ended = house.check("--expect", "known.toml", suite=suite, clauses="RNG-AT-1 RNG-SEED-1")
    assert ended.code == 1, "an entry excuses its own clause only"
