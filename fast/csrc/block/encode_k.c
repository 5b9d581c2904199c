/*
 * Encoders of q3_k, q6_k and q8_k: scales without minima (clauses BLOCK-ENCODE-1, BLOCK-SEARCH-1, BLOCK-SEARCH-2, BLOCK-ROUND-1,
 * BLOCK-CHUNK-1).
 */
#include "block/bytes.h"
#include "block/groups.h"
#include "block/layout.h"
#include "block/round.h"
#include "block/scan.h"
#include "block/search_one.h"
#include "core/kernels.h"

enum { SIZE = 256, GROUPS = 16 };

/* The scale of largest magnitude, of equal magnitudes the first, or +0 */
FC_INLINE float extreme(const float *scale) {
    float top = 0, most = 0;
    for (int j = 0; j < GROUPS; j++) {
        const float m = __builtin_fabsf(scale[j]);
        most = m > top ? scale[j] : most;
        top = m > top ? m : top;
    }
    return most;
}

/* Sixteen scales of six bits in twelve bytes */
FC_INLINE void pack_q3_k_scales(uint8_t *p, const uint8_t *scales) {
    for (int g = 0; g < 8; g++) p[g] = (uint8_t)((scales[g] & 15) | scales[g + 8] << 4);
    for (int g = 0; g < 4; g++)
        p[8 + g] = (uint8_t)(scales[g] >> 4 | scales[g + 4] >> 4 << 2 | scales[g + 8] >> 4 << 4 | scales[g + 12] >> 4 << 6);
}

/* Clauses: BLOCK-Q3K-2 */
size_t FC_K(encode_q3_k)(const float *values, uint8_t *blocks, size_t n, const fc_encoding *how) {
    (void)how;
    const float *x = values;
    block_q3_k *out = (block_q3_k *)blocks;
    for (size_t block = 0; block < n; block++, x += SIZE, out++) {
        float scale[GROUPS];
        f32w provisional[GROUPS / FC_WIDE][GROUP];
        for (int v = 0; v < GROUPS / FC_WIDE; v += HALVES) {
            f32w turned[HALVES][GROUP], found[HALVES];
            for (int h = 0; h < HALVES; h++) turn_groups(x + GROUP * FC_WIDE * (v + h), GROUP, turned[h]);
            coordinate_search(turned, found, provisional + v);
            for (int h = 0; h < HALVES; h++) f32w_store(scale + FC_WIDE * (v + h), found[h]);
        }
        const float ext = extreme(scale), f = ext != 0 ? -32 / ext : 0;
        const uint16_t d = ext != 0 ? f16_of(1 / f) : 0;
        uint8_t codes[SIZE], high[SIZE], scales[GROUPS];
        for (int g = 0; g < GROUPS; g++) {
            const int8_t k = (int8_t)(uint8_t)even(f * scale[g]);
            scales[g] = (uint8_t)(ext == 0 ? 0 : (k < -32 ? -32 : k > 31 ? 31 : k) + 32);
            const float divisor = widened(d) * (float)(scales[g] - 32);
            if (divisor == 0)
                for (int i = 0; i < GROUP; i++) codes[GROUP * g + i] = (uint8_t)provisional[g / FC_WIDE][i][g % FC_WIDE];
            else
                divided_codes(x + GROUP * g, GROUP, 0, divisor, -4, 3, codes + GROUP * g);
        }
        pack_bit_planes(out->hmask, codes, 2);
        for (int i = 0; FC_PLANTED(HMASK_POLARITY) && i < 32; i++) out->hmask[i] ^= 255;
        split_codes(codes, SIZE, 2, codes, high);
        pack_planes(out->qs, codes);
        pack_planes(out->qs + 32, codes + 128);
        pack_q3_k_scales(out->scales, scales);
        write_u16(out->d, d);
    }
    return n;
}

/* Clauses: BLOCK-Q6K-2 */
size_t FC_K(encode_q6_k)(const float *values, uint8_t *blocks, size_t n, const fc_encoding *how) {
    (void)how;
    const float *x = values;
    block_q6_k *out = (block_q6_k *)blocks;
    for (size_t block = 0; block < n; block++, x += SIZE, out++) {
        float scale[GROUPS], multiplier[GROUPS];
        for (int v = 0; v < GROUPS / FC_WIDE; v += HALVES) {
            f32w turned[HALVES][GROUP], found[HALVES], t[HALVES];
            for (int h = 0; h < HALVES; h++) turn_groups(x + GROUP * FC_WIDE * (v + h), GROUP, turned[h]);
            grid_search(turned, found, t);
            for (int h = 0; h < HALVES; h++) {
                f32w_store(scale + FC_WIDE * (v + h), found[h]);
                f32w_store(multiplier + FC_WIDE * (v + h), t[h]);
            }
        }
        const float ext = extreme(scale);
        if (__builtin_fabsf(ext) < 1e-15f) {
            memset(out, 0, sizeof *out);
            continue;
        }
        const float f = -128 / ext;
        const uint16_t d = f16_of(1 / f);
        uint8_t codes[SIZE], low[SIZE], high[SIZE];
        for (int g = 0; g < GROUPS; g++) {
            const int32_t k = even(f * scale[g]);
            out->scales[g] = (uint8_t)(k < 127 ? k : 127);
            const float divisor = widened(d) * (float)(int8_t)out->scales[g], t = multiplier[g];
            if (divisor != 0)
                divided_codes(x + GROUP * g, GROUP, 0, divisor, -32, 31, codes + GROUP * g);
            else if (t != 0)
                multiplied_codes(x + GROUP * g, GROUP, 0, t, -32, 31, codes + GROUP * g);
            else
                memset(codes + GROUP * g, 0, GROUP);
        }
        split_codes(codes, SIZE, 4, low, high);
        pack_nibbles(out->ql, low, low + 64, 64);
        pack_nibbles(out->ql + 64, low + 128, low + 192, 64);
        pack_planes(out->qh, high);
        pack_planes(out->qh + 32, high + 128);
        write_u16(out->d, d);
    }
    return n;
}

/* Clauses: BLOCK-Q8K-2 */
size_t FC_K(encode_q8_k)(const float *values, uint8_t *blocks, size_t n, const fc_encoding *how) {
    (void)how;
    const float *x = values;
    block_q8_k *out = (block_q8_k *)blocks;
    for (size_t done = 0; done < n; done += FC_BATCH) {
        const size_t count = at_most_a_batch(n - done);
        float factor[FC_BATCH];
        f32w_store(factor, f32w_all(-127) / batch_peaks(x, count, SIZE));
        for (size_t b = 0; b < count; b++, x += SIZE, out++) {
            const float f = factor[b];
            if (!(__builtin_fabsf(f) < __builtin_inff())) { /* a block of zeros, or so small that the factor overflows */
                memset(out, 0, sizeof *out);
                continue;
            }
            for (int j = 0; j < GROUPS; j++) {
                i32w codes[FC_SIXTEEN], sums = i32w_all(0);
                for (int i = 0; i < FC_SIXTEEN; i++) {
                    const f32w v = f32w_all(f) * f32w_load(x + 16 * j + FC_WIDE * i);
                    codes[i] = clamped_w(FC_PLANT(Q8_K_HALF_AWAY, even_w(v), away_w(v)), -128, 127);
                    sums += codes[i];
                }
                store_codes(out->qs + 16 * j, codes);
                int32_t sum = 0;
                for (int i = 0; i < FC_WIDE; i++) sum += sums[i];
                write_u16(out->bsums + 2 * j, (uint16_t)sum);
            }
            write_u32(out->d, f32_bits(1 / f));
        }
    }
    return n;
}
