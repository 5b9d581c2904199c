/*
 * The searches for one scale of q6_k (clause BLOCK-SEARCH-1) and q3_k (clause BLOCK-SEARCH-2), for groups of sixteen elements side
 * by side in the lanes of two vectors, whose independent chains keep the adders busy.  x[h][i] holds element i of the groups of
 * vector h; every sum runs over the elements of its lane in ascending order.
 */
#ifndef FC_BLOCK_SEARCH_ONE_H
#define FC_BLOCK_SEARCH_ONE_H
#include "block/wide.h"
#include "core/fault.h"

enum { GROUP = 16, HALVES = 2 };

/* PEAK of each lane.  Clause: BLOCK-SCAN-1 */
FC_INLINE f32w lane_peaks(const f32w *x) {
    f32w top = {0}, peak = {0};
    for (int i = 0; i < GROUP; i++) {
        const f32w m = magnitude_w(x[i]);
        peak = select_f32w(m > top, x[i], peak);
        top = greater_w(m, top);
    }
    return peak;
}

/* P and Q of one trial with the multiplier t.  |t x| is at most 33 wherever the trial counts, so that adding and subtracting
   EVEN's constant is EVEN. */
FC_INLINE void grid_trial(f32w (*x)[GROUP], f32w (*wx)[GROUP], f32w (*w)[GROUP], const f32w *t, f32w *p, f32w *q) {
    const f32w whole = f32w_all(12582912.0f), least = f32w_all(-32), most = f32w_all(31), none = {0};
    for (int h = 0; h < HALVES; h++) p[h] = q[h] = none;
    for (int i = 0; i < GROUP; i++)
        for (int h = 0; h < HALVES; h++) {
            const f32w k = lesser_w(greater_w((t[h] * x[h][i] + whole) - whole, least), most);
            p[h] += wx[h][i] * k;
            q[h] += (w[h][i] * k) * k;
        }
}

/* The scale of each group and the multiplier t of the provisional codes CLAMP(EVEN(t * x), -32, 31) + 32; where the group is as
   good as zero the scale is 0, and t is 0 by way of a mark, since the codes are then 0 and not 32.  Clause: BLOCK-SEARCH-1 */
FC_INLINE void grid_search(f32w (*x)[GROUP], f32w *scale, f32w *multiplier) {
    f32w w[HALVES][GROUP], wx[HALVES][GROUP], peak[HALVES], best[HALVES], t[HALVES], p[HALVES], q[HALVES];
    const f32w none = {0};
    for (int h = 0; h < HALVES; h++) {
        peak[h] = lane_peaks(x[h]);
        t[h] = f32w_all(-32) / peak[h];
        for (int i = 0; i < GROUP; i++) {
            w[h][i] = x[h][i] * x[h][i];
            wx[h][i] = w[h][i] * x[h][i];
        }
    }
    grid_trial(x, wx, w, t, p, q);
    for (int h = 0; h < HALVES; h++) {
        scale[h] = select_f32w(q[h] != none, p[h] / q[h], none);
        best[h] = scale[h] * p[h];
        multiplier[h] = t[h];
    }
    for (int step = FC_PLANT(GRID_FIRST_STEP_MISSING, -9, -8); step <= 9; step++) {
        if (step == 0) continue;
        for (int h = 0; h < HALVES; h++) t[h] = f32w_all(-(32 + 0.1f * (float)step)) / peak[h];
        grid_trial(x, wx, w, t, p, q);
        for (int h = 0; h < HALVES; h++) {
            const i32w better = (q[h] > none) & (p[h] * p[h] > best[h] * q[h]);
            const f32w found = p[h] / q[h];
            scale[h] = select_f32w(better, found, scale[h]);
            best[h] = select_f32w(better, found * p[h], best[h]);
            multiplier[h] = select_f32w(better, t[h], multiplier[h]);
        }
    }
    for (int h = 0; h < HALVES; h++) {
        const i32w dead = magnitude_w(peak[h]) < f32w_all(1e-15f);
        scale[h] = select_f32w(dead, none, scale[h]);
        multiplier[h] = select_f32w(dead, none, multiplier[h]);
    }
}

/* CLAMP(EVEN(v), -4, 3) as floats, where it counts */
FC_INLINE f32w coordinate_code(f32w v, i32w counts) {
    const f32w whole = f32w_all(12582912.0f), least = f32w_all(-4), most = f32w_all(3);
    if (any_lane_w(counts & ~(magnitude_w(v) <= f32w_all(4194303.0f)))) return __builtin_convertvector(clamped_w(even_w(v), -4, 3), f32w);
    return lesser_w(greater_w((v + whole) - whole, least), most);
}

/* The scale of each group and its provisional codes k + 4 (0 where the group is as good as zero) as floats.
   Clause: BLOCK-SEARCH-2 */
FC_INLINE void coordinate_search(f32w (*x)[GROUP], f32w *scale, f32w (*k)[GROUP]) {
    f32w w[HALVES][GROUP], wx[HALVES][GROUP], p[HALVES], q[HALVES];
    i32w dead[HALVES];
    const f32w none = {0};
    for (int h = 0; h < HALVES; h++) {
        const f32w peak = lane_peaks(x[h]), t = f32w_all(-4) / peak;
        dead[h] = magnitude_w(peak) < f32w_all(1e-15f);
        p[h] = q[h] = none;
        for (int i = 0; i < GROUP; i++) {
            w[h][i] = x[h][i] * x[h][i];
            wx[h][i] = w[h][i] * x[h][i];
            k[h][i] = coordinate_code(t * x[h][i], ~dead[h]);
            p[h] += wx[h][i] * k[h][i];
            q[h] += (w[h][i] * k[h][i]) * k[h][i];
        }
    }
    /* a group that a sweep left alone is left alone by the next one too */
    for (int sweep = 0; sweep < FC_PLANT(FIFTH_SWEEP_MISSING, 5, 4) + FC_PLANT(SIXTH_SWEEP, 0, 1); sweep++) {
        i32w changed = {0};
        for (int i = 0; i < GROUP; i++)
            for (int h = 0; h < HALVES; h++) {
                const f32w old = k[h][i];
                f32w p_new = p[h] - wx[h][i] * old, q_new = q[h] - (w[h][i] * old) * old;
                const i32w counts = (p_new > none) & ~dead[h];
                const f32w j = coordinate_code((x[h][i] * q_new) / p_new, counts);
                p_new += wx[h][i] * j;
                q_new += (w[h][i] * j) * j;
                const i32w better = counts & (j != old) & (q_new > none) & ((p_new * p_new) * q[h] > (p[h] * p[h]) * q_new);
                k[h][i] = select_f32w(better, j, old);
                p[h] = select_f32w(better, p_new, p[h]);
                q[h] = select_f32w(better, q_new, q[h]);
                changed |= better;
            }
        if (!any_lane_w(changed)) break;
    }
    for (int h = 0; h < HALVES; h++) {
        scale[h] = select_f32w((q[h] > none) & ~dead[h], p[h] / q[h], none);
        for (int i = 0; i < GROUP; i++) k[h][i] = select_f32w(dead[h], none, k[h][i] + f32w_all(4));
    }
}

#endif
