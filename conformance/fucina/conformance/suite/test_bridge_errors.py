"""Array arguments: every buffer that is taken, every one that is refused, and an untouched output."""

from __future__ import annotations

import array
import ctypes
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import PATTERN, assert_bits, assert_raises, sentinel
from fucina.conformance.suite.casts import SCALARS, STORAGE, cast
from fucina.conformance.suite.hostile import Acting
from fucina.spec import DType
from fucina.spec.errors import (
    DTypeMismatch,
    InvalidDataLength,
    InvalidShape,
    OutOfMemory,
    OverlappingMemory,
    ReadOnlyStorage,
    UnsupportedView,
)

N = 24
# memoryview.cast knows no half precision before Python 3.12: numpy's own view stands in for it
CODES = {"b1": "?", "u1": "B", "u2": "H", "u4": "I", "u8": "Q", "i1": "b", "i2": "h", "i4": "i", "i8": "q"}
PAIRS = [(d, DType.f32) for d in SCALARS] + [(DType.f32, d) for d in SCALARS] + [(DType.f64, DType.f16)]
IDS = [f"{s.name}-{t.name}" for s, t in PAIRS]


def _input(dtype: DType, n: int = N) -> np.ndarray[Any, Any]:
    numbers = np.arange(n) % (2 if dtype is DType.bool else 100)
    return numbers.astype(PATTERN[dtype]).view(STORAGE[dtype])


def _memory(value: Any) -> Any:
    """Return a memoryview; untyped, because its ``cast`` is typed for literals only."""
    return memoryview(value)


def _wrong_formats(dtype: DType) -> list[np.dtype[Any]]:
    every = ["?", "u1", "i1", "u2", "i2", "f2", "u4", "i4", "f4", "u8", "i8", "f8", "c8", "S4", "V4", "M8[s]", "O"]
    formats = [np.dtype(f) for f in every if np.dtype(f) != STORAGE[dtype]]
    if STORAGE[dtype].itemsize > 1:
        formats.append(STORAGE[dtype].newbyteorder("S"))
    return formats


@clause("BRIDGE-ARRAY-2")
@pytest.mark.parametrize("source", SCALARS, ids=lambda d: d.name)
def test_inputs_that_are_taken(impl: Any, source: DType) -> None:
    plain = _input(source)
    answer = cast(impl, source, DType.f64, plain.view(PATTERN[source]))

    def check(given: Any, what: str) -> None:
        got = impl.dtype.cast_array(source, DType.f64, given)
        assert_bits(got.reshape(-1), answer, dtype=DType.f64, what=f"{source.name}, {what}", clause="BRIDGE-ARRAY-2")

    frozen = plain.copy()
    frozen.setflags(write=False)
    check(frozen, "read-only")
    check(_memory(plain), "memoryview")
    check(_memory(frozen), "read-only memoryview")
    code = CODES.get(f"{STORAGE[source].kind}{STORAGE[source].itemsize}", STORAGE[source].char)
    if code != "e":
        check(_memory(plain.tobytes()).cast(code), "bytes seen through a format")
    check(plain.reshape(2, 3, 4), "three axes")
    if code not in "?e":  # array.array has neither
        check(array.array(code, plain.tolist()), "array.array")
    if code == "B":
        check(plain.tobytes(), "bytes")
        check(bytearray(plain.tobytes()), "bytearray")
    shifted = np.frombuffer(b"\x00" + plain.tobytes(), dtype=np.uint8)[1:]
    check(shifted.view(STORAGE[source]), "one byte off")


@clause("BRIDGE-ARRAY-2", "ERR-MSG-1", "ERR-STATE-1")
@pytest.mark.parametrize(("source", "into"), PAIRS, ids=IDS)
def test_inputs_of_another_format(impl: Any, source: DType, into: DType) -> None:
    for format in _wrong_formats(source):
        given = np.zeros(N, dtype=format)
        out = sentinel(N, STORAGE[into])
        for given_out in (None, out):
            assert_raises(
                DTypeMismatch,
                "BRIDGE-ARRAY-2",
                partial(impl.dtype.cast_array, source, into, given, out=given_out),
                out=out,
                what=f"{source.name} from {format!r}",
            )


@clause("BRIDGE-ARRAY-2", "ERR-MSG-1")
@pytest.mark.parametrize("source", SCALARS, ids=lambda d: d.name)
def test_inputs_that_are_no_buffers(impl: Any, source: DType) -> None:
    for given in (None, 1, 1.5, "text", [0.5, 1.0], (1, 2), object(), np.ma.masked_array(_input(source))):
        out = sentinel(2, STORAGE[DType.f32])
        call = partial(impl.dtype.cast_array, source, DType.f32, given, out=out)
        assert_raises(DTypeMismatch, "BRIDGE-ARRAY-2", call, out=out, what=f"{given!r:.30}")


@clause("BRIDGE-ARRAY-2", "ERR-MSG-1", "ERR-STATE-1")
@pytest.mark.parametrize(("source", "into"), PAIRS, ids=IDS)
def test_inputs_that_are_not_contiguous(impl: Any, source: DType, into: DType) -> None:
    whole = _input(source, 4 * N)
    for what, view in (
        ("every second element", whole[::2]),
        ("backwards", whole[::-1]),
        ("columns", whole.reshape(4, N).T),
        ("broadcast", np.broadcast_to(whole[:N], (3, N))),
    ):
        out = sentinel(view.size, STORAGE[into])
        call = partial(impl.dtype.cast_array, source, into, view, out=out)
        assert_raises(UnsupportedView, "BRIDGE-ARRAY-2", call, out=out, what=what)


@clause("BRIDGE-ARRAY-3", "BRIDGE-ARRAY-1")
@pytest.mark.parametrize(("source", "into"), PAIRS, ids=IDS)
def test_outputs_that_are_taken(impl: Any, source: DType, into: DType) -> None:
    given = _input(source)
    answer = cast(impl, source, into, given.view(PATTERN[source]))
    memory = bytearray(answer.tobytes())
    for i in range(len(memory)):
        memory[i] ^= 1
    code = CODES.get(f"{STORAGE[into].kind}{STORAGE[into].itemsize}", STORAGE[into].char)
    view = _memory(np.frombuffer(memory, STORAGE[into])) if code == "e" else _memory(memory).cast(code)
    got = impl.dtype.cast_array(source, into, given, out=view)
    assert isinstance(got, np.ndarray), "BRIDGE-ARRAY-1: a numpy view of another buffer"
    assert np.shares_memory(got, np.frombuffer(memory, np.uint8)), "BRIDGE-ARRAY-1: the answer is a view of out"
    assert got.dtype == STORAGE[into]
    held = np.frombuffer(memory, dtype=PATTERN[into])
    assert_bits(held, answer, dtype=into, what="memoryview", clause="BRIDGE-ARRAY-3")
    assert_bits(got.reshape(-1).view(PATTERN[into]), answer, dtype=into, clause="BRIDGE-ARRAY-1")


@clause("BRIDGE-ARRAY-3", "ERR-MSG-1", "ERR-STATE-1")
@pytest.mark.parametrize(("source", "into"), PAIRS, ids=IDS)
def test_outputs_of_another_format(impl: Any, source: DType, into: DType) -> None:
    for format in _wrong_formats(into):
        if format.kind == "O":
            continue
        out = sentinel(N, format)
        call = partial(impl.dtype.cast_array, source, into, _input(source), out=out)
        assert_raises(DTypeMismatch, "BRIDGE-ARRAY-3", call, out=out, what=f"{into.name} into {format!r}")
    for bad in (1, "text", [0.0] * N, object(), np.ma.masked_array(_input(into))):
        call = partial(impl.dtype.cast_array, source, into, _input(source), out=bad)
        assert_raises(DTypeMismatch, "BRIDGE-ARRAY-3", call, what=f"out={bad!r:.30}")


@clause("BRIDGE-ARRAY-3", "ERR-MSG-1", "ERR-STATE-1")
@pytest.mark.parametrize(("source", "into"), PAIRS, ids=IDS)
def test_outputs_that_cannot_be_written(impl: Any, source: DType, into: DType) -> None:
    given, form = _input(source), STORAGE[into]

    def refused(kind: type[Exception], out: Any, whole: Any, what: str) -> None:
        call = partial(impl.dtype.cast_array, source, into, given, out=out)
        assert_raises(kind, "BRIDGE-ARRAY-3", call, out=whole, what=what)

    frozen = sentinel(N, form)
    frozen.setflags(write=False)
    refused(ReadOnlyStorage, frozen, frozen, "read-only")
    whole = sentinel(2 * N, form)
    refused(UnsupportedView, whole[::2], whole, "every second element")
    refused(UnsupportedView, whole[::-1][:N], whole, "backwards")
    refused(UnsupportedView, whole.reshape(2, N)[:, :12].T, whole, "columns")
    for n in (0, 1, N - 1, N + 1):
        out = sentinel(n, form)
        refused(InvalidDataLength, out, out, f"{n} elements for {N}")
    if form.itemsize > 1:
        raw = sentinel(N * form.itemsize + 2 * form.itemsize, np.uint8)
        start = (1 - raw.ctypes.data) % form.itemsize
        refused(UnsupportedView, raw[start : start + N * form.itemsize].view(form), raw, "one byte off")


@clause("BRIDGE-ARRAY-3", "ERR-MSG-1", "ERR-STATE-1")
@pytest.mark.parametrize(("source", "into"), PAIRS, ids=IDS)
def test_outputs_that_overlap_the_input(impl: Any, source: DType, into: DType) -> None:
    a, b = STORAGE[source], STORAGE[into]
    step = max(a.itemsize, b.itemsize)
    raw = np.zeros((2 * N + 8) * step, dtype=np.uint8)
    raw = raw[(-raw.ctypes.data) % 8 :]
    given = raw[: N * a.itemsize].view(a)
    last = (N - 1) * a.itemsize // b.itemsize * b.itemsize  # the output's first byte lies in the input's last element
    starts = {0, b.itemsize, last}
    for start in sorted(starts):
        out = raw[start : start + N * b.itemsize].view(b)
        call = partial(impl.dtype.cast_array, source, into, given, out=out)
        assert_raises(OverlappingMemory, "BRIDGE-ARRAY-3", call, out=raw, what=f"{start} bytes apart")
    end = N * b.itemsize  # the input may lie at any address: here its first byte is the output's last
    call = partial(impl.dtype.cast_array, source, into, raw[end - 1 :][: N * a.itemsize].view(a), out=raw[:end].view(b))
    assert_raises(OverlappingMemory, "BRIDGE-ARRAY-3", call, out=raw, what="one byte in common")
    beside = -(-N * a.itemsize // b.itemsize) * b.itemsize
    out = raw[beside : beside + N * b.itemsize].view(b)
    impl.dtype.cast_array(source, into, given, out=out)  # touching is not overlapping
    before = raw[: N * b.itemsize].view(b)
    behind = -(-N * b.itemsize // a.itemsize) * a.itemsize
    impl.dtype.cast_array(source, into, raw[behind : behind + N * a.itemsize].view(a), out=before)


@clause("BRIDGE-ARRAY-3", "BRIDGE-ARRAY-1")
def test_empty_arrays_never_overlap(impl: Any) -> None:
    memory = np.zeros(8, np.float32)
    for source, into in ((DType.f32, DType.f32), (DType.f32, DType.i32)):
        out = memory[3:3].view(STORAGE[into])
        assert impl.dtype.cast_array(source, into, memory[3:3], out=out) is out


@clause("BRIDGE-SAT-1", "BRIDGE-SINGLE-1", "ERR-TYPE-1")
def test_switches_are_keywords(impl: Any) -> None:
    array_ = np.zeros(3, np.float32)
    for call in (
        lambda: impl.dtype.cast_array(DType.f32, DType.bf16, array_, None),
        lambda: impl.dtype.cast_array(DType.f32, DType.bf16, array_, clamp=True),
        lambda: impl.dtype.convert(array_, DType.bf16, DType.f32),
    ):
        assert_raises(TypeError, None, call)


class _Dressed(np.ndarray[Any, Any]):
    """An array whose subclass must make no difference."""


@clause("BRIDGE-CONVERT-1")
@pytest.mark.parametrize("into", SCALARS, ids=lambda d: d.name)
def test_convert_finds_the_source(impl: Any, into: DType) -> None:
    for source in SCALARS:
        given = _input(source)
        answer = cast(impl, source, into, given.view(PATTERN[source]))
        got = impl.dtype.convert(given, into, source=source)
        assert_bits(
            got.view(PATTERN[into]), answer, dtype=into, what=f"source={source.name}", clause="BRIDGE-CONVERT-1"
        )
        if source not in (DType.bf16, DType.f8_e4m3, DType.f8_e5m2):
            got = impl.dtype.convert(given.reshape(4, 6), into)
            assert got.shape == (4, 6)
            assert got.dtype == STORAGE[into]
            flat = got.reshape(-1).view(PATTERN[into])
            assert_bits(flat, answer, dtype=into, what=f"{source.name} found", clause="BRIDGE-CONVERT-1")
            dressed = given.view(_Dressed)
            assert_bits(np.asarray(impl.dtype.convert(dressed, into)).view(PATTERN[into]), answer, dtype=into)


@clause("BRIDGE-CONVERT-1", "BRIDGE-ARRAY-2", "ERR-MSG-1")
def test_convert_refuses_what_it_does_not_know(impl: Any) -> None:
    ids = ("BRIDGE-CONVERT-1", "BRIDGE-ARRAY-2")
    for format in ("u4", "u8", "c8", "c16", "S3", "M8[s]", "V2", "O"):
        given = np.zeros(3, dtype=format)
        assert_raises(DTypeMismatch, ids, partial(impl.dtype.convert, given, DType.f32), what=format)
    others: tuple[Any, ...] = (None, 3, "text", [1.0], np.zeros(3, ">f4" if np.little_endian else "<f4"))
    for other in others:
        assert_raises(DTypeMismatch, ids, partial(impl.dtype.convert, other, DType.f32), what=f"{other!r:.20}")
    wrong = np.zeros(3, np.float64)
    assert_raises(DTypeMismatch, ids, lambda: impl.dtype.convert(wrong, DType.f16, source=DType.f32))
    assert_raises(UnsupportedView, ids, lambda: impl.dtype.convert(wrong[::2], DType.f16))


@clause("BRIDGE-CONVERT-1")
def test_convert_knows_arrays_by_the_name_of_their_dtype(impl: Any) -> None:
    try:
        import ml_dtypes
    except ImportError:
        pytest.skip("ml_dtypes is not installed: there are no arrays with named dtypes to convert")
    for name, source in (
        ("bfloat16", DType.bf16),
        ("float8_e4m3fn", DType.f8_e4m3),
        ("float8_e5m2", DType.f8_e5m2),
    ):
        codes = np.arange(96, dtype=PATTERN[source])
        given = codes.view(getattr(ml_dtypes, name))
        for into in (DType.f32, DType.f16, DType.u8):
            answer = cast(impl, source, into, codes)
            got = impl.dtype.convert(given, into)
            assert_bits(got.view(PATTERN[into]), answer, dtype=into, what=name, clause="BRIDGE-CONVERT-1")
            same = impl.dtype.convert(given, into, source=source)
            assert_bits(same.view(PATTERN[into]), answer, dtype=into, what=name, clause="BRIDGE-CONVERT-1")
        for other in SCALARS:
            if other is not source:
                call = partial(impl.dtype.convert, given, DType.f32, source=other)
                assert_raises(DTypeMismatch, "BRIDGE-CONVERT-1", call, what=f"{name}, source={other!r}")
    swapped = np.ones(3, ml_dtypes.bfloat16).astype(np.dtype(ml_dtypes.bfloat16).newbyteorder("S"))
    for given_source in (None, DType.bf16):
        call = partial(impl.dtype.convert, swapped, DType.f32, source=given_source)
        assert_raises(DTypeMismatch, "BRIDGE-CONVERT-1", call, what="bfloat16 in the other byte order")
    strange = np.zeros(3, ml_dtypes.float8_e4m3b11fnuz)
    assert_raises(DTypeMismatch, "BRIDGE-CONVERT-1", lambda: impl.dtype.convert(strange, DType.f32))


@clause("BRIDGE-ARRAY-1", "ERR-NAME-1", "ERR-MSG-1")
@pytest.mark.skipif(sys.maxsize < 1 << 62, reason="sizes of a 64-bit address space")
def test_no_memory_for_a_result(impl: Any) -> None:
    few = (ctypes.c_ubyte * 8)()
    many: Any = (ctypes.c_ubyte * (1 << 56)).from_address(ctypes.addressof(few))  # refused before any byte is read
    for given in (many, memoryview(many)):
        call = partial(impl.dtype.cast_array, DType.u8, DType.f64, given)
        assert_raises(OutOfMemory, "BRIDGE-ARRAY-1", call, what="2^56 elements")
        assert_raises(
            OutOfMemory, "BRIDGE-ARRAY-1", partial(impl.dtype.convert, given, DType.f64), what="2^56 elements"
        )
    for shape in ((0, 1 << 61), (1 << 61, 0)):
        call = partial(impl.dtype.cast_array, DType.u8, DType.f64, np.empty(shape, np.uint8))
        assert_raises(InvalidShape, "BRIDGE-ARRAY-1", call, what=f"{shape}: empty, but numpy has no f64 array of it")


@clause("BRIDGE-ARRAY-3", "ERR-STATE-1")
@pytest.mark.parametrize("switch", ["saturate", "single_rounding"])
def test_memory_is_taken_after_the_switches(impl: Any, switch: str) -> None:
    out = sentinel(N, "f4")
    locks = {switch: Acting(lambda: out.setflags(write=False), 0)}
    call = partial(impl.dtype.cast_array, DType.f64, DType.f32, np.ones(N), out=out, **locks)
    assert_raises(ReadOnlyStorage, "BRIDGE-ARRAY-3", call, out=out, what=f"{switch} locks out")
