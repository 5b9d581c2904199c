"""Tests of what the K and iq4 block formats share: scales in six bits, searches, codes for the scale that is stored."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence

import pytest

from fucina.reference.blocks import iq4, k_scales, one_scale, q3_k, q6_k, q8_k
from fucina.reference.blocks import scale_and_minimum as sm
from fucina.reference.blocks.options import PLAIN
from fucina.reference.blocks.rounding import largest
from fucina.reference.softfloat import Soft32

ZERO, ONE = Soft32.integer(0), Soft32.integer(1)
INFINITY, NAN = Soft32.from_bits(0x7F800000), Soft32.from_bits(0x7FC00000)


def numbers(*values: float) -> list[Soft32]:
    return [Soft32.from_float(float(v)) for v in values]


def bits(values: Sequence[Soft32]) -> list[int]:
    return [v.bits for v in values]


# -- six bits


def test_k_scales_where_each_bit_lies() -> None:
    # scale 0 and 7, minimum 3 and 4: one of each half, all bits distinct
    scales, minima = [0b100101, 0, 0, 0, 0, 0, 0, 0b110110], [0, 0, 0, 0b101001, 0b011101, 0, 0, 0]
    packed = k_scales.pack(scales, minima)
    assert packed == bytes([0b100101, 0, 0, 0b11000000, 0b01000000, 0, 0, 0b101001, 0b11010000, 0, 0, 0b0110])
    assert k_scales.unpack(packed) == (scales, minima)


def test_k_scales_are_a_bijection() -> None:
    dice = random.Random(3)
    for _ in range(200):
        data = dice.randbytes(12)
        assert k_scales.pack(*k_scales.unpack(data)) == data


class Given(sm.Search):
    """A search that has found something already, group by group."""

    found: list[sm.Fit]

    def __call__(self, x: Sequence[Soft32], w: Sequence[Soft32]) -> sm.Fit:
        """Return the next of what was found."""
        return self.found.pop(0)


def test_k_scales_eight_bits_come_before_the_limit() -> None:
    search = Given(15, "-1.0", 20, sm.square)
    scales = numbers(63, -1, 31.5, 32.5, -190, 0, 1, 2)
    object.__setattr__(search, "found", [sm.Fit(s, ZERO, [7] * 32) for s in scales])
    head, codes = k_scales.fit([0] * 256, search)
    d, dmin, found, minima = k_scales.read(head)
    assert (d.to_float(), dmin.bits, minima) == (1.0, 0, [0] * 8)
    # -1 is 255 as a byte and ends as 63; -190 is 66 and does so, too; halves go to the even side
    assert found == [63, 63, 32, 32, 63, 0, 1, 2]
    # the codes of the search survive where the stored scale is zero
    assert codes[5 * 32 : 6 * 32] == [7] * 32
    assert codes[6 * 32 :] == [0] * 64


# -- scale and minimum


def test_scale_and_minimum_of_a_group_on_a_grid() -> None:
    x = numbers(*(0.5 * (i % 4) - 0.5 for i in range(16)))
    fit = sm.Search(3, "-0.5", 15, sm.magnitude)(x, [abs(v) for v in x])
    assert (fit.scale.to_float(), fit.minimum.to_float()) == (0.5, 0.5)
    assert fit.codes == [i % 4 for i in range(16)]


def test_scale_and_minimum_above_zero_the_minimum_is_zero() -> None:
    x = numbers(*(1.0 + i % 3 for i in range(16)))
    fit = sm.Search(3, "-0.5", 15, sm.magnitude)(x, [abs(v) for v in x])
    assert (fit.scale.to_float(), fit.minimum.is_zero) == (1.0, True)
    assert fit.codes == [1 + i % 3 for i in range(16)]


@pytest.mark.parametrize(("value", "minimum"), [(0.0, 0.0), (-3.0, 3.0), (-(2.0**-149), 2.0**-149)])
def test_scale_and_minimum_of_equal_values(value: float, minimum: float) -> None:
    x = numbers(*[value] * 16)
    fit = sm.Search(3, "-0.5", 15, sm.magnitude)(x, [abs(v) for v in x])
    assert fit.scale.bits == 0
    assert fit.minimum.to_float() == minimum
    assert fit.codes == [0] * 16


@pytest.mark.parametrize("last", [0, 15, 20])
def test_scale_and_minimum_the_last_step_is_taken(last: int) -> None:
    measured: list[Soft32] = []

    def error(v: Soft32) -> Soft32:
        measured.append(v)
        return abs(v)

    x = numbers(*(math.sin(i) for i in range(16)))
    sm.Search(3, "-0.5", last, error)(x, [abs(v) for v in x])
    # once for the start and once for each of the steps 0 to last, which all have two codes and more here
    assert len(measured) == 16 * (1 + last + 1)


def test_scale_and_minimum_a_further_step_never_raises_the_error() -> None:
    dice = random.Random(9)
    x = numbers(*(dice.gauss(0.0, 1.0) for _ in range(32)))
    w = sm.spread_weights(x)
    errors = []
    for last in range(-1, 21, 4):
        fit = sm.Search(15, "-1.0", last, sm.square)(x, w)
        errors.append(
            sum(
                w_i.to_float() * (fit.scale.to_float() * k - fit.minimum.to_float() - v.to_float()) ** 2
                for k, v, w_i in zip(fit.codes, x, w, strict=True)
            )
        )
    # the search adds in f32, this sum in f64
    assert all(later <= earlier * (1 + 1e-5) for earlier, later in itertools.pairwise(errors))
    assert errors[-1] < errors[0]


def test_spread_weights() -> None:
    x = numbers(*[3.0, -4.0] * 16)
    root = Soft32.from_float(12.5).sqrt()
    assert bits(sm.spread_weights(x)) == bits([root + Soft32.integer(3), root + Soft32.integer(4)] * 16)


def test_largest_passes_over_nan_and_below_zero() -> None:
    assert largest([NAN, *numbers(-1.0, 2.0), NAN, ONE]).to_float() == 2.0
    assert largest(numbers(-0.0, -1.0)).bits == 0
    assert largest([ONE, INFINITY]).bits == INFINITY.bits


def test_final_codes_with_a_minimum() -> None:
    fit = sm.Fit(ONE, ZERO, [3, 2, 1, 0])
    x = numbers(-1.0, 0.25, 0.75, 9.0)
    # (x + 2*0.5) / (0.5*1): 0, 2.5, 3.5, 20
    half = Soft32.from_float(0.5)
    assert sm.final_codes(x, fit, half, half, 1, 2, 15) == [0, 2, 4, 15]
    # a scale of zero, or one whose f16 field is zero, leaves the codes of the search
    assert sm.final_codes(x, fit, half, half, 0, 2, 15) == [3, 2, 1, 0]
    assert sm.final_codes(x, fit, ZERO, half, 1, 2, 15) == [3, 2, 1, 0]


def test_elements_with_a_minimum_keep_the_sign_of_zero() -> None:
    # 0*0 - 0*0 is +0; -0*0 - 0*0 is -0
    assert sm.elements(ZERO, ZERO, [1], [1], [0]) == [0]
    assert sm.elements(-ZERO, ZERO, [1], [1], [0]) == [0x80000000]
    assert sm.elements(ONE, ONE, [2, 3], [1, 4], [0, 5, 1, 2]) == bits(numbers(-1.0, 9.0, -1.0, 2.0))


# -- one scale

OneScale = Callable[[Sequence[Soft32]], tuple[Soft32, list[int]]]


@pytest.mark.parametrize(("search", "middle"), [(q3_k.search, 4), (q6_k.search, 32)])
def test_one_scale_of_a_group_on_a_grid(search: OneScale, middle: int) -> None:
    codes = [0, *((5 * i) % (2 * middle) for i in range(1, 16))]
    scale, found = search(numbers(*(-0.25 * (c - middle) for c in codes)))
    assert scale.to_float() == -0.25
    assert found == codes


@pytest.mark.parametrize("search", [q3_k.search, q6_k.search])
def test_one_scale_of_a_silent_group(search: OneScale) -> None:
    limit = one_scale.SILENT.bits
    for pattern, silent in [(0, True), (limit - 1, True), (1 << 31 | limit - 1, True), (limit, False)]:
        scale, codes = search([Soft32.from_bits(pattern)] * 16)
        assert (scale.bits == 0) == silent
        assert codes == [0] * 16  # silent or not: a peak above zero has the least code


def test_q3_k_no_sweep_makes_the_fit_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(4)
    improved = 0
    for _ in range(40):
        x = numbers(*(dice.uniform(-1.0, 1.0) for _ in range(16)))
        errors = []
        for sweeps in range(6):
            monkeypatch.setattr(q3_k, "SWEEPS", sweeps)
            scale, codes = q3_k.search(x)
            pairs = [(v.to_float(), scale.to_float() * (code - 4)) for v, code in zip(x, codes, strict=True)]
            errors.append(sum(v * v * (found - v) ** 2 for v, found in pairs))
        # the search adds in f32, this sum in f64
        assert all(later <= earlier * (1 + 1e-5) for earlier, later in itertools.pairwise(errors))
        improved += errors[-1] < errors[0]
    assert improved > 4


def test_final_codes_of_one_scale() -> None:
    half, x = Soft32.from_float(0.5), numbers(-9.0, -0.25, 0.75, 9.0)
    assert one_scale.final_codes(x, [1, 2, 3, 4], half, 1, 4) == [0, 4, 6, 7]
    assert one_scale.final_codes(x, [1, 2, 3, 4], half, -1, 4) == [7, 4, 2, 0]
    assert one_scale.final_codes(x, [1, 2, 3, 4], half, 0, 4) == [1, 2, 3, 4]


def test_elements_of_one_scale_keep_the_sign_of_zero() -> None:
    codes = [4, 3, 5, *[4] * 13, *[4] * 16]
    found = one_scale.elements(ONE, [2, -2], codes, 4)
    assert found[:3] == bits(numbers(0.0, -2.0, 2.0))
    assert found[16] == 0x80000000


def test_q8_k_limits_and_sums() -> None:
    x = [-1.0, 1.0, *[0.0] * 14, *[-1.0] * 16, *[0.0] * 224]
    block = q8_k.encode(bits(numbers(*x)), PLAIN)
    codes, sums = block[4:260], [int.from_bytes(block[i : i + 2], "little", signed=True) for i in range(260, 292, 2)]
    assert (codes[0], codes[1]) == (129, 127)  # the peak is -127 whatever its own sign
    assert sums == [0, -127 * 16, *[0] * 14]
    assert q8_k.encode([1] * 256, PLAIN) == bytes(292)  # -127 / 2^-149 is infinite


# -- iq4


def test_iq4_nearest_code_of_every_level_and_between() -> None:
    levels = [v.to_float() for v in iq4.LEVELS]
    for code, level in enumerate(levels):
        assert iq4.nearest_code(Soft32.from_float(level)) == code
    for code, (low, high) in enumerate(itertools.pairwise(levels)):
        middle = Soft32.from_float((low + high) / 2)
        assert iq4.nearest_code(middle) == code + 1
        assert iq4.nearest_code(middle - Soft32.from_float(2.0**-10)) == code


def test_iq4_nearest_code_at_the_ends() -> None:
    assert [iq4.nearest_code(v) for v in (INFINITY, -INFINITY, NAN)] == [15, 0, 15]
    assert [iq4.nearest_code(v) for v in numbers(-127.5, 113.5, 1e30, -1e30, 0.0, -0.0)] == [0, 15, 15, 0, 8, 8]


def test_iq4_reciprocal() -> None:
    assert [iq4.reciprocal(v).bits for v in (ZERO, -ZERO)] == [0, 0]
    assert iq4.reciprocal(Soft32.integer(4)).to_float() == 0.25
    assert not iq4.reciprocal(NAN).is_finite


def test_iq4_group_scale_of_levels() -> None:
    levels = [v.to_float() for v in iq4.LEVELS]
    x = numbers(*(2.0 * level for level in levels * 2))
    # without the search the peak has the level -127, and all the others fall on theirs
    scale, codes = iq4.group_scale(x, search=False)
    assert (scale.to_float(), codes) == (2.0, [*range(16)] * 2)
    # the search starts from the other end and comes back
    scale, codes = iq4.group_scale(x, search=True)
    assert scale.to_float() == 2.0
    assert codes != [*range(16)] * 2


def test_iq4_degenerate_group() -> None:
    below = Soft32.from_bits(iq4.SILENT.bits - 1)
    assert [s.bits for s, _ in (iq4.group_scale([below] * 32, search) for search in (False, True))] == [0, 0]
    assert iq4.group_scale([iq4.SILENT] * 32, search=True)[0].bits != 0
