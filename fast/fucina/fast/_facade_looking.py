"""Looking at a tensor: its sizes, its elements, its text, and what it is to other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from fucina.fast._facade_core import Part
from fucina.fast._facade_types import TensorType, axis_of
from fucina.fast._objects import handles
from fucina.fast._shown import shown, tuple_shown
from fucina.fast.geometry import element, storage
from fucina.fast.tensor import TensorOf
from fucina.fast.values import F8E4M3, F8E5M2, Bf16
from fucina.spec.errors import DTypeMismatch, InvalidDataLength, InvalidShape, NotCopyable
from fucina.spec.types import DType

if TYPE_CHECKING:
    from fucina.fast._facade_types import Tag
    from fucina.fast.facade import Tensor
    from fucina.spec.interface import AnyArray, BitFloat, ScalarValue

__all__ = ["BIT_FLOATS", "LIVES", "Looking", "restored"]

BIT_FLOATS = frozenset({DType.bf16, DType.f8_e4m3, DType.f8_e5m2})
"""The dtypes whose elements are patterns in arrays, and values here (clause FACADE-NEW-3)."""

LIVES = ("owned", "scope-owned", "replaced", "deinited", "scope closed")
"""What the number of a tensor's life says (csrc/python/handles.h)."""


class Looking(Part):
    """The members of a tensor that show it.

    Clauses: FACADE-LOOK-1
    """

    __slots__ = ()

    __array_ufunc__ = None
    """numpy leaves the operators to the tensor (clause FACADE-PYTHON-1)."""

    def dim(self, axis: Tag) -> int:
        """Return the size of an axis.

        Raises
        ------
        InvalidTag
            There is none with this tag.

        Clauses: FACADE-LOOK-1, FACADE-AXIS-1
        """
        return self.shape[axis_of(cast(TensorType, type(self)), axis)]

    def item(self) -> ScalarValue | BitFloat:
        """Return the element of a tensor that has one; of bf16 and f8 as a value.

        Raises
        ------
        InvalidShape
            More elements.

        Clauses: FACADE-LOOK-1, FACADE-NEW-3
        """
        if any(size != 1 for size in self._raw_shape):
            raise InvalidShape(f"item needs a single element, got {self!r}", clause="FACADE-LOOK-1")
        bits = self._view((1,), (1,), self._raw_offset).item()
        value: ScalarValue | BitFloat = element(self.dtype)(bits) if self.dtype in BIT_FLOATS else bits
        return value

    def _number(self) -> ScalarValue:
        value = self.item()
        return value.to_f32() if isinstance(value, Bf16 | F8E4M3 | F8E5M2) else cast("ScalarValue", value)

    def __bool__(self) -> bool:
        return bool(self._number())

    def __int__(self) -> int:
        return int(self._number())

    def __float__(self) -> float:
        return float(self._number())

    def __len__(self) -> int:
        if not self.shape:
            raise DTypeMismatch(f"{self!r} is a scalar, without an axis, and so has no len()", clause="FACADE-LOOK-1")
        return self.shape[0]

    # -- arrays; C comes to the first two with what has none

    def _data(self) -> AnyArray:
        """Say why there is no array of the elements to write to.

        Clauses: FACADE-LOOK-1, TENSOR-DATA-1
        """
        found: AnyArray = self.as_raw_tensor()._data()
        return found

    def _data_const(self) -> AnyArray:
        """Say why there is no array of the elements to read.

        Clauses: FACADE-LOOK-1, TENSOR-DATA-1
        """
        found: AnyArray = self.as_raw_tensor()._data_const()
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        """Return the elements as an array of the tensor's shape; see the raw tensor's.

        Raises
        ------
        ExportRefused
            No array can have this shape; a copy is needed and forbidden.

        Clauses: FACADE-EXPORT-1, TENSOR-ARRAY-1
        """
        array: AnyArray = self.as_raw_tensor().__array__(dtype, copy)
        return array if self.rank else array.reshape(())

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the device: the CPU.

        Clauses: FACADE-EXPORT-1, TENSOR-DLPACK-1
        """
        device: tuple[int, int] = self.as_raw_tensor().__dlpack_device__()
        return device

    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """Return a capsule of the elements in the tensor's shape; see the raw tensor's.

        Raises
        ------
        ExportRefused
            Blocks; a stream or another device; read-only memory for a consumer that cannot be told so.

        Clauses: FACADE-EXPORT-1, TENSOR-DLPACK-1
        """
        raw: Any = self.as_raw_tensor()
        return raw._dlpack(stream, max_version, dl_device, copy, bare=self.rank == 0)

    # -- habits of Python

    def __repr__(self) -> str:
        life, refs, _, _, _ = self._state
        if life > 1 or refs == 0:
            return f"<{type(self)!r} {LIVES[life] if life > 1 else LIVES[3]}>"
        grad = " requires_grad" if self.requires_grad else ""
        return f"<{type(self)!r} shape={tuple_shown(self.shape)}{grad} {LIVES[life]}>"

    def __reduce__(self) -> Any:
        """Return how a constant is pickled: by its type and its elements.

        Raises
        ------
        NotCopyable
            It tracks gradients.

        Clauses: FACADE-COPY-1
        """
        if self.requires_grad:
            raise NotCopyable(f"{self!r} tracks gradients, and is not copied or pickled", clause="FACADE-COPY-1")
        raw: Any = self.as_raw_tensor()
        elements = raw if raw.is_contiguous() else raw.clone()
        return restored, (type(self), tuple(self.shape), elements.data_const().tobytes())

    def __reduce_ex__(self, protocol: object) -> Any:
        return self.__reduce__()

    def __copy__(self) -> Tensor:
        make, parts = self.__reduce__()
        return cast("Tensor", make(*parts))

    def __deepcopy__(self, memo: object) -> Tensor:
        return self.__copy__()


def restored(kind: Any, shape: Any, elements: Any) -> Tensor:
    """Return a constant of a type with these elements, on storage of its own.

    Raises
    ------
    DTypeMismatch
        No type of tensors.
    InvalidShape, InvalidDataLength
        The elements do not fit it.

    Clauses: FACADE-COPY-1
    """
    clause = "FACADE-COPY-1"
    if not isinstance(kind, TensorType) or not kind.is_made():
        raise DTypeMismatch(f"kind must be a type of tensors, got {shown(kind)}", clause=clause)
    if len(tuple(shape)) != kind.rank:
        raise InvalidShape(f"shape must have {kind.rank} entries, got {len(tuple(shape))}", clause=clause)
    if not isinstance(elements, bytes) or len(elements) % storage(kind.dtype).itemsize:
        raise InvalidDataLength(f"elements must be the bytes of whole elements, got {shown(elements)}", clause=clause)
    values = np.frombuffer(elements, storage(kind.dtype))
    raw = TensorOf(kind.dtype).from_storage_slice(shape if kind.rank else (1,), values)
    return cast("Tensor", handles.facade_over(kind, None, raw, None, False))
