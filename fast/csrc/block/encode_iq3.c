/*
 * Encoders of iq3_xxs and iq3_s.  A group of 32 is fitted for up to 31 factors, each of which chooses a point of the codebook
 * for every quad of the group.  The trials do not depend on one another, only their acceptance does: so the quads are taken
 * one by one, a trial goes in each lane, and the sums of a trial still run over the elements in order (BLOCK-ENCODE-1).
 */
#include "block/bytes.h"
#include "block/codebook.h"
#include "block/round.h"
#include "block/wide.h"
#include "core/fault.h"
#include "core/kernels.h"
#include <float.h>

enum { BLOCK = 256, GROUP = 32, GROUPS = 8, QUADS = 8, OCTETS = 4, MOST_TRIALS = 32, XXS_BYTES = 98, S_BYTES = 110 };

/* What the two formats do differently in the fit of a group. */
typedef struct {
    const fc_codebook *book;
    int last;           /* the trials are for s = -last ... last */
    uint32_t hits;      /* before the first accepted trial, does a quad count as on the grid? a bit each */
    int redo_all;       /* does the second pass redo all quads, or those off the grid? */
} plan;

typedef struct {
    float y[GROUP], w[GROUP], f[GROUP], wy[GROUP]; /* values to fit, weights, their roots, weights times values */
    float scale;
    int32_t key[QUADS]; /* a point of each quad, as its levels */
} group;

/* Reciprocals that overflow count as 0. */
FC_INLINE float bounded(float x) { return __builtin_fabsf(x) <= FLT_MAX ? x : 0; }

/* The levels nearest to the values y[0..3] in units of 1 / inverse, for the factor of each lane, as keys. */
FC_INLINE i32w keys_of(const float *y, f32w inverse) {
    i32w key = i32w_all(0);
    for (int i = 0; i < 4; i++) {
        const f32w level = (inverse * f32w_all(y[i]) - f32w_all(1)) * f32w_all(0.5f);
        key |= clamped_w(even_w(level), 0, 7) << 3 * i;
    }
    return key;
}

/* The odd number that element i of a key's levels stands for. */
FC_INLINE f32w odd_of(i32w key, int i) { return f32w_of((key >> 3 * i & i32w_all(7)) * i32w_all(2) + i32w_all(1)); }

/* a += sum of (w y) q, b += sum of (w q) q over the four elements of quad k. */
FC_INLINE void add_quad(const group *g, int k, i32w key, f32w *a, f32w *b) {
    for (int i = 0; i < 4; i++) {
        const f32w q = odd_of(key, i);
        *a += f32w_all(g->wy[4 * k + i]) * q;
        *b += f32w_all(g->w[4 * k + i]) * q * q;
    }
}

/* The errors (f e) e, e = scale * q - y, of the four values of a quad, for every level, for the scale of each lane. */
FC_INLINE void errors_of(const float *y, const float *f, const f32w scaled[8], f32w errors[4][8]) {
    for (int i = 0; i < 4; i++)
        for (int level = 0; level < 8; level++) {
            const f32w e = scaled[level] - f32w_all(y[i]);
            errors[i][level] = f32w_all(f[i]) * e * e;
        }
}
FC_INLINE f32w error_of(f32w errors[4][8], unsigned code) {
    return ((errors[0][code & 7] + errors[1][code >> 3 & 7]) + errors[2][code >> 6 & 7]) + errors[3][code >> 9];
}

/*
 * A key in some lane that is no point of the codebook gives way to the neighbour with the least error in that lane, the first
 * of equals.  Lanes of *failed are set where no neighbour has an error below the largest float: the block cannot be encoded.
 * Neighbouring trials mostly have the same key, so each list is walked for all lanes at once.
 * Clauses BLOCK-SEARCH-5, BLOCK-REJECT-1.
 */
FC_INLINE i32w choose(const fc_codebook *book, f32w errors[4][8], i32w key, i32w *failed) {
    int32_t keys[FC_WIDE];
    i32w chosen = key;
    i32w_store(keys, key);
    for (int lane = 0; lane < FC_WIDE; lane++) {
        if (lane > 0 && keys[lane] == keys[lane - 1]) continue;
        const uint32_t end = book->start[keys[lane] + 1];
        uint32_t at = book->start[keys[lane]];
        if (at == end) continue; /* a point */
        f32w bound = f32w_all(FLT_MAX);
        i32w best = i32w_all(0);
        for (; at < end; at++) {
            const f32w error = error_of(errors, book->list[at]);
            const i32w better = FC_PLANT(IQ3_LAST_NEIGHBOUR, error < bound, error <= bound);
            bound = lesser_w(error, bound);
            best = select_i32w(better, i32w_all(book->list[at]), best);
        }
        const i32w here = key == i32w_all(keys[lane]);
        chosen = select_i32w(here, best, chosen);
        *failed |= here & ~(bound < f32w_all(FLT_MAX));
    }
    return chosen;
}

/* The odd numbers in the scales of the lanes. */
FC_INLINE void scale_levels(f32w scale, f32w scaled[8]) {
    for (int level = 0; level < 8; level++) scaled[level] = scale * f32w_all((float)(2 * level + 1));
}

/* The same for one scale: the key of the neighbour, or -1.  Clause BLOCK-SEARCH-5. */
FC_INLINE int choose_one(const fc_codebook *book, const float *y, const float *f, float scale, int key) {
    float errors[4][8], bound = FLT_MAX;
    if (book->map[key] >= 0) return key;
    for (int i = 0; i < 4; i++)
        for (int level = 0; level < 8; level++) {
            const float e = scale * (float)(2 * level + 1) - y[i];
            errors[i][level] = f[i] * e * e;
        }
    int best = -1;
    for (uint32_t at = book->start[key]; at < book->start[key + 1]; at++) {
        const unsigned code = book->list[at];
        const float error = ((errors[0][code & 7] + errors[1][code >> 3 & 7]) + errors[2][code >> 6 & 7]) + errors[3][code >> 9];
        const int better = FC_PLANT(IQ3_LAST_NEIGHBOUR, error < bound, error <= bound);
        bound = better ? error : bound;
        best = better ? (int)code : best;
    }
    return best;
}

/* Scale and points once more, for the scale that the trials left.  0: the block cannot be encoded.  Clause BLOCK-SEARCH-5. */
static int second_pass(const plan *p, uint32_t hits, group *g) {
    const f32w inverse = f32w_all(bounded(1 / g->scale));
    f32w a = f32w_all(0), b = a;
    for (int k = 0; k < QUADS; k++) {
        if (p->redo_all || !(hits >> k & 1))
            g->key[k] = choose_one(p->book, g->y + 4 * k, g->f + 4 * k, g->scale, keys_of(g->y + 4 * k, inverse)[0]);
        if (g->key[k] < 0) return 0;
        add_quad(g, k, i32w_all(g->key[k]), &a, &b);
    }
    if (b[0] > 0) g->scale = a[0] / b[0];
    return 1;
}

/* Scale and points of a group whose largest value is top.  0: the block cannot be encoded.  Clauses BLOCK-SEARCH-5, BLOCK-REJECT-1. */
static int fit(const plan *p, float top, group *g) {
    enum { MOST = MOST_TRIALS / FC_WIDE };
    const int trials = 2 * p->last + 1, first = FC_PLANT(IQ3_FIRST_TRIAL, 0, 1);
    float inverse[MOST_TRIALS], scales[MOST_TRIALS], sums_a[MOST_TRIALS], sums_b[MOST_TRIALS];
    int32_t keys[QUADS][MOST_TRIALS], chosen[QUADS][MOST_TRIALS];
    f32w a[MOST], b[MOST], scaled[MOST][8], errors[4][8];
    i32w failed = i32w_all(0);
    for (int t = 0; t < MOST_TRIALS; t++) {
        const int s = t < trials ? t - p->last : p->last; /* the lanes left over repeat the last trial */
        inverse[t] = bounded((15 + (float)s * 0.2f) / top);
        scales[t] = bounded(1 / inverse[t]);
    }
    for (int v = 0; v < MOST; v++) {
        a[v] = b[v] = f32w_all(0);
        scale_levels(f32w_load(scales + FC_WIDE * v), scaled[v]);
    }
    for (int k = 0; k < QUADS; k++)
        for (int v = 0; v * FC_WIDE < trials; v++) { /* in this order the same lists come one after the other */
            const i32w key = keys_of(g->y + 4 * k, f32w_load(inverse + FC_WIDE * v));
            errors_of(g->y + 4 * k, g->f + 4 * k, scaled[v], errors);
            const i32w point = choose(p->book, errors, key, &failed);
            add_quad(g, k, point, &a[v], &b[v]);
            i32w_store(keys[k] + FC_WIDE * v, key);
            i32w_store(chosen[k] + FC_WIDE * v, point);
        }
    for (int v = 0; v < MOST; v++) {
        f32w_store(sums_a + FC_WIDE * v, a[v]);
        f32w_store(sums_b + FC_WIDE * v, b[v]);
    }
    float score = 0;
    int best = -1;
    g->scale = top / 15;
    for (int t = first; t < trials; t++) {
        if (!(sums_b[t] > 0 && sums_a[t] * sums_a[t] > score * sums_b[t])) continue;
        g->scale = sums_a[t] / sums_b[t];
        score = g->scale * sums_a[t];
        best = t;
    }
    uint32_t hits = p->hits;
    for (int k = 0; k < QUADS; k++) {
        g->key[k] = best < 0 ? 0 : chosen[k][best];
        if (best >= 0) hits = (hits & ~(1u << k)) | (uint32_t)(chosen[k][best] == keys[k][best]) << k;
    }
    if (any_lane_w(failed)) return 0;
    if (hits != 0xff && g->scale > 0 && !FC_PLANTED(IQ3_ONE_PASS) && !second_pass(p, hits, g)) return 0;
    return g->scale == g->scale;
}

/* Values and weights of a group; its largest magnitude is left to the caller, who may yet turn signs. */
FC_INLINE void take(const float *x, group *g) {
    for (int j = 0; j < GROUP; j++) {
        g->w[j] = x[j] * x[j];
        g->f[j] = __builtin_sqrtf(g->w[j]);
        g->y[j] = __builtin_fabsf(x[j]);
    }
}
FC_INLINE float finish(group *g) {
    float top = g->y[0];
    for (int j = 0; j < GROUP; j++) {
        top = g->y[j] > top ? g->y[j] : top;
        g->wy[j] = g->w[j] * g->y[j];
    }
    return top;
}
FC_INLINE unsigned negatives(const float *x) {
    unsigned signs = 0;
    for (int i = 0; i < 8; i++) signs |= (unsigned)(x[i] < 0) << i;
    return signs;
}

/* The number of a group's scale, 0..15, where a step is twice 1 / inverse. */
FC_INLINE uint32_t scale_number(float inverse, float scale) {
    const int32_t number = even((inverse * scale - 1) * 0.5f);
    return number < 0 ? 0 : number > 15 ? 15 : (uint32_t)number;
}
FC_INLINE float largest(const float scales[GROUPS]) {
    float top = 0;
    for (int b = 0; b < GROUPS; b++) top = scales[b] > top ? scales[b] : top;
    return top;
}

/* The signs of an octet, made even in number: the element that matters least turns its sign where needed.  Clause BLOCK-IQ3XXS-2. */
FC_INLINE unsigned even_signs(const float *x, const float *w, float *y) {
    const unsigned signs = negatives(x);
    if (!__builtin_parity(signs)) return signs;
    int least = 0;
    float z = w[0] * x[0] * x[0];
    for (int i = 1; i < 8; i++) {
        const float zi = w[i] * x[i] * x[i];
        if (FC_PLANT(IQ3XXS_LAST_TURNED, zi < z, zi <= z)) {
            z = zi;
            least = i;
        }
    }
    y[least] = -y[least];
    return signs ^ 1u << least;
}

/* Clauses BLOCK-IQ3XXS-2, BLOCK-CHUNK-1, BLOCK-REJECT-1. */
size_t FC_K(encode_iq3_xxs)(const float *values, uint8_t *blocks, size_t n, const fc_encoding *how) {
    (void)how;
    const plan p = {fc_codebook_of(FC_CODEBOOK_IQ3XXS), 15, 0xff, 0};
    group g;
    for (size_t i = 0; i < n; i++, values += BLOCK, blocks += XXS_BYTES) {
        float scales[GROUPS];
        uint32_t words[GROUPS];
        memset(blocks, 0, XXS_BYTES);
        for (int b = 0; b < GROUPS; b++) {
            const float *x = values + GROUP * b;
            take(x, &g);
            uint32_t signs = 0;
            for (int o = 0; o < OCTETS; o++) signs |= (even_signs(x + 8 * o, g.w + 8 * o, g.y + 8 * o) & 0x7f) << 7 * o;
            const float top = finish(&g);
            scales[b] = 0;
            words[b] = 0;
            if (top < 1e-8f) continue;
            if (!fit(&p, top, &g)) return i;
            words[b] = g.scale < 0 ? signs ^ 0xfffffff : signs;
            scales[b] = __builtin_fabsf(g.scale);
            for (int k = 0; k < QUADS; k++) blocks[2 + QUADS * b + k] = (uint8_t)p.book->map[g.key[k]];
        }
        const float top = largest(scales), unit = top / 31, inverse = bounded(1 / unit);
        if (top == 0) {
            memset(blocks, 0, XXS_BYTES);
            continue;
        }
        write_u16(blocks, f16_of(unit * FC_PLANT(IQ3XXS_UNIT, 1.0125f, 1.0f)));
        for (int b = 0; b < GROUPS; b++) write_u32(blocks + 66 + 4 * b, words[b] | scale_number(inverse, scales[b]) << 28);
    }
    return n;
}

/* Clauses BLOCK-IQ3S-2, BLOCK-CHUNK-1, BLOCK-REJECT-1. */
size_t FC_K(encode_iq3_s)(const float *values, uint8_t *blocks, size_t n, const fc_encoding *how) {
    (void)how;
    const plan p = {fc_codebook_of(FC_CODEBOOK_IQ3S), 9, 0, !FC_PLANTED(IQ3S_REDO_SOME)};
    group g;
    for (size_t i = 0; i < n; i++, values += BLOCK, blocks += S_BYTES) {
        uint8_t *const qs = blocks + 2, *const qh = blocks + 66, *const signs = blocks + 74, *const numbers = blocks + 106;
        float scales[GROUPS];
        memset(blocks, 0, S_BYTES);
        for (int b = 0, written = 0; b < GROUPS; b++) {
            const float *x = values + GROUP * b;
            take(x, &g);
            const float top = finish(&g);
            scales[b] = 0;
            if (top == 0) continue; /* its place stays empty */
            if (!fit(&p, top, &g)) return i;
            scales[b] = __builtin_fabsf(g.scale);
            const int place = FC_PLANT(IQ3S_ZERO_GROUP, b, written);
            written++;
            for (int k = 0; k < QUADS; k++) {
                const int index = p.book->map[g.key[k]];
                qs[QUADS * place + k] = (uint8_t)index;
                qh[b] |= (uint8_t)(index >> 8 << k);
            }
            for (int o = 0; o < OCTETS; o++) signs[OCTETS * place + o] = (uint8_t)(negatives(x + 8 * o) ^ (g.scale < 0 ? 0xff : 0));
        }
        const float top = largest(scales), unit = top / 31, inverse = bounded(1 / unit);
        if (top == 0) continue;
        write_u16(blocks, f16_of(unit * FC_PLANT(IQ3S_UNIT, 1.033f, 1.0f)));
        for (int b = 0; b < GROUPS; b++) numbers[b / 2] |= (uint8_t)(scale_number(inverse, scales[b]) << 4 * (b % 2));
    }
    return n;
}
