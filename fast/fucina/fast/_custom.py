"""Operations of one's own, with a forward and a backward function (chapter ``autograd``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from fucina.fast._context_core import Core as Context
from fucina.fast._facade_core import TRACKED, operand, result, tracks
from fucina.fast._facade_making import consumable
from fucina.fast._facade_types import kind_of, names_of
from fucina.fast._objects import handles
from fucina.fast._shown import shown, tuple_shown
from fucina.fast.autograd import Node, calls_users
from fucina.spec.errors import DTypeMismatch, ShapeMismatch, UseAfterDeinit
from fucina.spec.types import DType

if TYPE_CHECKING:
    from fucina.fast._facade_types import Tag, TensorType
    from fucina.fast.facade import Tensor
    from fucina.fast.runtime import ExecContext
    from fucina.fast.tensor import RawTensor
    from fucina.spec.memory import TensorPart

__all__ = ["custom_vjp"]

_CLAUSE = "AUTOGRAD-CUSTOM-1"

Forward: TypeAlias = Callable[..., "TensorPart"]
Backward: TypeAlias = Callable[..., "Sequence[TensorPart | None]"]


class Operation(Protocol):
    """What :func:`custom_vjp` returns."""

    def __call__(self, ctx: ExecContext, *tensors: Any, tags: Sequence[Tag] | None = None) -> Tensor:
        """Return the result of the forward function."""


def custom_vjp(forward: Forward, backward: Backward) -> Operation:
    """Return an operation with a forward and a backward function.

    Parameters
    ----------
    forward : callable
        ``forward(ctx, *raws)`` returns a raw tensor of f16, bf16 or f32, which the result consumes.
    backward : callable
        ``backward(ctx, g, *raws)`` returns for each operand an f32 raw tensor of its shape, which is consumed, or None.

    Returns
    -------
    callable
        ``op(ctx, *tensors, tags=None)``.

    Raises
    ------
    DTypeMismatch
        One of them cannot be called.

    Clauses: AUTOGRAD-CUSTOM-1
    """
    for name, value in (("forward", forward), ("backward", backward)):
        if not callable(value):
            raise DTypeMismatch(f"{name} must be callable, got {shown(value)}", clause=_CLAUSE)

    def operation(ctx: ExecContext, *tensors: Any, tags: Sequence[Tag] | None = None) -> Tensor:
        """Return what the forward function makes of the tensors, with tags, or with those of the first operand.

        Clauses: AUTOGRAD-CUSTOM-1
        """
        return _applied(ctx, tensors, tags, forward, backward)

    return operation


def _applied(
    ctx: Any, tensors: Sequence[Any], tags: Any, forward: Callable[..., Any], backward: Callable[..., Any]
) -> Tensor:
    if not issubclass(type(ctx), Context):
        raise DTypeMismatch(f"ctx must be an ExecContext, got {shown(ctx)}", clause="FACADE-CTX-1")
    ctx._enter()
    try:
        if not tensors:
            raise DTypeMismatch(f"an operation takes one tensor or more, got {len(tensors)}", clause=_CLAUSE)
        operands = [operand(f"operand {k}", value, _CLAUSE) for k, value in enumerate(tensors)]
        names = names_of(tags) if tags is not None else None
        with _untracked(ctx):
            raw = forward(ctx, *[value.as_raw_tensor() for value in operands])
        if not issubclass(type(raw), handles.Tensor):
            raise DTypeMismatch(f"forward must return a raw tensor, got {shown(raw)}", clause=_CLAUSE)
        raw.rank()
        if raw.dtype not in TRACKED:
            raise DTypeMismatch(f"forward must return a tensor of f16, bf16 or f32, got {raw!r}", clause=_CLAUSE)
        first = type(operands[0])
        rank = first.rank if names is None else len(names)
        kind = cast("TensorType", kind_of(first._names if names is None else names, rank, raw.dtype))
        shape = tuple(raw.shape)
        if len(shape) != rank if rank else shape != (1,):
            raise ShapeMismatch(
                f"forward must return a tensor for {kind!r}, got shape {tuple_shown(shape)}", clause=_CLAUSE
            )
        consumable(kind, raw, "custom_vjp", TRACKED)
        nodes = tuple(value._node for value in operands)
        tracked = tracks(ctx, raw.dtype, *nodes)
        with _room(ctx, tracked or raw.dtype is DType.f32) as reserved:
            node = None
            if tracked:
                node = Node(shape, nodes, tuple(value._clone_view() for value in operands), _formula, (backward,))
            return result(ctx, kind, raw, node, reserved=reserved)
    finally:
        ctx._leave()


@contextmanager
def _room(ctx: Any, adopted: bool) -> Iterator[bool]:
    """Reserve room in the innermost scope, if it adopts the result, and say whether: then nothing else can fail.

    What is to be consumed is the caller's until then.

    Clauses: SCOPE-RESERVE-1, AUTOGRAD-CUSTOM-1
    """
    scopes = ctx._rt.scopes
    reserved = adopted and bool(scopes.marks)
    if reserved:
        scopes.reserve()
    try:
        yield reserved
    except BaseException:
        if reserved:
            scopes.give_back()
        raise


@contextmanager
def _untracked(ctx: Any) -> Iterator[None]:
    ctx._tracking(1)
    try:
        yield
    finally:
        ctx._tracking(-1)


@contextmanager
def _lent(ctx: Any, tensors: Sequence[RawTensor]) -> Iterator[list[RawTensor]]:
    """Raw tensors that own nothing, and end with the block."""
    lenders: list[Any] = []
    try:
        for t in tensors:
            kind = kind_of(None, len(t.shape), t.dtype)
            lenders.append(handles.facade_over(kind, None, t.clone_view(), None, False))
        yield [lender.as_raw_tensor() for lender in lenders]
    finally:
        for lender in lenders:
            lender.deinit()


def _formula(
    ctx: ExecContext, g: RawTensor, saved: tuple[Any, ...], constants: tuple[Any, ...], wanted: tuple[bool, ...]
) -> Sequence[RawTensor | None]:
    """Return what the backward function gives, once all of it was looked at.

    Clauses: AUTOGRAD-CUSTOM-1
    """
    shapes = [tuple(value.shape) for value in saved]
    with _untracked(ctx), _lent(ctx, (g, *saved)) as raws:
        given = constants[0](ctx, *raws)
        if not isinstance(given, tuple | list):
            raise DTypeMismatch(
                f"backward must return a tuple or list of gradients, got {shown(given)}", clause=_CLAUSE
            )
        if len(given) != len(saved):
            raise ShapeMismatch(
                f"backward must return a gradient or None for each of {len(saved)} operands, got {len(given)}",
                clause=_CLAUSE,
            )
        for k, (gradient, shape) in enumerate(zip(given, shapes, strict=True)):
            if gradient is not None:
                _require_gradient(k, gradient, shape)
                if any(gradient is other for other in given[:k]):
                    raise UseAfterDeinit(f"gradient {k} is one that was consumed before it", clause=_CLAUSE)
        return [_consumed(gradient) for gradient in given]


calls_users(_formula)


def _require_gradient(k: int, gradient: Any, shape: tuple[int, ...]) -> None:
    if not issubclass(type(gradient), handles.Tensor):
        raise DTypeMismatch(f"gradient {k} must be a raw tensor or None, got {shown(gradient)}", clause=_CLAUSE)
    gradient.rank()
    if gradient.dtype is not DType.f32:
        raise DTypeMismatch(f"gradient {k} must be of f32, got {gradient!r}", clause=_CLAUSE)
    if tuple(gradient.shape) != shape:
        raise ShapeMismatch(
            f"gradient {k} must have shape {tuple_shown(shape)}, got {tuple_shown(tuple(gradient.shape))}",
            clause=_CLAUSE,
        )
    consumable(cast("TensorType", kind_of(None, len(shape), DType.f32)), gradient, "custom_vjp", TRACKED)


def _consumed(gradient: RawTensor | None) -> RawTensor | None:
    """Return a raw tensor of ours in the place of one of the caller's, whose further deinit does nothing."""
    if gradient is None:
        return None
    view = gradient.clone_view()
    gradient._deinit_replaced()
    return view
