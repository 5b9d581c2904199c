"""What the methods of the facade's tensors stand on: the context, the operands, and how a result is handed out."""

from __future__ import annotations

import functools
from collections.abc import Callable
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, ParamSpec, TypeVar, cast

import numpy as np

from fucina.fast._context_core import Core as Context
from fucina.fast._facade_types import Names, Tag, TensorType, kind_of
from fucina.fast._objects import handles
from fucina.fast._shown import shown
from fucina.fast._sizes import count_of, entries
from fucina.spec.errors import DTypeMismatch, InvalidDType, InvalidShape
from fucina.spec.types import GEOMETRY, DType, DTypeKind

if TYPE_CHECKING:
    from types import TracebackType

    from fucina.fast.facade import Tensor
    from fucina.fast.runtime import ExecContext
    from fucina.fast.tensor import RawTensor

__all__ = [
    "FLOATS",
    "INTEGERS",
    "PLAIN",
    "TRACKED",
    "Part",
    "Pending",
    "checked_count",
    "constructor",
    "dims_of",
    "fresh",
    "handed",
    "kept",
    "on_context",
    "operand",
    "require_dtype",
    "result",
    "switch",
    "tracks",
    "widened",
]

FLOATS = frozenset({DType.f16, DType.bf16, DType.f32, DType.f64})
INTEGERS = frozenset({DType.u8, DType.u16, DType.i8, DType.i16, DType.i32, DType.i64})
PLAIN = frozenset(dtype for dtype in DType if GEOMETRY[dtype].kind is DTypeKind.scalar)
TRACKED = frozenset({DType.f16, DType.bf16, DType.f32})


class Part(handles.Facade):
    """A part of the methods of ``Tensor``; the parts are put together in :mod:`~fucina.fast.facade`.

    Clauses: FACADE-TYPE-1
    """

    __slots__ = ()

    dtype: ClassVar[DType]
    rank: ClassVar[int]
    axis_tags: ClassVar[tuple[Tag, ...]]
    _names: ClassVar[Names]


_Self = TypeVar("_Self", bound=Part)
_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def _entered(ctx: Any) -> Any:
    if not issubclass(type(ctx), Context):
        raise DTypeMismatch(f"ctx must be an ExecContext, got {shown(ctx)}", clause="FACADE-CTX-1")
    ctx._enter()
    return ctx


def on_context(
    method: Callable[Concatenate[_Self, Any, _Parameters], _Result],
) -> Callable[Concatenate[_Self, ExecContext, _Parameters], _Result]:
    """Return a method whose first argument is a context, which it drives, and whose tensor has not ended.

    Clauses: FACADE-CTX-1
    """

    @functools.wraps(method)
    def call(self: _Self, ctx: Any, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        _entered(ctx)
        try:
            self._check()
            return method(self, ctx, *args, **kwargs)
        finally:
            ctx._leave()

    return cast("Callable[Concatenate[_Self, ExecContext, _Parameters], _Result]", call)


def constructor(
    method: Callable[Concatenate[type[_Self], Any, _Parameters], RawTensor | tuple[RawTensor, Any]],
) -> Callable[Concatenate[type[_Self], ExecContext, _Parameters], Tensor]:
    """Return a method of a type that makes a tensor of the raw one, and its node, that a method makes in a context.

    Clauses: FACADE-CTX-1, FACADE-OWN-1
    """

    @functools.wraps(method)
    def call(cls: type[_Self], ctx: Any, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> Tensor:
        _entered(ctx)
        try:
            if not isinstance(cls, TensorType) or not cls.is_made():
                raise DTypeMismatch(
                    f'{method.__name__} is called on a type such as Tensor("d"), got {shown(cls)}',
                    clause="FACADE-TYPE-2",
                )
            made = method(cls, ctx, *args, **kwargs)
            raw, node = made if type(made) is tuple else (made, None)
            return cast("Tensor", handles.facade_over(cls, ctx, raw, node, True))
        finally:
            ctx._leave()

    call.__signature__ = signature(method).replace(return_annotation="Tensor")  # type: ignore[attr-defined]  # what help() shows
    return cast("Callable[Concatenate[type[_Self], ExecContext, _Parameters], Tensor]", call)


def operand(name: str, value: Any, clause: str = "FACADE-CTX-1") -> Tensor:
    """Return an argument that must be a tensor of the facade, and not have ended.

    Raises
    ------
    DTypeMismatch, UseAfterDeinit, UseAfterScope
        It is none, or has ended.

    Clauses: FACADE-CTX-1
    """
    if not issubclass(type(value), handles.Facade):
        raise DTypeMismatch(f"{name} must be a tensor with tags, got {shown(value)}", clause=clause)
    value._check()
    return cast("Tensor", value)


def require_dtype(what: str, dtype: DType, allowed: frozenset[DType]) -> None:
    """Refuse a dtype for which an operation is not defined.

    Clauses: POLICY-BRANCH-1
    """
    if dtype not in allowed:
        takes = ", ".join(each.name for each in DType if each in allowed)
        raise InvalidDType(f"{what} takes {takes}, got {dtype!r}", clause="POLICY-BRANCH-1")


def switch(name: str, value: Any, clause: str) -> bool:
    """Return an argument that must be a bool.

    Raises
    ------
    DTypeMismatch
        It is none.
    """
    if type(value) not in (bool, np.bool_):  # by its type: isinstance believes what an object says of itself
        raise DTypeMismatch(f"{name} must be a bool, got {shown(value)}", clause=clause)
    return bool(value)


def dims_of(rank: int, shape: Any, clause: str) -> tuple[int, ...]:
    """Return the sizes of a shape that has an entry for each axis; those of a scalar are (1,).

    Raises
    ------
    InvalidShape
        Another number of entries; a size of 0.
    InvalidInteger, Overflow
        No sizes.

    Clauses: FACADE-NEW-1, SHAPE-RULE-1
    """
    given = shape
    if not isinstance(shape, str | bytes | bytearray) and hasattr(shape, "__iter__"):
        given = tuple(shape)
        if len(given) != rank:
            raise InvalidShape(f"shape must have an entry for each of {rank} axes, got {len(given)}", clause=clause)
    found = entries("shape", given, clause)
    if rank == 0:
        return (1,)
    return found


def kept(kind: TensorType, places: Any, dtype: DType) -> type[Tensor]:
    """Return the type of a result that has some of a type's axes, in some order.

    Clauses: FACADE-AXIS-1
    """
    if kind._names is None:
        return kind_of(None, len(places), dtype)
    return kind_of(tuple(kind._names[at] for at in places), len(places), dtype)


def tracks(ctx: Any, dtype: DType, *nodes: Any) -> bool:
    """Return whether a result of a dtype tracks gradients, of operands with these nodes.

    Clauses: AUTOGRAD-TRACK-1
    """
    return dtype in TRACKED and any(node is not None for node in nodes) and not ctx._tracking(0)


class Pending:
    """A raw tensor for the length of a ``with`` block: given back at once where that raises.

    Left to the garbage collector, it would live as long as the traceback, and with it the exception.

    Clauses: FACADE-CTX-1
    """

    __slots__ = ("raw",)

    def __init__(self, raw: RawTensor) -> None:
        self.raw = raw

    def __enter__(self) -> RawTensor:
        return self.raw

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.raw._deinit_replaced()


def fresh(ctx: Any, dtype: DType, dims: tuple[int, ...]) -> Pending:
    """Return room for a result.

    Raises
    ------
    OutOfMemory
        There is none.
    """
    return Pending(ctx._rt.room(dtype, dims))


def result(ctx: Any, kind: Any, raw: RawTensor, node: Any = None, *, reserved: bool = False) -> Tensor:
    """Return a tensor that takes over a raw one; the innermost scope adopts it where it is of f32 or has a node.

    Parameters
    ----------
    ctx, kind, raw : ExecContext, type, RawTensor
        The context, the type of the tensor, and what it takes over.
    node : Node, optional
        Where it tracks gradients.
    reserved : bool
        Whether there is room in the scope.

    Raises
    ------
    OutOfMemory
        There is no room in the scope; the raw tensor is let go of.

    Clauses: FACADE-OWN-1, FACADE-OWN-2
    """
    made = handles.facade_over(kind, ctx, ctx._rt.traced(raw), node, False)
    if (node is not None or kind.dtype is DType.f32) and ctx._rt.scopes.marks:
        try:
            ctx._rt.scopes.adopt_result(made, reserved=reserved)
        except BaseException:
            made.deinit()
            raise
    return cast("Tensor", made)


def handed(ctx: Any, kind: Any, raw: RawTensor) -> Tensor:
    """Return a tensor that takes over a raw one and stays the caller's, scope or not.

    Clauses: FACADE-OWN-2
    """
    return cast("Tensor", handles.facade_over(kind, ctx, raw, None, False))


def widened(x: Part, places: tuple[int | None, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return shape and strides of a tensor with its axes at other places; a place without an axis has size 1."""
    shape, strides = x._raw_shape, x._raw_strides
    return (
        tuple(1 if at is None else shape[at] for at in places),
        tuple(0 if at is None else strides[at] for at in places),
    )


def checked_count(shape: tuple[int, ...], clause: str) -> tuple[int, ...]:
    """Return a shape whose elements can be counted.

    Clauses: SHAPE-COUNT-1
    """
    count_of("shape", shape, clause)
    return shape
