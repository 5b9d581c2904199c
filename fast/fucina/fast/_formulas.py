"""The gradients of each operation (clauses AUTOGRAD-VJP-1 to AUTOGRAD-VJP-7).

A formula is called as ``formula(ctx, g, saved, constants, wanted)`` and returns, for each operand, the gradient that
it gives it, an f32 raw tensor of the operand's raw shape and of any strides, or None where none is wanted.  ``g`` is
the gradient of the result; the formula may take its storage where nobody shares it, and does not end it.

What an operation gives its node.  Shapes and axes are those of *raw* tensors; a scalar's raw shape is ``(1,)``.

*place* of an operand: ``(shape, axes)``, its raw shape, and for each of its raw axes the raw axis of the result on
which it lies, or -1.  It is -1 for the axis of a scalar that meets a tensor with axes, and for an axis that was summed
up, whether it went or stayed with size 1.  ``None`` in place of a place: the operand has the result's axes and sizes,
in the same order (which a scalar does not have where the result has an axis, of size 1 or not).

*saved* of operands: views in the operand's own dtype; ``add sub mul div`` want them aligned with the result, as the
forward operation read them: as many axes in the result's order, with size 1 or stride 0 where they are repeated. None
stands for what no wanted gradient needs.  Indices are not saved as views but as copies (clause AUTOGRAD-SAVED-1).

========== =============================================== =========================================================
formula    saved                                           constants
========== =============================================== =========================================================
ADD SUB    ``()``                                          ``()`` where both places are None; else (place, place)
MUL DIV    (a, b); a is for b's gradient, b for a's, and   as ADD
           in DIV for both
SCALE      ``()``                                          (factor,), a float
ADD_SCALAR ``()``                                          ``()``
SUM        ``()``                                          (shape, None) where every axis was summed; else the place
MEAN       ``()``                                          as SUM, and n, an int: (shape, axes or None, n)
RESHAPE    ``()``                                          (shape,) of the operand; also for flatten, contiguous, split
                                                           and merge, whether they made a view or a copy
PERMUTE    ``()``                                          the place; also for transpose
NARROW     ``()``                                          (shape, axis, start)
BROADCAST  ``()``                                          (place,)
TO         ``()``                                          ``()``
DROPOUT    ``()``                                          (seed, p), int and float
ROWS       (indices,), a contiguous copy of i64            (shape,) of the operand
DOT        (a, b); a is for b's gradient, b for a's;       (shape of a, shape of b, axis of a, axis of b); the axes are
           views with the operands' own axes               those that are contracted
NLL        (h,), the one-hot f32 tensor of x's shape       the place of x in the result, and n, an int for "mean" and
                                                           else None: (shape, axes, n)
NORM       (y, r): the result, and r with size 1 along     (axis,)
           the axis
COSINE     (x, y, c, d, p, sx, sy): the operands, the      (axis, eps), eps as it was rounded to f32
           result, and the clause's names; all but x and
           y with size 1 along the axis
========== =============================================== =========================================================
"""

from __future__ import annotations
