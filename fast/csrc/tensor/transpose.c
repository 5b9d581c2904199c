/*
 * Transposing planes.  Rows of the source are read side by side, a line of memory at a time; a square tile whose sides are a
 * line of memory is put together in a small buffer and leaves it as whole lines, past the caches where the plane is larger
 * than they are (beyond).  Elements are moved as integers, so every bit stays.
 */
#include "core/inline.h"
#include "core/kernels.h"
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__x86_64__)
#include <emmintrin.h>
#endif

enum { LINE = 64 };

#if defined(__x86_64__)
FC_INLINE __m128i load(const unsigned char *p) { return _mm_loadu_si128((const __m128i *)(const void *)p); }
FC_INLINE void store(unsigned char *p, __m128i v) { _mm_storeu_si128((__m128i *)(void *)p, v); }

/* Squares: out[i][j] = in[j][i].  8 x 8 elements of two bytes. */
FC_INLINE void square2(const unsigned char *in, size_t in_pitch, unsigned char *out, size_t out_pitch) {
    __m128i a[8], b[8];
    for (size_t k = 0; k < 8; k++) a[k] = load(in + k * in_pitch);
    for (int k = 0; k < 4; k++) { /* rows k and k + 4, element by element */
        b[2 * k] = _mm_unpacklo_epi16(a[k], a[k + 4]);
        b[2 * k + 1] = _mm_unpackhi_epi16(a[k], a[k + 4]);
    }
    for (int k = 0; k < 4; k++) {
        a[2 * k] = _mm_unpacklo_epi16(b[k], b[k + 4]);
        a[2 * k + 1] = _mm_unpackhi_epi16(b[k], b[k + 4]);
    }
    for (size_t k = 0; k < 4; k++) {
        store(out + 2 * k * out_pitch, _mm_unpacklo_epi16(a[k], a[k + 4]));
        store(out + (2 * k + 1) * out_pitch, _mm_unpackhi_epi16(a[k], a[k + 4]));
    }
}

#if defined(__AVX2__)
enum { SIDE4 = 8, SIDE8 = 4 };
FC_INLINE void square4(const unsigned char *in, size_t in_pitch, unsigned char *out, size_t out_pitch) {
    __m256 r[8], t[8];
    for (size_t k = 0; k < 8; k++) r[k] = _mm256_loadu_ps((const float *)(const void *)(in + k * in_pitch));
    for (int k = 0; k < 4; k++) {
        t[2 * k] = _mm256_unpacklo_ps(r[2 * k], r[2 * k + 1]);
        t[2 * k + 1] = _mm256_unpackhi_ps(r[2 * k], r[2 * k + 1]);
    }
    for (int k = 0; k < 2; k++) {
        r[4 * k] = _mm256_shuffle_ps(t[4 * k], t[4 * k + 2], 0x44);
        r[4 * k + 1] = _mm256_shuffle_ps(t[4 * k], t[4 * k + 2], 0xee);
        r[4 * k + 2] = _mm256_shuffle_ps(t[4 * k + 1], t[4 * k + 3], 0x44);
        r[4 * k + 3] = _mm256_shuffle_ps(t[4 * k + 1], t[4 * k + 3], 0xee);
    }
    for (size_t k = 0; k < 4; k++) {
        _mm256_storeu_ps((float *)(void *)(out + k * out_pitch), _mm256_permute2f128_ps(r[k], r[k + 4], 0x20));
        _mm256_storeu_ps((float *)(void *)(out + (k + 4) * out_pitch), _mm256_permute2f128_ps(r[k], r[k + 4], 0x31));
    }
}
FC_INLINE void square8(const unsigned char *in, size_t in_pitch, unsigned char *out, size_t out_pitch) {
    __m256d r[4], t[4];
    for (size_t k = 0; k < 4; k++) r[k] = _mm256_loadu_pd((const double *)(const void *)(in + k * in_pitch));
    for (int k = 0; k < 2; k++) {
        t[2 * k] = _mm256_unpacklo_pd(r[2 * k], r[2 * k + 1]);
        t[2 * k + 1] = _mm256_unpackhi_pd(r[2 * k], r[2 * k + 1]);
    }
    for (size_t k = 0; k < 2; k++) {
        _mm256_storeu_pd((double *)(void *)(out + k * out_pitch), _mm256_permute2f128_pd(t[k], t[k + 2], 0x20));
        _mm256_storeu_pd((double *)(void *)(out + (k + 2) * out_pitch), _mm256_permute2f128_pd(t[k], t[k + 2], 0x31));
    }
}
#else
enum { SIDE4 = 4, SIDE8 = 2 };
FC_INLINE void square4(const unsigned char *in, size_t in_pitch, unsigned char *out, size_t out_pitch) {
    __m128i a[4], b[4];
    for (size_t k = 0; k < 4; k++) a[k] = load(in + k * in_pitch);
    for (int k = 0; k < 2; k++) {
        b[2 * k] = _mm_unpacklo_epi32(a[k], a[k + 2]);
        b[2 * k + 1] = _mm_unpackhi_epi32(a[k], a[k + 2]);
    }
    for (size_t k = 0; k < 2; k++) {
        store(out + 2 * k * out_pitch, _mm_unpacklo_epi32(b[k], b[k + 2]));
        store(out + (2 * k + 1) * out_pitch, _mm_unpackhi_epi32(b[k], b[k + 2]));
    }
}
FC_INLINE void square8(const unsigned char *in, size_t in_pitch, unsigned char *out, size_t out_pitch) {
    const __m128i a = load(in), b = load(in + in_pitch);
    store(out, _mm_unpacklo_epi64(a, b));
    store(out + out_pitch, _mm_unpackhi_epi64(a, b));
}
#endif

FC_INLINE void line_out(unsigned char *out, const unsigned char *line, int streaming) {
    for (size_t k = 0; k < LINE; k += 16) {
        if (streaming)
            _mm_stream_si128((__m128i *)(void *)(out + k), load(line + k));
        else
            store(out + k, load(line + k));
    }
}

/* Whole tiles: rows and columns are multiples of LINE / size; size and the square's side are constants. */
FC_INLINE void tiles(size_t size, size_t side, void (*square)(const unsigned char *, size_t, unsigned char *, size_t),
                     const unsigned char *in, size_t in_pitch, unsigned char *out, size_t out_pitch, size_t rows, size_t columns,
                     int beyond) {
    const size_t n = LINE / size;
    const int streaming = beyond && ((uintptr_t)out | out_pitch) % LINE == 0;
    for (size_t j = 0; j < columns; j += n)
        for (size_t i = 0; i < rows; i += n) {
            _Alignas(LINE) unsigned char tile[LINE / 2 * LINE];
            for (size_t y = 0; y < n; y += side)
                for (size_t x = 0; x < n; x += side)
                    square(in + (j + y) * in_pitch + (i + x) * size, in_pitch, tile + x * LINE + y * size, LINE);
            for (size_t x = 0; x < n; x++) line_out(out + (i + x) * out_pitch + j * size, tile + x * LINE, streaming);
        }
    if (streaming) _mm_sfence();
}
#endif

/* Any plane, one element at a time: strips of columns that fill a line of the output; size is a constant. */
FC_INLINE void plain(size_t size, const unsigned char *in, size_t in_pitch, unsigned char *out, size_t out_pitch, size_t rows,
                     size_t columns) {
    const size_t wide = size < LINE ? LINE / size : 1;
    for (size_t j0 = 0; j0 < columns; j0 += wide) {
        const size_t j1 = columns - j0 < wide ? columns : j0 + wide;
        for (size_t i = 0; i < rows; i++)
            for (size_t j = j0; j < j1; j++) memcpy(out + i * out_pitch + j * size, in + j * in_pitch + i * size, size);
    }
}

/* The tiles of a plane, and what is left at its ends. */
#if defined(__x86_64__)
#define TRANSPOSE(size, side, square)                                                                                       \
    {                                                                                                                       \
        const size_t short_of = beyond && out_pitch % LINE == 0 ? (0 - (uintptr_t)out) % LINE / (size) : 0;                 \
        const size_t head = short_of < columns ? short_of : columns; /* behind it every row begins with a line */           \
        if (head) plain(size, in, in_pitch, out, out_pitch, rows, head);                                                    \
        in += head * in_pitch;                                                                                              \
        out += head * (size);                                                                                               \
        columns -= head;                                                                                                    \
        const size_t n = LINE / (size), i = rows / n * n, j = columns / n * n;                                              \
        tiles(size, side, square, in, in_pitch, out, out_pitch, i, j, beyond);                                                 \
        plain(size, in + i * (size), in_pitch, out + i * out_pitch, out_pitch, rows - i, columns);                          \
        plain(size, in + j * in_pitch, in_pitch, out + j * (size), out_pitch, i, columns - j);                              \
        return;                                                                                                             \
    }
#else
#define TRANSPOSE(size, side, square)                              \
    {                                                              \
        plain(size, in, in_pitch, out, out_pitch, rows, columns);  \
        return;                                                    \
    }
#endif

/* Clause: TENSOR-COPY-1 */
void FC_K(transpose)(size_t element, const unsigned char *in, size_t in_pitch, unsigned char *out, size_t out_pitch, size_t rows,
                     size_t columns, int beyond) {
    (void)beyond;
    switch (element) {
    case 1: plain(1, in, in_pitch, out, out_pitch, rows, columns); return;
    case 2: TRANSPOSE(2, 8, square2)
    case 4: TRANSPOSE(4, SIDE4, square4)
    case 8: TRANSPOSE(8, SIDE8, square8)
    default: plain(element, in, in_pitch, out, out_pitch, rows, columns);
    }
}
