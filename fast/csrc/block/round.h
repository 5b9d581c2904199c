/* The roundings to integers that the encoders distinguish (clause BLOCK-ROUND-1), on one number and on eight. */
#ifndef FC_BLOCK_ROUND_H
#define FC_BLOCK_ROUND_H
#include "block/vector.h"
#include "core/bits.h"

/* EVEN: 1.5 * 2^23 is added, so that the float adder rounds at the units place, and the sum's significand is read.  Outside
   +-4194303 the formula is the rule; a NaN gives 0. */
FC_INLINE int32_t even(float v) {
    const int32_t k = (int32_t)(f32_bits(v + 12582912.0f) & 0x7fffff) - 4194304;
    return v == v ? k : 0;
}
FC_INLINE i32x8 even_x8(f32x8 v) {
    const i32x8 k = (bits_of_f32x8(v + f32x8_all(12582912.0f)) & i32x8_all(0x7fffff)) - i32x8_all(4194304);
    return k & same(v, v);
}

#endif
