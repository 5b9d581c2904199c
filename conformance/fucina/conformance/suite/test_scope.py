"""Exec scopes: traces of the original, marks, adoption in two steps, nodes, borrows, exceptions."""

from __future__ import annotations

import copy
import gc
import pickle
from functools import partial
from typing import Any

import pytest

from fucina.conformance import clause, vectors
from fucina.conformance.compare import assert_raises
from fucina.conformance.suite.counters import seen
from fucina.spec.errors import (
    ActiveExecScopeRequired,
    DTypeMismatch,
    InvalidDType,
    NotCopyable,
    OutOfMemory,
    ScopeOrder,
    UseAfterDeinit,
    UseAfterScope,
)

SCRIPTS = {script["name"]: script for script in vectors.load_json("scope_scripts")["scripts"]}


@pytest.fixture
def ctx(impl: Any) -> Any:
    with impl.ExecContext() as found:
        yield found


def adopted(ctx: Any, value: Any, node: Any = None, destroy: Any = None) -> Any:
    """Hand a value to the innermost scope; return it."""
    ctx.reserve_scope_slot()
    ctx.adopt_scope_value_assume_capacity(value, node, destroy)
    return value


# -- traces


@clause(
    "SCOPE-OPEN-1", "SCOPE-CLOSE-1", "SCOPE-NEST-1", "SCOPE-RESERVE-1", "SCOPE-ADOPT-1", "SCOPE-NODE-1", "POOL-COUNT-1"
)
@pytest.mark.parametrize("name", SCRIPTS)
def test_traces(impl: Any, name: str) -> None:
    ctx = impl.ExecContext()
    marks: dict[int, Any] = {}
    tensors: dict[int, Any] = {}
    destroyed: list[int] = []
    for number, step in enumerate(SCRIPTS[name]["steps"]):
        operation, more = step["op"], {}
        if operation == "open_scope":
            marks[step["mark"]] = mark = ctx.open_exec_scope()
            more["index"] = mark.index
        elif operation == "close_scope":
            destroyed.clear()
            ctx.close_exec_scope(marks[step["mark"]])
            more["destroyed"] = list(destroyed)
        elif operation == "adopt_value":
            node = step["node"]
            adopted(ctx, ctx.empty((step["len"],)), node, None if node is None else destroyed.append)
        elif operation == "adopt_node":
            ctx.reserve_scope_slot()
            ctx.adopt_scope_node_assume_capacity(step["node"], destroyed.append)
        elif operation == "empty":
            tensors[step["handle"]] = ctx.empty((step["len"],))
        else:
            tensors.pop(step["handle"]).deinit()
        got = {"active": ctx.exec_scope_active(), **seen(ctx), **more}
        assert got == step["expect"], f"step {number}, {operation}"
    for tensor in tensors.values():
        tensor.deinit()
    ctx.deinit()


@clause("SCOPE-OPEN-1")
def test_all_traces_are_there(impl: Any) -> None:
    assert hasattr(impl, "ExecScope")
    operations = {step["op"] for script in SCRIPTS.values() for step in script["steps"]}
    assert operations == {"open_scope", "close_scope", "adopt_value", "adopt_node", "empty", "deinit"}
    assert (len(SCRIPTS), sum(len(script["steps"]) for script in SCRIPTS.values())) == (40, 887)


# -- marks


@clause("SCOPE-MARK-1", "SCOPE-NEST-1")
def test_only_the_innermost_mark_closes(impl: Any, ctx: Any) -> None:
    with impl.ExecContext() as other:
        foreign = other.open_exec_scope()
        outer, inner = ctx.open_exec_scope(), ctx.open_exec_scope()
        assert (outer.index, inner.index, foreign.index) == (0, 0, 0)
        adopted(ctx, ctx.ones((3,)))
        before = seen(ctx)
        for mark in (outer, foreign, None, 0, inner.index, ctx, impl.ExecScope):
            assert_raises(ScopeOrder, "SCOPE-MARK-1", partial(ctx.close_exec_scope, mark))
            assert seen(ctx) == before
        ctx.close_exec_scope(inner)
        assert_raises(ScopeOrder, "SCOPE-MARK-1", lambda: ctx.close_exec_scope(inner))
        ctx.close_exec_scope(outer)
        for mark in (inner, outer):
            assert_raises(ScopeOrder, "SCOPE-MARK-1", partial(ctx.close_exec_scope, mark))
        other.close_exec_scope(foreign)


@clause("SCOPE-MARK-1")
def test_marks_are_not_forged(impl: Any, ctx: Any) -> None:
    with ctx.exec_scope() as mark:
        assert type(mark) is impl.ExecScope
        assert repr(mark) == "<ExecScope index=0>"
        for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
            assert_raises(NotCopyable, None, partial(attempt, mark))
        assert_raises((AttributeError, TypeError), None, lambda: setattr(mark, "index", 3))
    assert_raises(DTypeMismatch, None, lambda: impl.ExecScope())


# -- closing


@clause("SCOPE-CLOSE-1", "SCOPE-NODE-1")
def test_each_value_is_released_before_its_node_is_destroyed(impl: Any, ctx: Any) -> None:
    log: list[tuple[str, int]] = []
    scope = ctx.open_exec_scope()
    for name in "abc":
        adopted(ctx, ctx.zeros((5,)), name, lambda node: log.append((node, ctx.rt.buffers.outstanding_buffers())))
    ctx.reserve_scope_slot()
    ctx.adopt_scope_node_assume_capacity("d", lambda node: log.append((node, ctx.rt.buffers.outstanding_buffers())))
    ctx.close_exec_scope(scope)
    assert log == [("d", 3), ("c", 2), ("b", 1), ("a", 0)]


@clause("SCOPE-NEST-1")
def test_an_inner_close_leaves_outer_values_alone(ctx: Any) -> None:
    with ctx.exec_scope():
        outer = adopted(ctx, ctx.ones((2,)))
        with ctx.exec_scope() as mark:
            assert mark.index == 1
            inner = adopted(ctx, ctx.ones((2,)))
        assert outer.data_const().tolist() == [1, 1]
        assert_raises(UseAfterScope, "SCOPE-AFTER-1", inner.data_const)
        assert ctx.rt.scope_entries == 1
    assert_raises(UseAfterScope, "SCOPE-AFTER-1", outer.data_const)


# -- adoption


@clause("SCOPE-RESERVE-1", "SCOPE-ADOPT-1")
def test_slots(ctx: Any) -> None:
    assert_raises(ActiveExecScopeRequired, "SCOPE-RESERVE-1", ctx.reserve_scope_slot)
    value = ctx.ones((2,))
    assert_raises(ActiveExecScopeRequired, "SCOPE-ADOPT-1", lambda: _adopt(ctx, value))
    with ctx.exec_scope():
        assert_raises(ScopeOrder, "SCOPE-RESERVE-1", lambda: _adopt(ctx, value))
        ctx.reserve_scope_slot()
        ctx.reserve_scope_slot()
        with ctx.exec_scope():  # slots are those of the scope that was innermost
            assert_raises(ScopeOrder, "SCOPE-RESERVE-1", lambda: _adopt(ctx, value))
        others = ctx.ones((2,)), ctx.ones((2,))
        for other in others:
            _adopt(ctx, other)
        assert_raises(ScopeOrder, "SCOPE-RESERVE-1", lambda: _adopt(ctx, value))
        ctx.reserve_scope_slot()
    with ctx.exec_scope():  # a slot that was not taken went with its scope
        assert_raises(ScopeOrder, "SCOPE-RESERVE-1", lambda: _adopt(ctx, value))
    assert not value.scope_owned
    value.deinit()


def _adopt(ctx: Any, value: Any, node: Any = None, destroy: Any = None) -> None:
    ctx.adopt_scope_value_assume_capacity(value, node, destroy)


@clause("SCOPE-RESERVE-1", "STORAGE-FAULT-1")
def test_reserving_is_the_step_that_can_fail(impl: Any, ctx: Any) -> None:
    with ctx.exec_scope():
        for _ in range(100):
            value = ctx.ones((1,))
            impl.internal.fail_allocation(1)
            try:
                ctx.reserve_scope_slot()
            except OutOfMemory:
                assert_raises(ScopeOrder, "SCOPE-RESERVE-1", partial(_adopt, ctx, value))
                ctx.reserve_scope_slot()
            impl.internal.fail_allocation(1)
            try:
                _adopt(ctx, value)
            finally:
                impl.internal.fail_allocation(None)
            assert value.scope_owned
        assert ctx.rt.scope_entries == 100
    assert ctx.rt.buffers.outstanding_buffers() == 0


@clause("SCOPE-ADOPT-1", "SCOPE-NODE-1")
def test_what_cannot_be_adopted(ctx: Any) -> None:
    value, dead = ctx.ones((2,)), ctx.ones((2,))
    dead.deinit()
    with ctx.exec_scope():
        ctx.reserve_scope_slot()
        before = seen(ctx)
        assert_raises(UseAfterDeinit, None, lambda: _adopt(ctx, dead, 1, 2))
        assert_raises(DTypeMismatch, "SCOPE-ADOPT-1", lambda: _adopt(ctx, [1.0]))
        assert_raises(InvalidDType, "SCOPE-NODE-1", lambda: _adopt(ctx, value, "node", None))
        assert_raises(InvalidDType, "SCOPE-NODE-1", lambda: _adopt(ctx, value, "node", "no function"))
        assert_raises(InvalidDType, "SCOPE-NODE-1", lambda: _adopt(ctx, value, None, "no function"))
        assert_raises(InvalidDType, "SCOPE-NODE-1", lambda: ctx.adopt_scope_node_assume_capacity(None, print))
        assert_raises(InvalidDType, "SCOPE-NODE-1", lambda: ctx.adopt_scope_node_assume_capacity(1, None))
        assert seen(ctx) == before
        _adopt(ctx, value)
        assert_raises(ScopeOrder, "SCOPE-ADOPT-1", lambda: _adopt(ctx, value))
        ctx.reserve_scope_slot()
        assert_raises(ScopeOrder, "SCOPE-ADOPT-1", lambda: _adopt(ctx, value))
        assert seen(ctx)["entries"] == 1
    assert_raises(UseAfterScope, None, lambda: _adopt(ctx, value))


# -- nodes


@clause("SCOPE-NODE-1")
def test_a_node_may_be_anything_but_none(ctx: Any) -> None:
    gone: list[Any] = []
    nodes = [0, False, "", (), object(), gone]
    with ctx.exec_scope():
        for node in nodes:
            ctx.reserve_scope_slot()
            ctx.adopt_scope_node_assume_capacity(node, lambda node: gone.append(id(node)))
        adopted(ctx, ctx.ones((1,)), None, gone.append)
    assert gone == [id(node) for node in reversed(nodes)]


@clause("SCOPE-NODE-1", "SCOPE-CLOSE-1")
def test_a_destructor_that_raises_keeps_nothing_back(impl: Any) -> None:
    ctx = impl.ExecContext()
    gone: list[int] = []

    def destroy(node: int) -> None:
        gone.append(node)
        if node % 2:
            raise ValueError(f"node {node}")

    scope = ctx.open_exec_scope()
    for node in range(4):
        adopted(ctx, ctx.ones((2,)), node, destroy)
    with pytest.raises(ValueError, match="node 3"):
        ctx.close_exec_scope(scope)
    assert gone == [3, 2, 1, 0]
    assert seen(ctx) == {"depth": 0, "entries": 0, **_cached(ctx)}
    ctx.deinit()


def _cached(ctx: Any) -> dict[str, int]:
    pool = ctx.rt.buffers
    return {
        "cachedBuffers": pool.cached_buffers(),
        "cachedSlabs": pool.cached_slabs(),
        "cachedBytes": pool.cached_bytes(),
        "outstanding": 0,
    }


@clause("SCOPE-NODE-1", "SCOPE-CLOSE-1", "STORAGE-HOOK-2")
def test_a_hook_that_raises_comes_before_its_nodes_destructor(impl: Any, ctx: Any) -> None:
    def fail(kind: type[Exception]) -> None:
        raise kind

    storage = impl.internal.storage_mod
    hook = storage.Release(None, lambda *_: fail(ValueError))
    value = impl.internal.RawTensor.from_owned_buffer(storage.Buffer.create_with_release(2, hook), (2,))
    older: list[str] = []
    scope = ctx.open_exec_scope()
    adopted(ctx, ctx.ones((2,)), "older", older.append)
    adopted(ctx, value, KeyError, fail)
    with pytest.raises((ValueError, KeyError)) as raised:
        ctx.close_exec_scope(scope)
    assert raised.type is ValueError
    assert older == ["older"]
    assert seen(ctx)["outstanding"] == 0


@clause("SCOPE-NODE-1", "CONTEXT-THREAD-1")
def test_a_destructor_may_call_the_context(ctx: Any) -> None:
    made: list[float] = []

    def destroy(node: Any) -> None:
        with ctx.ones((3,)) as ones, ctx.sum(ones) as total:
            made.append(total.item())
        with ctx.exec_scope():
            adopted(ctx, ctx.ones((1,)), "inner", made.append)

    with ctx.exec_scope():
        adopted(ctx, ctx.ones((2,)), "node", destroy)
    assert made == [3.0, "inner"]
    assert ctx.rt.buffers.outstanding_buffers() == 0


# -- borrows


@clause("SCOPE-BORROW-1", "SCOPE-AFTER-1")
def test_deinit_of_a_borrow_is_nothing(ctx: Any) -> None:
    with ctx.exec_scope():
        value = adopted(ctx, ctx.ones((2,)))
        assert value.scope_owned
        for _ in range(3):
            value.deinit()
        with value:
            pass
        assert value.data_const().tolist() == [1, 1]
        assert ctx.replace(value, ctx.scale(value, 2.0)).data_const().tolist() == [2, 2]
        assert value.data_const().tolist() == [1, 1]
    value.deinit()
    assert value.scope_owned
    for use in (value.data_const, value.clone_view, lambda: value.shape, lambda: ctx.add(value, value)):
        assert_raises(UseAfterScope, "SCOPE-AFTER-1", use)


@clause("SCOPE-BORROW-1")
def test_a_dropped_name_changes_nothing(ctx: Any) -> None:
    with ctx.exec_scope():
        adopted(ctx, ctx.ones((2,)))
        gc.collect()
        assert ctx.rt.buffers.outstanding_buffers() == 1
    assert ctx.rt.buffers.outstanding_buffers() == 0


@clause("SCOPE-BORROW-1", "SCOPE-AFTER-1")
def test_a_view_of_a_borrow_is_the_callers(ctx: Any) -> None:
    with ctx.exec_scope():
        value = adopted(ctx, ctx.from_slice((2, 2), [1, 2, 3, 4]))
        view = value.reshape((4,))
        assert not view.scope_owned
    assert view.data_const().tolist() == [1, 2, 3, 4]
    assert ctx.rt.buffers.outstanding_buffers() == 1
    view.deinit()


@clause("CONTEXT-OWNER-1", "SCOPE-ADOPT-1")
def test_nothing_is_adopted_that_was_not_handed_over(ctx: Any) -> None:
    with ctx.exec_scope():
        made = [ctx.ones((2,))]
        made += [ctx.add(made[0], made[0]), ctx.sum(made[0]), ctx.clone(made[0]), ctx.broadcast_to(made[0], (3, 2))]
        assert ctx.rt.scope_entries == 0
        assert not any(tensor.scope_owned for tensor in made)
    for tensor in made:
        tensor.deinit()


# -- exceptions


@clause("SCOPE-ERROR-1", "SCOPE-CLOSE-1")
def test_case_o_e03_an_exception_closes_the_scope(ctx: Any) -> None:
    log: list[str] = []

    def step() -> None:
        with ctx.exec_scope():
            x = adopted(ctx, ctx.ones((4,)), "x", log.append)
            y = adopted(ctx, ctx.add(x, x), "y", log.append)
            adopted(ctx, ctx.mul(x, y), "z", log.append)
            raise KeyError("mid-forward")

    with pytest.raises(KeyError, match="mid-forward"):
        step()
    assert log == ["z", "y", "x"]
    assert not ctx.exec_scope_active()
    assert seen(ctx)["outstanding"] == 0


@clause("SCOPE-ERROR-1")
def test_scopes_left_open_within_are_closed_too(ctx: Any) -> None:
    gone: list[str] = []
    with ctx.exec_scope() as outer:
        adopted(ctx, ctx.ones((1,)), "outer", gone.append)
        with ctx.exec_scope():
            adopted(ctx, ctx.ones((1,)), "middle", gone.append)
            ctx.open_exec_scope()
            adopted(ctx, ctx.ones((1,)), "left open", gone.append)
        assert gone == ["left open", "middle"]
        assert ctx.rt.scope_depth == 1
        ctx.close_exec_scope(outer)
        assert gone == ["left open", "middle", "outer"]
        still_open = ctx.open_exec_scope()
    assert ctx.rt.scope_depth == 1  # the one that was opened after the block's own had been closed
    ctx.close_exec_scope(still_open)


@clause("SCOPE-ERROR-1", "CONTEXT-LIFE-2")
def test_a_context_may_end_within_a_block(impl: Any) -> None:
    gone: list[str] = []
    ctx = impl.ExecContext()
    with ctx.exec_scope():
        adopted(ctx, ctx.ones((1,)), "node", gone.append)
        ctx.deinit()
    assert gone == ["node"]
