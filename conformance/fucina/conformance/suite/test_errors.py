"""The hierarchy of the exceptions, their messages, and that they survive pickling."""

from __future__ import annotations

import copy
import pickle
from functools import partial
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import assert_raises, sentinel
from fucina.conformance.suite.blocks import gaussian
from fucina.spec import DType, errors

BASES = {
    "InvalidDType": TypeError,
    "DTypeMismatch": TypeError,
    "InvalidInteger": TypeError,
    "InvalidBounds": ValueError,
    "InvalidShape": ValueError,
    "InvalidDataLength": ValueError,
    "UnsupportedView": ValueError,
    "ReadOnlyStorage": ValueError,
    "OverlappingMemory": ValueError,
    "Overflow": OverflowError,
    "OutOfMemory": MemoryError,
    "NonDefaultFloatEnvironment": RuntimeError,
    "FloatEnvironmentChanged": RuntimeError,
    "WrongThread": RuntimeError,
    "IndexOutOfBounds": IndexError,
    "NonFiniteValue": ValueError,
    "UnencodableBlock": ValueError,
    "ShapeMismatch": ValueError,
    "EmptySelection": ValueError,
    "DivisionByZero": ZeroDivisionError,
    "ExportRefused": BufferError,
    "UseAfterDeinit": RuntimeError,
    "UseAfterScope": RuntimeError,
    "OverRelease": RuntimeError,
    "ScopeOrder": RuntimeError,
    "ConcurrentUse": RuntimeError,
    "ChainViolation": RuntimeError,
    "ForkedInTask": RuntimeError,
    "ActiveExecScopeRequired": RuntimeError,
    "ActiveExecScopeUnsupported": RuntimeError,
    "LeakedBuffers": RuntimeError,
    "NotCopyable": TypeError,
}
TENSOR = (
    "InvalidShape",
    "InvalidDataLength",
    "UnsupportedView",
    "ReadOnlyStorage",
    "OverlappingMemory",
    "IndexOutOfBounds",
    "ShapeMismatch",
    "EmptySelection",
    "DivisionByZero",
    "ExportRefused",
)


def _calls(impl: Any) -> dict[str, Any]:
    """Return one call for each kind of error that the claimed chapters raise."""
    part, rng = impl.dtype, impl.rng
    f32, f64 = np.zeros(4, np.float32), np.zeros(4, np.float64)
    frozen = np.zeros(4, np.float32)
    frozen.setflags(write=False)
    found = {
        "InvalidDType": lambda: part.block_size(DType.f32),
        "DTypeMismatch": lambda: rng.gaussian_fill(0, f64, 1.0),
        "InvalidInteger": lambda: rng.at(0.5, 0),
        "InvalidBounds": lambda: rng.randint_fill(0, np.zeros(3, np.int64), 5, 5),
        "InvalidDataLength": lambda: part.cast_array(DType.f32, DType.f64, f32, out=np.zeros(3)),
        "UnsupportedView": lambda: rng.gumbel_fill(0, f32[::2]),
        "ReadOnlyStorage": lambda: rng.gumbel_fill(0, frozen),
        "OverlappingMemory": lambda: part.cast_array(DType.f32, DType.f32, f32, out=f32),
        "Overflow": lambda: rng.at(1 << 64, 0),
    }
    if "block" in impl.capabilities:
        huge = gaussian(256, scale=1e25)
        found |= {
            "IndexOutOfBounds": lambda: impl.quant.dequantize_rows(DType.q4_0, bytes(18), 32, [1]),
            "NonFiniteValue": lambda: impl.quant.quantize(DType.q4_0, np.full(32, np.nan, np.float32)),
            "UnencodableBlock": lambda: impl.quant.quantize(DType.iq2_s, huge),
        }
    return found


@clause("ERR-NAME-1", "ERR-TYPE-1")
@pytest.mark.parametrize("name", BASES)
def test_hierarchy(impl: Any, name: str) -> None:
    kind = getattr(errors, name)
    assert issubclass(kind, errors.FucinaError)
    assert issubclass(kind, BASES[name])
    assert issubclass(kind, errors.TensorError) == (name in TENSOR)
    if name in (calls := _calls(impl)):
        error = assert_raises(kind, None, calls[name])
        assert type(error) is kind, f"ERR-NAME-1: {type(error).__name__} in place of {name}"
        assert isinstance(error, BASES[name])


@clause("ERR-MSG-1")
@pytest.mark.parametrize("name", ["InvalidDType", "InvalidBounds", "Overflow", "UnsupportedView", "OverlappingMemory"])
def test_message_and_attribute_survive_copies(impl: Any, name: str) -> None:
    error: Any = assert_raises(getattr(errors, name), None, _calls(impl)[name])
    clause_id = getattr(error, "clause", None)
    assert isinstance(clause_id, str)
    assert str(error).startswith(f"{clause_id}: ")
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert (type(twin), str(twin), twin.clause) == (type(error), str(error), clause_id)


@clause("ERR-MSG-1", "RNG-INT-2")
def test_the_message_of_the_specification(impl: Any) -> None:
    error = assert_raises(
        errors.InvalidBounds, "RNG-INT-2", lambda: impl.rng.randint_fill(0, np.empty(3, np.int64), 5, 5)
    )
    assert str(error) == "RNG-INT-2: low must be below high, got low=5, high=5"


@clause("ERR-STATE-1")
def test_several_wrong_arguments_write_nothing(impl: Any) -> None:
    for call, out in (
        (lambda o: impl.rng.uniform_fill(-1, o, 2.0, 1.0), sentinel(4, "f8")),
        (lambda o: impl.rng.randint_fill("x", o, 9, 1), sentinel(4, "i8")[::2]),
        (lambda o: impl.rng.dropout_mask(1, -1, o, 2.0), sentinel(4, "?")),
        (lambda o: impl.dtype.cast_array(DType.f32, DType.f32, o[:3], out=o), sentinel(4, "f4")),
    ):
        assert_raises(errors.FucinaError, None, partial(call, out), out=out)


@clause("ERR-TYPE-1")
def test_missing_and_unknown_arguments(impl: Any) -> None:
    out = sentinel(4, "f4")
    for call in (
        lambda: impl.rng.gaussian_fill(1, out),
        lambda: impl.rng.gaussian_fill(1, out, 1.0, 2.0),
        lambda: impl.rng.gumbel_fill(1, out, scale=1.0),
        lambda: impl.dtype.cast_array(DType.f32, DType.f64, out, None),
    ):
        assert_raises(TypeError, None, call, out=out)
