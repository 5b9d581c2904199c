/*
 * The scans of clause BLOCK-SCAN-1 for up to eight blocks side by side, one in each lane: the lanes of a block are folded first,
 * then the eight results are turned, and a fold over them finishes all eight.  The largest and the least of some numbers do not
 * depend on the order; which of two equal ones wins does, and is put right block by block where it shows.
 */
#ifndef FC_BLOCK_SCAN_H
#define FC_BLOCK_SCAN_H
#include "block/vector.h"
#include <stddef.h>

FC_INLINE size_t at_most_eight(size_t n) { return n < 8 ? n : 8; }

typedef struct {
    f32x8 lo, hi;
} fc_ranges;

/* The largest magnitude of each of `count` blocks of n floats; 0 in the lanes beyond */
FC_INLINE f32x8 eight_tops(const float *x, size_t count, int n) {
    f32x8 rows[8] = {{0}};
    for (size_t b = 0; b < count; b++, x += n) {
        f32x8 top = magnitude(f32x8_load(x));
        for (int i = 8; i < n; i += 8) top = greater(magnitude(f32x8_load(x + i)), top);
        rows[b] = top;
    }
    transposed(rows);
    f32x8 top = {0};
    for (int i = 0; i < 8; i++) top = greater(rows[i], top);
    return top;
}

/* The least and the largest of each of `count` blocks; of a zero the sign is open */
FC_INLINE fc_ranges eight_extremes(const float *x, size_t count, int n) {
    f32x8 low[8] = {{0}}, high[8] = {{0}};
    for (size_t b = 0; b < count; b++, x += n) {
        f32x8 lo = f32x8_load(x), hi = lo;
        for (int i = 8; i < n; i += 8) {
            lo = lesser(f32x8_load(x + i), lo);
            hi = greater(f32x8_load(x + i), hi);
        }
        low[b] = lo;
        high[b] = hi;
    }
    transposed(low);
    transposed(high);
    fc_ranges range = {low[0], high[0]};
    for (int i = 1; i < 8; i++) {
        range.lo = lesser(low[i], range.lo);
        range.hi = greater(high[i], range.hi);
    }
    return range;
}

/* PEAK: the number of largest magnitude, of equal magnitudes the first; +0 for a block of zeros.  Clause: BLOCK-SCAN-1 */
FC_INLINE f32x8 eight_peaks(const float *x, size_t count, int n) {
    const fc_ranges range = eight_extremes(x, count, n);
    const f32x8 top = greater(range.hi, -range.lo), none = {0};
    f32x8 peak = select_f32(top != none, select_f32(range.hi > -range.lo, range.hi, range.lo), none);
    const i32x8 tie = (range.hi == -range.lo) & (top != none);
    if (any_lane(tie))
        for (size_t b = 0; b < count; b++)
            for (int i = 0; tie[b] && i < n; i++)
                if (x[b * (size_t)n + (size_t)i] == top[b] || x[b * (size_t)n + (size_t)i] == -top[b]) {
                    peak[b] = x[b * (size_t)n + (size_t)i];
                    break;
                }
    return peak;
}

/* RANGE: a zero has the sign of the block's first zero.  Clause: BLOCK-SCAN-1 */
FC_INLINE fc_ranges eight_ranges(const float *x, size_t count, int n) {
    fc_ranges range = eight_extremes(x, count, n);
    const i32x8 zero = range.lo == f32x8_all(0);
    if (any_lane(zero))
        for (size_t b = 0; b < count; b++)
            for (int i = 0; zero[b] && i < n; i++)
                if (x[b * (size_t)n + (size_t)i] == 0) {
                    range.lo[b] = x[b * (size_t)n + (size_t)i];
                    if (range.hi[b] == 0) range.hi[b] = range.lo[b];
                    break;
                }
    return range;
}

/* INV: a reciprocal that is not finite is +0.  Clause: BLOCK-SCAN-1 */
FC_INLINE f32x8 inverse_x8(f32x8 d) {
    const f32x8 r = f32x8_all(1) / d;
    return select_f32(magnitude(r) < f32x8_all(__builtin_inff()), r, f32x8_all(0));
}

#endif
