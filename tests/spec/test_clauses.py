"""The chapters as data: ids, fields, and that every public name has a clause."""

import re
from itertools import groupby

import pytest

from fucina.spec import clauses, execution, facade, memory, team
from fucina.spec.interface import BitFloat, DTypePart, FpenvPart, IsaControl, QuantPart, RngPart
from fucina.spec.types import GEOMETRY, DType

LOADED = clauses.load()
MEMBERS = memory.MEMBERS | execution.MEMBERS | facade.MEMBERS | team.MEMBERS
AREAS = {
    "numbers": "NUM",
    "dtype": "DTYPE",
    "bridge": "BRIDGE",
    "rng": "RNG",
    "block": "BLOCK",
    "team": "TEAM",
    "fpenv": "FPENV",
    "storage": "STORAGE",
    "tensor": "SHAPE TENSOR",
    "pool": "POOL",
    "context": "CONTEXT",
    "scope": "SCOPE",
    "facade": "FACADE",
    "policy": "POLICY",
    "autograd": "AUTOGRAD",
    "errors": "ERR",
}
ROOT_NAMES = {"DType", "DTypeKind", "FloatOp", "Bf16", "F8E4M3", "F8E5M2", "internal", "bench_raw"} | {
    *("LayoutClass", "RhsLifetime", "RhsLifetime.is_cacheable", "Tensor", "custom_vjp"),
    *(name for name in execution.MEMBERS if name != "ExecContext.rt"),
    *("ExecContext.no_grad", "ExecContext.grad_enabled"),
}


def members(part: type, prefix: str) -> set[str]:
    """Return the public names of a Protocol, as an implementation's users write them."""
    names = set(vars(part)) | set(part.__annotations__)
    return {prefix + name for name in names if not name.startswith("_")}


PUBLIC = (
    members(DTypePart, "dtype.")
    | members(RngPart, "rng.")
    | members(QuantPart, "quant.")
    | members(FpenvPart, "fpenv.")
    | members(IsaControl, "")
    | {name for owner, part in MEMBERS.items() for name in members(part, f"{owner}.")}
    | ROOT_NAMES
)


def test_the_public_names_were_found() -> None:
    assert {"dtype.cast_array", "dtype.q1_0_block_size", "rng.at", "isa"} <= PUBLIC
    assert "bits" in members(BitFloat, "")


@pytest.mark.parametrize("chapter", AREAS)
def test_a_chapter_holds_its_own_area(chapter: str) -> None:
    found = [clause for clause in LOADED.values() if clause.chapter == chapter]
    assert found
    assert {clause.area for clause in found} == set(AREAS[chapter].split())


def test_every_clause_directive_is_loaded() -> None:
    written = [
        name
        for chapter in clauses.chapters()
        for name in re.findall(r"^ *\.\. +clause:: *(\S+)", clauses.chapter_text(chapter), re.MULTILINE)
    ]
    assert written == list(LOADED)


def test_numbering_is_contiguous_in_every_topic() -> None:
    topics: dict[str, list[int]] = {}
    for name in LOADED:
        topic, _, number = name.rpartition("-")
        topics.setdefault(topic, []).append(int(number))
    assert topics == {topic: list(range(1, len(numbers) + 1)) for topic, numbers in topics.items()}


def test_an_area_is_one_run_of_the_document() -> None:
    runs = [area for area, _ in groupby(clause.area for clause in LOADED.values())]
    assert len(runs) == len(set(runs))


@pytest.mark.parametrize("clause", LOADED.values(), ids=lambda clause: clause.id)
def test_a_clause_is_complete(clause: clauses.Clause) -> None:
    assert clause.title
    assert re.search(r"\w", clause.text.partition("**" + clause.title)[2])
    assert re.fullmatch(r"own|\d+\.\d+(, \d+\.\d+)*", clause.source)
    assert clause.decision is None or re.fullmatch(r"here|\d+(\.\d+)?", clause.decision)
    assert set(clause.functions) <= PUBLIC
    assert len(clause.functions) == len(set(clause.functions))
    assert clause.decision or clause.source != "own", "an addition names the decision that made it"


def test_titles_tell_clauses_apart() -> None:
    titles = [clause.title for clause in LOADED.values()]
    assert sorted(titles) == sorted(set(titles))


def test_every_public_name_has_a_clause() -> None:
    governed = {name for clause in LOADED.values() for name in clause.functions}
    assert PUBLIC - governed == set()


def test_every_cited_clause_exists() -> None:
    for chapter in clauses.chapters():
        text = clauses.chapter_text(chapter)
        cited = set(re.findall(r":clause:`([^`]+)`", text)) | set(re.findall(r"\b[A-Z]+-[A-Z0-9]+-\d+\b", text))
        assert cited - set(LOADED) - {"AREA-TOPIC-N"} == set(), chapter


def test_the_errata_name_only_decisions_that_clauses_name() -> None:
    numbers = set(re.findall(r"^   \* - ([\d.]+|here)$", clauses.chapter_text("errata"), re.MULTILINE))
    assert len(numbers) > 10
    assert numbers - {clause.decision for clause in LOADED.values()} == set()


def rows(chapter: str, name: str) -> list[list[str]]:
    """Return the cells of a csv-table without quoted commas."""
    body = clauses.chapter_text(chapter).partition(f"   :name: {name}\n")[2].partition("\n\n")[2].partition("\n\n")[0]
    return [[cell.strip().strip("`") for cell in line.split(",")] for line in body.splitlines()]


def test_the_geometry_tables_show_the_registry() -> None:
    scalars, blocks = rows("dtype", "scalar-dtypes"), rows("dtype", "block-dtypes")
    assert [DType(row[0]) for row in scalars + blocks] == list(DType)
    for name, size, *_ in scalars:
        assert GEOMETRY[DType(name)].byte_size == int(size)
    for name, struct, block_size, size, fields in blocks:
        geometry = GEOMETRY[DType(name)]
        assert (struct, int(block_size), int(size)) == (geometry.struct_name, geometry.block_size, geometry.byte_size)
        shown = [f.name + ":" + f.format[1:] + (f"[{f.count}]" if f.count > 1 else "") for f in geometry.fields]
        assert fields.split() == shown


CLAUSE = """
.. clause:: {}

   **A title.** Text.

   {}
"""
FIELDS = ":functions: none\n   :source: 1.2"


@pytest.mark.parametrize("name", ["", "RNG", "RNG-AT", "RNG-AT-0", "RNG-AT-01", "rng-at-1", "RNG-AT-1-2", "RNG-AT-1 x"])
def test_a_malformed_id_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="AREA-TOPIC-N"):
        list(clauses.parse("c", CLAUSE.format(name, FIELDS)))


@pytest.mark.parametrize(
    "fields",
    [
        ":functions: none",
        ":source: 1.2",
        FIELDS + "\n   :sauce: 1",
        FIELDS + "\n   :source: 1.2",
        FIELDS + "\n   :decision:",
    ],
)
def test_bad_fields_are_refused(fields: str) -> None:
    with pytest.raises(ValueError, match="A-B-1"):
        list(clauses.parse("c", CLAUSE.format("A-B-1", fields)))


def test_a_clause_without_title_is_refused() -> None:
    with pytest.raises(ValueError, match="title"):
        list(clauses.parse("c", CLAUSE.format("A-B-1", FIELDS).replace("**", "")))


def test_parse_keeps_the_text_and_stops_at_the_clause() -> None:
    text = CLAUSE.format("A-B-1", ":functions: f.g, H\n   :source: 1.2\n   :decision: 3") + "\nProse.\n"
    (clause,) = clauses.parse("c", text)
    assert clause == clauses.Clause("A-B-1", "c", "A title", "**A title.** Text.", ("f.g", "H"), "1.2", "3")


def test_an_id_that_stands_twice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    text = CLAUSE.format("A-B-1", FIELDS)
    monkeypatch.setattr(clauses, "chapters", lambda: ("one", "two"))
    monkeypatch.setattr(clauses, "chapter_text", lambda name: text)
    with pytest.raises(ValueError, match="chapter one and again in two"):
        clauses.load.__wrapped__()
