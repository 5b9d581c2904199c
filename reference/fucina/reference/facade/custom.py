"""Operations of one's own: a forward and a backward on raw tensors, and what makes an operation of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from fucina.reference.arguments import is_a, shown
from fucina.reference.facade.arguments import TRACKABLE, driving, tags_argument, tensor
from fucina.reference.facade.kinds import Kind, Tag
from fucina.reference.facade.making import require_movable
from fucina.reference.facade.results import Results, fits, tracks
from fucina.reference.graph import Formula, Numbers, read32, write32
from fucina.reference.runtime import ExecContext
from fucina.reference.tensor import RawTensor
from fucina.spec.errors import DTypeMismatch, ShapeMismatch, UseAfterDeinit
from fucina.spec.types import DType

if TYPE_CHECKING:
    from fucina.reference.facade.tensor import Tensor
    from fucina.spec.memory import TensorPart

__all__ = ["CustomOperation", "custom_vjp"]

CLAUSE = "AUTOGRAD-CUSTOM-1"

Forward: TypeAlias = Callable[..., "TensorPart"]
Backward: TypeAlias = Callable[..., "Sequence[TensorPart | None]"]


def custom_vjp(forward: Forward, backward: Backward) -> CustomOperation:
    """Return an operation that computes with one function, and its gradients with another.

    Parameters
    ----------
    forward : callable
        ``forward(ctx, *raws)`` returns a raw tensor of f16, bf16 or f32.
    backward : callable
        ``backward(ctx, g, *raws)`` returns an f32 raw tensor, or None, for each operand.

    Returns
    -------
    callable
        ``op(ctx, *tensors, tags=None)``.

    Raises
    ------
    DTypeMismatch
        If one of them cannot be called.

    Notes
    -----
    Clauses: AUTOGRAD-CUSTOM-1
    """
    for name, function in (("forward", forward), ("backward", backward)):
        if not callable(function):
            raise DTypeMismatch(f"{name} must be callable, got {shown(function)}", clause=CLAUSE)
    return CustomOperation(forward, backward)


class CustomOperation:
    """What :func:`custom_vjp` returns.

    Notes
    -----
    Clauses: AUTOGRAD-CUSTOM-1
    """

    def __init__(self, forward: Forward, backward: Backward) -> None:
        self._forward, self._backward = forward, backward

    def __call__(self, ctx: ExecContext, *tensors: Any, tags: Sequence[Tag] | None = None) -> Tensor:
        """Return the result of the forward function on the raw tensors of one tensor or more.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        *tensors : tensor
            The operands, of whatever dtypes.
        tags : sequence of str, optional
            The tags of the result; without them those of the first operand.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch
            If an operand is no tensor, or there is none.
        InvalidTag, InvalidShape
            If the tags are not those of a type.
        DTypeMismatch, ShapeMismatch
            If the forward function returns something else than a raw tensor with these axes.
        ActiveExecScopeUnsupported, UnsupportedView
            If a scope owns what it returns, or it owns nothing.
        OutOfMemory
            If there is no memory for the adoption by a scope.

        Notes
        -----
        Clauses: AUTOGRAD-CUSTOM-1, FACADE-CTX-1, FACADE-OWN-2
        """
        with driving(ctx):
            operands = [tensor(f"tensors[{i}]", x) for i, x in enumerate(tensors)]
            if not operands:
                raise DTypeMismatch(f"at least one tensor is required, got {len(operands)}", clause=CLAUSE)
            own = type(operands[0])
            kind: Kind = own if tags is None else own.with_tags(tags_argument(tags))
            with ctx.no_grad():
                found: Any = self._forward(ctx, *(x.live().borrowed() for x in operands))
            _require_result(found, kind)
            kind = own.with_tags(kind.axis_tags, found.dtype)
            formula = _formula(self._backward, tuple(found.shape))
            try:
                with Results(ctx, found.dtype, tracks(ctx, found.dtype, *operands)) as results:
                    result = results.done(kind, found.moved(), formula, operands, [x.raw for x in operands])
            except BaseException:
                del found  # it is as before, which may be nobody's; the traceback must not keep it
                raise
            return result


def _formula(backward: Backward, shape: tuple[int, ...]) -> Formula:
    """Return the formula that calls a backward function.

    Notes
    -----
    Clauses: AUTOGRAD-CUSTOM-1
    """

    def formula(ctx: ExecContext, g: Numbers, saved: Sequence[RawTensor | None]) -> Sequence[Numbers | None]:
        held = [raw for raw in saved if raw is not None]
        lent = [raw.clone_view() for raw in held]  # valid during the call, whatever becomes of the node
        try:
            lent.insert(0, ctx.rt.new(DType.f32, shape))
            write32(lent[0], g)
            with ctx.no_grad():
                found: Any = backward(ctx, *(raw.borrowed() for raw in lent))
            _require_gradients(found, lent[1:])
            numbers = [None if raw is None else read32(raw) for raw in found]
        finally:
            for raw in lent:
                raw.deinit()
        for consumed in found:
            if consumed is not None:
                consumed.deinit_replaced()
        return numbers

    return formula


def _require_gradients(found: Any, operands: Sequence[RawTensor]) -> None:
    """Refuse what a backward function returned, if it is not right.

    Notes
    -----
    Clauses: AUTOGRAD-CUSTOM-1
    """
    if not isinstance(found, tuple | list):
        raise DTypeMismatch(f"backward must return a tuple or list, got {shown(found)}", clause=CLAUSE)
    if len(found) != len(operands):
        raise ShapeMismatch(f"backward must return {len(operands)} gradients, got {len(found)}", clause=CLAUSE)
    for i, (raw, operand) in enumerate(zip(found, operands, strict=True)):
        if raw is None:
            continue
        name = f"gradient {i}"
        if not is_a(raw, RawTensor):
            raise DTypeMismatch(f"{name} must be a raw tensor or None, got {shown(raw)}", clause=CLAUSE)
        raw.live()
        if raw.dtype is not DType.f32:
            raise DTypeMismatch(f"{name} must be of f32, got {raw.dtype.name}", clause=CLAUSE)
        if raw.shape != operand.shape:
            raise ShapeMismatch(
                f"{name} must have the shape {tuple(operand.shape)}, got {tuple(raw.shape)}", clause=CLAUSE
            )
        require_movable(name, raw, CLAUSE)
        if any(raw is other for other in found[:i]):
            raise UseAfterDeinit(f"{name} is one that was consumed before it", clause=CLAUSE)


def _require_result(found: Any, kind: Kind) -> None:
    """Refuse what a forward function returned, if it is not right.

    Notes
    -----
    Clauses: AUTOGRAD-CUSTOM-1
    """
    if not is_a(found, RawTensor):
        raise DTypeMismatch(f"forward must return a raw tensor, got {shown(found)}", clause=CLAUSE)
    found.live()
    if found.dtype not in TRACKABLE:
        raise DTypeMismatch(f"forward must return f16, bf16 or f32, got {found.dtype.name}", clause=CLAUSE)
    shape = tuple(found.shape)
    if not fits(shape, kind.rank):
        raise ShapeMismatch(f"forward must return the axes {kind.axis_tags}, got the shape {shape}", clause=CLAUSE)
    require_movable("the result of forward", found, CLAUSE)
