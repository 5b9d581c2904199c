"""The graph: what operations on tensors that track gradients remember, and the walk back over it.

A node knows the nodes of its operands, views of the values that its formula needs, and the formula.  A leaf has no
formula; it has the gradient.  Gradients under way are lists of soft floats, those of leaves are pooled f32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from fucina.reference.bridges import FLOATS
from fucina.reference.formats import decode
from fucina.reference.lives import Life
from fucina.reference.ops.operands import patterns, store
from fucina.reference.softfloat import Soft32
from fucina.reference.tensor import RawTensor
from fucina.spec.errors import SavedValueChanged, UseAfterDeinit
from fucina.spec.types import DType

if TYPE_CHECKING:
    from fucina.reference.runtime import ExecContext

__all__ = ["TRACKABLE", "Formula", "Node", "Numbers", "backward", "read32", "write32"]

Numbers: TypeAlias = list[Soft32]
"""Elements in row-major order, as f32."""

Formula: TypeAlias = Callable[["ExecContext", Numbers, Sequence["RawTensor | None"]], Sequence["Numbers | None"]]
"""``formula(ctx, g, saved)`` returns a gradient, or None, for each operand."""

TRACKABLE = frozenset({DType.f16, DType.bf16, DType.f32})
"""The dtypes that can track gradients (clause AUTOGRAD-TRACK-1)."""

ONE = Soft32.integer(1)

_serials = count()


def read32(raw: RawTensor) -> Numbers:
    """Return the elements of a tensor of f16, bf16 or f32 in f32, which is exact."""
    fmt = FLOATS[raw.dtype]
    return [Soft32.from_number(decode(fmt, bits)) for bits in patterns(raw)]


def write32(raw: RawTensor, numbers: Numbers) -> None:
    """Write all elements of a contiguous tensor of f32."""
    store(raw, [x.bits for x in numbers])


class Saved(NamedTuple):
    """A view of a value that a formula needs, and the generation of its storage when it was taken.

    Notes
    -----
    Clauses: AUTOGRAD-SAVED-1
    """

    view: RawTensor
    generation: int


class Node:
    """What backward knows of one tensor.

    Parameters
    ----------
    shape : tuple of int
        The raw shape of the tensor.
    formula : callable, optional
        The gradients of the operands; None for a leaf.
    operands : sequence of Node or None
        The nodes of the operands, in their order; None where no gradient is wanted.
    saved : sequence of RawTensor or None
        What the formula will be given: a view of each is taken here.

    Notes
    -----
    Clauses: AUTOGRAD-TRACK-1, AUTOGRAD-LIFE-1
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        formula: Formula | None = None,
        operands: Sequence[Node | None] = (),
        saved: Sequence[RawTensor | None] = (),
    ) -> None:
        self.serial = next(_serials)
        self.shape = tuple(shape)
        self.formula = formula
        self.operands = tuple(operands)
        self.gradient: RawTensor | None = None
        self._saved = tuple(None if raw is None else Saved(raw.clone_view(), raw.live().generation) for raw in saved)
        self._destroyed = False

    def destroy(self) -> None:
        """Let go of everything; whoever needs this node finds out.

        Notes
        -----
        Clauses: AUTOGRAD-LIFE-1
        """
        if self._destroyed:
            return
        self._destroyed = True
        saved, self._saved = self._saved, ()
        self.operands, self.formula = (), None
        for value in saved:
            if value is not None and value.view.life is Life.OWNED:
                value.view.deinit()
        self.drop_gradient()

    def drop_gradient(self) -> None:
        """Let go of the gradient.

        Notes
        -----
        Clauses: AUTOGRAD-GRAD-1
        """
        gradient, self.gradient = self.gradient, None
        if gradient is not None:
            gradient.deinit()

    @property
    def is_leaf(self) -> bool:
        """Whether it is where gradients end."""
        return self.formula is None

    def require_usable(self) -> None:
        """Refuse a node that was destroyed, or whose saved values have changed.

        Raises
        ------
        UseAfterDeinit, SavedValueChanged
            If it is one.

        Notes
        -----
        Clauses: AUTOGRAD-LIFE-1, AUTOGRAD-SAVED-1
        """
        if self._destroyed:
            raise UseAfterDeinit(
                f"backward needs a tensor of shape {self.shape}, which was deinited, or whose scope was closed",
                clause="AUTOGRAD-LIFE-1",
            )
        for saved in self._saved:
            if saved is not None and saved.view.live("AUTOGRAD-LIFE-1").generation != saved.generation:
                raise SavedValueChanged(
                    f"a value that backward needs was written to after it was saved: {saved.view!r}",
                    clause="AUTOGRAD-SAVED-1",
                )

    def give(self, ctx: ExecContext, g: Numbers) -> Sequence[Numbers | None]:
        """Return the gradients of the operands."""
        assert self.formula is not None
        return self.formula(ctx, g, [None if saved is None else saved.view for saved in self._saved])


def backward(ctx: ExecContext, start: Node) -> None:
    """Walk back from a node of one element and leave gradients on the leaves.

    Parameters
    ----------
    ctx : ExecContext
        Where the gradients come from.
    start : Node
        Whose gradient is 1.

    Raises
    ------
    UseAfterDeinit, SavedValueChanged
        If a node that is needed was destroyed, or a value that it saved has changed.
    OutOfMemory
        If there is no memory for a gradient.

    Notes
    -----
    Clauses: AUTOGRAD-BACK-1, AUTOGRAD-BACK-2
    """
    nodes = _needed(start)
    for node in nodes:
        node.require_usable()

    arrived: dict[Node, Numbers] = {}
    on_leaves: dict[Node, list[Numbers]] = {}

    def deliver(node: Node, g: Numbers) -> None:
        if node.is_leaf:
            on_leaves.setdefault(node, []).append(g)
        elif node in arrived:
            arrived[node] = added(arrived[node], g)
        else:
            arrived[node] = g

    deliver(start, [ONE])
    for node in nodes:
        if node in arrived:
            node.require_usable()  # a backward of somebody's own may have done anything
            operands = node.operands
            for operand, g in zip(operands, node.give(ctx, arrived.pop(node)), strict=True):
                if operand is not None and g is not None:
                    deliver(operand, g)
    _store(ctx, on_leaves)


def _needed(start: Node) -> list[Node]:
    """Return the nodes on which one depends, itself included, the newest first.

    Notes
    -----
    Clauses: AUTOGRAD-BACK-1
    """
    found, open_ends = {start}, [start]
    while open_ends:
        for operand in open_ends.pop().operands:
            if operand is not None and operand not in found:
                found.add(operand)
                open_ends.append(operand)
    return sorted(found, key=lambda node: -node.serial)


def _store(ctx: ExecContext, on_leaves: dict[Node, list[Numbers]]) -> None:
    """Put on each leaf what has arrived; all of it, or nothing.

    Notes
    -----
    Clauses: AUTOGRAD-BACK-2, AUTOGRAD-GRAD-1
    """
    made: list[RawTensor] = []
    try:
        for leaf, gradients in on_leaves.items():
            leaf.require_usable()
            made.append(ctx.rt.new(DType.f32, leaf.shape))
            total = gradients.pop(0) if leaf.gradient is None else read32(leaf.gradient)
            for g in gradients:
                total = added(total, g)
            write32(made[-1], total)
    except BaseException:
        for gradient in made:
            gradient.deinit()
        raise
    for leaf, gradient in zip(on_leaves, made, strict=True):
        gradient.origin = None  # nobody's to deinit, so nobody's to be warned of
        leaf.drop_gradient()
        leaf.gradient = gradient


def added(a: Numbers, b: Numbers) -> Numbers:
    """Return ``a + b``, element by element."""
    return [x + y for x, y in zip(a, b, strict=True)]
