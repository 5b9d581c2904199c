/*
 * Lanes for the block kernels: vectors of the compiler, which become whatever the level has (two SSE registers, one AVX
 * register, two NEON registers).  Every operator is one IEEE operation on each lane, so a kernel gives the same bits at any level.
 */
#ifndef FC_BLOCK_VECTOR_H
#define FC_BLOCK_VECTOR_H
#include "core/inline.h"
#include <stdint.h>
#include <string.h>

typedef float f32x8 __attribute__((vector_size(32)));
typedef int32_t i32x8 __attribute__((vector_size(32)));
typedef uint32_t u32x8 __attribute__((vector_size(32)));
typedef uint8_t u8x8 __attribute__((vector_size(8)));
typedef int8_t i8x8 __attribute__((vector_size(8)));

FC_INLINE f32x8 f32x8_load(const float *p) {
    f32x8 x;
    memcpy(&x, p, sizeof x);
    return x;
}
FC_INLINE void f32x8_store(float *p, f32x8 x) { memcpy(p, &x, sizeof x); }
FC_INLINE u8x8 u8x8_load(const uint8_t *p) {
    u8x8 x;
    memcpy(&x, p, sizeof x);
    return x;
}
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

/* Lane by lane: where the mask (a comparison's result, all ones or all zeros) is set a, else b. */
FC_INLINE i32x8 select_i32(i32x8 mask, i32x8 a, i32x8 b) { return (a & mask) | (b & ~mask); }
FC_INLINE f32x8 select_f32(i32x8 mask, f32x8 a, f32x8 b) {
    return f32x8_of_bits(select_i32(mask, bits_of_f32x8(a), bits_of_f32x8(b)));
}
FC_INLINE f32x8 magnitude(f32x8 x) { return f32x8_of_bits(bits_of_f32x8(x) & i32x8_all(0x7fffffff)); }
FC_INLINE i32x8 clamped(i32x8 x, int32_t lo, int32_t hi) {
    x = select_i32(x < i32x8_all(lo), i32x8_all(lo), x);
    return select_i32(x > i32x8_all(hi), i32x8_all(hi), x);
}

#endif
