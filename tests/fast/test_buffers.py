"""Which buffers are taken, which are refused and how, and that a refused call writes nothing."""

from __future__ import annotations

import array
import mmap
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fucina.fast as fast
from fucina.fast import DType
from fucina.spec.errors import (
    DTypeMismatch,
    FucinaError,
    InvalidDataLength,
    OverlappingMemory,
    ReadOnlyStorage,
    UnsupportedView,
)

N = 24


class Subclass(np.ndarray[Any, Any]):
    """An ndarray subclass without anything of its own."""


def _view(value: Any, code: Any = None) -> memoryview:
    view = memoryview(value)
    return view if code is None else view.cast(code)


def _stored(dtype: DType) -> np.dtype[Any]:
    return fast.dtype.storage(dtype)


def _other(dtype: DType) -> np.dtype[Any]:
    """Return another format of the same size."""
    return np.dtype({1: "i1", 2: "i2", 4: "u4", 8: "u8"}[_stored(dtype).itemsize])


def _unaligned(dtype: DType) -> Any:
    size = _stored(dtype).itemsize
    return np.zeros(N * size + 1, np.uint8)[1:].view(_stored(dtype))


def _read_only(dtype: DType) -> Any:
    made = np.zeros(N, _stored(dtype))
    made.flags.writeable = False
    return made


def _swapped(dtype: DType) -> Any:
    return np.zeros(N, _stored(dtype).newbyteorder())


WRAPS: list[Callable[[Any], Any]] = [np.asarray, memoryview, lambda a: a.view(Subclass)]

REFUSED: dict[str, tuple[Callable[[DType], Any], type[FucinaError]]] = {
    "list": (lambda d: [0] * N, DTypeMismatch),
    "None": (lambda d: None, DTypeMismatch),
    "number": (lambda d: 3.5, DTypeMismatch),
    "str": (lambda d: "\0" * N, DTypeMismatch),
    "other format": (lambda d: np.zeros(N, _other(d)), DTypeMismatch),
    "wider format": (lambda d: np.zeros(N, np.complex128), DTypeMismatch),
    "objects": (lambda d: np.zeros(N, object), DTypeMismatch),
    "struct": (lambda d: np.zeros(N, [("a", _stored(d))]), DTypeMismatch),
    "dates": (lambda d: np.zeros(N, "M8[s]"), DTypeMismatch),
    "raw bytes": (lambda d: np.zeros(N, "V4"), DTypeMismatch),
    "masked array": (lambda d: np.ma.zeros(N, _stored(d)), DTypeMismatch),
    "strided": (lambda d: np.zeros(2 * N, _stored(d))[::2], UnsupportedView),
    "reversed": (lambda d: np.zeros(N, _stored(d))[::-1], UnsupportedView),
    "Fortran order": (lambda d: np.zeros((4, 6), _stored(d), order="F"), UnsupportedView),
    "broadcast": (lambda d: np.broadcast_to(np.zeros(1, _stored(d)), (N,)), UnsupportedView),
    "strided memoryview": (lambda d: _view(np.zeros(2 * N, _stored(d)))[::2], UnsupportedView),
    "strided subclass": (lambda d: np.zeros(2 * N, _stored(d)).view(Subclass)[::2], UnsupportedView),
    "read-only": (_read_only, ReadOnlyStorage),
    "read-only memoryview": (lambda d: _view(np.zeros(N, _stored(d))).toreadonly(), ReadOnlyStorage),
    "numpy scalar": (lambda d: np.zeros(N, _stored(d))[0], ReadOnlyStorage),
}


def _bytes_of(value: Any) -> bytes | None:
    try:
        return bytes(np.ascontiguousarray(value).tobytes())
    except (TypeError, ValueError):
        return None


@pytest.mark.parametrize("case", REFUSED)
def test_out_that_a_fill_refuses(fill: Any, case: str) -> None:
    dtype, call = fill
    make, error = REFUSED[case]
    out = make(dtype)
    before = _bytes_of(out)
    with pytest.raises(error, match=r"^RNG-OUT-1: out ") as caught:
        call(out)
    assert caught.value.clause == "RNG-OUT-1"
    assert _bytes_of(out) == before


@pytest.mark.parametrize("case", ["swapped", "unaligned"])
def test_order_and_alignment_of_out(fill: Any, case: str) -> None:
    dtype, call = fill
    out = (_swapped if case == "swapped" else _unaligned)(dtype)
    if _stored(dtype).itemsize == 1:  # one byte has neither
        call(out)
        assert out.any()
        return
    with pytest.raises(DTypeMismatch if case == "swapped" else UnsupportedView):
        call(out)
    assert not out.any()


ACCEPTED: dict[str, Callable[[DType], Any]] = {
    "two axes": lambda d: np.zeros((4, 6), _stored(d)),
    "eight axes": lambda d: np.zeros((1, 2, 1, 3, 1, 2, 2, 1), _stored(d)),
    "length-one axes with odd strides": lambda d: np.zeros((5, N), _stored(d))[2:3],
    "subclass": lambda d: np.zeros(N, _stored(d)).view(Subclass),
    "memoryview": lambda d: _view(np.zeros(N, _stored(d))),
    "bytearray": lambda d: _view(bytearray(N * _stored(d).itemsize), _stored(d).char),
    "anonymous memory map": lambda d: _view(mmap.mmap(-1, N * _stored(d).itemsize), _stored(d).char),
    "numpy over a bytearray": lambda d: np.frombuffer(bytearray(N * _stored(d).itemsize), _stored(d)),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_out_that_a_fill_takes(fill: Any, case: str) -> None:
    dtype, call = fill
    out = ACCEPTED[case](dtype)
    expected = np.zeros(N, _stored(dtype))
    call(expected)
    assert call(out) is None
    assert memoryview(out).tobytes() == expected.tobytes()


def test_memory_file(tmp_path: Any) -> None:
    path = tmp_path / "values"
    out = np.memmap(path, np.float32, "w+", shape=(N,))
    fast.rng.gumbel_fill(7, out)
    out.flush()
    expected = np.zeros(N, np.float32)
    fast.rng.gumbel_fill(7, expected)
    assert path.read_bytes() == expected.tobytes()


@pytest.mark.parametrize(("code", "dtype"), [("f", DType.f32), ("d", DType.f64), ("q", DType.i64), ("h", DType.i16)])
def test_array_module(code: str, dtype: DType) -> None:
    given = array.array(code, [1, 2, 3])
    assert fast.dtype.cast_array(dtype, DType.i8, given).tolist() == [1, 2, 3]
    filled = array.array(code, [0, 0, 0])
    result = fast.dtype.cast_array(DType.i8, dtype, np.array([4, 5, 6], np.int8), out=filled)
    assert isinstance(result, np.ndarray)
    assert np.shares_memory(result, np.frombuffer(filled, _stored(dtype)))
    assert filled.tolist() == [4, 5, 6]


@pytest.mark.parametrize("shape", [(0,), (3, 0, 2), ()])
def test_empty_and_scalar_arrays(fill: Any, shape: tuple[int, ...]) -> None:
    dtype, call = fill
    out = np.zeros(shape, _stored(dtype))
    assert call(out) is None
    assert fast.dtype.cast_array(dtype, DType.f64, out).shape == shape


@pytest.mark.parametrize("case", [c for c in REFUSED if "read-only" not in c and "scalar" not in c])
@pytest.mark.parametrize("dtype", [DType.f32, DType.bf16, DType.f8_e4m3, DType.i64, DType.bool])
def test_input_that_a_cast_refuses(case: str, dtype: DType) -> None:
    make, error = REFUSED[case]
    out = np.full(N, 77, np.int32)
    for target in (out, None):
        with pytest.raises(error, match=r"^BRIDGE-ARRAY-2: array "):
            fast.dtype.cast_array(dtype, DType.i32, make(dtype), out=target)
    assert (out == 77).all()


@pytest.mark.parametrize("case", [c for c in REFUSED if c != "None"])
def test_out_that_a_cast_refuses(case: str) -> None:
    make, error = REFUSED[case]
    out = make(DType.f16)
    before = _bytes_of(out)
    with pytest.raises(error, match=r"^BRIDGE-ARRAY-3: out "):
        fast.dtype.cast_array(DType.f32, DType.f16, np.ones(N, np.float32), out=out)
    assert _bytes_of(out) == before


def test_unaligned_and_read_only_input(noise: Any) -> None:
    expected = fast.dtype.cast_array(DType.f32, DType.bf16, noise)
    raw = b"x" + noise.tobytes()
    unaligned = np.frombuffer(raw, np.float32, offset=1)
    assert not unaligned.flags.aligned
    assert not unaligned.flags.writeable
    assert fast.dtype.cast_array(DType.f32, DType.bf16, unaligned).tobytes() == expected.tobytes()
    assert fast.dtype.cast_array(DType.bf16, DType.f32, _view(expected).toreadonly()).shape == noise.shape
    assert fast.dtype.cast_array(DType.f8_e4m3, DType.f32, b"\x38\xb8").tolist() == [1.0, -1.0]


@pytest.mark.parametrize("count", [0, N - 1, N + 1])
def test_count_of_out(count: int) -> None:
    for wrap in WRAPS:
        out = wrap(np.full(count, 7, np.float16))
        with pytest.raises(InvalidDataLength, match=f"must hold {N} elements, got {count}"):
            fast.dtype.cast_array(DType.f32, DType.f16, np.ones(N, np.float32), out=out)
        assert (np.asarray(out) == 7).all()


def test_shape_of_out_may_differ() -> None:
    out = np.zeros((2, 3), np.float16)
    assert fast.dtype.cast_array(DType.f32, DType.f16, np.arange(6, dtype=np.float32), out=out) is out
    assert out.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("wrap", WRAPS, ids=["ndarray", "memoryview", "subclass"])
@pytest.mark.parametrize("start", range(0, 13))
def test_overlap(start: int, wrap: Callable[[Any], Any]) -> None:
    memory = np.arange(16, dtype=np.uint16)
    before = memory.tobytes()
    source, out = memory[4:8], memory[start : start + 4]
    if abs(start - 4) < 4:
        with pytest.raises(OverlappingMemory):
            fast.dtype.cast_array(DType.u16, DType.bf16, wrap(source), out=wrap(out))
        assert memory.tobytes() == before
    else:
        fast.dtype.cast_array(DType.u16, DType.u16, wrap(source), out=wrap(out))
        assert out.tolist() == [4, 5, 6, 7]


def test_overlap_of_one_byte() -> None:
    memory = np.zeros(64, np.uint8)
    source, out = memory[0:16].view(np.float32), memory[15:19]
    said = "out must not share memory with array, got bytes [15, 16) of array as bytes [0, 1) of out"
    with pytest.raises(OverlappingMemory, match=f"^BRIDGE-ARRAY-3: {re.escape(said)}$"):
        fast.dtype.cast_array(DType.f32, DType.u8, source, out=out)
    fast.dtype.cast_array(DType.f32, DType.u8, source, out=memory[16:20])


def test_empty_views_inside_an_input_do_not_overlap() -> None:
    memory = np.zeros(8, np.uint16)
    assert fast.dtype.cast_array(DType.u16, DType.u16, memory[2:2], out=memory[2:2]).shape == (0,)


def test_released_memoryview() -> None:
    out = _view(np.zeros(N, np.float32))
    out.release()
    with pytest.raises(DTypeMismatch):
        fast.rng.gumbel_fill(1, out)


def test_ml_dtypes_arrays() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for name, dtype in (("bfloat16", DType.bf16), ("float8_e4m3fn", DType.f8_e4m3), ("float8_e5m2", DType.f8_e5m2)):
        given = np.arange(6, dtype=np.float32).reshape(2, 3).astype(getattr(ml_dtypes, name))
        assert fast.dtype.convert(given, DType.f32).tolist() == [[0, 1, 2], [3, 4, 5]]
        assert fast.dtype.convert(given, DType.f32, source=dtype).tolist() == [[0, 1, 2], [3, 4, 5]]
        assert fast.dtype.convert(given[0, 1:2].reshape(()), DType.f32).tolist() == 1
        with pytest.raises(DTypeMismatch):
            fast.dtype.cast_array(dtype, DType.f32, given)
        with pytest.raises(DTypeMismatch):
            fast.dtype.convert(given[0, 1], DType.f32)  # a scalar of these types is no array and exports no format
        with pytest.raises(UnsupportedView):
            fast.dtype.convert(given.T, DType.f32)


@pytest.mark.parametrize("code", ["g", "F", "M8[s]", "S3", "O", ">f4", ">i8", "u4", "u8"])
def test_convert_of_a_format_without_dtype(code: str) -> None:
    with pytest.raises(DTypeMismatch, match=r"^BRIDGE-CONVERT-1: array ") as caught:
        fast.dtype.convert(np.zeros(3, code), DType.f32)
    if code == "u4":
        allowed = "bool, uint8, uint16, int8, int16, int32, int64, float16, float32, float64"
        given = "buffer format 'I', 4 bytes each"
        assert str(caught.value).endswith(f"array must hold {allowed} in native byte order, got {given}")


def test_convert_infers_by_kind_and_size() -> None:
    for code in "?BHbhilqefd":
        given = np.array([0, 1, 1], code)
        assert fast.dtype.convert(given, DType.f32).tolist() == [0, 1, 1]
        assert fast.dtype.convert(_view(given), DType.f32).tolist() == [0, 1, 1]
    assert fast.dtype.convert(b"\x00\x01", DType.i64).tolist() == [0, 1]
