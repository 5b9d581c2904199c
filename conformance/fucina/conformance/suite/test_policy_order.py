"""Order: argmax, sort, argsort and top_k, with ties, zeros of both signs and NaNs."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fucina.conformance import clause
from fucina.conformance.compare import PATTERN, assert_bits, assert_raises
from fucina.conformance.strategies import patterns
from fucina.conformance.suite import exact, formulas
from fucina.conformance.suite.raw_arithmetic import REAL
from fucina.conformance.suite.tagged import bits, constant, f32, state
from fucina.spec import DType
from fucina.spec.errors import (
    EmptySelection,
    IndexOutOfBounds,
    InvalidInteger,
    InvalidTag,
)

each_real = pytest.mark.parametrize("dtype", REAL, ids=lambda d: d.name)
SPECIAL = (0.0, -0.0, 1.0, 1.0, -1.0, 2.0, float("inf"), float("-inf"), float("nan"))


@pytest.fixture(scope="module")
def ctx(impl: Any) -> Any:
    with impl.ExecContext() as found:
        yield found


def rows_of(array: Any, axis: int) -> Any:
    """Return the rows along an axis, as one of lists."""
    moved = np.moveaxis(array, axis, -1)
    return moved.reshape(-1, moved.shape[-1])


def back(rows: Any, shape: tuple[int, ...], axis: int) -> Any:
    """Put rows back along an axis."""
    rest = shape[:axis] + shape[axis + 1 :]
    return np.ascontiguousarray(np.moveaxis(np.asarray(rows).reshape(*rest, -1), -1, axis))


def verify(impl: Any, ctx: Any, dtype: DType, codes: Any, axis: int) -> None:
    """Compare everything that orders along an axis with the judge."""
    tag = "abc"[axis]
    rows = rows_of(codes, axis)
    values = [exact.decode(dtype, row).tolist() for row in rows]
    nan = (1 << 15) - 1  # the place of what is missing, behind all indices
    with constant(impl, ctx, dtype, codes) as x:
        with x.argmax(ctx, tag) as got:
            wanted = np.array([formulas.argmax(row) for row in values], np.int64)
            assert (got.dtype, got.requires_grad) == (DType.i64, False)
            assert_bits(
                bits(got).reshape(-1), wanted.view(np.uint64), dtype=DType.i64, what="argmax", clause="POLICY-ARGMAX-1"
            )
            assert got.shape == codes.shape[:axis] + codes.shape[axis + 1 :]
        for descending in (False, True):
            orders = [formulas.order(row, descending=descending) for row in values]
            places = back(orders, codes.shape, axis).astype(np.uint64)
            with x.argsort(ctx, tag, descending) as got, x.sort(ctx, tag, descending=descending) as record:
                for one in (got, record.indices):
                    assert (one.dtype, one.axis_tags) == (DType.i64, x.axis_tags)
                    assert_bits(bits(one), places, what=f"argsort {descending}", clause="POLICY-SORT-1")
                moved = back([row[order] for row, order in zip(rows, orders, strict=True)], codes.shape, axis)
                assert record.values.dtype is dtype
                assert_bits(bits(record.values), moved, dtype=dtype, what=f"sort {descending}", clause="POLICY-SORT-1")
                assert record.values.as_raw_tensor().is_contiguous()
                assert record.indices.as_raw_tensor().is_contiguous()
        low = int(exact.encode(dtype, np.array([-np.inf]))[0])
        for k in {1, (codes.shape[axis] + 1) // 2, codes.shape[axis]}:
            some, there = [], []
            for row, value in zip(rows, values, strict=True):
                order = [i for i in formulas.order(value, descending=True) if value[i] == value[i]][:k]
                some.append([int(row[i]) for i in order] + [low] * (k - len(order)))
                there.append(order + [0] * (k - len(order)))
            with x.top_k(ctx, tag, k) as record:
                shape = (*codes.shape[:axis], k, *codes.shape[axis + 1 :])
                assert record.values.shape == record.indices.shape == shape
                wanted = back(np.array(some, PATTERN[dtype]), shape, axis)
                assert_bits(bits(record.values), wanted, dtype=dtype, what=f"top {k}", clause="POLICY-TOPK-1")
                wanted = back(np.array(there, np.uint64), shape, axis)
                assert_bits(bits(record.indices), wanted, what=f"top {k}", clause="POLICY-TOPK-1")
    assert codes.shape[axis] < nan


@clause("POLICY-ARGMAX-1", "POLICY-SORT-1", "POLICY-TOPK-1", "POLICY-RESULT-1")
@each_real
@given(data=st.data())
def test_anything(impl: Any, ctx: Any, dtype: DType, data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from(((1,), (7,), (40,), (3, 5), (2, 3, 4), (5, 1, 2))))
    few = data.draw(st.lists(patterns(dtype), min_size=1, max_size=6))
    special = exact.encode(dtype, np.array(SPECIAL)).tolist()
    picks = data.draw(st.lists(st.sampled_from([*few, *special]), min_size=1, max_size=60))
    verify(
        impl, ctx, dtype, np.resize(np.array(picks, PATTERN[dtype]), shape), data.draw(st.integers(0, len(shape) - 1))
    )


@clause("POLICY-ARGMAX-1", "POLICY-SORT-1", "POLICY-TOPK-1")
@each_real
def test_specials_in_many_orders(impl: Any, ctx: Any, dtype: DType) -> None:
    special = exact.encode(dtype, np.array(SPECIAL))
    sign = PATTERN[dtype].type(1 << (8 * PATTERN[dtype].itemsize - 1))
    other_nan = np.array([special[-1] | 3, (special[-1] | 5) | sign], PATTERN[dtype])
    every = np.concatenate([special, other_nan])
    draw = np.random.Generator(np.random.PCG64(1))
    codes = np.stack([draw.permutation(every) for _ in range(12)])
    for axis in (0, 1):
        verify(impl, ctx, dtype, codes, axis)
    verify(impl, ctx, dtype, np.full((2, 5), special[-1]), 1)
    verify(impl, ctx, dtype, np.array([other_nan[0], special[7], other_nan[1]]), 0)


@clause("POLICY-SORT-1", "POLICY-ARGMAX-1")
@pytest.mark.parametrize("n", [33, 64, 129, 500])
def test_longer_ones_are_stable(impl: Any, ctx: Any, n: int) -> None:
    draw = np.random.Generator(np.random.PCG64(n))
    codes = exact.encode(DType.f32, draw.integers(-3, 4, n).astype(np.float64))
    codes[draw.integers(0, n, 5)] = 0x80000000
    codes[draw.integers(0, n, 5)] = 0x7FC00001
    verify(impl, ctx, DType.f32, codes, 0)


@clause("POLICY-SORT-1", "NUM-NAN-1")
def test_nans_keep_their_bits(impl: Any, ctx: Any) -> None:
    codes = [0x7F800001, 0x3F800000, 0xFFC12345, 0x7FC00000]
    with constant(impl, ctx, DType.f32, codes) as x:
        for descending in (False, True):
            with x.sort(ctx, "a", descending) as record:
                assert bits(record.values).tolist() == [0x3F800000, 0x7F800001, 0xFFC12345, 0x7FC00000]
                assert record.indices.data_const().tolist() == [1, 0, 2, 3]


@clause("POLICY-CONST-1", "AUTOGRAD-TRACK-1")
def test_no_gradients(impl: Any, ctx: Any) -> None:
    with f32(impl, ctx, [[1.0, 2.0]], grad=True) as w:
        refs = w.as_raw_tensor().buffer.refs
        made = [w.argmax(ctx, "b"), w.argsort(ctx, "b"), *w.sort(ctx, "b"), *w.top_k(ctx, "b", 1)]
        assert not any(t.requires_grad for t in made)
        assert w.as_raw_tensor().buffer.refs == refs, "nothing is saved"
        with made[0].reshape(ctx, (1,), ("i",)) as i, impl.Tensor("i", "c").one_hot(ctx, i, 2) as h:
            assert not h.requires_grad
        for t in made:
            t.deinit()


@clause("POLICY-TOPK-1", "POLICY-ARGMAX-1", "POLICY-SORT-1")
def test_errors(impl: Any, ctx: Any) -> None:
    with f32(impl, ctx, np.ones((2, 3))) as x, impl.Tensor().scalar(ctx, 1.0) as s:
        before = state(ctx, x, s)
        for k, wrong in (
            *(
                (0, EmptySelection),
                (4, IndexOutOfBounds),
                (-1, IndexOutOfBounds),
                (1 << 64, (IndexOutOfBounds, OverflowError)),
            ),
            *((1.0, InvalidInteger), (None, InvalidInteger), (True, InvalidInteger), ("1", InvalidInteger)),
        ):
            assert_raises(wrong, None, partial(x.top_k, ctx, "b", k), what=repr(k))
        assert_raises(InvalidTag, None, lambda: x.top_k(ctx, "c", 0))
        for name in ("argmax", "argsort", "sort"):
            for wrong_axis in ("c", None, 0, ("a",)):
                assert_raises(InvalidTag, None, partial(getattr(x, name), ctx, wrong_axis))
                assert_raises(InvalidTag, None, partial(getattr(s, name), ctx, wrong_axis))
        assert state(ctx, x, s) == before
