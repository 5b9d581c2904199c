/*
 * Raw operations on strided views of scalar dtypes (chapter context).  Arguments have been checked: dtypes have the
 * operation, shapes fit, and the result is row-major.  dims, and the strides of operands, count elements; a stride of 0
 * repeats.  The result may be an operand that lies exactly on it, and shares no byte with an operand in any other way.
 *
 * Everything runs in the default environment and on the process's team where it is large; the bits do not depend on how
 * it is cut.  What arithmetic on floats raises on the calling thread is left among its accrued flags.
 */
#ifndef FC_OPS_OPS_H
#define FC_OPS_OPS_H
#include <stddef.h>

enum { FC_ADD, FC_SUB, FC_MUL, FC_DIV };

/* out = a op b; no divisor of an integer dtype is 0 (clauses CONTEXT-ARITH-1, CONTEXT-ARITH-2) */
void fc_pointwise(int operation, int dtype, int rank, const size_t *dims, const void *a, const size_t *a_strides,
                  const void *b, const size_t *b_strides, void *out);
/* out = x * factor, of floats; the factor is rounded to f32 but for f64 (clause CONTEXT-SCALE-1) */
void fc_scale(int dtype, int rank, const size_t *dims, const void *x, const size_t *strides, double factor, void *out);
/* whether any element of an integer dtype is 0 */
int fc_has_zero(int dtype, int rank, const size_t *dims, const void *x, const size_t *strides);
/* out = x in another dtype (clause CONTEXT-CAST-1); the two share no byte */
void fc_convert(int source, int target, int rank, const size_t *dims, const void *x, const size_t *strides, void *out);

/* f32 of f16, bf16 and f32, f64 of f64, i64 of integers and bools (clause CONTEXT-SUM-2) */
int fc_sum_dtype(int dtype);
/* one element of fc_sum_dtype: the sum of all, in row-major order (clause CONTEXT-SUM-1) */
void fc_sum(int dtype, int rank, const size_t *dims, const void *x, const size_t *strides, void *out);
/* the same along one axis: as many elements as the other axes have, row-major */
void fc_sum_axis(int dtype, int rank, const size_t *dims, const void *x, const size_t *strides, int axis, void *out);

/* out [m, n] = a [m, k] times b [k, n], of floats; strides of two axes each (the facade's dot) */
void fc_matmul(int dtype, size_t m, size_t n, size_t k, const void *a, const size_t *a_strides, const void *b,
               const size_t *b_strides, void *out);

#endif
