/*
 * Lanes of doubles and of 64-bit words.  The kernels are written once over these two types:
 *   AVX2   a vector is two registers (eight lanes); two independent chains in every statement hide the latency of the other;
 *   else   a vector is one number, and the loops over arrays are short enough for the compiler to vectorise.
 * Each function is one IEEE operation on each lane (fv_fma: one or two, see there), so the kernels' values depend on
 * nothing but the presence of an fma instruction.
 */
#ifndef FC_RNG_VECTOR_H
#define FC_RNG_VECTOR_H
#include "rng/word.h"

/* fv_fma(a, b, c) = a * b + c: one rounding where the machine has the instruction, else two.  The error bounds of
   rng/BOUNDS.md hold for both; clauses that prescribe the operations never go through it (NUM-ARITH-1). */
#if defined(__FMA__) || defined(__aarch64__) || defined(__FP_FAST_FMA)
#define FC_FMA 1
#else
#define FC_FMA 0
#endif

#ifdef __AVX2__
#include <immintrin.h>

enum { FV_REGISTERS = 2, FV_LANES = 4 * FV_REGISTERS };
typedef struct { __m256d r[FV_REGISTERS]; } fv; /* doubles */
typedef struct { __m256i r[FV_REGISTERS]; } uv; /* words */

#define FV_EACH for (int i = 0; i < FV_REGISTERS; i++)
#define FV_MAP_1(type, name, from, expression)    \
    FC_INLINE type name(from a) {                 \
        type y;                                   \
        FV_EACH y.r[i] = expression(a.r[i]);      \
        return y;                                 \
    }
#define FV_MAP_2(type, name, expression)                \
    FC_INLINE type name(type a, type b) {               \
        type y;                                         \
        FV_EACH y.r[i] = expression(a.r[i], b.r[i]);    \
        return y;                                       \
    }
#define FV_MAP_3(name, expression)                              \
    FC_INLINE fv name(fv a, fv b, fv c) {                       \
        fv y;                                                   \
        FV_EACH y.r[i] = expression(a.r[i], b.r[i], c.r[i]);    \
        return y;                                               \
    }
FV_MAP_2(fv, fv_add, _mm256_add_pd)
FV_MAP_2(fv, fv_sub, _mm256_sub_pd)
FV_MAP_2(fv, fv_mul, _mm256_mul_pd)
FV_MAP_2(fv, fv_div, _mm256_div_pd)
FV_MAP_2(fv, fv_min, _mm256_min_pd)
FV_MAP_1(fv, fv_sqrt, fv, _mm256_sqrt_pd)
FV_MAP_3(fv_fma, _mm256_fmadd_pd)
FV_MAP_3(fv_fnma, _mm256_fnmadd_pd) /* c - a * b */
FV_MAP_2(uv, uv_add, _mm256_add_epi64)
FV_MAP_2(uv, uv_sub, _mm256_sub_epi64)
FV_MAP_2(uv, uv_and, _mm256_and_si256)
FV_MAP_2(uv, uv_or, _mm256_or_si256)
FV_MAP_2(uv, uv_xor, _mm256_xor_si256)
FV_MAP_1(fv, fv_of_bits, uv, _mm256_castsi256_pd)
FV_MAP_1(uv, uv_of_bits, fv, _mm256_castpd_si256)

FC_INLINE uv uv_right(uv a, int k) {
    FV_EACH a.r[i] = _mm256_srli_epi64(a.r[i], k);
    return a;
}
FC_INLINE uv uv_left(uv a, int k) {
    FV_EACH a.r[i] = _mm256_slli_epi64(a.r[i], k);
    return a;
}
FC_INLINE fv fv_all(double x) {
    fv y;
    FV_EACH y.r[i] = _mm256_set1_pd(x);
    return y;
}
FC_INLINE uv uv_all(uint64_t x) {
    uv y;
    FV_EACH y.r[i] = _mm256_set1_epi64x((long long)x);
    return y;
}
FC_INLINE fv fv_load(const double *p) {
    fv y;
    FV_EACH y.r[i] = _mm256_loadu_pd(p + 4 * i);
    return y;
}
FC_INLINE uv uv_load(const uint64_t *p) {
    uv y;
    FV_EACH y.r[i] = _mm256_loadu_si256((const __m256i_u *)(p + 4 * i));
    return y;
}
FC_INLINE void fv_store(double *p, fv a) { FV_EACH _mm256_storeu_pd(p + 4 * i, a.r[i]); }
FC_INLINE void uv_store(uint64_t *p, uv a) { FV_EACH _mm256_storeu_si256((__m256i_u *)(p + 4 * i), a.r[i]); }

/* Lanes of b where the top bit of m is set, else of a. */
FC_INLINE fv fv_select(uv m, fv a, fv b) {
    FV_EACH {
        __asm__("" : "+x"(m.r[i])); /* else GCC compares with zero first, though the blend looks at the top bit alone */
        a.r[i] = _mm256_blendv_pd(a.r[i], b.r[i], _mm256_castsi256_pd(m.r[i]));
    }
    return a;
}

/* The halves of k as mantissas of two doubles, added: see fv_of_integer. */
FC_INLINE fv fv_of_halves(uv k, uv high, uv low, fv offset) {
    fv y;
    FV_EACH {
        const __m256i upper = _mm256_blend_epi32(_mm256_shuffle_epi32(k.r[i], 0xf5), high.r[i], 0xaa);
        const __m256i lower = _mm256_blend_epi32(k.r[i], low.r[i], 0xaa);
        y.r[i] = _mm256_add_pd(_mm256_sub_pd(_mm256_castsi256_pd(upper), offset.r[i]), _mm256_castsi256_pd(lower));
    }
    return y;
}
/* Rounded to f32; out may have any alignment. */
FC_INLINE void fv_store_f32(fc_any_f32 *p, fv a) {
    FV_EACH _mm_storeu_ps((float *)(void *)p + 4 * i, _mm256_cvtpd_ps(a.r[i]));
}
#undef FV_MAP_1
#undef FV_MAP_2
#undef FV_MAP_3

#else
enum { FV_LANES = 1 };
typedef double fv;
typedef uint64_t uv;

FC_INLINE fv fv_add(fv a, fv b) { return a + b; }
FC_INLINE fv fv_sub(fv a, fv b) { return a - b; }
FC_INLINE fv fv_mul(fv a, fv b) { return a * b; }
FC_INLINE fv fv_div(fv a, fv b) { return a / b; }
FC_INLINE fv fv_min(fv a, fv b) { return a < b ? a : b; }
FC_INLINE fv fv_sqrt(fv a) { return __builtin_sqrt(a); }
#if FC_FMA
FC_INLINE fv fv_fma(fv a, fv b, fv c) { return __builtin_fma(a, b, c); }
FC_INLINE fv fv_fnma(fv a, fv b, fv c) { return __builtin_fma(-a, b, c); }
#else
FC_INLINE fv fv_fma(fv a, fv b, fv c) { return a * b + c; }
FC_INLINE fv fv_fnma(fv a, fv b, fv c) { return c - a * b; }
#endif
FC_INLINE uv uv_add(uv a, uv b) { return a + b; }
FC_INLINE uv uv_sub(uv a, uv b) { return a - b; }
FC_INLINE uv uv_and(uv a, uv b) { return a & b; }
FC_INLINE uv uv_or(uv a, uv b) { return a | b; }
FC_INLINE uv uv_xor(uv a, uv b) { return a ^ b; }
FC_INLINE uv uv_right(uv a, int k) { return a >> k; }
FC_INLINE uv uv_left(uv a, int k) { return a << k; }
FC_INLINE fv fv_of_bits(uv a) { return f64_value(a); }
FC_INLINE uv uv_of_bits(fv a) { return f64_bits(a); }
FC_INLINE fv fv_all(double x) { return x; }
FC_INLINE uv uv_all(uint64_t x) { return x; }
FC_INLINE fv fv_load(const double *p) { return *p; }
FC_INLINE uv uv_load(const uint64_t *p) { return *p; }
FC_INLINE void fv_store(double *p, fv a) { *p = a; }
FC_INLINE void uv_store(uint64_t *p, uv a) { *p = a; }

/* b where the top bit of m is set, else a */
FC_INLINE fv fv_select(uv m, fv a, fv b) {
    const uint64_t take = 0 - (m >> 63);
    return f64_value(f64_bits(a) ^ ((f64_bits(a) ^ f64_bits(b)) & take));
}

/* The halves of k as mantissas of two doubles, added: see fv_of_integer. */
FC_INLINE fv fv_of_halves(uv k, uv high, uv low, fv offset) {
    return (f64_value(k >> 32 | high) - offset) + f64_value((k & 0xffffffff) | low);
}
FC_INLINE void fv_store_f32(fc_any_f32 *p, fv a) { *p = (float)a; }
#endif

/* An integer with at most 53 significant bits as a double, exact: its halves become mantissas of 2^84 and 2^52, the first
   minus 2^84 + 2^52 is exact, and so is the sum.  (No conversion instruction: most vector units lack one for 64 bits.) */
FC_INLINE fv fv_of_integer(uv k) {
    return fv_of_halves(k, uv_all(UINT64_C(0x4530000000000000)), uv_all(UINT64_C(0x4330000000000000)), fv_all(0x1.00000001p84));
}
/* The top 53 bits of words, times 2^11 */
FC_INLINE fv fv_of_top_53(uv word) { return fv_of_integer(uv_and(word, uv_all(~UINT64_C(0x7ff)))); }

#endif
