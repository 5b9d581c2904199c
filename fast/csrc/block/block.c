/* The public functions of the block formats: find the kernel of the level in force, run it in the default environment. */
#include "core/dispatch.h"
#include "core/environment.h"
#include "core/fault.h"
#include "fucina.h"
#include "team/bulk.h"
#include <stdatomic.h>
#include <string.h>

static const fc_block_kernels *kernels_of(int dtype) {
    if (dtype < FC_SCALAR_DTYPES || dtype >= FC_DTYPES) return NULL;
    return &fc_kernels_in_force()->blocks[dtype - FC_SCALAR_DTYPES];
}

/*
 * Blocks on the process's team: they are independent (BLOCK-CHUNK-1), so any ranges of them give the same bytes.  From so many
 * values on the work should outweigh the waking of a worker; encoders cost ten times and more what decoders do.  The numbers
 * are estimates, not measured optima; they change no bit.
 */
enum { LEAST_DECODED = 1 << 17, GRAIN_DECODED = 1 << 14, LEAST_ENCODED = 1 << 14, GRAIN_ENCODED = 1 << 11 };

/* Whether that much output is past the caches, about a third of 32 MiB: asked of the whole, for its pieces are not. */
static int is_streamed(size_t values) { return values >= ((size_t)32 << 20) / (3 * sizeof(float)); }

struct decoding {
    fc_decode_kernel *decode;
    const uint8_t *blocks;
    float *out;
    size_t bytes, elements; /* of a block */
    const uint64_t *indices; /* of the rows that are decoded, NULL for all blocks in order */
    size_t row_blocks;
    int stream;
};

/* Clauses: BLOCK-DECODE-1, BLOCK-CHUNK-1 */
static void decode_piece(void *context, size_t start, size_t n) {
    const struct decoding *d = context;
    d->decode(d->blocks + start * d->bytes, d->out + start * d->elements, n, d->stream);
}

/* A range of the blocks that come out, which may begin and end inside a row.  Clauses: BLOCK-ROWS-1, BLOCK-CHUNK-1 */
static void decode_rows_piece(void *context, size_t start, size_t n) {
    const struct decoding *d = context;
    while (n) {
        const size_t row = start / d->row_blocks, place = start % d->row_blocks, left = d->row_blocks - place;
        const size_t step = n < left ? n : left;
        const size_t index = (size_t)d->indices[FC_PLANT(ROWS_FIRST_INDEX, row, 0)];
        d->decode(d->blocks + (index * d->row_blocks + place) * d->bytes, d->out + start * d->elements, step, d->stream);
        start += step;
        n -= step;
    }
}

/* Clauses: BLOCK-DECODE-1, BLOCK-CHUNK-1 */
fc_status fc_dequantize(int dtype, const void *blocks, float *out, size_t n) {
    const fc_block_kernels *kernels = kernels_of(dtype);
    struct fc_dtype_info info;
    if (!kernels || fc_dtype_info(dtype, &info) != FC_OK) return FC_BAD_DTYPE;
    const size_t elements = (size_t)info.block_size;
    const fc_environment caller = fc_environment_enter();
    struct decoding d = {kernels->decode, blocks, out, (size_t)info.byte_size, elements, NULL, 0, is_streamed(n * elements)};
    fc_bulk(n, LEAST_DECODED / elements, GRAIN_DECODED / elements, decode_piece, &d);
    fc_environment_leave(caller);
    return FC_OK;
}

struct encoding {
    fc_encode_kernel *encode;
    const char *values;
    uint8_t *blocks;
    size_t bytes, elements; /* of a block */
    fc_encoding how;
    int check; /* a NaN or an infinity among a block's values makes it one that cannot be encoded */
    _Atomic size_t bad; /* the first block that cannot be encoded, of those found so far */
};

/* Clauses: BLOCK-ENCODE-1, BLOCK-CHUNK-1, BLOCK-REJECT-1 */
static void encode_piece(void *context, size_t start, size_t n) {
    enum { PIECE = 4096 }; /* floats looked at, or copied where the values are misaligned, at a time: 16 KiB of stack */
    struct encoding *e = context;
    fc_encoding how = e->how;
    const char *values = e->values + start * e->elements * sizeof(float);
    uint8_t *blocks = e->blocks + start * e->bytes;
    size_t done = 0;
    how.first += FC_PLANT(PIECES_RESTART, start, 0 * start);
    if (start > atomic_load_explicit(&e->bad, memory_order_relaxed) && !FC_PLANTED(LATER_BAD_BLOCK)) return; /* nobody will look at these */
    const int aligned = (uintptr_t)values % sizeof(float) == 0;
    if (aligned && !e->check) {
        done = e->encode((const float *)(const void *)values, blocks, n, &how);
    } else {
        float piece[PIECE];
        const size_t most = PIECE / e->elements;
        size_t step = 0, took = 0;
        for (; done < n && took == step; done += took) {
            step = n - done < most ? n - done : most;
            const char *from = values + done * e->elements * sizeof(float);
            if (!aligned) from = memcpy(piece, from, step * e->elements * sizeof(float));
            if (e->check && fc_first_nonfinite(from, step * e->elements) < step * e->elements) break;
            took = e->encode((const float *)(const void *)from, blocks + done * e->bytes, step, &how);
            how.first += FC_PLANT(PIECE_FROM_ROW_START, took, 0);
        }
    }
    if (done < n) {
        size_t before = atomic_load(&e->bad);
        const size_t bad = start + FC_PLANT(REJECTED_IN_PIECE, done, done % (PIECE / e->elements));
        while ((bad < before || FC_PLANTED(LATER_BAD_BLOCK)) && !atomic_compare_exchange_weak(&e->bad, &before, bad)) {}
    }
}

/* Clauses: BLOCK-ENCODE-1, BLOCK-CHUNK-1, BLOCK-REJECT-1 */
fc_status fc_quantize(int dtype, const void *values, void *blocks, size_t n, const struct fc_quantize_options *options, size_t *encoded) {
    const fc_block_kernels *kernels = kernels_of(dtype);
    struct fc_dtype_info info;
    if (!kernels || fc_dtype_info(dtype, &info) != FC_OK) return FC_BAD_DTYPE;
    const size_t elements = (size_t)info.block_size;
    const fc_environment caller = fc_environment_enter();
    struct encoding e = {kernels->encode, values, blocks, (size_t)info.byte_size, elements,
                         {options->importance, options->row_blocks, options->first, (float)fc_environment_pin(options->scale), options->search},
                         options->check, n};
    fc_bulk(n, LEAST_ENCODED / elements, GRAIN_ENCODED / elements, encode_piece, &e);
    *encoded = atomic_load(&e.bad);
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
                if ((bits[i] & 0x7f800000) == 0x7f800000) return FC_PLANT(NONFINITE_IN_PIECE, done, 0) + i;
    }
    return n;
}

/* Clauses: BLOCK-ROWS-1, BLOCK-DECODE-1 */
fc_status fc_dequantize_rows(int dtype, const void *blocks, size_t row_blocks, const uint64_t *indices, size_t n, float *out) {
    const fc_block_kernels *kernels = kernels_of(dtype);
    struct fc_dtype_info info;
    if (!kernels || fc_dtype_info(dtype, &info) != FC_OK) return FC_BAD_DTYPE;
    const size_t elements = (size_t)info.block_size;
    const fc_environment caller = fc_environment_enter();
    struct decoding d = {kernels->decode, blocks, out, (size_t)info.byte_size, elements, indices, row_blocks,
                         is_streamed(row_blocks * elements)}; /* of a row: each one that is streamed ends in a fence */
    fc_bulk(n * row_blocks, LEAST_DECODED / elements, GRAIN_DECODED / elements, decode_rows_piece, &d);
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
            const float decoded = y[b * block + i], value = x[b * block + i];
            const double d = FC_PLANT(FIGURES_F32, (double)decoded - (double)value, (double)(decoded - value));
            const double m = __builtin_fabs(d);
            sums[b] += d * d;
            most = FC_PLANT(FIGURES_NAN_PASSED_OVER, most >= m || most != most, !(m > most)) ? most : m;
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
        kernels->decode((const uint8_t *)blocks + done * (size_t)info.byte_size, y, step, 0);
        squared_errors(x, y, block, step, sums, &largest);
        for (size_t b = 0; b < step; b++) total += sums[FC_PLANT(FIGURES_BLOCKS_REVERSED, b, step - 1 - b)];
    }
    *rmse = __builtin_sqrt(total / ((double)n * (double)block));
    *max_error = largest;
    fc_environment_leave(caller);
    return FC_OK;
}
