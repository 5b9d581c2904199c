"""Random programs over storage and raw tensors: in lockstep with the judge, and by themselves."""

from __future__ import annotations

import gc
from typing import Any

from hypothesis import given

from fucina.conformance import clause
from fucina.conformance.suite.programs import Machine, steps


@clause("STORAGE-REF-1", "STORAGE-HOOK-1", "STORAGE-PIN-1", "STORAGE-GEN-1", "STORAGE-DEAD-1", "STORAGE-FAULT-1")
@clause("TENSOR-VIEW-1", "TENSOR-VIEW-3", "TENSOR-LIFE-1", "TENSOR-TAKE-1", "TENSOR-ADD-1", "TENSOR-REPR-1")
@given(program=steps)
def test_programs_in_lockstep(impl: Any, judge: Any, program: list[Any]) -> None:
    one, other = Machine(impl), Machine(judge)
    for number, step in enumerate(program):
        got, expected = one.step(step), other.step(step)
        assert got == expected, f"step {number}, {step}: {got}, on the judge {expected}"


@clause("STORAGE-REF-1", "STORAGE-HOOK-1", "STORAGE-GC-1", "TENSOR-LIFE-2")
@given(program=steps)
def test_nothing_is_left(impl: Any, program: list[Any]) -> None:
    """Whatever a program did: when everything is forgotten, each hook has run once for each final release."""
    machine = Machine(impl)
    for step in program:
        machine.step(step)
    hooked = {f"hook {i}" for i, b in enumerate(machine.buffers) if b.release_hook.run is not None and b.refs}
    buffers = list(machine.buffers)
    machine.tensors.clear()
    machine.arrays.clear()
    machine.buffers.clear()
    before = [entry for entry in machine.log if entry.startswith("hook")]
    assert len(before) == len(set(before)), "STORAGE-HOOK-1: a hook ran twice"
    while buffers:
        buffers.pop()
    gc.collect()
    after = [entry for entry in machine.log if entry.startswith("hook")]
    assert len(after) == len(set(after))
    assert hooked <= set(after), "STORAGE-GC-1: a hook never ran"
