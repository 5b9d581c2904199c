"""Shapes: the arithmetic that every layer shares; ``internal.shape_mod``.

Sizes and counts stand in :mod:`fucina.reference.sizes`, strides and axes in :mod:`fucina.reference.layouts`.
"""

from fucina.reference.layouts import (
    AxisGeometry,
    array_from_slice,
    contiguous_strides,
    contiguous_strides_into,
    dispatch_rank,
    is_contiguous,
    is_exact_suffix_rank,
    product_after_axis,
    product_before_axis,
    require_same_rank_shape,
    require_same_shape,
    validate_broadcast_rank,
    without_axis,
)
from fucina.reference.sizes import Shape, element_count, max_rank, product, storage_element_count

__all__ = [
    "AxisGeometry",
    "Shape",
    "array_from_slice",
    "contiguous_strides",
    "contiguous_strides_into",
    "dispatch_rank",
    "element_count",
    "is_contiguous",
    "is_exact_suffix_rank",
    "max_rank",
    "product",
    "product_after_axis",
    "product_before_axis",
    "require_same_rank_shape",
    "require_same_shape",
    "storage_element_count",
    "validate_broadcast_rank",
    "without_axis",
]
