"""Layout, place and threads do not matter: every operation on random views is that on copies of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import assert_bits
from fucina.conformance.suite.casts import SCALARS, STORAGE
from fucina.conformance.suite.pace import Note, scaled
from fucina.conformance.suite.raw_arithmetic import ARITHMETIC, REAL
from fucina.conformance.suite.tagged import bits, constant
from fucina.conformance.suite.teams import program
from fucina.conformance.suite.views import view_of
from fucina.spec import DType

F32 = (DType.f32,)
SMALL = (DType.f16, DType.bf16, DType.f32)
SUMMED = (*ARITHMETIC, DType.bool)
VIEWS = 500


@dataclass(frozen=True)
class Operation:
    """An operation on views: the tags of its operands, its dtypes, the call, and whether operands are consumed."""

    call: Callable[..., Any]
    tags: tuple[str, ...]
    dtypes: tuple[DType, ...]
    consumes: bool = False


OPERATIONS = {
    "add": Operation(lambda c, x, y: x.add(c, y), ("abc", "cb"), ARITHMETIC),
    "sub": Operation(lambda c, x, y: x.sub(c, y), ("ab", "bad"), ARITHMETIC),
    "mul": Operation(lambda c, x, y: x.mul(c, y), ("a", "b"), ARITHMETIC),
    "div": Operation(lambda c, x, y: x.div(c, y), ("abc", "abc"), REAL),
    "scale": Operation(lambda c, x: x.scale(c, 0.3), ("abc",), REAL),
    "add_scalar": Operation(lambda c, x: x.add_scalar(c, 0.3), ("abc",), REAL),
    "to f32": Operation(lambda c, x: x.to(c, DType.f32), ("abc",), SCALARS),
    "to bf16": Operation(lambda c, x: x.to(c, DType.bf16), ("ab",), SCALARS),
    "to i16": Operation(lambda c, x: x.to(c, DType.i16), ("ab",), SCALARS),
    "dropout": Operation(lambda c, x: x.dropout(c, 0.4, 7), ("abc",), SMALL),
    "sum": Operation(lambda c, x: x.sum(c, ("a", "c")), ("abc",), SUMMED),
    "sum of one axis": Operation(lambda c, x: x.sum(c, "b", keep_dims=True), ("abc",), SUMMED),
    "sum_all": Operation(lambda c, x: x.sum_all(c), ("abcd",), SUMMED),
    "mean": Operation(lambda c, x: x.mean(c, "a"), ("abc",), REAL),
    "argmax": Operation(lambda c, x: x.argmax(c, "b"), ("abc",), REAL),
    "argsort": Operation(lambda c, x: x.argsort(c, "a"), ("ab",), REAL),
    "sort": Operation(lambda c, x: x.sort(c, "b", descending=True), ("abc",), REAL),
    "top_k": Operation(lambda c, x: x.top_k(c, "a", 1), ("ab",), REAL),
    "get_rows": Operation(lambda c, x: x.get_rows(c, [0, x.dim("a") - 1, 0]), ("abc",), SCALARS),
    "dot": Operation(lambda c, x, y: x.dot(c, y), ("akb", "dk"), REAL),
    "dot of vectors": Operation(lambda c, x, y: x.dot(c, y, "k"), ("k", "k"), REAL),
    "nll_loss": Operation(lambda c, x: x.nll_loss(c, [0] * x.dim("a"), "b", reduction="none"), ("ab",), F32),
    "l2_normalize": Operation(lambda c, x: x.l2_normalize(c, "b"), ("abc",), F32),
    "cosine_similarity": Operation(lambda c, x, y: x.cosine_similarity(c, y, "a"), ("ab", "ab"), F32),
    "contiguous": Operation(lambda c, x: x.contiguous(c), ("abc",), SCALARS),
    "reshape": Operation(lambda c, x: x.reshape(c, (x.dim("a") * x.dim("b"),), ("f",)), ("ab",), SCALARS),
    "flatten": Operation(lambda c, x: x.flatten(c, "f"), ("abc",), SCALARS),
    "merge": Operation(lambda c, x: x.merge(c, ("b", "c"), "f"), ("abc",), SCALARS),
    "take_add_no_grad": Operation(lambda c, x, y: x.take_add_no_grad(c, y), ("abc", "ca"), F32, consumes=True),
    "take_scale_no_grad": Operation(lambda c, x: x.take_scale_no_grad(c, 0.3), ("abc",), F32, consumes=True),
}


def outcome(operation: Operation, ctx: Any, operands: list[Any]) -> list[Any]:
    """Return the elements of what an operation returns; results and operands end."""
    result = operation.call(ctx, *operands)
    results = list(result) if hasattr(result, "indices") else [result]
    found = [(one.dtype, one.axis_tags, bits(one)) for one in results]
    for one in (*results, *(operands[1:] if operation.consumes else operands)):
        one.deinit()
    return found


@clause("POLICY-SAME-1", "FACADE-VIEW-2", "FACADE-VIEW-3", "FACADE-VIEW-4")
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_on_views_is_that_on_copies(impl: Any, name: str, record_property: Note) -> None:
    operation = OPERATIONS[name]
    draw = np.random.Generator(np.random.PCG64(list(OPERATIONS).index(name)))
    with impl.ExecContext() as ctx:
        for _ in range(scaled(impl, record_property, VIEWS, 24, f"random views for {name}")):
            dtype = operation.dtypes[int(draw.integers(len(operation.dtypes)))]
            sizes = {tag: int(draw.integers(1, 6)) for tag in "abcdk"}
            views, copies = [], []
            for tags in operation.tags:
                shape = tuple(sizes[tag] for tag in tags)
                view, array = view_of(impl, ctx, draw, dtype, shape, tags, steps=int(draw.integers(0, 5)))
                views.append(view)
                copies.append(constant(impl, ctx, dtype, array, tags=tuple(tags)))
            got, wanted = outcome(operation, ctx, views), outcome(operation, ctx, copies)
            for one, other in zip(got, wanted, strict=True):
                assert one[:2] == other[:2], f"POLICY-SAME-1: {name}"
                nan = "any" if one[0] in REAL else "exact"
                assert_bits(one[2], other[2], nan=nan, dtype=one[0], what=f"{name} {sizes}", clause="POLICY-SAME-1")
        assert ctx.rt.buffers.outstanding_buffers() == 0


@clause("POLICY-SAME-1", "POLICY-TAKE-1")
def test_operands_that_are_views_of_one_storage(impl: Any, record_property: Note) -> None:
    """Of overlapping parts, of the same elements turned, and of the tensor itself."""
    draw = np.random.Generator(np.random.PCG64(99))
    with impl.ExecContext() as ctx, ctx.from_slice((64,), draw.standard_normal(64).astype(np.float32)) as base:
        kind = impl.Tensor("a", "b")
        for _ in range(scaled(impl, record_property, VIEWS, 40, "pairs of views of one storage")):
            pair = []
            for _ in range(2):
                strides = draw.integers(0, 7, 2).tolist()
                pair.append((strides, int(draw.integers(0, 64 - 3 * sum(strides)))))
            views = [kind.constant(ctx, base.view_with_strides_offset((4, 4), s, at)) for s, at in pair]
            copies = [constant(impl, ctx, DType.f32, bits(v)) for v in views]
            for name in ("add", "sub", "mul"):
                with getattr(views[0], name)(ctx, views[1]) as got, getattr(copies[0], name)(ctx, copies[1]) as wanted:
                    assert_bits(bits(got), bits(wanted), what=f"{name} {pair}", clause="POLICY-SAME-1")
            with copies[0].take_add_no_grad(ctx, copies[1]) as wanted, views[0].take_add_no_grad(ctx, views[1]) as got:
                assert_bits(bits(got), bits(wanted), what=f"take_add {pair}", clause="POLICY-TAKE-1")
            views[1].deinit()
            copies[1].deinit()


# -- threads

BULK = """
import hashlib
from fucina.spec import DType
n = {n}
def work():
    found = hashlib.sha256()
    with fucina.ExecContext() as ctx, ctx.exec_scope():
        for dtype in (DType.f32, DType.f16, DType.bf16, DType.i16):
            draw = np.random.Generator(np.random.PCG64(7))
            form = fucina.dtype.storage(dtype)
            codes = draw.integers(0x3c00, 0x4100, n, np.uint16).astype(form) if form.kind != "f" else None
            a = draw.standard_normal(n).astype(form) if codes is None else codes
            kind = fucina.Tensor("r", "c", dtype=dtype)
            with kind.from_slice(ctx, (n // 97, 97), a[: n // 97 * 97]) as x:
                t = x.transpose(ctx, "r", "c")
                results = [x.add(ctx, x), x.mul(ctx, x), x.sub(ctx, t), x.sum(ctx, "c"), x.sum(ctx, "r")]
                results += [x.sum_all(ctx)]
                results += [t.sum_all(ctx), x.to(ctx, DType.f32), t.to(ctx, DType.i32), t.contiguous(ctx)]
                results += [x.get_rows(ctx, [4, 0, n // 97 - 1, 4])]
                if dtype is not DType.i16:
                    half = x.narrow(ctx, "r", 0, min(n // 97, 300))
                    w = half.transpose(ctx, "r", "c").reshape(ctx, (97, half.dim("r")), ("c", "k"))
                    results += [x.scale(ctx, 0.3), t.add_scalar(ctx, 0.3)]
                    results += [x.dropout(ctx, 0.3, 5), t.dropout(ctx, 0.3, 5)]
                    results += [x.argmax(ctx, "c"), t.argmax(ctx, "r"), *x.sort(ctx, "c"), *t.top_k(ctx, "r", 3)]
                    results += [x.mean(ctx, "r"), half.dot(ctx, w), half, w]
                if dtype is DType.f32:
                    results += [x.l2_normalize(ctx, "c"), x.cosine_similarity(ctx, x.scale(ctx, 2.0), "r")]
                    results += [x.nll_loss(ctx, [1] * (n // 97), "c", reduction="none")]
                    with kind.variable_from_slice(ctx, x.shape, a[: n // 97 * 97]) as v:
                        row = v.narrow(ctx, "r", 0, 1).reshape(ctx, (97,), ("c",))
                        v.mul(ctx, row).l2_normalize(ctx, "c").dropout(ctx, 0.2, 3).sum_all(ctx).backward(ctx)
                        v.narrow(ctx, "r", 0, min(n // 97, 200)).dot(ctx, row).sum_all(ctx).backward(ctx)
                        with v.grad(ctx) as g:
                            found.update(g.data_const().tobytes())
                for result in (*results, t):
                    found.update(np.ascontiguousarray(np.asarray(result)).tobytes())
                    result.deinit()
    return found.hexdigest()
from fucina.conformance.suite.teams import threads
for count in {counts}:
    with threads(fucina, count):
        print(work())
"""


@clause("POLICY-SAME-1", "TEAM-BULK-1")
def test_any_number_of_threads(impl: Any, record_property: Note) -> None:
    """Of one length below any threshold and one above; forward and gradients."""
    for n in (
        scaled(impl, record_property, 20_000, 500, "elements of bulk operations"),
        scaled(impl, record_property, 400_000, 1_000, "elements of bulk operations"),
    ):
        counts = (1, 2, 3, 5, 8) if n > 1_000 else (1, 3)
        said = program(impl, BULK.replace("{n}", str(n)).replace("{counts}", repr(counts))).split()
        assert len(said) == len(counts)
        assert len(set(said)) == 1, f"POLICY-SAME-1: {n} elements: {dict(zip(counts, said, strict=True))}"


@clause("POLICY-SAME-1")
def test_storage_forms_are_what_the_program_takes_them_for(impl: Any) -> None:
    for dtype in (DType.f32, DType.f16, DType.bf16, DType.i16):
        assert np.dtype(impl.dtype.storage(dtype)) == STORAGE[dtype]
