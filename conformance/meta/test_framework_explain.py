"""``explain`` and the index behind it."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from fucina.conformance import index
from fucina.conformance.explain import explain, listing
from fucina.spec import clauses

if TYPE_CHECKING:
    from meta.conftest import House

ROOT = Path(__file__).resolve().parents[2]
IDS = list(clauses.load())


@pytest.fixture(scope="module")
def builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_index", ROOT / "conformance" / "build_index.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def tree(builder: ModuleType) -> dict[str, Any]:
    built: dict[str, Any] = builder.build(ROOT)
    return built


@pytest.mark.parametrize("clause_id", IDS)
def test_every_clause_is_explained(clause_id: str) -> None:
    text = explain(clause_id)
    clause = clauses.load()[clause_id]
    assert text.startswith(f"{clause_id}: {clause.title}\nchapter {clause.chapter}\n")
    for section in ("reference:", "fast, C:", "tests:", "vectors:", "planted faults:"):
        assert f"\n{section}" in text
    assert "\ntests: none" not in text
    assert not any(mark in text for mark in (":clause:", "``", "code-block::", "  **"))


def test_the_examples_of_a_clause_are_among_its_tests() -> None:
    assert "  test_spec_examples.py::test_examples[RNG-AT-1] " in explain("RNG-AT-1")
    assert "  test_spec_examples.py::test_examples_in_lockstep[NUM-PARAM-1] " in explain("RNG-UNIF-3")
    assert "test_spec_examples.py" not in explain("RNG-CONTRACT-1")


def test_the_installed_index_is_that_of_the_tree(tree: dict[str, Any]) -> None:
    assert index.load() == tree["clauses"]


def test_the_tree_names_known_clauses_only(tree: dict[str, Any]) -> None:
    assert tree["warnings"] == []


def test_every_place_is_there(tree: dict[str, Any]) -> None:
    places = [p for entry in tree["clauses"].values() for kind in entry.values() for p in kind]
    assert places
    for place in places:
        lines = (ROOT / place["path"]).read_bytes().splitlines()
        assert 0 <= place["line"] <= len(lines)


def test_command_line(house: House) -> None:
    ended = house.run("explain", "rng-at-1", "RNG-SEED-1")
    assert ended.code == 0
    assert "RNG-AT-1: " in ended.out
    assert "RNG-SEED-1: " in ended.out
    listed = house.run("explain", "--list")
    assert listed.code == 0
    assert all(f"  {i} " in listed.out for i in IDS)
    assert len(list(listing())) == len(IDS) + len({c.chapter for c in clauses.load().values()})
    unknown = house.run("explain", "RNG-AT-2")
    assert unknown.code == 2
    assert "there is no clause 'RNG-AT-2'; did you mean RNG-AT-1" in unknown.err
    assert house.run("explain").code == 2


def test_explain_needs_the_library_alone(house: House) -> None:
    block = "import sys; sys.modules.update(dict.fromkeys(('pytest', 'rich', 'hypothesis')))\n"
    call = "from fucina.conformance.__main__ import main; sys.exit(main({!r}))"
    ended = house.python("-c", block + call.format(["explain", "RNG-AT-1"]))
    assert ended.code == 0, ended
    missing = house.python("-c", block + call.format([]))
    assert missing.code == 2
    assert "needs pytest: python -m pip install 'pytest>=" in missing.err
    helped = house.python("-c", block + call.format(["--help"]))
    assert helped.code == 0, helped
    assert helped.out.startswith("usage: python -m fucina.conformance")


# -- the builder on a tree of its own


def _named(built: dict[str, Any], clause_id: str, kind: str) -> list[tuple[str, str, int]]:
    return [(p["name"], p["path"], p["line"]) for p in built["clauses"][clause_id][kind]]


def test_builder_reads_c(builder: ModuleType, house: House) -> None:
    house.write(
        "fast/csrc/rng/rng.c",
        "/* RNG-STREAM-1: about the whole file */\n"
        "#include <stdint.h>\n"
        "\n"
        "/* RNG-AT-1: the word */\n"
        "uint64_t fc_at(uint64_t seed, uint64_t i) {\n"
        "    return mix(seed, i); /* RNG-SEED-1 */\n"
        "}\n"
        "\n"
        "// RNG-UNIF-1 and\n"
        "// RNG-UNIF-2\n"
        "void FC_K(uniform)(uint64_t seed,\n"
        "                   float *out) {\n"
        "    if (v >= hi) /* RNG-UNIF-3 */\n"
        "        v = below;\n"
        "}\n"
        "/* RNG-PERM-1 */\n"
        "#define SWAP(a, b) do { } while (0)\n"
        "/* RNG-INT-1 */\n"
        "static const double table[] = {1.0};\n",
    )
    house.write(
        "fast/csrc/tests/test_rng.c", "/* RNG-INT-2: a test is no implementation */\nint main(void) { return 0; }\n"
    )
    built = builder.build(house.folder)
    path = "fast/csrc/rng/rng.c"
    assert _named(built, "RNG-STREAM-1", "c") == [("rng.c", path, 1)]
    assert _named(built, "RNG-AT-1", "c") == [("fc_at", path, 4)]
    assert _named(built, "RNG-SEED-1", "c") == [("fc_at", path, 6)]
    assert _named(built, "RNG-UNIF-1", "c") == _named(built, "RNG-UNIF-2", "c") == [("fc_uniform__<isa>", path, 9)]
    assert _named(built, "RNG-UNIF-3", "c") == [("fc_uniform__<isa>", path, 13)]
    assert _named(built, "RNG-PERM-1", "c") == [("SWAP", path, 16)]
    assert _named(built, "RNG-INT-1", "c") == [("table", path, 18)]
    assert _named(built, "RNG-INT-2", "c") == []


def test_builder_reads_python(builder: ModuleType, house: House) -> None:
    house.write(
        "reference/fucina/reference/rng.py",
        '"""A module."""\n\n\n'
        "class Stream:\n"
        '    """A stream.\n\n    Clauses: RNG-STREAM-1,\n    RNG-SEED-1.\n    """\n\n'
        "    def at(self):\n"
        '        """Return a word; not like RNG-PERM-1.\n\n'
        '        Clauses: RNG-AT-1\n\n        See RNG-INT-1.\n        """\n',
    )
    built = builder.build(house.folder)
    path = "reference/fucina/reference/rng.py"
    assert _named(built, "RNG-STREAM-1", "reference") == [("fucina.reference.rng.Stream", path, 4)]
    assert _named(built, "RNG-SEED-1", "reference") == [("fucina.reference.rng.Stream", path, 4)]
    assert _named(built, "RNG-AT-1", "reference") == [("fucina.reference.rng.Stream.at", path, 11)]
    assert _named(built, "RNG-PERM-1", "reference") == _named(built, "RNG-INT-1", "reference") == []


def test_builder_reads_tests_vectors_and_faults(builder: ModuleType, house: House) -> None:
    package = "conformance/fucina/conformance"
    house.write(
        f"{package}/suite/test_rng.py",
        'pytestmark = [clause("RNG-CONTRACT-1")]\n\n\n'
        '@clause("RNG-AT-1")\nclass TestAt:\n    @pytest.mark.clause("RNG-SEED-1")\n'
        '    def test_at(self, impl):\n        """Words."""\n\n\n'
        "@clause(*IDS)\ndef test_indirect(impl): ...\n",
    )
    house.write(
        f"{package}/vectors/v1/MANIFEST.json",
        json.dumps({"files": {"a.npz": {"clauses": ["RNG-AT-1", "RNG-NEVER-1"], "origin": "elsewhere"}}}),
    )
    house.write(
        "fast/csrc/core/faults.def",
        '/* FC_FAULT(name, "clause", "text") */\n'
        'FC_FAULT(SEED32, "RNG-SEED-1", "the seed is cut "\n         "to 32 bits")\n',
    )
    house.write(
        "conformance/meta/faults.toml", '[[fault]]\nname = "late"\nclause = "RNG-AT-1"\ntext = "one step too far"\n'
    )
    built = builder.build(house.folder)
    test = ("test_rng.py::TestAt::test_at", f"{package}/suite/test_rng.py", 7)
    for clause_id in ("RNG-CONTRACT-1", "RNG-AT-1", "RNG-SEED-1"):
        assert test in _named(built, clause_id, "tests")
    assert _named(built, "RNG-AT-1", "vectors") == [("a.npz", f"{package}/vectors/v1/a.npz", 0)]
    (fault,) = built["clauses"]["RNG-SEED-1"]["faults"]
    assert (fault["name"], fault["line"], fault["text"]) == ("SEED32", 2, "the seed is cut to 32 bits")
    assert _named(built, "RNG-AT-1", "faults") == [("late", "conformance/meta/faults.toml", 2)]
    assert any("clause ids are to be written out" in w for w in built["warnings"])
    assert any("unknown clause RNG-NEVER-1" in w for w in built["warnings"])
