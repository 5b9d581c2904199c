"""Random programs over storage, pool, scopes, views and raw operations; everything is compared after every step.

On one implementation they run against a small model, and in lockstep against the judge.
"""

# ruff: noqa: D102 - a step is described by the clauses that govern it

from __future__ import annotations

import gc
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from fucina.conformance import clause
from fucina.conformance.suite.memory_model import Model, content
from fucina.spec import DType
from fucina.spec.errors import FucinaError, ScopeOrder

SHAPES = [(1,), (3,), (6,), (2, 3), (3, 2), (1, 3), (2, 1), (1, 1, 6), (33,)]
DTYPES = (DType.f32, DType.f64, DType.i16)
INDEX = st.integers(0, 40)
SMALL = st.integers(-6, 6)

GOVERNED = clause(
    *("STORAGE-REF-1", "STORAGE-PIN-1", "STORAGE-GEN-1", "STORAGE-DEAD-1", "TENSOR-VIEW-1", "TENSOR-VIEW-2"),
    *("TENSOR-VIEW-3", "TENSOR-VIEW-4", "TENSOR-LIFE-1", "TENSOR-LIFE-2", "TENSOR-ADD-1", "TENSOR-SCALE-1"),
    *("TENSOR-FILL-1", "TENSOR-TAKE-1", "POOL-SIZE-1", "POOL-SIZE-2", "POOL-FIT-1", "POOL-LIFO-1", "POOL-CAP-1"),
    *("POOL-COUNT-1", "POOL-SCRATCH-2", "POOL-STALE-1", "CONTEXT-OWNER-1", "CONTEXT-NARROW-1", "CONTEXT-COPY-1"),
    *("CONTEXT-REPLACE-1", "CONTEXT-OP-1", "CONTEXT-OP-2", "CONTEXT-ARITH-1", "CONTEXT-ARITH-2", "CONTEXT-SCALE-1"),
    *("CONTEXT-SUM-1", "SCOPE-OPEN-1", "SCOPE-CLOSE-1", "SCOPE-NEST-1", "SCOPE-MARK-1", "SCOPE-ADOPT-1"),
    *("SCOPE-BORROW-1", "SCOPE-AFTER-1"),
)


class World:
    """The steps on an implementation, by the names that the model has for them."""

    def __init__(self, impl: Any) -> None:
        self.ctx = impl.ExecContext()
        self.tensors: list[Any] = []
        self.arrays: list[Any] = []
        self.holds: list[Any] = []
        self.leases: list[Any] = []
        self.marks: list[Any] = []
        self.destroyed: list[int] = []

    def make(self, dtype: DType, shape: tuple[int, ...], values: list[int]) -> None:
        form = {DType.f32: np.float32, DType.f64: np.float64, DType.i16: np.int16}[dtype]
        self.tensors.append(self.ctx.from_slice(shape, np.resize(np.array(values, form), shape), dtype))

    def deinit(self, i: int) -> None:
        self.tensors[i].deinit()

    def drop(self, i: int) -> None:
        self.tensors[i] = None

    def hold(self, i: int) -> None:
        buffer = self.tensors[i].buffer
        buffer.retain()
        self.holds.append(buffer)

    def let_go(self, i: int) -> None:
        buffer, self.holds[i] = self.holds[i], None
        if buffer is not None:
            buffer.release()

    def pin(self, i: int, writable: bool) -> None:
        self.arrays.append(self.tensors[i].data() if writable else self.tensors[i].data_const())

    def unpin(self, i: int) -> None:
        self.arrays[i] = None

    def set_cap(self, cap: int) -> None:
        self.ctx.rt.buffers.max_cached_bytes = cap

    def lease(self, element: str, count: int) -> None:
        self.leases.append(self.ctx.rt.buffers.acquire_scratch(element, count))

    def release_lease(self, i: int) -> None:
        self.leases[i].release()

    def clone_view(self, i: int) -> None:
        self.tensors.append(self.tensors[i].clone_view())

    def reshape(self, i: int, shape: tuple[int, ...]) -> None:
        self.tensors.append(self.tensors[i].reshape(shape))

    def strided(self, i: int, shape: tuple[int, ...], strides: tuple[int, ...], delta: int) -> None:
        self.tensors.append(self.tensors[i].view_with_strides_offset(shape, strides, delta))

    def broadcast(self, i: int, shape: tuple[int, ...]) -> None:
        self.tensors.append(self.ctx.broadcast_to(self.tensors[i], shape))

    def narrow(self, i: int, axis: int, start: int, length: int) -> None:
        self.tensors.append(self.ctx.narrow_axis(self.tensors[i], axis, start, length))

    def add_in_place(self, i: int, j: int) -> None:
        self.tensors[i].add_in_place(self.tensors[j])

    def scale_in_place(self, i: int, factor: float) -> None:
        self.tensors[i].scale_in_place(factor)

    def fill(self, i: int, value: int) -> None:
        self.tensors[i].fill(value)

    def binary(self, name: str, i: int, j: int, out: int | None) -> None:
        target = None if out is None else self.tensors[out]
        result = getattr(self.ctx, name)(self.tensors[i], self.tensors[j], out=target)
        if out is None:
            self.tensors.append(result)
        else:
            assert result is target

    def scale(self, i: int, factor: float) -> None:
        self.tensors.append(self.ctx.scale(self.tensors[i], factor))

    def sum(self, i: int, axis: int | None) -> None:
        self.tensors.append(self.ctx.sum(self.tensors[i], axis))

    def materialize(self, i: int) -> None:
        self.tensors.append(self.ctx.materialize(self.tensors[i]))

    def replace(self, i: int, j: int) -> None:
        assert self.ctx.replace(self.tensors[i], self.tensors[j]) is self.tensors[j]

    def open_scope(self) -> None:
        self.marks.append(self.ctx.open_exec_scope())

    def close_scope(self, i: int) -> None:
        self.ctx.close_exec_scope(self.marks[i])

    def adopt(self, i: int, node: int) -> None:
        self.tensors[i].buffer  # noqa: B018 - one that has ended is refused before a slot is asked for
        self.ctx.reserve_scope_slot()
        self.ctx.adopt_scope_value_assume_capacity(self.tensors[i], node, self.destroyed.append)

    def seen(self) -> dict[str, Any]:
        """Return everything that can be seen, in the form of the model."""
        stores: list[Any] = []
        pool = self.ctx.rt.buffers
        counters = pool.cached_buffers(), pool.cached_slabs(), pool.cached_bytes(), pool.outstanding_buffers()
        scopes = self.ctx.rt.scope_depth, self.ctx.rt.scope_entries, self.ctx.exec_scope_active(), list(self.destroyed)
        return {"pool": counters, "scopes": scopes, "tensors": [self._tensor(t, stores) for t in self.tensors]}

    @staticmethod
    def _tensor(tensor: Any, stores: list[Any]) -> object:
        if tensor is None:
            return None
        try:
            buffer = tensor.buffer
        except FucinaError as error:
            return type(error).__name__
        if buffer not in stores:
            stores.append(buffer)
        values = np.empty(tensor.len(), tensor.Element)
        tensor.copy_to(values)
        return (
            *(tensor.dtype, tuple(tensor.shape), tuple(tensor.strides), tensor.offset, buffer.refs, buffer.generation),
            *(tensor.can_take_in_place(), tensor.scope_owned, stores.index(buffer), content(values)),
        )

    def finish(self) -> None:
        """Give everything back; nothing may be out then."""
        for i in range(len(self.holds)):
            self.let_go(i)
        for mark in reversed(self.marks):
            with suppress(ScopeOrder):  # closed already
                self.ctx.close_exec_scope(mark)
        assert self.ctx.rt.scope_depth == 0
        self.arrays.clear()
        self.tensors.clear()
        self.leases.clear()
        gc.collect()
        assert self.ctx.rt.buffers.outstanding_buffers() == 0
        self.ctx.deinit()


class Machine(RuleBasedStateMachine):
    """Takes each step on an implementation and on what it is compared with."""

    def __init__(self, impl: Any, other: Any) -> None:
        super().__init__()
        self.world = World(impl)
        self.other = Model() if other is None else World(other)
        self.model = self.other if isinstance(self.other, Model) else Model()  # knows what there is to choose from

    def step(self, name: str, *arguments: Any) -> None:
        """Take a step everywhere; outcomes must be the same."""
        worlds = [self.world, self.other] + ([] if self.model is self.other else [self.model])
        outcomes = [self._outcome(world, name, arguments) for world in worlds]
        assert len(set(outcomes)) == 1, f"{name}{arguments}: {outcomes[0]}, not {outcomes[1]}"

    @staticmethod
    def _outcome(world: Any, name: str, arguments: tuple[Any, ...]) -> str:
        try:
            getattr(world, name)(*arguments)
        except FucinaError as error:
            return type(error).__name__
        return "done"

    def one(self, i: int) -> int:
        """Return the number of a tensor whose name has not been dropped."""
        there = [k for k, tensor in enumerate(self.model.tensors) if tensor is not None]
        return there[-1 - i % min(len(there), 8)]

    def has_tensors(self) -> bool:
        return any(tensor is not None for tensor in self.model.tensors)

    @invariant()
    def the_same_is_seen(self) -> None:
        got, wanted = self.world.seen(), self.other.seen()
        for key, value in wanted.items():
            for i, (one, other) in enumerate(zip(got[key], value, strict=True)):
                assert one == other, f"{key} {i}: {one}, not {other}"

    def teardown(self) -> None:
        for world in (self.world, self.other):
            if isinstance(world, World):
                world.finish()

    # -- steps

    @rule(dtype=st.sampled_from(DTYPES), shape=st.sampled_from(SHAPES), values=st.lists(SMALL, min_size=1, max_size=6))
    def make(self, dtype: DType, shape: tuple[int, ...], values: list[int]) -> None:
        self.step("make", dtype, shape, values)

    @precondition(has_tensors)
    @rule(i=INDEX, how=st.sampled_from(("deinit", "drop", "clone_view", "materialize")))
    def single(self, i: int, how: str) -> None:
        self.step(how, self.one(i))

    @precondition(has_tensors)
    @rule(i=INDEX, shape=st.sampled_from([*SHAPES, (2, 2, 3), (4, 3)]), how=st.sampled_from(("reshape", "broadcast")))
    def to_shape(self, i: int, shape: tuple[int, ...], how: str) -> None:
        self.step(how, self.one(i), shape)

    @precondition(has_tensors)
    @rule(
        i=INDEX,
        shape=st.sampled_from([(2,), (3,), (2, 2), (3, 2)]),
        strides=st.sampled_from([(0,), (1,), (2,), (2, 1), (1, 2), (0, 1), (3, 1)]),
        delta=st.integers(0, 4),
    )
    def strided(self, i: int, shape: tuple[int, ...], strides: tuple[int, ...], delta: int) -> None:
        if self.model.is_specified(self.one(i), shape, strides, delta):
            self.step("strided", self.one(i), shape, strides, delta)

    @precondition(has_tensors)
    @rule(i=INDEX, axis=st.integers(0, 2), start=st.integers(0, 3), length=st.integers(0, 3))
    def narrow(self, i: int, axis: int, start: int, length: int) -> None:
        self.step("narrow", self.one(i), axis, start, length)

    @precondition(has_tensors)
    @rule(name=st.sampled_from(("add", "sub", "mul", "div")), i=INDEX, j=INDEX, out=st.one_of(st.none(), INDEX))
    def binary(self, name: str, i: int, j: int, out: int | None) -> None:
        self.step("binary", name, self.one(i), self.one(j), None if out is None else self.one(out))

    @precondition(has_tensors)
    @rule(i=INDEX, factor=st.sampled_from((0.5, 2.0, -1.0, 0.1)), how=st.sampled_from(("scale", "scale_in_place")))
    def scaled(self, i: int, factor: float, how: str) -> None:
        self.step(how, self.one(i), factor)

    @precondition(has_tensors)
    @rule(i=INDEX, axis=st.one_of(st.none(), st.integers(0, 2)))
    def total(self, i: int, axis: int | None) -> None:
        self.step("sum", self.one(i), axis)

    @precondition(has_tensors)
    @rule(i=INDEX, value=SMALL)
    def fill(self, i: int, value: int) -> None:
        self.step("fill", self.one(i), value)

    @precondition(has_tensors)
    @rule(i=INDEX, j=INDEX, how=st.sampled_from(("add_in_place", "replace")))
    def two(self, i: int, j: int, how: str) -> None:
        self.step(how, self.one(i), self.one(j))

    @precondition(has_tensors)
    @rule(i=INDEX)
    def hold(self, i: int) -> None:
        self.step("hold", self.one(i))

    @precondition(lambda self: bool(self.model.holds))
    @rule(i=INDEX)
    def let_go(self, i: int) -> None:
        self.step("let_go", i % len(self.model.holds))

    @precondition(has_tensors)
    @rule(i=INDEX, writable=st.booleans())
    def pin(self, i: int, writable: bool) -> None:
        self.step("pin", self.one(i), writable)

    @precondition(lambda self: bool(self.model.arrays))
    @rule(i=INDEX)
    def unpin(self, i: int) -> None:
        self.step("unpin", i % len(self.model.arrays))

    @rule(element=st.sampled_from(("u1", "f8", "V34")), count=st.sampled_from((0, 1, 100, 600)))
    def lease(self, element: str, count: int) -> None:
        self.step("lease", element, count)

    @precondition(lambda self: bool(self.model.leases))
    @rule(i=INDEX)
    def release_lease(self, i: int) -> None:
        self.step("release_lease", i % len(self.model.leases))

    @rule(cap=st.sampled_from((0, 16, 4096, 8200, 1 << 30)))
    def set_cap(self, cap: int) -> None:
        self.step("set_cap", cap)

    @rule()
    def open_scope(self) -> None:
        self.step("open_scope")

    @precondition(lambda self: bool(self.model.marks))
    @rule(i=INDEX, innermost=st.booleans())
    def close_scope(self, i: int, innermost: bool) -> None:
        chosen = self.model.open[-1] if innermost and self.model.open else i % len(self.model.marks)
        self.step("close_scope", chosen)

    @precondition(has_tensors)
    @rule(i=INDEX, node=st.integers(0, 99))
    def adopt(self, i: int, node: int) -> None:
        self.step("adopt", self.one(i), node)


def _run(impl: Any, other: Any, examples: int, steps: int, *, shrink: bool = False) -> None:
    """Run programs; finding the shortest one that fails can take minutes, so that is left to the slow test."""
    phases = [Phase.generate, Phase.shrink] if shrink else [Phase.generate]
    run_state_machine_as_test(
        partial(Machine, impl, other),  # type: ignore[arg-type]  # a factory will do
        settings=settings(max_examples=examples, stateful_step_count=steps, deadline=None, phases=phases),
    )


@GOVERNED
def test_against_the_model(impl: Any) -> None:
    _run(impl, None, 40, 30)


@GOVERNED
def test_in_lockstep(impl: Any, judge: Any) -> None:
    _run(impl, judge, 30, 30)


@GOVERNED
@pytest.mark.slow
def test_a_hundred_thousand_steps(impl: Any) -> None:
    _run(impl, None, 2000, 50, shrink=True)
