"""What backward needs to know of an operation, and the walk back (chapter ``autograd``).

A result that tracks gradients has a :class:`Node`, a tensor for which they are asked a :class:`Leaf`.  Nodes point
only to earlier nodes and to raw views of what they saved, so nothing here ever refers to itself.
"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Any, cast

from fucina.fast._context_core import contexts
from fucina.fast._formulas import Formula, contiguous_copy
from fucina.fast.tensor import RawTensor, Tensor
from fucina.spec.errors import InvalidShape, SavedValueChanged, UseAfterDeinit
from fucina.spec.types import DType

if TYPE_CHECKING:
    from fucina.fast.runtime import ExecContext

__all__ = ["Leaf", "Node", "backward"]

_serial = count().__next__
_ONE = Tensor.ones((1,))


class Node:
    """An operation whose result tracks gradients.

    Parameters
    ----------
    shape : tuple of int
        The raw shape of the result.
    operands : tuple of Node or None
        One for each operand, None for one that does not track.
    saved : tuple of RawTensor or None
        Views with references of their own, which the node takes over.
    formula : Formula
        One of :mod:`~fucina.fast._formulas`, or like one.
    constants : tuple
        What else it wants.

    Clauses: AUTOGRAD-TRACK-1, AUTOGRAD-SAVED-1
    """

    __slots__ = ("constants", "dead", "formula", "generations", "operands", "saved", "serial", "shape")

    def __init__(
        self,
        shape: tuple[int, ...],
        operands: tuple[Node | None, ...],
        saved: tuple[RawTensor | None, ...],
        formula: Formula,
        constants: tuple[Any, ...] = (),
    ) -> None:
        self.serial: int = _serial()
        self.shape = shape
        self.operands = operands
        self.saved = saved
        self.generations = tuple([t and t.buffer.generation for t in saved]) if saved else ()
        self.formula = formula
        self.constants = constants
        self.dead = False

    def destroy(self) -> None:
        """Let go of everything; backward cannot go through the node any more.

        Clauses: AUTOGRAD-LIFE-1
        """
        self.dead = True
        saved, self.saved, self.operands = self.saved, (), ()
        for t in saved:
            if t is not None:
                t.deinit()

    def require(self) -> None:
        """Raise where backward cannot go through the node.

        Raises
        ------
        UseAfterDeinit
            It was destroyed.
        SavedValueChanged
            A storage was written to since the node was made.

        Clauses: AUTOGRAD-LIFE-1, AUTOGRAD-SAVED-1
        """
        if self.dead:
            raise UseAfterDeinit(
                f"backward needs a tensor of shape {tuple(self.shape)} that was deinited, or whose scope was closed",
                clause="AUTOGRAD-LIFE-1",
            )
        for t, generation in zip(self.saved, self.generations, strict=True):
            if t is not None and t.buffer.generation != generation:
                raise SavedValueChanged(
                    f"backward needs the values of {t!r} as they were, but they were written to",
                    clause="AUTOGRAD-SAVED-1",
                )


class Leaf(Node):
    """A tensor for which gradients are asked.

    Parameters
    ----------
    shape : tuple of int
        Its raw shape.
    dtype : DType
        Its dtype; the gradient is f32 in any case.

    Clauses: AUTOGRAD-LEAF-1
    """

    __slots__ = ("dtype", "gradient")

    def __init__(self, shape: tuple[int, ...], dtype: DType) -> None:
        super().__init__(shape, (), (), _no_formula)
        self.dtype = dtype
        self.gradient: RawTensor | None = None

    def zero(self) -> None:
        """Drop the gradient.

        Clauses: AUTOGRAD-GRAD-1
        """
        gradient, self.gradient = self.gradient, None
        if gradient is not None:
            gradient.deinit()

    def destroy(self) -> None:
        """Drop the gradient; backward cannot reach the leaf any more.

        Clauses: AUTOGRAD-LIFE-1
        """
        self.dead = True
        self.zero()


def _no_formula(*_: object) -> tuple[()]:
    """Return no gradients: a leaf has no operands."""
    return ()


# -- backward


def backward(ctx: ExecContext, root: Node) -> None:
    """Give every leaf on which a tensor of one element depends its gradient.

    Raises
    ------
    InvalidShape
        There is more than one element.
    UseAfterDeinit, SavedValueChanged
        Something that is needed is not there any more, or was written to; no gradient has changed.
    OutOfMemory
        There is no memory; no gradient has changed.

    Clauses: AUTOGRAD-BACK-1, AUTOGRAD-BACK-2
    """
    if max(root.shape) != 1:
        raise InvalidShape(
            f"backward starts at a tensor of one element, got shape {tuple(root.shape)}", clause="AUTOGRAD-BACK-1"
        )
    ctx._enter()
    try:
        walk = _Walk(ctx)
        try:
            walk.run(root)
        except BaseException:
            walk.drop()
            raise
    finally:
        ctx._leave()


class _Walk:
    """One run of backward: what has arrived where."""

    __slots__ = ("arrived", "ctx", "g", "given", "order", "summed")

    def __init__(self, ctx: ExecContext) -> None:
        self.ctx = ctx
        self.order: list[tuple[int, Node]] = []  # of nodes with a gradient, not yet visited: a heap, the latest first
        self.arrived: dict[Node, RawTensor] = {}
        self.summed: set[Node] = set()  # leaves whose gradient in `arrived` has the one that they had within it
        self.g: RawTensor | None = None
        self.given: Any = ()

    def run(self, root: Node) -> None:
        """Visit the nodes, the latest first."""
        ctx, order, arrived, arrive = self.ctx, self.order, self.arrived, self.arrive
        arrive(root, _ONE.broadcast_to(root.shape))
        while order:
            node = heappop(order)[1]
            node.require()
            self.g = g = arrived.pop(node)
            operands = node.operands
            wanted = tuple([operand is not None for operand in operands])
            self.given = given = node.formula(ctx, g, node.saved, node.constants, wanted)
            g.deinit()
            for operand, gradient in zip(operands, given, strict=True):
                if gradient is not None and operand is not None:
                    arrive(operand, gradient)
        self.commit()

    def arrive(self, node: Node, gradient: RawTensor) -> None:
        """Keep a gradient, or add it to what has arrived; on a leaf, to what is there.

        Clauses: AUTOGRAD-BACK-1, AUTOGRAD-BACK-2
        """
        arrived = self.arrived
        first = arrived.get(node)
        if first is None:
            arrived[node] = gradient
            if isinstance(node, Leaf):
                node.require()
            else:
                heappush(self.order, (-node.serial, node))
            return
        if isinstance(node, Leaf) and node.gradient is not None and node not in self.summed:
            arrived[node] = self.ctx.add(node.gradient, first)
            self.summed.add(node)
            first.deinit()
            first = arrived[node]
        if first.can_take_in_place():
            _add_to(first, gradient)
        else:
            arrived[node] = self.ctx.add(first, gradient)
            first.deinit()
        gradient.deinit()

    def commit(self) -> None:
        """Put the gradients on the leaves: first whatever can fail, then the rest.

        Clauses: AUTOGRAD-BACK-2, AUTOGRAD-GRAD-1
        """
        ctx, leaves, summed = self.ctx, cast("dict[Leaf, RawTensor]", self.arrived), self.summed
        for leaf, gradient in leaves.items():
            held = leaf.gradient
            if held is None or leaf in summed:
                if not gradient.can_take_in_place():
                    leaves[leaf] = contiguous_copy(ctx, gradient)
                    gradient.deinit()
            elif not held.can_take_in_place():
                leaves[leaf] = ctx.add(held, gradient)
                summed.add(leaf)
                gradient.deinit()
        traced = ctx._rt._trace
        for leaf, gradient in leaves.items():
            held = leaf.gradient
            if held is not None and leaf not in summed:
                _add_to(held, gradient)
                gradient.deinit()
                continue
            if traced:
                gradient.origin = None  # nobody has to end it
            leaf.gradient = gradient
            if held is not None:
                held.deinit()

    def drop(self) -> None:
        """End every gradient that is still there."""
        for t in (self.g, *self.given, *self.arrived.values()):
            if t is not None and t._is_usable():
                t.deinit()


def _add_to(a: RawTensor, b: RawTensor) -> None:
    """Add b to a, which nobody else sees."""
    if b.is_contiguous():
        a._add(b)
    else:
        contexts.pointwise(0, a, b, a, True)
