"""Tensors of numbers that nobody writes down: sequences, one-hot rows, random ones."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fucina.conformance import clause
from fucina.conformance.compare import assert_bits, assert_raises
from fucina.conformance.strategies import finite_bounds, seeds
from fucina.conformance.suite import exact
from fucina.conformance.suite.tagged import bits, check, f32, held
from fucina.spec import DType
from fucina.spec.errors import (
    DTypeMismatch,
    IndexOutOfBounds,
    InvalidBounds,
    InvalidDType,
    InvalidInteger,
    InvalidShape,
    InvalidTag,
    Overflow,
)

F32 = DType.f32


@pytest.fixture
def ctx(impl: Any) -> Any:
    with impl.ExecContext() as found:
        yield found


@clause("FACADE-NEW-5")
@given(
    start=st.floats(-100, 100, width=32),
    step=st.floats(0.0078125, 8, width=32),
    count=st.integers(1, 60),
    down=st.booleans(),
)
def test_arange(impl: Any, start: float, step: float, count: int, down: bool) -> None:
    step = -step if down else step
    end = exact.rounded(F32, start + count * step * (1 - 1e-3))
    quotient = exact.div(F32, exact.sub(F32, end, start), step)
    length = int(np.ceil(quotient))
    with impl.ExecContext() as ctx:
        if length < 1:
            assert_raises(InvalidShape, "FACADE-NEW-5", partial(impl.Tensor("i").arange, ctx, start, end, step))
            return
        wanted = [exact.add(F32, start, exact.mul(F32, float(i), step)) for i in range(length)]
        check(impl.Tensor("i").arange(ctx, start, end, step), wanted, f"{start}, {end}, {step}", "FACADE-NEW-5", F32)


@clause("FACADE-NEW-5")
def test_arange_at_its_ends(impl: Any, ctx: Any) -> None:
    kind, inf, nan = impl.Tensor("i"), float("inf"), float("nan")
    check(kind.arange(ctx, 0, 5), range(5), "default step", "FACADE-NEW-5")
    check(kind.arange(ctx, 0, 0.1 + 0.2, 0.1), exact_steps(0.1, 3), "0.3 by 0.1 in f32", "FACADE-NEW-5")
    for arguments in ((0, 0), (1, 0), (0, 1, -1), (0, 1, 0), (0, 1, -0.0), (nan, 1), (0, nan), (0, 1, nan), (0, 1, inf),
                      (inf, inf), (0, -inf)):  # fmt: skip
        assert_raises(InvalidShape, "FACADE-NEW-5", partial(kind.arange, ctx, *arguments), what=str(arguments))
    for arguments in ((0, inf), (0, 2.0**64), (0, 1, 1e-30)):
        assert_raises(Overflow, "FACADE-NEW-5", partial(kind.arange, ctx, *arguments), what=str(arguments))
    for wrong in ("1", None, True):
        assert_raises(DTypeMismatch, None, partial(kind.arange, ctx, wrong, 5))
    for other in (impl.Tensor(), impl.Tensor("a", "b"), impl.Tensor(2)):
        assert_raises(InvalidShape, None, partial(other.arange, ctx, 0, 5))
        assert_raises(InvalidShape, None, partial(other.linspace, ctx, 0, 5, 3))


def exact_steps(step: float, count: int) -> list[float]:
    """Return ``i * step`` in f32."""
    return [exact.mul(F32, float(i), exact.rounded(F32, step)) for i in range(count)]


@clause("FACADE-NEW-5")
@given(
    start=st.floats(-(2.0**100), 2.0**100, width=32),
    end=st.floats(-(2.0**100), 2.0**100, width=32),
    steps=st.integers(1, 50),
)
def test_linspace(impl: Any, start: float, end: float, steps: int) -> None:
    wanted = [start]
    if steps > 1:
        delta = exact.div(F32, exact.sub(F32, end, start), exact.rounded(F32, float(steps - 1)))
        wanted = [exact.add(F32, start, exact.mul(F32, float(i), delta)) for i in range(steps - 1)] + [end]
    with impl.ExecContext() as ctx:
        check(
            impl.Tensor("i").linspace(ctx, start, end, steps), wanted, f"{start}, {end}, {steps}", "FACADE-NEW-5", F32
        )


@clause("FACADE-NEW-5")
def test_linspace_and_eye_at_their_ends(impl: Any, ctx: Any) -> None:
    kind = impl.Tensor("i")
    steps: Any
    for steps in (0, -1):
        assert_raises(InvalidShape, None, partial(kind.linspace, ctx, 0, 1, steps))
    for steps in (1.0, "2", None, True):
        assert_raises(InvalidInteger, None, partial(kind.linspace, ctx, 0, 1, steps))
    square = impl.Tensor("r", "c")
    for n, m in ((1, 1), (3, 3), (2, 5), (5, 2)):
        with square.eye(ctx, n, m) as x:
            assert np.asarray(x).tolist() == np.eye(n, m).tolist()
    with square.eye(ctx, 3) as x:
        assert x.shape == (3, 3)
    assert_raises(InvalidShape, None, partial(square.eye, ctx, 0))
    assert_raises(InvalidShape, None, partial(square.eye, ctx, 2, -1))
    assert_raises(InvalidInteger, None, partial(square.eye, ctx, 2.0))
    assert_raises(InvalidShape, None, partial(kind.eye, ctx, 2))


# -- one-hot


@clause("FACADE-NEW-6")
def test_one_hot(impl: Any, ctx: Any) -> None:
    wanted = np.eye(5, dtype=np.float32)[[4, 0, 4]]
    for indices in ([4, 0, 4], (4, 0, 4), range(4, -1, -2), np.array([4, 0, 4], np.uint8), np.array([4, 0, 4])):
        with impl.Tensor("i", "c").one_hot(ctx, indices, 5) as x:
            expected = np.eye(5)[list(indices)]
            assert (np.asarray(x).tolist(), x.dtype, x.requires_grad) == (expected.tolist(), F32, False)
    for dtype in (DType.u8, DType.i8, DType.u16, DType.i16, DType.i32, DType.i64):
        with impl.Tensor("i", dtype=dtype).from_slice(ctx, (3,), [4, 0, 4]) as indices:
            with impl.Tensor("i", "c").one_hot(ctx, indices, 5) as x:
                assert_bits(bits(x), wanted, what=dtype.name, clause="FACADE-NEW-6")
            assert_raises(InvalidTag, None, partial(impl.Tensor("j", "c").one_hot, ctx, indices, 5))
            assert_raises(InvalidTag, None, partial(impl.Tensor("c", "i").one_hot, ctx, indices, 5))
    indices, kind = (
        impl.Tensor("i", "j", dtype=DType.i64).from_slice(ctx, (2, 2), [0, 1, 2, 1]),
        impl.Tensor("j", "i", "c"),
    )
    with indices, indices.transpose(ctx, "i", "j") as turned, kind.one_hot(ctx, turned, 3) as x:
        assert np.asarray(x).tolist() == np.eye(3)[[[0, 2], [1, 1]]].tolist()


@clause("FACADE-NEW-6")
def test_errors_of_one_hot(impl: Any, ctx: Any) -> None:
    kind, before = impl.Tensor("i", "c"), held(ctx)
    wrong: Any
    for wrong in ([0, 3], [-1], np.array([0, 3]), [1 << 70], [-(1 << 70)], np.array([1 << 63], np.uint64)):
        assert_raises(IndexOutOfBounds, None, partial(kind.one_hot, ctx, wrong, 3), what=repr(wrong))
    with impl.Tensor("i", dtype=DType.i8).from_slice(ctx, (2,), [0, -1]) as indices:
        assert_raises(IndexOutOfBounds, None, partial(kind.one_hot, ctx, indices, 3))
    with f32(impl, ctx, [0.0, 1.0], ("i",)) as floats:
        assert_raises((InvalidDType, DTypeMismatch), None, partial(kind.one_hot, ctx, floats, 3))
    for classes in (0, -1):
        assert_raises(InvalidShape, None, partial(kind.one_hot, ctx, [0], classes))
    assert_raises(InvalidInteger, None, partial(kind.one_hot, ctx, [0], 2.0))
    for wrong in ([0.5], "01", [True], None, [None], np.array([0.0]), 1):
        assert_raises((InvalidInteger, DTypeMismatch, InvalidDType), None, partial(kind.one_hot, ctx, wrong, 3))
    assert held(ctx) == before


# -- random


@clause("FACADE-NEW-7")
@given(seed=seeds(), bounds=finite_bounds())
def test_random(impl: Any, seed: int, bounds: tuple[float, float]) -> None:
    lo, hi = bounds
    out, integers = np.empty(6, np.float32), np.empty(6, np.int64)
    kind, whole = impl.Tensor("x", "y"), impl.Tensor("x", "y", dtype=DType.i64)
    rng = impl.rng
    fills: dict[str, Any] = {
        "rand": ((), lambda: rng.uniform_fill(seed, out, 0.0, 1.0)),
        "uniform": ((lo, hi), lambda: rng.uniform_fill(seed, out, lo, hi)),
        "randn": ((), lambda: rng.gaussian_fill(seed, out, 1.0)),
        "normal": ((lo, 0.7), lambda: rng.normal_fill(seed, out, lo, 0.7)),
        "gumbel": ((), lambda: rng.gumbel_fill(seed, out)),
    }
    with impl.ExecContext() as ctx:
        for name, (arguments, fill) in fills.items():
            with getattr(kind, name)(ctx, (2, 3), seed, *arguments) as x:
                fill()
                assert_bits(bits(x).reshape(-1), out, nan="any", what=name, clause="FACADE-NEW-7")
        with (
            whole.randint(ctx, (2, 3), seed, -5, 1 << 40) as x,
            impl.Tensor("x", dtype=DType.i64).randperm(ctx, 6, seed) as y,
        ):
            rng.randint_fill(seed, integers, -5, 1 << 40)
            assert x.data_const().tolist() == integers.tolist()
            rng.randperm_fill(seed, integers)
            assert y.data_const().tolist() == integers.tolist()
        p = (seed % 5) / 4
        with kind.bernoulli(ctx, (2, 3), seed, p) as x:
            rng.uniform_fill(seed, out, 0.0, 1.0)
            assert x.data_const().tolist() == (out < p).astype(float).tolist()


@clause("FACADE-NEW-7")
def test_a_probability_is_an_f32(impl: Any, ctx: Any) -> None:
    """A draw that lies between p and p rounded to f32 is told apart."""
    with impl.Tensor("x").rand(ctx, (64,), 5) as draws:
        for draw in draws.data_const().tolist():
            for p, wanted in (
                (draw, 0.0),
                (np.nextafter(draw, 1.0), 0.0),
                (float(np.nextafter(np.float32(draw), 1)), 1.0),
            ):
                with impl.Tensor("x").bernoulli(ctx, (64,), 5, p) as x:
                    assert x.data_const()[draws.data_const().tolist().index(draw)] == wanted


@clause("FACADE-NEW-7")
def test_errors_of_random(impl: Any, ctx: Any) -> None:
    kind, whole, before = impl.Tensor("x"), impl.Tensor("x", dtype=DType.i64), held(ctx)
    for p in (-0.1, 1.1, float("nan"), float("inf"), -1):
        assert_raises(InvalidBounds, None, partial(kind.bernoulli, ctx, (2,), 1, p))
    for p in (0.0, -0.0, 1.0):
        with kind.bernoulli(ctx, (40,), 1, p) as x:
            assert set(x.data_const().tolist()) == {abs(p)}
    assert_raises(InvalidBounds, None, lambda: kind.uniform(ctx, (2,), 1, 1.0, 1.0))
    assert_raises(InvalidBounds, None, lambda: whole.randint(ctx, (2,), 1, 3, 3))
    for name, rest in (
        ("rand", ()),
        ("randn", ()),
        ("gumbel", ()),
        ("uniform", (0, 1)),
        ("normal", (0, 1)),
        ("bernoulli", (0.5,)),
    ):
        for seed, wrong in ((-1, Overflow), (1 << 64, Overflow), (1.0, InvalidInteger), (None, InvalidInteger)):
            assert_raises(wrong, None, partial(getattr(kind, name), ctx, (2,), seed, *rest), what=name)
        for shape in ((), (2, 2), (0,), (-1,)):
            assert_raises(InvalidShape, None, partial(getattr(kind, name), ctx, shape, 1, *rest), what=name)
    assert_raises(InvalidShape, None, lambda: whole.randperm(ctx, 0, 1))
    assert_raises(InvalidShape, None, lambda: impl.Tensor(2, dtype=DType.i64).randperm(ctx, 4, 1))
    assert held(ctx) == before
