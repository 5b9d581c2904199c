"""Where two roundings differ from one: ties of a format that a wider format on the way makes, or hides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import FLOATS, PATTERN, assert_bits
from fucina.conformance.suite.casts import cast, expected
from fucina.spec import DType

NARROW = (DType.f16, DType.bf16, DType.f8_e4m3, DType.f8_e5m2)
PAIRS = [(source, into) for source in (DType.i32, DType.i64, DType.f64) for into in (*NARROW, DType.f32)]
# elsewhere every number in the target's range is exact on the way, or there is no stop on it
TWICE = {(DType.i32, DType.bf16), (DType.i64, DType.bf16), (DType.i64, DType.f32), *((DType.f64, t) for t in NARROW)}
IDS = [f"{source.name}-{into.name}" for source, into in PAIRS]


def _integers(source: DType, into: DType) -> list[int]:
    """Return integers one step beside a tie of the target, too close to it for an f32 (or an f64) to tell."""
    width, fraction = 8 * PATTERN[source].itemsize, FLOATS[into][1]
    found = set()
    for power in range(fraction + 2, width - 1):
        place = power - fraction - 1
        for kept in (0, 1, (1 << fraction) - 1):
            tie = (1 << power) + (kept << (place + 1)) + (1 << place)
            for beside in (0, 1, -1, 1 << max(place - 20, 0), 1 << max(place - 30, 0)):
                found |= {tie + beside, -tie - beside}
    top = 1 << (width - 1)
    return sorted(value & (2 * top - 1) for value in found if -top <= value < top)


def _doubles(into: DType) -> list[int]:
    """Return f64 patterns beside ties of the target in its whole range, subnormal results included."""
    exponent, fraction = FLOATS[into]
    bias = (1 << (exponent - 1)) - 1
    found = set()
    for power in (1 - bias - 3, 1 - bias - 1, 1 - bias, 1 - bias + 1, -1, 0, 1, bias - 1, bias):
        lost = max(1 - bias - power, 0)  # bits that a subnormal result gives up
        place = 52 - fraction - 1 + lost
        for kept in (0, 1, 2, (1 << fraction) - 1):
            tie = (power + 1023) << 52 | (kept << (place + 1)) & ((1 << 52) - 1) | 1 << min(place, 51)
            for beside in (0, 1, -1, 1 << 12, -(1 << 12), 1 << 27, 1 << 29):
                found |= {tie + beside, tie + beside | 1 << 63}
    return sorted(found)


@clause("BRIDGE-INT-2", "BRIDGE-FLOAT-1", "BRIDGE-SINGLE-1", "BRIDGE-ROUND-1")
@pytest.mark.parametrize(("source", "into"), PAIRS, ids=IDS)
def test_two_roundings_and_one(impl: Any, source: DType, into: DType) -> None:
    patterns = _doubles(into) if source is DType.f64 else _integers(source, into)
    inputs = np.array(patterns, dtype=PATTERN[source])
    plain = np.array([expected(source, into, b) for b in patterns], dtype=PATTERN[into])
    single = np.array([expected(source, into, b, single=True) for b in patterns], dtype=PATTERN[into])
    assert (np.count_nonzero(plain != single) > 0) == ((source, into) in TWICE), "the inputs must tell one from two"
    what = f"{source.name} -> {into.name}"
    id_ = "BRIDGE-FLOAT-1" if source is DType.f64 else "BRIDGE-INT-2"
    assert_bits(cast(impl, source, into, inputs), plain, dtype=into, what=what, clause=id_)
    one_by_one = np.array([impl.dtype.cast_bits(source, into, b) for b in patterns], dtype=PATTERN[into])
    assert_bits(one_by_one, plain, dtype=into, what=f"cast_bits {what}", clause=id_)
    got = cast(impl, source, into, inputs, single_rounding=True)
    assert_bits(got, single, dtype=into, what=f"{what}, single_rounding=True", clause="BRIDGE-SINGLE-1")


@clause("BRIDGE-INT-2")
def test_the_way_of_an_i64_is_f64_then_f32(impl: Any) -> None:
    for value, answer in (((1 << 53) + (1 << 29) + 1, 1 << 53), (-(1 << 53) - (1 << 29) - 1, -(1 << 53))):
        got = impl.dtype.cast_scalar(DType.i64, DType.f32, value)
        assert got == float(answer), f"BRIDGE-INT-2: {value} became {got!r}"
        array = impl.dtype.cast_array(DType.i64, DType.f32, np.full(40, value))
        assert (array == np.float32(answer)).all(), f"BRIDGE-INT-2: {value} in an array became {array[0]!r}"
