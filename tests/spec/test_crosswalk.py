"""The crosswalk: complete, cited correctly, shown as it is, and true of both implementations."""

import importlib
import inspect
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fucina.spec import clauses, execution, facade, memory, team
from fucina.spec.crosswalk import CROSSWALK, Entry, table
from fucina.spec.fpenv import Environment, Exceptions, RoundingMode, UnderflowMode
from fucina.spec.interface import (
    BitFloat,
    DTypePart,
    FloatGuard,
    FloatProbe,
    FloatRecord,
    FpenvPart,
    QuantPart,
    RngPart,
)
from fucina.spec.runtime import LayoutClass, RhsLifetime
from fucina.spec.types import BLOCK_CONSTANTS, GEOMETRY, DType, DTypeKind, FloatOp

MEMBERS = memory.MEMBERS | execution.MEMBERS | facade.MEMBERS | team.MEMBERS
PRESENT = [entry for entry in CROSSWALK if entry.status != "named only"]
PARTS = {
    "dtype": DTypePart,
    "rng": RngPart,
    "quant": QuantPart,
    "fpenv": FpenvPart,
    "Bf16": BitFloat,
    "F8E4M3": BitFloat,
    "F8E5M2": BitFloat,
}
DOCUMENTED = tomllib.loads((Path(__file__).parent / "documented.toml").read_text(encoding="utf-8"))
# the types within a part: what shows their methods, or the very type where it is shared
TYPES = {
    "fpenv.RoundingMode": RoundingMode,
    "fpenv.UnderflowMode": UnderflowMode,
    "fpenv.Environment": Environment,
    "fpenv.Exceptions": Exceptions,
    "fpenv.Guard": FloatGuard,
    "fpenv.Probe": FloatProbe,
    "fpenv.Record": FloatRecord,
}
ROOT_TYPES = {"DType", "DTypeKind", "FloatOp", "LayoutClass", "RhsLifetime"}


@pytest.fixture(scope="module", params=["fucina.reference", "fucina.fast"])
def implementation(request: pytest.FixtureRequest) -> ModuleType:
    return importlib.import_module(request.param)


def resolve(root: object, dotted: str) -> Any:
    """Follow a dotted name by attribute."""
    for owner, made in MADE.items():
        if dotted == owner or dotted.startswith(owner + "."):
            root, dotted = made(root), dotted[len(owner) + 1 :]
    for part in dotted.split(".") if dotted else ():
        root = getattr(root, part)
    return root


def of_context(make: Callable[[Any], Any]) -> Callable[[Any], type]:
    """Return what finds the type of something that a context makes."""

    def find(implementation: Any) -> type:
        with implementation.ExecContext() as ctx:
            return type(make(ctx))

    return find


def locked(ctx: Any, carve: str, *arguments: object) -> Any:
    ctx.lock_moe_decode_scratch()
    return getattr(ctx, carve)(*arguments)


def selection(ctx: Any) -> Any:
    """Return a record as sort makes it, whose tensors end with it."""
    tensor_type = importlib.import_module(type(ctx).__module__.rpartition(".")[0]).Tensor("d")
    with tensor_type.ones(ctx, (1,)) as x, x.sort(ctx, "d") as record:
        return record


# the types that are no names: what finds them
MADE: dict[str, Callable[[Any], type]] = {
    "RankedTensor": lambda implementation: implementation.internal.tensor_mod.RankedTensor(2),
    "Tensor": lambda implementation: implementation.Tensor("row", "col"),
    "Selection": of_context(lambda ctx: selection(ctx)),
    "ExecContext.rt": of_context(lambda ctx: ctx.rt),
    "PreparedTensor": of_context(lambda ctx: ctx.prepare_contiguous(ctx.ones((1,)))),
    "ScratchLease": of_context(lambda ctx: ctx.rt.buffers.acquire_scratch("u1", 1)),
    "MoeDecodeScratchView": of_context(lambda ctx: locked(ctx, "carve_moe_decode_scratch", "u1", "u1", 1, 1, 1, 1, 1)),
    "MoeDecodeChainScratchView": of_context(
        lambda ctx: locked(ctx, "carve_moe_decode_chain_scratch", "u1", "u1", "u1", 1, 1, 1, 1, 1, 1)
    ),
}


def test_rows_are_well_formed() -> None:
    for entry in CROSSWALK:
        assert bool(entry.documented) == (entry.status != "addition"), entry
        assert bool(entry.documented) == bool(entry.section), entry
        assert bool(entry.clauses) == (entry in PRESENT), entry
    assert len({(entry.documented, entry.section, entry.python) for entry in CROSSWALK}) == len(CROSSWALK)
    assert {entry.section for entry in CROSSWALK} == {*DOCUMENTED, ""}


@pytest.mark.parametrize("chapter", DOCUMENTED)
def test_every_documented_name_has_a_row_and_no_row_invents_one(chapter: str) -> None:
    groups = {kind: names for kind, names in DOCUMENTED[chapter].items() if kind != "members"}
    documented = [name for names in groups.values() for name in names]
    assert len(documented) == len(set(documented))
    assert set(documented) == {entry.documented for entry in CROSSWALK if entry.section == chapter}


def test_the_enumerations_have_the_documented_members() -> None:
    documented = {name: members for part in DOCUMENTED.values() for name, members in part.get("members", {}).items()}
    enumerations = {"DType": DType, "DTypeKind": DTypeKind, "FloatOp": FloatOp}
    enumerations |= {"RoundingMode": RoundingMode, "UnderflowMode": UnderflowMode}
    enumerations |= {"LayoutClass": LayoutClass, "RhsLifetime": RhsLifetime}
    assert documented == {name: [member.name for member in members] for name, members in enumerations.items()}


def test_every_clause_of_a_row_governs_its_name() -> None:
    loaded = clauses.load()
    for entry in PRESENT:
        name = entry.python
        if name.count(".") and name.split(".")[0] in ("Bf16", "F8E4M3", "F8E5M2"):
            name = name.split(".")[0]
        if (owner := name.rpartition(".")[0]) in TYPES:
            name = owner
        for clause in entry.clauses:
            assert clause in loaded, entry
            assert not loaded[clause].functions or name in loaded[clause].functions, (entry, clause)


def test_every_name_of_the_protocols_is_in_the_crosswalk() -> None:
    listed = {entry.python for entry in CROSSWALK}
    for part in ("dtype", "rng", "quant", "fpenv"):
        protocol = PARTS[part]
        names = set(vars(protocol)) | set(protocol.__annotations__)
        assert {f"{part}.{name}" for name in names if not name.startswith("_")} <= listed
    for owner, member in MEMBERS.items():
        names = set(vars(member)) | set(member.__annotations__)
        assert {f"{owner}.{name}" for name in names if not name.startswith("_")} <= listed
    assert set(PARTS) - {"dtype", "quant", "fpenv"} | ROOT_TYPES <= listed


def test_names_follow_the_rule() -> None:
    """CamelCase becomes snake_case, letter for letter; types and constants keep theirs."""
    for entry in PRESENT:
        if entry.documented and entry.documented not in ("Scalar", "Storage", "Element", "Accumulator"):
            last = entry.python.split(".")[-1]
            documented = entry.documented.split(".")[-1]
            if entry.section == "6.4":  # families that differ by comptime arguments are one method here
                documented = re.sub(r"(Rank)?(Typed)?$|(?<=Tensor)Of$", "", documented, count=1)
            assert last.replace("_", "").lower() == documented.replace("_", "").lower(), entry
            assert last == documented or last == last.lower(), entry


def test_the_page_shows_the_data() -> None:
    page = clauses.chapter_text("crosswalk")
    assert page.endswith("\n\n" + table() + "\n")
    assert page.count(".. csv-table::") == 1


def same_parameters(found: Any, declared: Any) -> None:
    """Assert names, kinds and defaults; a default that is declared as ``...`` may be any."""
    got, wanted = parameters(found), parameters(declared)
    assert [(name, kind) for name, kind, _ in got] == [(name, kind) for name, kind, _ in wanted]
    for (name, _, default), (_, _, given) in zip(got, wanted, strict=True):
        if given is ...:
            assert default is not inspect.Parameter.empty, name
        else:
            assert default == given, name


def parameters(function: Any) -> list[tuple[str, object, object]]:
    """Return name, kind and default of every parameter but ``self``."""
    found = inspect.signature(function).parameters.values()
    return [(p.name, p.kind, p.default) for p in found if p.name not in ("self", "cls")]


@pytest.mark.parametrize("entry", PRESENT, ids=lambda entry: entry.python)
def test_a_name_exists_with_the_signature_of_its_protocol(implementation: ModuleType, entry: Entry) -> None:
    chapters = {clauses.load()[clause].chapter for clause in entry.clauses}
    if not chapters <= implementation.capabilities:
        pytest.skip(f"{implementation.__name__} does not claim {', '.join(chapters - implementation.capabilities)}")
    found = resolve(implementation, entry.python)
    part, _, name = entry.python.partition(".")
    if (above := entry.python.rpartition(".")[0]) in MEMBERS:
        declared = inspect.getattr_static(MEMBERS[above], entry.python.rpartition(".")[2], None)
        if callable(declared) or isinstance(declared, classmethod):
            same_parameters(found, getattr(MEMBERS[above], entry.python.rpartition(".")[2]))
        return
    if part in ROOT_TYPES:
        assert found is resolve(importlib.import_module("fucina.spec"), entry.python)
    elif entry.python in MEMBERS and isinstance(found, type):
        declared = inspect.getattr_static(MEMBERS[entry.python], "__init__")
        if declared.__name__ == "__init__":  # else it is Protocol's own
            same_parameters(found, declared)
    elif not name:
        if part in ("Bf16", "F8E4M3", "F8E5M2"):
            assert parameters(found) == parameters(BitFloat.__init__)
        elif part == "custom_vjp":
            same_parameters(found, facade.FacadeImplementation.custom_vjp)
        else:
            assert inspect.ismodule(found)
    elif name in BLOCK_CONSTANTS:
        assert found == BLOCK_CONSTANTS[name]
        assert type(found) is int
    elif name.startswith("Block"):
        (dtype,) = (dtype for dtype, geometry in GEOMETRY.items() if geometry.struct_name == name)
        assert found == implementation.dtype.storage(dtype)
    elif entry.python in TYPES:
        kind = TYPES[entry.python]
        assert found is kind or parameters(found) == parameters(kind)
        assert found is kind or kind in (FloatGuard, FloatProbe, FloatRecord)
    elif (owner := entry.python.rpartition(".")[0]) in TYPES:
        declared = resolve(TYPES[owner], name.split(".")[1])
        if isinstance(declared, property):
            assert isinstance(found, property)
        else:
            assert parameters(found) == parameters(declared)
    elif name in PARTS[part].__annotations__:
        assert not callable(found)
    else:
        declared = inspect.getattr_static(PARTS[part], name)
        if isinstance(declared, property):
            assert inspect.isdatadescriptor(found)
        else:
            assert callable(found)
            assert parameters(found) == parameters(getattr(PARTS[part], name))
