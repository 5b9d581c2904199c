"""The raw tensor under the name that benchmarks of raw kernels use (clause TENSOR-INTERNAL-1)."""

from fucina.fast.tensor import Tensor as RawTensor

__all__ = ["RawTensor"]
