/*
 * Encoders of q2_k, q4_k and q5_k: a scale and a minimum for each group, quantized in their turn (clauses BLOCK-ENCODE-1,
 * BLOCK-SEARCH-3, BLOCK-ROUND-1, BLOCK-CHUNK-1).
 */
#include "block/bytes.h"
#include "block/groups.h"
#include "block/layout.h"
#include "block/round.h"
#include "block/search_min.h"
#include "core/kernels.h"

enum { SIZE = 256 };

/* The largest of m numbers, or +0. */
FC_INLINE float largest(const float *v, int m) {
    float most = 0;
    for (int j = 0; j < m; j++) most = v[j] > most ? v[j] : most;
    return most;
}

/* Weights of q4_k and q5_k: the root mean square of the group, plus the magnitude of the element */
FC_INLINE void rms_weights(const f32w *x, f32w *weights) {
    f32w sum = f32w_all(0);
    for (int i = 0; i < 32; i++) sum += x[i] * x[i];
    sum /= f32w_all(32);
    for (int g = 0; g < FC_WIDE; g++) sum[g] = __builtin_sqrtf(sum[g]);
    for (int i = 0; i < 32; i++) weights[i] = sum + magnitude_w(x[i]);
}

/* What the search found for the groups of one or two blocks */
typedef struct {
    float scale[16], minimum[16], factor[16], origin[16];
} group_fits;

enum { AT_A_TIME = HALVES * FC_WIDE }; /* groups */

/* Search for groups first, first + 1, ...; x is the first element of the first. */
FC_INLINE void fit_groups(const float *x, const min_search *search, int rms, group_fits *fits, int first) {
    f32w turned[HALVES][SEARCH_MOST], weights[HALVES][SEARCH_MOST];
    min_fit fit[HALVES];
    for (int h = 0; h < HALVES; h++) {
        turn_groups(x + search->n * FC_WIDE * h, search->n, turned[h]);
        if (rms)
            rms_weights(turned[h], weights[h]);
        else
            for (int i = 0; i < search->n; i++) weights[h][i] = magnitude_w(turned[h][i]);
    }
    search_min(turned, weights, search, fit);
    for (int h = 0; h < HALVES; h++, first += FC_WIDE) {
        f32w_store(fits->scale + first, fit[h].scale);
        f32w_store(fits->minimum + first, fit[h].minimum);
        f32w_store(fits->factor + first, fit[h].factor);
        f32w_store(fits->origin + first, fit[h].origin);
    }
}

/* The final codes of group j, from the stored scale and minimum; without a scale the provisional ones stay. */
FC_INLINE void group_codes(const float *x, int n, int top, float scale, float minimum, const group_fits *fits, int j, uint8_t *codes) {
    if (scale == 0)
        multiplied_codes(x, n, fits->origin[j], fits->factor[j], 0, top, codes);
    else
        divided_codes(x, n, minimum, scale, 0, top, codes);
}

/* Clauses: BLOCK-Q2K-2 */
size_t FC_K(encode_q2_k)(const float *values, uint8_t *blocks, size_t n, const fc_encoding *how) {
    (void)how;
    static const min_search search = {.n = 16, .top = 3, .start = -0.5f, .last = 15, .square = 0};
    const float *x = values;
    block_q2_k *out = (block_q2_k *)blocks;
    for (size_t block = 0; block < n; block++, x += SIZE, out++) {
        group_fits fits;
        for (int g = 0; g < 16; g += AT_A_TIME) fit_groups(x + 16 * g, &search, 0, &fits, g);
        const float most = largest(fits.scale, 16), deepest = largest(fits.minimum, 16);
        const uint16_t d = most > 0 ? f16_of(most / 15) : 0, dmin = deepest > 0 ? f16_of(deepest / 15) : 0;
        uint8_t codes[SIZE];
        for (int j = 0; j < 16; j++) {
            const int32_t us = most > 0 ? even(15 / most * fits.scale[j]) : 0, um = deepest > 0 ? even(15 / deepest * fits.minimum[j]) : 0;
            out->scales[j] = (uint8_t)((uint32_t)us | (uint32_t)um << 4);
            const float scale = widened(d) * (float)(out->scales[j] & 15), minimum = widened(dmin) * (float)(out->scales[j] >> 4);
            group_codes(x + 16 * j, 16, 3, scale, minimum, &fits, j, codes + 16 * j);
        }
        pack_planes(out->qs, codes);
        pack_planes(out->qs + 32, codes + 128);
        write_u16(out->d, d);
        write_u16(out->dmin, dmin);
    }
    return n;
}

/* Eight bits first, then the limit, so that a negative one ends as 63 */
FC_INLINE uint8_t six_bits(float v) {
    const uint8_t k = (uint8_t)even(v);
    return k < 63 ? k : 63;
}

/* Eight scales and eight minima of six bits in twelve bytes */
FC_INLINE void pack_k_scales(uint8_t *p, const uint8_t *scales, const uint8_t *minima) {
    for (int j = 0; j < 4; j++) {
        p[j] = (uint8_t)(scales[j] | scales[j + 4] >> 4 << 6);
        p[j + 4] = (uint8_t)(minima[j] | minima[j + 4] >> 4 << 6);
        p[j + 8] = (uint8_t)FC_PLANT(K_SCALES_SWAPPED, (scales[j + 4] & 15) | minima[j + 4] << 4, (minima[j + 4] & 15) | scales[j + 4] << 4);
    }
}

/* d, dmin and the scales of a q4_k or q5_k block, which begin alike, and its 256 codes, from what was found for groups first,
   first + 1, ... */
FC_INLINE void encode_eight_groups(const float *x, block_q4_k *out, int top, const group_fits *fits, int first, uint8_t *codes) {
    const float most = largest(fits->scale + first, 8), deepest = largest(fits->minimum + first, 8);
    const float f = most > 0 ? 63 / most : 0, g = deepest > 0 ? 63 / deepest : 0;
    const uint16_t d = f16_of(most / 63), dmin = f16_of(deepest / 63);
    uint8_t scales[8], minima[8];
    for (int j = 0; j < 8; j++) {
        scales[j] = six_bits(f * fits->scale[first + j]);
        minima[j] = six_bits(g * fits->minimum[first + j]);
        group_codes(x + 32 * j, 32, top, widened(d) * (float)scales[j], widened(dmin) * (float)minima[j], fits, first + j, codes + 32 * j);
    }
    write_u16(out->d, d);
    write_u16(out->dmin, dmin);
    pack_k_scales(out->scales, scales, minima);
}

typedef void finish_block(uint8_t *p, uint8_t *codes);

/* Blocks of which as many are searched together as fill the lanes; a block missing at the end is stood in for by zeros. */
FC_INLINE size_t encode_with_minima(const float *x, uint8_t *p, size_t n, size_t bytes, const min_search *search, finish_block *finish) {
    enum { TOGETHER = AT_A_TIME / 8 };
    for (size_t done = 0; done < n; done += TOGETHER) {
        const size_t count = n - done < TOGETHER ? n - done : TOGETHER;
        float some[TOGETHER * SIZE];
        const float *from = x;
        if (count < TOGETHER) {
            memset(some, 0, sizeof some);
            memcpy(some, x, count * SIZE * sizeof *x);
            from = some;
        }
        group_fits fits;
        fit_groups(from, search, 1, &fits, 0);
        for (size_t b = 0; b < count; b++, x += SIZE, p += bytes) {
            uint8_t codes[SIZE];
            encode_eight_groups(x, (block_q4_k *)p, search->top, &fits, (int)(8 * b), codes);
            finish(p, codes);
        }
    }
    return n;
}

FC_INLINE void finish_q4_k(uint8_t *p, uint8_t *codes) {
    block_q4_k *out = (block_q4_k *)p;
    for (int run = 0; run < 4; run++) pack_nibbles(out->qs + 32 * run, codes + 64 * run, codes + 64 * run + 32, 32);
}

/* Clauses: BLOCK-Q4K-2 */
size_t FC_K(encode_q4_k)(const float *values, uint8_t *blocks, size_t n, const fc_encoding *how) {
    (void)how;
    static const min_search search = {.n = 32, .top = 15, .start = -1.0f, .last = 20, .square = 1};
    return encode_with_minima(values, blocks, n, FC_BYTES_q4_k, &search, finish_q4_k);
}

FC_INLINE void finish_q5_k(uint8_t *p, uint8_t *codes) {
    block_q5_k *out = (block_q5_k *)p;
    uint8_t high[SIZE];
    pack_bit_planes(out->qh, codes, 4);
    split_codes(codes, SIZE, 4, codes, high);
    for (int run = 0; run < 4; run++) pack_nibbles(out->qs + 32 * run, codes + 64 * run, codes + 64 * run + 32, 32);
}

/* Clauses: BLOCK-Q5K-2 */
size_t FC_K(encode_q5_k)(const float *values, uint8_t *blocks, size_t n, const fc_encoding *how) {
    (void)how;
    static const min_search search = {.n = 32, .top = 31, .start = -0.5f, .last = 15, .square = 1};
    return encode_with_minima(values, blocks, n, FC_BYTES_q5_k, &search, finish_q5_k);
}
