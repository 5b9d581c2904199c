"""Which operation there is for which dtype: every method on each of the 40, and the dtypes of results."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import assert_raises
from fucina.conformance.suite.blocks import FORMATS, sizes
from fucina.conformance.suite.casts import SCALARS, STORAGE, VALUE_TYPES
from fucina.conformance.suite.raw_arithmetic import ARITHMETIC, REAL, accumulator
from fucina.conformance.suite.tagged import constant, pattern_noise, state
from fucina.spec import GEOMETRY, DType
from fucina.spec.errors import DTypeMismatch, InvalidDType

EVERY = tuple(DType)
SMALL = (DType.f16, DType.bf16, DType.f32)
F32 = (DType.f32,)

TABLE: dict[str, tuple[DType, ...]] = {
    **dict.fromkeys(("constant", "from_tensor", "empty"), EVERY),
    **dict.fromkeys(("shape", "dim", "len", "data", "data_const", "requires_grad", "scope_owned", "repr"), EVERY),
    **dict.fromkeys(("as_raw_tensor", "asarray", "deinit"), EVERY),
    **dict.fromkeys(("from_slice", "from_borrowed_slice", "from_borrowed_const_slice", "zeros", "ones"), SCALARS),
    **dict.fromkeys(("full", "scalar", "zeros_like", "ones_like", "full_like", "empty_like"), SCALARS),
    **dict.fromkeys(("reshape", "flatten", "contiguous", "narrow", "permute", "transpose"), SCALARS),
    **dict.fromkeys(("broadcast_to", "split", "merge"), SCALARS),
    **dict.fromkeys(("variable", "variable_from_slice", "backward", "grad", "grad_view", "zero_grad"), SMALL),
    **dict.fromkeys(("from_blocks", "from_borrowed_blocks"), FORMATS),
    **dict.fromkeys(("arange", "linspace", "eye", "one_hot", "rand", "uniform"), F32),
    **dict.fromkeys(("randn", "normal", "gumbel", "bernoulli"), F32),
    **dict.fromkeys(("randint", "randperm"), (DType.i64,)),
    **dict.fromkeys(("add", "sub", "mul", "div"), ARITHMETIC),
    **dict.fromkeys(("scale", "add_scalar", "mean", "dot", "argmax", "argsort", "sort", "top_k"), REAL),
    **dict.fromkeys(("sum", "sum_all"), (*ARITHMETIC, DType.bool)),
    "dropout": SMALL,
    **dict.fromkeys(("nll_loss", "l2_normalize", "cosine_similarity"), F32),
    **dict.fromkeys(("take_add_no_grad", "take_scale_no_grad"), F32),
    **dict.fromkeys(("get_rows", "to"), EVERY),
}
"""POLICY-BRANCH-1."""

TAKES = ("take_add_no_grad", "take_scale_no_grad")


def _element(impl: Any, dtype: DType) -> Any:
    """Return a one as an element of a dtype; of a block dtype, any number."""
    if dtype in VALUE_TYPES:
        return getattr(impl, VALUE_TYPES[dtype]).from_f32(1.0)
    return True if dtype is DType.bool else 1


def _tensor(impl: Any, ctx: Any, dtype: DType) -> Any:
    """Return a tensor of a dtype with two axes, the first of size 2."""
    if dtype in SCALARS:
        array = np.ones((2, 3), np.uint8) if dtype is DType.bool else pattern_noise(dtype, (2, 3)) | 1
        return constant(impl, ctx, dtype, array)
    n, size = sizes(dtype)
    return impl.Tensor("a", "b", dtype=dtype).constant(ctx, ctx.from_storage_slice((2, n), bytes(2 * size), dtype))


def _members(impl: Any, ctx: Any, dtype: DType, x: Any, k: Any = None) -> dict[str, Callable[[], Any]]:
    """Return a correct call of each member on a dtype."""
    kind, one, scalar = type(x), impl.Tensor("a", dtype=dtype), impl.Tensor(dtype=dtype)
    element, shape = _element(impl, dtype), x.shape
    form = STORAGE.get(dtype, np.dtype(np.float32))
    row = np.ones(2, form)
    n, size = GEOMETRY[dtype].block_size, GEOMETRY[dtype].byte_size
    blocks, whole = bytearray(size), (n or 1,)

    def on_a_leaf(name: str, *arguments: Any) -> Any:
        leaf = scalar.variable_from_slice(ctx, (), [element])
        found = getattr(leaf, name)(*arguments)
        leaf.deinit()
        return found

    def gradients(name: str) -> Callable[[], Any]:
        """On a leaf where there are some; a constant of a dtype that has none is refused."""
        arguments = () if name == "zero_grad" else (ctx,)
        if dtype in SMALL:
            return partial(on_a_leaf, name, *arguments)
        return partial(getattr(x, name), *arguments)

    return {
        **{name: partial(_of_raw, ctx, kind, dtype, shape, name) for name in ("constant", "from_tensor", "variable")},
        "empty": lambda: kind.empty(ctx, shape),
        "shape": lambda: x.shape,
        "dim": lambda: x.dim("b"),
        "len": lambda: len(x),
        "data": lambda: x.data(),
        "data_const": lambda: x.data_const(),
        "requires_grad": lambda: x.requires_grad,
        "scope_owned": lambda: x.scope_owned,
        "repr": lambda: repr(x),
        "as_raw_tensor": lambda: x.as_raw_tensor(),
        "asarray": lambda: np.asarray(x),
        "deinit": lambda: kind.empty(ctx, shape).deinit(),
        "from_slice": lambda: one.from_slice(ctx, (2,), row),
        "variable_from_slice": lambda: one.variable_from_slice(ctx, (2,), row),
        "from_borrowed_slice": lambda: one.from_borrowed_slice(ctx, (2,), row),
        "from_borrowed_const_slice": lambda: one.from_borrowed_const_slice(ctx, (2,), row),
        "zeros": lambda: kind.zeros(ctx, shape),
        "ones": lambda: kind.ones(ctx, shape),
        "full": lambda: kind.full(ctx, shape, element),
        "scalar": lambda: scalar.scalar(ctx, element),
        **{f"{name}_like": partial(getattr(kind, f"{name}_like"), ctx, x) for name in ("empty", "zeros", "ones")},
        "full_like": lambda: kind.full_like(ctx, x, element),
        "reshape": lambda: x.reshape(ctx, shape),
        "flatten": lambda: x.flatten(ctx, "f"),
        "contiguous": lambda: x.contiguous(ctx),
        "narrow": lambda: x.narrow(ctx, "a", 0, 1),
        "permute": lambda: x.permute(ctx, ("b", "a")),
        "transpose": lambda: x.transpose(ctx, "a", "b"),
        "broadcast_to": lambda: x.broadcast_to(ctx, (2, *shape), ("n", "a", "b")),
        "split": lambda: x.split(ctx, "a", (2, 1), ("p", "q")),
        "merge": lambda: x.merge(ctx, ("a", "b"), "f"),
        **{name: gradients(name) for name in ("backward", "grad", "grad_view", "zero_grad")},
        "from_blocks": lambda: one.from_blocks(ctx, whole, blocks),
        "from_borrowed_blocks": lambda: one.from_borrowed_blocks(ctx, whole, blocks),
        "arange": lambda: one.arange(ctx, 0, 3),
        "linspace": lambda: one.linspace(ctx, 0, 1, 3),
        "eye": lambda: kind.eye(ctx, 2),
        "one_hot": lambda: kind.one_hot(ctx, [0, 1], 2),
        **{name: partial(getattr(kind, name), ctx, (2, 2), 1) for name in ("rand", "randn", "gumbel")},
        "uniform": lambda: kind.uniform(ctx, (2, 2), 1, 0.0, 1.0),
        "normal": lambda: kind.normal(ctx, (2, 2), 1, 0.0, 1.0),
        "bernoulli": lambda: kind.bernoulli(ctx, (2, 2), 1, 0.5),
        "randint": lambda: kind.randint(ctx, (2, 2), 1, 0, 5),
        "randperm": lambda: one.randperm(ctx, 4, 1),
        **{name: partial(getattr(x, name), ctx, x) for name in ("add", "sub", "mul", "div")},
        "scale": lambda: x.scale(ctx, 2.0),
        "add_scalar": lambda: x.add_scalar(ctx, 2.0),
        "sum": lambda: x.sum(ctx, "a"),
        "sum_all": lambda: x.sum_all(ctx),
        "mean": lambda: x.mean(ctx, "a"),
        "dot": lambda: k.dot(ctx, k),
        "argmax": lambda: x.argmax(ctx, "b"),
        "argsort": lambda: x.argsort(ctx, "b"),
        "sort": lambda: x.sort(ctx, "b"),
        "top_k": lambda: x.top_k(ctx, "b", 1),
        "dropout": lambda: x.dropout(ctx, 0.5, 1),
        "nll_loss": lambda: x.nll_loss(ctx, [0, 0], "b"),
        "l2_normalize": lambda: x.l2_normalize(ctx, "b"),
        "cosine_similarity": lambda: x.cosine_similarity(ctx, x, "b"),
        "take_add_no_grad": lambda: x.take_add_no_grad(ctx, x),
        "take_scale_no_grad": lambda: x.take_scale_no_grad(ctx, 2.0),
        "get_rows": lambda: x.get_rows(ctx, [1, 0]),
        "to": lambda: x.to(ctx, DType.f32),
    }


def _of_raw(ctx: Any, kind: Any, dtype: DType, shape: tuple[int, ...], name: str) -> Any:
    raw = ctx.empty(shape, dtype)
    try:
        return getattr(kind, name)(ctx, raw)
    finally:
        raw.deinit()


@clause("POLICY-BRANCH-1")
@pytest.mark.parametrize("dtype", EVERY, ids=lambda d: d.name)
def test_each_member_on_each_dtype(impl: Any, dtype: DType) -> None:
    with impl.ExecContext() as ctx:
        x, k = _tensor(impl, ctx, dtype), impl.Tensor("k", dtype=dtype).empty(ctx, (GEOMETRY[dtype].block_size or 2,))
        members = _members(impl, ctx, dtype, x, k)
        assert members.keys() == TABLE.keys()
        for name in sorted(members, key=lambda name: name in TAKES):
            if dtype not in TABLE[name]:
                before = state(ctx, x, k)
                error = assert_raises(InvalidDType, "POLICY-BRANCH-1", members[name], what=f"{name} of {dtype.name}")
                assert dtype.name in str(error), f"ERR-MSG-1: {name}: {error}"
                assert state(ctx, x, k) == before, f"POLICY-BRANCH-1: {name} of {dtype.name} changed something"
                continue
            if name in TAKES:
                x.deinit()
                x = _tensor(impl, ctx, dtype)
                members = _members(impl, ctx, dtype, x, k)
            try:
                result = _backward(impl, ctx, dtype) if name == "backward" else members[name]()
            except InvalidDType as refusal:
                raise AssertionError(f"POLICY-BRANCH-1: {name} of {dtype.name} is refused: {refusal}") from refusal
            if hasattr(result, "deinit") and name != "as_raw_tensor":
                result.deinit()
            del result
        x.deinit()
        k.deinit()
        del members, x, k


def _backward(impl: Any, ctx: Any, dtype: DType) -> Any:
    with ctx.exec_scope(), impl.Tensor(dtype=dtype).variable_from_slice(ctx, (), [_element(impl, dtype)]) as w:
        return w.scale(ctx, 2.0).backward(ctx)


@clause("POLICY-BRANCH-1", "BLOCK-DECODE-1", "POLICY-TO-1")
@pytest.mark.parametrize("source", EVERY, ids=lambda d: d.name)
def test_conversions_that_there_are(impl: Any, source: DType) -> None:
    with impl.ExecContext() as ctx, _tensor(impl, ctx, source) as x:
        for target in EVERY:
            if target in SCALARS if source in SCALARS else target is DType.f32:
                with x.to(ctx, target) as y:
                    assert (y.dtype, y.shape, y.axis_tags) == (target, x.shape, x.axis_tags)
            else:
                before = state(ctx, x)
                assert_raises(InvalidDType, None, partial(x.to, ctx, target), what=f"{source.name} to {target.name}")
                assert state(ctx, x) == before
        for wrong in ("f32", None, np.float32, 9):
            assert_raises(InvalidDType, None, partial(x.to, ctx, wrong))


# -- one dtype, and which one comes out


@clause("POLICY-MIXED-1")
@pytest.mark.parametrize("dtype", EVERY, ids=lambda d: d.name)
def test_two_dtypes(impl: Any, dtype: DType) -> None:
    for other in (DType.f32, DType.f16, DType.i32, DType.bool, DType.q8_0):
        if other is dtype:
            continue
        with impl.ExecContext() as ctx, _tensor(impl, ctx, dtype) as x, _tensor(impl, ctx, other) as y:
            before = state(ctx, x, y)
            for name in ("add", "sub", "mul", "div", "dot", "take_add_no_grad", "cosine_similarity"):
                if dtype not in TABLE[name] or (other not in TABLE[name] and name != "take_add_no_grad"):
                    continue
                rest = ("b",) if name == "cosine_similarity" else ()
                error = assert_raises(
                    DTypeMismatch, "POLICY-MIXED-1", partial(getattr(x, name), ctx, y, *rest), what=name
                )
                assert "to" in str(error).replace("(", " ").replace("`", " ").split() or "to(" in str(error)
            assert state(ctx, x, y) == before


@clause("POLICY-RESULT-1")
@pytest.mark.parametrize("dtype", SCALARS, ids=lambda d: d.name)
def test_dtypes_of_results(impl: Any, dtype: DType) -> None:
    wide = accumulator(dtype)
    with impl.ExecContext() as ctx, _tensor(impl, ctx, dtype) as x, impl.Tensor("b", dtype=dtype).ones(ctx, (3,)) as y:
        members = _members(impl, ctx, dtype, x)
        for name in ("add", "sub", "mul", "div", "scale", "add_scalar", "dropout", "get_rows"):
            if dtype in TABLE[name]:
                with members[name]() as result:
                    assert result.dtype is dtype, f"POLICY-RESULT-1: {name} of {dtype.name}"
                    assert result.as_raw_tensor().is_contiguous()
        for name in ("sum", "sum_all", "mean"):
            if dtype in TABLE[name]:
                with members[name]() as result:
                    assert result.dtype is (wide if dtype in REAL else DType.i64), f"{name} of {dtype.name}"
        if dtype in REAL:
            with x.dot(ctx, y) as result:
                assert result.dtype is dtype
            for name in ("argmax", "argsort"):
                with members[name]() as result:
                    assert result.dtype is DType.i64
            for name in ("sort", "top_k"):
                with members[name]() as record:
                    assert (record.values.dtype, record.indices.dtype) == (dtype, DType.i64)
                    assert record.values.as_raw_tensor().is_contiguous()
