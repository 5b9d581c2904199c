"""The README says what happens: its example prints the output that stands below it, and its links lead somewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_prints_what_stands_below_it() -> None:
    found = re.search(r"^```python\n(.*?)^```\n+^```text\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert found, "the README has no python block followed by a text block"
    done = subprocess.run([sys.executable, "-c", found[1]], capture_output=True, text=True, check=True)
    assert done.stdout == found[2]


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\((?!https?:)([^)#]+)", README))))
def test_links_lead_somewhere(target: str) -> None:
    assert (ROOT / target).exists()


def test_nothing_is_left_to_fill_in() -> None:
    assert "@@" not in README
