/* The 256 elements of a block as groups: turned, so that lane g of vector i is element i of group g, and turned back. */
#ifndef FC_BLOCK_GROUPS_H
#define FC_BLOCK_GROUPS_H
#include "block/pack.h"
#include "block/round.h"

/* Eight groups of n floats, one after the other */
FC_INLINE void turn_groups(const float *x, int n, f32x8 *out) {
    for (int i = 0; i < n; i += 8) {
        f32x8 rows[8];
        for (int g = 0; g < 8; g++) rows[g] = f32x8_load(x + n * g + i);
        transposed(rows);
        for (int j = 0; j < 8; j++) out[i + j] = rows[j];
    }
}

/* CLAMP(EVEN((x + offset) / scale), lo, hi) + bias for n elements */
FC_INLINE void divided_codes(const float *x, int n, float offset, float scale, int lo, int hi, uint8_t *codes) {
    for (int i = 0; i < n; i += 16) {
        i32x8 pair[2];
        for (int j = 0; j < 2; j++) {
            const f32x8 v = (f32x8_load(x + i + 8 * j) + f32x8_all(offset)) / f32x8_all(scale);
            pair[j] = clamped(even_x8(v), lo, hi) - i32x8_all(lo);
        }
        store_bytes(codes + i, pair[0], pair[1]);
    }
}

/* CLAMP(EVEN(factor * (x - origin)), lo, hi) - lo for n elements */
FC_INLINE void multiplied_codes(const float *x, int n, float origin, float factor, int lo, int hi, uint8_t *codes) {
    for (int i = 0; i < n; i += 16) {
        i32x8 pair[2];
        for (int j = 0; j < 2; j++) {
            const f32x8 v = f32x8_all(factor) * (f32x8_load(x + i + 8 * j) - f32x8_all(origin));
            pair[j] = clamped(even_x8(v), lo, hi) - i32x8_all(lo);
        }
        store_bytes(codes + i, pair[0], pair[1]);
    }
}

#endif
