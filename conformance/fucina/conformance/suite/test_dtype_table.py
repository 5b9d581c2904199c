"""The 40 dtypes: predicates, geometry, block layouts, constants and the compute/output policy of the frozen table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause, vectors
from fucina.conformance.compare import PATTERN, assert_raises, assert_same
from fucina.conformance.suite.casts import SCALARS, STORAGE, VALUE_TYPES, bits_of
from fucina.conformance.suite.hostile import Posing
from fucina.spec import DType, DTypeKind, FloatOp
from fucina.spec.errors import InvalidDType

PREDICATES = {
    "is_scalar": "isScalar",
    "is_block_quantized": "isBlockQuantized",
    "is_f8": "isF8",
    "is_signed_integer": "isSignedInteger",
    "is_unsigned_integer": "isUnsignedInteger",
    "supports_forward_float_math": "supportsForwardFloatMath",
    "supports_grad": "supportsGrad",
    "supports_int_math": "supportsIntMath",
    "supports_to_float": "supportsToFloat",
    "supports_quantized_matmul_rhs": "supportsQuantizedMatmulRhs",
    "supports_quantized_get_rows": "supportsQuantizedGetRows",
}
CONSTANTS = {
    "q1_0_block_size": 128,
    "q2_0_block_size": 128,
    "q4_0_block_size": 32,
    "q4_1_block_size": 32,
    "q5_0_block_size": 32,
    "q5_1_block_size": 32,
    "q8_0_block_size": 32,
    "q8_1_block_size": 32,
    "qk_k_block_size": 256,
    "k_scale_size": 12,
    "iq4_nl_block_size": 32,
    "mxfp4_block_size": 32,
    "nvfp4_block_size": 64,
    "nvfp4_subblock_size": 16,
    "iq3s_n_scale": 4,
}
ALL = list(DType)


def record(dtype: DType) -> dict[str, Any]:
    """Return the row of the frozen table."""
    row: dict[str, Any] = vectors.load_json("dtype_table")["dtypes"][dtype.index]
    return row


def _name(dtype: DType) -> str:
    return dtype.name


@clause("DTYPE-ENUM-1", "DTYPE-NAME-1")
def test_members(impl: Any) -> None:
    rows = vectors.load_json("dtype_table")["dtypes"]
    assert impl.DType is DType, "DTYPE-ENUM-1: all implementations share one enumeration"
    assert [member.name for member in impl.DType] == [row["name"] for row in rows]
    for row in rows:
        member = impl.DType(row["name"])
        assert (member.index, member.name) == (row["index"], row["name"])
        assert_same(impl.dtype.name(member), row["name"], clause="DTYPE-NAME-1")


@clause("DTYPE-KIND-1")
@pytest.mark.parametrize("dtype", ALL, ids=_name)
def test_kind(impl: Any, dtype: DType) -> None:
    assert impl.DTypeKind is DTypeKind
    assert impl.dtype.kind(dtype) is DTypeKind(record(dtype)["kind"])


@clause("DTYPE-PRED-1", "DTYPE-PRED-2", "DTYPE-PRED-3", "DTYPE-PRED-4")
@pytest.mark.parametrize("predicate", PREDICATES)
def test_predicates(impl: Any, predicate: str) -> None:
    for dtype in DType:
        got = getattr(impl.dtype, predicate)(dtype)
        assert_same(got, record(dtype)[PREDICATES[predicate]], what=f"{predicate}({dtype!r})")


@clause("DTYPE-LOGICAL-1")
@pytest.mark.parametrize("dtype", ALL, ids=_name)
def test_logical_dtype(impl: Any, dtype: DType) -> None:
    assert impl.dtype.logical_dtype(dtype) is DType(record(dtype)["logicalDType"])


@clause("DTYPE-GEOM-1", "DTYPE-GEOM-2", "DTYPE-GEOM-3", "ERR-TYPE-1")
@pytest.mark.parametrize("dtype", ALL, ids=_name)
def test_sizes(impl: Any, dtype: DType) -> None:
    row = record(dtype)
    assert_same(impl.dtype.block_byte_size(dtype), row["storageByteSize"], clause="DTYPE-GEOM-2")
    if row["isScalar"]:
        assert_same(impl.dtype.scalar_byte_size(dtype), row["scalarByteSize"], clause="DTYPE-GEOM-3")
        assert_raises(InvalidDType, "DTYPE-GEOM-1", lambda: impl.dtype.block_size(dtype), shows=(dtype.name,))
    else:
        assert_same(impl.dtype.block_size(dtype), row["blockSize"], clause="DTYPE-GEOM-1")
        assert_same(impl.dtype.block_byte_size(dtype), row["blockByteSize"], clause="DTYPE-GEOM-2")
        assert_raises(InvalidDType, "DTYPE-GEOM-3", lambda: impl.dtype.scalar_byte_size(dtype), shows=(dtype.name,))


@clause("DTYPE-GEOM-4")
def test_named_constants(impl: Any) -> None:
    for name, value in CONSTANTS.items():
        assert_same(getattr(impl.dtype, name), value, what=name, clause="DTYPE-GEOM-4")


@clause("DTYPE-STORAGE-2", "DTYPE-GEOM-2")
@pytest.mark.parametrize("dtype", [d for d in DType if d not in SCALARS], ids=_name)
def test_block_structs(impl: Any, dtype: DType) -> None:
    # the frozen layout may join what ours names apart (two halves of one array); no byte may move
    row, storage = record(dtype), impl.dtype.storage(dtype)
    assert isinstance(storage, np.dtype)
    assert storage.itemsize == row["blockByteSize"], f"DTYPE-GEOM-2: {storage.itemsize} bytes"
    fields: dict[str, Any] = dict(storage.fields or {})
    spans = {name: (offset, offset + form.itemsize) for name, (form, offset) in ((n, fields[n][:2]) for n in fields)}
    ordered = [spans[name] for name in storage.names or ()]
    assert ordered == sorted(ordered), "DTYPE-STORAGE-2: fields in order"
    assert [0, *(stop for _, stop in ordered)] == [*(start for start, _ in ordered), storage.itemsize], "no gaps"
    for frozen in row["blockFields"]:
        start, stop = frozen["offset"], frozen["offset"] + frozen["bytes"]
        inside = [name for name, span in spans.items() if start <= span[0] and span[1] <= stop]
        assert sum(spans[n][1] - spans[n][0] for n in inside) == frozen["bytes"], f"{frozen['name']}: {inside}"
        if len(inside) == 1:
            assert inside == [frozen["name"]]
            form = fields[frozen["name"]][0]
            assert (form.base.kind == "i") == ("i8" in frozen["type"] or "i16" in frozen["type"])
            assert (form.base.kind == "f") == ("f32" in frozen["type"])
        for name in inside:
            assert fields[name][0].base.str[0] in "<|", "DTYPE-STORAGE-2: little-endian"
            assert fields[name][0].shape != (1,), "DTYPE-STORAGE-2: a field of count 1 is plain"


@clause("DTYPE-STORAGE-1", "DTYPE-STORAGE-2", "DTYPE-STORAGE-3")
@pytest.mark.parametrize("dtype", SCALARS, ids=_name)
def test_scalar_and_storage_forms(impl: Any, dtype: DType) -> None:
    assert impl.dtype.storage(dtype) == STORAGE[dtype]
    assert impl.dtype.storage(dtype).isnative
    assert impl.dtype.scalar(dtype) is STORAGE[dtype].type, "DTYPE-STORAGE-1"
    element = getattr(impl, VALUE_TYPES[dtype]) if dtype in VALUE_TYPES else STORAGE[dtype].type
    assert impl.dtype.element(dtype) is element, "DTYPE-STORAGE-3"


@clause("DTYPE-STORAGE-1", "DTYPE-STORAGE-3", "DTYPE-ACC-1", "DTYPE-CONST-1", "ERR-TYPE-1")
@pytest.mark.parametrize("dtype", [d for d in DType if d not in SCALARS], ids=_name)
def test_blocks_have_no_scalar(impl: Any, dtype: DType) -> None:
    part, shows = impl.dtype, (dtype.name,)
    assert_raises(InvalidDType, "DTYPE-STORAGE-1", lambda: part.scalar(dtype), shows=shows)
    assert_raises(InvalidDType, "DTYPE-ACC-1", lambda: part.accumulator(dtype), shows=shows)
    assert_raises(InvalidDType, "DTYPE-CONST-1", lambda: part.zero(dtype), shows=shows)
    assert_raises(InvalidDType, "DTYPE-CONST-1", lambda: part.one(dtype), shows=shows)
    assert part.element(dtype) is np.void, "DTYPE-STORAGE-3"


@clause("DTYPE-ACC-1")
@pytest.mark.parametrize("dtype", SCALARS, ids=_name)
def test_accumulator(impl: Any, dtype: DType) -> None:
    names = {"f32": "float32", "f64": "float64", "u64": "uint64", "i64": "int64"}
    got = impl.dtype.accumulator(dtype)
    assert isinstance(got, np.dtype)
    assert got == np.dtype(names[record(dtype)["accumulator"]]), f"DTYPE-ACC-1: {got}"


@clause("DTYPE-CONST-1", "DTYPE-STORAGE-1")
@pytest.mark.parametrize("dtype", SCALARS, ids=_name)
def test_zero_and_one(impl: Any, dtype: DType) -> None:
    row = record(dtype)
    assert bits_of(dtype, impl.dtype.zero(dtype)) == row["zero_bits"], "DTYPE-CONST-1: zero"
    assert bits_of(dtype, impl.dtype.one(dtype)) == row["one_bits"], "DTYPE-CONST-1: one"
    assert PATTERN[dtype].itemsize == row["storageByteSize"]


@clause("DTYPE-POLICY-1")
def test_float_ops(impl: Any) -> None:
    assert impl.FloatOp is FloatOp
    assert [op.name for op in impl.FloatOp] == ["pointwise", "widened", "reduction", "matmul"]
    for bad in (None, "pointwise", 0, DType.f32):
        assert_raises(TypeError, None, partial(impl.dtype.compute_dtype, bad, DType.f32), what=f"{bad!r}")
        assert_raises(TypeError, None, partial(impl.dtype.output_dtype, bad, DType.f32), what=f"{bad!r}")


@clause("DTYPE-POLICY-2", "DTYPE-POLICY-3", "DTYPE-POLICY-4", "ERR-TYPE-1")
@pytest.mark.parametrize("dtype", ALL, ids=_name)
def test_policy(impl: Any, dtype: DType) -> None:
    for function, column in (("compute_dtype", "computeDType"), ("output_dtype", "outputDType")):
        for op in FloatOp:
            cell = record(dtype)[column][op.name]
            call = getattr(impl.dtype, function)
            if cell is None:
                assert_raises(InvalidDType, "DTYPE-POLICY-4", partial(call, op, dtype), what=op.name)
            else:
                assert call(op, dtype) is DType(cell), f"DTYPE-POLICY-2: {function}({op!r}, {dtype!r})"


@clause("DTYPE-ARG-1", "ERR-MSG-1")
def test_arguments_that_are_no_dtype(impl: Any) -> None:
    part = impl.dtype
    one = [
        *PREDICATES,
        *("kind", "logical_dtype", "block_size", "block_byte_size", "scalar_byte_size", "scalar", "storage", "element"),
        *("accumulator", "name", "zero", "one"),
    ]
    array = np.zeros(3, dtype=np.float32)
    no_dtypes: tuple[Any, ...] = ("f16", "", np.float32, np.dtype("f4"), float, 3, 0, None, [], {}, DTypeKind.scalar)
    no_dtypes += (Posing(DType),)
    calls: dict[str, Callable[[Any], object]] = {name: getattr(part, name) for name in one}
    for name in ("to_f32", "to_f64", "from_f32", "from_f64", "is_truthy", "to_accumulator", "from_accumulator"):
        calls[name] = _with_one(getattr(part, name))
    for name in ("compute_dtype", "output_dtype"):
        calls[name] = partial(getattr(part, name), FloatOp.matmul)
    for name, rest in (("cast_float", (1.0,)), ("cast_scalar", (1.0,)), ("cast_bits", (0,)), ("cast_array", (array,))):
        calls[f"{name}, source"] = _source(getattr(part, name), rest)
        calls[f"{name}, target"] = _target(getattr(part, name), rest)
    calls["convert, to"] = lambda bad: part.convert(array, bad)
    calls["convert, source"] = lambda bad: part.convert(array, DType.f32, source=bad)
    for what, call in calls.items():
        for bad in no_dtypes:
            if bad is None and what == "convert, source":
                continue  # the one place where None has a meaning
            assert_raises(InvalidDType, "DTYPE-ARG-1", partial(call, bad), what=f"{what}: {bad!r}")


def _with_one(function: Any) -> Callable[[Any], object]:
    return lambda bad: function(bad, 1)


def _source(function: Any, rest: tuple[Any, ...]) -> Callable[[Any], object]:
    return lambda bad: function(bad, DType.f32, *rest)


def _target(function: Any, rest: tuple[Any, ...]) -> Callable[[Any], object]:
    return lambda bad: function(DType.f32, bad, *rest)
