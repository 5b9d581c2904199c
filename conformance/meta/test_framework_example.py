"""The example of the documentation: a third party's module with one wrong rule."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from meta.conftest import House

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def test_the_suite_finds_the_one_wrong_rule(house: House) -> None:
    for name in ("third_party.py", "third_party.toml"):
        house.write(name, (EXAMPLES / name).read_text(encoding="utf-8"))
    ended = house.run("--impl", "third_party", "--expect", "third_party.toml", "--report", "out")
    assert ended.code == 1
    assert "FAIL RNG-INT-1" in ended.out
    assert "third_party does not claim: numbers" in ended.out
    report = json.loads((house.folder / "out" / "report.json").read_text(encoding="utf-8"))
    assert report["problems"] == []
    assert report["failures"]
    for failure in report["failures"]:
        assert "RNG-INT-1" in failure["clauses"], failure
    assert any(f["index"] and f["got"] and f["expected"] for f in report["failures"])
