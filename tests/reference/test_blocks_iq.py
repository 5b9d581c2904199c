"""Tests of what the iq encoders share: codebooks and their neighbour lists, signs, scale codes, splits."""

from __future__ import annotations

import struct
import zlib
from itertools import product

import numpy as np
import pytest

from fucina.reference.blocks import CODECS
from fucina.reference.blocks.codebook import Codebook, codebook, nearest_point, snap
from fucina.reference.blocks.energy import block_energy, block_weights
from fucina.reference.blocks.group_scales import group_scales
from fucina.reference.blocks.iq1 import ascending, three_level_fit
from fucina.reference.blocks.iq2_xxs import one_sided_scale
from fucina.reference.blocks.options import PLAIN, Options, Unencodable
from fucina.reference.blocks.rounding import NAN_F32, ONE, ZERO, soft, wide
from fucina.reference.blocks.signs import even_signs, parity_signs, signed, split_signs
from fucina.reference.softfloat import Soft32
from fucina.spec.types import DType

IMPORTANCE = [DType.iq1_s, DType.iq1_m, DType.iq2_xxs, DType.iq2_xs]
IQ = [*IMPORTANCE, DType.iq2_s, DType.iq3_xxs, DType.iq3_s]
ONES = [0x3F800000] * 256


def numbers(*values: float) -> list[Soft32]:
    return [Soft32.from_float(float(v)) for v in values]


def patterns(values: np.ndarray) -> list[int]:
    bits: list[int] = values.astype(np.float32).view(np.uint32).tolist()
    return bits


def floats(bits: list[int]) -> np.ndarray:
    return np.array(bits, np.uint32).view(np.float32)


def rows(count: int, seed: int) -> list[np.ndarray]:
    dice = np.random.default_rng(seed)
    return [dice.standard_normal(256).astype(np.float32) for _ in range(count)]


# -- codebooks


@pytest.mark.parametrize(
    ("name", "digits", "with_lengths", "absent", "entries", "shortest", "longest", "crc"),
    [
        ("iq2xxs_grid", 3, True, 6305, 113157, 2, 150, 0xAB1BEBA1),
        ("iq2xs_grid", 3, True, 6049, 181721, 2, 292, 0xEE4E63EA),
        ("iq2s_grid", 3, True, 5537, 44716, 1, 70, 0x9F608CD2),
        ("iq1s_grid", 3, True, 4513, 327721, 12, 205, 0xAF9A5737),
        ("iq3xxs_grid", 8, False, 3840, 18985, 2, 36, 0x16E8DBEE),
        ("iq3s_grid", 8, False, 3584, 24733, 3, 38, 0xDF32439B),
    ],
)
def test_neighbour_lists(
    name: str, digits: int, with_lengths: bool, absent: int, entries: int, shortest: int, longest: int, crc: int
) -> None:
    book = codebook(name)
    keys = [levels[::-1] for levels in product(range(digits), repeat=len(book.levels[0]))]
    assert [book.key(levels) for levels in keys] == sorted(book.key(levels) for levels in keys)
    lists = [book.neighbours(levels) for levels in keys if levels not in book.index_of]
    sizes = [len(found) for found in lists]
    assert (len(lists), sum(sizes), min(sizes), max(sizes)) == (absent, entries, shortest, longest)
    words = [word for found in lists for word in ((len(found), *found) if with_lengths else found)]
    assert zlib.crc32(struct.pack(f"<{len(words)}H", *words)) == crc


@pytest.mark.parametrize("name", ["iq2xxs_grid", "iq2xs_grid", "iq2s_grid", "iq1s_grid", "iq3xxs_grid", "iq3s_grid"])
def test_keys_ascend_with_the_index(name: str) -> None:
    book = codebook(name)
    keys = [book.key(levels) for levels in book.levels]
    assert keys[0] == 0
    assert keys == sorted(set(keys))


TOY = Codebook([(0, 0), (2, 0), (2, 2)], 4, 1)  # with (1, 0) between the first two points


def test_the_first_of_equally_good_points_is_chosen() -> None:
    assert TOY.neighbours((1, 0)) == (0, 1)
    scaled, ones = numbers(1, 3, 5), [ONE, ONE]
    assert nearest_point(TOY, (1, 0), scaled, numbers(3, 1), ones) == 0
    assert nearest_point(TOY, (1, 0), scaled, numbers(3.001, 1), ones) == 1
    # only neighbours are looked at, however good another point would be
    assert nearest_point(TOY, (1, 0), scaled, numbers(4, 5), ones) == 1


def test_snapping_leaves_a_point_alone() -> None:
    scaled, ones = numbers(1, 3, 5), [ONE, ONE]
    assert snap(TOY, (2, 2), scaled, numbers(1, 1), ones) == ((2, 2), True)
    assert snap(TOY, (1, 0), scaled, numbers(5, 1), ones) == ((2, 0), False)


@pytest.mark.parametrize("target", [0x7F7FFFFF, 0x7F800000, NAN_F32])
def test_no_finite_error_rejects(target: int) -> None:
    with pytest.raises(Unencodable):
        nearest_point(TOY, (1, 0), numbers(1, 3, 5), soft([target, target]), [ONE, ONE])


# -- signs


def test_split_signs() -> None:
    magnitudes, signs = split_signs(soft([0x80000000, 0, 0xBF800000, 0x3F800000, 0x80000001, 0, 0, 0]))
    assert signs == 0b00010100
    assert [v.bits for v in magnitudes] == [0x80000000, 0, 0x3F800000, 0x3F800000, 1, 0, 0, 0]


def test_even_signs_turns_the_first_of_the_least() -> None:
    x, w = numbers(-3, 2, -2, 5, 2, 2, -2, 9), [ONE] * 8
    magnitudes, signs = even_signs(x, w)
    assert signs == 0b01000111
    assert [v.to_float() for v in magnitudes] == [3, -2, 2, 5, 2, 2, 2, 9]
    # weights decide, too
    _, signs = even_signs(x, [*[ONE] * 7, Soft32.from_float(1e-3)])
    assert signs == 0b11000101
    # an even number stays
    assert even_signs(numbers(-1, -1, 0, 1, 1, 1, 1, 1), w)[1] == 0b11


def test_parity_signs_are_even() -> None:
    assert [parity_signs(code) & 127 for code in range(128)] == list(range(128))
    assert all(parity_signs(code).bit_count() % 2 == 0 for code in range(128))


def test_signed_zero() -> None:
    assert signed([ZERO, ONE], 0b01) == [0x80000000, 0x3F800000]


# -- scales and weights


def test_group_scales() -> None:
    found = group_scales(numbers(31, 0, 1, 15, 2), 31, 15)
    assert found is not None
    assert found[0].to_float() == 1
    assert found[1] == (15, 0, 0, 7, 0)  # 2 lies between 1 and 3: half to even
    assert group_scales([ZERO, -ZERO], 31, 15) is None


def test_group_scales_of_a_reciprocal_that_overflows() -> None:
    found = group_scales(soft([1, 0]), 31, 15)
    assert found is not None
    assert found[1] == (0, 0)


def test_energy_and_weights() -> None:
    x = numbers(*([3.0] + [0.0] * 255))
    assert block_energy(x, 1).to_float() == 9 / 256
    assert block_energy(x, 2).to_float() == 18 / 256
    plain = [v.bits for v in block_weights(x, 1, None)]
    assert plain == [v.bits for v in block_weights(x, 1, ONES)]
    assert plain[0] == Soft32.from_float(9.0 + 9 / 256).sqrt().bits
    doubled = block_weights(x, 1, [0x40000000] * 256)
    assert [v.to_float() for v in doubled] == [2 * v for v in floats(plain).tolist()]


# -- fits


def test_ascending_is_stable() -> None:
    assert ascending(soft([0, 0xBF800000, 0x80000000, 0x3F800000, 0, 0xC0000000])) == [5, 1, 0, 2, 4, 3]


def test_three_level_fit_turns_a_negative_scale_over() -> None:
    x = numbers(4, -1, 2)
    fit = three_level_fit(x, lambda i, j: [(-ONE, ONE) if (i, j) == (1, 2) else (ZERO, ONE)], [(0, 1)])
    assert fit is not None
    assert fit.scale.to_float() == 1
    assert fit.levels == (0, 2, 1)
    assert fit.shifts == (1, 0)
    assert three_level_fit(x, lambda i, j: [(ONE, ZERO)], [(0,)]) is None


def test_one_sided_scale_of_exact_multiples() -> None:
    v = numbers(*[0.25 * (k % 5) for k in range(32)])
    assert one_sided_scale(v, [ONE] * 32).to_float() == 0.25
    assert one_sided_scale([ZERO] * 32, [ONE] * 32).is_zero


# -- whole blocks


@pytest.mark.parametrize("dtype", IQ, ids=lambda dtype: dtype.name)
def test_encoding_resembles_its_input(dtype: DType) -> None:
    limit = {"iq1": 0.65, "iq2": 0.45, "iq3": 0.25}[dtype.name[:3]]
    for row in rows(1, 7):
        error = floats(CODECS[dtype].decode(CODECS[dtype].encode(patterns(row), PLAIN))) - row
        assert np.sqrt((error**2).mean() / (row**2).mean()) < limit


@pytest.mark.parametrize("dtype", IQ, ids=lambda dtype: dtype.name)
def test_zeros_of_either_sign_give_zero_bytes(dtype: DType) -> None:
    assert not any(CODECS[dtype].encode([0, 0x80000000] * 128, PLAIN))


@pytest.mark.parametrize("dtype", IQ, ids=lambda dtype: dtype.name)
def test_overflow_rejects_or_is_silent(dtype: DType) -> None:
    # with both signs the sums of iq1 and iq2_xxs are NaN, which no candidate survives: the groups are silent
    codec, row = CODECS[dtype], rows(1, 3)[0] * np.float32(1e35)
    if dtype in (DType.iq1_s, DType.iq1_m, DType.iq2_xxs):
        assert not any(codec.encode(patterns(row), PLAIN))
        row = np.full(256, 1e35)  # here they are infinite, and their quotient is no scale
    with pytest.raises(Unencodable):
        codec.encode(patterns(row), PLAIN)


def test_iq3_s_writes_every_group_at_its_own_place() -> None:
    codec = CODECS[DType.iq3_s]
    row = rows(1, 11)[0]
    row[:32] = 0
    front = codec.encode(patterns(row), PLAIN)
    back = codec.encode(patterns(np.roll(row, -32)), PLAIN)
    np.testing.assert_array_equal(floats(codec.decode(front))[32:], floats(codec.decode(back))[:-32])
    assert not any(front[2:10] + front[66:67] + front[74:78])


@pytest.mark.parametrize("dtype", IMPORTANCE, ids=lambda dtype: dtype.name)
def test_importance_of_ones_changes_nothing(dtype: DType) -> None:
    row = patterns(rows(1, 5)[0])
    assert CODECS[dtype].encode(row, PLAIN) == CODECS[dtype].encode(row, Options(importance=ONES))


@pytest.mark.parametrize("dtype", IMPORTANCE, ids=lambda dtype: dtype.name)
def test_importance_lowers_the_error_where_it_is_high(dtype: DType) -> None:
    codec = CODECS[dtype]
    important = np.arange(256) % 4 == 0
    weights = patterns(np.where(important, 50.0, 0.02))
    with_weights = without = 0.0
    for row in rows(3, 13):
        for importance in (None, weights):
            error = floats(codec.decode(codec.encode(patterns(row), Options(importance=importance)))) - row
            if importance is None:
                without += float((error[important] ** 2).sum())
            else:
                with_weights += float((error[important] ** 2).sum())
    assert with_weights < 0.9 * without


@pytest.mark.parametrize("dtype", [DType.iq2_xxs, DType.iq2_xs], ids=lambda dtype: dtype.name)
def test_iq2_without_any_importance(dtype: DType) -> None:
    # iq2_xxs finds no first scale and stays silent; iq2_xs keeps its starting value, all levels 0
    block = CODECS[dtype].encode(patterns(rows(1, 17)[0]), Options(importance=[0] * 256))
    if dtype is DType.iq2_xxs:
        assert not any(block)
    else:
        assert wide(int.from_bytes(block[:2], "little")).to_float() > 0
        assert all(int.from_bytes(block[at : at + 2], "little") & 511 == 0 for at in range(2, 66, 2))


@pytest.mark.parametrize("dtype", [DType.iq1_s, DType.iq1_m], ids=lambda dtype: dtype.name)
def test_iq1_importance_on_zeros_only(dtype: DType) -> None:
    # every split has A = 0; the first one, all levels 2, is taken with scale 0: its index stays, all else is zero
    row = rows(1, 19)[0]
    row[::2] = 0
    block = CODECS[dtype].encode(patterns(row), Options(importance=[0x3F800000, 0] * 128))
    index = codebook("iq1s_grid").index_of[(2,) * 8]
    if dtype is DType.iq1_s:
        high = sum(index >> 8 << 3 * k for k in range(4)).to_bytes(2, "little")
        assert block == bytes(2) + bytes([index & 255]) * 32 + high * 8
    else:
        assert block == bytes([index & 255]) * 32 + bytes([(index >> 8) * 17]) * 16 + bytes(8)


@pytest.mark.parametrize("dtype", IMPORTANCE, ids=lambda dtype: dtype.name)
def test_extreme_importance_is_encoded_or_rejected(dtype: DType) -> None:
    dice = np.random.default_rng(23)
    size = {DType.iq1_s: 50, DType.iq1_m: 56, DType.iq2_xxs: 66, DType.iq2_xs: 74}[dtype]
    for row in rows(2, 29):
        importance = [int(b) for b in dice.integers(0, 0x7F800000, 256)]
        try:
            block = CODECS[dtype].encode(patterns(row), Options(importance=importance))
        except Unencodable:
            continue
        assert len(block) == size
