/*
 * Encoders of iq1_s and iq1_m (clause BLOCK-SEARCH-8).  The splits of a sorted group are tried eight at a time, their moments made
 * from prefix sums; a vector without a better candidate, which is nearly every one, costs one comparison.
 */
#include "block/snap.h"

enum { MOST_GROUP = 32, MOST_OCTETS = 4, ROOM = MOST_GROUP + 1 + 7 }; /* a vector may reach past the last split */
enum { PLUS, MINUS };
enum { SILENT, LOUD, REJECTED };

/* The best so far: a scale, its score, the split and which of its candidates; after that the shift and the code of each octet. */
typedef struct fit {
    float scale, score;
    int found, i, j, candidate;
    uint8_t shift[MOST_OCTETS];
    uint32_t code[MOST_OCTETS];
} fit;

/* What level 0 stands for; levels 1 and 2 follow at distance 1. */
FC_INLINE float lowest(int shift) { return shift == PLUS ? -0.875f : -1.125f; }

/* -- the order of a group -- */

/* Ascending and stable, by counting for each element those before it; -0 and +0 are equal.  Clause: BLOCK-SEARCH-8 */
FC_INLINE void sort_group(const float *x, int count, uint8_t *order) {
    int32_t keys[MOST_GROUP], ranks[MOST_GROUP];
    for (int i = 0; i < count; i += 8) { /* floats as integers that ascend with them */
        const i32x8 bits = bits_of_f32x8(f32x8_load(x + i) + f32x8_all(0)), key = bits ^ (bits >> 31 & i32x8_all(INT32_MAX));
        memcpy(keys + i, &key, sizeof key);
    }
    for (int i = 0; i < count; i += 8) {
        i32x8 key, rank = {0};
        const i32x8 self = i32x8_all(i) + (i32x8){0, 1, 2, 3, 4, 5, 6, 7};
        memcpy(&key, keys + i, sizeof key);
        for (int j = 0; j < count; j++) {
            const i32x8 other = i32x8_all(keys[j]), earlier = above_i32(self, i32x8_all(j));
            rank -= above_i32(key, other) | (same_i32(other, key) & FC_PLANT(IQ1_SORT_UNSTABLE, earlier, above_i32(i32x8_all(j), self)));
        }
        memcpy(ranks + i, &rank, sizeof rank);
    }
    for (int i = 0; i < count; i++) order[ranks[i]] = (uint8_t)i;
}

/* -- judging candidates -- */

FC_INLINE i32x8 better(f32x8 a, f32x8 b, float score) { return above(b, f32x8_all(0)) & above(a * a, f32x8_all(score) * b); }

/* Eight splits (i, j + lane), `live` of them, with 1, 2 or 4 candidates each: by lane, then by candidate, each is compared with the
   best before it. */
FC_INLINE void judge(const f32x8 *a, const f32x8 *b, int candidates, uint32_t live, int i, int j, fit *best) {
    i32x8 any = better(a[0], b[0], best->score);
    for (int c = 1; c < candidates; c++) any |= better(a[c], b[c], best->score);
    const uint32_t hits = live & lane_bits(any);
    if (!hits) return;
    float as[4][8], bs[4][8];
    memcpy(as, a, (size_t)candidates * sizeof *a);
    memcpy(bs, b, (size_t)candidates * sizeof *b);
    for (live &= 0u - (hits & (0u - hits)); live; live &= live - 1) { /* from the first hit on */
        const int lane = __builtin_ctz(live);
        for (int c = 0; c < candidates; c++) {
            const float p = as[c][lane], q = bs[c][lane];
            if (q > 0 && p * p > best->score * q) {
                best->scale = p / q;
                best->score = best->scale * p;
                best->found = 1;
                best->i = i;
                best->j = j + lane;
                best->candidate = c;
            }
        }
    }
}
FC_INLINE uint32_t lanes_before(int count) { return count < 8 ? (1u << count) - 1 : 255; }

/* -- iq1_s: 32 elements, one shift -- */

/* Clause: BLOCK-SEARCH-8 */
static void fit_32(const float *x, const float *w, const uint8_t *order, fit *best) {
    enum { COUNT = 32 };
    float y[ROOM] = {0}, s[ROOM] = {0}; /* prefix sums of w*x and of w */
    float last_a[2][ROOM], last_b[2][ROOM]; /* the terms of the level-2 elements */
    for (int t = 0; t < COUNT; t++) {
        y[t + 1] = y[t] + w[order[t]] * x[order[t]];
        s[t + 1] = s[t] + w[order[t]];
    }
    for (int shift = 0; shift < 2; shift++) {
        const float z2 = lowest(shift) + 2;
        for (int j = 0; j < ROOM; j++) {
            last_a[shift][j] = (y[COUNT] - y[j]) * z2;
            last_b[shift][j] = (s[COUNT] - s[j]) * z2 * z2;
        }
    }
    *best = (fit){.score = -LARGEST};
    for (int i = 0; i <= COUNT; i++) {
        f32x8 first_a[2], first_b[2];
        for (int shift = 0; shift < 2; shift++) {
            const float z0 = lowest(shift);
            first_a[shift] = f32x8_all((y[i] - y[0]) * z0);
            first_b[shift] = f32x8_all((s[i] - s[0]) * z0 * z0);
        }
        for (int j = i; j <= COUNT; j += 8) {
            const f32x8 middle_y = f32x8_load(y + j) - f32x8_all(y[i]), middle_s = f32x8_load(s + j) - f32x8_all(s[i]);
            f32x8 a[2], b[2];
            for (int shift = 0; shift < 2; shift++) {
                const f32x8 z1 = f32x8_all(lowest(shift) + 1);
                a[shift] = (first_a[shift] + middle_y * z1) + f32x8_load(last_a[shift] + j);
                b[shift] = (first_b[shift] + middle_s * z1 * z1) + f32x8_load(last_b[shift] + j);
            }
            judge(a, b, 2, lanes_before(COUNT + 1 - j), i, j, best);
        }
    }
    for (int o = 0; o < COUNT / OCTET; o++) best->shift[o] = (uint8_t)best->candidate;
}

/* -- iq1_m: 16 elements in two halves, a shift each -- */

/* Clause: BLOCK-SEARCH-8 */
static void fit_16(const float *x, const float *w, const uint8_t *order, fit *best) {
    enum { COUNT = 16, MOST = COUNT + 1 + 7 };
    static const float z2[2] = {1.125f, 0.875f}, e1[2] = {0.75f, 1.25f}, e2[2] = {-1.25f, -0.75f}; /* of PLUS and MINUS */
    float y[2][MOST] = {{0}}, s[2][MOST] = {{0}}, last_b[2][2][MOST]; /* by half, and by shift */
    for (int t = 0; t < COUNT; t++)
        for (int h = 0; h < 2; h++) {
            const int here = order[t] / OCTET == h;
            y[h][t + 1] = here ? y[h][t] + w[order[t]] * x[order[t]] : y[h][t];
            s[h][t + 1] = here ? s[h][t] + w[order[t]] : s[h][t];
        }
    for (int h = 0; h < 2; h++)
        for (int shift = 0; shift < 2; shift++)
            for (int j = 0; j < MOST; j++) last_b[h][shift][j] = s[h][j] * e2[shift];
    *best = (fit){.score = -LARGEST};
    for (int i = 0; i <= COUNT; i++) {
        for (int j = i; j <= COUNT; j += 8) {
            f32x8 half_a[2][2], half_b[2][2], a[4], b[4];
            for (int h = 0; h < 2; h++) {
                const f32x8 both = f32x8_all(y[h][i]) + f32x8_load(y[h] + j);
                for (int shift = 0; shift < 2; shift++) {
                    half_a[h][shift] = f32x8_all(y[h][COUNT] * z2[shift]) - both;
                    const float begun = s[h][COUNT] * z2[shift] * z2[shift] + s[h][i] * e1[shift];
                    half_b[h][shift] = f32x8_all(begun) + f32x8_load(last_b[h][shift] + j);
                }
            }
            for (int c = 0; c < 4; c++) {
                a[c] = half_a[0][c / 2] + half_a[1][c % 2];
                b[c] = half_b[0][c / 2] + half_b[1][c % 2];
            }
            judge(a, b, 4, lanes_before(COUNT + 1 - j), i, j, best);
        }
    }
    best->shift[0] = (uint8_t)(best->candidate / 2);
    best->shift[1] = (uint8_t)(best->candidate % 2);
}

/* -- groups -- */

/* Levels by the split; a negative scale turns them round. */
FC_INLINE void assign_levels(const uint8_t *order, int count, fit *best) {
    const int turn = best->scale < 0;
    for (int t = 0; t < count; t++) {
        const int level = t < best->i ? 0 : t < best->j ? 1 : 2;
        best->code[order[t] / OCTET] |= (uint32_t)(turn ? 2 - level : level) << 2 * (order[t] % OCTET);
    }
    if (!turn) return;
    best->scale = -best->scale;
    for (int o = 0; o < count / OCTET; o++) best->shift[o] ^= 1;
}

/* The octets to points of the codebook, and the scale once more if one was none.  Clauses: BLOCK-SEARCH-6, BLOCK-SEARCH-8 */
FC_INLINE int snap_group(const fc_codebook *book, const float *x, const float *w, int count, fit *best) {
    int on_grid = 1;
    for (int o = 0; o < count / OCTET; o++) {
        const uint32_t key = fc_codebook_key_8(best->code[o]);
        if (book->map[key] >= 0) continue;
        octet_terms terms;
        make_terms(&terms, w + OCTET * o, x + OCTET * o, best->scale, lowest(best->shift[o]), 1);
        const int32_t snap = nearest_neighbour(book, key, &terms);
        if (snap < 0) return REJECTED;
        best->code[o] = (uint32_t)snap;
        on_grid = 0;
    }
    float a = 0, b = 0;
    for (int i = 0; i < count && !on_grid; i++) {
        const float q = lowest(best->shift[i / OCTET]) + (float)code_level(best->code[i / OCTET], i % OCTET);
        a += w[i] * q * x[i];
        b += w[i] * q * q;
    }
    if (a > 0 && b > 0) best->scale = FC_PLANT(IQ1_SCALE_NOT_REFITTED, a / b, best->scale);
    return best->scale >= 0 ? LOUD : REJECTED;
}

/* A whole group; `count` is 32 for iq1_s and 16 for iq1_m. */
FC_INLINE int fit_group(const fc_codebook *book, const float *x, const float *w, int count, float threshold, fit *best) {
    uint8_t order[MOST_GROUP];
    f32x8 tops = {0};
    float top[8], most = 0;
    for (int i = 0; i < count; i += 8) tops = greater(magnitude(f32x8_load(x + i)), tops);
    f32x8_store(top, tops);
    for (int i = 0; i < 8; i++) most = top[i] > most ? top[i] : most;
    if (most < threshold) return SILENT;
    sort_group(x, count, order);
    if (count == 32) fit_32(x, w, order, best);
    else fit_16(x, w, order, best);
    if (!best->found) return SILENT;
    assign_levels(order, count, best);
    return snap_group(book, x, w, count, best);
}

/* -- blocks -- */

/* Clause: BLOCK-IQ1S-2 */
static int encode_s(const fc_codebook *book, const float *x, const float *importance, block_iq1_s *out) {
    float w[BLOCK], scale[8], top = 0;
    uint32_t qh[8];
    memset(out, 0, sizeof *out);
    block_weights(x, 2 * energy(x) / BLOCK, importance, w);
    for (int b = 0; b < 8; b++) {
        fit best;
        scale[b] = 0;
        qh[b] = 0;
        const int outcome = fit_group(book, x + 32 * b, w + 32 * b, 32, 1e-12f, &best);
        if (outcome == REJECTED) return 0;
        if (outcome == SILENT) continue;
        for (int o = 0; o < 4; o++) {
            const uint32_t index = code_index(book, best.code[o]);
            out->qs[4 * b + o] = (uint8_t)index;
            qh[b] |= index >> 8 << 3 * o;
        }
        write_u16(out->qh + 2 * b, (uint16_t)qh[b]); /* stays as it is where all scales are 0 */
        qh[b] |= (uint32_t)best.shift[0] << 15;
        scale[b] = best.scale;
        top = top > scale[b] ? top : scale[b];
    }
    if (top == 0) return 1;
    const float d = top / 15, r = inverse(d);
    write_u16(out->d, f16_of(FC_PLANT(IQ1S_FACTOR_MISSING, d * 1.125f, d)));
    for (int b = 0; b < 8; b++) write_u16(out->qh + 2 * b, (uint16_t)(qh[b] | scale_code(r, scale[b], 7) << 12));
    return 1;
}

/* What an iq1_m block has stored, for the refit: all zero in silent groups. */
typedef struct stored_m {
    uint32_t code[32];
    uint8_t shift[32];
    float scale[16];
} stored_m;

/* The block's scale on what has been stored.  Clause: BLOCK-IQ1M-2 */
FC_INLINE float refitted(const float *x, const float *w, const stored_m *m, const uint32_t *scales, float d) {
    float a = 0, b = 0;
    for (int i = 0; i < BLOCK; i++) {
        const int o = i / OCTET;
        if (FC_PLANTED(IQ1M_SILENT_NOT_REFITTED) && m->scale[o / 2] == 0) continue;
        const float q = (lowest(m->shift[o]) + (float)code_level(m->code[o], i % OCTET)) * (float)(2 * scales[o / 2] + 1);
        a += w[i] * q * x[i];
        b += w[i] * q * q;
    }
    return b > 0 ? a / b : d;
}

/* Clause: BLOCK-IQ1M-2 */
static int encode_m(const fc_codebook *book, const float *x, const float *importance, block_iq1_m *out) {
    float w[BLOCK], top = 0;
    stored_m m = {{0}, {0}, {0}};
    uint32_t codes[16], words[4] = {0};
    memset(out, 0, sizeof *out);
    block_weights(x, 2 * energy(x) / BLOCK, importance, w);
    for (int b = 0; b < 16; b++) {
        fit best;
        const int outcome = fit_group(book, x + 16 * b, w + 16 * b, 16, 1e-7f, &best);
        if (outcome == REJECTED) return 0;
        if (outcome == SILENT) continue;
        for (int h = 0; h < 2; h++) {
            const uint32_t index = code_index(book, best.code[h]);
            out->qs[2 * b + h] = (uint8_t)index;
            out->qh[b] |= (uint8_t)(index >> 8 << 4 * h);
            m.code[2 * b + h] = best.code[h];
            m.shift[2 * b + h] = best.shift[h];
        }
        m.scale[b] = best.scale;
        top = top > best.scale ? top : best.scale;
    }
    if (top == 0) return 1;
    const float d = top / 15, r = inverse(d);
    for (int b = 0; b < 16; b++) {
        codes[b] = scale_code(r, m.scale[b], 7);
        words[b / 4] |= codes[b] << 3 * (b % 4);
        out->qh[b] |= (uint8_t)(m.shift[2 * b] << 3 | m.shift[2 * b + 1] << 7);
    }
    const uint32_t field = f16_of(refitted(x, w, &m, codes, d) * 1.1125f);
    for (int k = 0; k < 4; k++) write_u16(out->scales + 2 * k, (uint16_t)(words[k] | (field >> 4 * k & 15) << 12));
    return 1;
}

/* Clauses: BLOCK-IQ1S-2, BLOCK-REJECT-1 */
size_t FC_K(encode_iq1_s)(const float *values, uint8_t *blocks, size_t n, const fc_encoding *how) {
    const fc_codebook *book = fc_codebook_of(FC_CODEBOOK_IQ1S);
    for (size_t i = 0; i < n; i++)
        if (!encode_s(book, values + BLOCK * i, importance_of(how, i), (block_iq1_s *)blocks + i)) return i;
    return n;
}

/* Clauses: BLOCK-IQ1M-2, BLOCK-REJECT-1 */
size_t FC_K(encode_iq1_m)(const float *values, uint8_t *blocks, size_t n, const fc_encoding *how) {
    const fc_codebook *book = fc_codebook_of(FC_CODEBOOK_IQ1S);
    for (size_t i = 0; i < n; i++)
        if (!encode_m(book, values + BLOCK * i, importance_of(how, i), (block_iq1_m *)blocks + i)) return i;
    return n;
}
