"""Tests of the soft float: every operation against the hardware, on patterns of all kinds."""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fucina.reference.softfloat import Soft32, Soft64, SoftFloat

Binary = Callable[[Any, Any], Any]

FORMATS: list[tuple[type[SoftFloat], type[np.generic], type[np.generic]]] = [
    (Soft32, np.float32, np.uint32),
    (Soft64, np.float64, np.uint64),
]


def operands(soft: type[SoftFloat], count: int, seed: int) -> list[int]:
    """Patterns: any, near each other, subnormal, and the special ones."""
    fmt, dice = soft.format, random.Random(seed)
    width = fmt.sign_shift + 1
    special = [0, 1, fmt.largest, fmt.overflow, fmt.nan, 1 << fmt.mantissa_bits, (1 << fmt.mantissa_bits) - 1]
    patterns = []
    for _ in range(count):
        kind = dice.randrange(4)
        if kind == 0:
            bits = dice.getrandbits(width)
        elif kind == 1:
            bits = (fmt.bias + dice.randrange(-30, 30)) << fmt.mantissa_bits | dice.getrandbits(fmt.mantissa_bits)
        elif kind == 2:
            bits = dice.getrandbits(dice.randrange(1, fmt.mantissa_bits + 2))
        else:
            bits = dice.choice(special)
        patterns.append(bits ^ dice.getrandbits(1) << fmt.sign_shift)
    return patterns


def same(soft: SoftFloat, bits: int) -> bool:
    """Whether two results agree, where all NaNs do."""
    wanted = type(soft).from_bits(bits)
    return soft.number.kind is wanted.number.kind and (soft.bits == bits or soft.number.kind.name == "NAN")


@pytest.mark.parametrize("operation", [operator.add, operator.sub, operator.mul, operator.truediv])
@pytest.mark.parametrize(("soft", "real", "unsigned"), FORMATS, ids=["f32", "f64"])
def test_arithmetic(soft: type[SoftFloat], real: type[Any], unsigned: type[Any], operation: Binary) -> None:
    first, second = operands(soft, 6000, 1), operands(soft, 6000, 2)
    with np.errstate(all="ignore"):
        results = operation(np.array(first, unsigned).view(real), np.array(second, unsigned).view(real))
    for a, b, wanted in zip(first, second, results.view(unsigned).tolist(), strict=True):
        assert same(operation(soft.from_bits(a), soft.from_bits(b)), wanted), (hex(a), hex(b), hex(wanted))


@pytest.mark.parametrize(("soft", "real", "unsigned"), FORMATS, ids=["f32", "f64"])
def test_square_root(soft: type[SoftFloat], real: type[Any], unsigned: type[Any]) -> None:
    patterns = operands(soft, 6000, 3)
    with np.errstate(all="ignore"):
        results = np.sqrt(np.array(patterns, unsigned).view(real)).view(unsigned).tolist()
    for bits, wanted in zip(patterns, results, strict=True):
        assert same(soft.from_bits(bits).sqrt(), wanted), (hex(bits), hex(wanted))


@pytest.mark.parametrize(("soft", "real", "unsigned"), FORMATS, ids=["f32", "f64"])
def test_order(soft: type[SoftFloat], real: type[Any], unsigned: type[Any]) -> None:
    first, second = operands(soft, 4000, 4), operands(soft, 4000, 5)
    second[::5] = first[::5]
    a, b = np.array(first, unsigned).view(real), np.array(second, unsigned).view(real)
    with np.errstate(all="ignore"):
        less, not_less = (a < b).tolist(), (a >= b).tolist()
    for i in range(len(first)):
        x, y = soft.from_bits(first[i]), soft.from_bits(second[i])
        assert ((x < y), (x >= y)) == (less[i], not_less[i]), (x, y)


def test_conversion_between_the_formats() -> None:
    patterns = operands(Soft64, 4000, 6)
    with np.errstate(all="ignore"):
        narrow = np.array(patterns, np.uint64).view(np.float64).astype(np.float32)
        wide = narrow.astype(np.float64).view(np.uint64).tolist()
    for bits, low, back in zip(patterns, narrow.view(np.uint32).tolist(), wide, strict=True):
        soft = Soft32.nearest(Soft64.from_bits(bits))
        assert same(soft, low)
        assert same(Soft64.nearest(soft), back)


def test_integers_ratios_and_decimals_are_rounded_once() -> None:
    dice = random.Random(7)
    for _ in range(2000):
        whole = dice.getrandbits(dice.randrange(1, 70)) - dice.getrandbits(60)
        assert Soft64.integer(whole).to_float() == float(whole)
        p, q = dice.getrandbits(dice.randrange(1, 80)), dice.getrandbits(40) + 1
        assert Soft64.ratio(0, p, q).to_float() == float(Fraction(p, q))
        text = f"{dice.choice(('', '-'))}{dice.getrandbits(40)}.{dice.getrandbits(30)}e{dice.randrange(-40, 30)}"
        assert Soft64.decimal(text).to_float() == float(text)
        exact = Fraction(text)
        assert Soft32.decimal(text).bits == Soft32.ratio(int(exact < 0), abs(exact.numerator), exact.denominator).bits


def test_floor() -> None:
    dice = random.Random(8)
    for _ in range(2000):
        x = dice.uniform(-1e6, 1e6) * dice.choice((1.0, 1e-6, 1e12))
        assert Soft64.from_float(x).floor() == math.floor(x)
