"""The documents' examples of contexts, ownership, training, the policy and raw metadata, alone and in lockstep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.suite.counters import pool_counters
from fucina.conformance.suite.tagged import bits, held
from fucina.spec import DType

Example = Callable[[Any, Any], list[object]]


def lifecycle(impl: Any, ctx: Any) -> list[object]:
    with impl.Tensor("batch", "d").from_slice(ctx, (2, 2), [1, 2, 3, 4]) as x, x.scale(ctx, 2.0) as y:
        return [y.data_const().tolist(), repr(x), repr(y), held(ctx)]


def replace(impl: Any, ctx: Any) -> list[object]:
    x = impl.Tensor("d").from_slice(ctx, (2,), [1, 2])
    seen: list[object] = []
    for _ in range(3):
        x = ctx.replace(x, x.scale(ctx, 2.0))
        seen += [x.data_const().tolist(), held(ctx), pool_counters(ctx.rt.buffers)]
    x.deinit()
    return seen


def training_step(impl: Any, ctx: Any) -> list[object]:
    seen: list[object] = []
    with impl.Tensor("d").variable_from_slice(ctx, (3,), [1, 2, 3]) as w:
        for _ in range(2):
            scope = ctx.open_exec_scope()
            y = w.mul(ctx, w)
            loss = y.sum_all(ctx)
            loss.backward(ctx)
            with w.grad(ctx) as gw:
                seen += [gw.data_const().tolist(), loss.item(), held(ctx), w.as_raw_tensor().buffer.refs]
            w.zero_grad()
            ctx.close_exec_scope(scope)
            seen += [held(ctx), repr(y), w.as_raw_tensor().buffer.refs]
    return seen


def deinit_without_effect(impl: Any, ctx: Any) -> list[object]:
    with impl.Tensor("d").from_slice(ctx, (2,), [3, 4]) as x, ctx.exec_scope():
        y = x.add(ctx, x)
        y.deinit()
        return [y.data_const().tolist(), repr(y), held(ctx)]


def policy(impl: Any, ctx: Any) -> list[object]:
    x = impl.Tensor("row", "col", dtype=DType.f16).from_slice(ctx, (2, 2), [1.5, 2.5, 3.0, 4.0])
    with x, x.add(ctx, x) as y, x.sum(ctx, "col") as s, x.to(ctx, DType.f32) as wide:
        dtypes = type(y).dtype, type(s).dtype, type(wide).dtype
        return [*dtypes, s.data_const().tolist(), bits(y).tolist(), repr(wide)]


def raw_metadata(impl: Any, ctx: Any) -> list[object]:
    with impl.Tensor("rows", "cols").from_slice(ctx, (2, 3), [1, 2, 3, 4, 5, 6]) as x:
        raw = x.as_raw_tensor()
        return [raw.shape.slice(), raw.strides.slice(), raw.offset, raw.is_contiguous(), raw.buffer.refs]


def chain(impl: Any, ctx: Any) -> list[object]:
    """The chain of 32 operations whose buffers the documents count."""
    with impl.Tensor("d").ones(ctx, (8,)) as start:
        x, places = start.scale(ctx, 1.0), set()
        for _ in range(32):
            x = ctx.replace(x, x.scale(ctx, 1.5))
            places.add(x.as_raw_tensor().buffer.address)
        x.deinit()
        with ctx.exec_scope():
            x, owned = start, set()
            for _ in range(32):
                x = x.scale(ctx, 1.5)
                owned.add(x.as_raw_tensor().buffer.address)
            return [len(places), len(owned), bits(x).tolist(), held(ctx)]


EXAMPLES: dict[str, tuple[Example, Callable[[list[Any]], bool]]] = {
    "lifecycle": (lifecycle, lambda seen: seen[0] == [2, 4, 6, 8]),
    "replace": (replace, lambda seen: seen[-3] == [8, 16]),
    "training step": (training_step, lambda seen: seen[0] == seen[7] == [2, 4, 6]),
    "deinit without effect": (deinit_without_effect, lambda seen: seen[0] == [6, 8]),
    "policy": (policy, lambda seen: seen[:4] == [DType.f16, DType.f32, DType.f32, [4, 7]]),
    "raw metadata": (raw_metadata, lambda seen: seen[:4] == [(2, 3), (3, 1), 0, True]),
    "chain": (chain, lambda seen: seen[:2] == [2, 32]),
}

GOVERNED = clause(
    *("FACADE-NEW-2", "FACADE-OWN-1", "FACADE-OWN-2", "FACADE-OWN-3", "FACADE-RAW-1", "CONTEXT-REPLACE-1"),
    *("POLICY-RESULT-1", "AUTOGRAD-BACK-2", "AUTOGRAD-GRAD-1", "SCOPE-BORROW-1"),
)


def run(impl: Any, name: str) -> list[object]:
    with impl.ExecContext() as ctx:
        seen = EXAMPLES[name][0](impl, ctx)
        assert held(ctx) == (0, 0, 0)
    return seen


@GOVERNED
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(impl: Any, name: str) -> None:
    seen = run(impl, name)
    assert EXAMPLES[name][1](seen), seen


@GOVERNED
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_in_lockstep(impl: Any, judge: Any, name: str) -> None:
    assert run(impl, name) == run(judge, name)


@clause("FACADE-NEW-7", "POLICY-DROPOUT-1")
def test_the_documents_reproducible_chunks(impl: Any) -> None:
    """A tensor of random numbers is what the counter-based fill gives chunk by chunk."""
    with impl.ExecContext() as ctx, impl.Tensor("d").randn(ctx, (6,), 7) as x:
        parts = np.zeros(6, np.float32)
        impl.rng.gaussian_fill_at(7, 0, parts[:2], 1.0)
        impl.rng.gaussian_fill_at(7, 2, parts[2:], 1.0)
        assert x.data_const().tolist() == parts.tolist()
