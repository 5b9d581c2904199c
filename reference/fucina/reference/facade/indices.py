"""Indices: which elements along an axis, as a tensor of integers or as integers themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from fucina.reference.arguments import is_a, shown, whole
from fucina.reference.bridges import INTEGERS, integer_value
from fucina.reference.buffers import viewed
from fucina.reference.facade.values import Value
from fucina.reference.ops.operands import patterns
from fucina.reference.tensor import RawTensor
from fucina.spec.errors import (
    DTypeMismatch,
    EmptySelection,
    IndexOutOfBounds,
    InvalidDType,
    InvalidInteger,
    InvalidShape,
)

__all__ = ["Indices", "formula_indices"]


class Indices:
    """Indices that were given, as far as they can be looked at before the shapes are known.

    Parameters
    ----------
    name : str
        The parameter's name, for messages.
    given : tensor, list, tuple, range or array
        A tensor of an integer dtype, or integers along one axis.
    clause : str
        The clause that asks for them.

    Raises
    ------
    UseAfterDeinit, UseAfterScope
        If it is a tensor that has ended.
    DTypeMismatch
        If it is neither tensor nor sequence.

    Notes
    -----
    Clauses: FACADE-NEW-6
    """

    def __init__(self, name: str, given: object, clause: str) -> None:
        self._name, self._clause = name, clause
        self.source: Value | None = None
        self._values: list[Any] = []
        self._view: memoryview | None = None
        if is_a(given, Value):
            given.live()
            self.source = given
        elif isinstance(given, list | tuple | range):
            self._values = list(given)
        elif is_a(given, RawTensor):
            raise DTypeMismatch(f"{name} must be a tensor or integers, got a raw tensor", clause=clause)
        else:
            self._view = viewed(name, given, "a tensor, a sequence or an array of integers", clause)

    def _of_array(self, view: memoryview) -> list[int]:
        try:
            held = np.asarray(view)
        except (TypeError, ValueError, RuntimeError):
            held = np.empty(0, np.bool_)
        if held.dtype.kind not in "iu":
            raise InvalidInteger(f"{self._name} must be integers, got format {view.format!r}", clause=self._clause)
        if held.ndim != 1:
            raise InvalidShape(f"{self._name} as an array have one axis, got {held.ndim}", clause=self._clause)
        values: list[int] = held.tolist()
        return values

    def require_integers(self) -> None:
        """Refuse a tensor of another dtype.

        Notes
        -----
        Clauses: FACADE-NEW-6
        """
        if self.source is not None and self.source.dtype not in INTEGERS:
            raise InvalidDType(
                f"{self._name} must be of an integer dtype, got {self.source.dtype!r}", clause=self._clause
            )

    def read(self) -> None:
        """Look at the numbers of a sequence or array; where they lie is looked at with the shapes.

        Raises
        ------
        InvalidInteger
            If one is no integer.
        InvalidShape
            If it is an array of other than one axis.

        Notes
        -----
        Clauses: FACADE-NEW-6, FACADE-CTX-1
        """
        if self._view is not None:
            self._values = self._of_array(self._view)
        self._values = [whole(f"{self._name}[{i}]", value, self._clause) for i, value in enumerate(self._values)]

    @property
    def shape(self) -> tuple[int, ...]:
        """Their shape."""
        return (len(self._values),) if self.source is None else self.source.shape

    def numbers(self) -> list[int]:
        """Return them, once they were read, as ints of any size.

        Raises
        ------
        EmptySelection
            If there is none.
        """
        if self.source is not None:
            return [integer_value(self.source.dtype, bits) for bits in patterns(self.source.live())]
        if not self._values:
            raise EmptySelection(f"{self._name} must be at least one index, got none", clause=self._clause)
        return list(self._values)

    def within(self, bound: int) -> list[int]:
        """Return them, each in [0, bound).

        Raises
        ------
        EmptySelection, IndexOutOfBounds
            If that is not so.
        """
        found = self.numbers()
        for i, index in enumerate(found):
            if not 0 <= index < bound:
                raise IndexOutOfBounds(
                    f"{self._name}[{i}] must be in [0, {bound}), got {shown(index)}", clause=self._clause
                )
        return found


def formula_indices(raw: RawTensor | None, copied: list[int]) -> list[int]:
    """Return what a formula needs of indices: read again from a tensor that was saved, else what was copied."""
    return copied if raw is None else [integer_value(raw.dtype, bits) for bits in patterns(raw)]
