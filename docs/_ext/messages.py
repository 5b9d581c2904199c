"""What the pages of the guide show: the messages of errors themselves, said by ``fucina.fast`` while the page is made.

In the source the examples leave open what is no part of the contract (``...``), and are tested so on both
implementations.  Here each of them is executed once more, and the message that it raises, or prints, takes the place of
the pattern.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import re
import traceback
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

PAGES = "guide/"
THREAD = re.compile(r"(?<=thread )\d+|(?<=began it \()\d+")
"""The number that the system gave a thread: no page is to differ from build to build."""


def _ran(source: str, space: dict[str, Any], name: str) -> tuple[str | None, str]:
    """Run an example as the console would; return what it raised, in words, and what it printed."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(source, name, "single"), space)
    except Exception as error:
        return THREAD.sub("…", traceback.format_exception_only(error)[0].strip()), printed.getvalue()
    return None, printed.getvalue()


def _open(block: nodes.Node) -> bool:
    """Whether an example leaves words open."""
    wanted = doctest.DocTestParser().get_examples(block.astext()) if isinstance(block, nodes.doctest_block) else ()
    return any("..." in (example.exc_msg or example.want) for example in wanted)


def _filled(block: nodes.doctest_block, space: dict[str, Any], page: str) -> None:
    lines = block.astext().splitlines()
    for example in doctest.DocTestParser().get_examples(block.astext()):
        said, printed = _ran(example.source, space, page)
        if (said is None) != (example.exc_msg is None):
            raise ValueError(f"{page}: {example.source!r} raised {said}")
        if said and example.exc_msg:
            place = lines.index(example.exc_msg.strip(), example.lineno)
            lines[place] = said
        elif "..." in example.want and example.want.count("\n") == printed.count("\n") == 1:
            lines[lines.index(example.want.strip(), example.lineno)] = printed.strip()
    text = "\n".join(lines)
    block.rawsource = text
    block.children = []
    block.append(nodes.Text(text))


def fill(app: Sphinx, doctree: nodes.document) -> None:
    """Put the messages into a page of the guide, if it leaves any open."""
    page = app.env.docname
    blocks = list(doctree.findall(lambda node: isinstance(node, nodes.literal_block | nodes.doctest_block)))
    if not page.startswith(PAGES) or not any(_open(block) for block in blocks):
        return
    app.env.note_dependency(__file__)
    for part in ("fast", "spec"):  # what can change the messages
        for path in Path(importlib.import_module(f"fucina.{part}").__path__[0]).rglob("*.py"):
            app.env.note_dependency(str(path))
    space: dict[str, Any] = {"__name__": "__example__"}
    for block in blocks:
        if isinstance(block, nodes.doctest_block):
            _filled(block, space, page)
        elif isinstance(block, nodes.literal_block) and block.get("language") == "python":
            exec(compile(block.astext(), page, "exec"), space)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect to the reading of pages."""
    app.connect("doctree-read", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
