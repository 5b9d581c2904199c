"""Interchange: tensors as arrays, as buffers, and as DLPack capsules of other libraries."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fucina.reference.access import byte_layout
from fucina.reference.allocation import Bytes
from fucina.reference.arguments import shown
from fucina.reference.dlpack import CODES, CPU, IS_COPIED, READ_ONLY, capsule_of, imported
from fucina.reference.in_place import InPlace
from fucina.reference.layouts import row_major
from fucina.reference.sizes import storage_shape
from fucina.reference.storage import BufferOf
from fucina.spec.errors import ExportRefused
from fucina.spec.types import DType

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from fucina.spec.interface import AnyArray

__all__ = ["Interchange"]


_WRITABLE, _STRIDES, _C_ORDER, _FORTRAN_ORDER, _ANY_ORDER = 0x1, 0x18, 0x38, 0x58, 0x98
"""Flags of a request for a buffer, as the C interface of Python numbers them."""


def _grants(array: AnyArray, flags: int) -> bool:
    """Whether an array is what a request for a buffer asks for; one without strides asks for C order."""

    def asks(flag: int) -> bool:
        return flags & flag == flag

    in_c, in_fortran = array.flags.c_contiguous, array.flags.f_contiguous
    return (
        (array.flags.writeable or not asks(_WRITABLE))
        and (in_c or (asks(_STRIDES) and not asks(_C_ORDER)))
        and (in_fortran or not asks(_FORTRAN_ORDER))
        and (in_c or in_fortran or not asks(_ANY_ORDER))
    )


class _Foreign:
    """Memory of another library, given back when nobody looks at it any more."""

    def __init__(self, address: int, size: int, read_only: bool, give_back: Callable[[], None]) -> None:
        self.give_back = give_back
        self.__array_interface__ = {
            "version": 3,
            "shape": (size,),
            "typestr": "|u1",
            "data": (address, read_only),
        }

    def __del__(self) -> None:
        self.give_back()


class Interchange(InPlace):
    """What a raw tensor is to other libraries."""

    # -- arrays and buffers

    def _repeats(self) -> bool:
        """Whether two places of the view may be the same element."""
        shape, strides, _ = byte_layout(self)
        reach = self.Element.itemsize
        for step, n in sorted((step, n) for n, step in zip(shape, strides, strict=True) if n > 1):
            if step < reach:
                return True
            reach += (n - 1) * step
        return False

    def _exported(self, flags: int | None = None) -> AnyArray:
        """Return the elements as an array that holds a reference; writable if that can be.

        ``flags`` are those of a request for a buffer; one that is refused is no mutable access.

        Notes
        -----
        Clauses: TENSOR-ARRAY-1, STORAGE-PIN-1, STORAGE-GEN-1
        """
        array = self._array()
        if flags is not None and not _grants(array, flags):
            del array  # the traceback would keep its reference
            raise ExportRefused(f"{self!r} cannot be exported as this kind of buffer", clause="TENSOR-ARRAY-1")
        if array.flags.writeable:
            self.live().open_for_writing()
        return array

    def _array(self) -> AnyArray:
        """Return the array, before anybody has seen it.

        Notes
        -----
        Clauses: TENSOR-ARRAY-1, STORAGE-PIN-1
        """
        storage = self.live()
        writable = not storage.read_only and not self._repeats()
        shape, strides, offset = byte_layout(self)
        memory = storage.pinned(writable=writable)
        try:
            return np.ndarray(shape, self.Element, buffer=memory, offset=offset, strides=strides)
        except ValueError as refusal:
            raise ExportRefused(f"no array can have shape {shape} ({refusal})", clause="TENSOR-ARRAY-1") from None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        """Return the elements as an array over the tensor's memory; a copy where one is asked for.

        Notes
        -----
        Clauses: TENSOR-ARRAY-1
        """
        array = self._exported()
        if dtype is not None and np.dtype(dtype) != array.dtype:
            if copy is False:
                raise ExportRefused(f"{array.dtype} cannot be seen as {np.dtype(dtype)}", clause="TENSOR-ARRAY-1")
            return array.astype(dtype)
        return array.copy() if copy else array

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """What numpy reads before Python 3.12; the memory in it holds a reference.

        Notes
        -----
        Clauses: TENSOR-ARRAY-1
        """
        array = self._exported()
        shape, strides, offset = byte_layout(self)
        memory = self.live().pinned(writable=array.flags.writeable)
        form = {key: array.__array_interface__[key] for key in ("typestr", "descr", "version")}
        # the memory as an object, not as an address: whoever keeps it keeps the reference
        return {**form, "shape": shape, "strides": strides, "offset": offset, "data": memory}

    def __buffer__(self, flags: int) -> memoryview:
        """Return the elements as a buffer, from Python 3.12 on by way of ``memoryview``.

        Notes
        -----
        Clauses: TENSOR-ARRAY-1
        """
        array: Any = self._exported(flags)  # numpy's stubs know no buffer before Python 3.12
        return memoryview(array)

    # -- DLPack

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the device: the CPU.

        Notes
        -----
        Clauses: TENSOR-DLPACK-1
        """
        self.live()
        return CPU

    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """Return a capsule with the tensor.

        Parameters
        ----------
        stream : None
            There are no streams.
        max_version : tuple of int, optional
            The latest version that the consumer understands; from 1 on it is told what is read-only.
        dl_device : tuple of int, optional
            The device that is wanted; the CPU.
        copy : bool, optional
            Whether to hand out a copy.

        Raises
        ------
        ExportRefused
            For blocks, another device, a stream; for read-only memory that a consumer without versions would write to.

        Notes
        -----
        Clauses: TENSOR-DLPACK-1
        """
        return self.capsule(self.shape, self.strides, stream, max_version, dl_device, copy)

    def capsule(
        self,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        stream: object,
        max_version: tuple[int, int] | None,
        dl_device: tuple[int, int] | None,
        copy: bool | None,
    ) -> object:
        """Return a capsule with the elements in a shape of as many; the rest is as of :meth:`__dlpack__`.

        Notes
        -----
        Clauses: TENSOR-DLPACK-1
        """
        clause = "TENSOR-DLPACK-1"
        storage = self.live()
        if self.dtype not in CODES:
            raise ExportRefused(f"DLPack has no code for {self.dtype.name}", clause=clause)
        if stream is not None or dl_device not in (None, CPU):
            raise ExportRefused(
                f"memory of the CPU has no stream, and device {CPU}; got {shown(stream)}, {dl_device}", clause=clause
            )
        versioned = max_version is not None and max_version[0] >= 1
        if copy:
            with self.clone() as twin:
                flags = IS_COPIED if versioned else None
                return capsule_of(self.dtype, shape, row_major(shape), twin.address, twin.storage_pin(True), flags)
        writable = not storage.read_only and not self._repeats()
        if not writable and not versioned:
            raise ExportRefused(f"{self!r} cannot be written, and an unversioned capsule cannot say so", clause=clause)
        if writable:
            storage.open_for_writing()
        flags = (0 if writable else READ_ONLY) if versioned else None
        return capsule_of(self.dtype, shape, strides, self.address, self.storage_pin(writable), flags)

    @property
    def address(self) -> int:
        """The address of the first element."""
        return self.live().address + self.offset * self.Element.itemsize

    def storage_pin(self, writable: bool) -> Bytes:
        """Return an array that holds a reference to the storage.

        Notes
        -----
        Clauses: STORAGE-PIN-1
        """
        return self.live().pinned(writable=writable)

    @classmethod
    def from_dlpack(cls, source: Any) -> Self:
        """Return a tensor over memory of another library.

        Parameters
        ----------
        source : object with ``__dlpack__``, or capsule
            In C order, on the CPU, of this dtype.

        Raises
        ------
        DTypeMismatch, ExportRefused, InvalidShape, UnsupportedView
            If it cannot be borrowed.

        Notes
        -----
        Clauses: TENSOR-DLPACK-2
        """
        dtype: DType = cls.dtype
        if dtype not in CODES:
            raise ExportRefused(f"DLPack has no code for {dtype.name}", clause="TENSOR-DLPACK-2")
        shape, address, read_only, give_back = imported(source, dtype)
        size = math.prod(shape) * cls.Element.itemsize
        memory = np.asarray(_Foreign(address, size, read_only, give_back))
        storage = BufferOf(dtype).over(memory, "borrowed", read_only=read_only)
        return cls.over(storage, shape, row_major(storage_shape(dtype, shape)), 0)
