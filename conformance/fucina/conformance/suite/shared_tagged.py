"""Calls of tensors with tags that are large enough to be shared out, as in ``shared_work.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from fucina.conformance.suite.blocks import gaussian, sizes
from fucina.conformance.suite.casts import STORAGE
from fucina.conformance.suite.pace import quick
from fucina.conformance.suite.raw_arithmetic import REAL
from fucina.conformance.suite.shared_work import Call, numbers
from fucina.spec import DType

__all__ = [
    "DIFFERENTIABLE",
    "SOME_FORMATS",
    "TAGGED",
    "gradient_calls",
    "made_calls",
    "rows_of_blocks_calls",
    "tagged_calls",
]

TAGGED = (*REAL, DType.u8, DType.i16, DType.i32, DType.i64)
SOME_FORMATS = (DType.q4_0, DType.q8_0, DType.q4_k)
DIFFERENTIABLE = (DType.f16, DType.bf16, DType.f32)
"""Dtypes that represent the others where a maker below is asked for tensors, rows of blocks and gradients."""

F32, I64 = DType.f32, DType.i64


def _ended(*results: Any) -> tuple[Any, ...]:
    """Return the elements, and end the tensors."""
    found = tuple(np.array(one) for one in results)
    for one in results:
        one.deinit()
    return found


def _shape(impl: Any, dtype: DType) -> tuple[int, int]:
    """Return rows and columns: enough of each to be shared out along it, or across, and of bytes to be copied."""
    return (401 if STORAGE[dtype].itemsize == 1 else 301, 1537) if quick(impl) else (5, 6)


@contextmanager
def tagged_calls(impl: Any, dtype: DType) -> Iterator[dict[str, Call]]:
    """Make every operation that tensors of a dtype have."""
    rows, cols = _shape(impl, dtype)
    kind = impl.Tensor("r", "c", dtype=dtype)
    with (
        impl.ExecContext() as ctx,
        kind.from_slice(ctx, (rows, cols), numbers(impl, dtype, rows * cols, 1)) as x,
        kind.from_slice(ctx, (rows, cols), numbers(impl, dtype, rows * cols, 2)) as y,
        x.transpose(ctx, "r", "c") as turned,
        y.narrow(ctx, "r", 0, 1) as first,
        first.reshape(ctx, (cols,), ("c",)) as row,
    ):
        work: dict[str, Callable[[], Any]] = {
            "add": lambda: x.add(ctx, y),
            "sub of a turned one": lambda: x.sub(ctx, turned),
            "mul of a row": lambda: x.mul(ctx, row),
            "to f16": lambda: x.to(ctx, DType.f16 if dtype is not DType.f16 else F32),
            "to i32": lambda: turned.to(ctx, DType.i32 if dtype is not DType.i32 else F32),
            "contiguous": lambda: turned.contiguous(ctx),
            "flatten": lambda: turned.flatten(ctx, "n"),
            "sum r": lambda: x.sum(ctx, "r"),
            "sum c": lambda: x.sum(ctx, "c"),
            "sum r, c of a turned one": lambda: turned.sum(ctx, ("r", "c")),
            "sum_all": lambda: x.sum_all(ctx),
            "get_rows": lambda: x.get_rows(ctx, np.arange(95) * 7 % rows),
            "get_rows of a turned one": lambda: turned.get_rows(ctx, np.arange(400) * 7 % cols),
        }
        if dtype in REAL:
            work |= _real(ctx, x, y, turned, row)
        yield {f"{name} of {dtype.name}": partial(_results, call) for name, call in work.items()}


def _results(call: Callable[[], Any]) -> tuple[Any, ...]:
    found = call()
    return _ended(*found) if hasattr(found, "indices") else _ended(found)


def _real(ctx: Any, x: Any, y: Any, turned: Any, row: Any) -> dict[str, Call]:
    """Return what tensors of floats have beside; sorting and products take their time, so they get a part."""
    few, others = min(x.dim("r"), 24), min(x.dim("r"), 40)

    def part(call: Callable[[Any], Any]) -> Any:
        with x.narrow(ctx, "r", 0, few) as some:
            return call(some)

    def product() -> Any:
        with y.narrow(ctx, "r", 0, others) as some, some.reshape(ctx, some.shape, ("k", "c")) as other:
            return part(lambda mine: mine.dot(ctx, other))

    def vector_times() -> Any:
        with x.narrow(ctx, "c", 0, 1) as column, column.reshape(ctx, (x.dim("r"),), ("r",)) as other:
            return other.dot(ctx, y)

    work: dict[str, Call] = {
        "div": lambda: x.div(ctx, y),
        "scale": lambda: x.scale(ctx, 0.3),
        "add_scalar of a turned one": lambda: turned.add_scalar(ctx, 0.7),
        "mean r": lambda: x.mean(ctx, "r"),
        "mean c": lambda: x.mean(ctx, "c", keep_dims=True),
        "argmax r": lambda: x.argmax(ctx, "r"),
        "argmax c": lambda: x.argmax(ctx, "c"),
        "argsort c": lambda: part(lambda some: some.argsort(ctx, "c", True)),
        "argsort r": lambda: part(lambda some: some.argsort(ctx, "r")),
        "sort c": lambda: part(lambda some: some.sort(ctx, "c")),
        "top_k": lambda: part(lambda some: some.top_k(ctx, "c", 3)),
        "top_k of many": lambda: part(lambda some: some.top_k(ctx, "c", min(70, some.dim("c")))),
        "dot": product,
        "dot, matrix and vector": lambda: x.dot(ctx, row),
        "dot, vector and matrix": vector_times,
        "dot of a turned one and a vector": lambda: turned.dot(ctx, row),
    }
    if x.dtype is not DType.f64:
        work["dropout"] = lambda: x.dropout(ctx, 0.3, 9)
        work["dropout of a turned one"] = lambda: turned.dropout(ctx, 0.3, 9)
    if x.dtype is F32:
        targets = np.arange(x.dim("r")) % x.dim("c")
        work |= {
            "l2_normalize": lambda: x.l2_normalize(ctx, "c"),
            "cosine_similarity": lambda: x.cosine_similarity(ctx, y, "r"),
            "nll_loss": lambda: x.nll_loss(ctx, targets, "c"),
            "take_add_no_grad": lambda: x.scale(ctx, 2.0).take_add_no_grad(ctx, y),
            "take_scale_no_grad": lambda: x.add(ctx, y).take_scale_no_grad(ctx, 0.3),
        }
    return work


@contextmanager
def made_calls(impl: Any) -> Iterator[dict[str, Call]]:
    """Make the constructors, of which the random ones draw and the others compute or copy."""
    n = 150_001 if quick(impl) else 30
    line, whole = impl.Tensor("n"), impl.Tensor("n", dtype=I64)
    values = numbers(impl, F32, n)
    with impl.ExecContext() as ctx:
        work: dict[str, Callable[[], Any]] = {
            "rand": lambda: line.rand(ctx, (n,), 1),
            "uniform": lambda: line.uniform(ctx, (n,), 2, -(2.0**-130), 2.0**-128),
            "randn": lambda: line.randn(ctx, (n,), 3),
            "normal": lambda: line.normal(ctx, (n,), 4, 2.0**-145, 2.0**-140),
            "gumbel": lambda: line.gumbel(ctx, (n,), 5),
            "bernoulli": lambda: line.bernoulli(ctx, (n,), 6, 0.3),
            "randint": lambda: whole.randint(ctx, (n,), 7, -5, 9),
            "randperm": lambda: whole.randperm(ctx, n, 8),
            "arange": lambda: line.arange(ctx, 0.1, 0.1 + n / 1024, 1 / 1024),
            "linspace": lambda: line.linspace(ctx, 1e-45, 0.7, n),
            "from_slice": lambda: line.from_slice(ctx, (n,), values),
            "full": lambda: line.full(ctx, (n,), 0.1),
            "one_hot": lambda: impl.Tensor("n", "k").one_hot(ctx, np.arange(n // 5) % 5, 5),
        }
        yield {name: partial(_results, call) for name, call in work.items()}


@contextmanager
def rows_of_blocks_calls(impl: Any, dtype: DType) -> Iterator[dict[str, Call]]:
    """Make what tensors of blocks have: decoding all of it, and some rows."""
    rows, cols = (70, 2048) if quick(impl) else (3, max(256, sizes(dtype)[0]))
    with impl.ExecContext() as ctx:
        blocks = impl.quant.quantize(dtype, gaussian(rows * cols).reshape(rows, cols))
        kind, indices = impl.Tensor("r", "c", dtype=dtype), np.arange(rows)[::-1]
        with kind.from_blocks(ctx, (rows, cols), blocks) as x:
            yield {
                f"to f32 of {dtype.name}": lambda: _ended(x.to(ctx, F32)),
                f"get_rows of {dtype.name}": lambda: _ended(x.get_rows(ctx, indices)),
            }


@contextmanager
def gradient_calls(impl: Any, dtype: DType) -> Iterator[dict[str, Call]]:
    """Make graphs of one operation or few, and their gradients."""
    rows, cols = _shape(impl, dtype)
    few, others = min(rows, 24), min(rows, 40)
    kind = impl.Tensor("r", "c", dtype=dtype)
    with (
        impl.ExecContext() as ctx,
        kind.variable_from_slice(ctx, (rows, cols), numbers(impl, dtype, rows * cols, 1)) as x,
        kind.variable_from_slice(ctx, (rows, cols), numbers(impl, dtype, rows * cols, 2)) as y,
    ):

        def row() -> Any:
            return y.narrow(ctx, "r", 0, 1).reshape(ctx, (cols,), ("c",))

        def turned() -> Any:
            return x.transpose(ctx, "r", "c")

        def product() -> Any:
            other = y.narrow(ctx, "r", 0, others).reshape(ctx, (others, cols), ("k", "c"))
            return x.narrow(ctx, "r", 0, few).dot(ctx, other)

        graphs: dict[str, Callable[[], Any]] = {
            "arithmetic": lambda: x.mul(ctx, y).sub(ctx, x).scale(ctx, 0.3),
            "a row": lambda: x.mul(ctx, row()),
            "div": lambda: x.div(ctx, y.add_scalar(ctx, 30.0)),
            "sum, mean": lambda: x.sum(ctx, "r").add(ctx, x.mean(ctx, "r")),
            "get_rows": lambda: x.get_rows(ctx, np.arange(95) * 7 % rows),
            "get_rows of a turned one": lambda: turned().contiguous(ctx).get_rows(ctx, np.arange(400) * 7 % cols),
            "dropout": lambda: turned().dropout(ctx, 0.2, 3),
            "dot": product,
            "dot, matrix and vector": lambda: x.dot(ctx, row()),
            "to f32": lambda: x.to(ctx, F32).mul(ctx, y.to(ctx, F32)),
        }
        if dtype is F32:
            graphs |= {
                "l2_normalize": lambda: x.l2_normalize(ctx, "c"),
                "cosine_similarity": lambda: x.cosine_similarity(ctx, y, "c"),
                "nll_loss": lambda: x.nll_loss(ctx, np.arange(rows) % cols, "c"),
            }

        yield {f"gradient of {name}": partial(_gradients, ctx, graph, x, y) for name, graph in graphs.items()}


def _gradients(ctx: Any, graph: Callable[[], Any], *leaves: Any) -> tuple[Any, ...]:
    with ctx.exec_scope():
        graph().sum_all(ctx).backward(ctx)
    fetched = [leaf.grad(ctx) for leaf in leaves]
    for leaf in leaves:
        leaf.zero_grad()
    return _ended(*(one for one in fetched if one is not None))
