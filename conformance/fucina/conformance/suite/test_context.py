"""The context: life, parts, teardown, threads, environment, team, tracing, scratch."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import warnings
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause, vectors
from fucina.conformance.compare import assert_raises
from fucina.conformance.suite import environment as fpenv
from fucina.conformance.suite.counters import seen
from fucina.conformance.suite.test_fpenv_modes import caught, reached
from fucina.conformance.suite.test_scope import adopted
from fucina.spec import DType
from fucina.spec.errors import (
    ConcurrentUse,
    DTypeMismatch,
    FloatEnvironmentChanged,
    InvalidDataLength,
    InvalidDType,
    InvalidInteger,
    LeakedBuffers,
    NotCopyable,
    OutOfMemory,
    Overflow,
    UseAfterDeinit,
)


@pytest.fixture
def ctx(impl: Any) -> Any:
    with impl.ExecContext() as found:
        yield found


# -- life


@clause("CONTEXT-LIFE-1", "CONTEXT-RT-1")
def test_a_new_context_has_nothing(impl: Any) -> None:
    impl.ExecContext().deinit()  # whatever the first one brings along
    threads, allocations = threading.active_count(), impl.internal.allocation_count()
    ctx = impl.ExecContext()
    assert impl.internal.allocation_count() == allocations
    assert threading.active_count() == threads
    rt = ctx.rt
    assert seen(ctx) == {
        **{"depth": 0, "entries": 0},
        **{"cachedBuffers": 0, "cachedSlabs": 0, "cachedBytes": 0, "outstanding": 0},
    }
    assert type(rt.buffers) is impl.BufferPool
    assert type(rt.backend) is impl.internal.backend_mod.Backend
    assert (rt.work_pool, rt.dot_backward_worker, rt.backend.work_pool) == (None, None, None)
    assert rt.pin_rowwise_kernels is False
    assert impl.internal.allocation_count() == allocations
    ctx.deinit()


@clause("CONTEXT-LIFE-2", "CONTEXT-COPY-2")
def test_nothing_works_after_the_end(impl: Any) -> None:
    ctx, other = impl.ExecContext(), impl.ExecContext()
    x = other.ones((2,))
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        assert_raises(NotCopyable, None, partial(attempt, ctx))
    rt = ctx.rt
    ctx.deinit()
    methods: dict[str, tuple[Any, ...]] = {
        **dict.fromkeys(("add", "sub", "mul", "div"), (x, x)),
        **dict.fromkeys(
            ("sum", "classify", "materialize", "clone", "prepare_contiguous", "contiguous_for_reshape"), (x,)
        ),
        **dict.fromkeys(("empty", "zeros", "ones"), ((2,),)),
        **dict.fromkeys(("from_slice", "from_storage_slice"), ((1,), [1.0])),
        **dict.fromkeys(("from_borrowed_slice", "from_borrowed_storage_slice"), ((1,), np.ones(1, np.float32))),
        **dict.fromkeys(("deinit", "check_float_environment", "float_environment_at_init", "try_work_pool"), ()),
        **dict.fromkeys(("work_pool", "dot_backward_worker", "exec_scope", "exec_scope_active", "open_exec_scope"), ()),
        **dict.fromkeys(("reserve_scope_slot", "lock_moe_decode_scratch", "unlock_moe_decode_scratch"), ()),
        "full": ((2,), 1.0),
        "scalar": (1.0,),
        "broadcast_to": (x, (2,)),
        "broadcast_to_rank": (1, x, (2,)),
        "narrow_axis": (x, 0, 0, 1),
        "prepare_as": (DType.f16, x),
        "store_as": (DType.f16, x),
        "replace": (x, x),
        "scale": (x, 1.0),
        "cast": (x, DType.f16),
        "pin_rowwise_kernels": (True,),
        "check_rhs_lifetime": (x, impl.RhsLifetime.transient),
        "close_exec_scope": (None,),
        "adopt_scope_value_assume_capacity": (x, None, None),
        "adopt_scope_node_assume_capacity": (1, print),
        "carve_moe_decode_scratch": ("u1", "u1", 1, 1, 1, 1, 1),
        "carve_moe_decode_chain_scratch": ("u1", "u1", "u1", 1, 1, 1, 1, 1, 1),
    }
    methods |= {name: () for name in ("no_grad", "grad_enabled") if hasattr(ctx, name)}  # those of chapter autograd
    public = {name for name in dir(ctx) if not name.startswith("_")} - {"rt"}
    assert public == set(methods)
    for name, arguments in methods.items():
        assert_raises(UseAfterDeinit, "CONTEXT-LIFE-2", partial(getattr(ctx, name), *arguments), what=name)
    assert ctx.rt is rt or ctx.rt.buffers is rt.buffers
    assert_raises(UseAfterDeinit, None, lambda: ctx.__enter__())
    x.deinit()
    other.deinit()


@clause("CONTEXT-LIFE-2", "SCOPE-NODE-1", "CONTEXT-TEAM-1")
def test_the_order_of_the_teardown(impl: Any) -> None:
    ctx = impl.ExecContext()
    ctx.lock_moe_decode_scratch()
    view = ctx.carve_moe_decode_scratch("u1", "u1", 1, 1, 1, 1, 1)
    ctx.try_work_pool()
    ctx.dot_backward_worker()
    rt, log = ctx.rt, []

    def look(node: str) -> None:
        log.append(
            (
                node,
                isinstance(caught(lambda: view.qx), UseAfterDeinit),
                (rt.dot_backward_worker, rt.work_pool, rt.backend.work_pool),
                rt.buffers.outstanding_buffers(),
                isinstance(caught(lambda: ctx.ones((1,))), UseAfterDeinit),
                rt.buffers.acquire(3).release(),  # the pool is still open
            )
        )

    ctx.open_exec_scope()
    adopted(ctx, ctx.ones((1,)), "outer", look)
    ctx.open_exec_scope()
    adopted(ctx, ctx.ones((1,)), "inner", look)
    ctx.deinit()
    nothing = (None, None, None)
    assert log == [("inner", True, nothing, 1, True, None), ("outer", True, nothing, 0, True, None)]
    assert (rt.scope_depth, rt.scope_entries) == (0, 0)
    assert_raises(UseAfterDeinit, "POOL-TYPE-1", lambda: rt.buffers.acquire(1))


@clause("CONTEXT-LIFE-2", "POOL-LEAK-1")
def test_a_leak_is_reported_after_everything_else(impl: Any) -> None:
    gone: list[str] = []
    ctx = impl.ExecContext()
    ctx.open_exec_scope()
    adopted(ctx, ctx.ones((1,)), "node", gone.append)
    kept, array = ctx.ones((2, 3), DType.f16), ctx.full((5,), 3.0).data_const()
    error = assert_raises(LeakedBuffers, "POOL-LEAK-1", ctx.deinit, shows=["f16", "(2, 3)", "(5,)"])
    assert [(leak.dtype, leak.shape) for leak in error.leaks] == [  # type: ignore[attr-defined]
        (DType.f16, (2, 3)),
        (DType.f32, (5,)),
    ]
    assert gone == ["node"]
    assert_raises(UseAfterDeinit, "CONTEXT-LIFE-2", ctx.deinit)
    assert kept.data_const().tolist() == [1] * 6
    assert array.tolist() == [3] * 5
    pool = ctx.rt.buffers
    kept.deinit()
    assert pool.outstanding_buffers() == 1
    del array
    gc.collect()
    assert (pool.outstanding_buffers(), pool.cached_bytes()) == (0, 0)


@clause("CONTEXT-LIFE-2", "SCOPE-NODE-1")
def test_a_destructor_that_raises_does_not_stop_the_teardown(impl: Any) -> None:
    ctx = impl.ExecContext()
    ctx.open_exec_scope()
    adopted(ctx, ctx.ones((1,)), "node", lambda node: 1 / 0)
    kept = ctx.ones((3,))
    with pytest.raises(ZeroDivisionError) as error:
        ctx.deinit()
    assert any("POOL-LEAK-1" in note for note in error.value.__notes__)
    assert_raises(UseAfterDeinit, "CONTEXT-LIFE-2", ctx.deinit)
    kept.deinit()


@clause("CONTEXT-LIFE-2", "POOL-LEAK-1")
def test_a_with_block(impl: Any) -> None:
    with impl.ExecContext() as ctx:
        ctx.deinit()
    kept: list[Any] = []

    def leave() -> None:
        with impl.ExecContext() as ctx:
            kept.append(ctx.ones((1,)))
            raise KeyError("on its way")

    with pytest.raises(KeyError, match="on its way") as error:
        leave()
    assert any("POOL-LEAK-1" in note for note in error.value.__notes__)
    kept.pop().deinit()


@clause("CONTEXT-LIFE-1", "CONTEXT-OP-1")
def test_contexts_share_tensors(impl: Any, ctx: Any) -> None:
    with impl.ExecContext() as other, other.ones((2,)) as a, ctx.add(a, a) as b:
        assert (ctx.rt.buffers.outstanding_buffers(), other.rt.buffers.outstanding_buffers()) == (1, 1)
        assert b.data_const().tolist() == [2, 2]


@clause("CONTEXT-EAGER-1")
def test_results_are_there_and_operands_free(ctx: Any) -> None:
    a, b = ctx.ones((4,)), ctx.full((4,), 2.0)
    made = [getattr(ctx, name)(a, b) for name in ("add", "sub", "mul", "div")]
    made += [ctx.scale(a, 3.0), ctx.sum(b), ctx.cast(b, DType.i8)]
    assert (a.buffer.refs, b.buffer.refs) == (1, 1)
    a.fill(50.0)
    b.deinit()
    assert [m.data_const().tolist()[0] for m in made] == [3, -1, 2, 0.5, 3, 8, 2]
    for tensor in (a, *made):
        tensor.deinit()


# -- threads


@clause("CONTEXT-THREAD-1")
def test_two_threads_at_once(impl: Any, ctx: Any) -> None:
    inside, leave = threading.Event(), threading.Event()

    def destroy(node: Any) -> None:
        inside.set()
        assert leave.wait(30)

    x, ended = ctx.ones((2,)), ctx.ones((2,))
    scope = ctx.open_exec_scope()
    ctx.reserve_scope_slot()
    ctx.adopt_scope_node_assume_capacity("node", destroy)
    driver = threading.Thread(target=ctx.close_exec_scope, args=(scope,))
    driver.start()
    try:
        assert inside.wait(30)
        before = ctx.rt.buffers.outstanding_buffers()
        calls: tuple[Callable[[], Any], ...] = (
            lambda: ctx.add(x, x),
            lambda: ctx.zeros((2,)),
            lambda: ctx.sum(None),
            lambda: ctx.classify(x),
            ctx.exec_scope_active,
            ctx.open_exec_scope,
            ctx.exec_scope,
            ctx.check_float_environment,
            lambda: ctx.pin_rowwise_kernels(True),
            ctx.try_work_pool,
            ctx.lock_moe_decode_scratch,
            ctx.deinit,
        )
        for call in calls:
            assert_raises(ConcurrentUse, "CONTEXT-THREAD-1", call)
        assert ctx.rt.buffers.outstanding_buffers() == before
        ended.deinit()  # a release is no call of the context
        assert ctx.rt.buffers.outstanding_buffers() == before - 1
        assert ctx.rt.pin_rowwise_kernels is False
        assert ctx.rt.work_pool is None
    finally:
        leave.set()
        driver.join()
    assert ctx.sum(x).item() == 2
    x.deinit()


@clause("CONTEXT-THREAD-2")
def test_handed_from_thread_to_thread(impl: Any) -> None:
    ctx = impl.ExecContext()
    state: dict[str, Any] = {"x": ctx.ones((3,)), "scope": ctx.open_exec_scope()}

    def step() -> None:
        state["x"] = ctx.replace(state["x"], lambda: ctx.scale(state["x"], 2.0))
        adopted(ctx, ctx.ones((1,)))

    for _ in range(5):
        thread = threading.Thread(target=step)
        thread.start()
        thread.join()
    assert state["x"].data_const().tolist() == [32] * 3
    assert ctx.rt.scope_entries == 5
    ctx.close_exec_scope(state["scope"])
    state.pop("x").deinit()
    ctx.deinit()


# -- environment, kernels, team


@clause("CONTEXT-FPENV-1", "FPENV-RECORD-2")
def test_the_environment_of_the_creation(impl: Any) -> None:
    reached(impl)
    part = impl.fpenv
    checks = vectors.load_json("fpenv")["context_checks"]
    for check in checks:
        at_init, now = (
            part.Environment(part.RoundingMode[rounding], part.UnderflowMode[underflow])
            for rounding, underflow in (check["at_init"], check["now"])
        )
        with part.guard():
            part.set(at_init)
            ctx = impl.ExecContext()
            part.set(now)
            error = caught(ctx.check_float_environment)
            found = ctx.float_environment_at_init()
        ctx.deinit()
        assert found == at_init
        expected = {"ok": type(None), "FloatEnvironmentChanged": FloatEnvironmentChanged}
        assert type(error) is expected[check["checkFloatEnvironment"]], check


@clause("CONTEXT-PIN-1", "CONTEXT-RT-1")
def test_pinning_is_a_flag(ctx: Any) -> None:
    with ctx.from_slice((3,), [0.1, 0.2, 0.3]) as x:
        for on in (True, np.bool_(False), True):
            ctx.pin_rowwise_kernels(on)
            assert ctx.rt.pin_rowwise_kernels is bool(on)
            with ctx.sum(x) as total:
                assert total.item() == np.float32(0.1) + np.float32(0.2) + np.float32(0.3)
        for wrong in (1, None, "on"):
            assert_raises(DTypeMismatch, "CONTEXT-PIN-1", partial(ctx.pin_rowwise_kernels, wrong))
        assert ctx.rt.pin_rowwise_kernels is True


@clause("CONTEXT-TEAM-1", "CONTEXT-RT-1")
def test_the_team_is_made_once(impl: Any, ctx: Any) -> None:
    rt = ctx.rt
    assert (rt.work_pool, rt.backend.work_pool, rt.dot_backward_worker) == (None, None, None)
    pool = ctx.work_pool()
    assert pool is not None
    assert pool is ctx.try_work_pool() is ctx.work_pool() is rt.work_pool is rt.backend.work_pool
    assert rt.dot_backward_worker is None
    worker = ctx.dot_backward_worker()
    assert worker is not None
    assert worker is ctx.dot_backward_worker() is rt.dot_backward_worker
    with impl.ExecContext() as other:
        assert other.rt.work_pool is None
    backend = impl.internal.backend_mod.Backend()
    backend.set_work_pool(pool)
    assert backend.work_pool is pool
    backend.set_work_pool(None)
    assert backend.work_pool is None


@clause("CONTEXT-TEAM-1", "CONTEXT-LIFE-2", "TEAM-POOL-1", "TEAM-ONESHOT-2")
def test_the_team_ends_with_the_context(impl: Any) -> None:
    ctx = impl.ExecContext()
    pool, worker = ctx.try_work_pool(), ctx.dot_backward_worker()
    assert type(pool) is impl.thread_mod.Pool
    assert type(worker) is impl.thread_mod.OneShotWorker
    assert pool.team_size == impl.parallel.cpu_thread_count(impl.parallel.vector_max_threads)
    done: list[int] = []
    pool.parallel_chunks(range(5), done.append)
    worker.start(lambda: done.append(5))
    worker.wait()
    assert sorted(done) == list(range(6))
    ctx.deinit()
    for use in (partial(pool.parallel_chunks, range(5), done.append), partial(worker.start, done.clear)):
        assert_raises(UseAfterDeinit, None, use)


# -- tracing


@clause("CONTEXT-TRACE-1", "POOL-LEAK-1")
def test_tracing_names_the_line(impl: Any) -> None:
    ctx = impl.ExecContext(trace=True)
    kept = [ctx.zeros((2,)), ctx.from_slice((1,), [1])]
    kept += [ctx.add(kept[0], kept[1]), ctx.sum(kept[0])]
    with pytest.raises(LeakedBuffers) as error:
        ctx.deinit()
    assert len(error.value.leaks) == 4
    for leak in error.value.leaks:
        assert __file__ + ":" in leak.origin  # type: ignore[attr-defined]
        assert leak.origin.endswith(" in test_tracing_names_the_line")  # type: ignore[attr-defined]
    for tensor in kept:
        tensor.deinit()


@clause("CONTEXT-TRACE-1", "TENSOR-LIFE-2")
def test_tracing_warns_of_what_is_collected(impl: Any) -> None:
    for trace in (True, False):
        with warnings.catch_warnings(record=True) as seen_warnings:
            warnings.simplefilter("always")
            with impl.ExecContext(trace=trace) as ctx:
                x = ctx.ones((2,))
                view = ctx.broadcast_to(x, (3, 2))
                del view
                gc.collect()
                x.deinit()
                ctx.zeros((4,))
                gc.collect()
                assert ctx.rt.buffers.outstanding_buffers() == 0
        found = [w for w in seen_warnings if issubclass(w.category, ResourceWarning)]
        assert len(found) == (2 if trace else 0)
        assert all("test_context.py:" in str(w.message) for w in found)


# -- scratch


def _carve(ctx: Any, **changed: Any) -> Any:
    arguments = {
        **{"qg_block": "V36", "task": np.int64, "hidden_blocks": 2, "top_k": 3, "out_pe": 4, "hidden": 5},
        **{"blocks_per_g": 6},
    }
    return ctx.carve_moe_decode_scratch(**(arguments | changed))


def _chain(ctx: Any, **changed: Any) -> Any:
    arguments = {
        **{"qg_block": "V36", "state": "f8", "task": np.int64, "hidden_blocks": 2, "top_k": 3, "out_pe": 4},
        **{"hidden": 5, "blocks_per_g": 6, "task_count": 11},
    }
    return ctx.carve_moe_decode_chain_scratch(**(arguments | changed))


NAMES = ("qx", "gate_buf", "up_buf", "g_buf", "qg", "outs", "tasks")


@clause("CONTEXT-MOE-1")
def test_the_discipline_of_the_scratch(ctx: Any) -> None:
    for call in (ctx.unlock_moe_decode_scratch, lambda: _carve(ctx), lambda: _chain(ctx, qg_block=object)):
        assert_raises(ConcurrentUse, "CONTEXT-MOE-1", call)
    ctx.lock_moe_decode_scratch()
    assert_raises(ConcurrentUse, "CONTEXT-MOE-1", ctx.lock_moe_decode_scratch)
    first = _carve(ctx)
    kept = first.outs
    kept[:] = 3
    ctx.unlock_moe_decode_scratch()
    for name in NAMES:
        assert_raises(UseAfterDeinit, "CONTEXT-MOE-1", partial(getattr, first, name))
    ctx.lock_moe_decode_scratch()
    second = _chain(ctx)
    second.outs[:] = 4
    assert_raises(UseAfterDeinit, "CONTEXT-MOE-1", lambda: first.qx)  # of the locking before
    assert kept.tolist() == [3] * 15 or kept.tolist() == [4] * 15
    assert ctx.rt.buffers.outstanding_buffers() == 0
    ctx.unlock_moe_decode_scratch()


@clause("CONTEXT-MOE-2")
def test_what_is_carved(impl: Any, ctx: Any) -> None:
    f32 = np.dtype(np.float32)
    ctx.lock_moe_decode_scratch()
    for carve, tasks in ((_carve, 3), (_chain, 11)):
        view = carve(ctx)
        wanted = {
            "qx": (impl.dtype.storage(DType.q8_k), 2),
            **dict.fromkeys(("gate_buf", "up_buf", "g_buf"), (f32, 12)),
            "qg": (np.dtype("V36"), 18),
            "outs": (f32, 15),
            "tasks": (np.dtype(np.int64), tasks),
        }
        if carve is _chain:
            wanted["states"] = (np.dtype("f8"), 3)
        parts = {name: getattr(view, name) for name in wanted}
        assert {name: (part.dtype, len(part)) for name, part in parts.items()} == wanted
        spans = sorted((part.ctypes.data, part.ctypes.data + part.nbytes) for part in parts.values())
        assert all(end <= start for (_, end), (start, _) in pairwise(spans))
        for part in parts.values():
            assert part.ctypes.data % 8 == 0
            assert part.flags.writeable
            part.view(np.uint8)[:] = 0xFF
    empty = _carve(ctx, hidden_blocks=0, top_k=0)
    assert [len(getattr(empty, name)) for name in NAMES] == [0] * 7
    ctx.unlock_moe_decode_scratch()


@clause("CONTEXT-MOE-1", "STORAGE-FAULT-1")
def test_no_allocation_after_the_first_token(impl: Any, ctx: Any) -> None:
    ctx.lock_moe_decode_scratch()
    _chain(ctx)
    ctx.unlock_moe_decode_scratch()
    before = impl.internal.allocation_count()
    for _ in range(3):
        ctx.lock_moe_decode_scratch()
        _carve(ctx)
        _chain(ctx)
        _carve(ctx, top_k=2)
        ctx.unlock_moe_decode_scratch()
    assert impl.internal.allocation_count() == before
    ctx.lock_moe_decode_scratch()
    impl.internal.fail_allocation(1)
    assert_raises(OutOfMemory, None, lambda: _carve(ctx, hidden=10_000))
    impl.internal.fail_allocation(None)
    assert len(_carve(ctx, hidden=10_000).outs) == 30_000
    ctx.unlock_moe_decode_scratch()


@clause("CONTEXT-MOE-2")
def test_what_cannot_be_carved(ctx: Any) -> None:
    ctx.lock_moe_decode_scratch()
    for changed, kind in (
        ({"qg_block": "V0"}, DTypeMismatch),
        ({"task": object}, DTypeMismatch),
        ({"task": 7}, DTypeMismatch),
        ({"top_k": -1}, InvalidDataLength),
        ({"hidden": 1.5}, InvalidInteger),
        ({"hidden": True}, InvalidInteger),
        ({"hidden_blocks": 1 << 64}, Overflow),
        ({"top_k": 1 << 40, "out_pe": 1 << 40}, InvalidDataLength),
        ({"top_k": 1 << 40, "blocks_per_g": 1 << 20}, InvalidDataLength),
        ({"hidden_blocks": (1 << 64) - 1}, InvalidDataLength),
        ({"hidden_blocks": 1 << 54}, OutOfMemory),
    ):
        assert_raises(kind, None, partial(_carve, ctx, **changed), what=str(changed))
        assert_raises(kind, None, partial(_chain, ctx, **changed), what=str(changed))
    if np.dtype(np.clongdouble).alignment > 8:
        assert_raises(InvalidDType, "CONTEXT-MOE-2", lambda: _carve(ctx, task=np.clongdouble))
        assert_raises(InvalidDType, "CONTEXT-MOE-2", lambda: _chain(ctx, state=np.longdouble))
    assert_raises(InvalidDataLength, None, lambda: _chain(ctx, task_count=1 << 62))
    ctx.unlock_moe_decode_scratch()


@clause("CONTEXT-FPENV-1", "NUM-ENV-2")
def test_the_environment_is_that_of_the_calling_thread(impl: Any) -> None:
    reached(impl)
    fpenv.needed()
    with impl.ExecContext() as ctx:
        with fpenv.environment("upward"):
            error = caught(ctx.check_float_environment)
        assert isinstance(error, FloatEnvironmentChanged)
        ctx.check_float_environment()
