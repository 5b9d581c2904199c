/*
 * Lanes for the block kernels: vectors of the compiler, which become whatever the level has (two SSE registers, one AVX
 * register, two NEON registers).  Every operator is one IEEE operation on each lane, so a kernel gives the same bits at any level.
 */
#ifndef FC_BLOCK_VECTOR_H
#define FC_BLOCK_VECTOR_H
#include "core/inline.h"
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <immintrin.h>
#endif

typedef float f32x8 __attribute__((vector_size(32)));
typedef int32_t i32x8 __attribute__((vector_size(32)));

FC_INLINE f32x8 f32x8_load(const float *p) {
    f32x8 x;
    memcpy(&x, p, sizeof x);
    return x;
}
FC_INLINE void f32x8_store(float *p, f32x8 x) { memcpy(p, &x, sizeof x); }
FC_INLINE f32x8 f32x8_all(float x) { return (f32x8){x, x, x, x, x, x, x, x}; }
FC_INLINE i32x8 i32x8_all(int32_t x) { return (i32x8){x, x, x, x, x, x, x, x}; }

/* The same bits as another type. */
FC_INLINE i32x8 bits_of_f32x8(f32x8 x) {
    i32x8 bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
FC_INLINE f32x8 f32x8_of_bits(i32x8 bits) {
    f32x8 x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Lane by lane a mask, all ones where it is so.  GCC takes a comparison of vectors that are longer than a register apart into single
   lanes, so it gets halves where there is no AVX2. */
#ifdef __AVX2__
#define FC_COMPARISON(name, type, half, operator) \
    FC_INLINE i32x8 name(type a, type b) { return a operator b; }
#else
#define FC_COMPARISON(name, type, half, operator)                                     \
    FC_INLINE i32x8 name(type a, type b) {                                            \
        typedef half half_vector __attribute__((vector_size(16)));                    \
        typedef int32_t half_mask __attribute__((vector_size(16)));                   \
        half_vector x[2], y[2];                                                       \
        memcpy(x, &a, sizeof a);                                                      \
        memcpy(y, &b, sizeof b);                                                      \
        const half_mask z[2] = {x[0] operator y[0], x[1] operator y[1]};              \
        i32x8 mask;                                                                   \
        memcpy(&mask, z, sizeof mask);                                                \
        return mask;                                                                  \
    }
#endif
FC_COMPARISON(above, f32x8, float, >)
FC_COMPARISON(at_least, f32x8, float, >=)
FC_COMPARISON(same, f32x8, float, ==)
FC_COMPARISON(above_i32, i32x8, int32_t, >)
FC_COMPARISON(same_i32, i32x8, int32_t, ==)
#undef FC_COMPARISON

/* Lane by lane: where the mask (a comparison's result, all ones or all zeros) is set a, else b. */
FC_INLINE i32x8 select_i32(i32x8 mask, i32x8 a, i32x8 b) { return (a & mask) | (b & ~mask); }
FC_INLINE f32x8 select_f32(i32x8 mask, f32x8 a, f32x8 b) {
#ifdef __AVX2__
    return (f32x8)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)mask);
#else
    return f32x8_of_bits(select_i32(mask, bits_of_f32x8(a), bits_of_f32x8(b)));
#endif
}
/* Bit i is set where lane i of the mask is. */
FC_INLINE uint32_t lane_bits(i32x8 mask) {
#if defined(__AVX2__)
    return (uint32_t)_mm256_movemask_ps((__m256)mask);
#elif defined(__SSE2__)
    __m128 halves[2];
    memcpy(halves, &mask, sizeof mask);
    return (uint32_t)(_mm_movemask_ps(halves[0]) | _mm_movemask_ps(halves[1]) << 4);
#else
    const i32x8 bit = mask & (i32x8){1, 2, 4, 8, 16, 32, 64, 128};
    return (uint32_t)(bit[0] | bit[1] | bit[2] | bit[3] | bit[4] | bit[5] | bit[6] | bit[7]);
#endif
}

/* a > b ? a : b, so that of equals and where one is a NaN the result is b */
FC_INLINE f32x8 greater(f32x8 a, f32x8 b) {
#if defined(__AVX2__)
    return (f32x8)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__)
    __m128 x[2], y[2];
    memcpy(x, &a, sizeof a);
    memcpy(y, &b, sizeof b);
    for (int i = 0; i < 2; i++) x[i] = _mm_max_ps(x[i], y[i]);
    memcpy(&a, x, sizeof a);
    return a;
#else
    return select_f32(above(a, b), a, b);
#endif
}
FC_INLINE f32x8 magnitude(f32x8 x) { return f32x8_of_bits(bits_of_f32x8(x) & i32x8_all(0x7fffffff)); }
FC_INLINE i32x8 clamped(i32x8 x, int32_t lo, int32_t hi) {
    x = select_i32(above_i32(i32x8_all(lo), x), i32x8_all(lo), x);
    return select_i32(above_i32(x, i32x8_all(hi)), i32x8_all(hi), x);
}

#endif
