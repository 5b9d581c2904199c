"""Dtypes and elements that a caller may get wrong, and what each error says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fucina.fast as fast
from fucina.fast import DType
from fucina.spec.errors import DTypeMismatch, FucinaError, InvalidDType, Overflow


@pytest.mark.parametrize("bad", ["f32", None, 9, np.dtype("f4"), np.float32, fast.FloatOp.matmul, 1.0])
def test_no_dtype(bad: Any) -> None:
    array = np.zeros(2, np.float32)
    calls: list[Callable[[], object]] = [
        lambda: fast.dtype.kind(bad),
        lambda: fast.dtype.block_byte_size(bad),
        lambda: fast.dtype.storage(bad),
        lambda: fast.dtype.element(bad),
        lambda: fast.dtype.to_f32(bad, 1.0),
        lambda: fast.dtype.cast_scalar(bad, DType.f32, 1.0),
        lambda: fast.dtype.cast_scalar(DType.f32, bad, 1.0),
        lambda: fast.dtype.cast_bits(bad, DType.f32, 1),
        lambda: fast.dtype.cast_array(bad, DType.f32, array),
        lambda: fast.dtype.cast_array(DType.f32, bad, array),
        lambda: fast.dtype.convert(array, bad),
        lambda: fast.dtype.compute_dtype(fast.FloatOp.matmul, bad),
    ]
    for call in calls:
        with pytest.raises(InvalidDType, match=r"^DTYPE-ARG-1: "):
            call()


def test_block_dtypes_have_no_elements() -> None:
    array = np.zeros(2, np.float32)
    d = DType.q4_k
    calls: list[Callable[[], object]] = [
        lambda: fast.dtype.scalar(d),
        lambda: fast.dtype.scalar_byte_size(d),
        lambda: fast.dtype.accumulator(d),
        lambda: fast.dtype.zero(d),
        lambda: fast.dtype.one(d),
        lambda: fast.dtype.to_f32(d, 1.0),
        lambda: fast.dtype.from_f64(d, 1.0),
        lambda: fast.dtype.cast_float(DType.f32, d, 1.0),
        lambda: fast.dtype.cast_scalar(d, DType.f32, 1),
        lambda: fast.dtype.cast_bits(DType.f32, d, 1),
        lambda: fast.dtype.is_truthy(d, 1),
        lambda: fast.dtype.to_accumulator(d, 1),
        lambda: fast.dtype.from_accumulator(d, 1),
        lambda: fast.dtype.cast_array(d, DType.f32, array),
        lambda: fast.dtype.cast_array(DType.f32, d, array),
    ]
    for call in calls:
        with pytest.raises(InvalidDType) as caught:
            call()
        assert caught.value.clause
        assert "q4_k" in str(caught.value)


@pytest.mark.parametrize(
    ("dtype", "value", "error"),
    [
        (DType.bool, 1, DTypeMismatch),
        (DType.bool, 1.0, DTypeMismatch),
        (DType.u8, True, DTypeMismatch),
        (DType.u8, 1.0, DTypeMismatch),
        (DType.u8, "1", DTypeMismatch),
        (DType.u8, 256, Overflow),
        (DType.u8, -1, Overflow),
        (DType.i8, 128, Overflow),
        (DType.i64, 2**63, Overflow),
        pytest.param(DType.i64, 10**5000, Overflow, id="i64-huge"),
        (DType.bf16, 65536, Overflow),
        (DType.bf16, 1.0, DTypeMismatch),
        (DType.f8_e5m2, -1, Overflow),
        (DType.f32, "1.0", DTypeMismatch),
        (DType.f32, True, DTypeMismatch),
        (DType.f64, None, DTypeMismatch),
        (DType.f16, 1j, DTypeMismatch),
    ],
)
def test_elements_that_are_none(dtype: DType, value: Any, error: type[FucinaError]) -> None:
    calls: list[Callable[[], object]] = [
        lambda: fast.dtype.cast_scalar(dtype, DType.f32, value),
        lambda: fast.dtype.is_truthy(dtype, value),
        lambda: fast.dtype.to_accumulator(dtype, value),
    ]
    for call in calls:
        with pytest.raises(error, match=r"^BRIDGE-SCALAR-4: ") as caught:
            call()
        assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("bad", "shown"),
    [
        ("f32", """'f32'; write DType.f32 or DType("f32")"""),
        ("float32", "'float32'"),
        ("f" * 41, "an object of type str"),
        (None, "None"),
        (9, "9"),
        (1e22, "1e+22"),
        (np.float32, "the class numpy.float32"),
        (np.float32(1), "an object of type numpy.float32"),
        (fast.FloatOp.matmul, "FloatOp.matmul"),
        ([], "an object of type list"),
    ],
)
def test_a_refused_dtype_is_shown(bad: Any, shown: str) -> None:
    with pytest.raises(InvalidDType) as caught:
        fast.dtype.kind(bad)
    assert str(caught.value) == f"DTYPE-ARG-1: dtype must be a DType, got {shown}"
    assert caught.value.clause == "DTYPE-ARG-1"
