"""Numbers in messages."""

from __future__ import annotations

import random
import struct

import pytest

import fucina.fast as fast
from fucina.fast._shown import border, double_shown, integer_shown


def _bits(value: float) -> int:
    return int.from_bytes(struct.pack("<d", value), "little")


def test_doubles_are_shown_as_repr_shows_them() -> None:
    draw = random.Random(3)
    values = [0.0, -0.0, 0.1, 1.0, -1.5, 1e15, 1e16, 1e22, 1e23, 123456.789, 1e-4, 1e-5, 5e-324, 1.7976931348623157e308]
    values += [float("inf"), float("-inf"), float("nan"), 2.0**60, 1 - 2.0**-40, 3.4028234663852886e38]
    values += [draw.uniform(-1e3, 1e3) for _ in range(500)] + [
        draw.randrange(-(10**6), 10**6) / 1000 for _ in range(500)
    ]
    values += [struct.unpack("<d", draw.randbytes(8))[0] for _ in range(2000)]
    assert [double_shown(_bits(v)) for v in values] == [repr(v) for v in values]


def test_powers_of_two_come_back() -> None:
    for exponent in range(-1074, 1024):
        assert float(double_shown(_bits(2.0**exponent))) == 2.0**exponent


def test_integers() -> None:
    assert integer_shown(-(2**128) + 1) == str(-(2**128) + 1)
    assert integer_shown(10**5000) == "an integer of 16610 bits"
    assert [border(v) for v in (0, 255, 256, 65536, 2**64, -(2**63))] == ["0", "255", "256", "65536", "2^64", "-2^63"]


def test_messages_say_what_was_given() -> None:
    for given, shown in ((1.5, "1.5"), (-1e-9, "-1e-09"), (float("nan"), "nan"), (10**400, "inf")):
        with pytest.raises(ValueError, match=rf"got p={shown}$"):
            fast.rng.dropout_scale(given)
