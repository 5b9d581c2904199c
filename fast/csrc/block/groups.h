/* The 256 elements of a block as groups: turned, so that a lane holds a group; and the codes of one group. */
#ifndef FC_BLOCK_GROUPS_H
#define FC_BLOCK_GROUPS_H
#include "block/pack.h"
#include "block/wide.h"

/* As many groups of n floats as there are lanes, one after the other: out[i] holds their elements i. */
FC_INLINE void turn_groups(const float *x, int n, f32w *out) {
    for (int i = 0; i < n; i += FC_WIDE) {
        for (int g = 0; g < FC_WIDE; g++) out[i + g] = f32w_load(x + n * g + i);
        turned_w(out + i);
    }
}

/* CLAMP(EVEN((x + offset) / scale), lo, hi) - lo for n elements */
FC_INLINE void divided_codes(const float *x, int n, float offset, float scale, int lo, int hi, uint8_t *bytes) {
    for (int i = 0; i < n; i += 16) {
        i32w codes[FC_SIXTEEN];
        for (int j = 0; j < FC_SIXTEEN; j++) {
            const f32w v = (f32w_load(x + i + FC_WIDE * j) + f32w_all(offset)) / f32w_all(scale);
            codes[j] = clamped_w(even_w(v), lo, hi) - i32w_all(lo);
        }
        store_codes(bytes + i, codes);
    }
}

/* CLAMP(EVEN(factor * (x - origin)), lo, hi) - lo for n elements */
FC_INLINE void multiplied_codes(const float *x, int n, float origin, float factor, int lo, int hi, uint8_t *bytes) {
    for (int i = 0; i < n; i += 16) {
        i32w codes[FC_SIXTEEN];
        for (int j = 0; j < FC_SIXTEEN; j++) {
            const f32w v = f32w_all(factor) * (f32w_load(x + i + FC_WIDE * j) - f32w_all(origin));
            codes[j] = clamped_w(even_w(v), lo, hi) - i32w_all(lo);
        }
        store_codes(bytes + i, codes);
    }
}

#endif
