"""The order of errors, what is left when something raises, and arguments that are not what they seem."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import assert_raises
from fucina.conformance.suite.hostile import Acting, Posing, renamed
from fucina.conformance.suite.tagged import bits, f32, state, watched
from fucina.spec import DType
from fucina.spec.errors import (
    ConcurrentUse,
    DTypeMismatch,
    EmptySelection,
    FucinaError,
    IndexOutOfBounds,
    InvalidBounds,
    InvalidDType,
    InvalidInteger,
    InvalidShape,
    InvalidTag,
    Overflow,
    ShapeMismatch,
    UseAfterDeinit,
    UseAfterScope,
)
from fucina.spec.facade import FacadePart

METHODS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("add", "sub", "mul", "div", "dot", "take_add_no_grad"), ("other",)),
    **dict.fromkeys(("scale", "add_scalar", "take_scale_no_grad"), (2.0,)),
    **dict.fromkeys(("sum", "mean", "argmax", "argsort", "sort", "l2_normalize"), ("a",)),
    **dict.fromkeys(("sum_all", "contiguous", "backward", "grad", "grad_view"), ()),
    "to": (DType.f32,),
    "dropout": (0.5, 1),
    "top_k": ("a", 1),
    "nll_loss": ([0], "b"),
    "cosine_similarity": ("other", "a"),
    "get_rows": ([0],),
    "reshape": ((2, 1),),
    "flatten": ("f",),
    "narrow": ("a", 0, 1),
    "permute": (("b", "a"),),
    "transpose": ("a", "b"),
    "broadcast_to": ((1, 2),),
    "split": ("b", (2, 1), ("p", "q")),
    "merge": (("a", "b"), "f"),
}
BINARY = ("add", "sub", "mul", "div", "dot", "take_add_no_grad", "cosine_similarity")
CONSTRUCTORS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("empty", "zeros", "ones"), ((1, 2),)),
    **{name: ((1, 2), [1.0, 2.0]) for name in ("from_slice", "variable_from_slice")},
    **{name: ((1, 2), np.ones(2, np.float32)) for name in ("from_borrowed_slice", "from_borrowed_const_slice")},
    **dict.fromkeys(("constant", "from_tensor", "variable", "empty_like", "zeros_like", "ones_like"), (None,)),
    **dict.fromkeys(("rand", "randn", "gumbel"), ((1, 2), 1)),
    **dict.fromkeys(("uniform", "normal", "randint"), ((1, 2), 1, 0, 1)),
    "full": ((1, 2), 1.0),
    "full_like": (None, 1.0),
    "scalar": (1.0,),
    "arange": (0, 4),
    "linspace": (0, 1, 4),
    "eye": (2,),
    "one_hot": ([0], 2),
    "bernoulli": ((1, 2), 1, 0.5),
    "randperm": (4, 1),
    "from_blocks": ((1, 2), b""),
    "from_borrowed_blocks": ((1, 2), b""),
}


@pytest.fixture
def ctx(impl: Any) -> Any:
    with impl.ExecContext() as found:
        yield found


def call(
    tensor: Any, name: str, ctx: Any, other: Any = None, arguments: tuple[Any, ...] | None = None
) -> Callable[[], Any]:
    """Return the call of a method, with another tensor where it takes one."""
    rest = METHODS[name] if arguments is None else arguments
    return lambda: getattr(tensor, name)(ctx, *(other if isinstance(a, str) and a == "other" else a for a in rest))


@clause("FACADE-CTX-1")
@pytest.mark.parametrize("name", METHODS)
def test_arguments_by_name(impl: Any, ctx: Any, name: str) -> None:
    """All of them, and the context too, by the names that the interface gives them."""
    names = list(inspect.signature(getattr(FacadePart, name)).parameters)[1:]

    def outcome(by_name: bool) -> object:
        with f32(impl, ctx, [[1.0, 2.0]]) as x, impl.Tensor("b", "c").ones(ctx, (2, 1)) as matrix:
            y = matrix if name == "dot" else x.scale(ctx, 3.0)
            given = (ctx, *(y if isinstance(a, str) and a == "other" else a for a in METHODS[name]))
            keywords = dict(zip(names, given, strict=False))
            try:
                found = getattr(x, name)(**keywords) if by_name else getattr(x, name)(*given)
                return repr(found) if not hasattr(found, "deinit") else _described(found)
            except FucinaError as error:
                return type(error), error.clause
            finally:
                y.deinit()

    assert outcome(True) == outcome(False)


def _described(found: Any) -> list[object]:
    parts = [found] if hasattr(found, "axis_tags") else [found.values, found.indices]
    seen = [(type(t), t.shape, bits(t).tolist()) for t in parts]
    found.deinit()
    return [*seen]


# -- the context comes first


@clause("FACADE-CTX-1", "CONTEXT-LIFE-2", "CONTEXT-THREAD-1")
@pytest.mark.parametrize("name", METHODS)
def test_the_context_of_a_method(impl: Any, ctx: Any, name: str) -> None:
    gone, ended = impl.ExecContext(), f32(impl, ctx, [[1.0, 2.0]])
    gone.deinit()
    ended.deinit()
    with f32(impl, ctx, [[1.0, 2.0]]) as x, impl.Tensor("a", "b", dtype=DType.bool).ones(ctx, (1, 2)) as wrong_dtype:
        before = state(ctx, x, wrong_dtype)
        # whatever else is wrong
        for tensor in (x, ended, wrong_dtype):
            for stranger in (None, 3, "ctx", x, impl.ExecContext, ctx.rt):
                assert_raises(DTypeMismatch, "FACADE-CTX-1", call(tensor, name, stranger, ended), what=repr(stranger))
            assert_raises(UseAfterDeinit, "CONTEXT-LIFE-2", call(tensor, name, gone, ended))
        assert state(ctx, x, wrong_dtype) == before


@clause("FACADE-CTX-1", "CONTEXT-LIFE-2")
@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_the_context_of_a_constructor(impl: Any, ctx: Any, name: str) -> None:
    gone = impl.ExecContext()
    gone.deinit()
    for dtype in (DType.f32, DType.i64, DType.q8_0):
        make = getattr(impl.Tensor("a", "b", dtype=dtype), name)
        for stranger in (None, 3, "ctx", impl.ExecContext, ctx.rt):
            assert_raises(DTypeMismatch, "FACADE-CTX-1", partial(make, stranger, *CONSTRUCTORS[name]))
        assert_raises(UseAfterDeinit, "CONTEXT-LIFE-2", partial(make, gone, *CONSTRUCTORS[name]))


# -- then the tensors, the dtypes, the tags


@clause("FACADE-CTX-1", "FACADE-OWN-1", "SCOPE-AFTER-1", "POLICY-BRANCH-1")
@pytest.mark.parametrize("name", METHODS)
def test_tensors_come_before_dtypes_and_these_before_all_else(impl: Any, ctx: Any, name: str) -> None:
    ended = impl.Tensor("a", "b", dtype=DType.f8_e5m2).ones(ctx, (1, 2))
    ended.deinit()
    with (
        f32(impl, ctx, [[1.0, 2.0]]) as x,
        impl.Tensor("a", "b", dtype=DType.q8_0).empty(ctx, (1, 32)) as blocks,
        ctx.exec_scope(),
    ):
        with ctx.exec_scope():
            closed = x.add(ctx, x)
        before = state(ctx, x, blocks)
        nonsense = tuple(a if isinstance(a, list) or a == "other" else object() for a in METHODS[name])
        assert_raises(UseAfterDeinit, "FACADE-OWN-1", call(ended, name, ctx, None, nonsense))
        assert_raises(UseAfterScope, "SCOPE-AFTER-1", call(closed, name, ctx, None, nonsense))
        if name in BINARY:
            for tensor in (x, blocks):
                assert_raises(UseAfterDeinit, "FACADE-OWN-1", call(tensor, name, ctx, ended, nonsense))
                assert_raises(UseAfterScope, "SCOPE-AFTER-1", call(tensor, name, ctx, closed, nonsense))
                for stranger in (None, 2.0, np.ones((1, 2), np.float32), x.as_raw_tensor(), ctx):
                    use = call(tensor, name, ctx, stranger, nonsense)
                    assert_raises(DTypeMismatch, "FACADE-CTX-1", use, what=repr(stranger))
        if name not in ("to", "get_rows"):
            assert_raises(InvalidDType, "POLICY-BRANCH-1", call(blocks, name, ctx, blocks, nonsense))
        assert state(ctx, x, blocks) == before


@clause("FACADE-CTX-1", "FACADE-AXIS-1")
def test_tags_come_before_numbers_and_these_before_shapes(impl: Any, ctx: Any) -> None:
    with f32(impl, ctx, [[1.0, 2.0]]) as x, f32(impl, ctx, np.ones((3, 2)), ("c", "b")) as y:
        before = state(ctx, x, y)
        for name, arguments, wrong in (
            *(("narrow", ("z", "no start", 0), InvalidTag), ("narrow", ("a", "no start", 0), TypeError)),
            *(
                ("top_k", ("z", "no k"), InvalidTag),
                ("top_k", ("a", "no k"), TypeError),
                ("split", ("z", "no sizes", None), InvalidTag),
            ),
            *(("l2_normalize", ("z", "no eps"), InvalidTag), ("l2_normalize", ("a", "no eps"), DTypeMismatch)),
            *(("nll_loss", ([9], "z"), InvalidTag), ("transpose", ("z", None), InvalidTag)),
            *(
                ("dropout", ("no p", -1), DTypeMismatch),
                ("sum", (("z", "z"),), InvalidTag),
                ("argsort", ("z", "no flag"), InvalidTag),
            ),
        ):
            assert_raises(wrong, None, call(x, name, ctx, None, arguments), what=f"{name} {arguments}")
        assert_raises(InvalidTag, None, lambda: x.cosine_similarity(ctx, y, "b", "no eps"))
        assert_raises(InvalidTag, None, lambda: x.cosine_similarity(ctx, x, "z", "no eps"))
        assert_raises(DTypeMismatch, None, lambda: x.cosine_similarity(ctx, x, "b", "no eps"))
        assert state(ctx, x, y) == before


@clause("FACADE-CTX-1", "FACADE-VIEW-1", "FACADE-VIEW-3", "FACADE-VIEW-4", "POLICY-NLL-1")
def test_of_two_wrong_arguments_the_order_decides(impl: Any, ctx: Any) -> None:
    cases: tuple[tuple[str, tuple[Any, ...], type[Exception]], ...] = (
        ("broadcast_to", (None, ("p", "q")), InvalidTag),
        ("broadcast_to", (None, "ab"), InvalidTag),
        ("broadcast_to", (np.array([1, 2]), ("a", "b", "c")), InvalidTag),
        ("broadcast_to", ((1 << 40, 1 << 40),), Overflow),
        ("reshape", ((0,),), InvalidTag),
        ("reshape", ((-1,),), InvalidTag),
        ("reshape", (("no size", 2), ("p",)), InvalidTag),
        ("split", ("b", None, ("a", "q")), InvalidTag),
        ("split", ("b", (0, 2), ("p",)), InvalidTag),
        ("split", ("b", (0,), ("p", "q")), InvalidTag),
        ("split", ("b", (0, 2), None), InvalidTag),
        ("split", ("b", (1 << 40, 1 << 40), ("p", "q")), Overflow),
        ("nll_loss", (None, "z"), DTypeMismatch),
        ("nll_loss", (np.zeros(1), "z"), InvalidTag),
        ("nll_loss", (np.zeros((1, 1), np.int64), "z"), InvalidTag),
    )
    losses: tuple[tuple[list[int], type[Exception]], ...] = (
        ([0, 0], ShapeMismatch),
        ([2], IndexOutOfBounds),
        ([], EmptySelection),
    )
    with f32(impl, ctx, [[1.0, 2.0]]) as x:
        before = state(ctx, x)
        for name, arguments, wrong in cases:
            assert_raises(wrong, None, call(x, name, ctx, None, arguments), what=f"{name} {arguments}")
        assert_raises(InvalidDType, None, partial(x.nll_loss, ctx, x, "z"))
        assert_raises(InvalidInteger, None, partial(impl.Tensor("a").eye, ctx, True))
        for indices in ([], [True], [1 << 70], np.zeros(1), np.zeros((1, 1), np.int64)):
            assert_raises(InvalidInteger, None, partial(impl.Tensor("a", "b").one_hot, ctx, indices, 2.0))
        for targets, wrong in losses:
            assert_raises(wrong, None, partial(x.nll_loss, ctx, targets, "b", reduction="no"), what=str(targets))
        assert state(ctx, x) == before


AXIS, TAGS = "FACADE-AXIS-1", "FACADE-TYPE-2"
WRONG_TAGS: tuple[tuple[str, tuple[Any, ...], str], ...] = (
    *((name, ("z",), AXIS) for name in ("sum", "mean", "argmax", "argsort", "sort", "l2_normalize")),
    *(
        (name, (wrong,), AXIS)
        for name in ("sum", "mean")
        for wrong in (("a", "z"), ("a", "a"), 0, True, {"a"}, object())
    ),
    *(("top_k", ("z", 1), AXIS), ("nll_loss", ([0], "z"), AXIS), ("cosine_similarity", ("other", "z"), AXIS)),
    *(("narrow", ("z", 0, 1), AXIS), ("transpose", ("a", "z"), AXIS), ("transpose", ("z", "a"), AXIS)),
    *(("permute", (("a", "z"),), AXIS), ("permute", ("ab",), AXIS), ("dot", ("other", "z"), AXIS)),
    *(("split", ("z", (2, 1), ("p", "q")), AXIS), ("merge", (("a", "z"), "f"), AXIS), ("merge", ("ab", "f"), AXIS)),
    *(("reshape", ((2, 1), wrong), TAGS) for wrong in ("pq", ("p", "p"), ("p", 1), ("p", "q r"), {"p", "q"})),
    *(("broadcast_to", ((1, 2), wrong), TAGS) for wrong in ("ab", ("a", "a"), ("a", 1), ("a", "b c"), {"a", "b"})),
    *(("split", ("b", (2, 1), wrong), TAGS) for wrong in ("pq", ("p", "p"), ("p", 1), ("p", "a"))),
    *(("merge", (("a", "b"), wrong), TAGS) for wrong in (1, "q r", True)),
    *(("flatten", (wrong,), TAGS) for wrong in (1, "q r", ("f",))),
)


@clause("FACADE-AXIS-1", "FACADE-TYPE-2", "FACADE-CTX-1")
@pytest.mark.parametrize(("name", "arguments", "broken"), WRONG_TAGS)
def test_which_clause_a_wrong_tag_breaks(
    impl: Any, ctx: Any, name: str, arguments: tuple[Any, ...], broken: str
) -> None:
    """Whichever operation it is that takes the axis, or the names."""
    with f32(impl, ctx, [[1.0, 2.0]]) as x, f32(impl, ctx, [[1.0, 2.0]]) as y:
        before = state(ctx, x, y)
        assert_raises(InvalidTag, broken, call(x, name, ctx, y, arguments), what=repr(arguments))
        assert state(ctx, x, y) == before


@clause("FACADE-CTX-1", "FACADE-VIEW-1", "FACADE-VIEW-3", "FACADE-VIEW-4")
def test_tags_of_views_come_before_sizes(impl: Any, ctx: Any) -> None:
    with f32(impl, ctx, [[1.0, 2.0]]) as x:
        before = state(ctx, x)
        for name, arguments in (
            *(("reshape", (("no size",), None)), ("reshape", ((0,), None)), ("reshape", (None, ("p", "p")))),
            *(("reshape", (wrong, ("p", "q"))) for wrong in (("no size",), (0,), {"no size"})),
            *(
                ("broadcast_to", (None, "ab")),
                ("broadcast_to", (None, ("a", "c"))),
                ("broadcast_to", ((0,), ("a", "b"))),
            ),
            *(("split", ("b", None, None)), ("split", ("b", None, ("a", "q"))), ("split", ("b", (0,), ("p", "q")))),
        ):
            assert_raises(InvalidTag, None, call(x, name, ctx, None, arguments), what=f"{name} {arguments}")
        assert state(ctx, x) == before


@clause("FACADE-CTX-1", "FACADE-NEW-6", "POLICY-ROWS-1", "POLICY-NLL-1")
def test_what_indices_are_wrong_with_first(impl: Any, ctx: Any) -> None:
    """No tensor at all comes before dtypes, another dtype before tags, and no number before shapes."""
    hot, wrong_type = impl.Tensor("a", "b"), impl.Tensor("a", "b", dtype=DType.f16)
    with (
        f32(impl, ctx, [[1.0, 2.0]]) as x,
        f32(impl, ctx, [1.0], ("a",)) as floats,
        impl.Tensor("b", dtype=DType.i64).ones(ctx, (1,)) as its_own,
        impl.Tensor().scalar(ctx, 1.0) as scalar,
        wrong_type.ones(ctx, (1, 2)) as half,
    ):
        before = state(ctx, x, floats, its_own, scalar, half)
        for stranger in (None, object(), 1.5, x.as_raw_tensor()):
            assert_raises(DTypeMismatch, "FACADE-NEW-6", partial(wrong_type.one_hot, ctx, stranger, "no number"))
            assert_raises(DTypeMismatch, "POLICY-NLL-1", partial(half.nll_loss, ctx, stranger, "z"))
            assert_raises(DTypeMismatch, "POLICY-ROWS-1", partial(x.get_rows, ctx, stranger))
        assert_raises(DTypeMismatch, "POLICY-NLL-1", partial(x.nll_loss, ctx, True, "z"))
        assert_raises(InvalidDType, "POLICY-BRANCH-1", partial(half.nll_loss, ctx, floats, "z"))
        assert_raises(InvalidDType, "POLICY-BRANCH-1", partial(wrong_type.one_hot, ctx, ["no index"], 3))
        assert_raises(InvalidDType, "POLICY-BRANCH-1", partial(half.nll_loss, ctx, np.ones(1, np.float32), "z"))
        assert_raises(InvalidDType, "POLICY-NLL-1", partial(x.nll_loss, ctx, floats, "z"))
        assert_raises(InvalidDType, "POLICY-ROWS-1", partial(x.get_rows, ctx, floats))
        assert_raises(InvalidDType, "FACADE-NEW-6", partial(hot.one_hot, ctx, floats, "no number"))
        assert_raises(InvalidTag, "POLICY-ROWS-1", partial(x.get_rows, ctx, its_own))
        assert_raises(InvalidTag, "FACADE-NEW-6", partial(hot.one_hot, ctx, its_own, "no number"))
        assert_raises(InvalidTag, "FACADE-AXIS-1", partial(x.nll_loss, ctx, ["no index"], "z"))
        for nothing in (["no index"], [None], [True], [1.5], np.ones(1, np.float32)):
            assert_raises(InvalidInteger, "FACADE-NEW-6", partial(impl.Tensor("a").one_hot, ctx, nothing, 0))
            assert_raises(InvalidInteger, "POLICY-ROWS-1", partial(scalar.get_rows, ctx, nothing))
            assert_raises(InvalidInteger, "POLICY-NLL-1", partial(x.nll_loss, ctx, [*nothing, 0], "b"))
        assert_raises(InvalidInteger, "FACADE-NEW-6", partial(impl.Tensor("a").one_hot, ctx, [0], "no number"))
        assert_raises(InvalidInteger, "FACADE-NEW-6", partial(hot.one_hot, ctx, np.ones((1, 1), np.int64), "no number"))
        assert_raises(IndexOutOfBounds, "POLICY-NLL-1", partial(x.nll_loss, ctx, [9], "b", reduction="no reduction"))
        assert_raises(InvalidBounds, "POLICY-NLL-1", partial(x.nll_loss, ctx, [0], "b", reduction="no reduction"))
        assert state(ctx, x, floats, its_own, scalar, half) == before


@clause("FACADE-CTX-1", "FACADE-NEW-5", "FACADE-NEW-7", "POLICY-DROPOUT-1")
def test_numbers_come_before_shapes_and_these_before_bounds(impl: Any, ctx: Any) -> None:
    one, two, whole = impl.Tensor("a"), impl.Tensor("a", "b"), impl.Tensor("a", dtype=DType.i64)
    nothing: tuple[Any, ...] = (None, True, 1.5, float("nan"), float("-inf"), "no number", np.ones(2), (1,))
    with f32(impl, ctx, [1.0], ("a",)) as x:
        before = state(ctx, x)
        for wrong in nothing:
            for kind in (one, two):
                assert_raises(
                    InvalidInteger, "FACADE-NEW-5", partial(kind.linspace, ctx, 0, 1, wrong), what=repr(wrong)
                )
                assert_raises(InvalidInteger, "FACADE-NEW-5", partial(kind.eye, ctx, wrong, 0), what=repr(wrong))
            assert_raises(InvalidInteger, None, partial(impl.Tensor("a", dtype=DType.i64).randperm, ctx, wrong, 1))
            assert_raises(InvalidInteger, "RNG-SEED-1", partial(x.dropout, ctx, 7.0, wrong), what=repr(wrong))
        for steps in (0, -1, -(2**70)):
            assert_raises(InvalidShape, "FACADE-NEW-5", partial(one.linspace, ctx, 0, 1, steps))
        assert_raises(InvalidShape, "FACADE-NEW-5", partial(two.linspace, ctx, 0, 1, 2**64))
        assert_raises(Overflow, "FACADE-NEW-5", partial(one.linspace, ctx, 0, 1, 2**64))
        for shape, error in (
            ((1, 1), InvalidShape),
            ((0,), InvalidShape),
            ((2**64,), Overflow),
            (("n",), InvalidInteger),
        ):
            assert_raises(error, None, partial(one.uniform, ctx, shape, 1, 2.0, 1.0))
            assert_raises(error, None, partial(one.bernoulli, ctx, shape, 1, 7.0))
            assert_raises(error, None, partial(whole.randint, ctx, shape, 1, 5, 5))
        assert_raises(InvalidBounds, "RNG-UNIF-3", partial(one.uniform, ctx, (2**63,), 1, 2.0, 1.0))
        assert_raises(InvalidBounds, "FACADE-NEW-7", partial(one.bernoulli, ctx, (2**63,), 1, 7.0))
        assert_raises(InvalidBounds, "RNG-INT-2", partial(whole.randint, ctx, (2**63,), 1, 5, 5))
        assert state(ctx, x) == before


@clause("SHAPE-RULE-1", "SHAPE-COUNT-2", "FACADE-NEW-4", "FACADE-VIEW-1", "FACADE-VIEW-3")
def test_sizes_are_looked_at_from_the_left(impl: Any, ctx: Any) -> None:
    three = impl.Tensor("a", "b", "c")
    with f32(impl, ctx, [[[1.0]]], ("a", "b", "c")) as x:
        before = state(ctx, x)
        for shape, error in (
            *(((2**40, 2**40, 0), Overflow), ((0, 2**40, 2**40), InvalidShape), ((2**40, 0, 2**40), InvalidShape)),
            *(((0, 1, -1), InvalidShape), ((0, 1, "n"), InvalidInteger), ((0, 1, 2**64), Overflow)),
        ):
            for make in (
                *(partial(getattr(three, name), ctx, shape) for name in ("empty", "zeros", "ones")),
                *(partial(three.full, ctx, shape, 1.0), partial(three.rand, ctx, shape, 1)),
                *(partial(three.from_slice, ctx, shape, None), partial(three.from_borrowed_slice, ctx, shape, None)),
                *(partial(x.reshape, ctx, shape), partial(x.broadcast_to, ctx, shape)),
            ):
                assert_raises(error, None, make, what=repr(shape))
        assert state(ctx, x) == before


@clause("POLICY-SUM-1", "POLICY-MEAN-1", "POLICY-SORT-1")
def test_what_is_no_bool(impl: Any, ctx: Any) -> None:
    with f32(impl, ctx, [[1.0, 2.0]]) as x:
        before = state(ctx, x)
        for wrong in (None, 0, 1, 1.0, "yes", (), [True], np.int64(1), np.ones(1, np.bool_), Posing(bool), object()):
            for name, broken in (("sum", "POLICY-SUM-1"), ("mean", "POLICY-MEAN-1")):
                use = partial(getattr(x, name), ctx, "a", keep_dims=wrong)
                assert_raises(DTypeMismatch, broken, use, what=repr(wrong))
            for name in ("sort", "argsort"):
                for use in (
                    partial(getattr(x, name), ctx, "a", wrong),
                    partial(getattr(x, name), ctx, "a", descending=wrong),
                ):
                    assert_raises(DTypeMismatch, "POLICY-SORT-1", use, what=repr(wrong))
        assert state(ctx, x) == before
        with x.sum(ctx, "b", keep_dims=np.bool_(True)) as s, x.sort(ctx, "b", np.bool_(True)) as ordered:
            assert s.shape == (1, 1)
            assert ordered.values.data_const().tolist() == [2.0, 1.0]


@clause("FACADE-CTX-1", "FACADE-NEW-1")
def test_objects_that_pose(impl: Any, ctx: Any) -> None:
    """What isinstance takes for a context or a tensor is none yet."""
    with f32(impl, ctx, [[1.0, 2.0]]) as x:
        before = state(ctx, x)
        for make in (
            partial(x.scale, Posing(impl.ExecContext), 2.0),
            partial(type(x).ones, Posing(impl.ExecContext), (1, 2)),
        ):
            assert_raises(DTypeMismatch, "FACADE-CTX-1", make)
        for use in (x.add, x.take_add_no_grad, type(x).zeros_like):
            assert_raises(DTypeMismatch, None, partial(use, ctx, Posing(type(x))))
        assert_raises(DTypeMismatch, None, partial(type(x).constant, ctx, Posing(impl.internal.RawTensor)))
        assert state(ctx, x) == before


class Same(str):
    """Says that it is equal to whatever it is compared with."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__


@clause("FACADE-AXIS-1", "FACADE-TYPE-2", "POLICY-NLL-1")
def test_a_str_is_what_it_spells_and_an_integer_what_its_index_is(impl: Any, ctx: Any) -> None:
    with f32(impl, ctx, [[1.0, 2.0]]) as x, impl.Tensor(2).ones(ctx, (1, 2)) as n:
        for name in ("sum", "mean", "argmax", "argsort", "sort", "l2_normalize", "dim"):
            at = () if name == "dim" else (ctx,)
            assert_raises(InvalidTag, None, partial(getattr(x, name), *at, Same("q")), what=name)
            assert_raises(InvalidTag, None, partial(getattr(x, name), *at, Posing(str)), what=name)
            assert_raises(InvalidTag, None, partial(getattr(n, name), *at, Same("q")), what=name)
        assert x.dim(Same("b")) == n.dim(Acting(int, 1)) == n.dim(np.int8(1)) == 2
        assert_raises(InvalidBounds, None, partial(x.nll_loss, ctx, [0], "b", reduction=Same("q")))
        with x.nll_loss(ctx, [0], "b", reduction=Same("none")) as loss:
            assert loss.shape == (1,)
        with n.sum(ctx, Acting(int, 1)) as s, s.nll_loss(ctx, Acting(int, 0), 0) as loss:
            assert loss.item() == -2.0
        assert impl.Tensor(Acting(int, 2)) is type(n)


# -- state after errors


@clause("FACADE-CTX-1", "ERR-STATE-1", "AUTOGRAD-BACK-2")
@pytest.mark.parametrize("grad", [False, True], ids=["constants", "leaves"])
@pytest.mark.parametrize("name", METHODS)
def test_what_raises_has_changed_nothing(impl: Any, ctx: Any, name: str, grad: bool) -> None:
    """Every argument in turn replaced by what it cannot be, with and without a scope."""
    wrongs: tuple[Any, ...] = (
        None,
        object(),
        "z",
        -1,
        10**30,
        1.5,
        float("nan"),
        (),
        (0,),
        ("z",),
        b"a",
        [[]],
        DType.q4_k,
        Posing(int),
    )
    with f32(impl, ctx, [[1.0, 2.0]], grad=grad) as x, f32(impl, ctx, [[3.0, 4.0]]) as y:
        if grad:
            with ctx.exec_scope():
                x.mul(ctx, y).sum_all(ctx).backward(ctx)
        for scoped in (False, True):
            mark = ctx.open_exec_scope() if scoped else None
            for place in range(len(METHODS[name])):
                for wrong in wrongs:
                    arguments = (*METHODS[name][:place], wrong, *METHODS[name][place + 1 :])
                    before = watched(ctx, x, y)
                    result, refusal = _outcome(call(x, name, ctx, y, arguments))
                    if refusal is not None:
                        assert watched(ctx, x, y) == before, f"FACADE-CTX-1: {name}{arguments}: {refusal}"
                        continue
                    if name.startswith("take"):
                        x.deinit()
                        x = f32(impl, ctx, [[1.0, 2.0]], grad=grad)
                    if hasattr(result, "deinit"):
                        result.deinit()
            if mark is not None:
                ctx.close_exec_scope(mark)
        x.deinit()


def _outcome(do: Callable[[], Any]) -> tuple[Any, str | None]:
    """Return what a call returned, or what it raised, which has to be a documented error or a TypeError."""
    try:
        return do(), None
    except (FucinaError, TypeError) as error:
        return None, str(error)


# -- arguments that act when they are read


@clause("FACADE-CTX-1", "FACADE-OWN-1")
def test_an_index_that_ends_the_tensor(impl: Any, ctx: Any) -> None:
    """Whatever it does, nothing is read of what has ended."""
    calls: tuple[Callable[[Any, Any], Any], ...] = (
        *(lambda x, i: x.narrow(ctx, "a", i, 1), lambda x, i: x.top_k(ctx, "a", i), lambda x, i: x.get_rows(ctx, [i])),
        *(lambda x, i: x.reshape(ctx, (4, i)), lambda x, i: x.split(ctx, "a", (4, i), ("p", "q"))),
        *(
            lambda x, i: x.broadcast_to(ctx, (4, i)),
            lambda x, i: x.sum(ctx, "a", keep_dims=i),
            lambda x, i: x.sort(ctx, "a", i),
        ),
        lambda x, i: x.nll_loss(ctx, [i, i, i, i], "b"),
    )
    for use in calls:
        x = f32(impl, ctx, [[1.0], [2.0], [3.0], [4.0]])

        def finish(t: Any = x) -> None:
            if "deinited" not in repr(t):
                t.deinit()

        try:
            result = use(x, Acting(finish, 1))
        except (FucinaError, TypeError):
            result = None
        if result is not None:
            for part in list(result) if hasattr(result, "indices") else [result]:
                assert bits(part).size > 0
                part.deinit()
        finish()
        del result, x, finish
        gc.collect()
        assert ctx.rt.buffers.outstanding_buffers() == 0


@clause("FACADE-NEW-2", "FACADE-NEW-6")
def test_arrays_that_claim_another_dtype(impl: Any, ctx: Any) -> None:
    posing = renamed(np.arange(4, dtype=np.int64), np.dtype(np.float32))
    make: Any
    for make in (
        lambda: impl.Tensor("a").from_slice(ctx, (4,), posing),
        lambda: impl.Tensor("a").from_borrowed_slice(ctx, (4,), posing),
        lambda: impl.Tensor("a", "b").one_hot(ctx, renamed(np.ones(2, np.float32), np.dtype(np.int64)), 3),
    ):
        try:
            with make() as made:
                assert bits(made).size
        except (FucinaError, TypeError):
            pass
    assert ctx.rt.buffers.outstanding_buffers() == 0


@clause("FACADE-CTX-1", "CONTEXT-THREAD-1")
def test_one_driver(impl: Any, ctx: Any) -> None:
    """A custom operation's forward runs within the context: another thread is refused there."""
    import threading

    errors: list[BaseException] = []

    def elsewhere() -> None:
        try:
            x.add(ctx, x)
        except ConcurrentUse as error:
            errors.append(error)

    def forward(inner: Any, raw: Any) -> Any:
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        return inner.scale(raw, 2.0)

    with f32(impl, ctx, [1.0, 2.0]) as x, impl.custom_vjp(forward, forward)(ctx, x) as y:
        assert y.data_const().tolist() == [2.0, 4.0]
        assert len(errors) == 1, "CONTEXT-THREAD-1: two threads drove one context"
        errors.clear()


@clause("FACADE-OWN-1", "CONTEXT-THREAD-1")
def test_tensors_may_end_on_any_thread(impl: Any, ctx: Any) -> None:
    import threading

    tensors = [impl.Tensor("a").ones(ctx, (4,)) for _ in range(8)]
    threads = [threading.Thread(target=t.deinit) for t in tensors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ctx.rt.buffers.outstanding_buffers() == 0
    for t in tensors:
        assert_raises(UseAfterDeinit, None, t.deinit)
