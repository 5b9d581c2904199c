/*
 * Transposing planes.  Sixteen rows of the source are read side by side, a line of memory at a time; a tile of 16 x 16
 * elements is put together in a small buffer and leaves it as whole lines, past the caches where the plane is larger than
 * they are.  Elements are moved as integers, so every bit stays.
 */
#include "core/inline.h"
#include "core/kernels.h"
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

enum { TILE = 16, BEYOND_CACHES = 8 << 20 };

#if defined(__AVX2__)
/* 8 x 8 elements of four bytes: out[i][j] = in[j][i] */
FC_INLINE void square4(const unsigned char *in, size_t in_pitch, unsigned char *out, size_t out_pitch) {
    __m256 r[8], t[8];
    for (int k = 0; k < 8; k++) r[k] = _mm256_loadu_ps((const float *)(const void *)(in + (size_t)k * in_pitch));
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
    for (int k = 0; k < 4; k++) {
        _mm256_storeu_ps((float *)(void *)(out + (size_t)k * out_pitch), _mm256_permute2f128_ps(r[k], r[k + 4], 0x20));
        _mm256_storeu_ps((float *)(void *)(out + (size_t)(k + 4) * out_pitch), _mm256_permute2f128_ps(r[k], r[k + 4], 0x31));
    }
}

/* 4 x 4 elements of eight bytes */
FC_INLINE void square8(const unsigned char *in, size_t in_pitch, unsigned char *out, size_t out_pitch) {
    __m256d r[4], t[4];
    for (int k = 0; k < 4; k++) r[k] = _mm256_loadu_pd((const double *)(const void *)(in + (size_t)k * in_pitch));
    for (int k = 0; k < 2; k++) {
        t[2 * k] = _mm256_unpacklo_pd(r[2 * k], r[2 * k + 1]);
        t[2 * k + 1] = _mm256_unpackhi_pd(r[2 * k], r[2 * k + 1]);
    }
    for (int k = 0; k < 2; k++) {
        _mm256_storeu_pd((double *)(void *)(out + (size_t)k * out_pitch), _mm256_permute2f128_pd(t[k], t[k + 2], 0x20));
        _mm256_storeu_pd((double *)(void *)(out + (size_t)(k + 2) * out_pitch), _mm256_permute2f128_pd(t[k], t[k + 2], 0x31));
    }
}

FC_INLINE void line_out(unsigned char *out, const unsigned char *line, int streaming) {
    for (int k = 0; k < 64; k += 32) {
        const __m256i v = _mm256_load_si256((const __m256i *)(const void *)(line + k));
        if (streaming)
            _mm256_stream_si256((__m256i *)(void *)(out + k), v);
        else
            _mm256_storeu_si256((__m256i *)(void *)(out + k), v);
    }
}

/* A tile of 16 rows and 64 bytes' worth of columns: out rows i get in[0..][i]. */
FC_INLINE void tile4(const unsigned char *in, size_t in_pitch, unsigned char *out, size_t out_pitch, int streaming) {
    _Alignas(64) unsigned char tile[TILE][64];
    for (size_t j = 0; j < TILE; j += 8) {
        square4(in + j * in_pitch, in_pitch, tile[0] + j * 4, 64);
        square4(in + j * in_pitch + 32, in_pitch, tile[8] + j * 4, 64);
    }
    for (size_t i = 0; i < TILE; i++) line_out(out + i * out_pitch, tile[i], streaming);
}

FC_INLINE void tile8(const unsigned char *in, size_t in_pitch, unsigned char *out, size_t out_pitch, int streaming) {
    _Alignas(64) unsigned char tile[8][64];
    for (size_t j = 0; j < 8; j += 4) {
        square8(in + j * in_pitch, in_pitch, tile[0] + j * 8, 64);
        square8(in + j * in_pitch + 32, in_pitch, tile[4] + j * 8, 64);
    }
    for (size_t i = 0; i < 8; i++) line_out(out + i * out_pitch, tile[i], streaming);
}
#endif

/* Any part of a plane, one element at a time in tiles; size is a constant where this is expanded. */
FC_INLINE void plain(size_t size, const unsigned char *in, size_t in_pitch, unsigned char *out, size_t out_pitch, size_t rows,
                     size_t columns) {
    for (size_t i0 = 0; i0 < rows; i0 += TILE) {
        const size_t i1 = i0 + TILE < rows ? i0 + TILE : rows;
        for (size_t j = 0; j < columns; j++)
            for (size_t i = i0; i < i1; i++) memcpy(out + i * out_pitch + j * size, in + j * in_pitch + i * size, size);
    }
}

/* columns are cut too, so that the lines of the output that a tile writes stay in the cache until they are full */
FC_INLINE void plain_tiles(size_t size, const unsigned char *in, size_t in_pitch, unsigned char *out, size_t out_pitch,
                           size_t rows, size_t columns) {
    const size_t wide = size < 64 ? 64 / size : 1;
    for (size_t j = 0; j < columns; j += wide)
        plain(size, in + j * in_pitch, in_pitch, out + j * size, out_pitch, rows, columns - j < wide ? columns - j : wide);
}

/* Clauses: TENSOR-COPY-1 */
void FC_K(transpose)(size_t element, const unsigned char *in, size_t in_pitch, unsigned char *out, size_t out_pitch, size_t rows,
                     size_t columns) {
#if defined(__AVX2__)
    if (element == 4 || element == 8) {
        const size_t side = 64 / element, i1 = rows / side * side, j1 = columns / side * side;
        const int streaming = rows * columns * element >= BEYOND_CACHES && ((uintptr_t)out | out_pitch) % 64 == 0;
        for (size_t j = 0; j < j1; j += side)
            for (size_t i = 0; i < i1; i += side) {
                const unsigned char *from = in + j * in_pitch + i * element;
                unsigned char *to = out + i * out_pitch + j * element;
                if (element == 4)
                    tile4(from, in_pitch, to, out_pitch, streaming);
                else
                    tile8(from, in_pitch, to, out_pitch, streaming);
            }
        if (streaming) _mm_sfence();
        if (i1 < rows) plain_tiles(element, in + i1 * element, in_pitch, out + i1 * out_pitch, out_pitch, rows - i1, columns);
        if (j1 < columns) plain_tiles(element, in + j1 * in_pitch, in_pitch, out + j1 * element, out_pitch, i1, columns - j1);
        return;
    }
#endif
    switch (element) {
    case 1: plain_tiles(1, in, in_pitch, out, out_pitch, rows, columns); return;
    case 2: plain_tiles(2, in, in_pitch, out, out_pitch, rows, columns); return;
    case 4: plain_tiles(4, in, in_pitch, out, out_pitch, rows, columns); return;
    case 8: plain_tiles(8, in, in_pitch, out, out_pitch, rows, columns); return;
    default: plain_tiles(element, in, in_pitch, out, out_pitch, rows, columns);
    }
}
