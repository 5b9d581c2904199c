"""Pytest plugin: every example of the documentation, on each implementation and in lockstep.

A document is collected three times.  On ``reference`` and on ``fast`` its examples run with ``fucina`` bound to that
implementation, and the printed results are compared with the page.  In ``lockstep`` each example runs on both, and
every name that it binds must be the same on both: type, shape and bytes.  An example that a page shows and no run
collected is an error.

The specification and the docstrings take ``np`` and ``fucina`` for granted.  Any other page begins with nothing and has
to import what it uses, for that is where its readers begin.

What a name holds may be the system's and no answer of the library: an open file, a folder, a process that has ended,
the words of a message.  A comment on the page, ``.. not compared: file, folder``, leaves such names out of the
comparison; everything else about their examples is as for all.
"""

from __future__ import annotations

import builtins
import copy
import doctest
import importlib
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest
from sybil import Document, Example, Region, Sybil
from sybil.document import PythonDocStringDocument
from sybil.integration.pytest import pytest_integration as integration  # a name with pytest_ would be taken for a hook
from sybil.parsers import markdown, rest
from sybil.region import Lexeme

from fucina.spec import clauses

Evaluator = Callable[[Example], str | None]
Parser = Callable[[Document], Iterable[Region]]

IMPLEMENTATIONS = ("fucina.reference", "fucina.fast")
OPEN_TO_ALL = {"errata", "crosswalk"}  # chapters without clauses
ROOT = Path(__file__).resolve().parents[2]
SPEC = ROOT / "spec" / "text"
PRODUCTION_IMPORT = "import fucina.fast as fucina"
NOT_COMPARED = re.compile(r"^\.\. not compared: (.+)$", re.MULTILINE)
RST, MARKDOWN, PYTHON = ("*.rst",), ("*.md",), ("*.py",)
PARSERS: dict[tuple[str, ...], tuple[Parser, ...]] = {
    RST: (rest.DocTestParser(doctest.ELLIPSIS), rest.PythonCodeBlockParser()),
    MARKDOWN: (markdown.PythonCodeBlockParser(),),
    PYTHON: (rest.DocTestParser(doctest.ELLIPSIS),),
}


def _fresh(module: str, page: str) -> dict[str, Any]:
    granted = {"np": np, "fucina": importlib.import_module(module)}
    alone = Path(page).suffix != ".py" and SPEC not in Path(page).parents
    return {"__name__": "__example__"} | ({} if alone else granted)


def _on(evaluate: Evaluator, example: Example, module: str, namespace: dict[str, Any]) -> str | None:
    """Evaluate an example with ``fucina`` meaning ``module``, whatever the page imports."""
    turned = copy.copy(example)
    turned.namespace = namespace
    wanted = f"import {module} as fucina"
    if isinstance(example.parsed, Lexeme):
        source = example.parsed.replace(PRODUCTION_IMPORT, wanted)
        turned.parsed = Lexeme(source, example.parsed.offset, example.parsed.line_offset)
    elif PRODUCTION_IMPORT in example.parsed.source:
        turned.parsed = copy.copy(example.parsed)
        turned.parsed.source = example.parsed.source.replace(PRODUCTION_IMPORT, wanted)
    try:
        return evaluate(turned)
    finally:  # what was shown last would live on, an array would pin its storage
        vars(builtins).pop("_", None)


def _bits(value: Any) -> object:
    """Return what must be equal on both implementations, or None for things that carry no value."""
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, float):
        return "float", struct.pack("<d", value)
    if isinstance(value, bool | int | str | bytes | bytearray):
        return type(value).__name__, value
    if isinstance(value, tuple | list):
        return type(value).__name__, [_bits(v) for v in value]
    if isinstance(value, dict):
        return {k: _bits(v) for k, v in value.items()}
    if isinstance(value, ModuleType | FunctionType | type):
        return None
    plain: Any = object.__repr__  # which only tells the address
    shown = "" if type(value).__repr__ is plain else repr(value)
    return type(value).__name__, shown


def _claimed(example: Example, module: str) -> bool:
    """Whether an implementation claims the chapter that an example stands in; other pages are for all."""
    chapter = Path(example.path).stem
    capabilities: frozenset[str] = importlib.import_module(module).capabilities
    return chapter not in clauses.chapters() or chapter in capabilities or chapter in OPEN_TO_ALL


def _alone(module: str) -> Callable[[Evaluator, Example], str | None]:
    def run(evaluate: Evaluator, example: Example) -> str | None:
        if not _claimed(example, module):
            return None
        if "begun" not in example.namespace:
            example.namespace.update(_fresh(module, example.path), begun=True)
        return _on(evaluate, example, module, example.namespace)

    return run


def _left_out(text: str) -> set[str]:
    """Return the names that a page's comments leave out of the comparison."""
    return {name for names in NOT_COMPARED.findall(text) for name in names.split(", ")}


def _lockstep(evaluate: Evaluator, example: Example) -> str | None:
    if not all(_claimed(example, module) for module in IMPLEMENTATIONS):
        return None
    fresh = {module: _fresh(module, example.path) for module in IMPLEMENTATIONS}
    spaces = example.namespace.setdefault("spaces", fresh)
    for module in IMPLEMENTATIONS:
        if complaint := _on(evaluate, example, module, spaces[module]):
            return complaint
    one, other = (spaces[module] for module in IMPLEMENTATIONS)
    for name in sorted((one.keys() | other.keys()) - {"fucina", "__builtins__"} - _left_out(example.document.text)):
        left, right = _bits(one.get(name)), _bits(other.get(name))
        if left != right:
            return f"{name} differs: {left!r} on {IMPLEMENTATIONS[0]}, {right!r} on {IMPLEMENTATIONS[1]}"
    return None


def _judged(parser: Parser, run: Callable[[Evaluator, Example], str | None]) -> Parser:
    def parse(document: Document) -> Iterable[Region]:
        for region in parser(document):
            evaluate = region.evaluator
            region.evaluator = lambda example, evaluate=evaluate: run(evaluate, example)
            yield region

    return parse


def _sybils() -> list[Sybil]:
    runs = {"reference": _alone("fucina.reference"), "fast": _alone("fucina.fast"), "lockstep": _lockstep}
    return [
        Sybil(
            parsers=[_judged(p, run) for p in parsers],
            patterns=patterns,
            document_types={".py": PythonDocStringDocument},
            path=str(ROOT),
            name=name,
        )
        for name, run in runs.items()
        for patterns, parsers in PARSERS.items()
    ]


pytest_collect_file = integration(*_sybils())


def _blocks(path: Path) -> int:
    """Count the examples of a document with none of the parsers' help."""
    text = path.read_text(encoding="utf-8")
    prompts = len(re.findall(r"^\s*>>> (?!#)\S", text, re.MULTILINE))
    fences = {".rst": r"^\s*\.\. code-block:: python$", ".md": r"^```python$"}.get(path.suffix)
    return prompts + (len(re.findall(fences, text, re.MULTILINE)) if fences else 0)


def _pages(session: pytest.Session) -> set[Path]:
    """Return the documents that were asked for and have examples."""
    kinds = {pattern.lstrip("*") for patterns in PARSERS for pattern in patterns}
    asked = [session.config.invocation_params.dir / argument for argument in session.config.args]
    found = {path for place in asked for path in ([place] if place.is_file() else place.rglob("*"))}
    found = {path.resolve() for path in found if path.suffix in kinds and "_build" not in path.parts}
    return {path for path in found - {Path(__file__).resolve()} if _blocks(path)}


def pytest_collection_finish(session: pytest.Session) -> None:
    """Hold the number of collected examples to that of the blocks on the pages, also where none was collected."""
    collected = Counter(item.path.resolve() for item in session.items)
    for path in sorted(collected.keys() | _pages(session)):
        if collected[path] != 3 * _blocks(path):
            raise pytest.UsageError(
                f"{path}: {_blocks(path)} examples on the page, {collected[path]} collected in three runs"
            )
        text = path.read_text(encoding="utf-8")
        for name in _left_out(text):
            if not re.search(rf"\b{name}\b", NOT_COMPARED.sub("", text)):
                raise pytest.UsageError(f"{path}: {name} is left out of the comparison and stands nowhere")
