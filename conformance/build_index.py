"""Build the index of the clauses: where each one is implemented, tested, backed by vectors, and planted with faults.

``python build_index.py ROOT OUTPUT`` writes it as JSON; meson runs this at build time, with the standard library alone.
It reads ``Clauses: A-B-1, ...`` in Python docstrings, clause ids in comments of the C core, ``@clause(...)`` of the
tests, the manifest of the vectors, and the lists of planted faults.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

KINDS = ("spec", "reference", "fast", "c", "tests", "vectors", "faults")
ID = re.compile(r"\b[A-Z][A-Z0-9]*-[A-Z0-9]+-\d+\b")


EACH_EXAMPLE = "each_example"
"""The decorator of tests with one parameter for each clause that has examples."""


def specification(root: Path) -> Any:
    """Return the module that reads the chapters."""
    if "fucina.spec" not in sys.modules:  # at build time nothing is installed yet
        sys.path.insert(0, str(root / "spec"))
    return importlib.import_module("fucina.spec.clauses")


class Index:
    """The entries under construction, and what did not fit."""

    def __init__(self, root: Path, known: Iterable[str]) -> None:
        self.root = root
        self.clauses: dict[str, dict[str, list[dict[str, Any]]]] = {i: {kind: [] for kind in KINDS} for i in known}
        self.warnings: list[str] = []

    def add(self, kind: str, ids: Iterable[str], name: str, path: Path, line: int = 0, text: str = "") -> None:
        """Enter one place under each of the ids."""
        where = path.relative_to(self.root).as_posix()
        place = {"name": name, "path": where, "line": line, "text": text}
        for clause_id in dict.fromkeys(ids):
            if clause_id not in self.clauses:
                self.warnings.append(f"{where}:{line}: unknown clause {clause_id}")
            elif place not in self.clauses[clause_id][kind]:
                self.clauses[clause_id][kind].append(place)


# -- Python

_CLAUSES_LINE = re.compile(r"^[ \t]*Clauses?:(.*(?:\n[ \t]*\S.*)*)", re.MULTILINE)


def _documented(tree: ast.Module, module: str) -> Iterator[tuple[str, int, str]]:
    """Yield (qualified name, line, docstring) of a module and everything in it that has a docstring."""

    def visit(node: ast.AST, name: str) -> Iterator[tuple[str, int, str]]:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield name, getattr(node, "lineno", 1), text
        for child in ast.iter_child_nodes(node):
            inner = f"{name}.{child.name}" if isinstance(child, ast.ClassDef | ast.FunctionDef) else name
            if inner != name or isinstance(child, ast.If | ast.Try):
                yield from visit(child, inner)

    yield from visit(tree, module)


def scan_python(index: Index, kind: str, folder: Path, *, anywhere: bool = False) -> None:
    """Enter the documented objects of a package; with ``anywhere``, every id in a docstring counts."""
    for path in sorted(folder.rglob("*.py")):
        parts = ["fucina", folder.name, *path.relative_to(folder).with_suffix("").parts]
        module = ".".join(parts).removesuffix(".__init__")
        for name, line, text in _documented(ast.parse(path.read_text(encoding="utf-8")), module):
            cited = [text] if anywhere else _CLAUSES_LINE.findall(text)
            index.add(kind, [i for part in cited for i in ID.findall(part)], name, path, line)


# -- C

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*(?:\n[ \t]*//[^\n]*)*", re.DOTALL)
_HEAD = re.compile(
    r"^(?!#|typedef\b|return\b|else\b)[A-Za-z_][\w \t*]*?\b(?:FC_K\((\w+)\)|(\w+))[ \t]*\([^;{]*?\)\s*\{", re.MULTILINE
)
_DEFINES = re.compile(r"\s*#\s*define\s+(\w+)")
_NAMES = re.compile(r"FC_K\((\w+)\)|\b(?!__attribute__|_Static_assert)(\w+)\s*(?=[(\[=;])")


def _kernel(match: re.Match[str]) -> str:
    return f"fc_{match[1]}__<isa>" if match[1] else match[2]


def _named_after(code: str) -> str | None:
    """Return the name that a comment at the left margin stands above, given what follows it."""
    if code.count("\n", 0, len(code) - len(code.lstrip())) > 1:
        return None  # a blank line: the comment speaks about the file
    if define := _DEFINES.match(code):
        return define[1]
    found = _NAMES.search(re.split(r"[;{]", code, maxsplit=1)[0] + ";")
    return _kernel(found) if found and not code.lstrip().startswith("#") else None


def scan_c(index: Index, folder: Path) -> None:
    """Enter the functions of the C core by the comments above and inside them."""
    for path in sorted([*folder.rglob("*.c"), *folder.rglob("*.h")]):
        if {"tests", "fuzz"} & set(path.relative_to(folder).parts):
            continue
        source = path.read_text(encoding="utf-8")
        heads = [(head.start(), _kernel(head)) for head in _HEAD.finditer(source)]
        for comment in _COMMENT.finditer(source):
            ids = ID.findall(comment[0])
            if not ids:
                continue
            at_margin = comment.start() == 0 or source[comment.start() - 1] == "\n"
            if at_margin:
                name = _named_after(source[comment.end() :])
            else:
                name = next((n for start, n in reversed(heads) if start < comment.start()), None)
            index.add("c", ids, name or path.name, path, source.count("\n", 0, comment.start()) + 1)


# -- tests, vectors, faults


def _marks(index: Index, path: Path, nodes: Iterable[ast.expr]) -> list[str]:
    ids = []
    for node in nodes:
        if isinstance(node, ast.List | ast.Tuple):
            ids += _marks(index, path, node.elts)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "clause":
            for argument in node.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    ids.append(argument.value)
                else:
                    where = f"{path.relative_to(index.root).as_posix()}:{node.lineno}"
                    index.warnings.append(f"{where}: clause ids are to be written out as literals")
    return ids


def scan_tests(index: Index, folder: Path) -> None:
    """Enter the tests of the suite by their ``@clause`` marks, on the function, its class or the module.

    A test with ``@each_example`` is entered under the clauses whose examples it runs.
    """
    for path in sorted(folder.rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        of_module: list[str] = []
        for node in tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
                of_module += _marks(index, path, [node.value])

        def visit(body: list[ast.stmt], prefix: str, outer: list[str], path: Path = path) -> None:
            for node in body:
                if isinstance(node, ast.ClassDef):
                    own = _marks(index, path, node.decorator_list)
                    visit(node.body, f"{prefix}{node.name}::", outer + own)
                elif isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
                    ids = outer + _marks(index, path, node.decorator_list)
                    summary = (ast.get_docstring(node) or "").partition("\n")[0]
                    index.add("tests", ids, f"{prefix}{node.name}", path, node.lineno, summary)
                    if any(isinstance(d, ast.Name) and d.id == EACH_EXAMPLE for d in node.decorator_list):
                        for clause_id, (_, shown) in specification(index.root).examples().items():
                            index.add("tests", shown, f"{prefix}{node.name}[{clause_id}]", path, node.lineno)

        visit(tree.body, f"{path.name}::", of_module)


def scan_vectors(index: Index, folder: Path) -> None:
    """Enter the files of frozen vectors by the clauses in their manifest."""
    for manifest in sorted(folder.glob("*/MANIFEST.json")):
        for name, record in json.loads(manifest.read_text(encoding="utf-8"))["files"].items():
            index.add("vectors", record["clauses"], name, manifest.parent / name, text=record["origin"])


_FAULT = re.compile(r'^\s*FC_FAULT\(\s*(\w+)\s*,\s*"([^"]*)"\s*,\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\)', re.MULTILINE)


def scan_faults(index: Index, definitions: Path, folder: Path) -> None:
    """Enter the planted faults: those of the C core, and the TOML lists of the others."""
    if definitions.is_file():
        source = definitions.read_text(encoding="utf-8")
        for found in _FAULT.finditer(source):
            text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', found[3]))
            index.add(
                "faults", ID.findall(found[2]), found[1], definitions, source.count("\n", 0, found.start(1)) + 1, text
            )
    for path in sorted(folder.glob("faults*.toml")):
        source = path.read_text(encoding="utf-8")
        for entries in tomllib.loads(source).values():
            for entry in entries if isinstance(entries, list) else []:
                name = str(entry.get("name", ""))
                at = source.find(f'"{name}"')
                ids = ID.findall(f"{entry.get('clause', '')} {entry.get('clauses', '')}")
                text = str(entry.get("text", entry.get("what", "")))
                index.add("faults", ids, name, path, source.count("\n", 0, max(at, 0)) + 1, text)


def build(root: Path) -> dict[str, Any]:
    """Return the index of a source tree.

    Parameters
    ----------
    root : pathlib.Path
        The root of the repository.

    Returns
    -------
    dict
        ``schema_version``; ``clauses``: id -> kind -> list of places; ``warnings``: what names an unknown clause or
        cannot be read.
    """
    index = Index(root, specification(root).load())
    package = root / "conformance" / "fucina" / "conformance"
    scan_python(index, "spec", root / "spec" / "fucina" / "spec", anywhere=True)
    scan_python(index, "reference", root / "reference" / "fucina" / "reference")
    scan_python(index, "fast", root / "fast" / "fucina" / "fast")
    scan_c(index, root / "fast" / "csrc")
    scan_tests(index, package / "suite")
    scan_vectors(index, package / "vectors")
    scan_faults(index, root / "fast" / "csrc" / "core" / "faults.def", root / "conformance" / "meta")
    return {"schema_version": 1, "clauses": index.clauses, "warnings": index.warnings}


def main() -> None:
    """Write the index of the tree ``sys.argv[1]`` to the file ``sys.argv[2]``."""
    root, output = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    document = build(root)
    for warning in document["warnings"]:
        print(f"build_index: {warning}", file=sys.stderr)
    output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
