/*
 * The search for scale and minimum of q2_k, q4_k and q5_k (clause BLOCK-SEARCH-3), for groups side by side, one in each
 * lane: every sum runs over the elements of its lane in ascending order.  x[i] and w[i] hold element i of the groups.
 */
#ifndef FC_BLOCK_SEARCH_MIN_H
#define FC_BLOCK_SEARCH_MIN_H
#include "block/wide.h"
#include "core/fault.h"

enum { SEARCH_MOST = 32 }; /* elements of a group at most */

typedef struct {
    int n, top, last; /* elements, greatest code, number of the last step */
    float start;
    int square; /* the error measure: v * v, or |v| */
} min_search;

/* What was found; the provisional codes are CLAMP(EVEN(factor * (x - origin)), 0, top). */
typedef struct {
    f32w scale, minimum, factor, origin;
} min_fit;

/* The codes as floats.  While |v| <= 4194303, adding and subtracting EVEN's constant is EVEN; else the formula itself is. */
FC_INLINE f32w min_code(f32w x, f32w factor, f32w origin, int top, int wild) {
    const f32w v = factor * (x - origin), whole = f32w_all(12582912.0f);
    if (wild) return __builtin_convertvector(clamped_w(even_w(v), 0, top), f32w);
    return lesser_w(greater_w((v + whole) - whole, f32w_all(0)), f32w_all((float)top));
}

FC_INLINE f32w min_error(f32w difference, int square) { return square ? difference * difference : magnitude_w(difference); }

typedef struct {
    f32w a, b, c; /* sums of w k, (w k) k, (w k) x */
} min_sums;

FC_INLINE min_sums min_trial(const f32w *x, const f32w *w, f32w factor, f32w origin, const min_search *how, int wild, f32w *codes) {
    min_sums sum = {{0}, {0}, {0}};
    for (int i = 0; i < how->n; i++) {
        const f32w k = min_code(x[i], factor, origin, how->top, wild), wk = w[i] * k;
        sum.a += wk;
        sum.b += wk * k;
        sum.c += wk * x[i];
        codes[i] = k;
    }
    return sum;
}

FC_INLINE f32w min_distance(const f32w *x, const f32w *w, const f32w *codes, f32w scale, f32w lo, const min_search *how) {
    f32w sum = {0};
    for (int i = 0; i < how->n; i++) sum += w[i] * min_error((scale * codes[i] + lo) - x[i], how->square);
#ifdef FC_FAULTS
    if (FC_PLANTED(SEARCH_PAIRWISE)) {
        f32w odd = {0};
        sum = odd;
        for (int i = 0; i < how->n; i += 2) {
            sum += w[i] * min_error((scale * codes[i] + lo) - x[i], how->square);
            odd += w[i + 1] * min_error((scale * codes[i + 1] + lo) - x[i + 1], how->square);
        }
        sum += odd;
    }
#endif
    return sum;
}

/* Clause: BLOCK-SEARCH-3 */
FC_INLINE min_fit search_min(const f32w *x, const f32w *w, const min_search *how) {
    const f32w none = f32w_all(0), top = f32w_all((float)how->top), tame = f32w_all(4194303.0f);
    f32w codes[SEARCH_MOST], weight = w[0], product = w[0] * x[0], lo = x[0], hi = x[0];
    for (int i = 1; i < how->n; i++) {
        lo = lesser_w(x[i], lo);
        hi = greater_w(x[i], hi);
        weight += w[i];
        product += w[i] * x[i];
    }
    const f32w least = lo;
    lo = select_f32w(lo > none, none, lo);
    const i32w flat = hi == lo;
    min_fit fit = {none, -lo, none, none};
    if (!any_lane_w(~flat)) return fit;
    const f32w flat_minimum = -lo;
    /* step -1 is the start, which has its own scale and no sums to be judged by */
    f32w best = none, scale = none, factor = none, origin = none;
    const int last = FC_PLANT(SEARCH_LAST_STEP_MISSING, how->last, how->last - 1);
    for (int step = -1; step <= last; step++) {
        const f32w f = (step < 0 ? top : f32w_all((how->start + 0.1f * (float)step) + (float)how->top)) / (hi - lo);
        /* the products rise with x, so the two ends bound them all; a NaN is not tame */
        const i32w wild = ~((magnitude_w(f * (least - lo)) <= tame) & (magnitude_w(f * (hi - lo)) <= tame)) & ~flat;
        const min_sums sum = any_lane_w(wild) ? min_trial(x, w, f, lo, how, 1, codes) : min_trial(x, w, f, lo, how, 0, codes);
        const f32w d = weight * sum.b - sum.a * sum.a;
        f32w u, v;
        i32w better;
        if (step < 0) {
            u = f32w_all(1) / f;
            v = lo;
            better = ~flat;
        } else {
            u = (weight * sum.c - product * sum.a) / d;
            v = (sum.b * product - sum.a * sum.c) / d;
            const i32w above = v > none;
            u = select_f32w(above, sum.c / sum.b, u);
            v = select_f32w(above, none, v);
            better = d > none;
        }
        const f32w error = min_distance(x, w, codes, u, v, how);
        if (step >= 0) better &= error < best;
        best = select_f32w(better, error, best);
        scale = select_f32w(better, u, scale);
        factor = select_f32w(better, f, factor);
        origin = select_f32w(better, lo, origin);
        lo = select_f32w(better, v, lo);
    }
    fit.scale = select_f32w(flat, none, scale);
    fit.minimum = select_f32w(flat, flat_minimum, -lo);
    fit.factor = select_f32w(flat, none, factor);
    fit.origin = origin;
    return fit;
}

#endif
