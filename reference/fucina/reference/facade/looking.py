"""Looking at tensors: sizes, elements, the raw tensor below, arrays and other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fucina.reference.bridges import FLOATS
from fucina.reference.dlpack import CPU
from fucina.reference.elements import value_of
from fucina.reference.facade.arguments import axis_of
from fucina.reference.facade.elements import write
from fucina.reference.facade.kinds import Tag
from fucina.reference.facade.values import Value
from fucina.reference.tensor import RawTensor
from fucina.reference.values import VALUE_TYPES
from fucina.spec.errors import DTypeMismatch, InvalidShape

if TYPE_CHECKING:
    from fucina.spec.facade import Element
    from fucina.spec.interface import AnyArray

__all__ = ["Looking"]


class Looking(Value):
    """What a tensor shows of itself."""

    def dim(self, axis: Tag) -> int:
        """Return the size of an axis.

        Raises
        ------
        UseAfterDeinit, UseAfterScope
            If the tensor has ended; so in everything here.
        InvalidTag
            If there is no such axis.

        Notes
        -----
        Clauses: FACADE-LOOK-1, FACADE-AXIS-1
        """
        return self.shape[axis_of(self, axis)]

    def data(self) -> AnyArray:
        """Return the elements of a contiguous tensor as a flat array to write to.

        Raises
        ------
        ReadOnlyStorage, UnsupportedView
            If the storage is read-only, or the tensor not contiguous.

        Notes
        -----
        Clauses: FACADE-LOOK-1, TENSOR-DATA-1, STORAGE-GEN-1
        """
        return self.live().data()

    def data_const(self) -> AnyArray:
        """Return the elements of a contiguous tensor as a flat array to read.

        Raises
        ------
        UnsupportedView
            If it is not contiguous.

        Notes
        -----
        Clauses: FACADE-LOOK-1, TENSOR-DATA-1
        """
        return self.live().data_const()

    def item(self) -> Element:
        """Return the only element.

        Raises
        ------
        InvalidShape
            If there are more.

        Notes
        -----
        Clauses: FACADE-LOOK-1, FACADE-NEW-3
        """
        return write(self.dtype, self._only())

    def _only(self) -> int:
        raw = self.live()
        if any(size != 1 for size in raw.shape):
            raise InvalidShape(f"one element is required, got {self!r}", clause="FACADE-LOOK-1")
        return int(raw.elements().reshape(-1)[0])

    def _number(self) -> Any:
        """Return the only element as a number of Python."""
        bits = self._only()
        return value_of(FLOATS[self.dtype], bits) if self.dtype in VALUE_TYPES else write(self.dtype, bits)

    def __bool__(self) -> bool:
        return bool(self._number())

    def __int__(self) -> int:
        return int(self._number())

    def __float__(self) -> float:
        return float(self._number())

    def __len__(self) -> int:
        shape = self.shape
        if not shape:
            raise DTypeMismatch(f"a scalar has no length: {self!r}", clause="FACADE-LOOK-1")
        return shape[0]

    def as_raw_tensor(self) -> RawTensor:
        """Return the raw tensor below, which owns nothing and ends with the tensor.

        Notes
        -----
        Clauses: FACADE-RAW-1
        """
        return self.live().borrowed()

    # -- arrays and other libraries

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        """Return the elements as an array over the tensor's memory; a copy where one is asked for.

        Notes
        -----
        Clauses: FACADE-EXPORT-1, TENSOR-ARRAY-1
        """
        array = self.live().__array__(dtype, copy)
        return array if self.rank else array.reshape(())

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """What numpy reads before Python 3.12; the memory in it holds a reference.

        Notes
        -----
        Clauses: FACADE-EXPORT-1, TENSOR-ARRAY-1
        """
        found = self.live().__array_interface__
        return found if self.rank else {**found, "shape": (), "strides": ()}

    __array_ufunc__ = None  # numpy's own scalars and arrays leave the operators to the tensor (clause FACADE-PYTHON-1)

    def __buffer__(self, flags: int) -> memoryview:
        """Return the elements as a buffer, from Python 3.12 on by way of ``memoryview``.

        Notes
        -----
        Clauses: FACADE-EXPORT-1, TENSOR-ARRAY-1
        """
        view = self.live().__buffer__(flags)
        return view if self.rank else memoryview(self.__array__())  # type: ignore[arg-type]  # an array is a buffer

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the device: the CPU.

        Notes
        -----
        Clauses: FACADE-EXPORT-1, TENSOR-DLPACK-1
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
        """Return a capsule with the tensor; parameters and errors are those of a raw tensor's.

        Notes
        -----
        Clauses: FACADE-EXPORT-1, TENSOR-DLPACK-1
        """
        raw = self.live()
        strides = tuple(raw.strides) if self.rank else ()
        return raw.capsule(self.shape, strides, stream, max_version, dl_device, copy)
