"""What a type checker proves: the module has the shape of the specification's Protocols."""

from __future__ import annotations

import fucina.reference
from fucina.spec import DTypePart, FpenvPart, Implementation, RngPart
from fucina.spec.execution import ContextPart, MemoryImplementation, PoolPart
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
