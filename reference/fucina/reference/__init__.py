"""The readable implementation: the contract in plain Python, one module per concern.

Read in this order: :mod:`~fucina.reference.formats` (what a pattern means, and the one rounding),
:mod:`~fucina.reference.bridges` (conversions), :mod:`~fucina.reference.softfloat` and
:mod:`~fucina.reference.elementary` (arithmetic in integers), :mod:`~fucina.reference.streams`,
:mod:`~fucina.reference.gaussian` and :mod:`~fucina.reference.rng` (seeded numbers), :mod:`~fucina.reference.blocks`
and :mod:`~fucina.reference.quant` (block formats).  Around them stand the arguments, buffers, scalar forms and tables
that the public modules ``dtype``, ``quant`` and ``rng`` are made of.

Memory is a story of its own: :mod:`~fucina.reference.references` and :mod:`~fucina.reference.storage`,
:mod:`~fucina.reference.handles` and :mod:`~fucina.reference.tensor`, :mod:`~fucina.reference.buffer_pool`,
:mod:`~fucina.reference.scopes`, :mod:`~fucina.reference.arithmetic` with :mod:`~fucina.reference.ops`, and at the top
:mod:`~fucina.reference.runtime`, the context.  Upon all of it stands :mod:`~fucina.reference.facade`, what a person
types.

All numbers are computed with Python integers, so no result depends on the floating-point environment (clause NUM-ENV-2)
and none touches its flags (clause NUM-ENV-3).
"""

from __future__ import annotations

from importlib import metadata

from fucina.reference import bench_raw, dtype, fpenv, internal, parallel, quant, rng, thread_mod
from fucina.reference.facade import Tensor, custom_vjp
from fucina.reference.runtime import BufferPool, ExecContext, ExecScope
from fucina.reference.values import F8E4M3, F8E5M2, Bf16
from fucina.spec.runtime import LayoutClass, RhsLifetime
from fucina.spec.types import DType, DTypeKind, FloatOp

__all__ = [
    "F8E4M3",
    "F8E5M2",
    "Bf16",
    "BufferPool",
    "DType",
    "DTypeKind",
    "ExecContext",
    "ExecScope",
    "FloatOp",
    "LayoutClass",
    "RhsLifetime",
    "Tensor",
    "bench_raw",
    "capabilities",
    "custom_vjp",
    "dtype",
    "fpenv",
    "internal",
    "parallel",
    "quant",
    "rng",
    "thread_mod",
]

capabilities: frozenset[str] = frozenset(
    {
        "numbers",
        "dtype",
        "bridge",
        "rng",
        "block",
        "storage",
        "tensor",
        "pool",
        "context",
        "scope",
        "facade",
        "policy",
        "autograd",
        "team",
        "fpenv",
        "errors",
    }
)
"""The chapters of the specification that this implementation claims."""

try:
    __version__ = metadata.version("fucina")
except metadata.PackageNotFoundError:  # run from a source tree
    __version__ = "0+uninstalled"
