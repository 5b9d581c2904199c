/*
 * Matrix products (clause POLICY-DOT-1): every element of the result is one chain
 *     acc = +0; for l ascending: acc = fma(a[l], b[l], acc)
 * in f32, of f64 in f64.  Chains stand side by side in the lanes; none is ever cut in pieces that are added, only put down
 * and taken up again between two blocks of l.
 */
#include "core/kernels.h"
#include "core/fault.h"
#include "ops/fma.h"
#include "ops/product.h"
#include "ops/walk.h"
#include "bridge/pairs.h"
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum {
    MR = FC_TILE_ROWS,
    DEPTH = 256,  /* of l, brought together at once */
    STAGE = 1024, /* columns, the same */
    ABREAST = 16, /* chains of a matrix times vector along rows */
    ROWS = 4      /* rows that are added to a vector at once */
};

static void widen(int dtype, const void *from, float *to, size_t n) { FC_K(casts)[0][dtype][FC_f32](from, to, n); }

/* -- elements brought together: n of them that lie `stride` apart, as f32; of f64 as f64 */
static void stage_f32(int dtype, const unsigned char *from, size_t stride, size_t n, float *to) {
    if (dtype == FC_f32) {
        fc_gather_line(from, 4, stride, n, (unsigned char *)to);
    } else if (stride == 1) {
        widen(dtype, from, to, n);
    } else {
        for (size_t k = 0; k < n; k += DEPTH) {
            const size_t count = n - k < DEPTH ? n - k : DEPTH;
            uint16_t narrow[DEPTH];
            fc_gather_line(from + 2 * k * stride, 2, stride, count, (unsigned char *)narrow);
            widen(dtype, narrow, to + k, count);
        }
    }
}
static void stage_f64(int dtype, const unsigned char *from, size_t stride, size_t n, double *to) {
    (void)dtype;
    fc_gather_line(from, 8, stride, n, (unsigned char *)to);
}

/* -- panels: `width` lines side by side, to[l * width + line]; lines that are missing are 0 */

/* Four lines of four, turned, where the machine can do so. */
#if defined(__x86_64__)
#define TURN_f32                                                                                                           \
    for (; line + 4 <= lines; line += 4)                                                                                   \
        for (size_t l = 0; l + 4 <= k; l += 4) {                                                                           \
            const float *p = from + line * pitch + l;                                                                      \
            if (l % 16 == 0) /* the next four: their lines are too short for the machine to foresee */                     \
                for (size_t next = 4; next < 8; next++) _mm_prefetch((const char *)(p + next * pitch), _MM_HINT_T0);       \
            __m128 a = _mm_loadu_ps(p), b = _mm_loadu_ps(p + pitch), c = _mm_loadu_ps(p + 2 * pitch), d = _mm_loadu_ps(p + 3 * pitch); \
            _MM_TRANSPOSE4_PS(a, b, c, d);                                                                                 \
            float *q = to + l * width + line;                                                                              \
            _mm_storeu_ps(q, a);                                                                                           \
            _mm_storeu_ps(q + width, b);                                                                                   \
            _mm_storeu_ps(q + 2 * width, c);                                                                               \
            _mm_storeu_ps(q + 3 * width, d);                                                                               \
        }                                                                                                                  \
    if (k % 4)                                                                                                             \
        for (size_t done = 0; done < line; done++)                                                                         \
            for (size_t l = k / 4 * 4; l < k; l++) to[l * width + done] = from[done * pitch + l];
#else
#define TURN_f32
#endif
#define TURN_f64

#define PANELS(suffix, type)                                                                                               \
    FC_INLINE void turned_##suffix(const type *from, size_t pitch, size_t lines, size_t k, size_t width, type *to) {       \
        size_t line = 0;                                                                                                   \
        TURN_##suffix                                                                                                      \
        for (; line < lines; line++)                                                                                       \
            for (size_t l = 0; l < k; l++) to[l * width + line] = from[line * pitch + l];                                  \
    }                                                                                                                      \
    /* count lines as panels; line r, place l lies at r * minor + l * major */                                             \
    FC_INLINE void panels_##suffix(int dtype, const unsigned char *from, size_t minor, size_t major, size_t count, size_t k, \
                                   size_t width, type *to) {                                                               \
        const size_t size = fc_size_of(dtype), rest = count % width;                                                       \
        if (rest) memset(to + count / width * width * k, 0, width * k * sizeof *to);                                       \
        if (minor == 1) {                                                                                                  \
            for (size_t l = 0; l < k; l++)                                                                                 \
                for (size_t start = 0; start < count; start += STAGE / width * width) {                                    \
                    type room[STAGE];                                                                                      \
                    const size_t left = count - start, n = left < STAGE / width * width ? left : STAGE / width * width;    \
                    const unsigned char *p = from + (l * major + start) * size;                                            \
                    const type *row = (const type *)(const void *)p;                                                       \
                    if (size != sizeof *to) {                                                                              \
                        stage_##suffix(dtype, p, 1, n, room);                                                              \
                        row = room;                                                                                        \
                    }                                                                                                      \
                    type *q = to + start * k + l * width;                                                                  \
                    size_t j = 0;                                                                                          \
                    for (; j + width <= n; j += width) memcpy(q + j * k, row + j, width * sizeof *to);                     \
                    if (j < n) memcpy(q + j * k, row + j, (n - j) * sizeof *to);                                           \
                }                                                                                                          \
            return;                                                                                                        \
        }                                                                                                                  \
        for (size_t start = 0; start < count; start += width) {                                                            \
            const size_t lines = count - start < width ? count - start : width;                                            \
            const unsigned char *p = from + start * minor * size;                                                          \
            if (major == 1 && size == sizeof *to) {                                                                        \
                turned_##suffix((const type *)(const void *)p, minor, lines, k, width, to + start * k);                    \
                continue;                                                                                                  \
            }                                                                                                              \
            for (size_t first = 0; first < k; first += DEPTH) {                                                            \
                type room[64 / sizeof(type) * DEPTH];                                                                      \
                const size_t n = k - first < DEPTH ? k - first : DEPTH;                                                    \
                for (size_t line = 0; line < lines; line++)                                                                \
                    stage_##suffix(dtype, p + (line * minor + first * major) * size, major, n, room + line * DEPTH);       \
                turned_##suffix(room, DEPTH, lines, n, width, to + start * k + first * width);                             \
            }                                                                                                              \
        }                                                                                                                  \
    }
PANELS(f32, float)
PANELS(f64, double)

/* -- a tile: MR rows of two registers of columns, whose chains go on where c stands, or from 0 */
#if defined(__AVX2__) && defined(__FMA__)
#define TILE(suffix, type, vector, zero, load, store, broadcast, fused)                                                    \
    FC_INLINE void tile_##suffix(const type *a, const type *b, size_t k, type *c, size_t c_row, int fresh) {               \
        enum { STEP = 32 / sizeof(type) };                                                                                 \
        vector x[MR][2];                                                                                                   \
        _Pragma("GCC unroll 6") for (size_t r = 0; r < MR; r++) {                                                          \
            x[r][0] = fresh ? zero() : load(c + r * c_row);                                                                \
            x[r][1] = fresh ? zero() : load(c + r * c_row + STEP);                                                         \
        }                                                                                                                  \
        _Pragma("GCC unroll 4") for (size_t l = 0; l < k; l++, a += MR, b += 2 * STEP) {                                   \
            const vector left = load(b), right = load(b + STEP);                                                           \
            _Pragma("GCC unroll 6") for (size_t r = 0; r < MR; r++) {                                                      \
                const vector v = broadcast(a + r);                                                                         \
                x[r][0] = fused(v, left, x[r][0]);                                                                         \
                x[r][1] = fused(v, right, x[r][1]);                                                                        \
            }                                                                                                              \
        }                                                                                                                  \
        _Pragma("GCC unroll 6") for (size_t r = 0; r < MR; r++) {                                                          \
            store(c + r * c_row, x[r][0]);                                                                                 \
            store(c + r * c_row + STEP, x[r][1]);                                                                          \
        }                                                                                                                  \
    }
#define PLANT_FUSED_PS(v, b, x) FC_PLANT(MATMUL_TWO_ROUNDINGS, _mm256_fmadd_ps(v, b, x), _mm256_add_ps(_mm256_mul_ps(v, b), x))
TILE(f32, float, __m256, _mm256_setzero_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_broadcast_ss, PLANT_FUSED_PS)
TILE(f64, double, __m256d, _mm256_setzero_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_broadcast_sd, _mm256_fmadd_pd)
#else
#define TILE(suffix, type, fused)                                                                                          \
    FC_INLINE void tile_##suffix(const type *a, const type *b, size_t k, type *c, size_t c_row, int fresh) {               \
        enum { NR = FC_TILE_BYTES / sizeof(type) };                                                                        \
        type x[MR][NR];                                                                                                    \
        for (size_t r = 0; r < MR; r++)                                                                                    \
            for (size_t j = 0; j < NR; j++) x[r][j] = fresh ? 0 : c[r * c_row + j];                                        \
        for (size_t l = 0; l < k; l++, a += MR, b += NR)                                                                   \
            for (size_t r = 0; r < MR; r++)                                                                                \
                for (size_t j = 0; j < NR; j++) x[r][j] = fused(a[r], b[j], x[r][j]);                                      \
        for (size_t r = 0; r < MR; r++)                                                                                    \
            for (size_t j = 0; j < NR; j++) c[r * c_row + j] = x[r][j];                                                    \
    }
#define PLANT_FUSED_32(v, b, x) FC_PLANT(MATMUL_TWO_ROUNDINGS, fma32(v, b, x), v * b + x)
TILE(f32, float, PLANT_FUSED_32)
TILE(f64, double, fma64)
#endif

#define PRODUCT(suffix, type)                                                                                              \
    /* one block of l after the other; a's rows stay in the second-level cache, a panel of b in the first */               \
    static void tiles_##suffix(const struct fc_product *p, const type *a, const type *b, size_t m, size_t n, size_t k, type *c, int fresh) { \
        enum { NR = FC_TILE_BYTES / sizeof(type) };                                                                        \
        for (size_t j = 0; j < n; j += NR)                                                                                 \
            for (size_t i = 0; i < m; i += MR) {                                                                           \
                type *to = c + i * p->c_row + j;                                                                           \
                if (i + MR <= m && j + NR <= n) {                                                                          \
                    if (fresh)                                                                                             \
                        tile_##suffix(a + i * k, b + j * k, k, to, p->c_row, 1);                                           \
                    else                                                                                                   \
                        tile_##suffix(a + i * k, b + j * k, k, to, p->c_row, 0);                                           \
                    continue;                                                                                              \
                }                                                                                                          \
                type edge[MR * NR] = {0};                                                                                  \
                const size_t h = m - i < MR ? m - i : MR, w = n - j < NR ? n - j : NR;                                     \
                for (size_t r = 0; r < h && !fresh; r++) memcpy(edge + r * NR, to + r * p->c_row, w * sizeof *to);         \
                tile_##suffix(a + i * k, b + j * k, k, edge, NR, 0);                                                       \
                for (size_t r = 0; r < h; r++) memcpy(to + r * p->c_row, edge + r * NR, w * sizeof *to);                   \
            }                                                                                                              \
    }                                                                                                                      \
    static void product_##suffix(const struct fc_product *p) {                                                             \
        enum { NR = FC_TILE_BYTES / sizeof(type) };                                                                        \
        const size_t size = fc_size_of(p->dtype);                                                                          \
        for (size_t j = 0; j < p->n; j += p->columns) {                                                                    \
            const size_t n = p->n - j < p->columns ? p->n - j : p->columns;                                                \
            for (size_t l = 0; l < p->k; l += p->depth) {                                                                  \
                const size_t k = p->k - l < p->depth ? p->k - l : p->depth;                                                \
                panels_##suffix(p->dtype, p->b + (l * p->b_k + j * p->b_column) * size, p->b_column, p->b_k, n, k, NR, p->b_block); \
                for (size_t i = 0; i < p->m; i += p->rows) {                                                               \
                    const size_t m = p->m - i < p->rows ? p->m - i : p->rows;                                              \
                    panels_##suffix(p->dtype, p->a + (i * p->a_row + l * p->a_k) * size, p->a_row, p->a_k, m, k, MR, p->a_block); \
                    tiles_##suffix(p, p->a_block, p->b_block, m, n, k, (type *)p->c + i * p->c_row + j, FC_PLANT(MATMUL_BLOCKS_ALONE, l == 0, 1)); \
                }                                                                                                          \
            }                                                                                                              \
        }                                                                                                                  \
    }
PRODUCT(f32, float)
PRODUCT(f64, double)

void FC_K(product)(const struct fc_product *p) {
    if (p->dtype == FC_f64)
        product_f64(p);
    else
        product_f32(p);
}

/* -- a vector times a matrix */

/* ABREAST chains along lines that lie `pitch` apart */
#if defined(__AVX2__) && defined(__FMA__)
#define PD _mm256_castps_pd
#define PS _mm256_castpd_ps
/* the next four steps of eight chains */
FC_INLINE __m256 four(const float *p, size_t pitch, const float *x, __m256 acc) {
    __m256 r[4];
    _Pragma("GCC unroll 4") for (size_t i = 0; i < 4; i++) /* line i in the low half, line i + 4 in the high half */
        r[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p + i * pitch)), _mm_loadu_ps(p + (i + 4) * pitch), 1);
    const __m256 a = _mm256_unpacklo_ps(r[0], r[1]), b = _mm256_unpackhi_ps(r[0], r[1]);
    const __m256 c = _mm256_unpacklo_ps(r[2], r[3]), d = _mm256_unpackhi_ps(r[2], r[3]);
    acc = _mm256_fmadd_ps(PS(_mm256_unpacklo_pd(PD(a), PD(c))), _mm256_broadcast_ss(x), acc);
    acc = _mm256_fmadd_ps(PS(_mm256_unpackhi_pd(PD(a), PD(c))), _mm256_broadcast_ss(x + 1), acc);
    acc = _mm256_fmadd_ps(PS(_mm256_unpacklo_pd(PD(b), PD(d))), _mm256_broadcast_ss(x + 2), acc);
    return _mm256_fmadd_ps(PS(_mm256_unpackhi_pd(PD(b), PD(d))), _mm256_broadcast_ss(x + 3), acc);
}
/* Two groups of chains, the one while the other waits for its sums.  The second lags behind: where lines lie a power of two
   apart, both groups at the same place would want the same few places of a cache. */
static void along_f32(const float *w, size_t pitch, const float *x, size_t k, float *y) {
    enum { LINE = 16, LAG = 8 * LINE };
    const size_t whole = k / LINE * LINE, lag = whole < LAG ? whole : LAG;
    const float *v = w + 8 * pitch;
    __m256 first = _mm256_loadu_ps(y), second = _mm256_loadu_ps(y + 8);
    size_t l = 0;
    for (; l < lag; l += 4) first = four(w + l, pitch, x + l, first);
    for (; l < whole; l += LINE)
        _Pragma("GCC unroll 4") for (size_t s = l; s < l + LINE; s += 4) {
            first = four(w + s, pitch, x + s, first);
            second = four(v + s - lag, pitch, x + s - lag, second);
        }
    for (l = whole - lag; l < whole; l += 4) second = four(v + l, pitch, x + l, second);
    _mm256_storeu_ps(y, first);
    _mm256_storeu_ps(y + 8, second);
    for (; l < k; l++)
        for (size_t i = 0; i < ABREAST; i++) y[i] = fma32(x[l], w[i * pitch + l], y[i]);
}
#else
#define ALONG_f32
#endif
#define ALONG(suffix, type, fused)                                                                                         \
    static void along_##suffix(const type *w, size_t pitch, const type *x, size_t k, type *y) {                            \
        type acc[ABREAST];                                                                                                 \
        for (size_t i = 0; i < ABREAST; i++) acc[i] = y[i];                                                                \
        for (size_t l = 0; l < k; l++)                                                                                     \
            for (size_t i = 0; i < ABREAST; i++) acc[i] = fused(x[l], w[i * pitch + l], acc[i]);                           \
        for (size_t i = 0; i < ABREAST; i++) y[i] = acc[i];                                                                \
    }
#ifdef ALONG_f32
ALONG(f32, float, fma32)
#endif
ALONG(f64, double, fma64)

#define ROW(suffix, type, fused)                                                                                           \
    /* y[j] goes on by `rows` rows that lie `pitch` apart */                                                               \
    static void down_##suffix(const type *w, size_t pitch, const type *x, size_t rows, size_t n, type *restrict y) {       \
        const type *restrict p = w, *restrict q = w + pitch, *restrict r = q + pitch, *restrict s = r + pitch;             \
        if (rows == ROWS)                                                                                                  \
            for (size_t j = 0; j < n; j++) y[j] = fused(x[3], s[j], fused(x[2], r[j], fused(x[1], q[j], fused(x[0], p[j], y[j])))); \
        else                                                                                                               \
            for (size_t l = 0; l < rows; l++)                                                                              \
                for (size_t j = 0; j < n; j++) y[j] = fused(x[l], w[l * pitch + j], y[j]);                                 \
    }                                                                                                                      \
    static void row_##suffix(const struct fc_product_row *p) {                                                             \
        const size_t size = fc_size_of(p->dtype);                                                                          \
        const int narrow = size != sizeof(type);                                                                           \
        type *y = p->y;                                                                                                    \
        memset(y, 0, p->n * sizeof *y);                                                                                    \
        const int there = p->x_k == 1 && !narrow; /* x lies as it is needed */                                             \
        const size_t depth = there ? p->k : STAGE;                                                                         \
        for (size_t l = 0; l < p->k; l += depth) {                                                                         \
            type staged[STAGE];                                                                                            \
            const type *x = there ? (const type *)(const void *)p->x : staged;                                             \
            const size_t k = p->k - l < depth ? p->k - l : depth;                                                          \
            const unsigned char *w = p->w + l * p->w_k * size;                                                             \
            if (!there) stage_##suffix(p->dtype, p->x + l * p->x_k * size, p->x_k, k, staged);                             \
            if (p->w_column == 1 && p->n >= ABREAST) { /* lines of columns: y stays in the first-level cache */            \
                enum { MOST = 16384 / sizeof(type) };                                                                      \
                for (size_t j = 0; j < p->n; j += narrow ? STAGE : MOST) {                                                 \
                    const size_t most = narrow ? STAGE : MOST, n = p->n - j < most ? p->n - j : most;                      \
                    for (size_t i = 0; i < k; i += ROWS) {                                                                 \
                        type room[ROWS * STAGE];                                                                           \
                        const size_t rows = k - i < ROWS ? k - i : ROWS;                                                   \
                        const unsigned char *from = w + (i * p->w_k + j) * size;                                           \
                        for (size_t r = 0; r < rows && narrow; r++)                                                        \
                            stage_##suffix(p->dtype, from + r * p->w_k * size, 1, n, room + r * STAGE);                    \
                        down_##suffix(narrow ? room : (const type *)(const void *)from, narrow ? STAGE : p->w_k, x + i, rows, n, y + j); \
                    }                                                                                                      \
                }                                                                                                          \
                continue;                                                                                                  \
            }                                                                                                              \
            for (size_t j = 0; j < p->n; j += ABREAST) {                                                                   \
                const size_t lines = p->n - j < ABREAST ? p->n - j : ABREAST;                                              \
                const unsigned char *from = w + j * p->w_column * size;                                                    \
                if (p->w_k == 1 && !narrow && lines == ABREAST) {                                                          \
                    along_##suffix((const type *)(const void *)from, p->w_column, x, k, y + j);                            \
                    continue;                                                                                              \
                }                                                                                                          \
                type acc[ABREAST] = {0}, room[ABREAST * DEPTH];                                                            \
                memcpy(acc, y + j, lines * sizeof *y);                                                                     \
                memset(room, 0, lines < ABREAST ? sizeof room : 0);                                                        \
                for (size_t first = 0; first < k; first += DEPTH) {                                                        \
                    const size_t n = k - first < DEPTH ? k - first : DEPTH;                                                \
                    for (size_t i = 0; i < lines; i++)                                                                     \
                        stage_##suffix(p->dtype, from + (i * p->w_column + first * p->w_k) * size, p->w_k, n, room + i * DEPTH); \
                    along_##suffix(room, DEPTH, x + first, n, acc);                                                        \
                }                                                                                                          \
                memcpy(y + j, acc, lines * sizeof *y);                                                                     \
            }                                                                                                              \
        }                                                                                                                  \
    }
ROW(f32, float, fma32)
ROW(f64, double, fma64)

void FC_K(product_row)(const struct fc_product_row *p) {
    if (p->dtype == FC_f64)
        row_f64(p);
    else
        row_f32(p);
}
