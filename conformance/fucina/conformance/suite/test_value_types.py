"""``Bf16``, ``F8E4M3``, ``F8E5M2``: bit patterns as values."""

from __future__ import annotations

import copy
import pickle
from functools import partial
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import PATTERN, assert_bits, assert_raises, f32_bits
from fucina.conformance.suite.casts import cast
from fucina.spec import DType
from fucina.spec.errors import DTypeMismatch, InvalidInteger, Overflow

TYPES = {"Bf16": DType.bf16, "F8E4M3": DType.f8_e4m3, "F8E5M2": DType.f8_e5m2}
BITS = (0x00, 0x01, 0x38, 0x3C, 0x7E, 0x7F, 0x80, 0xFF)


def _codes(dtype: DType) -> list[int]:
    width = 8 * PATTERN[dtype].itemsize
    return list(range(1 << width)) if width == 8 else [(b << 8 | low) for b in range(256) for low in (0x00, 0x81)]


@clause("BRIDGE-VALUE-1", "BRIDGE-DECODE-1")
@pytest.mark.parametrize("name", TYPES)
def test_bits_and_decoding(impl: Any, name: str) -> None:
    kind, dtype = getattr(impl, name), TYPES[name]
    assert kind.dtype is dtype
    codes = _codes(dtype)
    assert [kind(b).bits for b in codes] == codes
    got = np.array([kind(b).to_f32() for b in codes], dtype=np.float32)
    expected = cast(impl, dtype, DType.f32, np.array(codes))
    assert_bits(got, expected, nan="any", dtype=DType.f32, what=f"{name}.to_f32", clause="BRIDGE-VALUE-1")
    assert type(kind(1).to_f32()) is float
    assert type(kind(np.uint8(1)).bits) is int


@clause("BRIDGE-VALUE-1", "BRIDGE-ROUND-1")
@pytest.mark.parametrize("name", TYPES)
def test_encoding(impl: Any, name: str) -> None:
    kind, dtype = getattr(impl, name), TYPES[name]
    values = [0.0, -0.0, 1.0, 0.1, -17.0, 19.0, 464.0, 465.0, 61440.0, 3.4e38, 1e-45, float("inf"), -float("inf")]
    got = np.array([kind.from_f32(v).bits for v in values], dtype=PATTERN[dtype])
    patterns = np.array([f32_bits(v) for v in values], dtype=np.uint32)
    assert_bits(got, cast(impl, DType.f32, dtype, patterns), dtype=dtype, what=name, clause="BRIDGE-VALUE-1")
    assert type(kind.from_f32(1.0)) is kind
    for bad in ("1", None, True, 1j):
        assert_raises(DTypeMismatch, None, partial(kind.from_f32, bad), what=f"{name}.from_f32({bad!r})")


@clause("BRIDGE-VALUE-1", "ERR-MSG-1")
@pytest.mark.parametrize("name", TYPES)
def test_patterns_that_do_not_exist(impl: Any, name: str) -> None:
    kind, width = getattr(impl, name), 8 * PATTERN[TYPES[name]].itemsize
    ids = ("BRIDGE-VALUE-1", "BRIDGE-BITS-1")
    for bad in (-1, 1 << width, 1 << 70):
        assert_raises(Overflow, ids, partial(kind, bad), shows=(bad,), what=f"{name}({bad})")
    wrong: tuple[Any, ...] = (1.0, "1", None, True)
    for given in wrong:
        assert_raises(InvalidInteger, ids, partial(kind, given), what=f"{name}({given!r})")


@clause("BRIDGE-VALUE-2")
@pytest.mark.parametrize("name", TYPES)
def test_equality_and_hash(impl: Any, name: str) -> None:
    kind = getattr(impl, name)
    values = [kind(b) for b in BITS]
    for a in values:
        for b in values:
            assert (a == b) is (a.bits == b.bits)
            assert (a != b) is (a.bits != b.bits)
        assert hash(a) == hash(kind(a.bits))
        for other in (a.bits, a.to_f32(), str(a), None, np.uint8(a.bits)):
            assert (a == other) is False, f"BRIDGE-VALUE-2: {a!r} equals {other!r}"
            assert (a != other) is True
        for stranger in TYPES:
            assert stranger == name or a != getattr(impl, stranger)(a.bits)
    assert len({*values, *(kind(b) for b in BITS)}) == len(BITS)


@clause("BRIDGE-VALUE-2")
@pytest.mark.parametrize("name", TYPES)
def test_no_order_and_no_arithmetic(impl: Any, name: str) -> None:
    a, b = getattr(impl, name)(1), getattr(impl, name)(2)
    for operation in (lambda: a < b, lambda: a + b, lambda: a * 2, lambda: -a, lambda: float(a)):
        assert_raises(TypeError, None, operation)


@clause("BRIDGE-VALUE-2")
@pytest.mark.parametrize("name", TYPES)
def test_repr_is_the_call(impl: Any, name: str) -> None:
    kind, digits = getattr(impl, name), 2 * PATTERN[TYPES[name]].itemsize
    for b in BITS:
        assert repr(kind(b)) == f"{name}(0x{b:0{digits}x})"
        assert eval(repr(kind(b)), {name: kind}) == kind(b)


@clause("BRIDGE-VALUE-2")
@pytest.mark.parametrize("name", TYPES)
def test_immutable(impl: Any, name: str) -> None:
    value = getattr(impl, name)(0x3C)
    for what, change in (
        ("set bits", lambda: setattr(value, "bits", 1)),
        ("set the dtype", lambda: setattr(value, "dtype", DType.f32)),
        ("set an unknown attribute", lambda: setattr(value, "other", 1)),
        ("delete bits", lambda: delattr(value, "bits")),
        ("delete an unknown attribute", lambda: delattr(value, "other")),
        ("initialize again", lambda: value.__init__(0x3D)),
        ("initialize with the same again", lambda: value.__init__(0x3C)),
    ):
        assert_raises(AttributeError, None, change, what=f"BRIDGE-VALUE-2: {name}: {what}")
        assert value.bits == 0x3C, f"BRIDGE-VALUE-2: {name}: {what}"
        assert value.dtype is TYPES[name]
    assert not hasattr(value, "other")
    assert hash(value) == hash(getattr(impl, name)(0x3C))


@clause("BRIDGE-VALUE-1")
@pytest.mark.parametrize("name", TYPES)
def test_arguments_have_places_and_no_names(impl: Any, name: str) -> None:
    kind = getattr(impl, name)
    for call in (lambda: kind(bits=3), lambda: kind.from_f32(value=1.0), lambda: kind(), lambda: kind(3, 4)):
        assert_raises(TypeError, None, call, what=f"BRIDGE-VALUE-1: {name}")


@clause("BRIDGE-VALUE-2")
@pytest.mark.parametrize("name", TYPES)
def test_copies_and_pickles(impl: Any, name: str) -> None:
    kind = getattr(impl, name)
    for b in BITS:
        for twin in (copy.copy(kind(b)), copy.deepcopy(kind(b)), pickle.loads(pickle.dumps(kind(b)))):
            assert type(twin) is kind
            assert twin == kind(b)


@clause("DTYPE-STORAGE-3", "BRIDGE-VALUE-1")
@pytest.mark.parametrize("name", TYPES)
def test_crossing_to_the_storage_form_reinterprets(impl: Any, name: str) -> None:
    kind, dtype = getattr(impl, name), TYPES[name]
    codes = np.array(_codes(dtype), dtype=PATTERN[dtype])
    there = [impl.dtype.element(dtype)(int(b)) for b in codes.view(impl.dtype.storage(dtype))]
    assert_bits(np.array([v.bits for v in there], dtype=PATTERN[dtype]), codes, what=kind.__name__)
