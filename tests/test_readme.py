"""The README says what happens: its example prints the output that stands below it, and the files it names exist."""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_prints_what_stands_below_it() -> None:
    found = re.search(r"^```python\n(.*?)^```\n+^```text\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert found, "the README has no python block followed by a text block"
    done = subprocess.run([sys.executable, "-c", found[1]], capture_output=True, text=True, check=True)
    assert done.stdout == found[2]


FILES = sorted(set(re.findall(r"`((?:\w+/)+[\w./-]+|[A-Z-]+(?:\.md)?)`", README)))


def test_files_are_named() -> None:
    assert len(FILES) > 8


@pytest.mark.parametrize("target", FILES)
def test_files_are_there(target: str) -> None:
    """Also by their paths alone: an index page shows the README where nothing lies beside it to link to."""
    assert (ROOT / target).exists() or "_build" in target


def test_no_link_depends_on_where_it_is_shown() -> None:
    assert not re.findall(r"\]\((?!https?:)[^)]+\)", README)


def test_nothing_is_left_to_fill_in() -> None:
    assert "@@" not in README


def test_the_matrix_is_that_of_the_record() -> None:
    """Chapter by chapter, how many clauses agree on each target; and how many checks there were."""
    record = json.loads((ROOT / "docs" / "records" / "conformance.json").read_text(encoding="utf-8"))
    chapters = {clause["id"]: clause["chapter"] for clause in record["clauses"]}
    agree = Counter((chapters[c["clause"]], c["target"]) for c in record["cells"] if c["state"] == "ok")
    targets = [target["label"] for target in record["targets"]]
    counts = Counter(chapters.values())
    rows = [
        f"| {chapter} | {count} | " + " | ".join(f"{agree[chapter, target]} agree" for target in targets) + " |"
        for chapter, count in counts.items()
    ]
    shown = [line for line in README.splitlines() if re.match(r"\| [a-z]+ \| \d+ \|", line)]
    assert sorted(shown) == sorted(rows)
    assert f"{record['totals']['passed']} checks" in README
