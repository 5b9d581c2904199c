"""The structs of DLPack and makers of capsules, written apart from any implementation."""

from __future__ import annotations

import ctypes
from typing import Any

__all__ = ["Managed", "Producer", "Versioned", "VersionedProducer", "name_of", "struct_of"]


class Geometry(ctypes.Structure):
    """A DLTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Managed(ctypes.Structure):
    """A DLManagedTensor."""

    _fields_ = (("tensor", Geometry), ("manager_ctx", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class Versioned(ctypes.Structure):
    """A DLManagedTensorVersioned."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Geometry),
    )


_api = ctypes.pythonapi
name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", _api))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", _api))
_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def struct_of(capsule: object) -> Any:
    """Return the struct that a capsule nobody has consumed points to."""
    name = name_of(capsule)
    kind = {b"dltensor": Managed, b"dltensor_versioned": Versioned}[name]
    return kind.from_address(_pointer(capsule, name))


class Producer:
    """Something of another library, with whatever geometry a test wants."""

    NAME = b"dltensor"

    def __init__(
        self, data: Any, shape: tuple[int, ...] | None, strides: tuple[int, ...] | None, **fields: int
    ) -> None:
        self.data, self.deleted = data, 0
        self.shape = (ctypes.c_int64 * len(shape))(*shape) if shape else None
        self.strides = (ctypes.c_int64 * len(strides))(*strides) if strides else None
        self.deleter = _DELETER(self._delete)
        address = data.ctypes.data + fields.pop("shift", 0)
        values = {"device_type": 1, "device_id": 0, "ndim": len(shape or ()), "code": 2, "bits": 32, "lanes": 1}
        values |= {"byte_offset": 0} | fields
        self.tensor = Geometry(data=address, shape=self.shape, strides=self.strides, **values)
        self.managed: Any = Managed(self.tensor, None, ctypes.cast(self.deleter, ctypes.c_void_p))

    def _delete(self, address: int) -> None:
        self.deleted += 1

    def capsule(self) -> object:
        """Return a capsule."""
        return _new(ctypes.addressof(self.managed), self.NAME, None)

    def __dlpack__(self) -> object:
        return self.capsule()


class VersionedProducer(Producer):
    """The same with a version and flags."""

    NAME = b"dltensor_versioned"

    def __init__(self, data: Any, flags: int = 0, major: int = 1) -> None:
        super().__init__(data, (4,), None)
        deleter = ctypes.cast(self.deleter, ctypes.c_void_p)
        self.managed = Versioned(major, 0, None, deleter, flags, self.tensor)

    def __dlpack__(self, *, max_version: tuple[int, int]) -> object:  # type: ignore[override]
        return self.capsule()
