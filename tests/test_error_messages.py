"""What an error says: the clause first, then the argument by its name, and what was given (clause ERR-MSG-1).

One row a way to go wrong: a call, the clause, the argument and the value as a person would write it.  Where an object
has no short form, its type has to be named.
"""

from __future__ import annotations

import ast
import builtins
import copy
import importlib
import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from fucina.spec import DType, errors
from fucina.spec.clauses import load

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "errors.rst"


class Row(NamedTuple):
    """A call that goes wrong, and the words that its message must have."""

    call: Callable[[Any], object]
    clause: str  # or several: where two rules are broken, either may be named
    words: tuple[str, ...]


def frozen(n: int) -> Any:
    """Return an array that must not be written."""
    made = np.zeros(n, np.float32)
    made.setflags(write=False)
    return made


def tensor(impl: Any, shape: tuple[int, ...] = (2, 3)) -> Any:
    """Return a raw tensor."""
    return impl.internal.RawTensor.zeros(shape)


class Endless(Sequence[int]):
    """More indices than there is memory for."""

    def __len__(self) -> int:
        return 1 << 60

    def __getitem__(self, place: Any) -> Any:
        if place == 3:
            raise MemoryError
        return 0


def within(impl: Any, use: Callable[[Any], object]) -> None:
    """Call with a context that is closed afterwards."""
    with impl.ExecContext() as ctx:
        use(ctx)


def with_ones(impl: Any, use: Callable[[Any, Any], object]) -> None:
    """Call with a context and a tensor of ones, axis d."""
    with impl.ExecContext() as ctx, impl.Tensor("d").ones(ctx, (2,)) as x:
        use(ctx, x)


def ended(impl: Any) -> None:
    """Use a tensor that was given back."""
    made = tensor(impl)
    made.deinit()
    made.data_const()


def outlived(ctx: Any, x: Any) -> None:
    """Use a result after its scope."""
    with ctx.exec_scope():
        kept = x.scale(ctx, 2.0)
    kept.data_const()


def released(impl: Any) -> None:
    """Give a reference back twice."""
    buffer = impl.internal.storage_mod.Buffer.create(4)
    buffer.release()
    buffer.release()


def crossed(ctx: Any) -> None:
    """Close the outer of two scopes."""
    with ctx.exec_scope() as outer, ctx.exec_scope():
        ctx.close_exec_scope(outer)


def taken(ctx: Any, x: Any) -> None:
    """Consume what a scope owns."""
    with ctx.exec_scope():
        x.scale(ctx, 2.0).take_scale_no_grad(ctx, 2.0)


def tracked(impl: Any, ctx: Any) -> None:
    """Consume what tracks gradients."""
    with impl.Tensor("d").variable_from_slice(ctx, (2,), [1, 2]) as w:
        w.take_scale_no_grad(ctx, 2.0)


def overwritten(impl: Any, ctx: Any) -> None:
    """Write to a value that backward needs."""
    with ctx.exec_scope(), impl.Tensor("d").variable_from_slice(ctx, (2,), [1, 2]) as w:
        loss = w.mul(ctx, w).sum_all(ctx)
        w.data()[0] = 7
        loss.backward(ctx)


def leaked(impl: Any) -> None:
    """Close a context with a tensor out."""
    ctx = impl.ExecContext()
    kept = ctx.zeros((2, 3))
    try:
        ctx.deinit()
    finally:
        kept.deinit()


def starved(impl: Any) -> None:
    """Ask for memory that there is not."""
    impl.internal.fail_allocation(1)
    try:
        tensor(impl)
    finally:
        impl.internal.fail_allocation(None)


def divided(impl: Any, ctx: Any) -> None:
    """Divide integers by zero, raw ones."""
    with ctx.from_slice((2,), [1, 0], DType.i32) as x:
        ctx.div(x, x)


def divided_by_tag(impl: Any, ctx: Any) -> None:
    """Divide integers by zero, with tags."""
    with impl.Tensor("d", dtype=DType.i32).from_slice(ctx, (2,), [1, 0]) as x:
        x.div(ctx, x)


def huge(impl: Any) -> None:
    """Encode numbers whose sums overflow."""
    values = np.zeros(256, np.float32)
    impl.rng.gaussian_fill(1, values, 1e25)
    impl.quant.quantize(DType.iq2_s, values)


def busy(impl: Any) -> None:
    """Give a worker a second task."""
    with impl.thread_mod.OneShotWorker() as worker:
        worker.start(lambda: None)
        worker.start(lambda: None)


def chained(impl: Any) -> None:
    """Leave a task of a chain behind."""
    with impl.thread_mod.Pool(max_workers=1) as pool:
        pool.parallel_chained(["a", "b"], 1, lambda task, chain: None)


def elsewhere(impl: Any) -> None:
    """Ask a probe on another thread."""
    with impl.fpenv.probe() as probe, ThreadPoolExecutor(1) as threads:
        threads.submit(probe.sample).result()


def upward(impl: Any, check: Callable[[], object]) -> None:
    """Check while rounding upward."""
    fpenv = impl.fpenv
    with fpenv.guard():
        fpenv.set(fpenv.Environment(fpenv.RoundingMode.upward, fpenv.UnderflowMode.gradual))
        check()


F4 = np.zeros(4, np.float32)
I4 = np.zeros(4, np.int64)
B4 = np.zeros(4, np.bool_)
Q = bytes(18)

ROWS = {
    # -- streams
    "seed, a float": Row(lambda m: m.rng.gaussian_fill(1.5, F4, 1.0), "RNG-SEED-1", ("seed", "1.5")),
    "seed, negative": Row(lambda m: m.rng.gumbel_fill(-1, F4), "RNG-SEED-1", ("seed", "-1")),
    "seed, a bool": Row(lambda m: m.rng.gumbel_fill(True, F4), "RNG-SEED-1", ("seed", "True")),
    "state, too large": Row(lambda m: m.rng.splitmix64(1 << 64), "RNG-SEED-1", ("state", "18446744073709551616")),
    "i, a string": Row(lambda m: m.rng.at(0, "x"), "RNG-SEED-1", ("i", "'x'")),
    "first, negative": Row(lambda m: m.rng.gumbel_fill_at(0, -3, F4), "RNG-SEED-1", ("first", "-3")),
    "first, past the end": Row(
        lambda m: m.rng.gumbel_fill_at(0, (1 << 64) - 1, F4), "RNG-RANGE-1", ("first", "out", "2^64")
    ),
    "scale, a string": Row(lambda m: m.rng.gaussian_fill(0, F4, "1"), "NUM-PARAM-1", ("scale", "'1'")),
    "scale, complex": Row(lambda m: m.rng.gaussian_fill(0, F4, 1j), "NUM-PARAM-1", ("scale", "complex")),
    "out, f64": Row(lambda m: m.rng.gaussian_fill(0, np.zeros(4), 1.0), "RNG-OUT-1", ("out", "f32", "'d'")),
    "out, a list": Row(lambda m: m.rng.gaussian_fill(0, [0.0], 1.0), "RNG-OUT-1", ("out", "list")),
    "out, strided": Row(lambda m: m.rng.gumbel_fill(0, F4[::2]), "RNG-OUT-1", ("out", "(8,)")),
    "out, read-only": Row(lambda m: m.rng.gumbel_fill(0, frozen(4)), "RNG-OUT-1", ("out", "read-only")),
    "lo and hi": Row(lambda m: m.rng.uniform_fill(0, F4, 2.0, 1.0), "RNG-UNIF-3", ("lo", "hi", "2.0", "1.0")),
    "lo, infinite": Row(lambda m: m.rng.uniform_fill(0, F4, -np.inf, 1.0), "RNG-UNIF-3", ("lo", "inf")),
    "fan_in": Row(lambda m: m.rng.kaiming_uniform_fill(0, F4, 0), "RNG-KAIMING-2", ("fan_in", "0")),
    "mean": Row(lambda m: m.rng.normal_fill(0, F4, None, 1.0), "NUM-PARAM-1", ("mean", "None")),
    "std_dev": Row(lambda m: m.rng.normal_fill(0, F4, 0.0, b""), "NUM-PARAM-1", ("std_dev", "bytes")),
    "low and high": Row(lambda m: m.rng.randint_fill(0, I4, 9, 1), "RNG-INT-2", ("low=9", "high=1")),
    "low, a float": Row(lambda m: m.rng.randint_fill(0, I4, 0.5, 1), "RNG-INT-2", ("low", "0.5")),
    "high, too large": Row(lambda m: m.rng.randint_fill(0, I4, 0, 1 << 63), "RNG-INT-2", ("high", str(1 << 63))),
    "p": Row(lambda m: m.rng.dropout_mask(0, 0, B4, 1.5), "RNG-DROPOUT-3", ("p", "1.5")),
    "p of the scale": Row(lambda m: m.rng.dropout_scale(-0.5), "RNG-DROPOUT-3", ("p", "-0.5")),
    # -- dtypes and bridges
    "dtype, no DType": Row(lambda m: m.dtype.kind("f32"), "DTYPE-ARG-1", ("dtype", "'f32'")),
    "source, no DType": Row(lambda m: m.dtype.cast_bits("f16", DType.f32, 0), "DTYPE-ARG-1", ("source", "'f16'")),
    "dtype, no block": Row(lambda m: m.dtype.block_size(DType.f32), "DTYPE-GEOM-1", ("dtype", "DType.f32")),
    "dtype, blocks": Row(lambda m: m.dtype.scalar(DType.q4_k), "DTYPE-STORAGE-1", ("dtype", "DType.q4_k")),
    "dtype of an accumulator, blocks": Row(
        lambda m: m.dtype.accumulator(DType.q4_k), "DTYPE-ACC-1", ("dtype", "DType.q4_k")
    ),
    "dtype, no float": Row(lambda m: m.dtype.to_f32(DType.i32, 1), "BRIDGE-SCALAR-1", ("dtype", "DType.i32")),
    "target, no float": Row(
        lambda m: m.dtype.cast_float(DType.f32, DType.i32, 1.0), "BRIDGE-FLOAT-1", ("target", "DType.i32")
    ),
    "op, no FloatOp": Row(lambda m: m.dtype.compute_dtype("matmul", DType.f32), "DTYPE-POLICY-1", ("op", "'matmul'")),
    "value of a bridge": Row(lambda m: m.dtype.f32_to_bf16("1"), "NUM-PARAM-1", ("value", "'1'")),
    "bits, too large": Row(
        lambda m: m.dtype.cast_bits(DType.f16, DType.f32, 1 << 16), "BRIDGE-BITS-1", ("bits", "65536")
    ),
    "source, blocks": Row(
        lambda m: m.dtype.cast_array(DType.q4_0, DType.f32, Q), "BRIDGE-ARRAY-1", ("source", "DType.q4_0")
    ),
    "target, blocks": Row(
        lambda m: m.dtype.cast_array(DType.f32, DType.q4_0, F4), "BRIDGE-ARRAY-1", ("target", "DType.q4_0")
    ),
    "array, of another dtype": Row(
        lambda m: m.dtype.cast_array(DType.f32, DType.f64, np.zeros(4)), "BRIDGE-ARRAY-2", ("array", "f32", "'d'")
    ),
    "out, of another length": Row(
        lambda m: m.dtype.cast_array(DType.f32, DType.f64, F4, out=np.zeros(3)), "BRIDGE-ARRAY-3", ("out", "4", "3")
    ),
    "out, overlapping": Row(
        lambda m: m.dtype.cast_array(DType.f32, DType.f32, F4, out=F4), "BRIDGE-ARRAY-3", ("out", "16")
    ),
    "convert, ambiguous": Row(
        lambda m: m.dtype.convert(np.zeros(2, "c8"), DType.f32), "BRIDGE-CONVERT-1", ("array", "'Zf'")
    ),
    # -- blocks
    "values, a row too short": Row(
        lambda m: m.quant.quantize(DType.q4_k, np.zeros((4, 100), np.float32)),
        "BLOCK-VALUES-1",
        ("values", "256", "(4, 100)"),
    ),
    "values, a NaN": Row(
        lambda m: m.quant.quantize(DType.q4_0, np.full(32, np.nan, np.float32)),
        "BLOCK-FINITE-1",
        ("values[0]", "nan"),
    ),
    "values, f64": Row(lambda m: m.quant.quantize(DType.q4_0, np.zeros(32)), "BLOCK-VALUES-1", ("values", "'d'")),
    "quantize, no block format": Row(lambda m: m.quant.quantize(DType.f16, F4), "BLOCK-ARG-1", ("f16",)),
    "blocks, a part of one": Row(
        lambda m: m.quant.dequantize(DType.q4_0, Q[:17]), "BLOCK-IN-1", ("blocks", "18", "17")
    ),
    "indices, too large": Row(
        lambda m: m.quant.dequantize_rows(DType.q4_0, Q, 32, [0, 5]), "BLOCK-ROWS-2", ("indices[1]", "5")
    ),
    "rows_beyond_memory": Row(
        lambda m: m.quant.dequantize_rows(DType.q4_0, Q, 32, Endless()),
        "BLOCK-ROWS-1",
        ("no memory for more than 3 indices",),
    ),
    "row_length": Row(lambda m: m.quant.dequantize_rows(DType.q4_0, Q, 33, [0]), "BLOCK-ROWS-1", ("33", "32")),
    # -- the floating-point environment
    "environment": Row(lambda m: m.fpenv.set("default"), "FPENV-SET-1", ("environment", "'default'")),
    # -- the team
    "count, negative": Row(lambda m: m.parallel.set_max_threads(-1), "TEAM-SIZE-3", ("count", "-1")),
    "limit, a float": Row(lambda m: m.parallel.cpu_thread_count(1.5), "TEAM-SIZE-1", ("limit", "1.5")),
    "name, bytes": Row(lambda m: m.parallel.env_positive_usize(b"X"), "TEAM-KNOB-1", ("name", "bytes")),
    "max_workers": Row(lambda m: m.thread_mod.Pool(max_workers=-1), "TEAM-POOL-1", ("max_workers", "-1")),
    "max_workers, a float": Row(lambda m: m.thread_mod.Pool(max_workers=1.5), "TEAM-POOL-1", ("max_workers", "1.5")),
    "workers": Row(lambda m: m.thread_mod.BarrierPool(-1), "TEAM-POOL-1", ("workers", "-1")),
    # -- raw tensors
    "shape, too many axes": Row(lambda m: tensor(m, (1,) * 9), "SHAPE-COUNT-2 TENSOR-NEW-1", ("9", "8")),
    "shape, an empty axis": Row(lambda m: tensor(m, (2, 0)), "SHAPE-COUNT-2 TENSOR-NEW-1", ("0",)),
    "values, too few": Row(
        lambda m: m.internal.RawTensor.from_slice((2, 3), [1, 2]), "TENSOR-NEW-3", ("(2, 3)", "6", "2")
    ),
    "reshape": Row(lambda m: tensor(m).reshape((4,)), "TENSOR-VIEW-2", ("(4,)", "6")),
    "broadcast": Row(lambda m: tensor(m).broadcast_to((2, 4)), "TENSOR-VIEW-4", ("(2, 4)", "3")),
    "fill, a string": Row(lambda m: tensor(m).fill("x"), "BRIDGE-SCALAR-4", ("value", "'x'")),
    "item of many": Row(lambda m: tensor(m).item(), "TENSOR-DATA-2", ("(2, 3)",)),
    "n of fail_allocation": Row(lambda m: m.internal.fail_allocation(0), "STORAGE-FAULT-1", ("n", "0")),
    # -- contexts
    "operand, an array": Row(lambda m: within(m, lambda ctx: ctx.add(F4, F4)), "CONTEXT-OP-1", ("a", "ndarray")),
    "operands, two shapes": Row(
        lambda m: within(m, lambda ctx: ctx.add(tensor(m), tensor(m, (2, 4)))), "CONTEXT-OP-1", ("3", "4")
    ),
    "axis of a sum": Row(lambda m: within(m, lambda ctx: ctx.sum(tensor(m), 2)), "CONTEXT-SUM-1", ("axis", "2")),
    "length of a narrow": Row(
        lambda m: within(m, lambda ctx: ctx.narrow_axis(tensor(m), 0, 0, 0)), "CONTEXT-NARROW-1", ("length", "0")
    ),
    "start of a narrow": Row(
        lambda m: within(m, lambda ctx: ctx.narrow_axis(tensor(m), 1, 2, 2)), "CONTEXT-NARROW-1", ("2", "3")
    ),
    "value of full": Row(
        lambda m: within(m, lambda ctx: ctx.full((2,), "x", DType.f32)), "BRIDGE-SCALAR-4", ("value", "'x'")
    ),
    "dtype of zeros": Row(lambda m: within(m, lambda ctx: ctx.zeros((2,), DType.q4_0)), "CONTEXT-NEW-1", ("q4_0",)),
    # -- tensors with tags
    "a tag twice": Row(lambda m: m.Tensor("d", "d"), "FACADE-TYPE-2", ("tag", "'d'")),
    "a tag, a number": Row(lambda m: m.Tensor("d", 1.5), "FACADE-TYPE-2", ("1.5",)),
    "a rank, negative": Row(lambda m: m.Tensor(-1), "FACADE-TYPE-2", ("-1",)),
    "no context": Row(lambda m: m.Tensor("d").ones(None, (2,)), "FACADE-CTX-1", ("ctx", "None")),
    "shape of another rank": Row(
        lambda m: within(m, lambda ctx: m.Tensor("d").ones(ctx, (2, 3))), "FACADE-NEW-4", ("1", "2")
    ),
    "axis, no tag of it": Row(
        lambda m: with_ones(m, lambda ctx, x: x.sum(ctx, "e")), "FACADE-AXIS-1", ("axis", "'d'", "'e'")
    ),
    "another dtype": Row(
        lambda m: with_ones(m, lambda ctx, x: x.add(ctx, x.to(ctx, DType.f64))), "POLICY-MIXED-1", ("f32", "f64")
    ),
    "number, a string": Row(
        lambda m: with_ones(m, lambda ctx, x: x.scale(ctx, "2")), "NUM-PARAM-1 POLICY-SCALAR-1", ("'2'",)
    ),
    "axes, a string": Row(lambda m: with_ones(m, lambda ctx, x: x.permute(ctx, "d")), "FACADE-AXIS-1", ("axes", "'d'")),
    "tags, a string": Row(
        lambda m: with_ones(m, lambda ctx, x: x.reshape(ctx, (2,), "d")), "FACADE-TYPE-2", ("tags", "'d'")
    ),
    "sizes, a number": Row(
        lambda m: with_ones(m, lambda ctx, x: x.split(ctx, "d", 2, ("e",))), "FACADE-VIEW-4", ("sizes", "2")
    ),
    "steps, a NaN": Row(
        lambda m: within(m, lambda ctx: m.Tensor("d").linspace(ctx, 0, 1, float("nan"))),
        "FACADE-NEW-5",
        ("steps", "nan"),
    ),
    "steps, none": Row(
        lambda m: within(m, lambda ctx: m.Tensor("d").linspace(ctx, 0, 1, 0)), "FACADE-NEW-5", ("steps", "0")
    ),
    "classes, none": Row(
        lambda m: within(m, lambda ctx: m.Tensor("i", "c").one_hot(ctx, [0], 0)), "FACADE-NEW-6", ("classes", "0")
    ),
    "indices, a string among them": Row(
        lambda m: with_ones(m, lambda ctx, x: x.get_rows(ctx, ["0"])), "POLICY-ROWS-1", ("indices[0]", "'0'")
    ),
    "targets, a string among them": Row(
        lambda m: with_ones(m, lambda ctx, x: x.nll_loss(ctx, ["0"], "d")), "POLICY-NLL-1", ("targets[0]", "'0'")
    ),
    "targets, too large": Row(
        lambda m: with_ones(m, lambda ctx, x: x.nll_loss(ctx, 7, "d")), "POLICY-NLL-1", ("targets", "7", "2")
    ),
    "keep_dims": Row(
        lambda m: with_ones(m, lambda ctx, x: x.sum(ctx, keep_dims=1)), "POLICY-SUM-1", ("keep_dims", "1")
    ),
    "descending": Row(
        lambda m: with_ones(m, lambda ctx, x: x.sort(ctx, "d", "no")), "POLICY-SORT-1", ("descending", "'no'")
    ),
    "an element of bf16, a string": Row(
        lambda m: within(m, lambda ctx: m.Tensor("d", dtype=DType.bf16).full(ctx, (2,), "1")),
        "FACADE-NEW-3",
        ("Bf16", "'1'"),
    ),
    "backward of a constant": Row(
        lambda m: with_ones(m, lambda ctx, x: x.sum_all(ctx).backward(ctx)), "AUTOGRAD-BACK-1", ("Tensor()",)
    ),
    # -- what something is in no state for: the thing is named
    "after deinit": Row(ended, "TENSOR-LIFE-1", ("(2, 3)", "deinited")),
    "after its scope": Row(lambda m: with_ones(m, outlived), "SCOPE-AFTER-1", ('Tensor("d")', "scope")),
    "released twice": Row(released, "STORAGE-REF-1", ("BufferOf", "refs=0")),
    "the outer scope": Row(lambda m: within(m, crossed), "SCOPE-MARK-1", ("2", "ExecScope")),
    "no scope": Row(
        lambda m: within(m, lambda ctx: ctx.reserve_scope_slot()), "SCOPE-RESERVE-1", ("exec scope", "open")
    ),
    "taken from a scope": Row(lambda m: with_ones(m, taken), "POLICY-TAKE-1", ('Tensor("d")', "(2,)")),
    "taken with gradients": Row(
        lambda m: within(m, lambda ctx: tracked(m, ctx)), "POLICY-TAKE-1", ('Tensor("d")', "(2,)", "tracks")
    ),
    "overwritten": Row(lambda m: within(m, lambda ctx: overwritten(m, ctx)), "AUTOGRAD-SAVED-1", ("(2,)",)),
    "leaked": Row(leaked, "POOL-LEAK-1", ("1", "f32", "(2, 3)")),
    "copied": Row(lambda m: copy.copy(tensor(m)), "TENSOR-LIFE-2", ("raw tensor",)),
    "no memory": Row(starved, "STORAGE-CREATE-1", ("24 bytes",)),
    "b, a zero": Row(lambda m: within(m, lambda ctx: divided(m, ctx)), "CONTEXT-ARITH-2", ("b",)),
    "other, a zero": Row(lambda m: within(m, lambda ctx: divided_by_tag(m, ctx)), "POLICY-ARITH-1", ("other",)),
    "values, too large": Row(huge, "BLOCK-REJECT-1", ("iq2_s", "[0]")),
    "read-only, for an old consumer": Row(
        lambda m: m.internal.RawTensor.from_borrowed_const_slice((4,), F4).__dlpack__(), "TENSOR-DLPACK-1", ("(4,)",)
    ),
    "a busy worker": Row(busy, "TEAM-ONESHOT-2", ("worker",)),
    "a task of a chain": Row(chained, "TEAM-CHAIN-2", ("1",)),
    "a probe elsewhere": Row(elsewhere, "FPENV-THREAD-1", ("Probe", str(threading.get_ident()))),
    "not the default": Row(lambda m: upward(m, m.fpenv.assert_default), "FPENV-ASSERT-1", ("upward",)),
    "not as recorded": Row(lambda m: upward(m, m.fpenv.Record.begin().check), "FPENV-RECORD-2", ("upward",)),
}


@pytest.mark.parametrize("module", ["fucina.reference", "fucina.fast"])
@pytest.mark.parametrize("name", ROWS)
def test_a_message_names_clause_argument_and_value(module: str, name: str) -> None:
    row = ROWS[name]
    with pytest.raises(errors.FucinaError) as caught:
        row.call(importlib.import_module(module))
    message = str(caught.value)
    assert message.startswith(f"{caught.value.clause}: ")
    assert caught.value.clause in row.clause.split()
    for word in row.words:
        assert re.search(rf"(?<!\w){re.escape(word)}(?!\w)", message), f"{word} is not in: {message}"


def raised(row: Row) -> str:
    """Return the class of the error of a row."""
    try:
        row.call(importlib.import_module("fucina.fast"))
    except errors.FucinaError as error:
        return type(error).__name__
    return "nothing"


def test_every_error_has_a_row() -> None:
    """All but the one that needs a process of its own; the page shows it."""
    assert {raised(row) for row in ROWS.values()} == set(errors.__all__) - {
        "FucinaError",
        "TensorError",
        "ForkedInTask",
    }


WITHOUT_A_VALUE = {
    "no exec scope is open": "a scope is missing, and no argument names one",
    "an exec scope must be open, got none": "the same",
    "the scratch is locked already": "a context has one scratch, and its functions take nothing",
    "the scratch must be locked first": "the same",
    "no memory for a slot of a scope": "slots are of one size",
    "no memory for a pool": "pools are of one size",
    "ImportError(message)": "the function that every refusal to be imported goes through",
    "the process forked in a task; what other threads had begun is not done": "the child cannot see what it was",
    "the interpreter is ending; what other threads had begun is not done": "nor can who is left",
}
"""Messages that have nothing to show, and why."""


class Site(NamedTuple):
    """Where an error is made."""

    place: str
    clause: str | None  # "" where a variable holds it
    message: str | None  # None where it shows a value


def python_sites(portion: str) -> list[Site]:
    """Return where the Python of a portion makes errors: those of the contract, and builtin ones."""
    (folder,) = importlib.import_module(f"fucina.{portion}").__path__
    found = []
    for path in sorted(Path(folder).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        raised = {id(node.exc) for node in ast.walk(tree) if isinstance(node, ast.Raise)}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            given = {keyword.arg: keyword.value for keyword in node.keywords}
            contracts = node.func.id in errors.__all__ or (id(node) in raised and "clause" in given)
            if contracts or is_builtin_error(node.func.id):
                clause = given.get("clause")
                named = str(clause.value) if isinstance(clause, ast.Constant) else "" if clause else None
                shows = node.args and any(isinstance(part, ast.FormattedValue) for part in ast.walk(node.args[0]))
                first = node.args[0] if node.args else None
                message = None if shows else str(first.value) if isinstance(first, ast.Constant) else ast.unparse(node)
                found.append(Site(f"{path.name}:{node.lineno}", named if contracts else "", message))
    return found


def is_builtin_error(name: str) -> bool:
    """Whether a name is that of an exception of Python's own."""
    found = getattr(builtins, name, None)
    return isinstance(found, type) and issubclass(found, BaseException)


def c_sites() -> list[Site]:
    """Return where the C of fucina.fast makes errors of the contract."""
    found = []
    for path in sorted((PAGE.parents[2] / "fast" / "csrc" / "python").glob("*.c")):
        text = path.read_text(encoding="utf-8")
        calls = list(re.finditer(r'fh_refuse(?:_type)?\(FH_\w+,\s*(?:clause|"([A-Z0-9-]+)"),\s*"([^"]*)"', text))
        assert len(calls) == len(re.findall(r"fh_refuse(?:_type)?\(FH_", text)), f"{path.name}: not read"
        for call in calls:
            line = text.count("\n", 0, call.start()) + 1
            found.append(Site(f"{path.name}:{line}", call[1] or "", None if "%" in call[2] else call[2]))
    return found


SITES = {"fast": lambda: python_sites("fast"), "reference": lambda: python_sites("reference"), "C": c_sites}


@pytest.mark.parametrize("portion", SITES)
def test_whatever_is_raised_names_a_clause_and_shows_what_was_given(portion: str) -> None:
    """Read in the source: paths that no row walks are held to it too."""
    sites, known = SITES[portion](), load()
    assert len(sites) > (20 if portion == "C" else 200)
    assert not [site for site in sites if site.clause is None]
    assert not [site for site in sites if site.clause and site.clause not in known]
    assert not [site for site in sites if site.message is not None and site.message not in WITHOUT_A_VALUE]


def test_no_excuse_is_left_over() -> None:
    """Each message without a value still is one of somewhere."""
    assert {site.message for find in SITES.values() for site in find()} - {None} == set(WITHOUT_A_VALUE)


def test_the_page_shows_every_error() -> None:
    """A section an error: a message of that error itself, and what to do."""
    _, *parts = re.split(r"^(\w+)\n\^+$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    assert sorted(sections) == sorted(set(errors.__all__) - {"FucinaError", "TensorError"})
    for name, section in sections.items():
        assert re.search(rf"^fucina\.spec\.errors\.{name}: ", section, re.MULTILINE), name
        assert section.count("*Fix:*") == 1, name
