"""Views of tagged tensors: what they show, what they share, where they are copies, and their errors."""

from __future__ import annotations

from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import PATTERN, assert_bits, assert_raises
from fucina.conformance.suite.blocks import FORMATS, sizes
from fucina.conformance.suite.casts import SCALARS
from fucina.conformance.suite.pace import Note, scaled
from fucina.conformance.suite.tagged import bits, constant, f32, held, pattern_noise, state
from fucina.conformance.suite.views import view_of
from fucina.spec import DType
from fucina.spec.errors import (
    EmptySelection,
    IndexOutOfBounds,
    InvalidDataLength,
    InvalidDType,
    InvalidInteger,
    InvalidShape,
    InvalidTag,
    Overflow,
)


@pytest.fixture
def ctx(impl: Any) -> Any:
    with impl.ExecContext() as found:
        yield found


def shares(view: Any, of: Any) -> bool:
    """Say whether a tensor is a view of another."""
    return bool(view.as_raw_tensor().buffer == of.as_raw_tensor().buffer)


# -- every view against numpy's


@clause("FACADE-VIEW-1", "FACADE-VIEW-2", "FACADE-VIEW-3", "FACADE-VIEW-4", "FACADE-AXIS-1")
@pytest.mark.parametrize("dtype", SCALARS, ids=lambda d: d.name)
def test_chains_of_views(impl: Any, ctx: Any, dtype: DType, record_property: Note) -> None:
    draw = np.random.Generator(np.random.PCG64(list(DType).index(dtype)))
    for _ in range(scaled(impl, record_property, 120, 25, f"chains of views of {dtype.name}")):
        shape = tuple(draw.integers(1, 5, draw.integers(0, 4)).tolist())
        view, wanted = view_of(impl, ctx, draw, dtype, shape, steps=int(draw.integers(1, 7)))
        with view:
            assert view.shape == shape
            assert_bits(bits(view), wanted, what=str(shape), clause="FACADE-VIEW-2")
            with view.contiguous(ctx) as flat:
                assert_bits(flat.data_const().view(PATTERN[dtype]), wanted.reshape(-1), clause="FACADE-VIEW-1")
                assert shares(flat, view) is view.as_raw_tensor().is_contiguous()
    assert ctx.rt.buffers.outstanding_buffers() == 0


# -- another shape


@clause("FACADE-VIEW-1")
def test_reshape(impl: Any, ctx: Any) -> None:
    with (
        f32(impl, ctx, np.arange(6).reshape(2, 3), ("r", "c")) as x,
        impl.Tensor(2).from_slice(ctx, (2, 3), range(6)) as n,
    ):
        for shape, tags, wanted in (
            *(
                ((3, 2), None, ("r", "c")),
                ((6,), ("x",), ("x",)),
                ((3, 2), ["a", "b"], ("a", "b")),
                ((1, 6), None, ("r", "c")),
            ),
            ((1, 2, 1, 3), ("a", "b", "c", "d"), ("a", "b", "c", "d")),
        ):
            with x.reshape(ctx, shape, tags) as y:
                assert (y.shape, y.axis_tags, y.dtype, shares(y, x)) == (shape, wanted, DType.f32, True)
                assert y.data_const().tolist() == list(range(6))
        for sizes in ((6,), (3, 2), (1, 6, 1)):
            with n.reshape(ctx, sizes) as y:
                assert (y.shape, type(y)) == (sizes, impl.Tensor(len(sizes)))
        with x.transpose(ctx, "r", "c") as t, t.reshape(ctx, (2, 3)) as y:
            assert (y.axis_tags, shares(y, x), y.data_const().tolist()) == (("c", "r"), False, [0, 3, 1, 4, 2, 5])
        with x.flatten(ctx, "x") as y, n.flatten(ctx) as z:
            assert (y.axis_tags, z.axis_tags, y.shape, z.shape) == (("x",), (0,), (6,), (6,))
        with impl.Tensor().scalar(ctx, 2.5) as s, s.reshape(ctx, (1, 1), ("a", "b")) as y, s.flatten(ctx, "x") as z:
            assert (y.shape, y.item(), z.shape) == ((1, 1), 2.5, (1,))


@clause("FACADE-VIEW-1")
def test_errors_of_reshape(impl: Any, ctx: Any) -> None:
    with (
        f32(impl, ctx, np.arange(6).reshape(2, 3), ("r", "c")) as x,
        impl.Tensor(2).from_slice(ctx, (2, 3), range(6)) as n,
    ):
        before = state(ctx, x, n)
        for shape, tags, wrong in (
            *(((6,), None, InvalidTag), ((1, 2, 3), None, InvalidTag), ((6,), ("a", "b"), InvalidTag)),
            *(((6,), ("x", "x"), InvalidTag), ((6,), (0,), InvalidTag), ((3, 2), ("a",), InvalidTag)),
            *(
                ((5,), ("x",), InvalidShape),
                ((2, 2), None, InvalidShape),
                ((0, 6), None, InvalidShape),
                ((-2, -3), None, InvalidShape),
            ),
            *(((2.0, 3), None, InvalidInteger), ((1 << 33, 1 << 33), None, Overflow)),
        ):
            assert_raises(wrong, None, partial(x.reshape, ctx, shape, tags), what=f"{shape} {tags}")
        assert_raises(InvalidTag, None, lambda: x.flatten(ctx))
        assert_raises(InvalidShape, None, lambda: n.reshape(ctx, (1,) * 9))
        assert state(ctx, x, n) == before


# -- a part, and another order


@clause("FACADE-VIEW-2")
def test_narrow(impl: Any, ctx: Any) -> None:
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    with f32(impl, ctx, array, ("a", "b", "c")) as x:
        for place, axis in enumerate("abc"):
            size = array.shape[place]
            for start in range(size):
                for length in range(1, size - start + 1):
                    with x.narrow(ctx, axis, start, length) as y:
                        assert_bits(
                            bits(y), array.take(range(start, start + length), place), what=axis, clause="FACADE-VIEW-2"
                        )
                        assert shares(y, x)
                        assert y.axis_tags == x.axis_tags
        before = state(ctx, x)
        for arguments, wrong in (
            *((("b", 0, 0), EmptySelection), (("b", 3, 0), EmptySelection), (("b", 3, 1), IndexOutOfBounds)),
            *((("b", 0, 4), IndexOutOfBounds), (("b", 2, 2), IndexOutOfBounds), (("b", -1, 1), IndexOutOfBounds)),
            *((("b", 0, -1), InvalidDataLength), (("d", 0, 1), InvalidTag), (("b", 0.0, 1), InvalidInteger)),
            *((("b", 0, None), InvalidInteger), (("b", 1 << 63, 1 << 63), IndexOutOfBounds), (("d", 0, 0), InvalidTag)),
        ):
            assert_raises(wrong, None, partial(x.narrow, ctx, *arguments), what=str(arguments))
        assert state(ctx, x) == before


@clause("FACADE-VIEW-2")
def test_orders_of_axes(impl: Any, ctx: Any) -> None:
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    with f32(impl, ctx, array, ("a", "b", "c")) as x, impl.Tensor(3).from_slice(ctx, (2, 3, 4), array) as n:
        for places in permutations(range(3)):
            tags = ["abc"[i] for i in places]
            with x.permute(ctx, tags) as y, n.permute(ctx, places) as z:
                assert (y.axis_tags, z.axis_tags) == (tuple(tags), (0, 1, 2))
                for view, of in ((y, x), (z, n)):
                    assert_bits(
                        bits(view),
                        np.ascontiguousarray(array.transpose(places)),
                        what=str(places),
                        clause="FACADE-VIEW-2",
                    )
                    assert shares(view, of)
        with x.transpose(ctx, "a", "c") as y, x.transpose(ctx, "b", "b") as same:
            assert (y.axis_tags, same.axis_tags) == (("c", "b", "a"), ("a", "b", "c"))
            assert_bits(bits(y), np.ascontiguousarray(array.transpose(2, 1, 0)), clause="FACADE-VIEW-2")
        wrong: Any
        for wrong in (
            (),
            ("a",),
            ("a", "b"),
            ("a", "b", "b"),
            ("a", "b", "d"),
            ("a", "b", "c", "c"),
            "abc",
            None,
            (0, 1, 2),
        ):
            assert_raises(InvalidTag, None, partial(x.permute, ctx, wrong), what=repr(wrong))
        for wrong in ((0, 1), (0, 1, 3), (-1, 0, 1), (0, 0, 1)):
            assert_raises(InvalidTag, None, partial(n.permute, ctx, wrong), what=repr(wrong))


# -- repeated


@clause("FACADE-VIEW-3")
def test_broadcast_to(impl: Any, ctx: Any) -> None:
    array = np.arange(3, dtype=np.float32).reshape(1, 3)
    with f32(impl, ctx, array, ("r", "c")) as x, impl.Tensor(2).from_slice(ctx, (1, 3), array) as n:
        for shape, tags, wanted in (
            ((2, 3), None, np.broadcast_to(array, (2, 3))),
            ((1, 3), None, array),
            ((3, 2), ("c", "r"), np.broadcast_to(array.T, (3, 2))),
            ((2, 3, 4), ("r", "c", "n"), np.broadcast_to(array[..., None], (2, 3, 4))),
            ((4, 3, 2), ("n", "c", "r"), np.broadcast_to(array.T, (4, 3, 2))),
            ((1, 1, 3, 5), ("m", "r", "c", "n"), np.broadcast_to(array[None, ..., None], (1, 1, 3, 5))),
        ):
            with x.broadcast_to(ctx, shape, tags) as y:
                assert (y.shape, y.axis_tags, shares(y, x)) == (shape, tags or ("r", "c"), True)
                assert_bits(bits(y), np.ascontiguousarray(wanted), what=str(tags), clause="FACADE-VIEW-3")
                for size, step, tag in zip(shape, y.as_raw_tensor().strides, y.axis_tags, strict=True):
                    assert (step == 0) or tag == "c" or size == 1
        for shape in ((2, 3), (5, 1, 3), (4, 2, 3)):
            with n.broadcast_to(ctx, shape) as y:
                assert (y.shape, y.axis_tags) == (shape, tuple(range(len(shape))))
                assert_bits(bits(y), np.ascontiguousarray(np.broadcast_to(array, shape)), clause="FACADE-VIEW-3")
        with impl.Tensor().scalar(ctx, 2.5) as s, s.broadcast_to(ctx, (2, 2), ("a", "b")) as y:
            assert np.asarray(y).tolist() == [[2.5] * 2] * 2


@clause("FACADE-VIEW-3")
def test_errors_of_broadcast_to(impl: Any, ctx: Any) -> None:
    with f32(impl, ctx, np.zeros((1, 3)), ("r", "c")) as x, impl.Tensor(2).zeros(ctx, (1, 3)) as n:
        before = state(ctx, x, n)
        for shape, tags, wrong in (
            *(((2, 4), None, InvalidShape), ((2, 1), None, InvalidShape), ((3, 2), None, InvalidShape)),
            *(((2, 2), ("r", "n"), InvalidTag), ((3,), ("c",), InvalidTag), ((2, 3), ("r", "r"), InvalidTag)),
            *(((2, 3), ("r",), InvalidTag), ((0, 3), None, InvalidShape), ((2, 3), (0, 1), InvalidTag)),
            *(((2, 3, 4), ("r", "n", "c"), InvalidShape), ((2.0, 3), None, InvalidInteger)),
        ):
            assert_raises(wrong, None, partial(x.broadcast_to, ctx, shape, tags), what=f"{shape} {tags}")
        for shape in ((3,), (2, 4), (3, 1), (1, 3, 1)):
            assert_raises(InvalidShape, None, partial(n.broadcast_to, ctx, shape), what=str(shape))
        assert state(ctx, x, n) == before


# -- split and merged


@clause("FACADE-VIEW-4")
def test_split(impl: Any, ctx: Any) -> None:
    array = np.arange(24, dtype=np.float32).reshape(2, 12)
    with (
        f32(impl, ctx, array, ("r", "c")) as x,
        x.transpose(ctx, "r", "c") as t,
        impl.Tensor(2).from_slice(ctx, (2, 12), array) as n,
    ):
        with x.split(ctx, "c", (3, 2, 2), ("p", "q", "c")) as y, t.split(ctx, "c", (4, 3), ("p", "q")) as z:
            assert (y.shape, y.axis_tags, shares(y, x)) == ((2, 3, 2, 2), ("r", "p", "q", "c"), True)
            assert (z.shape, z.axis_tags, shares(z, x)) == ((4, 3, 2), ("p", "q", "r"), True)
            assert_bits(bits(y), array.reshape(2, 3, 2, 2), clause="FACADE-VIEW-4")
            assert_bits(bits(z), np.ascontiguousarray(array.T.reshape(4, 3, 2)), clause="FACADE-VIEW-4")
        with (
            x.split(ctx, "c", (12,), ("k",)) as y,
            n.split(ctx, 1, (3, 4)) as z,
            x.split(ctx, "r", (1, 2, 1), ("u", "r", "v")) as u,
        ):
            assert (y.axis_tags, z.axis_tags, z.shape, u.shape) == (("r", "k"), (0, 1, 2), (2, 3, 4), (1, 2, 1, 12))
        before = state(ctx, x, n)
        for sizes, tags, wrong in (
            *(((5, 2), ("p", "q"), InvalidShape), ((), (), InvalidShape), ((0, 12), ("p", "q"), InvalidShape)),
            *(((3, 4), None, InvalidTag), ((3, 4), ("p",), InvalidTag), ((3, 4), ("p", "p"), InvalidTag)),
            *(((3, 4), ("r", "p"), InvalidTag), ((3, 4), (0, 1), InvalidTag), ((-3, -4), ("p", "q"), InvalidShape)),
            *(((1.0, 12), ("p", "q"), InvalidInteger), ((1,) * 7 + (12,), tuple("pqstuvwx"), InvalidShape)),
        ):
            assert_raises(wrong, None, partial(x.split, ctx, "c", sizes, tags), what=f"{sizes} {tags}")
        assert_raises(InvalidTag, None, lambda: x.split(ctx, "d", (12,), ("p",)))
        assert state(ctx, x, n) == before


@clause("FACADE-VIEW-4")
def test_merge(impl: Any, ctx: Any) -> None:
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    with f32(impl, ctx, array, ("a", "b", "c")) as x, impl.Tensor(3).from_slice(ctx, (2, 3, 4), array) as n:
        for axes, tag, shape, tags in (
            *((("a", "b"), "x", (6, 4), ("x", "c")), (["b", "c"], "b", (2, 12), ("a", "b"))),
            *((("a", "b", "c"), "x", (24,), ("x",)), (("b",), "x", (2, 3, 4), ("a", "x", "c"))),
        ):
            with x.merge(ctx, axes, tag) as y:
                assert (y.shape, y.axis_tags, shares(y, x)) == (shape, tags, True)
                assert_bits(bits(y), array.reshape(shape), what=str(axes), clause="FACADE-VIEW-4")
        with n.merge(ctx, (1, 2)) as y:
            assert (y.shape, y.axis_tags) == ((2, 12), (0, 1))
        with x.transpose(ctx, "b", "c") as t, t.merge(ctx, ("c", "b"), "x") as y:
            assert (shares(y, x), y.shape, y.scope_owned) == (False, (2, 12), False)
            assert_bits(bits(y), np.ascontiguousarray(array.transpose(0, 2, 1)).reshape(2, 12), clause="FACADE-VIEW-4")
        before = state(ctx, x, n)
        wrong: Any
        for wrong in (
            *((("a", "c"), "x"), (("b", "a"), "x"), (("a", "d"), "x"), (("a", "a"), "x"), ((), "x"), (("a", "b"), "c")),
            *((("a", "b"), None), (("a", "b"), 0), (("a", "b"), "no tag"), ((0, 1), "x")),
        ):
            assert_raises(InvalidTag, None, partial(x.merge, ctx, *wrong), what=str(wrong))
        assert state(ctx, x, n) == before


@clause("FACADE-VIEW-4")
def test_where_merge_is_a_view(impl: Any, ctx: Any) -> None:
    """Where each stride is the next one times its size, with axes of size 1 left aside."""
    with ctx.from_slice((64,), range(64)) as base:
        for shape, strides, view in (
            *(((2, 3), (3, 1), True), ((2, 3), (1, 2), False), ((2, 3), (6, 2), True), ((2, 3), (7, 2), False)),
            *(((2, 3), (0, 0), True), ((2, 3), (0, 1), False), ((2, 3), (1, 0), False), ((1, 3), (50, 2), True)),
            *(
                ((3, 1), (2, 50), True),
                ((1, 1), (9, 7), True),
                ((2, 1, 3), (6, 40, 2), True),
                ((2, 1, 3), (5, 40, 2), False),
            ),
            *(((2, 2, 3), (12, 3, 1), False), ((2, 2, 3), (6, 3, 1), True), ((2, 2, 1), (4, 2, 9), True)),
        ):
            tags = ("a", "b", "c")[: len(shape)]
            with (
                impl.Tensor(*tags).constant(ctx, base.view_with_strides(shape, strides)) as x,
                x.merge(ctx, tags, "x") as y,
            ):
                assert shares(y, x) is view, f"FACADE-VIEW-4: {shape} {strides}"
                assert_bits(bits(y), bits(x).reshape(-1), what=f"{shape} {strides}", clause="FACADE-VIEW-4")


# -- lives of views


@clause("FACADE-VIEW-1", "FACADE-VIEW-2", "FACADE-VIEW-3", "FACADE-VIEW-4", "FACADE-OWN-1")
def test_either_may_end_first(impl: Any, ctx: Any) -> None:
    makers: list[Any] = [
        *(lambda x: x.reshape(ctx, (3, 2)), lambda x: x.flatten(ctx, "f"), lambda x: x.contiguous(ctx)),
        *(
            lambda x: x.narrow(ctx, "r", 1, 1),
            lambda x: x.permute(ctx, ("c", "r")),
            lambda x: x.transpose(ctx, "r", "c"),
        ),
        *(lambda x: x.broadcast_to(ctx, (2, 2, 3), ("n", "r", "c")), lambda x: x.split(ctx, "c", (3, 1), ("p", "q"))),
        lambda x: x.merge(ctx, ("r", "c"), "f"),
    ]
    for make in makers:
        for first in (0, 1):
            x = f32(impl, ctx, np.arange(6).reshape(2, 3), ("r", "c"))
            y = make(x)
            assert (x.as_raw_tensor().buffer.refs, y.scope_owned, y.requires_grad) == (2, False, False)
            wanted = bits(y)
            x.data()[...] += 1.0
            assert (bits(y).view(np.float32) == wanted.view(np.float32) + 1).all(), "a view sees every write"
            (x, y)[first].deinit()
            kept = (x, y)[1 - first]
            assert kept.as_raw_tensor().buffer.refs == 1
            assert bits(kept).size
            assert ctx.rt.buffers.outstanding_buffers() == 1
            kept.deinit()
            assert ctx.rt.buffers.outstanding_buffers() == 0


@clause("FACADE-VIEW-1", "FACADE-VIEW-2", "POLICY-BRANCH-1")
@pytest.mark.parametrize("dtype", FORMATS, ids=lambda d: d.name)
def test_blocks_have_no_views(impl: Any, ctx: Any, dtype: DType) -> None:
    n, size = sizes(dtype)
    with impl.Tensor("r", "c", dtype=dtype).from_blocks(ctx, (2, n), bytes(2 * size)) as w:
        before = held(ctx), w.as_raw_tensor().buffer.refs
        for call in (
            *(lambda: w.reshape(ctx, (2, n)), lambda: w.flatten(ctx, "f"), lambda: w.contiguous(ctx)),
            *(lambda: w.narrow(ctx, "r", 0, 1), lambda: w.permute(ctx, ("r", "c")), lambda: w.transpose(ctx, "r", "c")),
            *(lambda: w.broadcast_to(ctx, (2, n)), lambda: w.split(ctx, "r", (2, 1), ("p", "q"))),
            lambda: w.merge(ctx, ("r", "c"), "f"),
        ):
            assert_raises(InvalidDType, None, call)
        assert (held(ctx), w.as_raw_tensor().buffer.refs) == before


@clause("FACADE-VIEW-2", "FACADE-VIEW-3")
def test_writes_go_through(impl: Any, ctx: Any) -> None:
    with constant(impl, ctx, DType.i32, pattern_noise(DType.i32, (3, 4))) as x, x.transpose(ctx, "a", "b") as t:
        np.asarray(t)[2, 1] = 77
        assert x.data_const().reshape(3, 4)[1, 2] == 77
        with x.broadcast_to(ctx, (2, 3, 4), ("n", "a", "b")) as r:
            assert not np.asarray(r).flags.writeable
