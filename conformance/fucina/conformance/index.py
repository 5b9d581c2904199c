"""Where each clause lives: the generated index of code, tests, vectors and planted faults.

The build writes ``_index.json`` into this package; in a source tree it is made anew, so that it is never stale.
"""

from __future__ import annotations

import importlib.util
import json
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypedDict

__all__ = ["Entry", "Place", "load"]


class Place(TypedDict):
    """One thing that belongs to a clause: its name, its file relative to the repository, its line, and a remark."""

    name: str
    path: str
    line: int
    text: str


class Entry(TypedDict):
    """Everything that belongs to one clause."""

    spec: list[Place]
    reference: list[Place]
    fast: list[Place]
    c: list[Place]
    tests: list[Place]
    vectors: list[Place]
    faults: list[Place]


def _source_tree() -> Path | None:
    root = Path(__file__).resolve().parents[3]
    return root if (root / "conformance" / "build_index.py").is_file() and (root / "spec" / "text").is_dir() else None


@cache
def load() -> dict[str, Entry]:
    """Return the index: clause id -> entry.

    Raises
    ------
    FileNotFoundError
        If the package was installed without its index and is not in a source tree.
    """
    root = _source_tree()
    document: dict[str, Any]
    if root is not None:
        spec = importlib.util.spec_from_file_location("_fucina_build_index", root / "conformance" / "build_index.py")
        assert spec is not None, "a file with the suffix .py has a loader"
        assert spec.loader is not None, "and the loader is set"
        builder = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(builder)
        document = builder.build(root)
    else:
        document = json.loads((files("fucina.conformance") / "_index.json").read_text(encoding="utf-8"))
    entries: dict[str, Entry] = document["clauses"]
    return entries
