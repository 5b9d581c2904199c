"""What a type checker proves: the module has the shape of the specification's Protocols."""

from __future__ import annotations

import fucina.reference
from fucina.spec import DTypePart, FpenvPart, Implementation, RngPart

implementation: Implementation = fucina.reference
dtype: DTypePart = fucina.reference.dtype
rng: RngPart = fucina.reference.rng
fpenv: FpenvPart = fucina.reference.fpenv
