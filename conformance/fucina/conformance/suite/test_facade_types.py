"""Types of tagged tensors: from tags and ranks, equal ones the same, what a specification may be, axes by tag."""

from __future__ import annotations

import copy
import pickle
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import assert_raises
from fucina.conformance.suite.hostile import Acting, Posing
from fucina.conformance.suite.tagged import NAMES, f32
from fucina.spec import DType
from fucina.spec.errors import DTypeMismatch, InvalidDType, InvalidShape, InvalidTag


@pytest.fixture
def ctx(impl: Any) -> Any:
    with impl.ExecContext() as found:
        yield found


# -- made from tags or a rank


@clause("FACADE-TYPE-1")
@pytest.mark.parametrize("dtype", list(DType), ids=lambda d: d.name)
def test_equal_specifications_are_the_same_type(impl: Any, dtype: DType) -> None:
    made = []
    for tags in ((), ("d",), ("batch", "d"), ("d", "batch"), NAMES):
        kind = impl.Tensor(*tags, dtype=dtype)
        assert kind is impl.Tensor(*tags, dtype=dtype)
        assert (kind.dtype, kind.rank, kind.axis_tags) == (dtype, len(tags), tags)
        made.append(kind)
    for rank in range(9):
        kind = impl.Tensor(rank, dtype=dtype)
        assert kind is impl.Tensor(rank, dtype=dtype)
        assert (kind.dtype, kind.rank, kind.axis_tags) == (dtype, rank, tuple(range(rank)))
        made.append(kind)
    assert impl.Tensor(dtype=dtype) is impl.Tensor(0, dtype=dtype)
    assert all(issubclass(kind, impl.Tensor) and kind is not impl.Tensor for kind in made)
    assert len(set(made)) == len(made) - 1, "only Tensor() and Tensor(0) are one type"


@clause("FACADE-TYPE-1")
def test_f32_is_what_is_meant(impl: Any) -> None:
    for arguments in ((), (0,), (3,), ("d",), ("a", "b")):
        assert impl.Tensor(*arguments) is impl.Tensor(*arguments, dtype=DType.f32)
        assert impl.Tensor(*arguments) is not impl.Tensor(*arguments, dtype=DType.f16)


@clause("FACADE-TYPE-1", "FACADE-LOOK-2")
def test_a_type_shows_its_specification(impl: Any) -> None:
    for arguments, options, shown in (
        ((), {}, "Tensor()"),
        ((0,), {}, "Tensor()"),
        ((2,), {}, "Tensor(2)"),
        (("d",), {}, 'Tensor("d")'),
        (("batch", "d"), {"dtype": DType.bf16}, 'Tensor("batch", "d", dtype=DType.bf16)'),
        ((1,), {"dtype": DType.q4_k}, "Tensor(1, dtype=DType.q4_k)"),
    ):
        assert repr(impl.Tensor(*arguments, **options)) == shown


@clause("FACADE-TYPE-1")
def test_a_rank_may_come_from_numpy(impl: Any) -> None:
    assert impl.Tensor(np.int64(2)) is impl.Tensor(2)


# -- what a specification may be


@clause("FACADE-TYPE-2")
def test_tags_that_are_none(impl: Any) -> None:
    for wrong in (
        *("", "1d", "a b", "a-b", "a.b", " d", "d\n"),
        *(1.0, None, b"d", True, ("a", "b"), ["a"], object(), np.float32(2), DType.f32),
    ):
        for arguments in ((wrong,), ("a", wrong), (wrong, "a")):
            assert_raises(InvalidTag, "FACADE-TYPE-2", partial(impl.Tensor, *arguments), what=repr(arguments))


@clause("FACADE-TYPE-2")
def test_tags_that_stand_twice_and_mixtures(impl: Any) -> None:
    for arguments in (("d", "d"), ("a", "b", "a"), (1, 2), (0, 0), (2, "a"), ("a", 2), (1, "a", "b")):
        assert_raises(InvalidTag, "FACADE-TYPE-2", partial(impl.Tensor, *arguments), what=repr(arguments))


@clause("FACADE-TYPE-2")
def test_words_that_are_no_part_of_a_specification(impl: Any) -> None:
    for words in ({"rank": 2}, {"tags": ("a", "b")}, {"device": "cpu"}):
        for arguments in ((), (1,), ("d",)):
            assert_raises(InvalidTag, "FACADE-TYPE-2", partial(impl.Tensor, *arguments, **words), what=repr(words))


@clause("FACADE-TYPE-1", "FACADE-AXIS-1")
def test_integers_of_other_types(impl: Any, ctx: Any) -> None:
    """Whatever has an index is an integer, as everywhere."""
    for two in (np.int8(2), np.uint64(2), np.array(2), Acting(lambda: None, 2)):
        assert impl.Tensor(two) is impl.Tensor(2)
    with impl.Tensor(2).ones(ctx, (2, 3)) as x:
        for one in (np.int8(1), np.uint64(1), np.array(1), Acting(lambda: None, 1)):
            assert x.dim(one) == 3
            with x.sum(ctx, one) as s, x.narrow(ctx, one, one, one) as part:
                assert (s.shape, part.shape) == ((2,), (2, 1))


@clause("FACADE-TYPE-2")
def test_ranks_that_there_are_not(impl: Any) -> None:
    for rank in (-1, 9, 1 << 70, -(1 << 70), np.int8(-1)):
        assert_raises(InvalidShape, "FACADE-TYPE-2", partial(impl.Tensor, rank), what=repr(rank))
    assert_raises(InvalidShape, "FACADE-TYPE-2", partial(impl.Tensor, *NAMES, "i"))


@clause("FACADE-TYPE-2")
def test_dtypes_that_are_none(impl: Any) -> None:
    for wrong in ("f32", np.float32, None, 9, Posing(DType)):
        for arguments in ((), (1,), ("d",)):
            assert_raises(
                InvalidDType, "FACADE-TYPE-2", partial(impl.Tensor, *arguments, dtype=wrong), what=repr(wrong)
            )


@clause("FACADE-TYPE-2")
def test_identifiers_of_any_language(impl: Any) -> None:
    for tag in ("_", "größe", "行", "lambda", "d1", "__len__", "dtype", "mro"):
        assert impl.Tensor(tag).axis_tags == (tag,)


@clause("FACADE-TYPE-2")
def test_types_are_not_called(impl: Any) -> None:
    for kind in (impl.Tensor("d"), impl.Tensor(2), impl.Tensor(), impl.Tensor("d", dtype=DType.q8_0)):
        for arguments in ((), ("d",), (2,), (np.zeros(2, np.float32),)):
            assert_raises(DTypeMismatch, "FACADE-TYPE-2", partial(kind, *arguments), what=repr(kind))


@clause("FACADE-TYPE-2")
def test_what_is_refused_leaves_no_type_behind(impl: Any) -> None:
    """A specification that was refused is refused again, and its parts still work."""
    for _ in range(2):
        assert_raises(InvalidTag, "FACADE-TYPE-2", lambda: impl.Tensor("x", "x"))
        assert_raises(InvalidShape, "FACADE-TYPE-2", lambda: impl.Tensor(9))
        assert impl.Tensor("x").axis_tags == ("x",)


@clause("FACADE-COPY-1", "FACADE-TYPE-1")
def test_types_are_copied_by_their_specification(impl: Any) -> None:
    for kind in (impl.Tensor(), impl.Tensor(3, dtype=DType.i8), impl.Tensor("a", "b", dtype=DType.q4_0)):
        assert copy.copy(kind) is kind
        assert copy.deepcopy([kind])[0] is kind
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            assert pickle.loads(pickle.dumps(kind, protocol)) is kind


# -- axes by tag


@clause("FACADE-AXIS-1")
def test_an_axis_is_one_of_the_tags(impl: Any, ctx: Any) -> None:
    named, numbered = f32(impl, ctx, np.ones((2, 3)), ("row", "col")), impl.Tensor(2).ones(ctx, (2, 3))
    calls: dict[str, Any] = {
        "dim": lambda t, axis: t.dim(axis),
        "sum": lambda t, axis: t.sum(ctx, axis),
        "mean": lambda t, axis: t.mean(ctx, axis),
        "narrow": lambda t, axis: t.narrow(ctx, axis, 0, 1),
        "transpose": lambda t, axis: t.transpose(ctx, axis, t.axis_tags[0]),
        "transpose, second": lambda t, axis: t.transpose(ctx, t.axis_tags[0], axis),
        "split": lambda t, axis: t.split(ctx, axis, (1, 2), ("x", "y") if t is named else None),
        "argmax": lambda t, axis: t.argmax(ctx, axis),
        "argsort": lambda t, axis: t.argsort(ctx, axis),
        "sort": lambda t, axis: t.sort(ctx, axis),
        "top_k": lambda t, axis: t.top_k(ctx, axis, 1),
        "l2_normalize": lambda t, axis: t.l2_normalize(ctx, axis),
        "cosine_similarity": lambda t, axis: t.cosine_similarity(ctx, t, axis),
        "nll_loss": lambda t, axis: t.nll_loss(ctx, [0, 1], axis),
    }
    outside = ("depth", "", "Row", 0, 1, 2, None, 1.0, b"row", True)
    for (name, call), wrong in product(calls.items(), outside):
        if wrong is None and name in ("sum", "mean"):
            continue  # all axes
        assert_raises(InvalidTag, None, partial(call, named, wrong), what=f"{name} along {wrong!r}")
    for (name, call), wrong in product(calls.items(), (-1, 2, "row", 1.5)):
        assert_raises(InvalidTag, None, partial(call, numbered, wrong), what=f"{name} along {wrong!r}")
    for wrong in (("row", "depth"), ("row", "row"), ["col", "col"], ("row", 1), {"row"}):
        assert_raises(InvalidTag, None, partial(named.sum, ctx, wrong), what=repr(wrong))
        assert_raises(InvalidTag, None, partial(named.permute, ctx, wrong), what=repr(wrong))
    named.deinit()
    numbered.deinit()


@clause("FACADE-AXIS-1")
def test_several_axes(impl: Any, ctx: Any) -> None:
    with f32(impl, ctx, np.arange(24).reshape(2, 3, 4), ("x", "y", "z")) as t:
        for axes in (("x", "z"), ["z", "x"], ("x",), ["y"], ("z", "y", "x")):
            with t.sum(ctx, axes) as s:
                assert s.axis_tags == tuple(tag for tag in t.axis_tags if tag not in axes)


@clause("FACADE-AXIS-1")
def test_axes_without_names_are_numbered_anew(impl: Any, ctx: Any) -> None:
    kind = impl.Tensor(3)
    with kind.ones(ctx, (2, 3, 4)) as t:
        call: Any
        for call, wanted, shape in (
            (lambda: t.sum(ctx, 0), 2, (3, 4)),
            (lambda: t.sum(ctx, (0, 2)), 1, (3,)),
            (lambda: t.sum_all(ctx), 0, ()),
            (lambda: t.mean(ctx, 1, keep_dims=True), 3, (2, 1, 4)),
            (lambda: t.argmax(ctx, 1), 2, (2, 4)),
            (lambda: t.permute(ctx, (2, 0, 1)), 3, (4, 2, 3)),
            (lambda: t.transpose(ctx, 0, 2), 3, (4, 3, 2)),
            (lambda: t.split(ctx, 2, (2, 2)), 4, (2, 3, 2, 2)),
            (lambda: t.merge(ctx, (0, 1)), 2, (6, 4)),
            (lambda: t.flatten(ctx), 1, (24,)),
            (lambda: t.reshape(ctx, (4, 6)), 2, (4, 6)),
            (lambda: t.broadcast_to(ctx, (5, 2, 3, 4)), 4, (5, 2, 3, 4)),
            (lambda: t.dot(ctx, t.transpose(ctx, 0, 2)), 4, (2, 3, 3, 2)),
            (lambda: t.add(ctx, t), 3, (2, 3, 4)),
        ):
            with call() as result:
                assert result.axis_tags == tuple(range(wanted))
                assert result.shape == shape
                assert issubclass(type(result), impl.Tensor)
                assert type(result) is impl.Tensor(wanted, dtype=result.dtype)
