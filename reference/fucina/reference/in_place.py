"""In place: operations that write their result where their operand was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fucina.reference.access import Access
from fucina.reference.arguments import factor_argument, shown
from fucina.reference.arithmetic import pointwise, scaling
from fucina.reference.bridges import INTEGERS
from fucina.reference.elements import read
from fucina.reference.handles import require_scalar_dtype
from fucina.reference.layouts import require_same_shape
from fucina.spec.errors import DTypeMismatch, InvalidDType, OverlappingMemory
from fucina.spec.types import DType

if TYPE_CHECKING:
    from fucina.spec.interface import ScalarValue

__all__ = ["ADDABLE", "FLOAT_MATH", "InPlace"]

FLOAT_MATH = frozenset({DType.f16, DType.bf16, DType.f32, DType.f64})
ADDABLE = FLOAT_MATH | INTEGERS


class InPlace(Access):
    """What a raw tensor does to itself."""

    def add_in_place(self, other: Any) -> None:
        """Add another tensor of the same shape and dtype.

        Parameters
        ----------
        other : tensor
            May be the tensor itself.

        Raises
        ------
        DTypeMismatch, InvalidDType
            If it is of another dtype, or there is no addition of it.
        ShapeMismatch
            If it has another shape.
        ReadOnlyStorage
            If the storage is read-only.
        UnsupportedView
            If one of them is not contiguous.
        OverlappingMemory
            If they share only a part of their memory.

        Notes
        -----
        Clauses: TENSOR-ADD-1, STORAGE-GEN-1
        """
        clause = "TENSOR-ADD-1"
        storage = self.live()
        if not isinstance(other, InPlace) or other.dtype is not self.dtype:
            raise DTypeMismatch(f"other must be a TensorOf({self.dtype.name}), got {shown(other)}", clause=clause)
        other.live()
        if self.dtype not in ADDABLE:
            raise InvalidDType(f"there is no addition of {self.dtype!r}", clause=clause)
        require_same_shape(self.shape, other.shape)
        self.require_writable()
        self.require_contiguous("add_in_place", clause)
        other.require_contiguous("add_in_place", clause)
        mine, its = self.span(), other.span()
        if mine != its and mine[0] < its[1] and its[0] < mine[1]:
            raise OverlappingMemory(
                f"other must share all of its memory or none, got {other!r} over {self!r}", clause=clause
            )

        out, terms = self.elements().reshape(-1), other.elements().reshape(-1)
        operation = pointwise("add", self.dtype)
        results = [operation(a, b) for a, b in zip(out.tolist(), terms.tolist(), strict=True)]
        storage.open_for_writing()
        out[:] = np.array(results, dtype=out.dtype)

    def scale_in_place(self, scalar_value: ScalarValue) -> None:
        """Multiply by a number.

        Parameters
        ----------
        scalar_value : float or int
            Rounded to f32; for f64 to f64.

        Raises
        ------
        InvalidDType
            If the dtype is none of f16, bf16, f32 and f64.
        DTypeMismatch
            If it is no real number.
        ReadOnlyStorage, UnsupportedView
            If the tensor cannot be written.

        Notes
        -----
        Clauses: TENSOR-SCALE-1, STORAGE-GEN-1
        """
        clause = "TENSOR-SCALE-1"
        storage = self.live()
        if self.dtype not in FLOAT_MATH:
            raise InvalidDType(f"scale takes f16, bf16, f32 and f64, got {self.dtype!r}", clause=clause)
        operation = scaling(self.dtype, factor_argument("scalar_value", scalar_value, self.dtype))
        self.require_writable()
        self.require_contiguous("scale_in_place", clause)
        out = self.elements().reshape(-1)
        results = [operation(bits) for bits in out.tolist()]
        storage.open_for_writing()
        out[:] = np.array(results, dtype=out.dtype)

    def fill(self, value: ScalarValue) -> None:
        """Set every element.

        Parameters
        ----------
        value : bool, int or float
            An element in scalar form.

        Raises
        ------
        InvalidDType
            If the tensor is of blocks.
        DTypeMismatch, Overflow
            If it is no element.
        ReadOnlyStorage, UnsupportedView
            If the tensor cannot be written.

        Notes
        -----
        Clauses: TENSOR-FILL-1, STORAGE-GEN-1
        """
        clause = "TENSOR-FILL-1"
        storage = self.live()
        require_scalar_dtype(self.dtype, "fill", clause)
        bits = read(self.dtype, value)
        self.require_writable()
        self.require_contiguous("fill", clause)
        storage.open_for_writing()
        self.elements().reshape(-1)[:] = bits
