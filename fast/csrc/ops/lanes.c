/*
 * The lanes of a sum (clause CONTEXT-SUM-1).  `lanes` is 32 numbers of the sum's dtype that elements 0, 1, 2, ... are added
 * to in turn; of columns, 32 rows of numbers.  Integers, whose sums do not depend on the order, use one lane only: a u64.
 */
#include "core/kernels.h"
#include "core/fault.h"
#include "ops/lanes.h"
#include "ops/walk.h"
#include <string.h>
#if defined(__F16C__) && defined(__AVX2__)
#include <immintrin.h>
#endif

typedef float f32v __attribute__((vector_size(32), aligned(4), may_alias));
typedef double f64v __attribute__((vector_size(32), aligned(8), may_alias));

/* All lanes stay in registers: 32 of f32 are four vectors, of f64 eight. */
#define LANES(name, type, vector, registers)                                                                               \
    static void name(const type *x, size_t n, type *lanes) {                                                               \
        enum { STEP = FC_LANES / registers };                                                                              \
        vector sum[registers];                                                                                             \
        size_t k = 0;                                                                                                      \
        for (int r = 0; r < registers; r++) sum[r] = *(const vector *)(lanes + r * STEP);                                  \
        for (; k + FC_LANES <= n; k += FC_LANES)                                                                           \
            for (int r = 0; r < registers; r++) sum[r] += *(const vector *)(x + k + r * STEP);                             \
        for (int r = 0; r < registers; r++) *(vector *)(lanes + r * STEP) = sum[r];                                        \
        for (size_t lane = 0; k + lane < n; lane++) lanes[lane] += x[k + lane];                                            \
    }
LANES(sum_f32, float, f32v, 4)
LANES(sum_f64, double, f64v, 8)

/* Rows side by side: memory is read in several places at once, which is faster than one row after the other. */
static void rows_f32(const float *x, size_t pitch, size_t n, float *lanes) {
    enum { STEP = 8, REGISTERS = FC_LANES / STEP };
    f32v sum[FC_ROWS][REGISTERS];
    size_t k = 0;
    memset(sum, 0, sizeof sum);
    for (; k + FC_LANES <= n; k += FC_LANES)
        for (size_t row = 0; row < FC_ROWS; row++)
            for (size_t r = 0; r < REGISTERS; r++) sum[row][r] += *(const f32v *)(x + row * pitch + k + r * STEP);
    memcpy(lanes, sum, sizeof sum);
    for (size_t row = 0; row < FC_ROWS; row++)
        for (size_t lane = 0; k + lane < n; lane++) lanes[row * FC_LANES + lane] += x[row * pitch + k + lane];
}

static void widen(int dtype, const void *from, float *to, size_t n) { FC_K(casts)[0][dtype][FC_f32](from, to, n); }

static void sum_halves(int dtype, const unsigned char *x, size_t n, float *lanes) {
    size_t k = 0;
#if defined(__F16C__) && defined(__AVX2__)
    __m256 sum[4];
    for (int r = 0; r < 4; r++) sum[r] = _mm256_loadu_ps(lanes + 8 * r);
    for (; k + FC_LANES <= n; k += FC_LANES)
        for (int r = 0; r < 4; r++) {
            const __m128i eight = _mm_loadu_si128((const __m128i_u *)(const void *)(x + 2 * k + 16 * r));
            const __m256i shifted = _mm256_slli_epi32(_mm256_cvtepu16_epi32(eight), 16);
            sum[r] = _mm256_add_ps(sum[r], dtype == FC_f16 ? _mm256_cvtph_ps(eight) : _mm256_castsi256_ps(shifted));
        }
    for (int r = 0; r < 4; r++) _mm256_storeu_ps(lanes + 8 * r, sum[r]);
#endif
    while (k < n) {
        float wide[FC_WALK_PIECE];
        const size_t count = n - k < FC_WALK_PIECE ? n - k : FC_WALK_PIECE;
        widen(dtype, x + 2 * k, wide, count);
        sum_f32(wide, count, lanes);
        k += count;
    }
}

#define WHOLE(type)                                                                                                        \
    {                                                                                                                      \
        const type *in = x;                                                                                                \
        for (size_t k = 0; k < n; k++) total += (uint64_t)in[k];                                                           \
        break;                                                                                                             \
    }

/* Clause: CONTEXT-SUM-2 */
static uint64_t sum_whole(int dtype, const void *x, size_t n) {
    uint64_t total = 0;
    switch (dtype) {
    case FC_bool:
    case FC_u8: WHOLE(uint8_t)
    case FC_u16: WHOLE(uint16_t)
    case FC_i8: WHOLE(int8_t)
    case FC_i16: WHOLE(int16_t)
    case FC_i32: WHOLE(int32_t)
    default: WHOLE(int64_t)
    }
    return total;
}

/* n elements from lane 0 on; a multiple of 32 of them, unless they are the last */
void FC_K(sum_lanes)(int dtype, const void *x, size_t n, void *lanes) {
    switch (dtype) {
    case FC_f32: sum_f32(x, n, lanes); break;
    case FC_f64: sum_f64(x, n, lanes); break;
    case FC_f16:
    case FC_bf16: sum_halves(dtype, x, n, lanes); break;
    default: *(uint64_t *)lanes += sum_whole(dtype, x, n);
    }
}

/* FC_ROWS rows of f32 that lie `pitch` elements apart, into lanes of their own, which begin at 0 */
void FC_K(sum_rows)(const void *x, size_t pitch, size_t n, void *lanes) { rows_f32(x, pitch, n, lanes); }

/* -- columns: a sum for each of `width`, over rows that lie `pitch` elements apart */

#define COLUMNS(name, type)                                                                                                \
    static void name(const type *x, size_t pitch, size_t rows, size_t width, type *lanes) {                                \
        size_t row = 0;                                                                                                    \
        for (; row + 4 * FC_LANES <= rows; row += 4 * FC_LANES) /* four to a lane at a time: a fourth of its traffic */    \
            for (size_t lane = 0; lane < FC_LANES; lane++) {                                                               \
                const type *restrict p = x + (row + lane) * pitch, *restrict q = p + FC_LANES * pitch;                     \
                const type *restrict r = q + FC_LANES * pitch, *restrict s = r + FC_LANES * pitch;                         \
                type *restrict to = lanes + lane * width;                                                                  \
                for (size_t k = 0; k < width; k++) to[k] = to[k] + p[k] + q[k] + r[k] + s[k];                              \
            }                                                                                                              \
        for (; row < rows; row++) {                                                                                        \
            const type *restrict p = x + row * pitch;                                                                      \
            type *restrict to = lanes + row % FC_LANES * width;                                                            \
            for (size_t k = 0; k < width; k++) to[k] += p[k];                                                              \
        }                                                                                                                  \
    }
COLUMNS(columns_f32, float)
COLUMNS(columns_f64, double)

static void columns_halves(int dtype, const unsigned char *x, size_t pitch, size_t rows, size_t width, float *lanes) {
    float wide[FC_COLUMNS];
    for (size_t row = 0; row < rows; row++)
        for (size_t start = 0; start < width; start += FC_COLUMNS) {
            const size_t count = width - start < FC_COLUMNS ? width - start : FC_COLUMNS;
            float *restrict to = lanes + row % FC_LANES * width + start;
            widen(dtype, x + 2 * (row * pitch + start), wide, count);
            for (size_t k = 0; k < count; k++) to[k] += wide[k];
        }
}

#define WHOLE_COLUMNS(type)                                                                                                \
    for (size_t row = 0; row < rows; row++) {                                                                              \
        const type *restrict in = (const type *)x + row * pitch;                                                           \
        for (size_t k = 0; k < width; k++) to[k] += (uint64_t)in[k];                                                       \
    }                                                                                                                      \
    break;

static void columns_whole(int dtype, const void *x, size_t pitch, size_t rows, size_t width, uint64_t *restrict to) {
    switch (dtype) {
    case FC_bool:
    case FC_u8: WHOLE_COLUMNS(uint8_t)
    case FC_u16: WHOLE_COLUMNS(uint16_t)
    case FC_i8: WHOLE_COLUMNS(int8_t)
    case FC_i16: WHOLE_COLUMNS(int16_t)
    case FC_i32: WHOLE_COLUMNS(int32_t)
    default: WHOLE_COLUMNS(int64_t)
    }
}

/* rows from lane 0 on */
void FC_K(sum_columns)(int dtype, const void *x, size_t pitch, size_t rows, size_t width, void *lanes) {
    switch (dtype) {
    case FC_f32: columns_f32(x, pitch, rows, width, lanes); break;
    case FC_f64: columns_f64(x, pitch, rows, width, lanes); break;
    case FC_f16:
    case FC_bf16: columns_halves(dtype, x, pitch, rows, width, lanes); break;
    default: columns_whole(dtype, x, pitch, rows, width, lanes);
    }
}

/* -- folding: the upper half of the lanes to the lower, until one is left, which is lanes[0 ... width) */

#define FOLD(name, type)                                                                                                   \
    static void name(type *lanes, size_t width) {                                                                          \
        for (size_t half = FC_LANES / 2; half; half /= 2)                                                                  \
            for (size_t k = 0; k < half * width; k++) lanes[k] += lanes[half * width + k];                                 \
    }
FOLD(fold_f32, float)
FOLD(fold_f64, double)

void FC_K(fold)(int wide, void *lanes, size_t width) {
    if (wide == FC_f32)
        fold_f32(lanes, width);
    else if (wide == FC_f64)
        fold_f64(lanes, width);
}
