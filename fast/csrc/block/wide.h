/*
 * Lanes as many as a register of the level has.  Compilers split the operators of block/vector.h over two registers where they
 * must, but GCC takes comparisons apart into single lanes then; a kernel that lives on comparisons counts in FC_WIDE instead.
 */
#ifndef FC_BLOCK_WIDE_H
#define FC_BLOCK_WIDE_H
#include "core/inline.h"
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <immintrin.h>
#endif

#ifdef __AVX2__
#define FC_WIDE 8
#else
#define FC_WIDE 4
#endif
typedef float f32w __attribute__((vector_size(4 * FC_WIDE)));
typedef int32_t i32w __attribute__((vector_size(4 * FC_WIDE)));

FC_INLINE f32w f32w_load(const float *p) {
    f32w x;
    memcpy(&x, p, sizeof x);
    return x;
}
FC_INLINE void f32w_store(float *p, f32w x) { memcpy(p, &x, sizeof x); }
FC_INLINE void i32w_store(int32_t *p, i32w x) { memcpy(p, &x, sizeof x); }
FC_INLINE f32w f32w_all(float x) { return (f32w){0} + x; }
FC_INLINE i32w i32w_all(int32_t x) { return (i32w){0} + x; }
FC_INLINE f32w f32w_of(i32w x) { return __builtin_convertvector(x, f32w); }

/* Lane by lane: where the mask (a comparison's result) is set a, else b. */
FC_INLINE i32w select_i32w(i32w mask, i32w a, i32w b) { return (a & mask) | (b & ~mask); }
FC_INLINE f32w select_f32w(i32w mask, f32w a, f32w b) {
#ifdef __AVX2__
    return (f32w)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)mask);
#else
    return (f32w)select_i32w(mask, (i32w)a, (i32w)b);
#endif
}
/* Bit i is set where lane i of the mask is. */
FC_INLINE uint32_t lane_bits_w(i32w mask) {
#if defined(__AVX2__)
    return (uint32_t)_mm256_movemask_ps((__m256)mask);
#elif defined(__SSE2__)
    return (uint32_t)_mm_movemask_ps((__m128)mask);
#else
    const i32w bit = mask & (i32w){1, 2, 4, 8};
    return (uint32_t)(bit[0] | bit[1] | bit[2] | bit[3]);
#endif
}
FC_INLINE int any_lane_w(i32w mask) { return lane_bits_w(mask) != 0; }
/* a < b ? a : b and a > b ? a : b: of equals, and where one is a NaN, b */
FC_INLINE f32w lesser_w(f32w a, f32w b) {
#if defined(__AVX2__)
    return (f32w)_mm256_min_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__)
    return (f32w)_mm_min_ps((__m128)a, (__m128)b);
#else
    return select_f32w(a < b, a, b);
#endif
}
FC_INLINE f32w greater_w(f32w a, f32w b) {
#if defined(__AVX2__)
    return (f32w)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__)
    return (f32w)_mm_max_ps((__m128)a, (__m128)b);
#else
    return select_f32w(a > b, a, b);
#endif
}
FC_INLINE f32w magnitude_w(f32w x) { return (f32w)((i32w)x & i32w_all(0x7fffffff)); }
FC_INLINE i32w clamped_w(i32w x, int32_t lo, int32_t hi) {
#ifdef __AVX2__
    return (i32w)_mm256_min_epi32(_mm256_max_epi32((__m256i)x, (__m256i)i32w_all(lo)), (__m256i)i32w_all(hi));
#else
    x = select_i32w(x < i32w_all(lo), i32w_all(lo), x);
    return select_i32w(x > i32w_all(hi), i32w_all(hi), x);
#endif
}

/* EVEN of block/round.h on each lane.  Clause BLOCK-ROUND-1. */
FC_INLINE i32w even_w(f32w v) {
    const i32w k = ((i32w)(v + f32w_all(12582912.0f)) & i32w_all(0x7fffff)) - i32w_all(4194304);
    return k & (v == v);
}

/* AWAY for magnitudes below 2^22: the float below one half is added, away from zero, and the sum cut.  From a tie k + 1/2 the
   sum's exact value misses k + 1 by at most half a place, and where it is half, at k = 0, k + 1 is the even neighbour; from
   the float below a tie it stays below k + 1.  Clause BLOCK-ROUND-1. */
FC_INLINE i32w away_w(f32w v) {
    const i32w half = i32w_all(0x3effffff) | ((i32w)v & i32w_all(INT32_MIN));
    return __builtin_convertvector(v + (f32w)half, i32w);
}

/* As many vectors as lanes: lane j of the i-th becomes lane i of the j-th. */
FC_INLINE void turned_w(f32w rows[FC_WIDE]) {
#if defined(__AVX2__)
    __m256 a[8], b[8];
    for (int i = 0; i < 8; i += 2) {
        a[i] = _mm256_unpacklo_ps((__m256)rows[i], (__m256)rows[i + 1]);
        a[i + 1] = _mm256_unpackhi_ps((__m256)rows[i], (__m256)rows[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        b[i] = _mm256_shuffle_ps(a[i], a[i + 2], 0x44);
        b[i + 1] = _mm256_shuffle_ps(a[i], a[i + 2], 0xee);
        b[i + 2] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0x44);
        b[i + 3] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0xee);
    }
    for (int i = 0; i < 4; i++) {
        rows[i] = (f32w)_mm256_permute2f128_ps(b[i], b[i + 4], 0x20);
        rows[i + 4] = (f32w)_mm256_permute2f128_ps(b[i], b[i + 4], 0x31);
    }
#elif defined(__SSE2__)
    __m128 a[4];
    for (int i = 0; i < 4; i += 2) {
        a[i] = _mm_unpacklo_ps((__m128)rows[i], (__m128)rows[i + 1]);
        a[i + 1] = _mm_unpackhi_ps((__m128)rows[i], (__m128)rows[i + 1]);
    }
    for (int i = 0; i < 2; i++) {
        rows[2 * i] = (f32w)_mm_movelh_ps(a[i], a[i + 2]);
        rows[2 * i + 1] = (f32w)_mm_movehl_ps(a[i + 2], a[i]);
    }
#else
    float from[FC_WIDE][FC_WIDE], to[FC_WIDE][FC_WIDE];
    memcpy(from, rows, sizeof from);
    for (int i = 0; i < FC_WIDE; i++)
        for (int j = 0; j < FC_WIDE; j++) to[j][i] = from[i][j];
    memcpy(rows, to, sizeof to);
#endif
}

#endif
