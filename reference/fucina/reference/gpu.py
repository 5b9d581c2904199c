"""The hooks of an accelerator, in a build without one; ``internal.gpu``."""

from __future__ import annotations

from fucina.reference.sizes import length_argument

__all__ = [
    "alloc_resident_bytes",
    "enabled",
    "free_resident_bytes",
    "has_q5_k_quant",
    "has_quant_gemm",
    "has_tq2_0_quant",
    "trace_dump",
    "trace_enabled",
    "trace_reset",
]

enabled = False
"""Whether there is an accelerator (clause TENSOR-GPU-1)."""

has_quant_gemm = False
"""Whether it multiplies quantized matrices (clause TENSOR-GPU-1)."""

has_q5_k_quant = False
"""Whether it does so for q5_k (clause TENSOR-GPU-1)."""

has_tq2_0_quant = False
"""Whether it does so for tq2_0 (clause TENSOR-GPU-1)."""


def alloc_resident_bytes(length: int) -> None:
    """Return bytes of the device: there are none.

    Notes
    -----
    Clauses: TENSOR-GPU-1
    """
    length_argument("length", length, "TENSOR-GPU-1")


def free_resident_bytes(data: object) -> None:
    """Give bytes of the device back; of others, nothing happens.

    Notes
    -----
    Clauses: TENSOR-GPU-1
    """


def trace_enabled() -> bool:
    """Return whether dispatches are traced: never, whatever the environment says.

    Notes
    -----
    Clauses: TENSOR-GPU-1
    """
    return False


def trace_reset() -> None:
    """Forget what was traced.

    Notes
    -----
    Clauses: TENSOR-GPU-1
    """


def trace_dump() -> None:
    """Print what was traced: nothing.

    Notes
    -----
    Clauses: TENSOR-GPU-1
    """
