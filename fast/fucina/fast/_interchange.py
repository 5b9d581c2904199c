"""Raw tensors as arrays and buffers, and as DLPack capsules of other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from fucina.fast._objects import handles
from fucina.fast._shown import shown, tuple_shown
from fucina.fast._tensor_access import Access
from fucina.spec.errors import DTypeMismatch, ExportRefused, InvalidShape, NotCopyable, UnsupportedView
from fucina.spec.runtime import MAX_RANK, Release
from fucina.spec.types import GEOMETRY, DType

if TYPE_CHECKING:
    from typing import Self

    from fucina.spec.interface import AnyArray

__all__ = ["Interchange"]

_CPU = (1, 0)
_READ_ONLY, _IS_COPIED = 1, 2
_CODES = {
    **dict.fromkeys((DType.i8, DType.i16, DType.i32, DType.i64), 0),
    **dict.fromkeys((DType.u8, DType.u16), 1),
    **dict.fromkeys((DType.f16, DType.f32, DType.f64), 2),
    DType.bf16: 4,
    DType.bool: 6,
    DType.f8_e4m3: 10,
    DType.f8_e5m2: 12,
}
_LIVES = ("", " scope-owned", " replaced", " deinited", " closed with its scope")


class Interchange(Access):
    """What a raw tensor is to other libraries, and to Python."""

    __slots__ = ()

    # -- arrays and buffers

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        """Return the elements as an array over the tensor's memory; a copy where one is needed or asked for.

        Raises
        ------
        ExportRefused
            No array can have this shape; a copy is needed and forbidden.

        Clauses: TENSOR-ARRAY-1
        """
        array = self._exported()
        if dtype is not None and np.dtype(dtype) != array.dtype:
            if copy is False:
                raise ExportRefused(
                    f"elements of {array.dtype} cannot be seen as {np.dtype(dtype)} without a copy",
                    clause="TENSOR-ARRAY-1",
                )
            return array.astype(dtype)
        return array.copy() if copy else array

    # -- DLPack

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the device: the CPU.

        Clauses: TENSOR-DLPACK-1
        """
        self.rank()
        return _CPU

    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """Return a capsule over the tensor's elements, or over a copy.

        Parameters
        ----------
        stream : None
            There are no streams.
        max_version : tuple of int, optional
            The latest version that the consumer knows; from 1 on it is told what is read-only.
        dl_device : tuple of int, optional
            The device that is wanted: (1, 0).
        copy : bool, optional
            Whether to hand out a copy.

        Raises
        ------
        ExportRefused
            Blocks; a stream or another device; read-only memory for a consumer that cannot be told so.

        Clauses: TENSOR-DLPACK-1, STORAGE-PIN-1
        """
        return self._dlpack(stream, max_version, dl_device, copy, bare=False)

    def _dlpack(self, stream: object, max_version: Any, dl_device: Any, copy: bool | None, *, bare: bool) -> object:
        """Return a capsule; a bare one has no axes, though the tensor has one of size 1 (clause FACADE-EXPORT-1)."""
        clause = "TENSOR-DLPACK-1"
        buffer = self.buffer
        if self.dtype not in _CODES:
            raise ExportRefused(f"DLPack has no code for {self.dtype.name}", clause=clause)
        if stream is not None or (dl_device is not None and tuple(dl_device) != _CPU):
            raise ExportRefused(
                f"stream must be None and dl_device {_CPU}, got {shown(stream)} and {dl_device}", clause=clause
            )
        versioned = max_version is not None and max_version[0] >= 1
        if copy:
            with self.clone() as twin:
                return twin._capsule(True, _IS_COPIED if versioned else -1, bare)
        writable = self._writable()
        if not writable and not versioned:
            raise ExportRefused(
                f"an unversioned capsule cannot say that {self!r} must not be written (copy=True gives a copy)",
                clause=clause,
            )
        if writable:
            buffer._open()
        return self._capsule(writable, -1 if not versioned else 0 if writable else _READ_ONLY, bare)

    def _capsule(self, writable: bool, flags: int, bare: bool) -> object:
        pin = self._pin(self.offset, self.buffer.capacity - self.offset, writable)
        bits = 8 * self.Element.itemsize
        shape, strides = ((), ()) if bare else (tuple(self.shape), tuple(self.strides))
        return handles.dlpack_export(pin, _CODES[self.dtype], bits, shape, strides, flags)

    @classmethod
    def from_dlpack(cls, source: Any) -> Self:
        """Return a tensor over memory of another library.

        Parameters
        ----------
        source : object with ``__dlpack__``, or a capsule
            On the CPU, in C order, of this dtype.

        Raises
        ------
        DTypeMismatch, ExportRefused, InvalidShape, UnsupportedView
            It cannot be borrowed; it is left to its owner.

        Clauses: TENSOR-DLPACK-2
        """
        clause = "TENSOR-DLPACK-2"
        if cls.dtype not in _CODES:
            raise ExportRefused(f"DLPack has no code for {cls.dtype.name}", clause=clause)
        capsule = _capsule_of(source)
        found = handles.dlpack_read(capsule)
        if found is None:
            raise DTypeMismatch(
                f"source must be a DLPack capsule that nobody has consumed, or make one; got {shown(source)}",
                clause=clause,
            )
        shape = _importable(cls.dtype, found)
        count = 1
        for size in shape:
            count *= size
        _, flags, address = found[:3]
        foreign = handles.dlpack_consume(capsule)
        buffer: Any = handles.new_storage(
            cls.dtype.index, Release(), bool(flags & _READ_ONLY), address, count * cls.Element.itemsize, foreign
        )
        made: Self = handles.tensor_over(buffer, shape)
        return made

    # -- habits of Python

    def __repr__(self) -> str:
        life, refs, shape, strides, offset = self._state
        start = f"<TensorOf({self.dtype.name}) shape={tuple_shown(shape)}"
        if life > 1 or refs == 0:
            return f"{start}{_LIVES[life] if life > 1 else _LIVES[3]}>"
        return f"{start} strides={tuple_shown(strides)} offset={offset} refs={refs}{_LIVES[life]}>"

    def _refuse_copy(self, *_: object) -> NoReturn:
        raise NotCopyable(
            f"a raw tensor cannot be copied or pickled: clone and clone_view say what is meant, got {self!r}",
            clause="TENSOR-LIFE-2",
        )

    __copy__ = __deepcopy__ = __reduce_ex__ = __reduce__ = _refuse_copy


def _capsule_of(source: Any) -> object:
    """Return the capsule of an object that makes one, or the object.

    Clauses: TENSOR-DLPACK-2
    """
    make = getattr(source, "__dlpack__", None)
    if make is None:
        return source
    try:
        return make(max_version=(1, 0))
    except TypeError:  # an exporter from before versions
        return make()


def _importable(dtype: DType, found: Any) -> tuple[int, ...]:
    """Return the shape of a capsule that can be borrowed.

    Clauses: TENSOR-DLPACK-2
    """
    clause = "TENSOR-DLPACK-2"
    major, _, address, device, form, shape, strides = found
    if major > 1:
        raise ExportRefused(f"source must have a major version up to 1, got {major}", clause=clause)
    if device != _CPU[0]:
        raise ExportRefused(f"source must be on the CPU (device type 1), got device type {device}", clause=clause)
    size = GEOMETRY[dtype].byte_size
    if form != (_CODES[dtype], 8 * size, 1):
        raise DTypeMismatch(
            f"source must hold {dtype.name}, (code, bits, lanes) = {(_CODES[dtype], 8 * size, 1)}, got {form}",
            clause=clause,
        )
    if shape is None or len(shape) > MAX_RANK or any(n < 1 for n in shape):
        raise InvalidShape(f"source must have up to {MAX_RANK} sizes of at least 1, got {shape}", clause=clause)
    step = 1
    for axis in range(len(shape) - 1, -1, -1):
        if strides is not None and shape[axis] > 1 and strides[axis] != step:
            raise UnsupportedView(f"source must be in C order, got shape {shape} with strides {strides}", clause=clause)
        step *= shape[axis]
    if step * size > (1 << 63) - 1:
        raise InvalidShape(f"source must have fewer than 2^63 bytes, got shape {shape}", clause=clause)
    if address % size:
        raise UnsupportedView(
            f"source must be aligned to its {size}-byte element, got an address {address % size} bytes past one",
            clause=clause,
        )
    return tuple(shape) or (1,)
