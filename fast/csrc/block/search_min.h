/*
 * The search for scale and minimum of q2_k, q4_k and q5_k (clause BLOCK-SEARCH-3), for groups side by side in the
 * lanes of two vectors, whose independent chains keep the adders busy: every sum runs over the elements of its lane in ascending
 * order.  x[h][i] and w[h][i] hold element i of the groups of vector h.
 */
#ifndef FC_BLOCK_SEARCH_MIN_H
#define FC_BLOCK_SEARCH_MIN_H
#include "block/wide.h"
#include "core/fault.h"

enum { SEARCH_MOST = 32, HALVES = 2 }; /* elements of a group at most; vectors of groups */

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

FC_INLINE void min_trial(f32w (*x)[SEARCH_MOST], f32w (*w)[SEARCH_MOST], const f32w *factor, const f32w *origin, const min_search *how,
                         int wild, f32w (*codes)[SEARCH_MOST], min_sums *sum) {
    for (int h = 0; h < HALVES; h++) sum[h] = (min_sums){{0}, {0}, {0}};
    for (int i = 0; i < how->n; i++)
        for (int h = 0; h < HALVES; h++) {
            const f32w k = min_code(x[h][i], factor[h], origin[h], how->top, wild), wk = w[h][i] * k;
            sum[h].a += wk;
            sum[h].b += wk * k;
            sum[h].c += wk * x[h][i];
            codes[h][i] = k;
        }
}

FC_INLINE void min_distance(f32w (*x)[SEARCH_MOST], f32w (*w)[SEARCH_MOST], f32w (*codes)[SEARCH_MOST], const f32w *scale, const f32w *lo,
                            const min_search *how, f32w *sum) {
    for (int h = 0; h < HALVES; h++) sum[h] = f32w_all(0);
    for (int i = 0; i < how->n; i++)
        for (int h = 0; h < HALVES; h++) sum[h] += w[h][i] * min_error((scale[h] * codes[h][i] + lo[h]) - x[h][i], how->square);
#ifdef FC_FAULTS
    for (int h = 0; FC_PLANTED(SEARCH_PAIRWISE) && h < HALVES; h++) {
        f32w part[2] = {{0}, {0}};
        for (int i = 0; i < how->n; i++) part[i % 2] += w[h][i] * min_error((scale[h] * codes[h][i] + lo[h]) - x[h][i], how->square);
        sum[h] = part[0] + part[1];
    }
#endif
}

/* Clause: BLOCK-SEARCH-3 */
FC_INLINE void search_min(f32w (*x)[SEARCH_MOST], f32w (*w)[SEARCH_MOST], const min_search *how, min_fit *fit) {
    const f32w none = f32w_all(0), top = f32w_all((float)how->top), tame = f32w_all(4194303.0f);
    f32w codes[HALVES][SEARCH_MOST], weight[HALVES], product[HALVES], least[HALVES], lo[HALVES], hi[HALVES], best[HALVES], f[HALVES];
    i32w flat[HALVES], some = i32w_all(0);
    for (int h = 0; h < HALVES; h++) {
        weight[h] = w[h][0];
        product[h] = w[h][0] * x[h][0];
        lo[h] = hi[h] = x[h][0];
        for (int i = 1; i < how->n; i++) {
            lo[h] = lesser_w(x[h][i], lo[h]);
            hi[h] = greater_w(x[h][i], hi[h]);
            weight[h] += w[h][i];
            product[h] += w[h][i] * x[h][i];
        }
        least[h] = lo[h];
        lo[h] = select_f32w(lo[h] > none, none, lo[h]);
        flat[h] = hi[h] == lo[h];
        some |= ~flat[h];
        best[h] = none;
        fit[h] = (min_fit){none, -lo[h], none, none};
    }
    if (!any_lane_w(some)) return;
    /* step -1 is the start, which has its own scale and no sums to be judged by */
    const int last = FC_PLANT(SEARCH_LAST_STEP_MISSING, how->last, how->last - 1);
    for (int step = -1; step <= last; step++) {
        i32w wild = i32w_all(0), better[HALVES];
        f32w u[HALVES], v[HALVES], error[HALVES];
        min_sums sum[HALVES];
        for (int h = 0; h < HALVES; h++) {
            f[h] = (step < 0 ? top : f32w_all((how->start + 0.1f * (float)step) + (float)how->top)) / (hi[h] - lo[h]);
            /* the products rise or fall with x, so the two ends bound them all; a NaN is not tame */
            const f32w ends[2] = {magnitude_w(f[h] * (least[h] - lo[h])), magnitude_w(f[h] * (hi[h] - lo[h]))};
            wild |= ~((ends[0] <= tame) & (ends[1] <= tame)) & ~flat[h];
        }
        if (any_lane_w(wild))
            min_trial(x, w, f, lo, how, 1, codes, sum);
        else
            min_trial(x, w, f, lo, how, 0, codes, sum);
        for (int h = 0; h < HALVES; h++) {
            const f32w a = sum[h].a, b = sum[h].b, c = sum[h].c, d = weight[h] * b - a * a;
            if (step < 0) {
                u[h] = f32w_all(1) / f[h];
                v[h] = lo[h];
                better[h] = ~flat[h];
            } else {
                u[h] = (weight[h] * c - product[h] * a) / d;
                v[h] = (b * product[h] - a * c) / d;
                const i32w above = v[h] > none;
                u[h] = select_f32w(above, c / b, u[h]);
                v[h] = select_f32w(above, none, v[h]);
                better[h] = (d > none) & ~flat[h];
            }
        }
        min_distance(x, w, codes, u, v, how, error);
        for (int h = 0; h < HALVES; h++) {
            if (step >= 0) better[h] &= error[h] < best[h];
            best[h] = select_f32w(better[h], error[h], best[h]);
            fit[h].scale = select_f32w(better[h], u[h], fit[h].scale);
            fit[h].factor = select_f32w(better[h], f[h], fit[h].factor);
            fit[h].origin = select_f32w(better[h], lo[h], fit[h].origin);
            lo[h] = select_f32w(better[h], v[h], lo[h]);
        }
    }
    for (int h = 0; h < HALVES; h++) fit[h].minimum = -lo[h];
}

#endif
