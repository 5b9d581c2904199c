/*
 * The kernels of one instruction-set level, as one table.  Each family has one list X(name, parameters); the lists drive the
 * table's members, the prototypes fc_<name>__<level> and the table itself (core/table.c).
 */
#ifndef FC_KERNELS_H
#define FC_KERNELS_H
#include "core/dtype.h"
#include <stddef.h>
#include <stdint.h>

/* in and out may have any alignment and do not overlap */
typedef void fc_cast_kernel(const void *in, void *out, size_t n);

/* rng/: arguments are valid; element j of out is element first + j of the stream */
#define FC_RNG_KERNELS(X)                                                                                                   \
    X(gaussian, (uint64_t seed, uint64_t first, float scale, float *out, size_t n))                                         \
    X(gaussian_fast, (uint64_t seed, uint64_t first, float scale, float *out, size_t n))                                    \
    X(add_mean, (float mean, float *out, size_t n))                                                                         \
    X(uniform, (uint64_t seed, uint64_t first, float lo, float hi, float *out, size_t n))                                   \
    X(gumbel, (uint64_t seed, uint64_t first, float *out, size_t n))                                                        \
    X(randint, (uint64_t seed, uint64_t first, int64_t low, uint64_t span, int64_t *out, size_t n))                         \
    X(randperm, (uint64_t seed, int64_t *out, size_t n))                                                                    \
    X(dropout_mask, (uint64_t seed, uint64_t first, uint64_t threshold, uint8_t *out, size_t n))                            \
    X(gaussian_f64, (uint64_t seed, uint64_t pair, double scale, double *out, size_t pairs))                                \
    X(gumbel_f64, (uint64_t seed, uint64_t first, double *out, size_t n))

/* tensor/: out[i][j] = in[j][i] for i < rows, j < columns; pitches are bytes from row to row, in and out do not overlap;
   beyond: the whole of which this is a part is larger than the caches */
#define FC_TENSOR_KERNELS(X)                                                                                                \
    X(transpose, (size_t element, const unsigned char *in, size_t in_pitch, unsigned char *out, size_t out_pitch,           \
                  size_t rows, size_t columns, int beyond))

/* ops/: a row of a pointwise operation, the lanes of a sum, and stores around the caches (ops/rows.c, ops/lanes.c);
   roots (ops/roots.c), dropout (rng/dropout.c); blocks of a matrix product (ops/chains.c, ops/product.h) */
struct fc_product;
struct fc_product_row;
#define FC_OPS_KERNELS(X)                                                                                                   \
    X(pointwise, (int operation, int dtype, int form, const void *a, const void *b, void *out, size_t n))                   \
    X(with_scalar, (int operation, int dtype, int stream, double value, const void *x, void *out, size_t n))                \
    X(roots, (int operation, int dtype, const void *x, void *out, size_t n))                                                \
    X(dropped, (int dtype, int stream, uint64_t seed, uint64_t first, uint64_t threshold, float scale, const void *x,       \
                void *out, size_t n))                                                                                       \
    X(stream_end, (void))                                                                                                   \
    X(sum_lanes, (int dtype, const void *x, size_t n, void *lanes))                                                         \
    X(sum_rows, (const void *x, size_t pitch, size_t n, void *lanes))                                                       \
    X(sum_columns, (int dtype, const void *x, size_t pitch, size_t rows, size_t width, void *lanes))                        \
    X(fold, (int wide, void *lanes, size_t width))                                                                          \
    X(product, (const struct fc_product *block))                                                                            \
    X(product_row, (const struct fc_product_row *row))

#define FC_KERNEL_LISTS(X) FC_OPS_KERNELS(X) FC_RNG_KERNELS(X) FC_TENSOR_KERNELS(X)

/* bridge/: one kernel per (mode, source, target), NULL where a mode does not tell on the pair; the lists are in bridge/pairs.h */
enum { FC_CAST_MODES = 4 };
typedef fc_cast_kernel *fc_cast_table[FC_CAST_MODES][FC_SCALAR_DTYPES][FC_SCALAR_DTYPES];

/* block/: one decoder and one encoder per block dtype (clauses BLOCK-CHUNK-1, BLOCK-ENCODE-1) */
#define FC_BLOCK_FORMATS(X)                                                                                                 \
    X(q1_0) X(q2_0) X(q4_0) X(q4_1) X(q5_0) X(q5_1) X(q8_0) X(q8_1) X(q2_k) X(q3_k) X(q4_k) X(q5_k) X(q6_k) X(q8_k)         \
    X(iq1_s) X(iq1_m) X(iq2_xxs) X(iq2_xs) X(iq2_s) X(iq3_xxs) X(iq3_s) X(iq4_nl) X(iq4_xs) X(tq1_0) X(tq2_0) X(mxfp4) X(nvfp4)
enum { FC_BLOCK_DTYPES = FC_DTYPES - FC_SCALAR_DTYPES };

/* n blocks of any alignment to n * (block size) floats; out is aligned to a float; stream: the whole result is past the caches */
typedef void fc_decode_kernel(const uint8_t *blocks, float *out, size_t n, int stream);

/* How to encode.  Block i of a call is block (first + i) mod row_blocks of its row, and takes the importance of its elements
   from there; importance is NULL where there is none, scale is 0 where the encoder chooses it. */
typedef struct fc_encoding {
    const float *importance;
    size_t row_blocks, first;
    float scale;
    int search;
} fc_encoding;
/* n * (block size) finite floats, aligned, to n blocks of any alignment; returns how many blocks were encoded before one that
   cannot be, n if all could.  Other floats than finite ones give some bytes or a count below n, never a trap. */
typedef size_t fc_encode_kernel(const float *values, uint8_t *blocks, size_t n, const fc_encoding *how);
typedef struct {
    fc_decode_kernel *decode;
    fc_encode_kernel *encode;
} fc_block_kernels;

typedef struct fc_kernels {
    const fc_cast_table *casts;
    const fc_block_kernels *blocks; /* by dtype - FC_SCALAR_DTYPES */
#define FC_MEMBER(name, parameters) void (*name) parameters;
    FC_KERNEL_LISTS(FC_MEMBER)
#undef FC_MEMBER
} fc_kernels;

#ifdef FC_ISA
#include "core/level.h"
#define FC_PROTOTYPE(name, parameters) void FC_K(name) parameters;
FC_KERNEL_LISTS(FC_PROTOTYPE)
#undef FC_PROTOTYPE
extern const fc_cast_table FC_K(casts);
extern const fc_block_kernels FC_K(blocks)[FC_BLOCK_DTYPES];
#define FC_BLOCK_PROTOTYPES(name)       \
    fc_decode_kernel FC_K(decode_##name); \
    fc_encode_kernel FC_K(encode_##name);
FC_BLOCK_FORMATS(FC_BLOCK_PROTOTYPES)
#undef FC_BLOCK_PROTOTYPES
#endif

#endif
