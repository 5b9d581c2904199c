"""What backward needs to know of an operation, and the walk back (chapter ``autograd``).

A result that tracks gradients has a :class:`Node`, a tensor for which they are asked a :class:`Leaf`.  Nodes point
only to earlier nodes and to raw views of what they saved, so nothing here ever refers to itself.

``_nodes`` is the C module under it (csrc/python/nodes.c), in the same shared object as ``_native``: it has the nodes
and walks; the formulas (:mod:`~fucina.fast._formulas`) and the words of errors are here.
"""

from __future__ import annotations

from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from typing import TYPE_CHECKING, NoReturn

from fucina.fast import _native
from fucina.fast._formulas import contiguous_copy
from fucina.fast._shown import tuple_shown
from fucina.fast.tensor import Tensor
from fucina.spec.errors import InvalidShape, SavedValueChanged, UseAfterDeinit

if TYPE_CHECKING:
    from fucina.fast import _nodes as nodes
else:
    _loader = ExtensionFileLoader("fucina.fast._nodes", _native.__file__)
    nodes = module_from_spec(spec_from_file_location("fucina.fast._nodes", loader=_loader))
    _loader.exec_module(nodes)

__all__ = ["Leaf", "Node", "backward", "calls_users"]

Node = nodes.Node
"""An operation whose result tracks gradients: ``Node(shape, operands, saved, formula, constants=())``.

``shape`` is the raw shape of the result; ``operands`` has a node for each operand, or None for one that does not
track; ``saved`` has raw views with references of their own, or None, and the node takes them over; ``formula`` is one
of :mod:`~fucina.fast._formulas`, or like one, and ``constants`` what else it wants.  ``destroy()`` lets go of
everything (clauses AUTOGRAD-TRACK-1, AUTOGRAD-SAVED-1, AUTOGRAD-LIFE-1).
"""

Leaf = nodes.Leaf
"""A tensor for which gradients are asked: ``Leaf(raw_shape, dtype)``.

``gradient`` is a raw tensor of f32, or None; ``zero()`` drops it (clauses AUTOGRAD-LEAF-1, AUTOGRAD-GRAD-1).
"""

backward = nodes.backward
"""``backward(ctx, root)`` gives every leaf on which a tensor of one element depends its gradient.

It raises InvalidShape where there are more elements; UseAfterDeinit and SavedValueChanged where something that is
needed is not there any more, or was written to; OutOfMemory.  No gradient has changed then (clauses AUTOGRAD-BACK-1,
AUTOGRAD-BACK-2).
"""

calls_users = nodes.calls_users
"""``calls_users(formula)`` names the formula that calls what users wrote, which may change gradients meanwhile."""


def _refuse(node: nodes.Node) -> NoReturn:
    """Say why backward cannot go through a node, or start there.

    Clauses: AUTOGRAD-BACK-1, AUTOGRAD-LIFE-1, AUTOGRAD-SAVED-1
    """
    if node.dead:
        raise UseAfterDeinit(
            f"backward needs a tensor of shape {tuple_shown(node.shape)} that was deinited, or whose scope was closed",
            clause="AUTOGRAD-LIFE-1",
        )
    for t, generation in zip(node.saved, node.generations, strict=True):
        if t is not None and t.buffer.generation != generation:
            raise SavedValueChanged(
                f"backward needs the values of {t!r} as they were, but the storage was written to",
                clause="AUTOGRAD-SAVED-1",
            )
    raise InvalidShape(
        f"backward starts at a tensor of one element, got shape {tuple_shown(node.shape)}", clause="AUTOGRAD-BACK-1"
    )


nodes.configure(Tensor.ones((1,)), _refuse, contiguous_copy)
