"""The suite's calls for teams are large enough: a team of eight is given each (clauses TEAM-BULK-1, NUM-ENV-2)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import fucina.fast as fast

# one thread's work however large it is: numpy's copies and fills, a part of a copy, swaps that depend on each other
ALONE = {
    *("randperm_fill", "randperm", "fill", "copy_range_to", "from_storage_slice", "from_slice", "full", "one_hot"),
}


def test_each_call_is_given_to_the_team(tmp_path: Path) -> None:
    script = Path(__file__).with_name("shared_probe.py")
    # more participants than cores, so that the team never rests after a dispatch that was lost to another process
    count = max(8, min(2 * (os.cpu_count() or 1), fast.parallel.vector_max_threads))
    done = subprocess.run(
        [sys.executable, str(script), str(count), str(tmp_path / "lines")],
        capture_output=True,
        text=True,
        env={**os.environ, "FUCINA_POOL_PROFILE": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    dispatches: dict[str, int] = json.loads(done.stdout)
    assert len(dispatches) > 900
    alone = {name for name, number in dispatches.items() if not number}
    assert {name.partition(": ")[2] for name in alone} == ALONE
