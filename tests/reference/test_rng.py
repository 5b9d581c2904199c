"""Tests of the reference's own joints in the chapter rng; the suite holds it to the clauses and the vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fucina.reference as reference
from fucina.reference.gaussian import COS, LN, SIN, fast_pair
from fucina.reference.softfloat import Soft32
from fucina.reference.streams import unit_closed, unit_half_open, unit_open
from fucina.spec.errors import InvalidBounds, InvalidInteger, Overflow, UnsupportedView

rng: Any = reference.rng  # the tests pass what a type checker refuses

TOP = 2**64 - 1


def test_unit_numbers() -> None:
    assert (unit_closed(0).to_float(), unit_closed(TOP).to_float()) == (2.0**-53, 1.0)
    assert (unit_half_open(2047).to_float(), unit_half_open(TOP).to_float()) == (0.0, 1.0 - 2.0**-53)
    assert (unit_open(0).to_float(), unit_open(TOP).to_float()) == (2.0**-54, 1.0 - 2.0**-53)
    # from 2^52 on the half is a tie, which goes to the even neighbour
    assert [unit_open((2**52 + i) << 11).to_float() for i in (0, 1)] == [0.5, 0.5 + 2.0**-52]


def test_fast_pair_agrees_with_the_same_formula_on_the_hardware() -> None:
    f = np.float32
    for i in range(300):
        a, b = rng.at(77, 2 * i), rng.at(77, 2 * i + 1)
        bits = int(f(((a >> 11) + 1) * 2.0**-53).view(np.uint32))
        e, m = (bits >> 23) - 126, np.uint32(bits & 0x7FFFFF | 126 << 23).view(f)
        if m < f(0.7071067811865476):
            e, m = e - 1, m + m
        x = m - f(1)
        z = x * x
        p = f(0)
        for coefficient in LN:
            p = p * x + f(coefficient.to_float())
        y = x * z * p + f(e) * f(-2.12194440e-4)
        ln = x + (y - f(0.5) * z) + f(e) * f(0.693359375)
        r = np.sqrt(f(-2) * ln)
        t = f((b >> 11) * 2.0**-53) * f(4)
        j = int(np.floor(t + f(0.5)))
        g = (t - f(j)) * f(1.5707963267948966)
        z = g * g
        s0, s1, s2 = (f(k.to_float()) for k in SIN)
        c0, c1, c2 = (f(k.to_float()) for k in COS)
        sine = g + g * z * ((s0 * z + s1) * z + s2)
        cosine = (f(1) - f(0.5) * z) + z * z * ((c0 * z + c1) * z + c2)
        cosine, sine = [(cosine, sine), (-sine, cosine), (-cosine, -sine), (sine, -cosine)][j % 4]
        got = fast_pair(a, b, Soft32.integer(3))
        assert [v.bits for v in got] == [int((r * v * f(3)).view(np.uint32)) for v in (cosine, sine)]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda out: rng.gaussian_fill(-1, out, 1.0), Overflow),
        (lambda out: rng.gaussian_fill(True, out, 1.0), InvalidInteger),
        (lambda out: rng.gaussian_fill_at(0, 2**64 - 3, out, 1.0), Overflow),
        (lambda out: rng.gumbel_fill_at(0, 1.0, out), InvalidInteger),
        (lambda out: rng.uniform_fill(0, out, 1.0, 1.0), InvalidBounds),
        (lambda out: rng.uniform_fill(0, out, float("nan"), 1.0), InvalidBounds),
        (lambda out: rng.uniform_fill(0, out, 0.0, 1e39), InvalidBounds),
        (lambda out: rng.kaiming_uniform_fill(0, out, 0), InvalidBounds),
        (lambda out: rng.kaiming_uniform_fill(0, out, np.int64(-5)), InvalidBounds),
        (lambda out: rng.kaiming_uniform_fill(0, out, 2**64), Overflow),
        (lambda out: rng.normal_fill(0, out, "0", 1.0), TypeError),
        (lambda out: rng.gumbel_fill(0, out[::2]), UnsupportedView),
        (lambda out: rng.randint_fill(0, out.view(np.int64), 2, 2), InvalidBounds),
        (lambda out: rng.randint_fill(0, out.view(np.int64), 0, 2**63), Overflow),
        (lambda out: rng.dropout_mask(0, 0, out.view(np.bool_), 1.0), InvalidBounds),
        (lambda out: rng.dropout_mask(0, 0, out.view(np.bool_), -0.1), InvalidBounds),
        (lambda out: rng.dropout_mask(0, 0, out.view(np.bool_), float("nan")), InvalidBounds),
        (lambda out: rng.dropout_mask(0, 0, out.view(np.bool_), 1.0 - 2.0**-40), InvalidBounds),
    ],
)
def test_errors_leave_out_untouched(call: Any, error: type[Exception]) -> None:
    out = np.full(4, 7.0, np.float32)
    before = out.tobytes()
    with pytest.raises(error):
        call(out)
    assert out.tobytes() == before


def test_messages_show_the_value_after_rounding_to_f32() -> None:
    with pytest.raises(InvalidBounds) as raised:
        rng.dropout_scale(1.0 - 2.0**-40)
    assert str(raised.value) == "RNG-DROPOUT-3: p must be an f32 with 0 <= p < 1, got 1.0"


def test_the_last_element_of_a_stream() -> None:
    out, pair = np.empty(1, np.float32), np.empty(2, np.float32)
    rng.gaussian_fill_at(3, TOP, out, 1.0)
    rng.gaussian_fill_at(3, TOP - 1, pair, 1.0)
    assert out[0] == pair[1]


def test_dropout_of_a_tiny_p_rounds_once() -> None:
    # 1 - 1.5 * 2^-53 is a tie in f64 and goes to 1 - 2^-52: so the word 2^53 - 2 is dropped, the word below is kept
    keep = np.empty(1, np.bool_)
    for top, kept in ((2**53 - 3, True), (2**53 - 2, False)):
        seed = _seed_of((top << 11) | 5)
        rng.dropout_mask(seed, 0, keep, 1.5 * 2.0**-53)
        assert keep[0] == kept


def _seed_of(word: int) -> int:
    """The seed whose first word is the given one: the steps of the mixer, backwards."""
    mask = 2**64 - 1

    def unshift(z: int, n: int) -> int:
        x = z
        for _ in range(64 // n + 1):
            x = z ^ x >> n
        return x

    z = unshift(word, 31) * pow(0x94D049BB133111EB, -1, 2**64) & mask
    z = unshift(z, 27) * pow(0xBF58476D1CE4E5B9, -1, 2**64) & mask
    seed = unshift(z, 30) - 0x9E3779B97F4A7C15 & mask
    assert rng.at(seed, 0) == word
    return seed


def test_zero_mean_is_skipped() -> None:
    out = np.empty(64, np.float32)
    rng.normal_fill(1, out, -0.0, 0.0)
    assert set(out.view(np.uint32).tolist()) == {0, 1 << 31}
    rng.normal_fill(1, out, 1.0, 0.0)
    assert set(out.tolist()) == {1.0}
