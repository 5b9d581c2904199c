"""Tests of the reference's own joints in the chapters dtype and bridge; the suite holds it to the clauses."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import fucina.reference as reference
from fucina.reference.bridges import caster
from fucina.spec import DTypePart, RngPart, clauses
from fucina.spec.errors import DTypeMismatch, InvalidDType, Overflow
from fucina.spec.types import DType, FloatOp

dtype: Any = reference.dtype  # the tests pass what a type checker refuses


@pytest.mark.parametrize(("part", "module"), [(DTypePart, reference.dtype), (RngPart, reference.rng)])
def test_signatures_are_those_of_the_interface(part: type[Any], module: Any) -> None:
    names = [name for name, member in vars(part).items() if inspect.isfunction(member) and not name.startswith("_")]
    assert len(names) > 15
    for name in names:
        wanted = list(inspect.signature(getattr(part, name)).parameters.values())[1:]  # without self
        got = list(inspect.signature(getattr(module, name)).parameters.values())
        assert [(p.name, p.kind, p.default) for p in got] == [(p.name, p.kind, p.default) for p in wanted], name


def test_no_public_name_is_missing_from_the_modules() -> None:
    for part, module in ((DTypePart, reference.dtype), (RngPart, reference.rng)):
        names = {name for name in {*vars(part), *part.__annotations__} if not name.startswith("_")}
        assert names == set(module.__all__)


@pytest.mark.parametrize("value_type", [reference.Bf16, reference.F8E4M3, reference.F8E5M2])
def test_value_types(value_type: Any) -> None:
    one = value_type.from_f32(1.0)
    assert one == value_type(one.bits) == pickle.loads(pickle.dumps(one)) == copy.deepcopy(one) == copy.copy(one)
    assert one.to_f32() == 1.0
    assert eval(repr(one), vars(reference)) == one
    assert hash(one) == hash(value_type(one.bits))
    assert type(value_type(np.uint8(3)).bits) is int
    assert dtype.element(value_type.dtype) is value_type
    assert one != one.bits
    for name in ("bits", "dtype", "other"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(one, name, 3)
    with pytest.raises(Overflow, match=r"^BRIDGE-VALUE-1: "):
        value_type(-1)


def test_value_types_of_one_pattern_differ() -> None:
    assert len({reference.F8E4M3(0x38), reference.F8E5M2(0x38)}) == 2
    assert repr(reference.Bf16(0x7FC0)) == "Bf16(0x7fc0)"
    assert repr(reference.F8E4M3(1)) == "F8E4M3(0x01)"


def test_two_roundings_and_one() -> None:
    two, one = (caster(DType.f64, DType.f16, False, single) for single in (False, True))
    bits = int(np.float64(1 + 2.0**-11 + 2.0**-40).view(np.uint64))
    assert (two(bits), one(bits)) == (0x3C00, 0x3C01)
    whole = 2**53 + 2**29 + 1
    assert [caster(DType.i64, DType.f32, False, single)(whole) for single in (False, True)] == [0x5A000000, 0x5A000001]


def test_saturation_acts_on_the_small_floats_only() -> None:
    infinity, maximum = 0x7F800000, 0x7F7FFFFF
    assert caster(DType.f32, DType.f8_e4m3, True)(infinity) == 0x7E
    assert caster(DType.f32, DType.f64, True)(infinity) == 0x7FF0 << 48
    assert caster(DType.bf16, DType.f32, True)(0x7F80) == infinity
    assert caster(DType.f32, DType.bf16, True)(maximum) == 0x7F7F
    assert caster(DType.f16, DType.f16, True)(0x7C00) == 0x7C00
    assert caster(DType.u16, DType.f16, True)(65535) == 0x7BFF
    assert caster(DType.f64, DType.f8_e5m2, True)(int(np.float64(1e300).view(np.uint64))) == 0x7B


def test_cast_array_gives_out_back() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    out = np.empty(6, np.uint16)
    assert dtype.cast_array(DType.f32, DType.bf16, x, out=out) is out
    fresh = dtype.cast_array(DType.f32, DType.bf16, x)
    assert (fresh.shape, fresh.dtype, fresh.tobytes()) == ((2, 3), np.dtype(np.uint16), out.tobytes())
    codes = bytearray(6)
    seen = dtype.cast_array(DType.f32, DType.f8_e4m3, x, out=codes)
    assert (seen.dtype, seen.shape, seen.tobytes()) == (np.dtype(np.uint8), (6,), bytes(codes))
    assert dtype.cast_array(DType.f32, DType.i64, np.float32(2.5)).shape == ()


@pytest.mark.parametrize(
    ("name", "source"),
    [("bfloat16", DType.bf16), ("float8_e4m3fn", DType.f8_e4m3), ("float8_e5m2", DType.f8_e5m2)],
)
def test_convert_knows_named_dtypes(name: str, source: DType) -> None:
    x = np.array([[1.0, -0.5, 2.0]]).astype(getattr(ml_dtypes, name))
    assert dtype.convert(x, DType.f32).tolist() == [[1.0, -0.5, 2.0]]
    assert dtype.convert(x, DType.f32, source=source).tolist() == [[1.0, -0.5, 2.0]]
    with pytest.raises(DTypeMismatch, match=r"^BRIDGE-CONVERT-1: "):
        dtype.convert(x, DType.f32, source=DType.u8)


@pytest.mark.parametrize("x", [np.zeros(3, np.uint32), np.zeros(3, np.complex64), [1.0], np.zeros(3, ">f4"), "text"])
def test_convert_refuses_what_it_does_not_know(x: Any) -> None:
    with pytest.raises(DTypeMismatch, match=r"^BRIDGE-CONVERT-1: array must "):
        dtype.convert(x, DType.f32)


@pytest.mark.parametrize("function", [dtype.compute_dtype, dtype.output_dtype])
def test_policy_refuses_empty_cells_and_other_operations(function: Any) -> None:
    with pytest.raises(InvalidDType, match=r"^DTYPE-POLICY-4: .*DType\.f8_e4m3"):
        function(FloatOp.widened, DType.f8_e4m3)
    with pytest.raises(InvalidDType, match=r"^DTYPE-POLICY-1: op must be a FloatOp, got 'widened'"):
        function("widened", DType.f32)
    with pytest.raises(InvalidDType, match=r"^DTYPE-ARG-1: "):
        function(FloatOp.widened, "f32")


def test_root() -> None:
    assert reference.capabilities == {clause.chapter for clause in clauses.load().values()}
    assert isinstance(reference.__version__, str)
