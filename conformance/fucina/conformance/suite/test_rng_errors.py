"""Parameters outside their domain: the documented exception, the clause, the value, and an untouched output."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import assert_raises, assert_same, f32, f32_bits, sentinel
from fucina.conformance.suite.fills import ELEMENTWISE, FILLS, Fill, by_name
from fucina.conformance.suite.hostile import Acting, Posing
from fucina.spec.errors import DTypeMismatch, InvalidBounds, InvalidInteger, Overflow, ReadOnlyStorage

NO_INTEGER: tuple[Any, ...] = (
    *(None, True, False, 1.0, 1.5, float("nan"), "3", b"3", 1 + 0j),
    *(Decimal(3), Fraction(3), [3], np.float64(3), np.True_, np.timedelta64(3, "s"), Posing(int)),
)
NOT_U64: tuple[Any, ...] = (-1, -(1 << 63), 1 << 64, (1 << 64) + 1, 1 << 70, np.int64(-1), np.int8(-128))
NO_REAL: tuple[Any, ...] = (
    *(None, True, np.True_, "1.0", b"1", 1 + 0j, np.complex64(1), [1.0], np.array([1.0, 2.0]), np.timedelta64(3, "s")),
    *(np.timedelta64(3), Posing(float), Posing(int), Posing(np.float32)),
)

REAL_PARAMETERS = [(f, i) for f in FILLS for i, name in enumerate(f.names) if name not in ("low", "high", "fan_in")]
REAL_IDS = [f"{f}-{f.names[i]}" for f, i in REAL_PARAMETERS]


def _with(fill: Fill, place: int, value: Any) -> tuple[Any, ...]:
    return (*fill.values[:place], value, *fill.values[place + 1 :])


def _shown(value: Any) -> tuple[str, ...]:
    # an integer of more than 64 bits may be described instead
    return (str(value),) if isinstance(value, int | np.integer) and not isinstance(value, bool) else ()


@clause("RNG-SEED-1", "RNG-OUT-2", "ERR-STATE-1", "ERR-MSG-1")
@pytest.mark.parametrize("fill", FILLS, ids=str)
def test_seed_is_no_integer(impl: Any, fill: Fill) -> None:
    for seed in NO_INTEGER:
        out = sentinel(9, fill.format)
        assert_raises(InvalidInteger, "RNG-SEED-1", fill.bound(impl, seed, out), out=out, what=f"{fill}, seed={seed!r}")


@clause("RNG-SEED-1", "RNG-OUT-2", "ERR-STATE-1", "ERR-MSG-1")
@pytest.mark.parametrize("fill", FILLS, ids=str)
def test_seed_out_of_range(impl: Any, fill: Fill) -> None:
    for seed in NOT_U64:
        out, shows = sentinel(9, fill.format), _shown(seed)
        call = fill.bound(impl, seed, out)
        assert_raises(Overflow, "RNG-SEED-1", call, shows=shows, out=out, what=f"{fill}, seed={seed!r}")


@clause("RNG-SEED-1", "RNG-OUT-2", "ERR-STATE-1", "ERR-MSG-1")
@pytest.mark.parametrize("fill", ELEMENTWISE, ids=str)
def test_first_is_no_index(impl: Any, fill: Fill) -> None:
    for first in NO_INTEGER:
        out = sentinel(9, fill.format)
        call = fill.bound(impl, 1, out, first=first)
        assert_raises(InvalidInteger, "RNG-SEED-1", call, out=out, what=f"{fill}, first={first!r}")
    for first in NOT_U64:
        out, shows = sentinel(9, fill.format), _shown(first)
        call = fill.bound(impl, 1, out, first=first)
        assert_raises(Overflow, "RNG-SEED-1", call, shows=shows, out=out, what=f"{fill}, first={first!r}")


@clause("RNG-SEED-1", "RNG-AT-1", "RNG-STREAM-1", "ERR-MSG-1")
def test_arguments_of_the_stream(impl: Any) -> None:
    for bad in NO_INTEGER:
        assert_raises(InvalidInteger, "RNG-SEED-1", partial(impl.rng.at, bad, 0), what=f"at({bad!r}, 0)")
        assert_raises(InvalidInteger, "RNG-SEED-1", partial(impl.rng.at, 0, bad), what=f"at(0, {bad!r})")
        assert_raises(InvalidInteger, "RNG-SEED-1", partial(impl.rng.splitmix64, bad), what=f"state {bad!r}")
    for bad in NOT_U64:
        shows = _shown(bad)
        assert_raises(Overflow, "RNG-SEED-1", partial(impl.rng.at, bad, 0), shows=shows, what=f"at({bad}, 0)")
        assert_raises(Overflow, "RNG-SEED-1", partial(impl.rng.at, 0, bad), shows=shows, what=f"at(0, {bad})")
        assert_raises(Overflow, "RNG-SEED-1", partial(impl.rng.splitmix64, bad), shows=shows, what=f"state {bad}")


@clause("NUM-PARAM-1", "RNG-OUT-2", "ERR-STATE-1", "ERR-MSG-1", "ERR-TYPE-1")
@pytest.mark.parametrize(("fill", "place"), REAL_PARAMETERS, ids=REAL_IDS)
def test_parameter_is_no_real_number(impl: Any, fill: Fill, place: int) -> None:
    for value in NO_REAL:
        out = sentinel(9, fill.format)
        call = fill.bound(impl, 1, out, *_with(fill, place, value))
        assert_raises(DTypeMismatch, "NUM-PARAM-1", call, out=out, what=f"{fill}, {fill.names[place]}={value!r}")


@clause("RNG-UNIF-3", "RNG-OUT-2", "ERR-STATE-1", "ERR-MSG-1")
@pytest.mark.parametrize("name", ["uniform_fill", "uniform_fill_at"])
def test_uniform_bounds(impl: Any, name: str) -> None:
    inf, nan, fill = float("inf"), float("nan"), by_name(name)
    for lo, hi in (
        (1.0, 1.0),
        (2.0, 1.0),
        (0.0, -0.0),
        (-0.0, 0.0),
        (nan, 1.0),
        (0.0, nan),
        (nan, nan),
        (0.0, inf),
        (-inf, 0.0),
        (-inf, inf),
        (inf, inf),
        (0.0, 3.5e38),  # rounds to an infinity
        (-(10**400), 0),
        (1.0, 1.0 + 2.0**-30),  # rounds to 1
        (0.0, 2.0**-151),  # rounds to 0
    ):
        for n in (0, 9):
            out = sentinel(n, fill.format)
            call = fill.bound(impl, 1, out, lo, hi)
            what = f"lo={lo!r:.9}, hi={hi!r}"
            assert_raises(InvalidBounds, "RNG-UNIF-3", call, shows=("lo", "hi"), out=out, what=what)
    error = assert_raises(InvalidBounds, "RNG-UNIF-3", fill.bound(impl, 1, fill.empty(3), 5.0, 2.5), shows=(5.0, 2.5))
    assert isinstance(error, ValueError)


@clause("RNG-KAIMING-2", "RNG-OUT-2", "ERR-STATE-1", "ERR-MSG-1")
@pytest.mark.parametrize("name", ["kaiming_uniform_fill", "kaiming_uniform_fill_at"])
def test_fan_in(impl: Any, name: str) -> None:
    fill = by_name(name)
    ids = "RNG-KAIMING-2"
    for n in (0, 9):
        out = sentinel(n, fill.format)
        assert_raises(InvalidBounds, "RNG-KAIMING-2", fill.bound(impl, 1, out, 0), shows=(0,), out=out, what="fan_in=0")
        for bad in NO_INTEGER:
            assert_raises(InvalidInteger, ids, fill.bound(impl, 1, out, bad), out=out, what=f"fan_in={bad!r}")
        for bad in (1 << 64, 1 << 70):
            assert_raises(Overflow, ids, fill.bound(impl, 1, out, bad), shows=(bad,), out=out, what=f"fan_in={bad}")
        below: tuple[Any, ...] = (-1, np.int64(-5), -(1 << 70))
        for bad in below:
            call = fill.bound(impl, 1, out, bad)
            assert_raises(InvalidBounds, "RNG-KAIMING-2", call, shows=(bad,), out=out, what=f"fan_in={bad}")


@clause("RNG-INT-2", "RNG-OUT-2", "ERR-STATE-1", "ERR-MSG-1")
@pytest.mark.parametrize("name", ["randint_fill", "randint_fill_at"])
def test_randint_bounds(impl: Any, name: str) -> None:
    fill = by_name(name)
    for low, high in ((5, 5), (6, 5), (0, 0), ((1 << 63) - 1, -(1 << 63)), (-(1 << 63), -(1 << 63))):
        for n in (0, 9):
            out = sentinel(n, fill.format)
            call = fill.bound(impl, 1, out, low, high)
            assert_raises(InvalidBounds, "RNG-INT-2", call, shows=(f"low={low}", f"high={high}"), out=out)
    for place in (0, 1):
        for bad in NO_INTEGER:
            out = sentinel(9, fill.format)
            call = fill.bound(impl, 1, out, *_with(fill, place, bad))
            assert_raises(InvalidInteger, "RNG-INT-2", call, out=out, what=f"{fill.names[place]}={bad!r}")
        for bad in (1 << 63, -(1 << 63) - 1, 1 << 64, -(1 << 70)):
            out = sentinel(9, fill.format)
            call = fill.bound(impl, 1, out, *_with(fill, place, bad))
            assert_raises(Overflow, "RNG-INT-2", call, shows=(bad,), out=out, what=f"{fill.names[place]}={bad}")
    fill.into(impl, 1, fill.empty(3), np.int8(-4), np.uint64(4))


@clause("RNG-DROPOUT-3", "RNG-OUT-2", "ERR-STATE-1", "ERR-MSG-1")
def test_dropout_probability(impl: Any) -> None:
    fill = by_name("dropout_mask")
    special = (float("nan"), float("inf"), float("-inf"), 10**400)
    outside: tuple[Any, ...] = (1.0, 1, 1.5, -0.1, -(2.0**-149), 1 - 2.0**-30, *special)
    for p in outside:
        for n in (0, 9):
            out = sentinel(n, fill.format)
            assert_raises(InvalidBounds, "RNG-DROPOUT-3", fill.bound(impl, 1, out, p), out=out, what=f"p={p!r:.9}")
        assert_raises(InvalidBounds, "RNG-DROPOUT-3", partial(impl.rng.dropout_scale, p), what=f"p={p!r:.9}")
    assert_raises(InvalidBounds, "RNG-DROPOUT-3", lambda: impl.rng.dropout_scale(1.5), shows=("p", 1.5))
    for p in NO_REAL:
        assert_raises(DTypeMismatch, "NUM-PARAM-1", partial(impl.rng.dropout_scale, p), what=f"p={p!r}")
    assert_same(impl.rng.dropout_scale(-(2.0**-151)), 1.0, what="rounds to -0", clause="RNG-DROPOUT-3")


@clause("NUM-PARAM-1")
def test_real_parameters_are_rounded_to_f32(impl: Any) -> None:
    # with std_dev 0 a normal fill returns its mean, rounded on entry, and nothing else
    def entered(value: Any) -> int:
        return f32_bits(by_name("normal_fill")(impl, 1, 1, value, 0.0)[0])

    for value in (1.0, 0.1, 1 / 3, -1e-40, 2.0**-150 * 1.5, 2.0**-151, 3.4028235677973366e38, 3.4e38, 1 + 2.0**-24):
        expected = f32_bits(value)
        got = entered(value)
        assert got == expected or (f32(expected) == 0 and got & 0x7FFFFFFF == 0), f"NUM-PARAM-1: {value!r}: {got:#x}"
    with np.errstate(over="ignore"):
        kinds = (np.float16(0.3), np.float32(0.3), np.float64(0.3), np.int8(-3), np.uint64(1 << 63))
        for number in kinds:
            assert entered(number) == f32_bits(float(number)), f"NUM-PARAM-1: {number!r} of {type(number).__name__}"
    for integer, rounded in (
        (3, 3.0),
        (1 << 24 | 1, 16777216.0),
        ((1 << 24) + 3, 16777220.0),
        ((1 << 60) + (1 << 36) + 1, 2.0**60),  # by way of f64, which drops the last bit and leaves a tie
        (10**400, float("inf")),
        (-(10**400), float("-inf")),
    ):
        assert entered(integer) == f32_bits(rounded), f"NUM-PARAM-1: the int {integer!r:.30}"


@clause("NUM-PARAM-1")
@pytest.mark.parametrize(("fill", "place"), REAL_PARAMETERS, ids=REAL_IDS)
def test_every_real_parameter_is_rounded(impl: Any, fill: Fill, place: int) -> None:
    plain = fill.values[place]
    near = plain + 2.0**-40
    assert f32_bits(near) == f32_bits(plain)
    got = fill(impl, 6, 60, *_with(fill, place, near))
    assert got.tobytes() == fill(impl, 6, 60).tobytes(), f"NUM-PARAM-1: {fill}, {fill.names[place]}={near!r}"
    for number in (np.float32(plain), np.float64(plain), np.float16(plain)):
        got = fill(impl, 6, 60, *_with(fill, place, number))
        assert got.tobytes() == fill(impl, 6, 60).tobytes(), f"NUM-PARAM-1: {fill.names[place]}={number!r}"


@clause("RNG-OUT-1", "RNG-OUT-2", "ERR-STATE-1")
@pytest.mark.parametrize("fill", FILLS, ids=str)
def test_memory_is_looked_at_after_every_other_argument(impl: Any, fill: Fill) -> None:
    # __index__ is code of the caller's: what it does to out must not escape the checks
    integers = [i for i, name in enumerate(fill.names) if name in ("fan_in", "low", "high")]
    for place in ("seed", *(["first"] if fill.counted else []), *integers):
        out = sentinel(9, fill.format)
        lock = partial(out.setflags, write=False)
        values = [Acting(lock, value) if i == place else value for i, value in enumerate(fill.values)]
        seed, first = Acting(lock, 1) if place == "seed" else 1, Acting(lock, 2) if place == "first" else 2
        call = fill.bound(impl, seed, out, *values, first=first)
        assert_raises(ReadOnlyStorage, "RNG-OUT-1", call, out=out, what=f"{fill}, out is locked by {place}")


@clause("NUM-PARAM-1")
def test_a_subclass_is_the_number_that_it_holds(impl: Any) -> None:
    class Whole(int):
        def __int__(self) -> int:
            return 9

        def __float__(self) -> float:
            return 9.0

        def __index__(self) -> int:
            return 9

    class Real(float):
        def __float__(self) -> float:
            return 9.0

    class Wide(np.float64):
        def __float__(self) -> float:
            return 9.0

    class Narrow(np.float32):
        def __float__(self) -> float:
            return 9.0

    for value in (Whole(2), Real(2.0), Wide(2.0), Narrow(2.0)):
        assert_same(impl.dtype.f32_to_bf16(value), 0x4000, what=type(value).__name__)
