"""The contract at the speed of the machine: a thin layer over a C core.

The same names and the same bits as ``fucina.reference``; ``python -m fucina.fast`` tells what this installation is.
The formats and the streams are loaded with the package, the rest when it is asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from fucina.fast._refusal import refuse as _refuse

try:
    from fucina.fast._native import ffi as _ffi
    from fucina.fast._native import lib as _lib
except ModuleNotFoundError as _missing:
    if _missing.name != "fucina.fast._native":
        raise
    _refuse("the compiled module fucina.fast._native is not here: install the wheel, a source tree alone has none")

from fucina.fast import dtype, parallel, rng
from fucina.fast._isa import isa, isa_levels, set_isa
from fucina.fast.values import F8E4M3, F8E5M2, Bf16
from fucina.spec.types import DType, DTypeKind, FloatOp

if TYPE_CHECKING:
    from fucina.fast import bench_raw, fpenv, internal, quant, thread_mod
    from fucina.fast._custom import custom_vjp
    from fucina.fast.buffer_pool import BufferPool
    from fucina.fast.facade import Tensor
    from fucina.fast.runtime import ExecContext, ExecScope
    from fucina.spec.runtime import LayoutClass, RhsLifetime

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
    "isa",
    "isa_levels",
    "parallel",
    "quant",
    "rng",
    "set_isa",
    "thread_mod",
]

__version__: str = _ffi.string(_lib.fc_version()).decode("ascii")

capabilities: frozenset[str] = frozenset(
    {
        "numbers",
        "dtype",
        "bridge",
        "block",
        "rng",
        "team",
        "fpenv",
        "storage",
        "tensor",
        "pool",
        "context",
        "scope",
        "facade",
        "policy",
        "autograd",
        "errors",
    }
)

_LATER = {
    "BufferPool": "fucina.fast.buffer_pool",
    "ExecContext": "fucina.fast.runtime",
    "ExecScope": "fucina.fast.runtime",
    "LayoutClass": "fucina.spec.runtime",
    "RhsLifetime": "fucina.spec.runtime",
    "Tensor": "fucina.fast.facade",
    "custom_vjp": "fucina.fast._custom",
}
"""Where the names are that are not modules and not loaded with the package."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # loaded now as it would have been before: constants come from the default environment, and no flag is left behind
    word, flags = _lib.fc_fpenv_get(), _lib.fc_fpenv_flags()
    _lib.fc_fpenv_set(_lib.FC_FPENV_NEAREST_EVEN)
    try:
        module = importlib.import_module(_LATER.get(name, f"{__name__}.{name}"))
    finally:
        _lib.fc_fpenv_set(word)
        _lib.fc_fpenv_flags_set(flags)
    found = getattr(module, name) if name in _LATER else module
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
