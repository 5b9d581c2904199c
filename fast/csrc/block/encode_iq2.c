/*
 * Encoders of iq2_xxs, iq2_xs and iq2_s (clauses BLOCK-SEARCH-6, BLOCK-SEARCH-7).  The trial scales of a group lie in the lanes:
 * each lane quantises, and sums its moments left to right; then the trials are judged in their order.
 */
#include "block/snap.h"

enum { MOST_GROUP = 32, MOST_OCTETS = 4, EVEN_PARITY = 0, FREE_SIGNS = 1 };

/* A group: v the magnitudes to encode, w the weights, a their square roots, top the largest magnitude. */
typedef struct group {
    float v[MOST_GROUP], w[MOST_GROUP], a[MOST_GROUP];
    uint8_t signs[MOST_OCTETS];
    float top;
} group;

/* The best so far: a scale, its score, each octet's code, and whether the code before snapping was on the grid. */
typedef struct fit {
    float scale, score;
    uint32_t code[MOST_OCTETS];
    int on_grid[MOST_OCTETS];
} fit;

typedef struct moments {
    float a, b;
} moments;

/* -- magnitudes and signs -- */

/* An octet's element with the least w*x*x, the first of equals, changes sign. */
FC_INLINE int least_costly(const float *x, const float *w) {
    int least = 0;
    float cost = w[0] * x[0] * x[0];
    for (int k = 1; k < OCTET; k++) {
        const float c = w[k] * x[k] * x[k];
        if (c < cost) {
            cost = c;
            least = k;
        }
    }
    return least;
}

/* Clause: BLOCK-SEARCH-6 */
FC_INLINE void take_group(group *g, const float *x, const float *w, int count, int signs) {
    float top = 0;
    for (int i = 0; i < count; i++) {
        g->w[i] = w[i];
        g->a[i] = FC_PLANT(IQ2_SNAP_BY_WEIGHTS, __builtin_sqrtf(w[i]), w[i]);
    }
    for (int o = 0; o < count / OCTET; o++) {
        const float *at = x + OCTET * o;
        float *v = g->v + OCTET * o;
        const f32x8 x8 = f32x8_load(at);
        const i32x8 negative = ~at_least(x8, f32x8_all(0));
        f32x8_store(v, select_f32(negative, -x8, x8));
        uint32_t sign = lane_bits(negative);
        if (signs == EVEN_PARITY && __builtin_popcount(sign) % 2 && !FC_PLANTED(IQ2_PARITY_IGNORED)) {
            const int k = least_costly(at, w + OCTET * o);
            v[k] = -v[k];
            sign ^= 1u << k;
        }
        g->signs[o] = (uint8_t)sign;
        for (int k = 0; k < OCTET; k++) top = v[k] > top ? v[k] : top;
    }
    g->top = top;
}

/* -- grid fit -- */

/* Levels of v at inverse scale r.  Clause: BLOCK-SEARCH-6 */
FC_INLINE i32x8 quantised(f32x8 r, f32x8 v) { return clamped(even_x8(f32x8_all(0.5f) * (r * v - f32x8_all(1))), 0, 2); }

/* An octet's code if it is a point, else the code of the neighbour that is nearest at scale s, or -1. */
FC_INLINE int32_t snapped(const fc_codebook *book, const group *g, int o, uint32_t code, float s) {
    const uint32_t key = fc_codebook_key_8(code);
    if (book->map[key] >= 0) return (int32_t)code;
    octet_terms terms;
    make_terms(&terms, g->a + OCTET * o, g->v + OCTET * o, s, 1, 2);
    return nearest_neighbour(book, key, &terms);
}

FC_INLINE moments group_moments(const group *g, int count, const uint32_t *code) {
    moments m = {0, 0};
    for (int i = 0; i < count; i++) {
        const float q = (float)(2 * code_level(code[i / OCTET], i % OCTET) + 1);
        m.a += g->w[i] * g->v[i] * q;
        m.b += g->w[i] * q * q;
    }
    return m;
}

/* Eight trials from number `first` of -most ... most around a reference value.  Returns 0 where a block is to be rejected. */
FC_INLINE int eight_trials(const fc_codebook *book, const group *g, int count, int first, int most, float reference, fit *best) {
    const int trials = most - first + 1 < 8 ? most - first + 1 : 8;
    const i32x8 number = i32x8_all(first) + (i32x8){0, 1, 2, 3, 4, 5, 6, 7};
    const f32x8 r = (f32x8_all(5) + __builtin_convertvector(number, f32x8) * f32x8_all(0.1f)) / f32x8_all(reference);
    float scale[8], a[8], b[8];
    int32_t codes[MOST_OCTETS][8];
    uint32_t on_grid[MOST_OCTETS] = {0};
    const f32x8 back = f32x8_all(1) / r;
    f32x8_store(scale, select_f32(at_least(f32x8_all(LARGEST), magnitude(back)), back, f32x8_all(0)));
    f32x8 sum_a = {0}, sum_b = {0};
    for (int o = 0; o < count / OCTET; o++) {
        const float *v = g->v + OCTET * o, *w = g->w + OCTET * o;
        i32x8 code = {0};
        for (int k = 0; k < OCTET; k++) code |= quantised(r, f32x8_all(v[k])) << 2 * k;
        memcpy(codes[o], &code, sizeof code);
        for (int t = 0; t < trials; t++) {
            const int32_t snap = snapped(book, g, o, (uint32_t)codes[o][t], scale[t]);
            if (snap < 0) return 0;
            on_grid[o] |= (uint32_t)(snap == codes[o][t]) << t;
            codes[o][t] = snap;
        }
        memcpy(&code, codes[o], sizeof code);
        for (int k = 0; k < OCTET; k++) {
            const f32x8 q = __builtin_convertvector((code << 1 >> 2 * k & i32x8_all(6)) | i32x8_all(1), f32x8);
            sum_a += f32x8_all(w[k] * v[k]) * q;
            sum_b += f32x8_all(w[k]) * q * q;
        }
    }
    f32x8_store(a, sum_a);
    f32x8_store(b, sum_b);
    for (int t = 0; t < trials; t++)
        if (b[t] > 0 && a[t] * a[t] > best->score * b[t]) {
            best->scale = a[t] / b[t];
            best->score = best->scale * a[t];
            for (int o = 0; o < count / OCTET; o++) {
                best->code[o] = (uint32_t)codes[o][t];
                best->on_grid[o] = on_grid[o] >> t & 1;
            }
        }
    return 1;
}

/* Clause: BLOCK-SEARCH-6 */
FC_INLINE int grid_fit(const fc_codebook *book, const group *g, int count, int most, float reference, fit *best) {
    for (int first = -most; first <= most; first += 8)
        if (!eight_trials(book, g, count, first, FC_PLANT(IQ2_LAST_TRIAL_DROPPED, most, most - 1), reference, best)) return 0;
    return 1;
}

/* The second pass, at the scale found: the octets that are off the grid, or all; then the scale once more. */
FC_INLINE int requantise(const fc_codebook *book, const group *g, int count, int all, fit *best) {
    const f32x8 r = f32x8_all(inverse(best->scale));
    for (int o = 0; o < count / OCTET; o++) {
        if (!all && best->on_grid[o]) continue;
        const int32_t snap = snapped(book, g, o, code_of_levels(quantised(r, f32x8_load(g->v + OCTET * o))), best->scale);
        if (snap < 0) return 0;
        best->code[o] = (uint32_t)snap;
    }
    const moments m = group_moments(g, count, best->code);
    if (m.b > 0) best->scale = m.a / m.b;
    return 1;
}

/* -- one-sided fit: 32 elements, levels to N -- */

enum { ONE_SIDED = 4, STORED = 255 }; /* N; a level is stored modulo 256 */

/* A level as it is stored. */
FC_INLINE i32x8 stored(i32x8 n) { return FC_PLANT(IQ2_LEVEL_NOT_WRAPPED, n & i32x8_all(STORED), n); }
FC_INLINE i32x8 one_sided_level(f32x8 v) {
    const i32x8 n = even_x8(v), most = i32x8_all(ONE_SIDED);
    return select_i32(above_i32(most, n), n, most);
}
FC_INLINE f32x8 number_of(i32x8 n) { return __builtin_convertvector(n, f32x8); }

FC_INLINE float sum_of_32(const float *term) {
    float sum = 0;
    for (int i = 0; i < MOST_GROUP; i++) sum += term[i];
    return sum;
}

/* The inverse scale of nine trials with the least error. */
FC_INLINE float one_sided_start(const group *g) {
    float term[MOST_GROUP], errors[8], scales[8];
    const float plain = ONE_SIDED / g->top, back = 1 / plain;
    for (int i = 0; i < MOST_GROUP; i += 8) {
        const f32x8 v = f32x8_load(g->v + i);
        const f32x8 e = v - f32x8_all(back) * number_of(stored(even_x8(f32x8_all(plain) * v)));
        f32x8_store(term + i, f32x8_load(g->w + i) * e * e);
    }
    const f32x8 r = (f32x8_all(0.1f) * (f32x8){-4, -3, -2, -1, 1, 2, 3, 4} + f32x8_all(ONE_SIDED)) / f32x8_all(g->top);
    const f32x8 h = f32x8_all(1) / r;
    f32x8 sum = {0};
    for (int i = 0; i < MOST_GROUP; i++) {
        const f32x8 v = f32x8_all(g->v[i]);
        const f32x8 e = v - h * number_of(one_sided_level(r * v));
        sum += f32x8_all(g->w[i]) * e * e;
    }
    f32x8_store(errors, sum);
    f32x8_store(scales, r);
    float least = sum_of_32(term), best = plain;
    for (int k = 0; k < 8; k++)
        if (errors[k] < least) {
            least = errors[k];
            best = scales[k];
        }
    return best;
}

/* One sweep of the coordinate search: eight elements at a time are tried against the sums in force; the first that improves them
   is taken, and the elements behind it are tried again.  Returns whether a level changed. */
FC_INLINE int one_sided_sweep(const group *g, int32_t *levels, moments *sums) {
    int changed = 0;
    for (int i = 0; i < MOST_GROUP; i += 8) {
        const f32x8 v = f32x8_load(g->v + i), w = f32x8_load(g->w + i), wv = w * v;
        for (uint32_t ahead = 255; ahead;) {
            float ps[8], qs[8];
            i32x8 level;
            memcpy(&level, levels + i, sizeof level);
            const f32x8 l = number_of(level), all_p = f32x8_all(sums->a), all_q = f32x8_all(sums->b), none = {0};
            const f32x8 p = all_p - wv * l, q = all_q - w * l * l;
            const i32x8 n = one_sided_level(v * q / p);
            const f32x8 m = number_of(n), new_p = p + wv * m, new_q = q + w * m * m;
            const i32x8 better = above(p, none) & above(q, none) & ~same_i32(n, level) &
                                 above(new_p * new_p * all_q, all_p * all_p * new_q);
            ahead &= lane_bits(better);
            if (!ahead) break;
            const int lane = __builtin_ctz(ahead);
            const i32x8 kept = stored(n);
            f32x8_store(ps, new_p);
            f32x8_store(qs, new_q);
            *sums = (moments){ps[lane], qs[lane]};
            levels[i + lane] = kept[lane];
            ahead = 254u << lane & 255;
            changed = 1;
        }
    }
    return changed;
}

/* Clause: BLOCK-SEARCH-7 */
FC_INLINE float one_sided_scale(const group *g) {
    int32_t levels[MOST_GROUP];
    float p[MOST_GROUP], q[MOST_GROUP];
    const f32x8 r = f32x8_all(one_sided_start(g));
    for (int i = 0; i < MOST_GROUP; i += 8) {
        const f32x8 v = f32x8_load(g->v + i), w = f32x8_load(g->w + i);
        const i32x8 n = one_sided_level(r * v), kept = stored(n);
        memcpy(levels + i, &kept, sizeof kept);
        f32x8_store(p + i, w * v * number_of(n));
        f32x8_store(q + i, w * number_of(n) * number_of(n));
    }
    moments sums = {sum_of_32(p), sum_of_32(q)};
    for (int sweep = 0; sweep < 5 && one_sided_sweep(g, levels, &sums); sweep++) continue;
    return sums.b > 0 ? sums.a / sums.b : 0;
}

/* -- groups -- */

enum { SILENT, LOUD, REJECTED };

/* A negative scale turns to the signs. */
FC_INLINE void turn_signs(group *g, int count, fit *best) {
    if (!(best->scale < 0)) return;
    best->scale = -best->scale;
    for (int o = 0; o < count / OCTET; o++) g->signs[o] ^= 127;
}

/* Clause: BLOCK-IQ2XXS-2 */
static int fit_32(const fc_codebook *book, group *g, fit *best) {
    enum { COUNT = 32, TRIALS = 6 };
    if (g->top < 1e-15f) return SILENT;
    *best = (fit){.scale = one_sided_scale(g)};
    const float reference = 3 * best->scale;
    if (reference <= 0) return SILENT;
    if (!grid_fit(book, g, COUNT, TRIALS, reference, best)) return REJECTED;
    if (best->scale > 0 && !requantise(book, g, COUNT, 1, best)) return REJECTED;
    turn_signs(g, COUNT, best);
    return best->scale >= 0 ? LOUD : REJECTED;
}

/* Clauses: BLOCK-IQ2XS-2, BLOCK-IQ2S-2 */
static int fit_16(const fc_codebook *book, group *g, float threshold, fit *best) {
    enum { COUNT = 16, TRIALS = 9 };
    if (g->top < threshold) return SILENT;
    *best = (fit){.scale = g->top / 5, .on_grid = {1, 1}};
    if (!grid_fit(book, g, COUNT, TRIALS, g->top, best)) return REJECTED;
    if (!(best->on_grid[0] && best->on_grid[1]) && best->scale > 0 &&
        !requantise(book, g, COUNT, FC_PLANTED(IQ2_REQUANTISE_ALL), best))
        return REJECTED;
    turn_signs(g, COUNT, best);
    return best->scale >= 0 ? LOUD : REJECTED;
}

/* -- blocks -- */

/* Two scale codes a byte, low nibble first.  Clause: BLOCK-SEARCH-6 */
FC_INLINE void write_nibbles(uint8_t *scales, const float *scale, float d) {
    const float r = inverse(d);
    for (int b = 0; b < 16; b += 2) scales[b / 2] = (uint8_t)(scale_code(r, scale[b], 15) | scale_code(r, scale[b + 1], 15) << 4);
}

/* Clause: BLOCK-IQ2XXS-2 */
static int encode_xxs(const fc_codebook *book, const float *x, const float *importance, block_iq2_xxs *out) {
    float w[BLOCK], scale[8], top = 0;
    memset(out, 0, sizeof *out);
    block_weights(x, energy(x) / BLOCK, importance, w);
    for (int b = 0; b < 8; b++) {
        group g;
        fit best;
        scale[b] = 0;
        take_group(&g, x + 32 * b, w + 32 * b, 32, EVEN_PARITY);
        const int outcome = fit_32(book, &g, &best);
        if (outcome == REJECTED) return 0;
        if (outcome == SILENT) continue;
        uint32_t signs = 0;
        for (int o = 0; o < 4; o++) {
            out->qs[8 * b + o] = (uint8_t)code_index(book, best.code[o]);
            signs |= (uint32_t)(g.signs[o] & 127) << 7 * o;
        }
        write_u32(out->qs + 8 * b + 4, signs);
        scale[b] = best.scale;
        top = top > scale[b] ? top : scale[b];
    }
    if (top == 0) {
        memset(out, 0, sizeof *out);
        return 1;
    }
    const float d = top / 31, r = inverse(d);
    write_u16(out->d, f16_of(d));
    for (int b = 0; b < 8; b++) out->qs[8 * b + 7] |= (uint8_t)(scale_code(r, scale[b], 15) << 4);
    return 1;
}

/* Clause: BLOCK-IQ2XS-2 */
static int encode_xs(const fc_codebook *book, const float *x, const float *importance, block_iq2_xs *out) {
    float w[BLOCK], scale[16], top = 0;
    memset(out, 0, sizeof *out);
    block_weights(x, energy(x) / BLOCK, importance, w);
    for (int b = 0; b < 16; b++) {
        group g;
        fit best;
        scale[b] = 0;
        take_group(&g, x + 16 * b, w + 16 * b, 16, EVEN_PARITY);
        const int outcome = fit_16(book, &g, 1e-15f, &best);
        if (outcome == REJECTED) return 0;
        if (outcome == SILENT) continue;
        for (int o = 0; o < 2; o++)
            write_u16(out->qs + 4 * b + 2 * o, (uint16_t)(code_index(book, best.code[o]) | (uint32_t)(g.signs[o] & 127) << 9));
        scale[b] = best.scale;
        top = top > scale[b] ? top : scale[b];
    }
    if (top == 0) {
        memset(out, 0, sizeof *out);
        return 1;
    }
    write_u16(out->d, f16_of(top / 31));
    write_nibbles(out->scales, scale, top / 31);
    return 1;
}

/* Clause: BLOCK-IQ2S-2 */
static int encode_s(const fc_codebook *book, const float *x, block_iq2_s *out) {
    float w[BLOCK], scale[16], top = 0;
    memset(out, 0, sizeof *out);
    const float quarter = 0.25f * (2 * energy(x) / BLOCK);
    for (int i = 0; i < BLOCK; i++) w[i] = quarter + x[i] * x[i];
    for (int b = 0; b < 16; b++) {
        group g;
        fit best;
        scale[b] = 0;
        take_group(&g, x + 16 * b, w + 16 * b, 16, FREE_SIGNS);
        const int outcome = fit_16(book, &g, 1e-8f, &best);
        if (outcome == REJECTED) return 0;
        if (outcome == SILENT) continue;
        for (int o = 2 * b; o < 2 * b + 2; o++) {
            const uint32_t index = code_index(book, best.code[o % 2]);
            out->qs[o] = (uint8_t)index;
            out->qh[o / 4] |= (uint8_t)(index >> 8 << 2 * (o % 4));
            out->signs[o] = g.signs[o % 2];
        }
        scale[b] = best.scale;
        top = top > scale[b] ? top : scale[b];
    }
    if (top == 0) return 1;
    const float d = top / 31;
    write_u16(out->d, f16_of(FC_PLANT(IQ2S_FACTOR_MISSING, d * 0.9875f, d)));
    write_nibbles(out->scales, scale, d);
    return 1;
}

/* Clauses: BLOCK-IQ2XXS-2, BLOCK-REJECT-1 */
size_t FC_K(encode_iq2_xxs)(const float *values, uint8_t *blocks, size_t n, const fc_encoding *how) {
    const fc_codebook *book = fc_codebook_of(FC_CODEBOOK_IQ2XXS);
    for (size_t i = 0; i < n; i++)
        if (!encode_xxs(book, values + BLOCK * i, importance_of(how, i), (block_iq2_xxs *)blocks + i)) return i;
    return n;
}

/* Clauses: BLOCK-IQ2XS-2, BLOCK-REJECT-1 */
size_t FC_K(encode_iq2_xs)(const float *values, uint8_t *blocks, size_t n, const fc_encoding *how) {
    const fc_codebook *book = fc_codebook_of(FC_CODEBOOK_IQ2XS);
    for (size_t i = 0; i < n; i++)
        if (!encode_xs(book, values + BLOCK * i, importance_of(how, i), (block_iq2_xs *)blocks + i)) return i;
    return n;
}

/* Clauses: BLOCK-IQ2S-2, BLOCK-REJECT-1 */
size_t FC_K(encode_iq2_s)(const float *values, uint8_t *blocks, size_t n, const fc_encoding *how) {
    const fc_codebook *book = fc_codebook_of(FC_CODEBOOK_IQ2S);
    (void)how;
    for (size_t i = 0; i < n; i++)
        if (!encode_s(book, values + BLOCK * i, (block_iq2_s *)blocks + i)) return i;
    return n;
}
