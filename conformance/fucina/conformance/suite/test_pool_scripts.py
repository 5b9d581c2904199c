"""Traces of the pool: what the original did, replayed step by step."""

from __future__ import annotations

from typing import Any

import pytest

from fucina.conformance import clause, vectors
from fucina.conformance.suite.counters import pool_counters
from fucina.spec import DType
from fucina.spec.errors import FucinaError

SCRIPTS = {script["name"]: script for script in vectors.load_json("pool_scripts")["scripts"]}


class _Trace:
    """One trace on one pool."""

    def __init__(self, impl: Any, script: dict[str, Any]) -> None:
        self.pool = impl.BufferPool()
        self.pool.max_cached_bytes = script["max_cached_bytes"]
        self.held: dict[int, Any] = {}
        self.addresses: dict[int, int] = {}  # of the memory that the trace calls by a number
        self.steps = script["steps"]

    def run(self) -> None:
        for number, step in enumerate(self.steps):
            where = f"step {number}, {step['op']} {step.get('len', '')}"
            expected = dict(step["expect"])
            got: dict[str, object] = {}
            try:
                got |= self._step(step)
            except FucinaError as error:
                got["error"] = type(error).__name__
            got |= pool_counters(self.pool)
            for key in ("buffer_id", "fresh", "previous_handle", "slab_bytes"):
                expected.pop(key, None)
            assert got == expected, f"{where}: {got}, not {expected}"

    def _step(self, step: dict[str, Any]) -> dict[str, object]:
        if step["op"] == "set_max_cached_bytes":
            self.pool.max_cached_bytes = step["value"]
            return {}
        if step["op"] in ("release", "retain"):
            getattr(self.held[step["handle"]], step["op"])()
            return {}
        if step["op"] == "acquireScratch":
            made = self.pool.acquire_scratch(f"V{step['elem_size']}", step["len"])
            address, size, capacity = made.slab.ctypes.data, made.slab.nbytes, len(made.items)
        else:
            if step["op"] == "acquire":
                made = self.pool.acquire(step["len"])
            else:
                made = self.pool.acquire_typed(DType(step["dtype"]), step["len"])
            address, capacity = made.address, made.capacity
            size = step["expect"].get("slab_bytes", capacity * 4)
            assert capacity == size // made.Element.itemsize
        self.held[step["handle"]] = made
        self._same_memory(step["expect"], address, size)
        return {"capacity": capacity}

    def _same_memory(self, expected: dict[str, Any], address: int, size: int) -> None:
        """Hold the address of what was acquired to what the trace says about its memory."""
        if "error" in expected:
            return
        assert address % 64 == 0
        if "slab_bytes" in expected:
            assert size == expected["slab_bytes"]
        if not expected["fresh"]:
            assert address == self.addresses[expected["buffer_id"]]
        self.addresses[expected["buffer_id"]] = address


@clause(
    "POOL-SIZE-1",
    "POOL-SIZE-2",
    "POOL-TYPED-1",
    "POOL-FIT-1",
    "POOL-LIFO-1",
    "POOL-CAP-1",
    "POOL-COUNT-1",
    "POOL-SCRATCH-1",
    "POOL-MEMORY-1",
)
@pytest.mark.parametrize("name", SCRIPTS)
def test_traces(impl: Any, name: str) -> None:
    _Trace(impl, SCRIPTS[name]).run()


@clause("POOL-FIT-1")
def test_all_traces_are_there(impl: Any) -> None:
    assert hasattr(impl, "BufferPool")
    steps = [step for script in SCRIPTS.values() for step in script["steps"]]
    assert (len(SCRIPTS), len(steps)) == (56, 2806)
    assert {step["op"] for step in steps} == {
        *("acquire", "acquireTyped", "acquireScratch", "release", "retain", "set_max_cached_bytes")
    }
