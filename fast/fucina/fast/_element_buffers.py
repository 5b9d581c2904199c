"""Values: the elements that storage is made of, wherever a caller has them.

A buffer in storage form, plain bytes or, where elements are copied, a sequence of elements in scalar form.  Elements
travel as patterns or as whole structs, so every bit stays and no float is computed with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fucina.fast._accelerate import of_bits
from fucina.fast._arguments import pattern
from fucina.fast._buffers import buffer_of, dtype_of_array, has_struct_format, is_array
from fucina.fast._native import ffi, lib
from fucina.fast.geometry import storage
from fucina.fast.scalars import _decode, _encode
from fucina.spec.errors import DTypeMismatch, InvalidDataLength, ReadOnlyStorage, UnsupportedView
from fucina.spec.types import GEOMETRY, DType, DTypeKind

if TYPE_CHECKING:
    from fucina.spec.interface import AnyArray, ScalarValue

__all__ = [
    "Borrowed",
    "address_of",
    "borrowed",
    "carrier",
    "copied",
    "destination",
    "factor_of",
    "pattern_of",
    "value_of",
]

_BYTES = frozenset("Bbc")


class Borrowed(NamedTuple):
    """Memory of somebody else: where it is, how many bytes, and what keeps it in place."""

    address: int
    size: int
    exporter: object


def pattern_of(dtype: DType, value: Any) -> int:
    """Return the pattern of an element given in scalar form.

    Clauses: BRIDGE-SCALAR-4
    """
    return _encode(dtype, value)


def value_of(dtype: DType, bits: int) -> ScalarValue:
    """Return a pattern as an element in scalar form.

    Clauses: DTYPE-STORAGE-1
    """
    return _decode(dtype, bits)


def address_of(view: memoryview | AnyArray) -> int:
    """Return the address of the first byte."""
    if isinstance(view, np.ndarray):
        return int(view.__array_interface__["data"][0])
    return int(ffi.cast("uintptr_t", ffi.from_buffer(view)))


_CARRIERS = {
    dtype: np.dtype(
        f"V{geometry.byte_size}" if geometry.kind is DTypeKind.block_quantized else f"u{geometry.byte_size}"
    )
    for dtype, geometry in GEOMETRY.items()
}


def carrier(dtype: DType) -> np.dtype[Any]:
    """Return the numpy dtype in which elements are moved: unsigned integers, or bare bytes for a block."""
    return _CARRIERS[dtype]


def alignment(dtype: DType) -> int:
    """Return what the address of an element is a multiple of; blocks lie anywhere."""
    return 1 if GEOMETRY[dtype].kind is DTypeKind.block_quantized else GEOMETRY[dtype].byte_size


_CODES = {"b": "?", "u": "BHILQN", "i": "bhilqn", "f": "efd"}


def _is_stored(value: Any, view: memoryview, form: np.dtype[Any]) -> bool:
    """Whether a buffer's elements are those of a numpy dtype, in native byte order."""
    if form.names is not None:
        return bool(dtype_of_array(value, view) == form) if is_array(value) else has_struct_format(view, form)
    code = view.format[1:] if view.format[:1] in ("@", "=", "<" if np.little_endian else ">") else view.format
    return len(code) == 1 and code in _CODES[form.kind] and view.itemsize == form.itemsize


class _Elements(NamedTuple):
    """Checked elements: the buffer, and whether they are given as plain bytes."""

    view: memoryview
    plain: bool


def _elements(name: str, value: Any, dtype: DType, clause: str) -> _Elements:
    """Return the buffer of elements in storage form, or of plain bytes.

    Clauses: STORAGE-COPY-1
    """
    form = storage(dtype)
    view = buffer_of(name, value, None, clause)
    if _is_stored(value, view, form):
        return _Elements(view, False)
    # packed structs of ctypes say before Python 3.12 that they are bytes, but not how long one is
    simple = view.format in _BYTES and view.itemsize == view.ndim == 1 and dtype is not DType.bool
    if not simple or (is_array(value) and form.names is None):
        raise DTypeMismatch(
            f"{name} must hold {dtype.name} elements (numpy {form.kind}{form.itemsize}, {form.itemsize} bytes each) in "
            f"native byte order, or bytes; got buffer format {view.format!r}, {view.itemsize} bytes each",
            clause=clause,
        )
    _require_order(name, view, clause)
    if view.nbytes % form.itemsize:
        raise InvalidDataLength(
            f"{name} must be whole {dtype.name} elements of {form.itemsize} bytes, got {view.nbytes} bytes",
            clause=clause,
        )
    return _Elements(view, True)


def _require_order(name: str, view: memoryview, clause: str) -> None:
    if not view.c_contiguous:
        raise UnsupportedView(
            f"{name} must be C-contiguous, got shape {view.shape} with strides {view.strides}", clause=clause
        )


def _require_aligned(name: str, view: memoryview, dtype: DType, clause: str) -> int:
    address = address_of(view) if view.nbytes else 0
    if address % alignment(dtype):
        raise UnsupportedView(
            f"{name} must be aligned to its {alignment(dtype)}-byte element, got an address "
            f"{address % alignment(dtype)} bytes past one",
            clause=clause,
        )
    return address


def copied(name: str, value: Any, dtype: DType, clause: str) -> AnyArray:
    """Return the elements in row-major order: a one-dimensional, contiguous array of the carrier.

    Raises
    ------
    DTypeMismatch, Overflow
        No elements of ``dtype``.
    InvalidDataLength
        Bytes that end within an element.

    Clauses: STORAGE-COPY-1, BRIDGE-SCALAR-4
    """
    if isinstance(value, list | tuple | range) and GEOMETRY[dtype].kind is DTypeKind.scalar:
        return _from_sequence(dtype, value)
    found = _elements(name, value, dtype, clause)
    if found.plain:
        return (
            np.frombuffer(found.view, np.uint8).view(carrier(dtype))
            if found.view.nbytes
            else np.empty(0, carrier(dtype))
        )
    array = np.ndarray.view(value, np.ndarray) if is_array(value) else np.asarray(found.view)
    if GEOMETRY[dtype].kind is DTypeKind.scalar:
        return np.ascontiguousarray(array.view(carrier(dtype))).reshape(-1)
    return np.ascontiguousarray(array).reshape(-1).view(carrier(dtype))


_SINGLE = lib.FC_CAST_SINGLE_ROUNDING


def _from_sequence(dtype: DType, values: list[Any] | tuple[Any, ...] | range) -> AnyArray:
    """Return elements in scalar form as patterns."""
    kinds = set(map(type, values))
    if kinds == {float} and dtype in (DType.f16, DType.f32, DType.f64):
        doubles = np.array(values, np.float64)  # a copy of each double as it is
        if dtype is DType.f64:
            return doubles.view(np.uint64)
        out = np.empty(len(values), carrier(dtype))
        source, target = ffi.cast("void *", address_of(doubles)), ffi.cast("void *", address_of(out))
        lib.fc_cast(DType.f64.index, dtype.index, _SINGLE, source, target, len(values))
        return out
    return np.array([pattern_of(dtype, value) for value in values], carrier(dtype))


def borrowed(name: str, value: Any, dtype: DType, clause: str, *, writable: bool) -> Borrowed:
    """Return memory that is to be lent: C-contiguous, aligned, and writable where that is asked for.

    Raises
    ------
    DTypeMismatch, InvalidDataLength, UnsupportedView, ReadOnlyStorage
        What it is not, in this order.

    Clauses: STORAGE-BORROW-1, STORAGE-BORROW-2
    """
    view = _elements(name, value, dtype, clause).view
    _require_order(name, view, clause)
    address = _require_aligned(name, view, dtype, clause)
    if writable and view.readonly:
        raise ReadOnlyStorage(
            f"{name} must be writable, got read-only memory (from_borrowed_const_slice takes it)", clause=clause
        )
    return Borrowed(address, view.nbytes, view)


def destination(name: str, value: Any, dtype: DType, clause: str) -> tuple[memoryview, int, int]:
    """Return a buffer that elements are written to, with its address and its number of elements.

    Raises
    ------
    DTypeMismatch, InvalidDataLength, UnsupportedView, ReadOnlyStorage
        As :func:`borrowed`.

    Clauses: TENSOR-COPY-1
    """
    found = borrowed(name, value, dtype, clause, writable=False)
    view = found.exporter
    assert isinstance(view, memoryview)
    if view.readonly:
        raise ReadOnlyStorage(f"{name} must be writable, got read-only memory", clause=clause)
    return view, found.address, found.size // GEOMETRY[dtype].byte_size


def factor_of(value: Any) -> float:
    """Return a number as a float of the same bits; the core rounds it to f32 where that is asked for.

    Raises
    ------
    DTypeMismatch
        No real number.

    Clauses: NUM-PARAM-1, TENSOR-SCALE-1
    """
    return of_bits(pattern("scalar_value", value, "NUM-PARAM-1"))
