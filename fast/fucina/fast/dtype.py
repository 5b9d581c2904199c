"""Dtypes: what each is, how its elements are stored, what may be done with them (chapters ``dtype`` and ``bridge``).

One module to import them from.  What a dtype is stands in ``predicates``, ``geometry`` and ``policy``, how one element
is converted in ``scalars``, how arrays are in ``arrays``.  Every function that takes a dtype raises InvalidDType for
anything else (clause DTYPE-ARG-1).
"""

from __future__ import annotations

from fucina.fast.arrays import cast_array, convert
from fucina.fast.geometry import (
    accumulator,
    block_byte_size,
    block_size,
    element,
    one,
    scalar,
    scalar_byte_size,
    storage,
    zero,
)
from fucina.fast.policy import compute_dtype, output_dtype
from fucina.fast.predicates import (
    is_block_quantized,
    is_f8,
    is_scalar,
    is_signed_integer,
    is_unsigned_integer,
    kind,
    logical_dtype,
    name,
    supports_forward_float_math,
    supports_grad,
    supports_int_math,
    supports_quantized_get_rows,
    supports_quantized_matmul_rhs,
    supports_to_float,
)
from fucina.fast.scalars import (
    bf16_to_f32,
    cast_bits,
    cast_float,
    cast_scalar,
    f8e4m3_to_f32,
    f8e5m2_to_f32,
    f32_to_bf16,
    f32_to_f8e4m3,
    f32_to_f8e5m2,
    from_accumulator,
    from_f32,
    from_f64,
    is_truthy,
    to_accumulator,
    to_f32,
    to_f64,
)
from fucina.fast.values import F8E4M3, F8E5M2, Bf16
from fucina.spec.types import BLOCK_CONSTANTS

__all__ = [
    "F8E4M3",
    "F8E5M2",
    "Bf16",
    "accumulator",
    "bf16_to_f32",
    "block_byte_size",
    "block_size",
    "cast_array",
    "cast_bits",
    "cast_float",
    "cast_scalar",
    "compute_dtype",
    "convert",
    "element",
    "f8e4m3_to_f32",
    "f8e5m2_to_f32",
    "f32_to_bf16",
    "f32_to_f8e4m3",
    "f32_to_f8e5m2",
    "from_accumulator",
    "from_f32",
    "from_f64",
    "is_block_quantized",
    "is_f8",
    "is_scalar",
    "is_signed_integer",
    "is_truthy",
    "is_unsigned_integer",
    "kind",
    "logical_dtype",
    "name",
    "one",
    "output_dtype",
    "scalar",
    "scalar_byte_size",
    "storage",
    "supports_forward_float_math",
    "supports_grad",
    "supports_int_math",
    "supports_quantized_get_rows",
    "supports_quantized_matmul_rhs",
    "supports_to_float",
    "to_accumulator",
    "to_f32",
    "to_f64",
    "zero",
    *BLOCK_CONSTANTS,
]

# the named sizes (clause DTYPE-GEOM-4)
q1_0_block_size = BLOCK_CONSTANTS["q1_0_block_size"]
q2_0_block_size = BLOCK_CONSTANTS["q2_0_block_size"]
q4_0_block_size = BLOCK_CONSTANTS["q4_0_block_size"]
q4_1_block_size = BLOCK_CONSTANTS["q4_1_block_size"]
q5_0_block_size = BLOCK_CONSTANTS["q5_0_block_size"]
q5_1_block_size = BLOCK_CONSTANTS["q5_1_block_size"]
q8_0_block_size = BLOCK_CONSTANTS["q8_0_block_size"]
q8_1_block_size = BLOCK_CONSTANTS["q8_1_block_size"]
qk_k_block_size = BLOCK_CONSTANTS["qk_k_block_size"]
k_scale_size = BLOCK_CONSTANTS["k_scale_size"]
iq4_nl_block_size = BLOCK_CONSTANTS["iq4_nl_block_size"]
mxfp4_block_size = BLOCK_CONSTANTS["mxfp4_block_size"]
nvfp4_block_size = BLOCK_CONSTANTS["nvfp4_block_size"]
nvfp4_subblock_size = BLOCK_CONSTANTS["nvfp4_subblock_size"]
iq3s_n_scale = BLOCK_CONSTANTS["iq3s_n_scale"]
