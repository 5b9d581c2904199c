"""Raw operations: what a context computes on raw tensors.

:mod:`~fucina.reference.ops.operands` says what may go in, :mod:`~fucina.reference.ops.elementwise` and
:mod:`~fucina.reference.ops.reduction` compute, :mod:`~fucina.reference.ops.movement` copies and converts.  The values
are those of :mod:`fucina.reference.arithmetic`.
"""
