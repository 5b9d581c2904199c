"""Tensors with tags: the C type under them, their types, their lives, hostile arguments, operators."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fucina.fast as fast
from fucina.fast import Bf16, DType, ExecContext, Tensor, internal
from fucina.fast._facade_looking import restored
from fucina.fast._objects import handles
from fucina.spec.errors import (
    ActiveExecScopeUnsupported,
    ConcurrentUse,
    DTypeMismatch,
    FucinaError,
    InvalidShape,
    InvalidTag,
    NotCopyable,
    OutOfMemory,
    UnsupportedView,
    UseAfterDeinit,
    UseAfterScope,
)

T, Pair = Tensor("d"), Tensor("row", "col")


@pytest.fixture
def ctx() -> Iterator[ExecContext]:
    """A context that must be left without a buffer."""
    with ExecContext() as made:
        yield made


def outstanding(ctx: ExecContext) -> int:
    """How many buffers are out."""
    return ctx.rt.buffers.outstanding_buffers()


# -- types


def test_a_type_is_made_here_only() -> None:
    """Neither a class statement, nor an assignment, nor ``__new__`` makes a type or a tensor."""
    with pytest.raises(DTypeMismatch):
        type("Mine", (T,), {})
    with pytest.raises(DTypeMismatch):

        class Mine(Tensor):
            """Nothing."""

    changes: list[Callable[[], None]] = [lambda: setattr(T, "dtype", DType.f16), lambda: delattr(T, "rank")]
    for change in changes:
        with pytest.raises(AttributeError):
            change()
    kinds: list[Any] = [T, Tensor, handles.Facade]
    for kind in kinds:
        with pytest.raises(DTypeMismatch):
            kind.__new__(kind)
    with pytest.raises(TypeError):
        object.__new__(T)
    assert (T.dtype, T.rank, T.axis_tags) == (DType.f32, 1, ("d",))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_types_are_pickled_by_their_specification(protocol: int) -> None:
    """What comes back is the same type."""
    for kind in (T, Pair, Tensor(3, dtype=DType.q4_k), Tensor(), Tensor(dtype=DType.bf16), Tensor):
        assert pickle.loads(pickle.dumps(kind, protocol)) is kind
        assert copy.copy(kind) is copy.deepcopy(kind) is kind


def test_an_integer_of_numpy_is_a_rank_and_a_str_of_ones_own_a_tag() -> None:
    """What is equal to a specification is one."""

    class Word(str):
        """A str whose text lies."""

        def __str__(self) -> str:
            return "other"

    assert Tensor(np.int64(2)) is Tensor(2)  # type: ignore[arg-type] # typing knows no such integer
    assert Tensor(Word("d")) is T
    specs: list[Any] = [(True,), (2.0,), (b"d",), (None,), ("d", 1), (1, 1)]
    for spec in specs:
        with pytest.raises(InvalidTag):
            Tensor(*spec)


# -- lives


def test_the_shortest_way_gives_the_type_and_context_of_its_operands(ctx: ExecContext) -> None:
    """C makes what the Python layer would."""
    with T.ones(ctx, (4,)) as x, x.add(ctx, x) as quick, x._add(ctx, x) as slow:
        assert type(quick) is type(slow) is T
        assert quick._context is slow._context is ctx
        assert bytes(quick.data_const()) == bytes(slow.data_const())
        assert gc.is_tracked(quick)


@pytest.mark.parametrize("arguments", [(), (1,), (1, 2, 3), (None, None)])
def test_wrong_arguments_are_type_errors(ctx: ExecContext, arguments: tuple[Any, ...]) -> None:
    """No number of arguments crashes."""
    with T.ones(ctx, (4,)) as x:
        for name in ("add", "sub", "mul", "div", "scale"):
            with pytest.raises(TypeError):
                getattr(x, name)(*arguments)
            with pytest.raises(TypeError):
                getattr(x, name)(ctx, x, other=x)
        with x.add(ctx=ctx, other=x) as y, x.scale(ctx, number=2.0) as z:
            assert y.data_const().tolist() == z.data_const().tolist() == [2.0] * 4


def test_methods_refuse_other_objects(ctx: ExecContext) -> None:
    """The methods of the C type look at what they are called on."""
    raw = ctx.ones((2,))
    with raw:
        for name, method in vars(handles.Facade).items():
            if callable(method) and not name.startswith("__"):
                with pytest.raises(TypeError):
                    method(raw)
        with pytest.raises(DTypeMismatch):
            ctx.add(raw, T)
        with T.ones(ctx, (2,)) as x, pytest.raises(DTypeMismatch):
            ctx.add(raw, x)
        wrong: list[Any] = [(int, ctx, raw), (T, ctx, 1), (Pair, ctx, raw), (Tensor, ctx, raw)]
        for kind, context, given in wrong:
            with pytest.raises((ValueError, AttributeError)):
                handles.facade_over(kind, context, given, None, False)
        assert raw.data_const().tolist() == [1.0, 1.0]


def test_a_raw_tensor_of_it_keeps_the_object_and_not_the_storage(ctx: ExecContext) -> None:
    """It borrows: views of it own, it does not."""
    x = T.ones(ctx, (4,))
    raw = x.as_raw_tensor()
    view = raw.clone_view()
    assert raw._borrows()
    assert not view._borrows()
    assert raw.buffer.refs == 2
    seen = weakref.ref(x)
    x.deinit()
    del x
    assert seen() is not None
    for use in (lambda: raw.shape, raw.clone_view, raw.data, lambda: memoryview(raw), lambda: ctx.add(raw, raw)):
        with pytest.raises(UseAfterDeinit):
            use()
    raw.deinit()
    assert view.data_const().tolist() == [1.0] * 4
    view.deinit()
    with ctx.exec_scope(), T.ones(ctx, (4,)) as x:
        y = x.scale(ctx, 2.0)
        raw = y.as_raw_tensor()
        ctx.reserve_scope_slot()
        with pytest.raises(UnsupportedView):
            ctx.adopt_scope_value_assume_capacity(raw, None, None)
        for refused in (T.constant, T.variable):
            with pytest.raises(UnsupportedView):
                refused(ctx, raw)
    with pytest.raises(UseAfterScope):
        raw.rank()


def test_a_context_that_is_forgotten_goes_with_what_its_scopes_own() -> None:
    """Context, scope and tensors refer to each other; the collector finds them."""
    ctx = ExecContext()
    x = T.variable_from_slice(ctx, (2,), [1, 2])
    ctx.open_exec_scope()
    y = x.mul(ctx, x)
    ctx.mine = y  # type: ignore[attr-defined] # a cycle of the caller's
    seen = weakref.ref(ctx), weakref.ref(y)
    x.deinit()
    del ctx, x, y
    gc.collect()
    assert [each() for each in seen] == [None, None]


def test_forgotten_tensors_warn_where_a_constructor_made_them(ctx: ExecContext) -> None:
    """Results and what came out of a pickle do not."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        x = T.ones(ctx, (4,))
        y = x.add(ctx, x)
        z = pickle.loads(pickle.dumps(x))
        del y, z
        assert not found
        del x
    assert [each.category for each in found] == [ResourceWarning]
    assert outstanding(ctx) == 0


def test_what_a_traced_context_makes_says_where(ctx: ExecContext) -> None:
    """Nothing that was used on the way warns."""
    with ExecContext(trace=True) as traced, warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        with Pair.from_slice(traced, (2, 3), range(6)) as x, x.transpose(traced, "row", "col") as t:
            with t.reshape(traced, (6,), ("d",)) as flat, t.sum(traced, "row") as s, t.add(traced, t) as u:
                assert __file__ in str(flat.origin)
                assert __file__ in str(s.origin)
                assert __file__ in str(u.origin)
            with x.l2_normalize(traced, "col"), x.reshape(traced, (3, 2), ("col", "n")) as y, x.dot(traced, y):
                pass
            with x.nll_loss(traced, [0, 1], "col"), x.cosine_similarity(traced, x, "col"):
                pass
            with x.sort(traced, "col"), x.top_k(traced, "row", 1), x.get_rows(traced, [1, 0]):
                pass
            with Tensor("i").arange(traced, 0, 4), Tensor("i").linspace(traced, 0, 1, 3):
                pass
        assert not found, [str(each.message) for each in found]


def test_consumed_replaced_ended(ctx: ExecContext) -> None:
    """Which second end is forgiven."""
    raw = ctx.ones((2,))
    x = T.constant(ctx, raw)
    raw.deinit()
    with pytest.raises(UseAfterDeinit):
        raw.rank()
    y = x.take_scale_no_grad(ctx, 2.0)
    x.deinit()
    z = ctx.replace(y, y.add(ctx, y))
    y.deinit()
    z.deinit()
    with pytest.raises(UseAfterDeinit):
        z.deinit()
    with T.ones(ctx, (2,)) as x:
        x.deinit()
    assert outstanding(ctx) == 0


def test_records_end_together(ctx: ExecContext) -> None:
    """``deinit``, ``with`` and ``replace`` end both parts."""
    with T.from_slice(ctx, (3,), [3, 1, 2]) as x:
        record = x.sort(ctx, "d")
        again = ctx.replace(record, x.sort(ctx, "d"))
        record.deinit()
        values, indices = again
        assert (values, indices) == (again.values, again.indices)
        again.deinit()
        for use in (again.deinit, values.data_const, indices.data_const, again.__enter__):
            with pytest.raises(UseAfterDeinit):
                use()
        with x.top_k(ctx, "d", 1) as best:
            best.values.deinit()
    assert outstanding(ctx) == 0


def test_a_node_that_raises_at_its_end_leaves_nothing(ctx: ExecContext) -> None:
    """What comes out of ``destroy`` comes out of ``deinit``, which is done by then."""

    class Node:
        """Ends badly."""

        def destroy(self) -> None:
            """Raise."""
            raise RuntimeError("no")

    x = handles.facade_over(T, ctx, ctx.ones((2,)), Node(), False)
    assert x.requires_grad
    with pytest.raises(RuntimeError, match="no"):
        x.deinit()
    assert outstanding(ctx) == 0
    mark = ctx.open_exec_scope()
    ctx._rt.scopes.adopt_result(handles.facade_over(T, ctx, ctx.ones((2,)), Node(), False))
    with pytest.raises(RuntimeError, match="no"):
        ctx.close_exec_scope(mark)
    assert outstanding(ctx) == 0
    assert ctx.rt.scope_depth == 0


@pytest.mark.parametrize("scoped", [False, True])
def test_no_allocation_that_fails_leaves_anything(scoped: bool) -> None:
    """Counters are exact while the exception is alive."""
    program: list[Any] = [
        lambda ctx, x: x.add(ctx, x),
        lambda ctx, x: x.scale(ctx, 2.0),
        lambda ctx, x: x.add_scalar(ctx, 2.0),
        lambda ctx, x: x.sum(ctx, "row"),
        lambda ctx, x: x.mean(ctx),
        lambda ctx, x: x.transpose(ctx, "row", "col"),
        lambda ctx, x: x.sort(ctx, "col"),
        lambda ctx, x: x.top_k(ctx, "col", 1),
        lambda ctx, x: x.get_rows(ctx, [0, 1]),
        lambda ctx, x: x.dropout(ctx, 0.5, 1),
        lambda ctx, x: x.to(ctx, DType.f16),
        lambda ctx, x: x.l2_normalize(ctx, "col"),
        lambda ctx, x: x.cosine_similarity(ctx, x, "col"),
        lambda ctx, x: x.nll_loss(ctx, [0, 1], "col"),
        lambda ctx, x: Tensor("i").arange(ctx, 0, 3),
        lambda ctx, x: Tensor("i").linspace(ctx, 0, 3, 3),
        lambda ctx, x: Tensor("i", "c").one_hot(ctx, [0, 1], 2),
        lambda ctx, x: x.argmax(ctx, "row"),
    ]
    with ExecContext() as ctx, Pair.from_slice(ctx, (2, 3), range(6)) as x:
        for at, step in enumerate(program):
            mark = ctx.open_exec_scope() if scoped else None
            before = outstanding(ctx), ctx.rt.scope_entries, x.as_raw_tensor().buffer.refs
            for n in range(1, 60):
                internal.fail_allocation(n)
                try:
                    made = step(ctx, x)
                except OutOfMemory:
                    internal.fail_allocation(None)
                    held = outstanding(ctx), ctx.rt.scope_entries, x.as_raw_tensor().buffer.refs
                    if held != before:
                        pytest.fail(f"allocation {n} of step {at} left {held} for {before}")
                    continue
                internal.fail_allocation(None)
                made.deinit()
                break
            else:
                pytest.fail(f"step {at} always fails")
            if mark is not None:
                ctx.close_exec_scope(mark)


# -- tensors that end under an operation

A, B = Tensor("m", "k"), Tensor("k", "n")
UNDER: dict[str, tuple[type[Tensor], Callable[[Any, Any, Any], Any]]] = {
    "add": (A, lambda ctx, a, b: a.add(ctx, b)),
    "mul": (A, lambda ctx, a, b: a.mul(ctx, b)),
    "div": (A, lambda ctx, a, b: b.div(ctx, a)),
    "scale": (A, lambda ctx, a, b: a.scale(ctx, 2.0)),
    "add_scalar": (A, lambda ctx, a, b: a.add_scalar(ctx, 2.0)),
    "sum_all": (A, lambda ctx, a, b: a.sum_all(ctx)),
    "sum": (A, lambda ctx, a, b: a.sum(ctx, "m")),
    "dropout": (A, lambda ctx, a, b: a.dropout(ctx, 0.5, 1)),
    "to": (A, lambda ctx, a, b: a.to(ctx, DType.f16)),
    "dot": (B, lambda ctx, a, b: a.dot(ctx, b)),
    "dot on the right": (B, lambda ctx, a, b: b.dot(ctx, a)),
    "dot along": (B, lambda ctx, a, b: a.dot(ctx, b, "k")),
    "sort": (A, lambda ctx, a, b: a.sort(ctx, "m")),
    "grad": (A, lambda ctx, a, b: a.grad(ctx)),
}


def _leaves(ctx: ExecContext, its: type[Tensor], size: int) -> list[Any]:
    """Two leaves, of types that have met; the first has a gradient."""
    made = [kind.variable_from_slice(ctx, (size, size), np.ones(size * size, np.float32)) for kind in (A, its)]
    with made[0].sum_all(ctx) as loss, A.ones(ctx, (1, 1)) as a, its.ones(ctx, (1, 1)) as b:
        loss.backward(ctx)
        for x, y in ((a, b), (b, a)):
            if its is B:
                x.dot(ctx, y).deinit()
    return made


def _judged(ctx: ExecContext, name: str, operands: list[Any]) -> None:
    """An operation came after the end of its first operand, or before: then its result tracks gradients."""
    made: Any = None
    ended: str | None = None
    try:
        made = UNDER[name][1](ctx, *operands)
    except UseAfterDeinit as error:
        ended = error.clause
    if made is None:
        assert ended == "FACADE-OWN-1"
        return
    with made:
        assert getattr(made, "requires_grad", False) is (name not in ("sort", "grad"))  # sort makes two


@pytest.mark.parametrize("name", UNDER)
def test_an_operand_that_another_thread_ends(ctx: ExecContext, name: str) -> None:
    """The bytes stay while they are needed, and so does what says that gradients are tracked."""
    operands = _leaves(ctx, UNDER[name][0], 512 if "dot" in name else 1024)
    begun, interval = threading.Event(), sys.getswitchinterval()
    thread = threading.Thread(target=lambda: begun.wait() and operands[0].deinit())
    thread.start()
    try:
        sys.setswitchinterval(10)  # the other thread runs when the operation lets it, and not before
        begun.set()
        _judged(ctx, name, operands)
    finally:
        sys.setswitchinterval(interval)
        thread.join()
    operands[1].deinit()
    assert outstanding(ctx) == 0


@pytest.mark.parametrize("name", UNDER)
def test_an_operand_that_the_garbage_collector_ends(ctx: ExecContext, name: str) -> None:
    """Where Python collects while objects are made, a finalizer may run under any operation."""

    class Cycle:
        """Ends a tensor when it is found."""

        def __init__(self, ended: Any) -> None:
            self.ended, self.again = ended, self

        def __del__(self) -> None:
            if gc.isenabled():  # it was an operation that found it
                self.ended.deinit()

    thresholds = gc.get_threshold()
    try:
        for objects in range(1, 16):
            gc.disable()
            gc.set_threshold(1 << 30)
            operands = _leaves(ctx, UNDER[name][0], 8)
            spares = [operands[0].scale(ctx, 2.0) for _ in range(20)]  # so that the result is allocated
            gc.collect()
            Cycle(operands[0])
            gc.enable()
            gc.set_threshold(gc.get_count()[0] + objects)
            _judged(ctx, name, operands)
            gc.disable()
            gc.collect()
            for x in [*spares, *operands]:
                x._deinit_replaced()
            assert outstanding(ctx) == 0
    finally:
        gc.set_threshold(*thresholds)
        gc.enable()


def test_a_type_with_a_dict_makes_no_tensors(ctx: ExecContext) -> None:
    """Its objects would be larger than those that take their place."""
    for members, good in (({}, False), ({"__slots__": ()}, True)):
        kind: Any = type.__new__(type(T), "Own", (T,), {"axis_tags": ("d",), **members})
        made: list[Any] = []
        try:
            made += [kind.zeros(ctx, (2,)) for _ in range(40)]
            assert good
        except ValueError:
            assert not good
        for x in made:
            x.deinit()
        del made
    assert outstanding(ctx) == 0


# -- hostile arguments


class Strange:
    """Calls itself whatever is asked, and is nothing."""

    def __init__(self, kind: type) -> None:
        self._kind = kind

    @property  # type: ignore[misc] # the lie
    def __class__(self) -> Any:
        return self._kind


STRANGE = [None, 0, -1, 1 << 70, 1.5, "x", b"x", (), [], {}, object(), Ellipsis, np.zeros((2, 2)), T, Tensor]


@pytest.mark.parametrize("name", [name for name in dir(Tensor) if not name.startswith("_") and name != "mro"])
def test_strange_arguments_are_refused(ctx: ExecContext, name: str) -> None:
    """Every member, with everything in every place: an exception of ours or of Python, and nothing left."""
    with Pair.from_slice(ctx, (2, 3), range(6)) as x, ctx.exec_scope():
        every = [*STRANGE, Strange(ExecContext), Strange(T), Strange(handles.Facade), x, ctx]
        before = outstanding(ctx)
        member = getattr(x, name)
        if callable(member) and name != "deinit":
            for first in every:
                for second in every:
                    for arguments in ((first,), (first, second), (ctx, first), (ctx, first, second)):
                        try:
                            made = member(*arguments)
                        except (FucinaError, TypeError, ValueError, OverflowError, AttributeError):
                            continue
                        if hasattr(made, "deinit"):
                            made.deinit()
        del every
    gc.collect()
    assert outstanding(ctx) <= before


def test_what_no_pickle_wrote_is_refused() -> None:
    """The function behind pickles looks at everything."""
    data = np.ones(2, np.float32).tobytes()
    for arguments in ((int, (2,), data), (Tensor, (2,), data), (T, (2, 1), data), (T, (3,), data), (T, (2,), "no")):
        with pytest.raises(FucinaError):
            restored(*arguments)
    with pytest.raises(FucinaError):
        restored(T, (2,), data[1:])
    assert restored(T, (2,), data).data_const().tolist() == [1.0, 1.0]


def test_copies(ctx: ExecContext) -> None:
    """By value, of any layout; with gradients not at all."""
    with Pair.from_slice(ctx, (2, 3), range(6)) as x, x.transpose(ctx, "row", "col") as t:
        generation = x.as_raw_tensor().buffer.generation
        for again in (copy.copy(t), copy.deepcopy(t), pickle.loads(pickle.dumps(t))):
            assert type(again) is type(t)
            assert again.shape == (3, 2)
            with t.contiguous(ctx) as flat:
                assert bytes(again.data_const()) == bytes(flat.data_const())
            with pytest.raises(TypeError):
                again + again
            again.deinit()
        assert x.as_raw_tensor().buffer.generation == generation
    with T.variable_from_slice(ctx, (2,), [1, 2]) as w:
        for make in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(NotCopyable):
                make(w)


# -- operators and numbers


def test_operators(ctx: ExecContext) -> None:
    """Those that are unambiguous, with whatever numpy calls a number."""
    with ctx.exec_scope(), T.from_slice(ctx, (2,), [3, 4]) as x:
        for two in (2, 2.0, np.float32(2), np.int8(2), np.float64(2)):
            assert (x + two).data_const().tolist() == (two + x).data_const().tolist() == [5.0, 6.0]
            assert (x * two).data_const().tolist() == (two * x).data_const().tolist() == [6.0, 8.0]
            assert (x - two).data_const().tolist() == [1.0, 2.0]
            for bad in ("two - x", "x / two", "two / x", "x @ two", "x ** two"):
                with pytest.raises(TypeError):
                    eval(bad, {"x": x, "two": two})
        assert (-x).data_const().tolist() == [-3.0, -4.0]
        assert (x @ x).item() == 25.0
        assert (x / x).data_const().tolist() == [1.0, 1.0]
        assert x == x
        assert x != x + 0.0
        assert len({x, x}) == 1
        for other in (True, None, "a", np.ones(2, np.float32), [1, 2], x.as_raw_tensor()):
            for bad in ("x + other", "other + x", "x * other", "x @ other"):
                with pytest.raises(TypeError):
                    eval(bad, {"x": x, "other": other})
        with ExecContext() as second, T.ones(second, (2,)) as y, pytest.raises(TypeError):
            x + y


def test_items(ctx: ExecContext) -> None:
    """Elements of bf16 are values."""
    half = Tensor(dtype=DType.bf16)
    with half.scalar(ctx, Bf16.from_f32(1.5)) as x:
        assert x.item() == Bf16.from_f32(1.5)
        assert float(x) == 1.5
        assert int(x) == 1
        assert bool(x)
        with pytest.raises(DTypeMismatch):
            len(x)
    for value in (1, True, np.uint16(3), "x", fast.F8E4M3(1)):
        with pytest.raises(DTypeMismatch):
            half.scalar(ctx, value)
    with Pair.ones(ctx, (2, 3)) as x, x.narrow(ctx, "col", 1, 1) as part, part.narrow(ctx, "row", 1, 1) as one:
        assert one.item() == 1.0
        for convert in (bool, int, float):
            with pytest.raises(InvalidShape):
                convert(x)


def test_a_context_driven_elsewhere_is_refused(ctx: ExecContext) -> None:
    """The shortest way asks too."""
    with T.ones(ctx, (2,)) as x:
        ctx._enter()
        try:
            found: list[type] = []
            uses: list[Callable[[], object]] = [lambda: x.add(ctx, x), lambda: x.scale(ctx, 2.0)]
            uses.append(lambda: T.ones(ctx, (2,)))

            def work() -> None:
                for use in uses:
                    try:
                        use()
                    except ConcurrentUse as error:
                        found.append(type(error))

            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        finally:
            ctx._leave()
        assert found == [ConcurrentUse] * 3
    with T.ones(ctx, (2,)) as x, ExecContext() as other:
        other.deinit()
        with pytest.raises(UseAfterDeinit):
            x.add(other, x)


def test_what_a_scope_owns_is_not_consumed(ctx: ExecContext) -> None:
    """The tensor stays, and so does the room in the scope."""
    with ctx.exec_scope(), T.ones(ctx, (2,)) as x:
        y = x.scale(ctx, 2.0)
        uses: list[Callable[[], Any]] = [lambda: y.take_scale_no_grad(ctx, 2.0), lambda: y.take_add_no_grad(ctx, x)]
        for use in uses:
            with pytest.raises(ActiveExecScopeUnsupported):
                use()
        assert y.data_const().tolist() == [2.0, 2.0]
