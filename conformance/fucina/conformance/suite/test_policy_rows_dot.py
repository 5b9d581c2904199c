"""Rows by index, bit for bit, and products of sums by the chain of fma."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fucina.conformance import clause
from fucina.conformance.compare import PATTERN, assert_bits, assert_raises
from fucina.conformance.strategies import patterns
from fucina.conformance.suite import exact, formulas
from fucina.conformance.suite.blocks import FORMATS, gaussian, sizes
from fucina.conformance.suite.casts import INTEGERS, SCALARS
from fucina.conformance.suite.pace import Note, scaled
from fucina.conformance.suite.raw_arithmetic import REAL, accumulator
from fucina.conformance.suite.tagged import bits, check, constant, f32, pattern_noise, state
from fucina.spec import DType
from fucina.spec.errors import (
    DTypeMismatch,
    EmptySelection,
    IndexOutOfBounds,
    InvalidDType,
    InvalidInteger,
    InvalidShape,
    InvalidTag,
    ShapeMismatch,
)

F32 = DType.f32


@pytest.fixture(scope="module")
def ctx(impl: Any) -> Any:
    with impl.ExecContext() as found:
        yield found


# -- rows


@clause("POLICY-ROWS-1")
@pytest.mark.parametrize("dtype", SCALARS, ids=lambda d: d.name)
def test_rows(impl: Any, ctx: Any, dtype: DType) -> None:
    for shape in ((4,), (4, 3), (4, 2, 3)):
        codes = pattern_noise(dtype, shape)
        with constant(impl, ctx, dtype, codes) as x:
            for indices in ([2], (3, 0, 3, 1), range(3, -1, -1), np.array([1, 1], np.uint16), np.array([0, 3])[::-1]):
                with x.get_rows(ctx, indices) as got:
                    assert (got.axis_tags, got.dtype, got.as_raw_tensor().is_contiguous()) == (x.axis_tags, dtype, True)
                    assert_bits(bits(got), codes[list(indices)], what=f"{shape} {indices}", clause="POLICY-ROWS-1")
            for kind in INTEGERS:
                indices = impl.Tensor("i", "j", dtype=kind).from_slice(ctx, (2, 2), [3, 0, 1, 1])
                with indices, indices.transpose(ctx, "i", "j") as turned, x.get_rows(ctx, turned) as got:
                    assert got.axis_tags == ("j", "i", *x.axis_tags[1:])
                    assert_bits(bits(got), codes[[[3, 1], [0, 1]]], what=kind.name, clause="POLICY-ROWS-1")
            with impl.Tensor(dtype=DType.i64).scalar(ctx, 2) as one, x.get_rows(ctx, one) as got:
                assert got.axis_tags == x.axis_tags[1:]
                assert_bits(bits(got), np.asarray(codes[2]), what="one index", clause="POLICY-ROWS-1")
        with impl.Tensor(len(shape), dtype=dtype).constant(ctx, _raw(ctx, dtype, codes)) as n:
            with n.get_rows(ctx, [3, 1]) as got:
                assert got.axis_tags == tuple(range(len(shape)))
                assert_bits(bits(got), codes[[3, 1]], clause="POLICY-ROWS-1")
            with (
                impl.Tensor(2, dtype=DType.u8).from_slice(ctx, (1, 2), [3, 0]) as indices,
                n.get_rows(ctx, indices) as got,
            ):
                assert got.axis_tags == tuple(range(len(shape) + 1))
                assert_bits(bits(got), codes[[[3, 0]]], clause="POLICY-ROWS-1")


def _raw(ctx: Any, dtype: DType, codes: Any) -> Any:
    raw = ctx.empty(codes.shape, dtype)
    raw.data().view(PATTERN[dtype])[:] = codes.reshape(-1)
    return raw


@clause("POLICY-ROWS-1", "BLOCK-DECODE-1", "POLICY-TO-1")
@pytest.mark.parametrize("dtype", FORMATS, ids=lambda d: d.name)
def test_rows_of_blocks(impl: Any, ctx: Any, dtype: DType) -> None:
    n, size = sizes(dtype)
    payload = (np.abs(gaussian(4 * 2 * size)) * 60).astype(np.uint8).tobytes()
    values = impl.quant.dequantize(dtype, np.frombuffer(payload, impl.dtype.storage(dtype))).reshape(4, 2 * n)
    kind = impl.Tensor("row", "d", dtype=dtype)
    with kind.from_blocks(ctx, (4, 2 * n), payload) as w:
        with w.to(ctx, F32) as y:
            assert (y.dtype, y.axis_tags) == (F32, ("row", "d"))
            assert_bits(bits(y), values.view(np.uint32), nan="any", dtype=F32, what="to", clause="POLICY-TO-1")
        with w.get_rows(ctx, [3, 0, 3]) as got:
            assert (got.dtype, got.axis_tags) == (F32, ("row", "d"))
            assert_bits(bits(got), values[[3, 0, 3]].view(np.uint32), nan="any", dtype=F32, clause="POLICY-ROWS-1")
        with (
            impl.Tensor("i", "j", dtype=DType.i8).from_slice(ctx, (1, 2), [1, 2]) as indices,
            w.get_rows(ctx, indices) as got,
        ):
            assert got.axis_tags == ("i", "j", "d")
            assert_bits(bits(got), values[[[1, 2]]].view(np.uint32), nan="any", dtype=F32, clause="POLICY-ROWS-1")
        assert_raises(IndexOutOfBounds, None, lambda: w.get_rows(ctx, [4]))
    with impl.Tensor("d", dtype=dtype).from_blocks(ctx, (8 * n,), payload) as flat:
        assert_raises(InvalidShape, None, lambda: flat.get_rows(ctx, [0]))
    with impl.Tensor("a", "b", "d", dtype=dtype).from_blocks(ctx, (2, 2, 2 * n), payload) as cube:
        assert_raises(InvalidShape, None, lambda: cube.get_rows(ctx, [0]))


@clause("POLICY-ROWS-1")
def test_the_tags_of_indices_alone(impl: Any, ctx: Any) -> None:
    """Of a tensor of one axis the result has the tags of the indices, whichever kind of tags that is."""
    with (
        f32(impl, ctx, [1.0, 2.0], ("v",)) as named,
        impl.Tensor(1).from_slice(ctx, (2,), [1.0, 2.0]) as bare,
        impl.Tensor(2, dtype=DType.u8).from_slice(ctx, (2, 1), [1, 0]) as numbered,
        impl.Tensor("v", "w", dtype=DType.u8).from_slice(ctx, (2, 1), [1, 0]) as tagged,
    ):
        for table in (named, bare):
            for indices in (numbered, tagged):
                with table.get_rows(ctx, indices) as got:
                    assert got.axis_tags == indices.axis_tags
                    assert got.data_const().tolist() == [2.0, 1.0]


@clause("POLICY-ROWS-1")
def test_errors_of_rows(impl: Any, ctx: Any) -> None:
    with (
        f32(impl, ctx, np.ones((4, 3)), ("v", "d")) as x,
        impl.Tensor().scalar(ctx, 1.0) as s,
        impl.Tensor("d", dtype=DType.i64).zeros(ctx, (2,)) as same,
        f32(impl, ctx, [0.0, 1.0]) as floats,
        impl.Tensor("i", dtype=DType.i8).from_slice(ctx, (2,), [0, -1]) as negative,
        impl.Tensor(1, dtype=DType.i64).zeros(ctx, (1,)) as bare,
    ):
        before = state(ctx, x, s, same, negative)
        for wrong, kind in (
            *(
                ([4], IndexOutOfBounds),
                ([-1], IndexOutOfBounds),
                ([0, 1 << 64], (IndexOutOfBounds, OverflowError)),
            ),
            *((negative, IndexOutOfBounds), (np.array([9], np.uint8), IndexOutOfBounds)),
            *(([], EmptySelection), (range(0), EmptySelection), (np.empty(0, np.int64), EmptySelection)),
            *((same, InvalidTag), (floats, (InvalidDType, DTypeMismatch)), (bare, InvalidTag)),
            *(
                ([0.0], (InvalidInteger, DTypeMismatch)),
                ("01", (InvalidInteger, DTypeMismatch)),
                (None, (InvalidInteger, DTypeMismatch)),
            ),
            *(
                ([True], (InvalidInteger, DTypeMismatch)),
                (np.ones(2), (InvalidInteger, DTypeMismatch, InvalidDType)),
            ),
        ):
            assert_raises(kind, None, partial(x.get_rows, ctx, wrong), what=repr(wrong))
        assert_raises(InvalidShape, None, lambda: s.get_rows(ctx, [0]))
        assert state(ctx, x, s, same, negative) == before
        with impl.Tensor("v", dtype=DType.i64).zeros(ctx, (2,)) as first, x.get_rows(ctx, first) as got:
            assert got.axis_tags == ("v", "d"), "the first tag gives way"


# -- products


@clause("POLICY-DOT-1", "NUM-NAN-2")
@pytest.mark.parametrize("dtype", REAL, ids=lambda d: d.name)
@given(data=st.data())
def test_chains_of_anything(impl: Any, ctx: Any, dtype: DType, data: st.DataObject) -> None:
    m, k, n = data.draw(st.tuples(st.integers(1, 3), st.integers(1, 12), st.integers(1, 3)))
    a, b = (
        np.resize(np.array(data.draw(st.lists(patterns(dtype), min_size=1, max_size=12)), PATTERN[dtype]), shape)
        for shape in ((m, k), (k, n))
    )
    wanted = formulas.dot(dtype, exact.decode(dtype, a), exact.decode(dtype, b), 1, 0)
    with constant(impl, ctx, dtype, a, tags=("m", "k")) as x, constant(impl, ctx, dtype, b, tags=("k", "n")) as y:
        for turn in ("", ", again"):  # types that have met before may take another way
            check(x.dot(ctx, y), wanted, f"{m}x{k}x{n}{turn}", "POLICY-DOT-1", dtype)


@clause("POLICY-DOT-1", "NUM-ARITH-1")
@pytest.mark.parametrize("dtype", REAL, ids=lambda d: d.name)
def test_the_chain_is_fused_and_in_order(impl: Any, ctx: Any, dtype: DType) -> None:
    """Against what separate roundings, another order, lanes, or a wider accumulator would give."""
    k = 64
    a, b = pattern_noise(dtype, (3, k), 1), pattern_noise(dtype, (k, 3), 2)
    x, y = exact.decode(dtype, a), exact.decode(dtype, b)
    wide = accumulator(dtype)
    wanted = formulas.dot(wide, x, y, 1, 0)  # before the last rounding
    twice = np.array([[_unfused(wide, row, column) for column in y.T.tolist()] for row in x.tolist()])
    turned = formulas.dot(wide, x[:, ::-1], y[::-1], 1, 0)
    if wide is dtype:
        assert min((twice != wanted).sum(), (turned != wanted).sum()), "the numbers tell nothing"
    with (
        constant(impl, ctx, dtype, a, tags=("m", "k")) as left,
        constant(impl, ctx, dtype, b, tags=("k", "n")) as right,
    ):
        check(left.dot(ctx, right), formulas.dot(dtype, x, y, 1, 0), f"{k}", "POLICY-DOT-1", dtype)


def _unfused(dtype: DType, a: list[float], b: list[float]) -> float:
    acc = 0.0
    for one, other in zip(a, b, strict=True):
        acc = exact.add(dtype, acc, exact.mul(dtype, one, other))
    return acc


@clause("POLICY-DOT-1")
def test_fma_at_its_edges(impl: Any, ctx: Any) -> None:
    """Products that cancel, that lie under the least subnormal, ties decided by the product's last bits, overflow."""
    one = 1 + 2.0**-23
    for a, b in (
        ([one, -1.0], [one, 1 + 2.0**-22]),
        ([2.0**-100, 1.0], [2.0**-100, 2.0**-149]),
        ([1.0, 2.0**-75, 1.0], [1.0, 2.0**-75, 2.0**-24]),
        ([1.0, 1.0], [2.0**-24, 1.0]),
        ([1.0, 2.0**-12, 2.0**-60], [1.0, 2.0**-12, 2.0**-60]),
        ([3e38, 3e38], [3e38, -3e38]),
        ([-0.0, -0.0], [1.0, 1.0]),
        ([2.0**127, -(2.0**127)], [2.0, 1.9999998807907104]),
        ([float("inf"), 1.0], [0.0, 1.0]),
    ):
        with f32(impl, ctx, a) as x, f32(impl, ctx, b) as y:
            values = [np.float32(v).item() for v in a], [np.float32(v).item() for v in b]
            check(x.dot(ctx, y), exact.chain(F32, *values), f"{a} {b}", "POLICY-DOT-1", F32)


@clause("POLICY-DOT-1", "FACADE-AXIS-1")
def test_axes_of_products(impl: Any, ctx: Any) -> None:
    sizes = {"a": 2, "b": 3, "c": 4, "d": 2}
    for left, right in product(("c", "ac", "ca", "acb", "bac"), ("c", "cd", "dc")):
        one, other = (pattern_noise(F32, [sizes[tag] for tag in tags], 3) for tags in (left, right))
        x, y = constant(impl, ctx, F32, one, tags=tuple(left)), constant(impl, ctx, F32, other, tags=tuple(right))
        i, j = left.index("c"), right.index("c")
        wanted = formulas.dot(F32, exact.decode(F32, one), exact.decode(F32, other), i, j)
        for arguments in ((), (), ("c",), (None,)):
            got = x.dot(ctx, y, *arguments)
            assert got.axis_tags == tuple((left + right).replace("c", "")), f"{left} {right}"
            assert got.as_raw_tensor().is_contiguous()
            assert not got.requires_grad
            check(got, wanted, f"{left} {right}", "POLICY-DOT-1", F32)
        x.deinit()
        y.deinit()
    pairs: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 2)),
        ((2, 1, 3), (3, 4)),
        ((2, 3), (3, 2, 2)),
    )
    for one_shape, other_shape in pairs:
        a, b = pattern_noise(F32, one_shape, 5), pattern_noise(F32, other_shape, 6)
        wanted = formulas.dot(F32, exact.decode(F32, a), exact.decode(F32, b), len(one_shape) - 1, 0)
        x = impl.Tensor(len(one_shape)).from_slice(ctx, one_shape, a.view(np.float32))
        y = impl.Tensor(len(other_shape)).from_slice(ctx, other_shape, b.view(np.float32))
        got = x.dot(ctx, y)
        assert got.axis_tags == tuple(range(len(one_shape) + len(other_shape) - 2))
        check(got, wanted, f"{one_shape} {other_shape}", "POLICY-DOT-1", F32)
        x.deinit()
        y.deinit()


@clause("POLICY-DOT-1")
def test_larger_products(impl: Any, ctx: Any, record_property: Note) -> None:
    """Sizes around the blocks of a fast kernel, on some elements of the result."""
    sizes = ((33, 70, 65), (9, 300, 17), (1, 300, 40), (40, 300, 1), (17, 1, 19), (130, 65, 130))
    for m, k, n in sizes[: scaled(impl, record_property, len(sizes), 3, "larger products")]:
        a, b = pattern_noise(F32, (m, k), 1), pattern_noise(F32, (k, n), 2)
        x, y = exact.decode(F32, a), exact.decode(F32, b)
        with (
            constant(impl, ctx, F32, a, tags=("m", "k")) as left,
            constant(impl, ctx, F32, b, tags=("k", "n")) as right,
            left.dot(ctx, right) as got,
        ):
            found = np.asarray(got)
            for i, j in product({0, 1, m // 2, m - 1} & set(range(m)), {0, 1, 7, 8, n // 2, n - 1} & set(range(n))):
                wanted = exact.chain(F32, x[i].tolist(), y[:, j].tolist())
                assert found[i, j] == np.float32(wanted), f"POLICY-DOT-1: {m}x{k}x{n} at {i}, {j}: {found[i, j]!r}"


@clause("POLICY-DOT-1")
@pytest.mark.parametrize("dtype", REAL, ids=lambda d: d.name)
def test_a_long_chain_is_one_chain(impl: Any, ctx: Any, dtype: DType) -> None:
    """Longer than what a kernel brings together at once; rounded once, at its end."""
    m, k, n = 5, 600, 17
    a, b = pattern_noise(dtype, (m, k), 1), pattern_noise(dtype, (k, n), 2)
    x, y = exact.decode(dtype, a), exact.decode(dtype, b)
    with (
        constant(impl, ctx, dtype, a, tags=("m", "k")) as left,
        constant(impl, ctx, dtype, b, tags=("k", "n")) as right,
        left.dot(ctx, right) as got,
    ):
        found = exact.decode(dtype, bits(got))
        for i, j in product((0, m - 1), (0, 8, n - 1)):
            wanted = formulas.dot(dtype, x[i : i + 1], y[:, j : j + 1], 1, 0)
            assert found[i, j] == wanted[0, 0], f"POLICY-DOT-1: {dtype.name} at {i}, {j}: {found[i, j]!r}"


@clause("POLICY-DOT-1")
def test_errors_of_products(impl: Any, ctx: Any) -> None:
    with (
        f32(impl, ctx, np.ones((2, 3))) as x,
        f32(impl, ctx, np.ones((3, 2))) as square,
        impl.Tensor("b", "c").ones(ctx, (4, 2)) as long,
        impl.Tensor("c").ones(ctx, (3,)) as other,
        impl.Tensor().scalar(ctx, 2.0) as s,
        impl.Tensor(2).ones(ctx, (2, 3)) as n,
        impl.Tensor("b", "c", "d", "e", "f", "g", "h", "i").ones(ctx, (3,) + (1,) * 7) as full,
        impl.Tensor("x", "y", "b").ones(ctx, (1, 1, 3)) as more,
    ):
        tensors = x, square, long, other, s, n
        with impl.Tensor("b", "c").ones(ctx, (3, 2)) as good, x.dot(ctx, good), impl.Tensor(2).ones(ctx, (3, 2)) as t:
            n.dot(ctx, t).deinit()  # now the types of x and long have met, and those of n and n
        before = state(ctx, *tensors)
        for call, wrong in (
            *(
                (lambda: x.dot(ctx, square), InvalidTag),
                (lambda: x.dot(ctx, other), InvalidTag),
                (lambda: x.dot(ctx, s), InvalidTag),
            ),
            *(
                (lambda: x.dot(ctx, long), ShapeMismatch),
                (lambda: x.dot(ctx, long, "a"), InvalidTag),
                (lambda: x.dot(ctx, x), InvalidTag),
            ),
            *(
                (lambda: x.dot(ctx, square, "b"), InvalidTag),
                (lambda: x.dot(ctx, long, "c"), InvalidTag),
                (lambda: x.dot(ctx, n), InvalidTag),
            ),
            *(
                (lambda: n.dot(ctx, n), ShapeMismatch),
                (lambda: n.dot(ctx, n, 0), InvalidTag),
                (lambda: n.dot(ctx, x), InvalidTag),
            ),
            *(
                (lambda: s.dot(ctx, s), InvalidTag),
                (lambda: x.dot(ctx, long, 1), InvalidTag),
                (lambda: x.dot(ctx, 2.0), DTypeMismatch),
            ),
            (lambda: more.dot(ctx, full), InvalidShape),
        ):
            assert_raises(wrong, None, call)
        assert state(ctx, *tensors) == before
