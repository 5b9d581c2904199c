"""``python -m fucina.conformance explain``: a clause with everything that belongs to it.  Needs the library alone."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fucina.conformance import index
from fucina.conformance.errors import UsageError, suggestion
from fucina.conformance.options import Parser
from fucina.spec import clauses as specification

if TYPE_CHECKING:
    from fucina.spec.clauses import Clause

__all__ = ["explain", "listing", "main"]

_SECTIONS = {
    "spec": "declared in fucina.spec",
    "reference": "reference",
    "fast": "fast, Python",
    "c": "fast, C",
    "tests": "tests",
    "vectors": "vectors",
    "faults": "planted faults",
}
_WIDTH = 110
_ROLE = re.compile(r":[a-z]+:`([^`]+)`")
_LITERAL = re.compile(r"``([^`]+)``")
_CODE_BLOCK = re.compile(r"^ *\.\. code-block:: \w+\n\n?", re.MULTILINE)


def listing() -> Iterator[str]:
    """Yield the lines of ``explain --list``: every clause with its title, by chapter."""
    clauses = specification.load()
    width = max(map(len, clauses))
    chapter = ""
    for clause in clauses.values():
        if clause.chapter != chapter:
            chapter = clause.chapter
            yield f"{chapter}:"
        yield f"  {clause.id:<{width}}  {clause.title}"


def explain(clause_id: str) -> str:
    """Return the explanation of a clause as text.

    Raises
    ------
    UsageError
        If there is no such clause.
    """
    clauses = specification.load()
    wanted = clause_id.strip().upper()
    if wanted not in clauses:
        raise UsageError(
            f"there is no clause {clause_id!r}{suggestion(wanted, clauses)}\n"
            "  python -m fucina.conformance explain --list   shows them all"
        )
    return "\n".join(_lines(clauses[wanted], index.load().get(wanted)))


def _plain(text: str) -> str:
    """Return a text without the marks that only a page needs; formulas and examples stay as they are."""
    text = re.sub(r"\A\*\*(.+?)\*\*", r"\1", text, flags=re.DOTALL)
    return _LITERAL.sub(r"`\1`", _ROLE.sub(r"\1", _CODE_BLOCK.sub("", text)))


def _lines(clause: Clause, entry: index.Entry | None) -> Iterator[str]:
    yield f"{clause.id}: {clause.title}"
    yield f"chapter {clause.chapter}"
    yield ""
    yield textwrap.indent(_plain(clause.text), "  ")
    yield ""
    if clause.functions:
        yield from textwrap.wrap("functions: " + ", ".join(clause.functions), _WIDTH, subsequent_indent="  ")
    if clause.source:
        yield f"documents: {clause.source}"
    if clause.decision:
        yield f"decided:   {clause.decision}"
    for key, title in _SECTIONS.items():
        places: Sequence[index.Place] = entry[key] if entry else []  # type: ignore[literal-required]  # a key of Entry
        if not places and key == "spec":
            continue
        yield ""
        yield f"{title}:" if places else f"{title}: none"
        width = min(max((len(p["name"]) for p in places), default=0), 60)
        for place in places:
            where = f"{place['path']}:{place['line']}" if place["line"] else place["path"]
            yield f"  {place['name']:<{width}}  {where}"
            if place["text"]:
                yield from textwrap.wrap(_plain(place["text"]), _WIDTH, initial_indent="    ", subsequent_indent="    ")


def main(arguments: Sequence[str]) -> int:
    """Run the subcommand and return its exit code."""
    parser = Parser(
        prog="python -m fucina.conformance explain",
        description="Print a clause of the specification: its text, the functions of the reference and of the C core "
        "that implement it, the tests and vectors that check it, the faults planted to see whether the tests notice.",
        epilog="example: python -m fucina.conformance explain RNG-GAUSS-1",
    )
    parser.add_argument("clause", nargs="*", metavar="CLAUSE", help="id of a clause, such as RNG-GAUSS-1")
    parser.add_argument("--list", action="store_true", help="list all clauses with their titles")
    options = parser.parse_args(arguments)
    if options.list == bool(options.clause):
        parser.error("name a clause, or ask for --list")
    if options.list:
        print("\n".join(listing()))
    else:
        print("\n\n\n".join(explain(one) for one in options.clause))
    return 0
