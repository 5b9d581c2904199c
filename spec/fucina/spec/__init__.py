"""The shared vocabulary of the contract: types, geometry, errors, protocols and the clauses themselves.

It holds declarations, never logic: ``fucina.reference`` and ``fucina.fast`` are two independent answers that meet here.
The names below are loaded when they are asked for: whoever takes what it needs from the submodules starts faster.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
        Sharing,
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
    "Sharing",
    "UnderflowMode",
    "Windows",
]

_HOME = {
    name: module
    for module, names in {
        "fpenv": ["Environment", "Exceptions", "RoundingMode", "UnderflowMode"],
        "interface": [
            "BitFloat",
            "DTypePart",
            "FloatGuard",
            "FloatProbe",
            "FloatRecord",
            "FpenvPart",
            "Implementation",
            "IsaControl",
            "Operations",
            "QuantPart",
            "RngPart",
            "ScalarValue",
            "Sharing",
            "Windows",
        ],
        "quant": ["BlockFinding", "BlockReport", "ErrorFigures"],
        "runtime": ["LayoutClass", "RhsLifetime"],
        "types": ["BLOCK_CONSTANTS", "GEOMETRY", "DType", "DTypeKind", "Field", "FloatOp", "Geometry"],
    }.items()
    for name in names
}


def __getattr__(name: str) -> Any:
    module = _HOME.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
