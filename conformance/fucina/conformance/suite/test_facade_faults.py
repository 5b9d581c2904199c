"""Every allocation of every constructor and operation fails in turn; counters and gradients are as before."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from fucina.conformance import clause
from fucina.conformance.suite.tagged import watched
from fucina.conformance.suite.test_facade_ownership import CONSTRUCTORS, OPERATIONS, end, operands
from fucina.spec.errors import OutOfMemory


@pytest.fixture
def ctx(impl: Any) -> Any:
    with impl.ExecContext() as found:
        yield found


@clause("STORAGE-FAULT-1", "FACADE-CTX-1")
@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_constructors_without_memory(impl: Any, ctx: Any, name: str) -> None:
    survives(impl, ctx, partial(CONSTRUCTORS[name], impl, ctx))


@clause("STORAGE-FAULT-1", "FACADE-CTX-1", "SCOPE-RESERVE-1")
@pytest.mark.parametrize("how", ["alone", "scope", "graph"])
@pytest.mark.parametrize("name", [*OPERATIONS, "sort", "top_k", "argmax", "argsort", "backward", "grad", "grad_view"])
def test_operations_without_memory(impl: Any, ctx: Any, name: str, how: str) -> None:
    x, y, c = operands(impl, ctx, grad=how == "graph" or name in ("backward", "grad", "grad_view"))
    mark = ctx.open_exec_scope() if how != "alone" or x.requires_grad else None
    calls: dict[str, Callable[[], Any]] = {
        **{operation: partial(call, ctx, x, y, c) for operation, call in OPERATIONS.items()},
        "sort": lambda: x.sort(ctx, "b"),
        "top_k": lambda: x.top_k(ctx, "b", 2),
        "argmax": lambda: x.argmax(ctx, "b"),
        "argsort": lambda: x.argsort(ctx, "b"),
        "grad": lambda: x.grad(ctx),
        "grad_view": lambda: x.grad_view(ctx),
    }
    if x.requires_grad:
        loss = x.mul(ctx, y).add(ctx, x.mul(ctx, x)).sum_all(ctx)
        calls["backward"] = lambda: loss.backward(ctx)
        if name in ("grad", "grad_view"):
            loss.backward(ctx)
    survives(impl, ctx, calls[name], x, y)
    if mark is not None:
        ctx.close_exec_scope(mark)
    end(x, y, c)
    gc.collect()
    assert ctx.rt.buffers.outstanding_buffers() == 0


def _refused(call: Callable[[], object]) -> bool:
    """Say whether a call raises OutOfMemory."""
    try:
        call()
    except OutOfMemory:
        return True
    return False


def survives(impl: Any, ctx: Any, call: Callable[[], Any], *tensors: Any) -> None:
    """Let each allocation of a call fail in turn; nothing has changed then, a gradient neither."""
    internal = impl.internal

    def once() -> int:
        start = internal.allocation_count()
        result = call()
        if result is not None:
            result.deinit()
        return int(internal.allocation_count() - start)

    try:
        ctx.rt.buffers.max_cached_bytes = 0  # so that buffers are allocated too
        needed, failed = max(once(), once()), 0
        for n in range(1, needed + 1):
            before = watched(ctx, *tensors)
            internal.fail_allocation(n)
            refused = _refused(once)  # the error is gone then, and the frames that it knows
            internal.fail_allocation(None)
            failed += refused
            if refused and watched(ctx, *tensors) != before:
                gc.collect()
                assert watched(ctx, *tensors) == before, (
                    f"STORAGE-FAULT-1: allocation {n} of {needed} left something behind"
                )
        assert failed or not needed
    finally:
        internal.fail_allocation(None)
    once()
