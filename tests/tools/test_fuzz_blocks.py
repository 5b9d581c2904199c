"""The fuzz driver sees what it is there for: a level that differs, a part that differs, a refusal that writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fucina.fast as fucina
from fucina.spec import DType
from fucina.spec.errors import NonFiniteValue
from tools import fuzz_blocks as fuzz


def _cases(first: int, count: int) -> dict[DType, Counter[str]]:
    done: dict[DType, Counter[str]] = {d: Counter() for d in fuzz.BLOCKS}
    for case in range(first, first + count):
        fuzz.play(case, done)
    return done


def _until_found(cases: int = 600) -> str:
    with pytest.raises(fuzz.FindingError) as found:
        _cases(0, cases)
    return str(found.value)


def test_every_format_is_decoded_and_encoded() -> None:
    done = _cases(0, 4 * len(fuzz.BLOCKS))
    assert all(counts["decoded blocks"] and counts["encoded blocks"] for counts in done.values())


def test_a_case_is_its_number() -> None:
    assert _cases(123, 1) == _cases(123, 1)


@pytest.mark.skipif(len(fucina.isa_levels()) < 2, reason="one level only")
def test_a_level_that_decodes_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    right: Callable[..., Any] = fucina.quant.dequantize

    def wrong(dtype: DType, blocks: Any, **options: Any) -> Any:
        values = right(dtype, blocks, **options)
        if fucina.isa() == fucina.isa_levels()[0]:
            values.reshape(-1)[-1:] = np.negative(values.reshape(-1)[-1:])
        return values

    monkeypatch.setattr(fucina.quant, "dequantize", wrong)
    assert "decodes otherwise" in _until_found()


def test_a_block_that_depends_on_its_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    right: Callable[..., Any] = fucina.quant.quantize

    def wrong(dtype: DType, values: Any, **options: Any) -> Any:
        blocks = right(dtype, values, **options)
        if "out" in options and blocks.size > fucina.dtype.block_byte_size(dtype):
            blocks[..., -1] ^= 1
        return blocks

    monkeypatch.setattr(fucina.quant, "quantize", wrong)
    assert "alone encodes otherwise" in _until_found()


def test_a_refusal_that_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    right: Callable[..., Any] = fucina.quant.quantize

    def wrong(dtype: DType, values: Any, **options: Any) -> Any:
        try:
            return right(dtype, values, **options)
        except NonFiniteValue:
            options["out"][...] = 0
            raise

    monkeypatch.setattr(fucina.quant, "quantize", wrong)
    assert "writes and refuses" in _until_found()


def test_values_that_are_not_finite_must_be_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    right: Callable[..., Any] = fucina.quant.quantize
    monkeypatch.setattr(
        fucina.quant, "quantize", lambda dtype, values, **options: right(dtype, np.nan_to_num(values), **options)
    )
    assert "encodes what is not finite" in _until_found()
