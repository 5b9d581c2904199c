/*
 * Encoders of iq4_nl and iq4_xs.  A group of 32 gets its scale from up to sixteen least-squares fits, whose sums run over the
 * elements in order (clause BLOCK-ENCODE-1); so the groups go side by side, one in each lane: blocks of iq4_nl, parts of a
 * block of iq4_xs.
 */
#include "block/bytes.h"
#include "block/round.h"
#include "block/wide.h"
#include "block_tables.h"
#include "core/fault.h"
#include "core/kernels.h"

enum { GROUP = 32, LANES = FC_WIDE, XS_GROUPS = 8, LEVELS = 16, NL_BYTES = 18, XS_BYTES = 136 };

typedef struct {
    f32w x[GROUP], w[GROUP]; /* by element; a group in each lane */
} groups;

/*
 * Where the nearest level changes from k to k + 1: the middle of the two, which itself belongs to the upper one.  The rule
 * compares two rounded differences, v - V[k] < V[k+1] - v; the first never falls and the second never rises as v grows, so
 * there is one change, and just below the middle both differences are still exact and unequal (no level is so small beside
 * the distance to its neighbour that a bit would be lost).
 */
#define MIDDLE(k) (0.5f * (float)(fc_kvalues_iq4nl[k] + fc_kvalues_iq4nl[(k) + 1]))

FC_INLINE i32w below_middle(f32w v, int k) {
    const f32w middle = f32w_all(MIDDLE(k));
    return FC_PLANT(IQ4_TIE_LOWER, v < middle, v <= middle);
}

/* The nearest level of each lane; a NaN has the last.  Clause BLOCK-SEARCH-4. */
FC_INLINE f32w nearest_level(f32w v) {
    i32w level = i32w_all(fc_kvalues_iq4nl[LEVELS - 1]);
#pragma GCC unroll 15
    for (int k = 0; k < LEVELS - 1; k++)
        level -= below_middle(v, k) & i32w_all(fc_kvalues_iq4nl[k + 1] - fc_kvalues_iq4nl[k]);
    return f32w_of(level);
}

/* The code of that level. */
FC_INLINE i32w nearest_code(f32w v) {
    i32w code = i32w_all(LEVELS - 1);
#pragma GCC unroll 15
    for (int k = 0; k < LEVELS - 1; k++) code += below_middle(v, k);
    return code;
}

/* Groups that stand one behind the other; behind the last one, zeros. */
FC_INLINE void take(groups *g, const float *values, size_t count) {
    float lanes[GROUP][LANES] = {{0}};
    for (size_t lane = 0; lane < count; lane++)
        for (size_t j = 0; j < GROUP; j++) lanes[j][lane] = values[lane * GROUP + j];
    for (int j = 0; j < GROUP; j++) {
        g->x[j] = f32w_load(lanes[j]);
        g->w[j] = g->x[j] * g->x[j];
    }
}

/* a = sum of (w q) x and b = sum of (w q) q, where q are the levels nearest to r x.  Clauses BLOCK-SEARCH-4, BLOCK-ENCODE-1. */
FC_INLINE void fit(const groups *g, f32w r, f32w *a, f32w *b) {
    *a = *b = f32w_all(0);
    for (int j = 0; j < GROUP; j++) {
        const f32w q = nearest_level(r * g->x[j]), wq = g->w[j] * q;
        *a += wq * g->x[j];
        *b += wq * q;
    }
}

/* Scales of the groups; *first is the factor of the first trial, 0 for a group without any.  Clause BLOCK-SEARCH-4. */
FC_INLINE f32w group_scales(const groups *g, int search, f32w *first) {
    const f32w zero = f32w_all(0);
    f32w top = zero, peak = zero, a, b;
    for (int j = 0; j < GROUP; j++) {
        const f32w size = magnitude_w(g->x[j]);
        const i32w above = FC_PLANT(IQ4_LAST_PEAK, size > top, size >= top);
        top = select_f32w(above, size, top);
        peak = select_f32w(above, g->x[j], peak);
    }
    const i32w encoded = top >= f32w_all(1e-15f); /* the others are degenerate */
    const f32w r = f32w_all(1) / ((search ? -peak : peak) / f32w_all(-127));
    fit(g, r, &a, &b);
    f32w scale = select_f32w(b > zero, a / b, zero), score = scale * a;
    *first = select_f32w(encoded, r, zero);
    for (int t = FC_PLANT(IQ4_FIRST_TRIAL, -7, -6); search && t <= 7; t++) {
        fit(g, f32w_all((float)(t - 127)) / peak, &a, &b);
        const i32w better = (b > zero) & (a * a > score * b);
        scale = select_f32w(better, a / b, scale);
        score = select_f32w(better, scale * a, score);
    }
    return select_f32w(encoded, scale, zero);
}

/* The codes of all groups for factors r, two in a byte: element j low, element 16 + j high. */
FC_INLINE void pack(const groups *g, f32w r, int32_t bytes[GROUP / 2][LANES]) {
    for (int j = 0; j < GROUP / 2; j++) {
        const i32w pair = nearest_code(r * g->x[j]) | nearest_code(r * g->x[GROUP / 2 + j]) << 4;
        memcpy(bytes[j], &pair, sizeof pair);
    }
}

/* 1 / x, and 0 for a zero; a NaN is not zero. */
FC_INLINE f32w inverse(f32w x) { return select_f32w(x == f32w_all(0), f32w_all(0), f32w_all(1) / x); }

/* Clauses BLOCK-IQ4NL-2, BLOCK-CHUNK-1. */
size_t FC_K(encode_iq4_nl)(const float *values, uint8_t *blocks, size_t n, const fc_encoding *how) {
    groups g;
    int32_t bytes[GROUP / 2][LANES];
    float scales[LANES];
    for (size_t done = 0; done < n; done += LANES) {
        const size_t count = n - done < LANES ? n - done : LANES;
        take(&g, values + done * GROUP, count);
        f32w first;
        const f32w scale = group_scales(&g, how->search, &first);
        /* the plain encoder keeps the codes of its trial, the searching one chooses them for the scale it found */
        pack(&g, how->search ? FC_PLANT(IQ4NL_TRIAL_CODES, inverse(scale), first) : first, bytes);
        f32w_store(scales, scale);
        for (size_t lane = 0; lane < count; lane++) {
            uint8_t *block = blocks + (done + lane) * NL_BYTES;
            write_u16(block, f16_of(scales[lane]));
            for (int j = 0; j < GROUP / 2; j++) block[2 + j] = (uint8_t)bytes[j][lane];
        }
    }
    return n;
}

/* Clauses BLOCK-IQ4XS-2, BLOCK-CHUNK-1. */
size_t FC_K(encode_iq4_xs)(const float *values, uint8_t *blocks, size_t n, const fc_encoding *how) {
    (void)how;
    groups parts[XS_GROUPS / LANES];
    int32_t bytes[GROUP / 2][LANES];
    float scales[XS_GROUPS];
    for (size_t i = 0; i < n; i++, values += GROUP * XS_GROUPS, blocks += XS_BYTES) {
        for (int b = 0; b < XS_GROUPS; b += LANES) {
            f32w first;
            take(&parts[b / LANES], values + GROUP * b, LANES);
            f32w_store(scales + b, group_scales(&parts[b / LANES], 1, &first));
        }
        float size = 0, largest = 0;
        for (int b = 0; b < XS_GROUPS; b++) {
            const float magnitude = __builtin_fabsf(scales[b]);
            if (magnitude > size) {
                size = magnitude;
                largest = scales[b];
            }
        }
        const float unit = FC_PLANT(IQ4XS_UNIT_SIGN, -largest, largest) / 32, steps = unit == 0 ? 0 : 1 / unit;
        uint32_t high = 0, low = 0;
        for (int b = 0; b < XS_GROUPS; b++) {
            int number = even(steps * scales[b]);
            number = number < -32 ? -32 : number > 31 ? 31 : number;
            scales[b] = unit * (float)number;
            const uint32_t field = (uint32_t)(number + 32);
            low |= (field & 15) << 4 * b;
            high |= field >> 4 << 2 * b;
        }
        write_u16(blocks, f16_of(unit));
        write_u16(blocks + 2, (uint16_t)high);
        write_u32(blocks + 4, low);
        for (int b = 0; b < XS_GROUPS; b += LANES) {
            pack(&parts[b / LANES], inverse(f32w_load(scales + b)), bytes);
            for (int lane = 0; lane < LANES; lane++)
                for (int j = 0; j < GROUP / 2; j++) blocks[8 + GROUP / 2 * (b + lane) + j] = (uint8_t)bytes[j][lane];
        }
    }
    return n;
}
