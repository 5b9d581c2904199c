"""Indices: a tensor of integers, or a sequence of them (clause FACADE-NEW-6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from fucina.fast._arguments import whole
from fucina.fast._buffers import buffer_of
from fucina.fast._context_core import contexts
from fucina.fast._facade_core import INTEGERS, fresh, operand
from fucina.fast._objects import handles
from fucina.fast._shown import integer_shown, shown
from fucina.fast.tensor import TensorOf
from fucina.spec.errors import (
    DTypeMismatch,
    EmptySelection,
    IndexOutOfBounds,
    InvalidDType,
    InvalidInteger,
    InvalidShape,
)
from fucina.spec.types import DType

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    import numpy.typing as npt

    from fucina.fast._facade_types import TensorType
    from fucina.fast.facade import Tensor
    from fucina.fast.tensor import RawTensor

__all__ = ["Indices", "indices_of", "require_indices", "require_integers"]

_TOP = (1 << 63) - 1


class Indices:
    """Indices as a contiguous raw tensor of i64, for the length of a ``with`` block.

    Attributes
    ----------
    kind : type or None
        The type of the tensor that they were given as; None of a sequence.
    shape : tuple of int
        Its sizes; of a sequence its length.
    words : RawTensor
        The indices, of the tensor's raw shape.

    Clauses: FACADE-NEW-6
    """

    __slots__ = ("_given", "_name", "kind", "shape", "words")

    def __init__(self, name: str, given: Tensor | None, shape: tuple[int, ...], words: RawTensor) -> None:
        self._name, self._given = name, given
        self.kind = None if given is None else cast("TensorType", type(given))
        self.shape = shape
        self.words = words

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.words.deinit()

    def flat(self) -> npt.NDArray[np.int64]:
        """Return a copy of the indices, in row-major order."""
        return np.array(self.words.data_const(), np.int64)

    def require_below(self, end: int, clause: str) -> None:
        """Refuse indices that do not lie in [0, end).

        Raises
        ------
        IndexOutOfBounds
            One is outside.
        """
        found = self._first_outside(end)
        if found is not None:
            raise _outside(self._name, end, *found, clause)

    def _first_outside(self, end: int) -> tuple[int, int] | None:
        """Return place and value of the first index outside; no array of the storage outlives the call."""
        flat: npt.NDArray[np.int64] = self.words.data_const()
        outside = (flat < 0) | (flat >= min(end, _TOP))
        first = int(outside.argmax())
        return (first, int(flat[first])) if outside[first] else None

    def saved(self) -> RawTensor:
        """Return a raw tensor of them for a node, with a reference of its own.

        Clauses: AUTOGRAD-TRACK-1
        """
        made: RawTensor = self.words.clone_view() if self._given is None else self._given._clone_view()
        return made


def _outside(name: str, end: int, place: int, index: int, clause: str) -> IndexOutOfBounds:
    return IndexOutOfBounds(
        f"{name} must lie in [0, {integer_shown(end)}), got {integer_shown(index)} at place {place}", clause=clause
    )


def require_indices(name: str, value: Any, clause: str) -> None:
    """Refuse indices that are a tensor which has ended, or no tensor, sequence or array at all.

    What they hold is looked at later.

    Raises
    ------
    UseAfterDeinit, UseAfterScope, DTypeMismatch
        They are.

    Clauses: FACADE-CTX-1
    """
    if issubclass(type(value), handles.Facade):
        operand(name, value)
    elif issubclass(type(value), handles.Tensor):
        raise DTypeMismatch(f"{name} must be a tensor with tags or a sequence, got {shown(value)}", clause=clause)
    elif not isinstance(value, list | tuple | range):
        buffer_of(name, value, None, clause)


def require_integers(name: str, value: Any, clause: str) -> None:
    """Refuse indices that are a tensor of another dtype.

    Raises
    ------
    InvalidDType
        They are.

    Clauses: FACADE-NEW-6
    """
    if issubclass(type(value), handles.Facade) and value.dtype not in INTEGERS:
        raise InvalidDType(f"{name} must be of an integer dtype, got {value.dtype!r}", clause=clause)


def indices_of(ctx: Any, name: str, value: Any, clause: str) -> Indices:
    """Return indices that were given as a tensor of an integer dtype, or as a sequence for one axis.

    Raises
    ------
    UseAfterDeinit, UseAfterScope, DTypeMismatch, InvalidDType
        No tensor of an integer dtype.
    InvalidInteger, InvalidShape, EmptySelection
        No integers; an array of several axes; none at all.
    IndexOutOfBounds
        One outside i64.
    OutOfMemory
        There is no memory.

    Clauses: FACADE-NEW-6
    """
    require_indices(name, value, clause)
    if issubclass(type(value), handles.Facade):
        given: Tensor = value
        require_integers(name, given, clause)
        if given.dtype is DType.i64 and given._is_contiguous():
            return Indices(name, given, tuple(given.shape), given._clone_view())
        with fresh(ctx, DType.i64, given._raw_shape) as words:
            contexts.convert(given, words)
            return Indices(name, given, tuple(given.shape), words)
    numbers = _listed(name, value, clause)
    if not numbers.size:
        raise EmptySelection(f"{name} must have an index, got none", clause=clause)
    return Indices(name, None, (int(numbers.size),), TensorOf(DType.i64).from_slice((int(numbers.size),), numbers))


def _listed(name: str, value: Any, clause: str) -> npt.NDArray[np.int64]:
    if isinstance(value, list | tuple | range):
        numbers = [whole(f"{name}[{at}]", each, clause) for at, each in enumerate(value)]
        for at, number in enumerate(numbers):
            if not -_TOP <= number <= _TOP:
                raise _outside(name, _TOP, at, number, clause)
        return np.array(numbers, np.int64)
    view = buffer_of(name, value, None, clause)
    held = np.asarray(view)
    if held.dtype.kind not in "iu":
        raise InvalidInteger(f"{name} must be integers, got an array of {held.dtype}", clause=clause)
    if held.ndim != 1:
        raise InvalidShape(f"{name} must have one axis, got an array of shape {held.shape}", clause=clause)
    if held.dtype.kind == "u" and held.dtype.itemsize == 8 and held.size and int(held.max()) > _TOP:
        raise _outside(name, _TOP, int(held.argmax()), int(held.max()), clause)
    return held.astype(np.int64)
