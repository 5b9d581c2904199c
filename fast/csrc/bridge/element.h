/*
 * The bridges on one element, in plain C: bit patterns in, bit patterns out, no branch, so that a loop over them vectorises.
 * All results are exact or rounded once by an IEEE operation in the default environment; NaN bits are made in integers, since
 * what the hardware does with them differs (clause NUM-NAN-1).
 */
#ifndef FC_ELEMENT_H
#define FC_ELEMENT_H
#include "core/bits.h"
#include "core/fault.h"
#include "fucina.h"
#include <stdint.h>
#include <string.h>

enum { F32_SIGN_SHIFT = 31, F32_INFINITY = 0x7f800000 };
#define F32_MAGNITUDE UINT32_C(0x7fffffff)
#define F64_MAGNITUDE UINT64_C(0x7fffffffffffffff)
#define F64_INFINITY UINT64_C(0x7ff0000000000000)

/* -- f32 <-> f64 -- */

/* Clause BRIDGE-F16-3 for f32 -> f64: a NaN becomes quiet, sign and payload stay. */
FC_INLINE uint64_t f64_from_f32(uint32_t u) {
    const uint64_t nan = (uint64_t)(u >> F32_SIGN_SHIFT) << 63 | UINT64_C(0x7ff8000000000000) | (uint64_t)(u & 0x7fffff) << 29;
    const uint64_t number = f64_bits((double)f32_value(u));
    return (u & F32_MAGNITUDE) > F32_INFINITY ? nan : number;
}

/* The same back: the top 23 payload bits stay. */
FC_INLINE uint32_t f32_from_f64(uint64_t u) {
    const uint32_t nan = (uint32_t)(u >> 32 & 0x80000000) | 0x7fc00000 | (uint32_t)(u >> 29 & 0x7fffff);
    const uint32_t number = f32_bits((float)f64_value(u));
    return (u & F64_MAGNITUDE) > F64_INFINITY ? nan : number;
}

/*
 * Round to odd (Boldo and Melquiond 2008): what lies below bit `place` is dropped, and that bit is set if any of it was not
 * zero.  A later rounding to nearest that keeps two bits less cannot tell the result from the exact value, infinities stay,
 * and so does what a narrower format keeps of a NaN.  Clause BRIDGE-SINGLE-1.
 */
FC_INLINE uint64_t round_to_odd(uint64_t u, int place) {
    const uint64_t unit = UINT64_C(1) << place, below = unit - 1;
    return (u & ~below) | (((u & below) + below) & unit);
}

/* An integer above 2^53 to 53 bits by round to odd: f64 holds it exactly, and f32 sees what it would have seen. */
FC_INLINE int64_t i64_to_odd(int64_t v) {
    const uint64_t high = (uint64_t)v >> 53, u = (uint64_t)v;
    return high == 0 || high == 0x7ff ? v : (int64_t)round_to_odd(u, 11);
}

/* Clause BRIDGE-INT-2, first step: nearest f64.  With SSE2 alone two exact halves and one rounded sum, since there is no vector instruction. */
FC_INLINE double f64_from_i64(int64_t v) {
#ifdef __SSE2__
    const uint64_t low = ((uint64_t)v & 0xffffffff) | UINT64_C(0x4330000000000000);                          /* 2^52 + low half */
    const uint64_t high = ((uint64_t)v >> 32 ^ UINT64_C(0x80000000)) | UINT64_C(0x4530000000000000); /* 2^84 + 2^63 + high half */
    return (f64_value(high) - (0x1p84 + 0x1p63 + 0x1p52)) + f64_value(low);
#else
    return (double)v;
#endif
}

/* -- decoding: exact, so every format goes to f32 bits -- */

/* Clauses BRIDGE-BF16-1, BRIDGE-DECODE-1. */
FC_INLINE uint32_t f32_from_bf16(uint32_t h) { return h << 16; }

/* Clauses BRIDGE-F16-1, BRIDGE-F16-3, BRIDGE-DECODE-1. */
FC_INLINE uint32_t f32_from_f16(uint32_t h) {
    const uint32_t sign = (h & 0x8000) << 16, m = (h & 0x7fff) << 13;
    const uint32_t normal = m + ((127 - 15) << 23);
    /* 2^-14 with the mantissa behind it, less 2^-14: the subtraction normalises */
    const uint32_t subnormal = f32_bits(f32_value(m + (113 << 23)) - f32_value(113 << 23));
    const uint32_t special = m + ((255 - 31) << 23);
    const uint32_t quiet = m > (31 << 23) ? 0x400000 : 0;
    return sign | (m < (1 << 23) ? subnormal : m >= (31 << 23) ? special | quiet : normal);
}

/* Clauses BRIDGE-E4M3-1, BRIDGE-E4M3-3, BRIDGE-DECODE-1. */
FC_INLINE uint32_t f32_from_e4m3(uint32_t v) {
    const uint32_t sign = (v & 0x80) << 24, m = (v & 0x7f) << 20;
    const uint32_t normal = m + ((127 - 7) << 23);
    const uint32_t subnormal = f32_bits(f32_value(m + (121 << 23)) - f32_value(121 << 23));
    const uint32_t nan = FC_PLANT(E4M3_NAN_DECODED_480, 0x7fc00000, normal);
    return sign | (m < (1 << 23) ? subnormal : m == 0x7f << 20 ? nan : normal);
}

/* Clauses BRIDGE-E5M2-1, BRIDGE-E5M2-3, BRIDGE-DECODE-1: the top half of an f16, but all NaN codes mean the same NaN. */
FC_INLINE uint32_t f32_from_e5m2(uint32_t v) {
    return f32_from_f16(((v & 0x7f) > 0x7c ? (v & 0x80) | 0x7e : v) << 8);
}

/* -- encoding from f32 bits -- */

/*
 * The magnitude code of a number with `man` mantissa bits and least normal exponent `emin`, rounded to nearest even (clause
 * BRIDGE-ROUND-1).  Adding 2^(e + 23 - man) to a number of exponent e makes the float adder round at the last place of the
 * format; below the normal range e stays at emin, so subnormals round at theirs.  The difference of the two bit patterns is
 * the rounded significand, and a carry into the next binade lands in the exponent field by itself.
 */
FC_INLINE uint32_t magnitude_code(float magnitude, int man, int emin) {
    const uint32_t least = (uint32_t)(127 + emin) << 23;
    uint32_t exponent = f32_bits(magnitude) & F32_INFINITY;
    exponent = exponent > least ? exponent : least;
    const uint32_t anchor = exponent + ((uint32_t)(23 - man) << 23);
    return f32_bits(magnitude + f32_value(anchor)) - anchor + ((exponent - least) >> (23 - man));
}

/* The largest finite value where the mode says so, else the least value that overflows: its code is the overflow code. */
#define FC_CAP(mode, largest, overflow) ((mode) & FC_CAST_SATURATE ? (largest) : (overflow))

/* Clauses BRIDGE-BF16-2, BRIDGE-BF16-3, BRIDGE-SAT-1. */
FC_INLINE uint32_t bf16_from_f32(uint32_t u, int mode) {
    const uint32_t m = u & F32_MAGNITUDE, odd = u >> 16 & 1;
    const uint32_t nan = FC_PLANT(BF16_NAN_PAYLOAD_DROPPED, u >> 16 | 0x40, (u >> 16 & 0x8000) | 0x7fc0);
    uint32_t rounded = FC_PLANT(BF16_TRUNCATED, u + 0x7fff + odd, u) >> 16;
    if (mode & FC_CAST_SATURATE) rounded = m > 0x7f7f0000 ? (u >> 16 & 0x8000) | 0x7f7f : rounded;
    return m > F32_INFINITY && !FC_PLANTED(BF16_NAN_BIASED) ? nan : rounded;
}

/* Clauses BRIDGE-F16-2, BRIDGE-F16-3, BRIDGE-SAT-1. */
FC_INLINE uint32_t f16_from_f32(uint32_t u, int mode) {
    const uint32_t m = u & F32_MAGNITUDE, nan = 0x7e00 | (m >> 13 & 0x3ff);
    const float cap = FC_CAP(mode, 65504, 65536), x = f32_value(m), tie = FC_PLANT(F16_65520_FINITE, x, x == 65520 ? 65504 : x);
    uint32_t code = magnitude_code(tie < cap ? tie : cap, 10, -14);
    code = FC_PLANT(F16_SUBNORMAL_FLUSHED, code, code < 0x400 ? 0 : code);
    return (u >> 16 & 0x8000) | (m > F32_INFINITY ? nan : code);
}

/* The sign bit of an f8 code. */
FC_INLINE uint32_t f8_sign(uint32_t u) {
    return FC_PLANT(F8_NAN_SIGN_LOST, u >> 24 & 0x80, (u & F32_MAGNITUDE) > F32_INFINITY ? 0 : u >> 24 & 0x80);
}

/* Clauses BRIDGE-E4M3-2, BRIDGE-E4M3-3, BRIDGE-SAT-1. */
FC_INLINE uint32_t e4m3_from_f32(uint32_t u, int mode) {
    const uint32_t m = u & F32_MAGNITUDE;
    const float cap = FC_CAP(mode, 448, FC_PLANT(E4M3_OVERFLOW_CLAMPED, 480, 448));
    const float x = f32_value(m), tie = FC_PLANT(E4M3_TIE_464_UP, x, x == 464 ? 465 : x);
    const uint32_t code = magnitude_code(tie < cap ? tie : cap, 3, -6); /* 480 would be the NaN code */
    return f8_sign(u) | (m > F32_INFINITY ? 0x7f : code);
}

/* Clauses BRIDGE-E5M2-2, BRIDGE-E5M2-3, BRIDGE-SAT-1. */
FC_INLINE uint32_t e5m2_from_f32(uint32_t u, int mode) {
    const uint32_t m = u & F32_MAGNITUDE;
    const float cap = FC_CAP(mode, 57344, FC_PLANT(E5M2_OVERFLOW_CLAMPED, 65536, 57344));
    const float x = f32_value(m), away = FC_PLANT(E5M2_HALF_AWAY, x, f32_value(m + (m != 0)));
    const uint32_t code = magnitude_code(away < cap ? away : cap, 2, -14);
    return f8_sign(u) | (m > F32_INFINITY ? 0x7e : code);
}

/* -- float to integer -- */

/*
 * Clause BRIDGE-INT-3 for targets of at most 32 bits: NaN gives 0, else truncate and saturate at low and high, which are
 * integers f64 holds.  The conversion itself only ever sees numbers in range: no undefined behaviour.
 */
FC_INLINE int32_t i32_from_f64(double x, int32_t low, int32_t high) {
    const double from = FC_PLANTED(FLOAT_INT_WRAPPED) ? INT32_MIN : low, to = FC_PLANTED(FLOAT_INT_WRAPPED) ? INT32_MAX : high;
    const double raised = x > from ? x : FC_PLANT(NEGATIVE_U8_WRAPPED, from, low == 0 && high == 255 && x > INT32_MIN ? x : from);
    const int32_t v = (int32_t)(raised < to ? raised : to);
    return x == x ? v : FC_PLANT(NAN_INT_MIN, 0, low);
}

/* The same from f32, which does not hold 2^31 - 1: the largest f32 below it stands in, and what reaches 2^31 is put right. */
FC_INLINE int32_t i32_from_f32(float x, int32_t low, int32_t high) {
    const float from = (float)(FC_PLANTED(FLOAT_INT_WRAPPED) ? INT32_MIN : low);
    const float to = high == INT32_MAX || FC_PLANTED(FLOAT_INT_WRAPPED) ? 2147483520.0F : (float)high;
    const float raised = x > from ? x : FC_PLANT(NEGATIVE_U8_WRAPPED, from, low == 0 && high == 255 && x > -0x1p31F ? x : from);
    int32_t v = (int32_t)(raised < to ? raised : to);
    if (high == INT32_MAX) v = x >= 0x1p31F ? INT32_MAX : v;
    return x == x ? v : FC_PLANT(NAN_INT_MIN, 0, low);
}

/* Clause BRIDGE-INT-3 for i64: saturates from 2^63. */
FC_INLINE int64_t i64_from_f64(double x) {
    const double raised = x > -0x1p63 ? x : -0x1p63;
    const int64_t v = (int64_t)(raised < 0x1p63 ? raised : 0);
    const int64_t saturated = x >= 0x1p63 ? INT64_MAX : v;
    return x == x ? saturated : FC_PLANT(NAN_INT_MIN, 0, INT64_MIN);
}

#endif
