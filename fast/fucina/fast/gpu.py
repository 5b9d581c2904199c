"""The hooks of an accelerator, in a build without one; ``internal.gpu`` (clause TENSOR-GPU-1)."""

from __future__ import annotations

from fucina.fast._sizes import length as checked_length

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
"""Whether there is an accelerator."""

has_quant_gemm = False
"""Whether it multiplies quantized matrices."""

has_q5_k_quant = False
"""Whether it does so for q5_k."""

has_tq2_0_quant = False
"""Whether it does so for tq2_0."""


def alloc_resident_bytes(length: int) -> None:
    """Return bytes of the device: there are none.

    Clauses: TENSOR-GPU-1
    """
    checked_length("length", length, "TENSOR-GPU-1")


def free_resident_bytes(data: object) -> None:
    """Give bytes of the device back: nothing happens.

    Clauses: TENSOR-GPU-1
    """


def trace_enabled() -> bool:
    """Return whether dispatches are traced: never, whatever the environment says.

    Clauses: TENSOR-GPU-1
    """
    return False


def trace_reset() -> None:
    """Forget what was traced: nothing.

    Clauses: TENSOR-GPU-1
    """


def trace_dump() -> None:
    """Print what was traced: nothing.

    Clauses: TENSOR-GPU-1
    """
