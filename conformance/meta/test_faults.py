"""The planted faults are what their lists say; ``python -m conformance.meta`` tries them out."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import fucina.fast
from fucina.spec import clauses

from .faults import CORE, Fault, c_faults, every_fault, python_faults

LIST = CORE / "core" / "faults.def"
PLANTED = re.compile(r"\bFC_PLANT(?:ED)?\((\w+)")


def planted() -> set[str]:
    """The names that the C sources plant; in ``fault.h`` the macros themselves are defined."""
    sources = [p for p in CORE.rglob("*.[ch]") if p.name != "fault.h"]
    return {name for path in sources for name in PLANTED.findall(path.read_text(encoding="utf-8"))}


def test_every_line_of_the_list_is_read() -> None:
    lines = [line for line in LIST.read_text(encoding="utf-8").splitlines() if line.startswith("FC_FAULT(")]
    assert len(lines) == len(c_faults())


def test_names_are_unique() -> None:
    counts = Counter(fault.name for fault in every_fault())
    assert [name for name, count in counts.items() if count > 1] == []


def test_there_are_faults_of_both_kinds_in_all_chapters_of_the_library() -> None:
    kinds = Counter(fault.kind for fault in every_fault())
    assert kinds["C"] >= 15
    assert kinds["Python"] >= 15
    chapters = {fault.clause.partition("-")[0] for fault in every_fault()}
    assert chapters >= {"NUM", "DTYPE", "BRIDGE", "RNG", "BLOCK", "FPENV", "ERR"}


def test_the_formats_have_faults_in_every_layer() -> None:
    of_blocks = Counter((fault.kind, fault.implementation) for fault in every_fault(["BLOCK-"]))
    assert min(of_blocks.values()) >= 20
    assert len(of_blocks) == 3


@pytest.mark.parametrize("fault", every_fault(), ids=lambda fault: str(fault.name))
def test_the_clause_exists(fault: Fault) -> None:
    assert fault.clause in clauses.load()
    assert fault.text


def test_what_is_listed_is_planted_in_c_and_what_is_planted_is_listed() -> None:
    assert planted() == {fault.name for fault in c_faults()}


@pytest.mark.parametrize("fault", python_faults(), ids=lambda fault: str(fault.name))
def test_the_replacement_fits_the_source(fault: Fault) -> None:
    assert fault.replacement is not None
    source = fault.replacement.path.read_text(encoding="utf-8")
    wrong = fault.replacement.apply(source)
    assert wrong != source
    compile(wrong, fault.name, "exec")


def test_a_build_for_use_has_no_fault_in_it() -> None:
    native = Path(fucina.fast._native.__file__)
    assert b"FUCINA_FAULT" not in native.read_bytes()
