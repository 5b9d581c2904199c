"""Raw operations: values against exact arithmetic, layouts and broadcasting, sums by the tree, casts."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fucina.conformance import clause
from fucina.conformance.compare import PATTERN, as_patterns, assert_bits
from fucina.conformance.strategies import patterns
from fucina.conformance.suite import environment as fpenv
from fucina.conformance.suite.casts import INTEGERS, SCALARS, exact_value, expected, round_to
from fucina.conformance.suite.pace import Note
from fucina.conformance.suite.pace import scaled as paced
from fucina.conformance.suite.raw_arithmetic import ARITHMETIC, REAL, accumulator, pointwise, scaled, tensor_of, total
from fucina.spec import DType

OPERATIONS = ("add", "sub", "mul", "div")
each_arithmetic = pytest.mark.parametrize("dtype", ARITHMETIC, ids=lambda d: d.name)
each_real = pytest.mark.parametrize("dtype", REAL, ids=lambda d: d.name)
SHAPES = [((1,), (1,)), ((5,), (1,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((1, 1, 2), (4, 1, 1)), ((2, 3, 2), (2, 3, 2))]


@pytest.fixture(scope="module")
def ctx(impl: Any) -> Any:
    with impl.ExecContext() as found:
        yield found


def bits(tensor: Any) -> Any:
    """Return the patterns of a contiguous tensor, and end it."""
    found = as_patterns(tensor.data_const()).copy().view(PATTERN[tensor.dtype])
    tensor.deinit()
    return found


def compare(got: Any, wanted: Any, dtype: DType, what: str, clause_id: str) -> None:
    """Compare patterns; of a float any NaN is any other."""
    nan = "any" if dtype in REAL else "exact"
    assert_bits(got, np.asarray(wanted, PATTERN[dtype]), nan=nan, dtype=dtype, what=what, clause=clause_id)


# -- two tensors


@clause("CONTEXT-ARITH-1", "CONTEXT-ARITH-2", "NUM-ARITH-1", "NUM-NAN-2")
@each_arithmetic
@pytest.mark.parametrize("name", OPERATIONS)
@given(data=st.data())
def test_values(ctx: Any, dtype: DType, name: str, data: st.DataObject) -> None:
    pairs = data.draw(st.lists(st.tuples(patterns(dtype), patterns(dtype)), min_size=1, max_size=40))
    a, b = ([pair[i] for pair in pairs] for i in (0, 1))
    if dtype in INTEGERS and name == "div":
        b = [divisor or 1 for divisor in b]
    with tensor_of(ctx, dtype, a) as x, tensor_of(ctx, dtype, b) as y:
        got = bits(getattr(ctx, name)(x, y))
    wanted = [pointwise(name, dtype, *pair) for pair in zip(a, b, strict=True)]
    compare(
        got, wanted, dtype, f"{name} of {dtype.name}", "CONTEXT-ARITH-2" if dtype in INTEGERS else "CONTEXT-ARITH-1"
    )


@clause("CONTEXT-ARITH-1")
@pytest.mark.parametrize("name", OPERATIONS)
def test_half_precision_is_rounded_from_f32(ctx: Any, name: str) -> None:
    """All pairs of some f16 and bf16 values whose results lie near ties and subnormals."""
    for dtype, codes in (
        (DType.f16, (0x0001, 0x0003, 0x03FF, 0x0400, 0x3BFF, 0x3C01, 0x4247, 0x7BFF, 0x8001, 0xBC01, 0xFBFF)),
        (DType.bf16, (0x0001, 0x007F, 0x0080, 0x3F7F, 0x3F81, 0x4049, 0x7F7F, 0x8001, 0xBF81, 0xFF7F)),
    ):
        pairs = list(product(codes, repeat=2))
        with tensor_of(ctx, dtype, [a for a, _ in pairs]) as x, tensor_of(ctx, dtype, [b for _, b in pairs]) as y:
            got = bits(getattr(ctx, name)(x, y))
        compare(
            got, [pointwise(name, dtype, *pair) for pair in pairs], dtype, f"{name} of {dtype.name}", "CONTEXT-ARITH-1"
        )


@clause("CONTEXT-ARITH-2")
@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda d: d.name)
def test_ends_of_the_integers(ctx: Any, dtype: DType) -> None:
    width = 8 * PATTERN[dtype].itemsize
    ends = (0, 1, 2, 3, (1 << width) - 1, (1 << width) - 2, 1 << (width - 1), (1 << (width - 1)) - 1, (1 << width) - 7)
    for name in OPERATIONS:
        pairs = [pair for pair in product(ends, repeat=2) if pair[1] or name != "div"]
        with tensor_of(ctx, dtype, [a for a, _ in pairs]) as x, tensor_of(ctx, dtype, [b for _, b in pairs]) as y:
            got = bits(getattr(ctx, name)(x, y))
        compare(
            got, [pointwise(name, dtype, *pair) for pair in pairs], dtype, f"{name} of {dtype.name}", "CONTEXT-ARITH-2"
        )


@clause("CONTEXT-OP-1", "CONTEXT-ARITH-2")
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("name", OPERATIONS)
def test_broadcasting(ctx: Any, name: str, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    for one, other in (shapes, shapes[::-1]):
        a = np.arange(10, 10 + np.prod(one), dtype=np.int32).reshape(one)
        b = np.arange(3, 3 + np.prod(other), dtype=np.int32).reshape(other)
        shape = np.broadcast_shapes(one, other)
        wanted = [
            pointwise(name, DType.i32, int(x), int(y))
            for x, y in zip(np.broadcast_to(a, shape).flat, np.broadcast_to(b, shape).flat, strict=True)
        ]
        with ctx.from_slice(one, a, DType.i32) as x, ctx.from_slice(other, b, DType.i32) as y:
            result = getattr(ctx, name)(x, y)
            assert (tuple(result.shape), result.is_contiguous(), result.dtype) == (shape, True, DType.i32)
            assert (result.scope_owned, result.buffer.refs) == (False, 1)
            compare(bits(result), wanted, DType.i32, f"{name} {one} {other}", "CONTEXT-OP-1")


def _views(tensor: Any) -> dict[str, Any]:
    """Return views of a 4 x 6 tensor, all of them 2 x 3."""
    return {
        "first part": tensor.view_with_strides((2, 3), (3, 1)),
        "columns": tensor.view_with_strides((2, 3), (1, 6)),
        "every other": tensor.view_with_strides_offset((2, 3), (12, 2), 1),
        "one row": tensor.view_with_strides((2, 3), (0, 1)),
        "one column": tensor.view_with_strides((2, 3), (6, 0)),
        "one element": tensor.view_with_strides_offset((2, 3), (0, 0), 5),
        "overlapping": tensor.view_with_strides((2, 3), (1, 1)),
    }


@clause("CONTEXT-OP-1", "CONTEXT-SUM-1", "CONTEXT-CAST-1", "CONTEXT-COPY-1", "CONTEXT-SCALE-1")
@pytest.mark.parametrize("dtype", [DType.f32, DType.f16, DType.i64, DType.u8, DType.bf16], ids=lambda d: d.name)
def test_an_operation_on_a_view_is_that_on_its_copy(ctx: Any, dtype: DType) -> None:
    codes = [(37 * i + 11) % 120 + 1 + (0x3C00 if dtype in (DType.f16, DType.bf16) else 0) for i in range(24)]
    unary = {
        "sum": ctx.sum,
        "sum 0": lambda x: ctx.sum(x, 0),
        "sum 1": lambda x: ctx.sum(x, 1),
        "cast": lambda x: ctx.cast(x, DType.f64),
        "materialize": ctx.materialize,
    }
    if dtype in REAL:
        unary["scale"] = lambda x: ctx.scale(x, 1.5)
    with tensor_of(ctx, dtype, codes, (4, 6)) as base:
        views = _views(base)
        for (one, x), (other, y) in product(views.items(), repeat=2):
            with ctx.clone(x) as a, ctx.clone(y) as b:
                for name in OPERATIONS:
                    got, wanted = bits(getattr(ctx, name)(x, y)), bits(getattr(ctx, name)(a, b))
                    assert_bits(got, wanted, what=f"{name} of {one} and {other}", clause="CONTEXT-OP-1")
        for (one, x), (name, operation) in product(views.items(), unary.items()):
            with ctx.clone(x) as a:
                assert a.is_contiguous()
                assert_bits(bits(operation(x)), bits(operation(a)), what=f"{name} of {one}", clause="CONTEXT-SUM-1")
        for view in views.values():
            view.deinit()


# -- a tensor and a number


@clause("CONTEXT-SCALE-1", "NUM-PARAM-1")
@each_real
@given(data=st.data())
def test_scaled_values(ctx: Any, dtype: DType, data: st.DataObject) -> None:
    codes = data.draw(st.lists(patterns(dtype), min_size=1, max_size=40))
    factor = data.draw(st.floats(allow_nan=False))
    with tensor_of(ctx, dtype, codes) as x:
        got = bits(ctx.scale(x, factor))
    compare(got, [scaled(dtype, code, factor) for code in codes], dtype, f"times {factor!r}", "CONTEXT-SCALE-1")


@clause("CONTEXT-SCALE-1")
def test_the_product_is_rounded_twice(ctx: Any) -> None:
    """Factors whose products, rounded to f32, are ties of the narrow dtype that they are not themselves."""
    for dtype, one, fraction in ((DType.f16, 0x3C01, 10), (DType.bf16, 0x3F81, 7)):
        factors, told_apart = [], 0
        for step in range(64):
            tie = Fraction(3, 2) + Fraction(2 * step + 1, 1 << (fraction + 1)) % Fraction(1, 2)
            factor = exact_value(DType.f32, round_to(DType.f32, tie / exact_value(dtype, one)))
            factors.append(float(factor))
            once = round_to(dtype, exact_value(dtype, one) * factor)
            told_apart += once != scaled(dtype, one, float(factor))
        assert told_apart > 10
        with tensor_of(ctx, dtype, [one]) as x:
            for factor in factors:
                got = bits(ctx.scale(x, factor))
                compare(got, [scaled(dtype, one, factor)], dtype, f"times {factor!r}", "CONTEXT-SCALE-1")


# -- sums

LENGTHS = (1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 1000)
LONG = (8191, 8192, 8193, 8224, 16384, 16385, 3 * 8192 + 33)


def _codes(dtype: DType, n: int, seed: int) -> Any:
    """Return patterns whose sum depends on the order."""
    draw = np.random.Generator(np.random.PCG64(seed))
    if dtype in INTEGERS or dtype is DType.bool:
        return draw.integers(0, 2 if dtype is DType.bool else 1 << 8 * PATTERN[dtype].itemsize, n, PATTERN[dtype])
    values = draw.standard_normal(n) * 2.0 ** draw.integers(-6, 7, n)
    if dtype is DType.bf16:
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return values.astype({DType.f16: "f2", DType.f32: "f4", DType.f64: "f8"}[dtype]).view(PATTERN[dtype])


@clause("CONTEXT-SUM-1", "CONTEXT-SUM-2")
@pytest.mark.parametrize("dtype", [*ARITHMETIC, DType.bool], ids=lambda d: d.name)
def test_sums(ctx: Any, dtype: DType) -> None:
    for n in LENGTHS:
        codes = _codes(dtype, n, n)
        with tensor_of(ctx, dtype, codes) as x:
            result = ctx.sum(x)
            wanted = accumulator(dtype) if dtype in REAL else DType.i64
            assert (result.dtype, tuple(result.shape), result.buffer.refs) == (wanted, (1,), 1)
            compare(bits(result), total(dtype, codes), wanted, f"{n} of {dtype.name}", "CONTEXT-SUM-1")


@clause("CONTEXT-SUM-1")
@pytest.mark.parametrize("n", LONG)
def test_long_sums(ctx: Any, n: int) -> None:
    for dtype in (DType.f32, DType.f16):
        codes = _codes(dtype, n, n)
        with tensor_of(ctx, dtype, codes) as x:
            compare(bits(ctx.sum(x)), total(dtype, codes), DType.f32, f"{n} of {dtype.name}", "CONTEXT-SUM-1")


@clause("CONTEXT-SUM-1")
@pytest.mark.slow
def test_blocks_of_blocks_of_blocks(impl: Any, ctx: Any, record_property: Note) -> None:
    n = paced(impl, record_property, 8192 * 8193 + 5, 8192 * 9 + 5, "elements of a sum of three levels")
    codes = (np.random.Generator(np.random.PCG64(3)).random(n, np.float32) - np.float32(0.5)).view(np.uint32)
    with tensor_of(ctx, DType.f32, codes) as x:
        compare(bits(ctx.sum(x)), total(DType.f32, codes), DType.f32, f"{n} of f32", "CONTEXT-SUM-1")


@clause("CONTEXT-SUM-1")
@pytest.mark.parametrize("shape", [(5,), (3, 40), (40, 3), (2, 33, 3), (1, 1), (4, 1, 2, 3), (9, 70)], ids=str)
@pytest.mark.parametrize("dtype", [DType.f32, DType.bf16, DType.i16], ids=lambda d: d.name)
def test_sums_along_an_axis(ctx: Any, dtype: DType, shape: tuple[int, ...]) -> None:
    codes = _codes(dtype, int(np.prod(shape)), 7)
    wanted_dtype = DType.f32 if dtype in REAL else DType.i64
    with tensor_of(ctx, dtype, codes, shape) as x:
        for axis in range(len(shape)):
            result = ctx.sum(x, axis)
            assert tuple(result.shape) == (shape[:axis] + shape[axis + 1 :] or (1,))
            rows = np.moveaxis(codes.reshape(shape), axis, -1).reshape(-1, shape[axis])
            wanted = np.concatenate([total(dtype, np.ascontiguousarray(row)) for row in rows])
            compare(bits(result), wanted, wanted_dtype, f"axis {axis} of {shape}", "CONTEXT-SUM-1")


@clause("CONTEXT-SUM-1")
def test_sums_of_parts_of_rows(ctx: Any) -> None:
    """Lines that do not lie one behind the other, and one line several times."""
    codes = _codes(DType.f32, 9 * 70, 11).reshape(9, 70)
    with tensor_of(ctx, DType.f32, codes.reshape(-1), (9, 70)) as whole:
        for start, length in ((0, 1), (3, 32), (1, 64), (5, 65)):
            with ctx.narrow_axis(whole, 1, start, length) as part, ctx.sum(part, 1) as result:
                rows = codes[:, start : start + length]
                wanted = np.concatenate([total(DType.f32, np.ascontiguousarray(row)) for row in rows])
                compare(bits(result), wanted, DType.f32, f"columns from {start}, {length}", "CONTEXT-SUM-1")
        with ctx.narrow_axis(whole, 0, 2, 1) as line, ctx.broadcast_to(line, (6, 70)) as lines:
            wanted = np.repeat(total(DType.f32, codes[2]), 6)
            compare(bits(ctx.sum(lines, 1)), wanted, DType.f32, "one line six times", "CONTEXT-SUM-1")


@clause("CONTEXT-SUM-1")
def test_an_axis_of_more_than_a_block(ctx: Any) -> None:
    codes = _codes(DType.f32, 3 * 8200, 9)
    for shape, axis in (((8200, 3), 0), ((3, 8200), 1)):
        rows = np.moveaxis(codes.reshape(shape), axis, -1).reshape(-1, 8200)
        wanted = np.concatenate([total(DType.f32, np.ascontiguousarray(row)) for row in rows])
        with tensor_of(ctx, DType.f32, codes, shape) as x:
            compare(bits(ctx.sum(x, axis)), wanted, DType.f32, f"{shape}, axis {axis}", "CONTEXT-SUM-1")


@clause("CONTEXT-SUM-1")
def test_sums_of_zeros_and_specials(ctx: Any) -> None:
    inf, nan = 0x7F800000, 0x7FC00000
    for codes, wanted in (
        ([1 << 31], 0),  # lanes start at +0
        ([1 << 31] * 40, 0),
        ([inf, 0x3F800000], inf),
        ([inf, inf | 1 << 31], nan),
        ([nan, 0x3F800000], nan),
        ([0x7F7FFFFF] * 33, inf),
        ([1] * 40, 40),  # subnormals add exactly
    ):
        with tensor_of(ctx, DType.f32, codes) as x:
            compare(bits(ctx.sum(x)), [wanted], DType.f32, f"{codes[:2]}", "CONTEXT-SUM-1")


@clause("CONTEXT-SUM-2")
def test_integer_sums_wrap(ctx: Any) -> None:
    with ctx.full((3,), (1 << 63) - 1, DType.i64) as x, ctx.sum(x) as result:
        assert result.item() == ((3 * ((1 << 63) - 1) + (1 << 63)) % (1 << 64)) - (1 << 63)
    with ctx.ones((70,), DType.bool) as x, ctx.sum(x) as result:
        assert result.item() == 70


# -- casts


@clause("CONTEXT-CAST-1", "BRIDGE-SCALAR-3")
@pytest.mark.parametrize("source", SCALARS, ids=lambda d: d.name)
@given(data=st.data(), target=st.sampled_from(SCALARS))
def test_casts(ctx: Any, source: DType, target: DType, data: st.DataObject) -> None:
    codes = data.draw(st.lists(patterns(source), min_size=1, max_size=30))
    with tensor_of(ctx, source, codes) as x:
        result = ctx.cast(x, target)
        assert (result.dtype, tuple(result.shape), result.buffer == x.buffer) == (target, (len(codes),), False)
        got = bits(result)
    wanted = np.array([expected(source, target, code) for code in codes], PATTERN[target])
    assert_bits(got, wanted, what=f"{source.name} to {target.name}", clause="CONTEXT-CAST-1")


# -- whatever the environment


@clause("NUM-ENV-2", "CONTEXT-ARITH-1", "CONTEXT-SUM-1", "CONTEXT-SCALE-1", "CONTEXT-CAST-1")
@pytest.mark.parametrize("dtype", REAL, ids=lambda d: d.name)
def test_the_callers_environment_changes_nothing(ctx: Any, dtype: DType) -> None:
    fpenv.needed()
    codes = [*_codes(dtype, 40, 5).tolist(), 1, 3, 2, 5, 7]
    codes += [code ^ 1 for code in codes[:3]]
    x, y = tensor_of(ctx, dtype, codes), tensor_of(ctx, dtype, codes[::-1])
    work: dict[str, Callable[[], Any]] = {name: partial(getattr(ctx, name), x, y) for name in OPERATIONS}
    work |= {"sum": lambda: ctx.sum(x), "scale": lambda: ctx.scale(x, 0.1), "cast": lambda: ctx.cast(x, DType.bf16)}
    wanted = {name: bits(call()) for name, call in work.items()}
    for mode in fpenv.EVERY:
        for name, call in work.items():
            with fpenv.environment(mode):
                result = call()
            kind = result.dtype
            compare(bits(result), wanted[name], kind, f"{name} of {dtype.name}, {mode}", "NUM-ENV-2")
    x.deinit()
    y.deinit()
