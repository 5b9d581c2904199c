/*
 * Lanes as many as a register of the level has.  Compilers split the operators of block/vector.h over two registers where they
 * must, but GCC takes comparisons apart into single lanes then; a kernel that lives on comparisons counts in FC_WIDE instead.
 */
#ifndef FC_BLOCK_WIDE_H
#define FC_BLOCK_WIDE_H
#include "core/inline.h"
#include <stdint.h>
#include <string.h>

#ifdef __AVX2__
#define FC_WIDE 8
#else
#define FC_WIDE 4
#endif
typedef float f32w __attribute__((vector_size(4 * FC_WIDE)));
typedef int32_t i32w __attribute__((vector_size(4 * FC_WIDE)));
typedef uint16_t u16w __attribute__((vector_size(2 * FC_WIDE)));

FC_INLINE f32w f32w_load(const float *p) {
    f32w x;
    memcpy(&x, p, sizeof x);
    return x;
}
FC_INLINE void f32w_store(float *p, f32w x) { memcpy(p, &x, sizeof x); }
FC_INLINE i32w i32w_load(const int32_t *p) {
    i32w x;
    memcpy(&x, p, sizeof x);
    return x;
}
FC_INLINE void i32w_store(int32_t *p, i32w x) { memcpy(p, &x, sizeof x); }
FC_INLINE i32w i32w_load_u16(const uint16_t *p) {
    u16w x;
    memcpy(&x, p, sizeof x);
    return __builtin_convertvector(x, i32w);
}
FC_INLINE f32w f32w_all(float x) { return (f32w){0} + x; }
FC_INLINE i32w i32w_all(int32_t x) { return (i32w){0} + x; }
FC_INLINE f32w f32w_of(i32w x) { return __builtin_convertvector(x, f32w); }

/* Lane by lane: where the mask (a comparison's result) is set a, else b. */
FC_INLINE i32w select_i32w(i32w mask, i32w a, i32w b) { return (a & mask) | (b & ~mask); }
FC_INLINE f32w select_f32w(i32w mask, f32w a, f32w b) { return (f32w)select_i32w(mask, (i32w)a, (i32w)b); }
FC_INLINE f32w magnitude_w(f32w x) { return (f32w)((i32w)x & i32w_all(0x7fffffff)); }
FC_INLINE i32w clamped_w(i32w x, int32_t lo, int32_t hi) {
    x = select_i32w(x < i32w_all(lo), i32w_all(lo), x);
    return select_i32w(x > i32w_all(hi), i32w_all(hi), x);
}

/* EVEN of block/round.h on each lane.  Clause BLOCK-ROUND-1. */
FC_INLINE i32w even_w(f32w v) {
    const i32w k = ((i32w)(v + f32w_all(12582912.0f)) & i32w_all(0x7fffff)) - i32w_all(4194304);
    return k & (v == v);
}

#endif
