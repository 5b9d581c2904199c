"""The contract at the speed of the machine: a thin layer over a C core.

The same names and the same bits as ``fucina.reference``; ``python -m fucina.fast`` tells what this installation is.
"""

from fucina.fast import bench_raw, dtype, fpenv, internal, parallel, quant, rng, thread_mod
from fucina.fast._custom import custom_vjp
from fucina.fast._isa import isa, isa_levels, set_isa
from fucina.fast._native import ffi as _ffi
from fucina.fast._native import lib as _lib
from fucina.fast.buffer_pool import BufferPool
from fucina.fast.facade import Tensor
from fucina.fast.runtime import ExecContext, ExecScope
from fucina.fast.values import F8E4M3, F8E5M2, Bf16
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
        "errors",
    }
)
