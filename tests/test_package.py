"""The package says one thing about itself, wherever it is asked."""

from __future__ import annotations

import importlib
import re
from importlib.metadata import metadata, version
from pathlib import Path

import pytest

import fucina.fast

ROOT = Path(__file__).parents[1]


def test_one_version() -> None:
    built = re.search(r"^ *version: '([^']+)'", (ROOT / "meson.build").read_text(encoding="utf-8"), re.MULTILINE)
    assert built is not None
    assert built[1] == version("fucina") == fucina.fast.__version__
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert not re.search(r"^version:", cited, re.MULTILINE), "the version is said in meson.build and nowhere else"


@pytest.mark.parametrize("portion", ["conformance", "fast", "reference", "spec"])
def test_each_portion_is_typed(portion: str) -> None:
    places = importlib.import_module(f"fucina.{portion}").__path__
    assert any(Path(place, "py.typed").exists() for place in places)


def test_what_an_index_shows() -> None:
    facts = metadata("fucina")
    assert facts["License-Expression"] == "MIT"
    assert set(facts.get_all("License-File") or []) == {"LICENSE", "THIRD-PARTY-NOTICES.md"}
    assert facts["Description-Content-Type"] == "text/markdown"
    assert "Typing :: Typed" in (facts.get_all("Classifier") or [])
