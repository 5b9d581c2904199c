"""Raw operations as methods of a context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fucina.reference.ops import elementwise, movement, reduction
from fucina.reference.substrate import Driven, driven
from fucina.reference.tensor import RawTensor
from fucina.spec.types import DType

if TYPE_CHECKING:
    from fucina.spec.interface import ScalarValue

__all__ = ["RawOperations"]


class RawOperations(Driven):
    """The methods of a context that compute; each returns when its result is there.

    Notes
    -----
    Clauses: CONTEXT-EAGER-1, CONTEXT-OWNER-1
    """

    @driven
    def add(self, a: Any, b: Any, *, out: Any = None) -> RawTensor:
        """Return ``a + b``.

        Parameters
        ----------
        a, b : RawTensor
            Of one float dtype other than the f8, or one integer dtype; of shapes that broadcast.
        out : RawTensor, optional
            Where the result goes, if not into a new tensor.

        Returns
        -------
        RawTensor
            ``out``, or a new contiguous tensor.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch, InvalidDType, ShapeMismatch, Overflow
            If the operands do not go together.
        DTypeMismatch, ShapeMismatch, ReadOnlyStorage, UnsupportedView, OverlappingMemory
            If the result does not go into ``out``.
        OutOfMemory
            If there is no memory for the result.

        Notes
        -----
        Clauses: CONTEXT-OP-1, CONTEXT-OP-2, CONTEXT-ARITH-1, CONTEXT-ARITH-2
        """
        return elementwise.binary(self._rt, "add", a, b, out)

    @driven
    def sub(self, a: Any, b: Any, *, out: Any = None) -> RawTensor:
        """Return ``a - b``; parameters and errors as of :meth:`add`.

        Notes
        -----
        Clauses: CONTEXT-OP-1, CONTEXT-OP-2, CONTEXT-ARITH-1, CONTEXT-ARITH-2
        """
        return elementwise.binary(self._rt, "sub", a, b, out)

    @driven
    def mul(self, a: Any, b: Any, *, out: Any = None) -> RawTensor:
        """Return ``a * b``; parameters and errors as of :meth:`add`.

        Notes
        -----
        Clauses: CONTEXT-OP-1, CONTEXT-OP-2, CONTEXT-ARITH-1, CONTEXT-ARITH-2
        """
        return elementwise.binary(self._rt, "mul", a, b, out)

    @driven
    def div(self, a: Any, b: Any, *, out: Any = None) -> RawTensor:
        """Return ``a / b``, of integers truncated; parameters and errors as of :meth:`add`.

        Raises
        ------
        DivisionByZero
            If an integer would be divided by zero.

        Notes
        -----
        Clauses: CONTEXT-OP-1, CONTEXT-OP-2, CONTEXT-ARITH-1, CONTEXT-ARITH-2
        """
        return elementwise.binary(self._rt, "div", a, b, out)

    @driven
    def scale(self, x: Any, scalar_value: ScalarValue, *, out: Any = None) -> RawTensor:
        """Return a tensor times a number.

        Parameters
        ----------
        x : RawTensor
            Of f16, bf16, f32 or f64.
        scalar_value : float or int
            Rounded to f32; for f64 to f64.
        out : RawTensor, optional
            Where the result goes, if not into a new tensor.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch, InvalidDType
            If the arguments do not go together.
        DTypeMismatch, ShapeMismatch, ReadOnlyStorage, UnsupportedView, OverlappingMemory
            If the result does not go into ``out``.
        OutOfMemory
            If there is no memory for the result.

        Notes
        -----
        Clauses: CONTEXT-SCALE-1, CONTEXT-OP-2
        """
        return elementwise.scale(self._rt, x, scalar_value, out)

    @driven
    def sum(self, x: Any, axis: int | None = None) -> RawTensor:
        """Return the sum of all elements, or of those along an axis.

        Parameters
        ----------
        x : RawTensor
            Of any scalar dtype but the f8.
        axis : int, optional
            The axis that goes; without one, all of them.

        Returns
        -------
        RawTensor
            Of f32 for 16-bit floats, of i64 for integers and bools, else of the dtype of x; of shape (1,) where no
            axis is left.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch, InvalidDType
            If x is no tensor that has a sum.
        InvalidInteger, IndexOutOfBounds
            If there is no such axis.
        OutOfMemory
            If there is no memory for the result.

        Notes
        -----
        Clauses: CONTEXT-SUM-1, CONTEXT-SUM-2
        """
        return reduction.summed(self._rt, x, axis)

    @driven
    def cast(self, x: Any, dtype: DType) -> RawTensor:
        """Return a tensor with every element converted to another scalar dtype.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch
            If x is no tensor.
        InvalidDType
            If one of the two dtypes is a block, or none.
        OutOfMemory
            If there is no memory.

        Notes
        -----
        Clauses: CONTEXT-CAST-1
        """
        return movement.cast(self._rt, x, dtype)
