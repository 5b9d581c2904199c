"""DLPack: tensors to and from other libraries, by way of a capsule.

A capsule holds the address of a struct with the tensor's geometry and a function that gives the memory back.  There are
two structs, without and with a version; only the second can say that memory is read-only.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import TYPE_CHECKING, Any, NamedTuple

from fucina.spec.errors import DTypeMismatch, ExportRefused, InvalidShape, UnsupportedView
from fucina.spec.types import GEOMETRY, DType

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CODES", "CPU", "Imported", "capsule_of", "imported"]

CPU = (1, 0)
READ_ONLY, IS_COPIED = 1, 2

CODES = {
    **dict.fromkeys((DType.i8, DType.i16, DType.i32, DType.i64), 0),
    **dict.fromkeys((DType.u8, DType.u16), 1),
    **dict.fromkeys((DType.f16, DType.f32, DType.f64), 2),
    DType.bf16: 4,
    DType.bool: 6,
    DType.f8_e4m3: 10,
    DType.f8_e5m2: 12,
}
"""The type codes of DLPack (clause TENSOR-DLPACK-1)."""


class _Tensor(Structure):
    _fields_ = (
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    )


class _Managed(Structure):
    _fields_ = (("tensor", _Tensor), ("manager_ctx", c_void_p), ("deleter", c_void_p))


class _Versioned(Structure):
    _fields_ = (
        ("major", c_uint32),
        ("minor", c_uint32),
        ("manager_ctx", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("tensor", _Tensor),
    )


_FORMS: dict[bytes, type[_Managed | _Versioned]] = {b"dltensor": _Managed, b"dltensor_versioned": _Versioned}
_USED = {b"dltensor": b"used_dltensor", b"dltensor_versioned": b"used_dltensor_versioned"}

_api = ctypes.pythonapi
_new = ctypes.PYFUNCTYPE(ctypes.py_object, c_void_p, ctypes.c_char_p, c_void_p)(("PyCapsule_New", _api))
_pointer = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_SetName", _api))
# a capsule in its destructor has no references left, so it is passed on as a bare address
_dying_pointer = ctypes.PYFUNCTYPE(c_void_p, c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_dying_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))


# -- export

_exported: dict[int, tuple[Any, ...]] = {}  # what a capsule or its consumer still needs, by the address of its struct


def _drop(address: int, _exported: dict[int, tuple[Any, ...]] = _exported) -> None:
    _exported.pop(address, None)


def _end(
    capsule: int,
    names: tuple[bytes, ...] = tuple(_FORMS),
    is_valid: Any = _dying_is_valid,
    pointer: Any = _dying_pointer,
    _exported: dict[int, tuple[Any, ...]] = _exported,
) -> None:
    # a consumer renames the capsule; one that nobody consumed still owns its tensor
    for name in names:
        if is_valid(capsule, name):
            _exported.pop(pointer(capsule, name), None)


_deleter = ctypes.CFUNCTYPE(None, c_void_p)(_drop)
_destructor = ctypes.PYFUNCTYPE(None, c_void_p)(_end)
_NAMES = {name: ctypes.create_string_buffer(name) for name in (*_FORMS, *_USED.values())}

for _lasting in (_deleter, _destructor, *_NAMES.values()):
    _api.Py_IncRef(ctypes.py_object(_lasting))  # they outlive every capsule, also when the interpreter ends


def capsule_of(
    dtype: DType,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    address: int,
    owner: object,
    flags: int | None,
) -> object:
    """Return a capsule.

    Parameters
    ----------
    dtype : DType
        A scalar dtype.
    shape, strides : tuple of int
        In elements.
    address : int
        Of the first element.
    owner : object
        What keeps the memory alive; held until the consumer is done, or the capsule dies unconsumed.
    flags : int or None
        The flags of a versioned capsule; None for one without version.

    Notes
    -----
    Clauses: TENSOR-DLPACK-1
    """
    lengths, steps = ((c_int64 * len(shape))(*values) for values in (shape, strides))
    tensor = _Tensor(address, *CPU, len(shape), CODES[dtype], 8 * GEOMETRY[dtype].byte_size, 1, lengths, steps, 0)
    deleter = ctypes.cast(_deleter, c_void_p)
    managed: _Managed | _Versioned
    if flags is None:
        name, managed = b"dltensor", _Managed(tensor, None, deleter)
    else:
        name, managed = b"dltensor_versioned", _Versioned(1, 0, None, deleter, flags, tensor)
    place = ctypes.addressof(managed)
    _exported[place] = (managed, lengths, steps, owner)
    try:
        return _new(place, _NAMES[name], ctypes.cast(_destructor, c_void_p))
    except BaseException:
        del _exported[place]
        raise


# -- import


class Imported(NamedTuple):
    """What a capsule holds: memory and the function that gives it back."""

    shape: tuple[int, ...]
    address: int
    read_only: bool
    give_back: Callable[[], None]


def imported(source: Any, dtype: DType) -> Imported:
    """Consume a capsule, or that of an object that makes one.

    Raises
    ------
    DTypeMismatch
        If it is neither, or of another dtype.
    ExportRefused
        If it is on another device, or of a later version.
    InvalidShape
        If a size is 0, or the rank above 8.
    UnsupportedView
        If it is not in C order, or not aligned.

    Notes
    -----
    Clauses: TENSOR-DLPACK-2
    """
    capsule = _capsule(source)
    name = next((name for name in _FORMS if _is_valid(capsule, name)), None)
    if name is None:
        raise DTypeMismatch(
            f"a DLPack capsule that nobody has consumed is required, got {capsule!r}", clause="TENSOR-DLPACK-2"
        )
    place = _pointer(capsule, name)
    managed = _FORMS[name].from_address(place)
    shape, address = _checked(managed, dtype)
    read_only = isinstance(managed, _Versioned) and bool(managed.flags & READ_ONLY)

    _rename(capsule, _NAMES[_USED[name]])
    deleter = ctypes.CFUNCTYPE(None, c_void_p)(managed.deleter) if managed.deleter else None

    def give_back() -> None:
        if deleter is not None:
            deleter(place)

    return Imported(shape, address, read_only, give_back)


def _capsule(source: Any) -> Any:
    make = getattr(source, "__dlpack__", None)
    if make is None:
        if type(source).__name__ != "PyCapsule":
            raise DTypeMismatch(
                f"a DLPack capsule or an object with __dlpack__ is required, got {type(source).__name__}",
                clause="TENSOR-DLPACK-2",
            )
        return source
    try:
        return make(max_version=(1, 0))
    except TypeError:
        return make()


def _checked(managed: _Managed | _Versioned, dtype: DType) -> tuple[tuple[int, ...], int]:
    """Return shape and address of a tensor that can be borrowed."""
    clause = "TENSOR-DLPACK-2"
    if isinstance(managed, _Versioned) and managed.major > 1:
        raise ExportRefused(f"versions up to 1 are understood, got {managed.major}.{managed.minor}", clause=clause)
    tensor = managed.tensor
    if tensor.device_type != CPU[0]:
        raise ExportRefused(f"memory of the CPU is required, got device type {tensor.device_type}", clause=clause)
    size = GEOMETRY[dtype].byte_size
    given, wanted = (tensor.code, tensor.bits, tensor.lanes), (CODES.get(dtype), 8 * size, 1)
    if given != wanted:
        raise DTypeMismatch(f"{dtype.name} has (code, bits, lanes) {wanted}, got {given}", clause=clause)
    shape = tuple(tensor.shape[: tensor.ndim]) if tensor.ndim else (1,)
    if 0 in shape or len(shape) > 8:
        raise InvalidShape(f"1 to 8 sizes of at least 1 are required, got {shape}", clause=clause)
    if tensor.ndim and tensor.strides:
        step = 1
        for n, stride in zip(reversed(shape), reversed(tensor.strides[: tensor.ndim]), strict=True):
            if n > 1 and stride != step:
                raise UnsupportedView(
                    f"C order is required, got shape {shape} with strides {tuple(tensor.strides[: tensor.ndim])}",
                    clause=clause,
                )
            step *= n
    address = (tensor.data or 0) + tensor.byte_offset
    if address % size:
        raise UnsupportedView(
            f"alignment to {size} bytes is required, got an address {address % size} past one", clause=clause
        )
    return shape, address
