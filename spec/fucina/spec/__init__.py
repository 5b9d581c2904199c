"""The shared vocabulary of the contract: types, geometry, errors, protocols and the clauses themselves.

It holds declarations, never logic: ``fucina.reference`` and ``fucina.fast`` are two independent answers that meet here.
"""

from fucina.spec.fpenv import Environment, Exceptions, RoundingMode, UnderflowMode
from fucina.spec.interface import (
    BitFloat,
    DTypePart,
    FloatGuard,
    FloatProbe,
    FloatRecord,
    FpenvPart,
    Implementation,
    IsaControl,
    Operations,
    QuantPart,
    RngPart,
    ScalarValue,
    Windows,
)
from fucina.spec.quant import BlockFinding, BlockReport, ErrorFigures
from fucina.spec.runtime import LayoutClass, RhsLifetime
from fucina.spec.types import BLOCK_CONSTANTS, GEOMETRY, DType, DTypeKind, Field, FloatOp, Geometry

__all__ = [
    "BLOCK_CONSTANTS",
    "GEOMETRY",
    "BitFloat",
    "BlockFinding",
    "BlockReport",
    "DType",
    "DTypeKind",
    "DTypePart",
    "Environment",
    "ErrorFigures",
    "Exceptions",
    "Field",
    "FloatGuard",
    "FloatOp",
    "FloatProbe",
    "FloatRecord",
    "FpenvPart",
    "Geometry",
    "Implementation",
    "IsaControl",
    "LayoutClass",
    "Operations",
    "QuantPart",
    "RhsLifetime",
    "RngPart",
    "RoundingMode",
    "ScalarValue",
    "UnderflowMode",
    "Windows",
]
