"""Shapes: what is a shape, the arithmetic of sizes, strides and axes."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fucina.conformance import clause
from fucina.conformance.compare import assert_raises
from fucina.spec import GEOMETRY, DType
from fucina.spec.errors import (
    IndexOutOfBounds,
    InvalidDataLength,
    InvalidDType,
    InvalidInteger,
    InvalidShape,
    Overflow,
    ShapeMismatch,
)

SHAPES = st.lists(st.integers(1, 1 << 9), min_size=1, max_size=7).map(tuple)


def _takers(impl: Any) -> dict[str, Any]:
    """Return the functions that take a shape first, as functions of a shape alone."""
    shape_mod = impl.internal.shape_mod
    return {
        "element_count": shape_mod.element_count,
        "storage_element_count": lambda shape: shape_mod.storage_element_count(DType.i8, shape),
        "contiguous_strides": shape_mod.contiguous_strides,
        "AxisGeometry.of": lambda shape: shape_mod.AxisGeometry.of(shape, 0),
        "without_axis": lambda shape: shape_mod.without_axis(shape, 0),
        "zeros": impl.internal.RawTensor.zeros,
        "from_slice": lambda shape: impl.internal.RawTensor.from_slice(shape, [1.0]),
        "broadcast_to": impl.internal.RawTensor.zeros((1,)).broadcast_to,
        "view_with_strides": lambda shape: impl.internal.RawTensor.zeros((1,)).view_with_strides(shape, (0,) * 9),
        "reshape": impl.internal.RawTensor.zeros((1,)).reshape,
    }


@clause("SHAPE-RULE-1", "SHAPE-COUNT-1")
def test_shapes_that_are_refused(impl: Any) -> None:
    for name, take in _takers(impl).items():
        for kind, shapes in {
            InvalidInteger: (3, None, "12", b"12", (1.0,), (True,), ("2",), (None,), (2, 0.5), ((1,),), [[1]]),
            InvalidShape: ((), [], (0,), (2, 0), (-1,), (1, -5), (1,) * 9, (0, 1 << 63, 2), (-1, 1 << 64)),
            Overflow: ((1 << 64,), (1, 1 << 70), (1 << 32, 1 << 32), (1 << 63, 2), (1 << 32, 1 << 32, 0)),
        }.items():
            for shape in shapes:
                assert_raises(
                    kind, None, partial(lambda shape, take: take(shape), shape, take), what=f"{name} of {shape!r}"
                )


@clause("SHAPE-RULE-1")
def test_whatever_holds_integers_is_a_shape(impl: Any) -> None:
    shape_mod = impl.internal.shape_mod
    holders: list[Any] = [(2, 3), [2, 3], np.array([2, 3]), np.array([2, 3], np.uint8), range(2, 4), iter((2, 3))]
    for shape in holders:
        assert impl.internal.RawTensor.zeros(shape).shape == (2, 3)
    for shape in ((2, 3), [np.int64(2), np.uint8(3)], shape_mod.Shape.init((2, 3))):
        assert shape_mod.element_count(shape) == 6
    assert shape_mod.max_rank == impl.internal.tensor_mod.max_rank == 8


@clause("SHAPE-TYPE-1")
def test_the_type(impl: Any) -> None:
    shape_type = impl.internal.shape_mod.Shape
    assert shape_type is impl.internal.tensor_mod.Shape
    shape: Any = shape_type.from_(np.array([4, 5, 6]))
    assert issubclass(shape_type, tuple)
    assert (shape.len, len(shape), list(shape), shape[1]) == (3, 3, [4, 5, 6], 5)
    assert type(shape.slice()[0]) is int
    for i in (3, -1, 1 << 70):
        assert_raises(IndexOutOfBounds, "SHAPE-TYPE-1", partial(lambda i: shape.at(i), i))
    assert_raises(InvalidInteger, "SHAPE-TYPE-1", lambda: shape.at(1.0))
    assert shape_type.init((1 << 63, 1 << 63)) == (1 << 63, 1 << 63), "no elements are counted"
    assert_raises(InvalidShape, None, lambda: shape_type.from_((0,)))
    assert shape_type.init_strides((0, 0)) == (0, 0)
    for bad in ((), (1,) * 9, (-1,)):
        assert_raises(InvalidShape, None, partial(lambda bad: shape_type.init_strides(bad), bad))
    assert repr(shape) == "Shape(4, 5, 6)"


@clause("SHAPE-COUNT-1", "SHAPE-STRIDES-1", "SHAPE-PRODUCT-1", "SHAPE-AXIS-1")
@given(shape=SHAPES, data=st.data())
def test_arithmetic(impl: Any, shape: tuple[int, ...], data: Any) -> None:
    shape_mod = impl.internal.shape_mod
    assert shape_mod.element_count(shape) == shape_mod.product(shape) == math.prod(shape)
    strides = tuple(shape_mod.contiguous_strides(shape))
    assert strides == tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))
    out = [7] * len(shape)
    shape_mod.contiguous_strides_into(shape, out)
    assert tuple(out) == strides
    assert shape_mod.is_contiguous(shape, strides)
    axis = data.draw(st.integers(0, len(shape) - 1))
    other = list(strides)
    other[axis] += 1
    assert not shape_mod.is_contiguous(shape, other)
    geometry = shape_mod.AxisGeometry.of(shape, axis)
    assert (geometry.outer, geometry.axis_dim, geometry.inner) == (
        math.prod(shape[:axis]),
        shape[axis],
        math.prod(shape[axis + 1 :]),
    )
    assert shape_mod.product_before_axis(shape, axis) == geometry.outer
    assert shape_mod.product_after_axis(shape, axis) == geometry.inner
    assert shape_mod.without_axis(shape, axis) == shape[:axis] + shape[axis + 1 :]


@clause("SHAPE-COUNT-2")
@pytest.mark.parametrize("dtype", list(DType), ids=lambda d: d.name)
def test_storage_counts(impl: Any, dtype: DType) -> None:
    count, size = impl.internal.shape_mod.storage_element_count, GEOMETRY[dtype].block_size
    if size is None:
        assert count(dtype, (3, 5)) == 15
        return
    assert count(dtype, (3, 2 * size)) == 6
    for last in (0, 1, size - 1, size + 1):
        assert_raises(InvalidShape, "SHAPE-COUNT-2", partial(lambda last: count(dtype, (3, last)), last))
    assert_raises(InvalidShape, "SHAPE-COUNT-2", lambda: count(dtype, (0, 1 << 63, 4, size)))
    assert_raises(Overflow, "SHAPE-COUNT-2", lambda: count(dtype, (1 << 32, 1 << 32, 1)))
    assert count(dtype, (1 << 60, 8 * size)) == 1 << 63, "blocks are counted, not elements"
    assert_raises(Overflow, "SHAPE-COUNT-2", lambda: count(dtype, (1 << 60, 16 * size)))


@clause("SHAPE-COUNT-2")
def test_a_dtype_is_required(impl: Any) -> None:
    assert_raises(InvalidDType, None, lambda: impl.internal.shape_mod.storage_element_count("f32", (1,)))


@clause("SHAPE-PRODUCT-1", "SHAPE-STRIDES-1", "SHAPE-AXIS-1")
def test_what_the_arithmetic_refuses(impl: Any) -> None:
    shape_mod = impl.internal.shape_mod
    assert shape_mod.product((1,) * 20) == 1
    assert shape_mod.product((0, 1 << 63)) == 0
    assert_raises(Overflow, "SHAPE-PRODUCT-1", lambda: shape_mod.product((1 << 63, 2)))
    for out in ([], [0], [0] * 3, (0, 0)):
        assert_raises(
            InvalidDataLength,
            "SHAPE-STRIDES-1",
            partial(lambda out: shape_mod.contiguous_strides_into((2, 3), out), out),
        )
    for strides in ((), (1,), (1, 1, 1)):
        assert_raises(InvalidShape, "SHAPE-STRIDES-1", partial(lambda s: shape_mod.is_contiguous((2, 3), s), strides))
    for function in (shape_mod.AxisGeometry.of, shape_mod.without_axis, shape_mod.product_before_axis):
        for axis in (2, -1, 1 << 64):
            assert_raises(IndexOutOfBounds, "SHAPE-AXIS-1", partial(lambda f, axis: f((2, 3), axis), function, axis))
        assert_raises(InvalidInteger, "SHAPE-AXIS-1", partial(lambda f: f((2, 3), 0.0), function))
    assert shape_mod.without_axis((5,), 0) == ()


@clause("SHAPE-SAME-1")
def test_comparisons(impl: Any) -> None:
    shape_mod, raw = impl.internal.shape_mod, impl.internal.RawTensor
    one, other = raw.zeros((2, 3)), raw.zeros((3, 2)).view_with_strides((2, 3), (1, 2))
    assert shape_mod.require_same_shape(one, other) is None
    assert shape_mod.require_same_shape(one, [2, 3]) is None
    assert impl.internal.tensor_mod.require_same_shape((2,), (2,)) is None
    for pair in (((2, 3), (3, 2)), ((2,), (2, 1)), (one, (6,))):
        assert_raises(ShapeMismatch, "SHAPE-SAME-1", partial(lambda pair: shape_mod.require_same_shape(*pair), pair))
    assert shape_mod.require_same_rank_shape(2, one, other) == (2, 3)
    assert_raises(InvalidShape, "SHAPE-SAME-1", lambda: shape_mod.require_same_rank_shape(3, one, other))
    assert_raises(InvalidShape, "SHAPE-SAME-1", lambda: shape_mod.require_same_rank_shape(2, one, (6,)))
    assert_raises(ShapeMismatch, "SHAPE-SAME-1", lambda: shape_mod.require_same_rank_shape(2, one, (3, 2)))
    assert shape_mod.array_from_slice(2, [0, 5]) == (0, 5)
    for rank in (1, 3, 0, 9):
        assert_raises(
            InvalidShape, "SHAPE-SAME-1", partial(lambda rank: shape_mod.array_from_slice(rank, [4, 5]), rank)
        )


@clause("SHAPE-DISPATCH-1")
def test_dispatch(impl: Any) -> None:
    dispatch = impl.internal.shape_mod.dispatch_rank
    for rank in range(1, 9):
        assert dispatch(lambda *seen: seen, rank, "a", 2) == (rank, "a", 2)
    called: list[object] = []
    for rank in (0, 9, -1):
        assert_raises(InvalidShape, "SHAPE-DISPATCH-1", partial(lambda rank: dispatch(called.append, rank), rank))
    assert_raises(InvalidInteger, "SHAPE-DISPATCH-1", lambda: dispatch(called.append, 2.0))
    assert not called
    with pytest.raises(LookupError):
        dispatch(lambda rank: {}[rank], 2)


@clause("SHAPE-BROADCAST-1", "TENSOR-VIEW-4")
@given(data=st.data())
def test_broadcasting_agrees_with_numpy(impl: Any, data: Any) -> None:
    shape_mod = impl.internal.shape_mod
    sizes = st.integers(1, 3)
    source = tuple(data.draw(st.lists(sizes, min_size=1, max_size=4)))
    target = tuple(data.draw(st.lists(sizes, min_size=1, max_size=5)))
    values = np.arange(math.prod(source), dtype=np.float32).reshape(source)
    tensor = impl.internal.RawTensor.from_slice(source, values)
    try:
        expected = np.broadcast_to(values, target)
    except ValueError:
        assert_raises(ShapeMismatch, "SHAPE-BROADCAST-1", lambda: shape_mod.validate_broadcast_rank(source, target))
        assert_raises(ShapeMismatch, "TENSOR-VIEW-4", lambda: tensor.broadcast_to(target))
    else:
        shape_mod.validate_broadcast_rank(source, target)
        assert np.array_equal(np.asarray(tensor.broadcast_to(target)), expected)
        assert np.array_equal(np.asarray(tensor.broadcast_to_rank(len(target), target)), expected)
    assert tensor.buffer.refs == 1
    assert shape_mod.is_exact_suffix_rank(source, target) == (target[-len(source) :] == source)
