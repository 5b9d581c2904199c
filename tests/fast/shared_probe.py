"""Count the dispatches of each call in the suite's ``shared_work`` and ``shared_tagged``; print one JSON object.

``test_shared_work.py`` runs this in a process of its own, with FUCINA_POOL_PROFILE set: a dispatch is told by its lines
on stderr, which go to the file that the second argument names.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import fucina.fast as fast
from fucina.conformance.suite.blocks import FORMATS
from fucina.conformance.suite.casts import SCALARS
from fucina.conformance.suite.raw_arithmetic import REAL
from fucina.conformance.suite.shared_tagged import gradient_calls, made_calls, rows_of_blocks_calls, tagged_calls
from fucina.conformance.suite.shared_work import block_calls, cast_calls, fill_calls, raw_calls, streamed_calls
from fucina.spec import DType

Work = dict[str, Callable[[], Any]]


def groups() -> Iterator[tuple[str, AbstractContextManager[Work]]]:
    """Yield everything that the suite's tests of teams compute."""
    yield "fills", nullcontext(fill_calls(fast))
    for dtype in SCALARS:
        yield "casts", nullcontext(cast_calls(fast, dtype))
        yield f"raw {dtype.name}", raw_calls(fast, dtype)
    for dtype in FORMATS:
        yield "blocks", nullcontext(block_calls(fast, dtype))
    yield "streamed", streamed_calls(fast)
    for dtype in (*REAL, DType.u8, DType.i16, DType.i32, DType.i64):
        yield "tagged", tagged_calls(fast, dtype)
    yield "made", made_calls(fast)
    for dtype in (DType.q4_0, DType.q8_0, DType.q4_k):
        yield "tagged blocks", rows_of_blocks_calls(fast, dtype)
    for dtype in (DType.f16, DType.bf16, DType.f32):
        yield f"gradients {dtype.name}", gradient_calls(fast, dtype)


def dispatches(call: Callable[[], Any], lines: int) -> int:
    """Return how often a call used the team: each dispatch has one line of its participant 0."""
    kept = os.dup(2)
    os.ftruncate(lines, 0)
    os.dup2(lines, 2)
    try:
        call()
    finally:
        os.dup2(kept, 2)
        os.close(kept)
    os.lseek(lines, 0, os.SEEK_SET)
    with open(lines, "rb", closefd=False) as file:
        return sum(b": participant 0 of " in line for line in file)


def main() -> None:
    """Take the number of threads, and the file for the lines."""
    fast.parallel.set_max_threads(int(sys.argv[1]))
    lines = os.open(sys.argv[2], os.O_RDWR | os.O_CREAT | os.O_APPEND)
    found = {}
    for group, made in groups():
        with made as work:
            for name, call in work.items():
                found[f"{group}: {name}"] = dispatches(call, lines)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
