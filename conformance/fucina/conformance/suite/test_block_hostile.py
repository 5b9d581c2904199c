"""Block functions under arguments that are built to mislead: what a caller does by accident, once in a long while."""

from __future__ import annotations

import array
import ctypes
import datetime
import mmap
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import assert_bits, assert_raises, sentinel
from fucina.conformance.suite.blocks import gaussian, random_blocks
from fucina.conformance.suite.hostile import Acting, Posing, renamed
from fucina.spec import DType
from fucina.spec.errors import DTypeMismatch, IndexOutOfBounds, OutOfMemory

Q4, BLOCKS = DType.q4_0, random_blocks(DType.q4_0, 4)


def _calls(impl: Any) -> dict[str, Callable[[Any], Any]]:
    """Return every function as a call of one argument, the others being in order."""
    quant, values = impl.quant, gaussian(256)
    return {
        "dequantize(blocks)": lambda x: quant.dequantize(Q4, x),
        "validate(blocks)": lambda x: quant.validate(Q4, x),
        "dequantize_rows(blocks)": lambda x: quant.dequantize_rows(Q4, x, 32, [0]),
        "dequantize_rows(row_len)": lambda x: quant.dequantize_rows(Q4, BLOCKS, x, [0]),
        "dequantize_rows(indices)": lambda x: quant.dequantize_rows(Q4, BLOCKS, 32, x),
        "quantize(values)": lambda x: quant.quantize(Q4, x),
        "error(values)": lambda x: quant.error(Q4, x),
        "dequantize(out)": lambda x: quant.dequantize(Q4, BLOCKS, out=x),
        "dequantize_rows(out)": lambda x: quant.dequantize_rows(Q4, BLOCKS, 32, [1, 0], out=x),
        "quantize(out)": lambda x: quant.quantize(DType.iq2_xxs, values, out=x),
        "quantize(imatrix)": lambda x: quant.quantize(DType.iq2_xxs, values, imatrix=x),
        "quantize(search)": lambda x: quant.quantize(DType.iq4_nl, values, search=x),
        "quantize(scale)": lambda x: quant.quantize(DType.tq2_0, values, scale=x),
        "quantize(dtype)": lambda x: quant.quantize(x, values),
        "validate(dtype)": lambda x: quant.validate(x, BLOCKS),
    }


class Struct(ctypes.LittleEndianStructure):
    """BlockQ4_0 as ctypes has it."""

    _pack_ = 1
    _fields_ = (("d", ctypes.c_uint16), ("qs", ctypes.c_uint8 * 16))


class Unhashable(str):
    """A name of a dtype that cannot be looked up."""

    def __hash__(self) -> int:
        raise ArithmeticError


def _released() -> Any:
    view = memoryview(bytearray(18))
    view.release()
    return view


def _closed() -> Any:
    mapped = mmap.mmap(-1, 4096)
    mapped.close()
    return mapped


def _struct(form: str = "<u2", **more: Any) -> Any:
    fields: Any = {"names": ["d", "qs"], "formats": [form, ("u1", 16)], "offsets": [0, 2], **more}
    return np.zeros(2, np.dtype(fields))


THINGS: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "True": lambda: True,
    "numpy True": lambda: np.True_,
    "0": lambda: 0,
    "1": lambda: 1,
    "0.0": lambda: 0.0,
    "nan": lambda: float("nan"),
    "1e39": lambda: 1e39,
    "2^70": lambda: 1 << 70,
    "complex": lambda: 1j,
    "Fraction": lambda: Fraction(1, 2),
    "Decimal": lambda: Decimal(1),
    "numpy f16": lambda: np.float16(0.5),
    "numpy f80": lambda: np.longdouble(1),
    "numpy i8": lambda: np.int8(-1),
    "timedelta64": lambda: np.timedelta64(32),
    "timedelta": lambda: datetime.timedelta(1),
    "str": lambda: "q4_0",
    "str of its own hash": lambda: Unhashable("q4_0"),
    "type": lambda: DType,
    "object": object,
    "posing as a dtype": lambda: Posing(DType),
    "posing as an array": lambda: Posing(np.ndarray),
    "acting": lambda: Acting(int, 32),
    "set": lambda: {0, 1},
    "generator": lambda: (i for i in (0, 1)),
    "dict": lambda: {0: 1},
    "nested list": lambda: [[0], [0, 1]],
    "list, second index bad": lambda: [0, -1],
    "list, two kinds of bad": lambda: [99, "x"],
    "list of arrays": lambda: [np.array(1)],
    "bytes": lambda: bytes(72),
    "bytearray": lambda: bytearray(17),
    "released": _released,
    "closed": _closed,
    "characters": lambda: memoryview(bytes(72)).cast("c"),
    "signed bytes": lambda: memoryview(bytes(72)).cast("b"),
    "no axes": lambda: memoryview(b"a").cast("B", ()),
    "big-endian f32": lambda: np.zeros(256, ">f4"),
    "big-endian u64": lambda: np.array([0, 1 << 40], ">u8"),
    "array.array d": lambda: array.array("d", [0.0] * 32),
    "array.array f": lambda: array.array("f", [0.0] * 33),
    "array.array Q": lambda: array.array("Q", [0, 1 << 63]),
    "ctypes bytes": lambda: (ctypes.c_ubyte * 35)(),
    "ctypes floats": lambda: (ctypes.c_float * 31)(),
    "ctypes structs": lambda: (Struct * 2)(),
    "f64": lambda: np.zeros(256),
    "f32, 2-D": lambda: np.zeros((256, 16), np.float32),
    "f32, backwards": lambda: np.zeros(256, np.float32)[::-1],
    "f32, broadcast": lambda: np.broadcast_to(np.zeros(256, np.float32), (1 << 40, 256)),
    "f32, empty rows": lambda: np.zeros((0, 256), np.float32),
    "f32, infinity": lambda: np.full(256, np.inf, np.float32),
    "f32, -1": lambda: np.full(256, -1, np.float32),
    "f32, read-only": lambda: np.frombuffer(bytes(256), np.float32),
    "datetime64": lambda: np.zeros(32, "M8[s]"),
    "timedelta64 array": lambda: np.zeros(32, "m8[s]"),
    "objects": lambda: np.zeros(32, object),
    "strings": lambda: np.zeros(32, "U1"),
    "void": lambda: np.zeros(4, "V18"),
    "masked": lambda: np.ma.zeros(72, np.uint8),
    "negative i8": lambda: np.array([[0, 1], [1, -1]], np.int8),
    "indices, broadcast": lambda: np.broadcast_to(np.zeros(1, np.int8), (1 << 60,)),
    "big-endian structs": lambda: _struct(">u2"),
    "padded structs": lambda: _struct(itemsize=20),
    "backward structs": lambda: _struct()[::-1],
    "a dtype of its own": lambda: renamed(np.zeros(64, np.float32), _struct().dtype),
}


def _outcome(call: Callable[[Any], Any], thing: Any) -> tuple[str, object]:
    try:
        call(thing)
    except Exception as raised:
        return type(raised).__name__, getattr(raised, "clause", None)
    return "accepted", None


@clause("BLOCK-IN-1", "BLOCK-VALUES-1", "BLOCK-OUT-1", "BLOCK-ARG-1", "BLOCK-ROWS-1", "BLOCK-ROWS-2", "ERR-NAME-1")
@pytest.mark.parametrize("thing", THINGS)
def test_both_refuse_the_same_for_the_same_reason(impl: Any, judge: Any, thing: str) -> None:
    judged = _calls(judge)
    for name, call in _calls(impl).items():
        got, expected = _outcome(call, THINGS[thing]()), _outcome(judged[name], THINGS[thing]())
        assert got == expected, f"{name} given {thing}: {got}, the judge {expected}"
        assert got[0] == "accepted" or got[1], f"{name} given {thing}: {got[0]} without a clause"


@clause("BLOCK-IN-1", "BLOCK-OUT-1")
def test_an_array_is_what_its_memory_is(impl: Any) -> None:
    given = renamed(np.zeros(64, np.float32), _struct().dtype)
    for name, call in _calls(impl).items():
        if "blocks" in name:
            assert_raises(DTypeMismatch, "BLOCK-IN-1", partial(call, given), shows=("blocks",), what=name)
    out = np.full(2, 7, np.float32)
    quantize = partial(impl.quant.quantize, Q4, gaussian(64), out=renamed(out, _struct().dtype))
    assert_raises(DTypeMismatch, "BLOCK-OUT-1", quantize, shows=("out",), out=out)


@clause("BLOCK-IN-1")
def test_structs_of_ctypes(impl: Any) -> None:
    structs: Any = (Struct * 18)()
    ctypes.memmove(structs, bytes(BLOCKS[0]) * 18, 18 * 18)
    if memoryview(structs).format == "B":  # Python 3.11 has no format for packed structs, and says that of a byte
        refused = partial(impl.quant.dequantize, Q4, structs)
        assert_raises(DTypeMismatch, "BLOCK-IN-1", refused, shows=("blocks", 18))
        structs = np.frombuffer(structs, impl.quant.BlockQ4_0)
    expected = np.tile(impl.quant.dequantize(Q4, BLOCKS[0]), 18)
    assert_bits(impl.quant.dequantize(Q4, structs), expected, nan="any", dtype=DType.f32, what="ctypes")


@clause("BLOCK-ROWS-2", "ERR-STATE-1")
@pytest.mark.parametrize("indices", [[0, 9, "x"], np.array([0, 9, -1]), np.array([0, 9, -1], ">i2")], ids=str)
def test_the_first_bad_index_is_named(impl: Any, indices: Any) -> None:
    out = sentinel(96, np.float32)
    call = lambda: impl.quant.dequantize_rows(Q4, BLOCKS, 32, indices, out=out)  # noqa: E731
    assert_raises(IndexOutOfBounds, "BLOCK-ROWS-2", call, shows=("indices[1]", 9, 4), out=out)


@clause("BLOCK-ROWS-1", "BLOCK-OUT-1", "ERR-STATE-1")
def test_rows_beyond_any_memory(impl: Any) -> None:
    none, empty = np.zeros((0, 18), np.uint8), np.zeros(0, np.float32)
    assert impl.quant.dequantize_rows(Q4, none, 32 << 70, [], out=empty) is empty
    out = sentinel(32, np.float32)
    for shape in ((1 << 60,), (1 << 20, 1 << 40)):
        indices = np.broadcast_to(np.zeros(1, np.int8), shape)
        call = partial(impl.quant.dequantize_rows, Q4, BLOCKS, 32, indices, out=out)
        assert_raises(OutOfMemory, "BLOCK-ROWS-1", call, shows=("indices", 1 << 60), out=out)


class Growing:
    """A buffer that is another one each time it is asked for."""

    def __init__(self, *buffers: Any) -> None:
        self.buffers = list(buffers)

    def __buffer__(self, flags: int) -> Any:
        return memoryview(self.buffers.pop(0))


@clause("BLOCK-VALUES-1", "BLOCK-IN-1", "BLOCK-OUT-1", "BLOCK-ROWS-2")
def test_a_buffer_is_asked_for_once(impl: Any) -> None:
    # before Python 3.12 (PEP 688) no class can export buffers, and the first one stands for the object
    given: Any = Growing if sys.version_info >= (3, 12) else lambda first, *_: first
    small, large, block, out = gaussian(32), gaussian(1 << 16), bytes(BLOCKS[0]), np.zeros(32, np.float32)
    assert impl.quant.error(Q4, given(small, large)) == impl.quant.error(Q4, small)
    assert impl.quant.quantize(Q4, given(small, large)).shape == (1,)
    assert impl.quant.dequantize(Q4, given(block, block * 999)).shape == (32,)
    assert impl.quant.dequantize(Q4, block, out=given(out, out[:1])).shape == (32,)
    assert impl.quant.validate(Q4, given(block, block * 999)).blocks == 1
    assert impl.quant.dequantize_rows(Q4, BLOCKS, 32, given(np.zeros(2, np.int8), np.full(9, 99))).shape == (2, 32)
