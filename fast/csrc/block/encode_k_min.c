/*
 * Encoders of q2_k, q4_k and q5_k: a scale and a minimum for each group, quantized in their turn (clauses BLOCK-ENCODE-1,
 * BLOCK-SEARCH-3, BLOCK-ROUND-1, BLOCK-CHUNK-1).
 */
#include "block/bytes.h"
#include "block/groups.h"
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

/* The final codes of a group, from the stored scale and minimum; without a scale the provisional ones stay. */
FC_INLINE void group_codes(const float *x, int n, int top, float scale, float minimum, float factor, float origin, uint8_t *codes) {
    if (scale == 0)
        multiplied_codes(x, n, origin, factor, 0, top, codes);
    else
        divided_codes(x, n, minimum, scale, 0, top, codes);
}

/* Clauses: BLOCK-Q2K-2 */
size_t FC_K(encode_q2_k)(const float *values, uint8_t *blocks, size_t n, const fc_encoding *how) {
    (void)how;
    static const min_search search = {.n = 16, .top = 3, .start = -0.5f, .last = 15, .square = 0};
    const float *x = values;
    uint8_t *p = blocks;
    for (size_t block = 0; block < n; block++, x += SIZE, p += 84) {
        float scale[16], minimum[16], factor[16], origin[16];
        for (int h = 0; h < 16; h += FC_WIDE) {
            f32w turned[16], weights[16];
            turn_groups(x + 16 * h, 16, turned);
            for (int i = 0; i < 16; i++) weights[i] = magnitude_w(turned[i]);
            const min_fit fit = search_min(turned, weights, &search);
            f32w_store(scale + h, fit.scale);
            f32w_store(minimum + h, fit.minimum);
            f32w_store(factor + h, fit.factor);
            f32w_store(origin + h, fit.origin);
        }
        const float most = largest(scale, 16), deepest = largest(minimum, 16);
        const uint16_t d = most > 0 ? f16_of(most / 15) : 0, dmin = deepest > 0 ? f16_of(deepest / 15) : 0;
        uint8_t codes[SIZE];
        for (int j = 0; j < 16; j++) {
            const int32_t us = most > 0 ? even(15 / most * scale[j]) : 0, um = deepest > 0 ? even(15 / deepest * minimum[j]) : 0;
            p[j] = (uint8_t)((uint32_t)us | (uint32_t)um << 4);
            group_codes(x + 16 * j, 16, 3, widened(d) * (float)(p[j] & 15), widened(dmin) * (float)(p[j] >> 4), factor[j], origin[j], codes + 16 * j);
        }
        pack_planes(p + 16, codes);
        pack_planes(p + 48, codes + 128);
        write_u16(p + 80, d);
        write_u16(p + 82, dmin);
    }
    return n;
}

/* The root mean square of each group, plus the magnitude of the element */
FC_INLINE void rms_weights(const f32w *x, f32w *weights) {
    f32w sum = f32w_all(0);
    for (int i = 0; i < 32; i++) sum += x[i] * x[i];
    sum /= f32w_all(32);
    for (int g = 0; g < FC_WIDE; g++) sum[g] = __builtin_sqrtf(sum[g]);
    for (int i = 0; i < 32; i++) weights[i] = sum + magnitude_w(x[i]);
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

/* d, dmin and the scales of a q4_k or q5_k block, and its 256 codes */
FC_INLINE void encode_eight_groups(const float *x, uint8_t *p, const min_search *search, uint8_t *codes) {
    float scale[8], minimum[8], factor[8], origin[8];
    for (int h = 0; h < 8; h += FC_WIDE) {
        f32w turned[32], weights[32];
        turn_groups(x + 32 * h, 32, turned);
        rms_weights(turned, weights);
        const min_fit fit = search_min(turned, weights, search);
        f32w_store(scale + h, fit.scale);
        f32w_store(minimum + h, fit.minimum);
        f32w_store(factor + h, fit.factor);
        f32w_store(origin + h, fit.origin);
    }
    const float most = largest(scale, 8), deepest = largest(minimum, 8);
    const float f = most > 0 ? 63 / most : 0, g = deepest > 0 ? 63 / deepest : 0;
    const uint16_t d = f16_of(most / 63), dmin = f16_of(deepest / 63);
    uint8_t scales[8], minima[8];
    for (int j = 0; j < 8; j++) {
        scales[j] = six_bits(f * scale[j]);
        minima[j] = six_bits(g * minimum[j]);
        group_codes(x + 32 * j, 32, search->top, widened(d) * (float)scales[j], widened(dmin) * (float)minima[j], factor[j], origin[j], codes + 32 * j);
    }
    write_u16(p, d);
    write_u16(p + 2, dmin);
    pack_k_scales(p + 4, scales, minima);
}

/* Clauses: BLOCK-Q4K-2 */
size_t FC_K(encode_q4_k)(const float *values, uint8_t *blocks, size_t n, const fc_encoding *how) {
    (void)how;
    static const min_search search = {.n = 32, .top = 15, .start = -1.0f, .last = 20, .square = 1};
    const float *x = values;
    uint8_t *p = blocks;
    for (size_t block = 0; block < n; block++, x += SIZE, p += 144) {
        uint8_t codes[SIZE];
        encode_eight_groups(x, p, &search, codes);
        for (int run = 0; run < 4; run++) pack_nibbles(p + 16 + 32 * run, codes + 64 * run, codes + 64 * run + 32, 32);
    }
    return n;
}

/* Clauses: BLOCK-Q5K-2 */
size_t FC_K(encode_q5_k)(const float *values, uint8_t *blocks, size_t n, const fc_encoding *how) {
    (void)how;
    static const min_search search = {.n = 32, .top = 31, .start = -0.5f, .last = 15, .square = 1};
    const float *x = values;
    uint8_t *p = blocks;
    for (size_t block = 0; block < n; block++, x += SIZE, p += 176) {
        uint8_t codes[SIZE], high[SIZE];
        encode_eight_groups(x, p, &search, codes);
        pack_bit_planes(p + 16, codes, 4);
        split_codes(codes, SIZE, 4, codes, high);
        for (int run = 0; run < 4; run++) pack_nibbles(p + 48 + 32 * run, codes + 64 * run, codes + 64 * run + 32, 32);
    }
    return n;
}
