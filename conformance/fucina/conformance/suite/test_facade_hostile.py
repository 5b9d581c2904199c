"""The order of errors, what is left when something raises, and arguments that are not what they seem."""

from __future__ import annotations

import gc
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
    InvalidTag,
    Overflow,
    ShapeMismatch,
    UseAfterDeinit,
    UseAfterScope,
)

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


@clause("FACADE-CTX-1", "POLICY-BRANCH-1")
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
        assert_raises(UseAfterDeinit, None, call(ended, name, ctx, None, nonsense))
        assert_raises(UseAfterScope, None, call(closed, name, ctx, None, nonsense))
        if name in BINARY:
            for tensor in (x, blocks):
                assert_raises(UseAfterDeinit, None, call(tensor, name, ctx, ended, nonsense))
                assert_raises(UseAfterScope, None, call(tensor, name, ctx, closed, nonsense))
                for stranger in (None, 2.0, np.ones((1, 2), np.float32), x.as_raw_tensor(), ctx):
                    assert_raises(DTypeMismatch, None, call(tensor, name, ctx, stranger, nonsense), what=repr(stranger))
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
