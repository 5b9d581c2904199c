"""What a type checker proves: the module has the shape of the specification's Protocols."""

from __future__ import annotations

import fucina.reference
from fucina.reference.facade.order import Selection
from fucina.spec import DTypePart, FpenvPart, Implementation, RngPart
from fucina.spec.execution import ContextPart, MemoryImplementation, PoolPart
from fucina.spec.facade import CustomOperation, FacadeImplementation, FacadePart, GradientContext, SelectionPart
from fucina.spec.memory import BenchPart, InternalPart

implementation: Implementation = fucina.reference
dtype: DTypePart = fucina.reference.dtype
rng: RngPart = fucina.reference.rng
fpenv: FpenvPart = fucina.reference.fpenv
pool: type[PoolPart] = fucina.reference.BufferPool
context: type[ContextPart] = fucina.reference.ExecContext
memory: MemoryImplementation = fucina.reference
internal: InternalPart = fucina.reference.internal
bench_raw: BenchPart = fucina.reference.bench_raw
facade: FacadeImplementation = fucina.reference
gradients: type[GradientContext] = fucina.reference.ExecContext
tensor: type[FacadePart] = fucina.reference.Tensor
selection: type[SelectionPart] = Selection


def squared(context: fucina.reference.ExecContext, operation: CustomOperation) -> fucina.reference.Tensor:
    """Use tensors as a program does: every name here is known to a checker."""
    x = fucina.reference.Tensor("row", "col").zeros(context, (2, 3))
    assert operation is not None
    return x.mul(context, x).sum_all(context) * 2.0
