/* The public functions of the block formats: find the kernel of the level in force, run it in the default environment. */
#include "core/dispatch.h"
#include "core/environment.h"
#include "core/fault.h"
#include "fucina.h"
#include <string.h>

static const fc_block_kernels *kernels_of(int dtype) {
    if (dtype < FC_SCALAR_DTYPES || dtype >= FC_DTYPES) return NULL;
    return &fc_kernels_in_force()->blocks[dtype - FC_SCALAR_DTYPES];
}

/* Clauses: BLOCK-DECODE-1, BLOCK-CHUNK-1 */
fc_status fc_dequantize(int dtype, const void *blocks, float *out, size_t n) {
    const fc_block_kernels *kernels = kernels_of(dtype);
    if (!kernels) return FC_BAD_DTYPE;
    const fc_environment caller = fc_environment_enter();
    kernels->decode(blocks, out, n);
    fc_environment_leave(caller);
    return FC_OK;
}

/* Clauses: BLOCK-ENCODE-1, BLOCK-CHUNK-1, BLOCK-REJECT-1 */
fc_status fc_quantize(int dtype, const void *values, void *blocks, size_t n, const struct fc_quantize_options *options, size_t *encoded) {
    enum { PIECE = 4096 }; /* floats copied at a time where the values are misaligned: 16 KiB of stack */
    const fc_block_kernels *kernels = kernels_of(dtype);
    struct fc_dtype_info info;
    if (!kernels || fc_dtype_info(dtype, &info) != FC_OK) return FC_BAD_DTYPE;
    const fc_environment caller = fc_environment_enter();
    fc_encoding how = {options->importance, options->row_blocks, options->first, (float)fc_environment_pin(options->scale), options->search};
    if ((uintptr_t)values % sizeof(float) == 0) {
        *encoded = kernels->encode(values, blocks, n, &how);
    } else {
        float piece[PIECE];
        const size_t most = PIECE / (size_t)info.block_size;
        const char *from = values;
        size_t done = 0, step = 0, took = 0;
        for (; done < n && took == step; done += took) {
            step = n - done < most ? n - done : most;
            memcpy(piece, from + done * (size_t)info.block_size * sizeof(float), step * (size_t)info.block_size * sizeof(float));
            how.first = options->first + done;
            took = kernels->encode(piece, (uint8_t *)blocks + done * (size_t)info.byte_size, step, &how);
        }
        *encoded = done;
    }
    fc_environment_leave(caller);
    return *encoded == n ? FC_OK : FC_BAD_BLOCK;
}

/* Clause: BLOCK-FINITE-1 */
size_t fc_first_nonfinite(const void *values, size_t n) {
    enum { PIECE = 256 };
    const char *from = values;
    uint32_t bits[PIECE];
    for (size_t done = 0; done < n; done += PIECE) {
        const size_t step = n - done < PIECE ? n - done : PIECE;
        memcpy(bits, from + done * sizeof *bits, step * sizeof *bits);
        uint32_t any = 0;
        for (size_t i = 0; i < step; i++) any |= (bits[i] & 0x7f800000) == 0x7f800000;
        if (any)
            for (size_t i = 0; i < step; i++)
                if ((bits[i] & 0x7f800000) == 0x7f800000) return done + i;
    }
    return n;
}

/* Clauses: BLOCK-ROWS-1, BLOCK-DECODE-1 */
fc_status fc_dequantize_rows(int dtype, const void *blocks, size_t row_blocks, const uint64_t *indices, size_t n, float *out) {
    const fc_block_kernels *kernels = kernels_of(dtype);
    struct fc_dtype_info info;
    if (!kernels || fc_dtype_info(dtype, &info) != FC_OK) return FC_BAD_DTYPE;
    const size_t row_bytes = row_blocks * (size_t)info.byte_size, row_len = row_blocks * (size_t)info.block_size;
    const fc_environment caller = fc_environment_enter();
    for (size_t i = 0; i < n; i++) kernels->decode((const uint8_t *)blocks + indices[i] * row_bytes, out + i * row_len, row_blocks);
    fc_environment_leave(caller);
    return FC_OK;
}

enum { FIGURE_BLOCKS = 8, FIGURE_FLOATS = FIGURE_BLOCKS * 256 }; /* blocks whose sums run side by side */

/* The squared errors of each of `blocks` blocks, in ascending order of element; the largest magnitude, or a NaN once met. */
static void squared_errors(const float *x, const float *y, size_t block, size_t blocks, double *sums, double *largest) {
    for (size_t b = 0; b < blocks; b++) sums[b] = 0;
    double most = *largest;
    for (size_t i = 0; i < block; i++)
        for (size_t b = 0; b < blocks; b++) {
            const double d = (double)y[b * block + i] - (double)x[b * block + i];
            const double m = __builtin_fabs(d);
            sums[b] += d * d;
            most = most >= m || most != most ? most : m;
        }
    *largest = most;
}

/* Clause: BLOCK-FIGURES-1 */
fc_status fc_block_error(int dtype, const void *values, const void *blocks, size_t n, double *rmse, double *max_error) {
    const fc_block_kernels *kernels = kernels_of(dtype);
    struct fc_dtype_info info;
    if (!kernels || fc_dtype_info(dtype, &info) != FC_OK || n == 0) return FC_BAD_DTYPE;
    const size_t block = (size_t)info.block_size;
    const fc_environment caller = fc_environment_enter();
    double total = 0, largest = 0;
    for (size_t done = 0; done < n; done += FIGURE_BLOCKS) {
        const size_t step = n - done < FIGURE_BLOCKS ? n - done : FIGURE_BLOCKS;
        float x[FIGURE_FLOATS], y[FIGURE_FLOATS];
        double sums[FIGURE_BLOCKS];
        memcpy(x, (const char *)values + done * block * sizeof *x, step * block * sizeof *x);
        kernels->decode((const uint8_t *)blocks + done * (size_t)info.byte_size, y, step);
        squared_errors(x, y, block, step, sums, &largest);
        for (size_t b = 0; b < step; b++) total += sums[b];
    }
    *rmse = __builtin_sqrt(total / ((double)n * (double)block));
    *max_error = largest;
    fc_environment_leave(caller);
    return FC_OK;
}
