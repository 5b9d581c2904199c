"""Directives that show the recorded results of ``docs/records`` as tables.

A record is what a job of the project wrote when it last ran clean; a page shows it and computes nothing anew.  A
missing record stops the build.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import OptionSpec

RECORDS = Path(__file__).parents[1] / "records"

Cell: TypeAlias = str | nodes.Node
Table: TypeAlias = tuple[str, Sequence[str], Iterable[Sequence[Cell]]]


def recorded(directive: SphinxDirective, file: str, made_by: str) -> Any:
    """Return a record; the page depends on it, and one that is missing stops the build."""
    path = RECORDS / file
    directive.env.note_dependency(str(path))
    if not path.exists():
        raise directive.error(f"docs/records/{file} is missing: run {made_by}")
    return json.loads(path.read_text(encoding="utf-8"))


def figure(look: str, drawing: str, caption: str) -> nodes.figure:
    """Return a drawing in SVG and its caption; ``look`` is a class of the style sheet."""
    made = nodes.figure(classes=[look])
    made += nodes.raw("", drawing, format="html")
    made += nodes.caption(caption, caption)
    return made


def clause_reference(clause: str) -> nodes.Node:
    """Return a link to a clause of the specification."""
    reference = addnodes.pending_xref(
        "", refdomain="std", reftype="clause", reftarget=clause, refexplicit=False, refwarn=True
    )
    reference += nodes.literal(clause, clause)
    return reference


def chapter_reference(chapter: str) -> nodes.Node:
    """Return a link to a chapter of the specification."""
    reference = addnodes.pending_xref(
        "", refdomain="std", reftype="doc", reftarget=f"/spec/{chapter}", refexplicit=True, refwarn=True
    )
    reference += nodes.inline(chapter, chapter)
    return reference


def short(label: str) -> str:
    """Return the name of an implementation and its level, as narrow as a column: ``fast, avx2``."""
    return label.removeprefix("fucina.").replace("[", ", ").rstrip("]")


def missed(text: str) -> nodes.Node:
    """Return a figure that misses its goal, set apart from the others."""
    return nodes.strong(text, text)


def render(caption: str, header: Sequence[str], rows: Iterable[Sequence[Cell]], look: str = "") -> nodes.table:
    """Return a docutils table of figures; ``look`` is a class of the style sheet."""
    table = nodes.table(classes=["figures", look] if look else ["figures"])
    table += nodes.title(caption, caption)
    group = nodes.tgroup(cols=len(header))
    table += group
    for _ in header:
        group += nodes.colspec(colwidth=1)
    head, body = nodes.thead(), nodes.tbody()
    group += head
    group += body
    head += _line(header)
    for row in rows:
        body += _line(row)
    return table


def folded(node: nodes.Node) -> list[nodes.Node]:
    """Return a table inside of an element that opens at a click or a key, with its caption to click at."""
    if not isinstance(node, nodes.table):
        return [node]
    rows = len(list(node.findall(nodes.row))) - 1
    caption = node.next_node(nodes.title)
    assert caption is not None
    head = f"<details class='folded'><summary>{caption.astext()}: {rows} rows</summary>"
    node.remove(caption)
    return [nodes.raw("", head, format="html"), node, nodes.raw("", "</details>", format="html")]


def _line(cells: Sequence[Cell]) -> nodes.row:
    row = nodes.row()
    for cell in cells:
        entry = nodes.entry()
        paragraph = nodes.paragraph()
        paragraph += nodes.Text(cell) if isinstance(cell, str) else cell
        entry += paragraph
        row += entry
    return row


class Record(SphinxDirective):
    """Base of the directives: read the record, note the dependency, show its facts and its tables."""

    file: str
    look: ClassVar[str] = ""

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the directive."""
        self.env.note_dependency(__file__)
        data = recorded(self, self.file, "the nox session that writes it")
        found: list[nodes.Node] = [nodes.paragraph("", self._facts(data))]
        found += [render(*table, self.look) for table in self._tables(data)]
        return found

    def _facts(self, data: Any) -> str:
        """Return one sentence about when, where and how much."""
        raise NotImplementedError

    def _tables(self, data: Any) -> Iterable[Table]:
        """Return the tables: caption, header, rows."""
        raise NotImplementedError


class Matrix(Record):
    """``.. conformance-matrix::`` - clause by implementation, from the last recorded run."""

    file = "conformance.json"
    look = "matrix"

    def _facts(self, data: Any) -> str:
        machine = data["machine"]
        return (
            f"Recorded {data['created'][:10]} on {machine['arch']}, {machine['python']}, numpy {machine['numpy']}: "
            f"{data['summary']}."
        )

    def _tables(self, data: Any) -> Iterable[Table]:
        labels = [t["label"] for t in data["targets"]]
        cells = {(c["clause"], c["target"]): c for c in data["cells"]}
        for chapter in dict.fromkeys(c["chapter"] for c in data["clauses"]):
            rows = []
            for clause in (c for c in data["clauses"] if c["chapter"] == chapter):
                row: list[Cell] = [clause_reference(clause["id"]), clause["title"]]
                rows.append(row + [self._cell(cells[clause["id"], label]) for label in labels])
            yield f"Chapter {chapter}", ["clause", "rule", *map(short, labels)], rows

    def _cell(self, cell: Any) -> Cell:
        checks = sum(cell["counts"].values())
        return str(checks) if cell["state"] == "ok" else missed(cell["state"])


class Summary(Record):
    """``.. conformance-summary::`` - chapter by implementation, from the last recorded run."""

    file = "conformance.json"
    look = "summary"

    def _facts(self, data: Any) -> str:
        checks = data["totals"]["passed"] + data["totals"]["failed"]
        return f"{len(data['clauses'])} clauses, {checks:,} checks, recorded {data['created'][:10]}."

    def _tables(self, data: Any) -> Iterable[Table]:
        labels = [t["label"] for t in data["targets"]]
        states = {(c["clause"], c["target"]): c["state"] for c in data["cells"]}
        rows: list[list[Cell]] = []
        for chapter in dict.fromkeys(c["chapter"] for c in data["clauses"]):
            ids = [c["id"] for c in data["clauses"] if c["chapter"] == chapter]
            row: list[Cell] = [chapter_reference(chapter), str(len(ids))]
            for label in labels:
                agree = sum(states[i, label] == "ok" for i in ids)
                row.append("agree" if agree == len(ids) else missed(f"{agree} agree"))
            rows.append(row)
        yield "Clauses, by chapter", ["chapter", "clauses", *map(short, labels)], rows


class Elsewhere(Record):
    """``.. elsewhere-record::`` - one digest per vector set on all targets."""

    file = "elsewhere.json"

    def _facts(self, data: Any) -> str:
        values = sum(s["values"] for s in data["sets"])
        return (
            f"Recorded {data['date']}: {values:,} values on each of {len(data['targets'])} targets, "
            f"{data['mismatches']} mismatches. " + "; ".join(f"{k}: {v}" for k, v in data["tools"].items()) + "."
        )

    def _tables(self, data: Any) -> Iterable[Table]:
        yield (
            "Targets",
            ["target", "optimisation", "level", "runs", "seconds"],
            [[t["name"], t["optimisation"], t["level"], t["runs"], f"{t['seconds']:.1f}"] for t in data["targets"]],
        )
        yield (
            "One digest per set",
            ["set", "values", "targets that agree", "SHA-256 of the outputs"],
            [
                [s["name"], f"{s['values']:,}", f"{s['targets']} of {len(data['targets'])}", digest(s["sha256"])]
                for s in data["sets"]
            ],
        )


def versions(data: Any) -> str:
    """Return the names and versions of the software that a record was made with."""
    return ", ".join(f"{name} {number}" for name, number in data["versions"].items())


def digest(value: str) -> nodes.Node:
    """Return a digest, shortened to what fits a table."""
    return nodes.literal(value, value[:32] + "…")


class Exhaustive(Record):
    """``.. exhaustive-record::`` - every input of the conversions whose domain can be enumerated."""

    file = "exhaustive.json"

    def _facts(self, data: Any) -> str:
        return (
            f"Recorded {data['date']} on {data['machine']}, levels {', '.join(data['levels'])}: "
            f"{data['values']:,} values, {data['wrong']} wrong, {data['seconds']} s. Versions: {versions(data)}."
        )

    def _tables(self, data: Any) -> Iterable[Table]:
        header = ["conversion", "patterns", *(f"wrong at {level}" for level in data["levels"])]
        rows = [
            [r["conversion"], f"{r['patterns']:,}", *(str(r["wrong"].get(level, "")) for level in data["levels"])]
            for r in data["rows"]
        ]
        yield "All patterns", header, rows


class Faults(Record):
    """``.. fault-score::`` - the planted faults and the test that caught each."""

    file = "meta.json"

    def _facts(self, data: Any) -> str:
        caught = sum(f["caught"] for f in data["faults"])
        first = min(f.get("date", data["date"]) for f in data["faults"])
        when = data["date"] if first == data["date"] else f"{first} to {data['date']}"
        return f"Recorded {when}: {caught} of {len(data['faults'])} planted faults turned the suite red."

    def _tables(self, data: Any) -> Iterable[Table]:
        rows: list[list[Cell]] = []
        for fault in data["faults"]:
            test = fault["by"].partition("::")[2].partition("[")[0] if fault["caught"] else ""
            caught = nodes.literal(test, test) if test else missed("not caught")
            name = nodes.literal(fault["name"], fault["name"])
            rows.append([name, fault["kind"], clause_reference(fault["clause"]), fault["text"], caught])
        yield "Planted faults", ["fault", "in", "clause", "what is wrong", "first test that saw it"], rows


def named_goals(data: Any) -> set[str]:
    """Return the names of the rows of a bench record with a goal of their own; 0.5 and 1 are what any row has."""
    return {r["name"] for r in data["rows"] for g in r["goals"] if g["goal"] not in (0.5, 1.0)}


class Speed(Record):
    """``.. speed-table:: KIND`` - ratios to the peers; KIND is ``goals`` (rows with a goal) or ``casts``.

    With the option ``folded`` each table is folded away under its caption.
    """

    file = "bench_values.json"
    required_arguments = 1
    option_spec: ClassVar[OptionSpec] = {"folded": directives.flag}

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the directive."""
        found = super().run()
        return [made for node in found for made in (folded(node) if "folded" in self.options else [node])]

    def _facts(self, data: Any) -> str:
        machine = data["machine"]
        processor = f"{machine['cpu']}, {machine['cores']} cores, " if "cpu" in machine else ""
        return (
            f"Recorded {data['date']} on {processor}{machine['arch']} ({machine['isa']}), Python {machine['python']}; "
            f"{versions(data)}. {data['method'][0].upper()}{data['method'][1:]}."
        )

    def _tables(self, data: Any) -> Iterable[Table]:
        named = named_goals(data)
        for n in dict.fromkeys(r["n"] for r in data["rows"]):
            rows = [r for r in data["rows"] if r["n"] == n and (r["name"] in named) == (self.arguments[0] == "goals")]
            header = ["work", "ns per item", "against", "its ns per item", "ratio", "±", "goal", "of memcpy"]
            if rows:
                yield f"n = {n:,}", header, [line for r in rows for line in self._lines(r)]

    def _lines(self, row: Any) -> Iterable[Sequence[Cell]]:
        times = {c["label"]: c["ns_per_item"] for c in row["contestants"]}
        ours = next(c["ns_per_item"] for c in row["contestants"] if c["kind"] == "ours")
        for goal in row["goals"]:
            if goal["rival"] is None:
                continue
            ratio = f"{goal['ratio']:.2f}"
            yield [
                row["name"],
                f"{ours:.3f}",
                goal["rival"],
                f"{times[goal['rival']]:.3f}",
                ratio if goal["met"] else missed(ratio),
                f"{goal['spread']:.2f}",
                f"{goal['goal']:.2f}",
                f"{row['of_memcpy']:.2f}",
            ]


class Behind(Record):
    """``.. peer-wins-table:: FILE`` - every row of a bench record in which some peer was faster, and by how much."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the directive, for the record that the page names."""
        self.file = self.arguments[0]
        return super().run()

    def _facts(self, data: Any) -> str:
        return f"{len(self._lines(data))} of {len(data['rows'])} rows."

    def _lines(self, data: Any) -> list[tuple[str, str, str, str, str, str]]:
        found = []
        for row in data["rows"]:
            ours = next(c["ns_per_item"] for c in row["contestants"] if c["kind"] == "ours")
            peers = [(c["ns_per_item"], c["label"]) for c in row["contestants"] if c["kind"] == "peer"]
            its, label = min(peers, default=(ours, ""))
            if its < ours:
                found.append((row["name"], f"{row['n']:,}", label, f"{ours:.3g}", f"{its:.3g}", f"{ours / its:.2f}"))
        return sorted(found, key=lambda line: -float(line[-1]))

    def _tables(self, data: Any) -> Iterable[Table]:
        header = ["work", "values", "fastest", "ours, ns per value", "its", "ours over its"]
        if lines := self._lines(data):
            yield "Rows in which a peer is faster", header, lines


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("conformance-matrix", Matrix)
    app.add_directive("conformance-summary", Summary)
    app.add_directive("elsewhere-record", Elsewhere)
    app.add_directive("exhaustive-record", Exhaustive)
    app.add_directive("fault-score", Faults)
    app.add_directive("peer-wins-table", Behind)
    app.add_directive("speed-table", Speed)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
