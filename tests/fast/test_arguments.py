"""Numbers that a caller may get wrong: seeds, indices, bounds, f32 parameters; and what each error says."""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import fucina.fast as fast
from fucina.fast import DType
from fucina.spec.errors import DTypeMismatch, InvalidBounds, InvalidInteger, Overflow

NAN, INF = float("nan"), float("inf")
HUGE = 10**5000  # Python refuses to print it: a message must not try


class Indirect(np.ndarray[Any, Any]):
    """No plain array, so that a call with one goes through the Python layer and cffi."""


WRAPS: list[Callable[[Any], Any]] = [np.asarray, memoryview, lambda a: a.view(Indirect)]


class Index:
    """Something with ``__index__``."""

    def __index__(self) -> int:
        return 7


class Liar:
    """Something whose ``__index__`` is no integer's."""

    def __index__(self) -> int:
        raise TypeError("no")


NO_INTEGERS: list[Any] = [
    1.0,
    1.5,
    NAN,
    "1",
    b"1",
    None,
    True,
    False,
    np.bool_(True),
    np.float32(1),
    1j,
    [1],
    Decimal(1),
    Liar(),
]
NO_INTEGERS += [np.array([1, 2]), DType.u8]


def _u64_calls() -> dict[str, Callable[[Any], object]]:
    f32, i64, mask = np.zeros(4, np.float32), np.zeros(4, np.int64), np.zeros(4, np.bool_)
    rng = fast.rng
    return {
        "splitmix64 state": lambda v: rng.splitmix64(v),
        "at seed": lambda v: rng.at(v, 0),
        "at i": lambda v: rng.at(0, v),
        "gaussian_fill seed": lambda v: rng.gaussian_fill(v, f32, 1.0),
        "gaussian_fill_at seed": lambda v: rng.gaussian_fill_at(v, 0, f32, 1.0),
        "gaussian_fill_at first": lambda v: rng.gaussian_fill_at(0, v, f32, 1.0),
        "gaussian_fill_at_fast seed": lambda v: rng.gaussian_fill_at_fast(v, 0, f32, 1.0),
        "gaussian_fill_at_fast first": lambda v: rng.gaussian_fill_at_fast(0, v, f32, 1.0),
        "uniform_fill seed": lambda v: rng.uniform_fill(v, f32, 0.0, 1.0),
        "uniform_fill_at first": lambda v: rng.uniform_fill_at(0, v, f32, 0.0, 1.0),
        "kaiming_uniform_fill seed": lambda v: rng.kaiming_uniform_fill(v, f32, 3),
        "kaiming_uniform_fill_at first": lambda v: rng.kaiming_uniform_fill_at(0, v, f32, 3),
        "normal_fill seed": lambda v: rng.normal_fill(v, f32, 0.0, 1.0),
        "normal_fill_at first": lambda v: rng.normal_fill_at(0, v, f32, 0.0, 1.0),
        "gumbel_fill seed": lambda v: rng.gumbel_fill(v, f32),
        "gumbel_fill_at first": lambda v: rng.gumbel_fill_at(0, v, f32),
        "randint_fill seed": lambda v: rng.randint_fill(v, i64, 0, 2),
        "randint_fill_at first": lambda v: rng.randint_fill_at(0, v, i64, 0, 2),
        "randperm_fill seed": lambda v: rng.randperm_fill(v, i64),
        "dropout_mask seed": lambda v: rng.dropout_mask(v, 0, mask, 0.5),
        "dropout_mask first": lambda v: rng.dropout_mask(0, v, mask, 0.5),
    }


U64_CALLS = _u64_calls()


@pytest.mark.parametrize("case", U64_CALLS)
def test_u64_arguments(case: str) -> None:
    call, name = U64_CALLS[case], case.split()[1]
    for value in NO_INTEGERS:
        with pytest.raises(InvalidInteger, match=rf"^RNG-SEED-1: {name} must be an integer, got "):
            call(value)
    for value in (-1, 2**64, -HUGE, HUGE, np.int64(-1), np.int8(-128)):
        with pytest.raises(Overflow, match=rf"^RNG-SEED-1: {name} must lie in \[0, 2\^64\), got ") as caught:
            call(value)
        assert len(str(caught.value)) < 200
    for value in (0, 7, np.uint64(7), np.int8(7), Index(), np.uint64(2**63)):
        call(value)


def test_numpy_integers_mean_the_same() -> None:
    at: Any = fast.rng.at
    assert at(np.uint64(7), np.int16(3)) == at(7, 3) == at(Index(), 3)
    assert fast.rng.splitmix64(2**64 - 1)[0] == 0x9E3779B97F4A7C14
    assert type(at(np.uint64(7), 3)) is int


@pytest.mark.parametrize("length", [0, 1, 5])
def test_window(fill: Any, length: int) -> None:
    out = np.zeros(length, np.float32)
    last = 2**64 - 1
    for first in (last - length, last - length + 1):
        if first <= last:
            fast.rng.gumbel_fill_at(1, first, out)
            fast.rng.gumbel_fill_at(1, first, out.view(Indirect))
    out[:] = 7
    if length > 1:
        for first in (last - length + 2, last):
            for target in (out, out.view(Indirect)):
                with pytest.raises(Overflow, match=r"^RNG-RANGE-1: first \+ len\(out\) must not exceed 2\^64"):
                    fast.rng.gumbel_fill_at(1, first, target)
            assert (out == 7).all()


def test_element_2_64_minus_1_is_the_last() -> None:
    out = np.zeros(1, np.int64)
    fast.rng.randint_fill_at(5, 2**64 - 1, out, 0, 2**32)
    assert out[0] == fast.rng.at(5, 2**64 - 1) >> 32


NO_FLOATS = [
    "1",
    b"1",
    None,
    True,
    np.bool_(False),
    1j,
    [1.0],
    Decimal(1),
    Fraction(1),
    np.longdouble(1),
    np.zeros(1),
    np.array(1.0),
    DType.f32,
]


FLOATS: list[Any] = [0.5, 0, np.float16(0.5), np.float32(0.5), np.float64(0.5)]
FLOATS += [np.int8(0), np.uint64(0)]


def _float_calls() -> dict[str, Callable[[Any], object]]:
    f32, mask = np.zeros(4, np.float32), np.zeros(4, np.bool_)
    rng = fast.rng
    return {
        "gaussian_fill scale": lambda v: rng.gaussian_fill(0, f32, v),
        "gaussian_fill_at scale": lambda v: rng.gaussian_fill_at(0, 0, f32, v),
        "gaussian_fill_at_fast scale": lambda v: rng.gaussian_fill_at_fast(0, 0, f32, v),
        "uniform_fill lo": lambda v: rng.uniform_fill(0, f32, v, 2.0),
        "uniform_fill hi": lambda v: rng.uniform_fill(0, f32, -2.0, v),
        "uniform_fill_at lo": lambda v: rng.uniform_fill_at(0, 0, f32, v, 2.0),
        "normal_fill mean": lambda v: rng.normal_fill(0, f32, v, 2.0),
        "normal_fill std_dev": lambda v: rng.normal_fill(0, f32, 0.0, v),
        "normal_fill_at mean": lambda v: rng.normal_fill_at(0, 0, f32, v, 2.0),
        "dropout_mask p": lambda v: rng.dropout_mask(0, 0, mask, v),
        "dropout_scale p": lambda v: rng.dropout_scale(v),
    }


FLOAT_CALLS = _float_calls()


@pytest.mark.parametrize("case", FLOAT_CALLS)
def test_f32_parameters(case: str) -> None:
    call, name = FLOAT_CALLS[case], case.split()[1]
    for value in NO_FLOATS:
        with pytest.raises(DTypeMismatch, match=rf"^NUM-PARAM-1: {name} must be a float or an integer, got "):
            call(value)
    for value in FLOATS:
        call(value)


def _scaled(scale: Any) -> bytes:
    out = np.zeros(6, np.float32)
    fast.rng.gaussian_fill(3, out, scale)
    return out.tobytes()


@pytest.mark.parametrize(
    ("given", "f32_bits"),
    [
        (0.1, 0x3DCCCCCD),
        (1 + 2.0**-24, 0x3F800000),  # a tie, to even
        (1 + 3 * 2.0**-24, 0x3F800002),
        (1 + 2.0**-24 + 2.0**-52, 0x3F800001),
        (2.0**-150, 0),
        (2.0**-149, 1),
        (-(2.0**-149), 0x80000001),
        (3.4028235677973366e38, 0x7F800000),
        (3.4028235677973362e38, 0x7F7FFFFF),
        (1e300, 0x7F800000),
        (-1e300, 0xFF800000),
        (10**400, 0x7F800000),
        (-(10**400), 0xFF800000),
        (2**24 + 1, 0x4B800000),
        (2**60 + 2**36 + 1, 0x5D800000),  # by way of f64: the clause says so
        (np.float16(0.1), 0x3DCCC000),
        (np.float32(0.1), 0x3DCCCCCD),
        (np.array(1, np.uint32).view(np.float32)[()], 1),
        (np.float64(0.1), 0x3DCCCCCD),
        (-0.0, 0x80000000),
        (np.float32(-0.0), 0x80000000),
    ],
)
def test_a_parameter_is_rounded_once_to_f32(given: Any, f32_bits: int) -> None:
    assert _bits(fast.dtype.from_f32(DType.f32, given)) == f32_bits
    (exact,) = struct.unpack("<f", f32_bits.to_bytes(4, "little"))
    assert _scaled(given) == _scaled(exact)


def _bits(value: Any) -> int:
    return int.from_bytes(struct.pack("<f", value), "little")


BAD_BOUNDS: dict[str, tuple[Callable[[Any], object], str, Any]] = {
    "equal": (lambda out: fast.rng.uniform_fill(0, out, 1.0, 1.0), "RNG-UNIF-3", np.float32),
    "equal once rounded": (lambda out: fast.rng.uniform_fill(0, out, 1.0, 1 + 2.0**-30), "RNG-UNIF-3", np.float32),
    "signed zeros": (lambda out: fast.rng.uniform_fill(0, out, -0.0, 0.0), "RNG-UNIF-3", np.float32),
    "reversed": (lambda out: fast.rng.uniform_fill(0, out, 2.0, 1.0), "RNG-UNIF-3", np.float32),
    "NaN lo": (lambda out: fast.rng.uniform_fill(0, out, NAN, 1.0), "RNG-UNIF-3", np.float32),
    "NaN hi": (lambda out: fast.rng.uniform_fill_at(0, 0, out, 0.0, NAN), "RNG-UNIF-3", np.float32),
    "infinite": (lambda out: fast.rng.uniform_fill(0, out, -INF, INF), "RNG-UNIF-3", np.float32),
    "infinite once rounded": (lambda out: fast.rng.uniform_fill_at(0, 0, out, 0, 1e39), "RNG-UNIF-3", np.float32),
    "fan_in 0": (lambda out: fast.rng.kaiming_uniform_fill(0, out, 0), "RNG-KAIMING-2", np.float32),
    "fan_in -1": (lambda out: fast.rng.kaiming_uniform_fill(0, out, -1), "RNG-KAIMING-2", np.float32),
    "fan_in -huge": (lambda out: fast.rng.kaiming_uniform_fill_at(0, 0, out, -HUGE), "RNG-KAIMING-2", np.float32),
    "low = high": (lambda out: fast.rng.randint_fill(0, out, 5, 5), "RNG-INT-2", np.int64),
    "low > high": (lambda out: fast.rng.randint_fill_at(0, 0, out, 5, -5), "RNG-INT-2", np.int64),
    "p = 1": (lambda out: fast.rng.dropout_mask(0, 0, out, 1.0), "RNG-DROPOUT-3", np.bool_),
    "p = 1 once rounded": (lambda out: fast.rng.dropout_mask(0, 0, out, 1 - 2.0**-40), "RNG-DROPOUT-3", np.bool_),
    "p < 0": (lambda out: fast.rng.dropout_mask(0, 0, out, -0.1), "RNG-DROPOUT-3", np.bool_),
    "p NaN": (lambda out: fast.rng.dropout_mask(0, 0, out, NAN), "RNG-DROPOUT-3", np.bool_),
}


@pytest.mark.parametrize("case", BAD_BOUNDS)
@pytest.mark.parametrize("length", [0, 9, 5000])
@pytest.mark.parametrize("wrap", WRAPS, ids=["ndarray", "memoryview", "subclass"])
def test_bounds(case: str, length: int, wrap: Callable[[Any], Any]) -> None:
    call, clause, stored = BAD_BOUNDS[case]
    out = np.ones(length, stored)
    with pytest.raises(InvalidBounds, match=f"^{clause}: ") as caught:
        call(wrap(out))
    assert caught.value.clause == clause
    assert (out == 1).all()


@pytest.mark.parametrize("p", [1.0, 1 - 2.0**-40, -1e-9, NAN, INF, 10**400])
def test_dropout_scale_bounds(p: float) -> None:
    with pytest.raises(InvalidBounds, match=r"^RNG-DROPOUT-3: p must lie in \[0, 1\)"):
        fast.rng.dropout_scale(p)


def test_randint_bounds_must_be_i64() -> None:
    out = np.ones(3, np.int64)
    for low, high in ((-(2**63) - 1, 0), (0, 2**63), (HUGE, HUGE + 1)):
        with pytest.raises(Overflow, match=r"^RNG-INT-2: (low|high) must lie in \[-2\^63, 2\^63\)"):
            fast.rng.randint_fill(0, out, low, high)
    for value in NO_INTEGERS:
        bad: Any = value
        with pytest.raises(InvalidInteger, match=r"^RNG-INT-2: low must be an integer"):
            fast.rng.randint_fill(0, out, bad, 10)
        with pytest.raises(InvalidInteger, match=r"^RNG-INT-2: high must be an integer"):
            fast.rng.randint_fill(0, out, 0, bad)
    assert (out == 1).all()
    low_numpy: Any = np.int8(2)
    fast.rng.randint_fill(0, out, low_numpy, 3)
    assert (out == 2).all()


def test_fan_in_must_be_u64() -> None:
    out = np.ones(3, np.float32)
    with pytest.raises(Overflow):
        fast.rng.kaiming_uniform_fill(0, out, 2**64)
    for value in NO_INTEGERS:
        bad: Any = value
        with pytest.raises(InvalidInteger):
            fast.rng.kaiming_uniform_fill(0, out, bad)
    assert (out == 1).all()
    greatest: Any = np.uint64(2**64 - 1)
    fast.rng.kaiming_uniform_fill(0, out, greatest)


def test_calls_of_the_wrong_shape() -> None:
    out: Any = np.ones(3, np.float32)
    calls: list[Callable[[], object]] = [
        lambda: fast.rng.gaussian_fill(1, out),  # type: ignore[call-arg]
        lambda: fast.rng.gaussian_fill(1, out, 1.0, 2.0),  # type: ignore[call-arg]
        lambda: fast.rng.gaussian_fill(1, out, 1.0, scale=1.0),  # type: ignore[misc]
        lambda: fast.rng.gaussian_fill(1, out, size=1.0),  # type: ignore[call-arg]
        lambda: fast.rng.at(),  # type: ignore[call-arg]
        lambda: fast.dtype.cast_array(DType.f32, DType.f16, out, out),  # type: ignore[call-arg]
        lambda: fast.dtype.cast_array(DType.f32, DType.f16, out, axis=0),  # type: ignore[call-arg]
    ]
    for call in calls:
        with pytest.raises(TypeError):
            call()
    assert (out == 1).all()


def test_keywords_reach_every_parameter() -> None:
    positional, named = np.zeros(5, np.float32), np.zeros(5, np.float32)
    fast.rng.normal_fill_at(1, 2, positional, 0.5, 2.0)
    fast.rng.normal_fill_at(std_dev=2.0, mean=0.5, out=named, first=2, seed=1)
    assert positional.tobytes() == named.tobytes()
    assert fast.rng.at(i=1, seed=2) == fast.rng.at(2, 1)
    given = np.array([1000.0, 0.5], np.float32)
    target = np.zeros(2, np.uint8)
    result = fast.dtype.cast_array(array=given, target=DType.f8_e4m3, source=DType.f32, saturate=True, out=target)
    assert result is target
    assert result.tolist() == [0x7E, 0x30]
    truth: Any = np.True_
    assert fast.dtype.cast_array(DType.f32, DType.f8_e4m3, given, saturate=truth, out=None).tolist() == [0x7E, 0x30]


def test_cast_bits_domain() -> None:
    for dtype, width in ((DType.bool, 1), (DType.u8, 8), (DType.i16, 16), (DType.f32, 32), (DType.f64, 64)):
        fast.dtype.cast_bits(dtype, DType.i8, 2**width - 1)
        for bits in (-1, 2**width, HUGE):
            with pytest.raises(Overflow, match=r"^BRIDGE-BITS-1: "):
                fast.dtype.cast_bits(dtype, DType.i8, bits)
        for bad in NO_INTEGERS:
            wrong: Any = bad
            with pytest.raises(InvalidInteger, match=r"^BRIDGE-BITS-1: "):
                fast.dtype.cast_bits(dtype, DType.i8, wrong)
