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
#include <stdint.h>

enum { FC_ADD, FC_SUB, FC_MUL, FC_DIV };
enum { FC_MAXIMUM = FC_DIV + 1, FC_RSQRT, FC_SQRT }; /* of one tensor */

/* out = a op b; no divisor of an integer dtype is 0 (clauses CONTEXT-ARITH-1, CONTEXT-ARITH-2) */
void fc_pointwise(int operation, int dtype, int rank, const size_t *dims, const void *a, const size_t *a_strides,
                  const void *b, const size_t *b_strides, void *out);
/* out = x * factor, of floats; the factor is rounded to f32 but for f64 (clause CONTEXT-SCALE-1) */
void fc_scale(int dtype, int rank, const size_t *dims, const void *x, const size_t *strides, double factor, void *out);
/* the same with FC_ADD, FC_MUL or FC_MAXIMUM, of which a NaN wins and -0 < +0 */
void fc_with_scalar(int operation, int dtype, int rank, const size_t *dims, const void *x, const size_t *strides, double value, void *out);
/* FC_RSQRT or FC_SQRT of floats, correctly rounded to f32, to f64 of f64; then to the dtype */
void fc_unary(int operation, int dtype, int rank, const size_t *dims, const void *x, const size_t *strides, void *out);
/* x / (1 - p) where the stream keeps an element, else +0; of f16, bf16 and f32; 0 <= p < 1 is an f32 (clause POLICY-DROPOUT-1) */
void fc_dropout(int dtype, int rank, const size_t *dims, const void *x, const size_t *strides, uint64_t seed, double p, void *out);
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
/* the same along all axes whose bit is set in the mask: one tree over the row-major sequence of each sum's elements
   (clause POLICY-SUM-1) */
void fc_sum_axes(int dtype, int rank, const size_t *dims, const void *x, const size_t *strides, unsigned mask, void *out);

/*
 * Order (clauses POLICY-ARGMAX-1, POLICY-SORT-1, POLICY-TOPK-1).  Of floats a NaN is never the greatest and sorts last in both
 * directions, NaNs staying as they were; in sorting -0 < +0, for argmax they are equal.  Ties: the lowest index first.
 * The results of the last three are 0 without memory, and nothing has been written.
 */
/* i64, of as many elements as the other axes have; 0 where all is NaN */
void fc_argmax(int dtype, int rank, const size_t *dims, const void *x, const size_t *strides, int axis, int64_t *out);
int fc_argsort(int dtype, int rank, const size_t *dims, const void *x, const size_t *strides, int axis, int descending, int64_t *out);
int fc_sort(int dtype, int rank, const size_t *dims, const void *x, const size_t *strides, int axis, int descending, void *out);
/* of floats: the axis has k elements in both results; where fewer are no NaN, -inf and index 0 follow */
int fc_top_k(int dtype, int rank, const size_t *dims, const void *x, const size_t *strides, int axis, size_t k, void *values, int64_t *indices);

/* out[i] = x[indices[i]] along the first axis, elements of any `size`; indices are in range (clause POLICY-ROWS-1) */
void fc_gather_rows(size_t size, int rank, const size_t *dims, const void *x, const size_t *strides, const int64_t *indices, size_t count, void *out);
/* f32: out, of `rows` rows, = +0; then for i ascending out[indices[i]] = out[indices[i]] + g[i]; dims are g's */
void fc_scatter_add_rows(int rank, const size_t *dims, const float *g, const size_t *strides, const int64_t *indices, size_t rows, float *out);

/* out [m, n] = a [m, k] times b [k, n], of floats; strides of two axes each (clause POLICY-DOT-1) */
void fc_matmul(int dtype, size_t m, size_t n, size_t k, const void *a, const size_t *a_strides, const void *b,
               const size_t *b_strides, void *out);

#endif
