"""``.. markdown-file:: ../CONTRIBUTING.md`` - a Markdown file of the source tree as part of a page.

The files at the root of the tree are Markdown, for those who meet them there; here they become the same nodes as any
other page.  Headings, paragraphs, lists, tables, code and links are known; anything else stops the build.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from markdown_it import MarkdownIt
from markdown_it.token import Token
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parents[2]
CONTAINERS = {
    "paragraph": nodes.paragraph,
    "bullet_list": nodes.bullet_list,
    "ordered_list": nodes.enumerated_list,
    "list_item": nodes.list_item,
    "strong": nodes.strong,
    "em": nodes.emphasis,
    "thead": nodes.thead,
    "tbody": nodes.tbody,
    "tr": nodes.row,
}
"""Tokens that open and close, and the node that each becomes."""


class MarkdownFile(SphinxDirective):
    """The directive."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the file; its sections are sections of the page."""
        path = (Path(self.env.doc2path(self.env.docname)).parent / self.arguments[0]).resolve()
        self.env.note_dependency(str(path))
        tokens = MarkdownIt("commonmark").enable("table").parse(path.read_text(encoding="utf-8"))
        top = nodes.Element()
        self._stack: list[tuple[int, nodes.Element]] = [(0, top)]
        self._blocks(iter(tokens))
        return top.children

    def _blocks(self, tokens: Iterator[Token]) -> None:
        inside: list[nodes.Element] = []
        for token in tokens:
            here = inside[-1] if inside else self._stack[-1][1]
            kind, _, end = token.type.rpartition("_")
            if token.type == "heading_open":
                self._section(int(token.tag[1]), next(tokens))
                next(tokens)
            elif token.type == "inline":
                here.extend(self._inline(iter(token.children or [])))
            elif token.type == "fence":
                here += nodes.literal_block(token.content, token.content, language=token.info or "text")
            elif token.type == "table_open":
                inside += self._table(here)
            elif token.type == "table_close":
                del inside[-2:]
            elif kind in ("th", "td"):
                if end == "open":
                    entry, cell = nodes.entry(), nodes.paragraph()
                    entry += cell
                    here += entry
                    inside.append(cell)
                else:
                    inside.pop()
            elif kind in CONTAINERS and end == "open":
                node = CONTAINERS[kind]()
                here += node
                inside.append(node)
            elif kind in CONTAINERS:
                node = inside.pop()
                if isinstance(node, nodes.thead):  # the number of columns is known only now
                    self._columns(inside[-1], len(node[0].children))
            else:
                raise self.error(f"{token.type} is not understood")

    def _section(self, level: int, title: Token) -> None:
        while self._stack[-1][0] >= level:
            self._stack.pop()
        section = nodes.section(ids=[nodes.make_id(title.content)], names=[nodes.fully_normalize_name(title.content)])
        section += nodes.title("", "", *self._inline(iter(title.children or [])))
        self._stack[-1][1].append(section)
        self._stack.append((level, section))

    def _table(self, here: nodes.Element) -> list[nodes.Element]:
        table, group = nodes.table(), nodes.tgroup()
        table += group
        here += table
        return [table, group]

    def _columns(self, group: nodes.Element, count: int) -> None:
        group["cols"] = count
        group[0:0] = [nodes.colspec(colwidth=1) for _ in range(count)]

    def _inline(self, tokens: Iterator[Token]) -> list[nodes.Node]:
        top = nodes.Element()
        inside: list[nodes.Element] = [top]
        for token in tokens:
            kind, _, end = token.type.rpartition("_")
            if token.type == "text":
                inside[-1] += nodes.Text(token.content)
            elif token.type in ("softbreak", "hardbreak"):
                inside[-1] += nodes.Text("\n")
            elif token.type == "code_inline":
                inside[-1] += nodes.literal(token.content, token.content)
            elif token.type == "link_open":
                node = self._link(str(token.attrs["href"]))
                inside[-1] += node
                inside.append(node[0] if isinstance(node, addnodes.pending_xref) else node)  # type: ignore[arg-type]
            elif kind in CONTAINERS and end == "open":
                inside[-1] += CONTAINERS[kind]()
                inside.append(inside[-1][-1])  # type: ignore[arg-type]
            elif end == "close":
                inside.pop()
            else:
                raise self.error(f"{token.type} is not understood")
        return top.children

    def _link(self, target: str) -> nodes.Element:
        if "://" in target:
            return nodes.reference(refuri=target)
        path = (ROOT / target).resolve()
        if not path.exists():
            raise self.error(f"the link {target!r} leads nowhere")
        for folder, start in ((ROOT / "docs", "/"), (ROOT / "spec" / "text", "/spec/")):
            if path.suffix == ".rst" and path.is_relative_to(folder):
                page = start + str(path.relative_to(folder).with_suffix(""))
                link = addnodes.pending_xref(
                    "", refdomain="std", reftype="doc", reftarget=page, refexplicit=True, refwarn=True
                )
                link += nodes.inline()
                return link
        return nodes.inline()  # a file of the tree that is no page


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("markdown-file", MarkdownFile)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
