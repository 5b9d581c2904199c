"""Who may import whom, by reading the sources."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import fucina.spec

ROOT = Path(__file__).parents[2]
PORTIONS = ("spec", "reference", "fast", "conformance")
ALLOWED = {
    "spec": {"spec"},
    "reference": {"reference", "spec"},
    "fast": {"fast", "spec"},
    "conformance": {"conformance", "spec"},
}


def modules(portion: str) -> dict[str, Path]:
    """Return the modules of a portion by dotted name, from the source tree."""
    top = ROOT / portion
    found = {}
    for path in sorted((top / "fucina" / portion).rglob("*.py")):
        parts = path.relative_to(top).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(path: Path, module: str, *, at_import: bool = False) -> Iterator[str]:
    """Yield every dotted name that a file imports; with ``at_import`` only what runs when it is imported."""
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    for node in walk(ast.parse(path.read_text(encoding="utf-8")), at_import):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            yield source
            yield from (f"{source}.{alias.name}" for alias in node.names)


def walk(tree: ast.AST, at_import: bool) -> Iterator[ast.AST]:
    """Walk a tree; with ``at_import`` leave out function bodies and ``if TYPE_CHECKING``."""
    yield tree
    for child in ast.iter_child_nodes(tree):
        if at_import:
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                continue
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
        yield from walk(child, at_import)


def portion_of(name: str) -> str | None:
    """Return the portion of ours that a dotted name belongs to."""
    parts = name.split(".")
    return parts[1] if parts[0] == "fucina" and len(parts) > 1 else None


@pytest.mark.parametrize("portion", PORTIONS)
def test_a_portion_imports_only_what_it_may(portion: str) -> None:
    found = modules(portion)
    assert found
    for module, path in found.items():
        for name in imported(path, module):
            assert portion_of(name) in {None, *ALLOWED[portion]}, f"{path} imports {name}"
            assert name != "fucina", f"{path} imports the namespace as a whole"


@pytest.mark.parametrize("portion", ["spec", "reference", "fast"])
def test_there_is_no_import_cycle(portion: str) -> None:
    found = modules(portion)
    graph = {
        module: {
            name
            for name in imported(path, module, at_import=True)
            if name in found and name != module and not module.startswith(name + ".")
        }
        for module, path in found.items()
    }
    done: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " -> ".join([*trail, module])
        if module not in done:
            for name in sorted(graph[module]):
                visit(name, (*trail, module))
            done.add(module)

    for module in graph:
        visit(module, ())
    assert done == set(found)


def test_the_namespace_has_no_init() -> None:
    assert [str(path) for portion in PORTIONS for path in (ROOT / portion).glob("fucina/__init__.py")] == []


@pytest.mark.parametrize("portion", PORTIONS)
def test_a_portion_says_that_it_is_typed(portion: str) -> None:
    assert (ROOT / portion / "fucina" / portion / "py.typed").is_file()


def test_runtime_dependencies_are_numpy_and_cffi() -> None:
    """Reference and fast use the standard library, numpy and cffi; the specification the standard library alone."""
    import sys

    allowed = {"spec": set(), "reference": {"numpy"}, "fast": {"numpy", "cffi", "_cffi_backend"}}
    for portion, extra in allowed.items():
        for module, path in modules(portion).items():
            outside = {name.split(".")[0] for name in imported(path, module, at_import=True)}
            assert outside - {"fucina", *extra} <= sys.stdlib_module_names, path


def test_every_name_of_the_vocabulary_is_loaded_from_where_it_is_defined() -> None:
    assert set(fucina.spec._HOME) == set(fucina.spec.__all__)
    for name, home in fucina.spec._HOME.items():
        module = importlib.import_module(f"fucina.spec.{home}")
        assert name in module.__all__
        assert getattr(fucina.spec, name) is getattr(module, name)
