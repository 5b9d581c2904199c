/*
 * fma32 and fma64: a * b + c rounded once (clause NUM-ARITH-1), as the instruction where the machine has one.  Without:
 *   f32  the product is exact in f64; the sum is rounded to odd there, and f64 has so many bits more than f32 that rounding the
 *        result to f32 rounds the exact sum.  Straight code, for the compiler to vectorise;
 *   f64  in integers of 128 bits.
 * The C library's fma is not asked: it is a call, and not every one is right.
 */
#ifndef FC_OPS_FMA_H
#define FC_OPS_FMA_H
#include "core/bits.h"
#include "core/fault.h"

#if defined(__FMA__) || defined(__aarch64__) || (defined(__FP_FAST_FMA) && defined(__FP_FAST_FMAF))
#define FC_HAS_FMA 1
#else
#define FC_HAS_FMA 0
#endif

FC_INLINE float fma32_soft(float a, float b, float c) {
    const double p = (double)a * (double)b, s = p + (double)c, t = s - p;
    const double e = (p - (s - t)) + ((double)c - t); /* s + e = p + c exactly; NaN where s is infinite */
    const uint64_t u = f64_bits(s), inexact = (uint64_t)((e > 0) | (e < 0)), even = ~u & 1, away = (uint64_t)((e > 0) == (s > 0));
    return (float)f64_value(u + (inexact & even) * (2 * away - 1)); /* the odd neighbour on the side of e */
}

__extension__ typedef unsigned __int128 fma_u128;

/* A finite number that is not 0 as mantissa * 2^exponent, with 53 bits in the mantissa. */
FC_INLINE uint64_t fma_split(uint64_t bits, int *exponent) {
    const uint64_t field = bits >> 52 & 0x7ff, fraction = bits & ((UINT64_C(1) << 52) - 1);
    if (field) {
        *exponent = (int)field - 1075;
        return fraction | UINT64_C(1) << 52;
    }
    const int up = __builtin_clzll(fraction) - 11;
    *exponent = -1074 - up;
    return fraction << up;
}

/* x / 2^places, a lost bit leaving its mark in the lowest one */
FC_INLINE fma_u128 fma_shift(fma_u128 x, int places) {
    if (places == 0) return x;
    if (places > 127) return 1;
    return x >> places | (fma_u128)((x << (128 - places)) != 0);
}

static inline double fma64_soft(double a, double b, double c) {
    const uint64_t ua = f64_bits(a), ub = f64_bits(b), uc = f64_bits(c), magnitude = ~(UINT64_C(1) << 63), inf = UINT64_C(0x7ff) << 52;
    if ((ua & magnitude) >= inf || (ub & magnitude) >= inf) return a * b + c; /* no rounding in either */
    if ((uc & magnitude) >= inf) return c + c;
    if (!(ua & magnitude) || !(ub & magnitude)) return a * b + c;
    if (!(uc & magnitude)) return a * b; /* a product that underflows keeps its sign */
    int ea, eb, ec;
    const uint64_t ma = fma_split(ua, &ea), mb = fma_split(ub, &eb), mc = fma_split(uc, &ec);
    /* product and addend with their highest bit at 125, so that neither bits nor a carry are lost */
    fma_u128 p = (fma_u128)ma * mb, q = (fma_u128)mc << 73;
    const int up = p >> 105 ? 20 : 21;
    p <<= up;
    int exponent = ea + eb - up;
    ec -= 73;
    uint64_t sign = (ua ^ ub) >> 63, other = uc >> 63;
    if (ec > exponent || (ec == exponent && q > p)) {
        const fma_u128 swap = p;
        p = q;
        q = swap;
        const int e = exponent;
        exponent = ec;
        ec = e;
        const uint64_t s = sign;
        sign = other;
        other = s;
    }
    q = fma_shift(q, exponent - ec); /* below 2 places nothing is lost, above nothing cancels down to the mark */
    const fma_u128 r = sign == other ? p + q : p - q;
    if (!r) return 0.0;
    const int top = r >> 64 ? 127 - __builtin_clzll((uint64_t)(r >> 64)) : 63 - __builtin_clzll((uint64_t)r);
    if (exponent + top > 1023) return f64_value(sign << 63 | inf);
    const int lowest = exponent + top - 52 > -1074 ? exponent + top - 52 : -1074, down = lowest - exponent;
    uint64_t m;
    if (down <= 0) {
        m = (uint64_t)(r << -down);
    } else if (down > 127) {
        m = 0;
    } else {
        const fma_u128 half = (fma_u128)1 << (down - 1), rest = r & (2 * half - 1);
        m = (uint64_t)(r >> down);
        m += rest > half || (rest == half && (m & 1));
    }
    return f64_value(sign << 63 | (((uint64_t)(lowest + 1074) << 52) + m)); /* a carry goes on into the exponent, up to inf */
}

#if FC_HAS_FMA
FC_INLINE float fma32(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
FC_INLINE double fma64(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
FC_INLINE float fma32(float a, float b, float c) { return fma32_soft(a, b, c); }
FC_INLINE double fma64(double a, double b, double c) { return fma64_soft(a, b, c); }
#endif

#endif
