/* Arithmetic on contiguous elements where they lie (clauses TENSOR-ADD-1, TENSOR-SCALE-1). */
#ifndef FC_TENSOR_IN_PLACE_H
#define FC_TENSOR_IN_PLACE_H
#include <stddef.h>

/* values[k] += other[k]; other may be values itself.  0 where the dtype has no addition. */
int fc_add_in_place(int dtype, void *values, const void *other, size_t n);
/* values[k] *= scalar, the float dtypes; the scalar is rounded to f32, for f64 it is used as it is. */
int fc_scale_in_place(int dtype, void *values, double scalar, size_t n);

#endif
