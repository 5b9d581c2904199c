/* Shapes, strides and what a view reaches (chapter tensor).  Strides and offsets count storage elements. */
#ifndef FC_TENSOR_GEOMETRY_H
#define FC_TENSOR_GEOMETRY_H
#include "core/fault.h"
#include <stddef.h>
#include <stdint.h>

enum { FC_MAX_RANK = 8 };

/* The number of elements; 0 for a zero among the sizes, or a product of 2^64 and above (clause SHAPE-COUNT-1). */
static inline size_t fc_count(int rank, const size_t *dims) {
    size_t count = 1;
    for (int k = 0; k < rank; k++)
        if (__builtin_mul_overflow(count, dims[k], &count)) return 0;
    return count;
}

/* Clause: SHAPE-STRIDES-1 */
static inline void fc_row_major(int rank, const size_t *dims, size_t *strides) {
    size_t step = 1;
    for (int k = rank - 1; k >= 0; k--) {
        strides[k] = step;
        step *= dims[k];
    }
}

/* Clause: TENSOR-GEOM-2; strict about axes of size 1 */
static inline int fc_is_row_major(int rank, const size_t *dims, const size_t *strides) {
    size_t step = 1;
    for (int k = rank - 1; k >= 0; k--) {
        if (strides[k] != step && !(FC_PLANTED(SIZE_ONE_IGNORED) && dims[k] == 1)) return 0;
        step *= dims[k];
    }
    return 1;
}

/* Whether the view lies inside `capacity` elements (clause TENSOR-VIEW-3); 0 also where an index would pass 2^64. */
static inline int fc_view_fits(int rank, const size_t *dims, const size_t *strides, size_t offset, size_t capacity) {
    size_t last = offset, reach;
    for (int k = 0; k < rank; k++)
        if (__builtin_mul_overflow(dims[k] - 1, strides[k], &reach) || __builtin_add_overflow(last, reach, &last)) return 0;
    return FC_PLANT(VIEW_BOUND_OFF_BY_ONE, last < capacity, last <= capacity);
}

/* The strides of a broadcast to a larger shape, 0 where it cannot be (clause TENSOR-VIEW-4). */
static inline int fc_broadcast(int rank, const size_t *dims, const size_t *strides, int target_rank, const size_t *target,
                               size_t *out) {
    const int lead = target_rank - rank;
    if (lead < 0) return 0;
    for (int k = 0; k < target_rank; k++) {
        const int axis = k - lead;
        if (axis >= 0 && dims[axis] == target[k])
            out[k] = strides[axis];
        else if (axis < 0 || dims[axis] == 1)
            out[k] = 0;
        else
            return 0;
    }
    return 1;
}

#endif
