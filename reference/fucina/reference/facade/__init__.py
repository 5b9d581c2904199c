"""The facade: tensors whose axes have names, their operations, and their gradients.

Read in this order: :mod:`~fucina.reference.facade.kinds` (the types), :mod:`~fucina.reference.facade.values` (one
tensor and its life), :mod:`~fucina.reference.facade.arguments` and :mod:`~fucina.reference.facade.indices`;
:mod:`~fucina.reference.facade.places`, where elements come from, and :mod:`~fucina.reference.facade.results`, who owns
what an operation makes. On these stand the parts of a tensor: making, filled, filling, seeded, looking; views and
axes; arithmetic, conversions, taking; reductions, order, products, composed; gradients.
:mod:`~fucina.reference.facade.tensor` puts them together. The gradients are written in
:mod:`~fucina.reference.facade.formulas` and :mod:`~fucina.reference.facade.composed_formulas`, and
:mod:`fucina.reference.graph` walks over them.
"""

from __future__ import annotations

from fucina.reference.facade.custom import custom_vjp
from fucina.reference.facade.tensor import Tensor

__all__ = ["Tensor", "custom_vjp"]
