"""The judges of the exhaustive run: what they say at the borders, and that a wrong value does not pass them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tools.exhaustive import __main__ as run
from tools.exhaustive import judges


def _one(format: str, pattern: int, saturate: bool = False) -> int:
    return int(judges.encoded(format, np.array([pattern], np.uint32), saturate)[0])


def _f32(value: float) -> int:
    return int(np.float32(value).view(np.uint32))


@pytest.mark.parametrize(
    ("format", "pattern", "code"),
    [
        ("f16", _f32(65520.0) - 1, 0x7BFF),
        ("f16", _f32(65520.0), 0x7C00),  # the tie above the largest goes to the even code, infinity
        ("f16", _f32(2.0**-25), 0x0000),
        ("f16", _f32(2.0**-25) + 1, 0x0001),
        ("f16", 0xFF800001, 0xFE00),
        ("f8_e4m3", _f32(464.0), 0x7E),  # BRIDGE-E4M3-2
        ("f8_e4m3", _f32(464.0) + 1, 0x7F),
        ("f8_e4m3", 0xFF800000, 0xFF),
        ("f8_e5m2", _f32(61440.0) - 1, 0x7B),
        ("f8_e5m2", _f32(61440.0), 0x7C),
        ("f8_e5m2", 0x7F800001, 0x7E),
        ("bf16", 0x3F808000, 0x3F80),
        ("bf16", 0x3F818000, 0x3F82),
        ("bf16", 0x7F800001, 0x7FC0),
        ("bf16", 0x80000001, 0x8000),
    ],
)
def test_codes_at_the_borders(format: str, pattern: int, code: int) -> None:
    assert _one(format, pattern) == code


@pytest.mark.parametrize("format", judges.FORMATS)
def test_saturation_spares_nan(format: str) -> None:
    f = judges.FORMATS[format]
    assert _one(format, judges.F32_INFINITY, saturate=True) == f.largest
    assert _one(format, judges.F32_INFINITY + 1, saturate=True) == _one(format, judges.F32_INFINITY + 1)


@pytest.mark.parametrize("format", judges.FORMATS)
@pytest.mark.parametrize("start", [0x33000000, 0x3F7FFF00, 0x477FEF00, 0x7F7FFF00, 0xC3E7FF00, 0xFFFFFE00])
def test_the_peers_agree_and_would_notice(format: str, start: int) -> None:
    patterns = np.arange(start, start + 512, dtype=np.uint64).astype(np.uint32)
    codes = judges.encoded(format, patterns)
    assert judges.peer_agrees(format, patterns, codes) == 0
    codes[100] ^= 1 << judges.FORMATS[format].sign_shift
    assert judges.peer_agrees(format, patterns, codes) == 1


@pytest.mark.parametrize("value", [0.0, -0.99, 1.5, -7.9, 2.0**31, -(2.0**31), 3e9, -3e9, np.inf, -np.inf, np.nan])
def test_truncation_by_two_ways(value: float) -> None:
    patterns = np.array([value], np.float32).view(np.uint32)
    wanted = 0 if np.isnan(value) else int(min(max(value, -(2.0**31)), 2.0**31 - 1))
    assert judges.truncated(patterns).tolist() == judges.truncated_by_integers(patterns).tolist() == [wanted]


def test_a_wrong_value_is_counted_and_named() -> None:
    counts: run.Counts = Counter()
    examples: list[str] = []
    given, expected = np.arange(8, dtype=np.uint32), np.arange(8, dtype=np.uint16)
    got = expected.copy()
    got[5] = 9
    run._compare(counts, examples, "row", "level", given, got, expected)
    assert counts == {("row", "level"): 1}
    assert examples == ["row, level: 0x5 gives 0x9, expected 0x5"]
