"""From which size on work is shared out: the page that says so, the core, and what is seen of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fucina.fast as fast

ROOT = Path(__file__).parents[2]
CORE = ROOT / "fast" / "csrc"
PAGE = (ROOT / "docs" / "evidence" / "team.rst").read_text(encoding="utf-8")
ROW = re.compile(r'^   ".+", 2\^(\d+), .+, ``(\w+)`` in ``([\w/.]+)``$', re.MULTILINE)


def constants() -> dict[tuple[str, str], int]:
    """Return the constants from which on the core's files use the team: (name, file) and the power of two."""
    found = {}
    for path in sorted(CORE.rglob("*.c")):
        text = path.read_text(encoding="utf-8")
        if "fc_bulk(" in text and path.parent.name not in ("team", "tests"):
            place = path.relative_to(CORE).as_posix()
            ours = re.findall(r"\b(\w*LEAST\w*|SHARED) = 1 << (\d+)", text)
            assert ours, f"{place} uses the team, and from which size on cannot be read"
            found.update({(name, place): int(power) for name, power in ours})
    return found


def test_the_page_has_every_threshold() -> None:
    said = {(name, place): int(power) for power, name, place in ROW.findall(PAGE)}
    assert len(said) > 10
    assert said == constants()


def test_the_public_threshold_is_that_of_a_matrix_times_a_vector() -> None:
    assert fast.parallel.vector_matmul_work_threshold == 1 << constants()["VECTOR_LEAST", "ops/matmul.c"]


PRODUCT = """
import sys
import fucina.fast as fast
fast.parallel.set_max_threads(2)
for rows in {rows}:
    print("rows", rows, file=sys.stderr, flush=True)
    with fast.ExecContext() as ctx, fast.Tensor("i", "k").ones(ctx, (rows, 512)) as a:
        with fast.Tensor({tags}).ones(ctx, {shape}) as b:
            a.dot(ctx, b).deinit()
"""


@pytest.mark.parametrize(
    ("tags", "shape", "few", "enough"),
    [
        pytest.param('"k"', (512,), 500, 520, id="a vector: around 2^18 multiply-adds"),
        pytest.param('"k", "j"', (512, 4), 500, 512, id="a matrix: around 2^20"),
    ],
)
def test_a_product_is_shared_out_from_there_on(tags: str, shape: tuple[int, ...], few: int, enough: int) -> None:
    """Each dispatch to the team is told on stderr (clause TEAM-PROFILE-1)."""
    code = PRODUCT.format(rows=(few, enough), tags=tags, shape=shape)
    environment = {**os.environ, "FUCINA_POOL_PROFILE": "1"}
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    ).stderr
    first, second = told.split(f"rows {enough}\n")
    assert first == f"rows {few}\n"
    assert second.count("participant") == 2
