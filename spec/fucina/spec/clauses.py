r"""The clauses of the specification, read from its chapters.

The chapters are the one source; nothing about a clause is written down twice.  A clause is a directive in a chapter::

    .. clause:: RNG-AT-1

       **Counter form of the stream.** Text, formulas, tables and examples.

       :functions: rng.at
       :source: 6.8
       :decision: 4.1

``functions`` lists public names relative to an implementation, or says ``none``; an underscore at the end of a name is
written ``\_``, for it would make a link.  ``decision`` may be absent.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType

__all__ = ["Clause", "area_of", "chapter_text", "chapters", "examples", "load", "parse"]

_ID = re.compile(r"([A-Z]+)-([A-Z][A-Z0-9]*)-([1-9][0-9]*)")
_DIRECTIVE = re.compile(r"^\.\. clause::(.*)$")
_TITLE = re.compile(r"\*\*(.+?)\.?\*\*", re.DOTALL)
_FIELD = re.compile(r"^:([a-z]+):\s*(.*)$")
_FIELDS = {"functions", "source", "decision"}


@dataclass(frozen=True, slots=True)
class Clause:
    """One rule of the contract.

    Parameters
    ----------
    id : str
        ``AREA-TOPIC-N``.
    chapter : str
        Name of the chapter that holds it.
    title : str
        The bold words that it starts with, without the full stop.
    text : str
        Everything between the directive and the fields, as reStructuredText without the directive's indentation.
    functions : tuple of str
        The public names that it governs, relative to an implementation; empty where the clause says ``none``.
    source : str
        The sections of the original documentation, or ``own``.
    decision : str or None
        The entry of the list of decisions that settled it, ``here``, or None.
    """

    id: str
    chapter: str
    title: str
    text: str
    functions: tuple[str, ...]
    source: str
    decision: str | None

    @property
    def area(self) -> str:
        """The first part of the id."""
        return area_of(self.id)


def area_of(clause: str) -> str:
    """Return the area of a clause id: ``RNG`` of ``RNG-AT-1``.

    Raises
    ------
    ValueError
        When the id has not the form AREA-TOPIC-N.
    """
    match = _ID.fullmatch(clause)
    if match is None:
        raise ValueError(f"a clause id has the form AREA-TOPIC-N, got {clause!r}")
    return match[1]


def parse(chapter: str, text: str) -> Iterator[Clause]:
    """Yield the clauses of one chapter, in order.

    Parameters
    ----------
    chapter : str
        The chapter's name.
    text : str
        Its reStructuredText.

    Raises
    ------
    ValueError
        For a malformed id, a clause without title, functions or source, or an unknown or repeated field.
    """
    lines = text.splitlines()
    starts = [i for i, line in enumerate(lines) if _DIRECTIVE.match(line)]
    for start in starts:
        name = lines[start].partition("::")[2].strip()
        area_of(name)
        end = start + 1
        while end < len(lines) and (not lines[end] or lines[end][0] == " "):
            end += 1
        yield _clause(name, chapter, textwrap.dedent("\n".join(lines[start + 1 : end])).strip().splitlines())


def _clause(name: str, chapter: str, lines: list[str]) -> Clause:
    fields: dict[str, str] = {}
    while lines and (match := _FIELD.match(lines[-1])):
        key, value = match.groups()
        if key not in _FIELDS or key in fields or not value:
            raise ValueError(f"{name} in chapter {chapter}: unknown, repeated or empty field :{key}:")
        fields[key] = value
        lines.pop()
    text = "\n".join(lines).strip()
    title = _TITLE.match(text)
    missing = [part for part in ("functions", "source") if part not in fields] + ([] if title else ["title"])
    if title is None or missing:
        raise ValueError(f"{name} in chapter {chapter} lacks its {', '.join(missing)}")
    functions = fields["functions"].replace("\\_", "_")
    return Clause(
        id=name,
        chapter=chapter,
        title=" ".join(title[1].split()),
        text=text,
        functions=() if functions == "none" else tuple(part.strip() for part in functions.split(",")),
        source=fields["source"],
        decision=fields.get("decision"),
    )


def chapter_text(name: str) -> str:
    """Return the reStructuredText of a chapter, from the installed package or from the source tree.

    Raises
    ------
    FileNotFoundError
        When there is no such chapter.
    """
    installed = resources.files("fucina.spec") / "text" / f"{name}.rst"
    if installed.is_file():
        return installed.read_text(encoding="utf-8")
    return (Path(__file__).parents[2] / "text" / f"{name}.rst").read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def chapters() -> tuple[str, ...]:
    """Return the names of the chapters in the order of the index page."""
    toctree = chapter_text("index").partition(".. toctree::")[2]
    return tuple(re.findall(r"^   ([a-z]+)$", toctree, re.MULTILINE))


@lru_cache(maxsize=1)
def load() -> MappingProxyType[str, Clause]:
    """Return all clauses by id, in document order.

    Raises
    ------
    ValueError
        When a clause is malformed or an id stands twice.
    """
    found: dict[str, Clause] = {}
    for chapter in chapters():
        for clause in parse(chapter, chapter_text(chapter)):
            if clause.id in found:
                raise ValueError(f"{clause.id} stands in chapter {found[clause.id].chapter} and again in {chapter}")
            found[clause.id] = clause
    return MappingProxyType(found)


_EXAMPLE = re.compile(r"^ *>>> ", re.MULTILINE)
_SHOWN_ID = re.compile(r"^ *(?:[a-z.]+\.\w+: )?([A-Z]+-[A-Z][A-Z0-9]*-[1-9][0-9]*)(?:: .*)?$", re.MULTILINE)


@lru_cache(maxsize=1)
def examples() -> MappingProxyType[str, tuple[str, tuple[str, ...]]]:
    """Return the texts that contain examples, by clause id, and the ids of all clauses that the examples show.

    The text is that of the chapter from the clause to the next one, so what stands between two clauses belongs to the
    first.  Its examples need only ``fucina`` and ``np``.  An example shows its own clause, and those whose ids are in
    its output, such as that of an error.
    """
    found: dict[str, tuple[str, tuple[str, ...]]] = {}
    for chapter in chapters():
        _, *parts = re.split(r"^\.\. clause:: (.*)$", chapter_text(chapter), flags=re.MULTILINE)
        for name, text in zip(parts[::2], parts[1::2], strict=True):
            if _EXAMPLE.search(text):
                found[name] = text, tuple(dict.fromkeys((name, *_SHOWN_ID.findall(text))))
    return MappingProxyType(found)
