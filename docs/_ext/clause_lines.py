"""Turns the ``Clauses: RNG-AT-1, ...`` line of a docstring into links to the specification.

The line is taken out before numpydoc sections are parsed, which would read it as part of one, and put back as the last
paragraph after that.
"""

from __future__ import annotations

import re

from sphinx.application import Sphinx

LINE = re.compile(r"^Clauses?: (?P<ids>[A-Z0-9]+-[A-Z0-9]+-\d+(?:, *[A-Z0-9]+-[A-Z0-9]+-\d+)*)\.?$")
BEFORE_NAPOLEON, AFTER_NAPOLEON = 100, 900

_found: dict[str, list[str]] = {}


def _take(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    joined: list[str] = []
    for line in lines:  # a long list of clauses may go on in the next line
        if joined and joined[-1].startswith("Clauses:") and joined[-1].endswith(","):
            joined[-1] += " " + line.strip()
        else:
            joined.append(line)
    matches = [LINE.match(line.strip()) for line in joined]
    _found[name] = [i for m in matches if m for i in re.split(r", *", m["ids"])]
    lines[:] = [line for line, match in zip(joined, matches, strict=True) if not match]


def _put(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    if ids := _found.pop(name, None):
        lines += ["", "*Clauses:* " + ", ".join(f":clause:`{i}`" for i in ids), ""]


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect both halves around napoleon."""
    app.connect("autodoc-process-docstring", _take, priority=BEFORE_NAPOLEON)
    app.connect("autodoc-process-docstring", _put, priority=AFTER_NAPOLEON)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
