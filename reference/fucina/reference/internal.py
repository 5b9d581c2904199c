"""The raw layer, for those who need it: nothing of it stands at the root (clause TENSOR-INTERNAL-1)."""

from fucina.reference import backend as backend_mod
from fucina.reference import gpu, thread_mod
from fucina.reference import shape as shape_mod
from fucina.reference import storage as storage_mod
from fucina.reference import tensor as tensor_mod
from fucina.reference.allocation import allocation_count, fail_allocation
from fucina.reference.tensor import Tensor as RawTensor

__all__ = [
    "RawTensor",
    "allocation_count",
    "backend_mod",
    "fail_allocation",
    "gpu",
    "shape_mod",
    "storage_mod",
    "tensor_mod",
    "thread_mod",
]
