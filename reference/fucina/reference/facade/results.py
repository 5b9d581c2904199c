"""Results: what an operation makes until it is done, given back where it raises, adopted where a scope is open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fucina.reference.facade.values import Value
from fucina.reference.graph import TRACKABLE, Formula, Node
from fucina.reference.lives import Life
from fucina.spec.types import DType

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from fucina.reference.facade.tensor import Tensor
    from fucina.reference.runtime import ExecContext
    from fucina.reference.tensor import RawTensor

__all__ = ["Results", "fits", "raw_shape", "tracks"]


def raw_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of the raw tensor below; a scalar's is (1,)."""
    return shape or (1,)


def fits(shape: tuple[int, ...], rank: int) -> bool:
    """Return whether the raw tensor below a tensor of a rank can have a shape; a scalar's is (1,)."""
    return len(shape) == rank if rank else shape == (1,)


def tracks(ctx: ExecContext, dtype: DType, *operands: Value | None) -> bool:
    """Return whether a result of a dtype tracks gradients.

    Notes
    -----
    Clauses: AUTOGRAD-TRACK-1, AUTOGRAD-NOGRAD-1
    """
    enabled = ctx.rt.without_gradients == 0 and dtype in TRACKABLE
    return enabled and any(x is not None and x.node is not None for x in operands)


class Results:
    """A ``with`` block that makes the results of one operation.

    A slot of the scope is reserved first, since that can fail.  What was made is given back where the block raises.

    Parameters
    ----------
    ctx : ExecContext
        The context, which the calling thread drives.
    dtype : DType
        Of the result that may be adopted.
    tracked : bool
        Whether it tracks gradients.

    Notes
    -----
    Clauses: FACADE-CTX-1, FACADE-OWN-1, FACADE-OWN-2
    """

    def __init__(self, ctx: ExecContext, dtype: DType, tracked: bool = False) -> None:
        self._ctx = ctx
        self.tracked = tracked
        self._adopted = ctx.rt.scope_depth > 0 and (tracked or dtype is DType.f32)
        self._reserved = False
        self._made: list[RawTensor] = []

    def __enter__(self) -> Results:
        if self._adopted:
            self._ctx.rt.scopes.reserve()
            self._reserved = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._reserved:
            self._ctx.rt.scopes.give_back_slot()
        if error is not None:
            for raw in self._made:
                if raw.life is Life.OWNED:
                    raw.deinit()

    def new(self, dtype: DType, shape: tuple[int, ...]) -> RawTensor:
        """Return a new raw tensor for a result of a shape.

        Raises
        ------
        OutOfMemory
            If there is no memory.
        """
        return self.keep(self._ctx.rt.new(dtype, raw_shape(shape)))

    def keep(self, raw: RawTensor) -> RawTensor:
        """Return a raw tensor that was made for a result, and answer for it until then."""
        self._made.append(raw)
        return raw

    def done(
        self,
        kind: type[Any],
        raw: RawTensor,
        formula: Formula | None = None,
        operands: Sequence[Value | None] = (),
        saved: Sequence[RawTensor | None] = (),
    ) -> Tensor:
        """Return the result that tracks as the block does, and that a scope owns, if one is open.

        Parameters
        ----------
        kind : type of tensors
            Its type.
        raw : RawTensor
            Its elements.
        formula : callable, optional
            The gradients of the operands, if it tracks.
        operands : sequence of tensors or None
            What it was made of; None for what is no tensor.
        saved : sequence of RawTensor or None
            What the formula needs.

        Notes
        -----
        Clauses: AUTOGRAD-TRACK-1, FACADE-OWN-2
        """
        node = (
            Node(raw.shape, formula, [None if x is None else x.node for x in operands], saved) if self.tracked else None
        )
        result: Tensor = kind.holding(self._ctx, raw, node)
        if self._reserved:
            self._reserved = False
            self._ctx.rt.scopes.adopt(raw, node, Node.destroy)
        return result

    def aside(self, kind: type[Tensor], raw: RawTensor) -> Tensor:
        """Return a further result: a constant, the caller's."""
        return kind.holding(self._ctx, raw)
