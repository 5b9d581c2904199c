"""``Bf16``, ``F8E4M3``, ``F8E5M2``."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from fucina.fast import F8E4M3, F8E5M2, Bf16, DType
from fucina.spec.errors import InvalidInteger, Overflow

KINDS = [(Bf16, 16, DType.bf16), (F8E4M3, 8, DType.f8_e4m3), (F8E5M2, 8, DType.f8_e5m2)]


@pytest.mark.parametrize(("kind", "width", "dtype"), KINDS)
def test_a_value_is_its_bits(kind: Any, width: int, dtype: DType) -> None:
    for bits in (0, 1, 1 << (width - 1), (1 << width) - 1, np.uint16(3)):
        value = kind(bits)
        assert type(value.bits) is int
        assert value.bits == bits
        assert value.dtype is kind.dtype is dtype
        assert repr(value) == f"{kind.__name__}(0x{int(bits):0{width // 4}x})"
        assert eval(repr(value), {kind.__name__: kind}) == value
        for same in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value)), kind(bits)):
            assert type(same) is kind
            assert same == value
            assert hash(same) == hash(value)
    for bits in (-1, 1 << width, 10**5000):
        with pytest.raises(Overflow):
            kind(bits)
    for wrong in (1.0, "1", None, True, np.bool_(True)):
        with pytest.raises(InvalidInteger):
            kind(wrong)


@pytest.mark.parametrize(("kind", "width", "dtype"), KINDS)
def test_a_value_never_changes(kind: Any, width: int, dtype: DType) -> None:
    value = kind(1)
    for attempt in (
        lambda: setattr(value, "bits", 2),
        lambda: setattr(value, "_bits", 2),
        lambda: setattr(value, "other", 2),
        lambda: delattr(value, "_bits"),
        lambda: value.__init__(2),
    ):
        with pytest.raises(AttributeError, match=rf"^BRIDGE-VALUE-2: a {kind.__name__} never changes, got ") as caught:
            attempt()
        error: Any = caught.value
        assert error.clause == "BRIDGE-VALUE-2"
    assert value.bits == 1


def test_equality_is_by_type_and_bits() -> None:
    assert F8E4M3(1) != F8E5M2(1)
    assert len({F8E4M3(1), F8E5M2(1), F8E4M3(1)}) == 2
    assert Bf16(0) != Bf16(0x8000)  # the two zeros
    assert Bf16(0x7FC0) == Bf16(0x7FC0)  # a NaN
    assert F8E4M3(0x38) != 1.0
    assert F8E4M3(0x38) != 0x38
    with pytest.raises(TypeError):
        assert Bf16(1) < Bf16(2)  # type: ignore[operator]
    with pytest.raises(TypeError):
        assert Bf16(1) + Bf16(2)  # type: ignore[operator]


def test_conversions() -> None:
    assert Bf16.from_f32(0.5) == Bf16(0x3F00)
    assert Bf16(0x3F00).to_f32() == 0.5
    assert F8E4M3(0x7E).to_f32() == 448.0
    assert F8E4M3.from_f32(1000) == F8E4M3(0x7F)
    assert F8E5M2.from_f32(-1e9) == F8E5M2(0xFC)
    with pytest.raises(TypeError):
        Bf16.from_f32("0.5")  # type: ignore[arg-type]
