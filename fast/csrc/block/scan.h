/*
 * The scans of clause BLOCK-SCAN-1 for as many blocks as there are lanes, one in each lane: the lanes of a block are folded
 * first, then the results are turned, and a fold over them finishes them all.  The largest and the least of some numbers do not
 * depend on the order; which of two equal ones wins does, and is put right block by block where it shows.
 */
#ifndef FC_BLOCK_SCAN_H
#define FC_BLOCK_SCAN_H
#include "block/wide.h"
#include <stddef.h>

enum { FC_BATCH = FC_WIDE }; /* blocks scanned at a time */
FC_INLINE size_t at_most_a_batch(size_t n) { return n < FC_BATCH ? n : FC_BATCH; }

typedef struct {
    f32w lo, hi;
} fc_ranges;

/* The largest magnitude of each of `count` blocks of n floats; 0 in the lanes beyond */
FC_INLINE f32w batch_tops(const float *x, size_t count, int n) {
    f32w rows[FC_BATCH] = {{0}};
    for (size_t b = 0; b < count; b++, x += n) {
        f32w top = magnitude_w(f32w_load(x));
        for (int i = FC_WIDE; i < n; i += FC_WIDE) top = greater_w(magnitude_w(f32w_load(x + i)), top);
        rows[b] = top;
    }
    turned_w(rows);
    f32w top = f32w_all(0);
    for (int i = 0; i < FC_BATCH; i++) top = greater_w(rows[i], top);
    return top;
}

/* The least and the largest of each of `count` blocks; of a zero the sign is open */
FC_INLINE fc_ranges batch_extremes(const float *x, size_t count, int n) {
    f32w low[FC_BATCH] = {{0}}, high[FC_BATCH] = {{0}};
    for (size_t b = 0; b < count; b++, x += n) {
        f32w lo = f32w_load(x), hi = lo;
        for (int i = FC_WIDE; i < n; i += FC_WIDE) {
            lo = lesser_w(f32w_load(x + i), lo);
            hi = greater_w(f32w_load(x + i), hi);
        }
        low[b] = lo;
        high[b] = hi;
    }
    turned_w(low);
    turned_w(high);
    fc_ranges range = {low[0], high[0]};
    for (int i = 1; i < FC_BATCH; i++) {
        range.lo = lesser_w(low[i], range.lo);
        range.hi = greater_w(high[i], range.hi);
    }
    return range;
}

/* PEAK: the number of largest magnitude, of equal magnitudes the first; +0 for a block of zeros.  Clause: BLOCK-SCAN-1 */
FC_INLINE f32w batch_peaks(const float *x, size_t count, int n) {
    const fc_ranges range = batch_extremes(x, count, n);
    const f32w none = f32w_all(0), top = greater_w(range.hi, -range.lo);
    const i32w some = top != none, tie = (range.hi == -range.lo) & some;
    f32w peak = select_f32w(some, select_f32w(range.hi > -range.lo, range.hi, range.lo), none);
    uint32_t ties = lane_bits_w(tie);
    for (size_t b = 0; ties; b++, ties >>= 1)
        for (int i = 0; (ties & 1) && b < count && i < n; i++)
            if (__builtin_fabsf(x[b * (size_t)n + (size_t)i]) == top[b]) {
                peak[b] = x[b * (size_t)n + (size_t)i];
                break;
            }
    return peak;
}

/* RANGE: a zero has the sign of the block's first zero.  Clause: BLOCK-SCAN-1 */
FC_INLINE fc_ranges batch_ranges(const float *x, size_t count, int n) {
    fc_ranges range = batch_extremes(x, count, n);
    uint32_t zeros = lane_bits_w(range.lo == f32w_all(0));
    for (size_t b = 0; zeros; b++, zeros >>= 1)
        for (int i = 0; (zeros & 1) && b < count && i < n; i++)
            if (x[b * (size_t)n + (size_t)i] == 0) {
                range.lo[b] = x[b * (size_t)n + (size_t)i];
                if (range.hi[b] == 0) range.hi[b] = range.lo[b];
                break;
            }
    return range;
}

/* INV: a reciprocal that is not finite is +0.  Clause: BLOCK-SCAN-1 */
FC_INLINE f32w inverse_w(f32w d) {
    const f32w r = f32w_all(1) / d;
    return select_f32w(magnitude_w(r) < f32w_all(__builtin_inff()), r, f32w_all(0));
}

#endif
