/*
 * Encoders of the ternary formats: the codes -1, 0, 1 times the largest magnitude (clauses BLOCK-ENCODE-1, BLOCK-SCAN-1,
 * BLOCK-ROUND-1, BLOCK-CHUNK-1).
 */
#include "block/bytes.h"
#include "block/layout.h"
#include "block/pack.h"
#include "block/scan.h"
#include "core/fault.h"
#include "core/kernels.h"

enum { SIZE = 256 };

/* 256 codes 0, 1, 2 */
FC_INLINE void ternary_codes(const float *x, float inverse, uint8_t *bytes) {
    for (int i = 0; i < SIZE; i += 16) {
        i32w codes[FC_SIXTEEN];
        for (int j = 0; j < FC_SIXTEEN; j++) {
            const f32w v = f32w_load(x + i + FC_WIDE * j) * f32w_all(inverse), within = lesser_w(greater_w(v, f32w_all(-1)), f32w_all(1));
            codes[j] = FC_PLANT(TERNARY_HALF_EVEN, away_w(within), even_w(within)) + i32w_all(1);
        }
        store_codes(bytes + i, codes);
    }
}

/* Clauses: BLOCK-TQ20-2, BLOCK-SCALE-1 */
size_t FC_K(encode_tq2_0)(const float *values, uint8_t *blocks, size_t n, const fc_encoding *how) {
    const float *x = values, given = how->scale;
    block_tq2_0 *out = (block_tq2_0 *)blocks;
    for (size_t done = 0; done < n; done += FC_BATCH) {
        const size_t count = at_most_a_batch(n - done);
        const f32w d = given != 0 ? f32w_all(given) : batch_tops(x, count, SIZE);
        float scale[FC_BATCH], inverse[FC_BATCH];
        f32w_store(scale, d);
        f32w_store(inverse, inverse_w(d));
        for (size_t b = 0; b < count; b++, x += SIZE, out++) {
            uint8_t codes[SIZE];
            ternary_codes(x, inverse[b], codes);
            pack_planes(out->qs, codes);
            pack_planes(out->qs + 32, codes + 128);
            write_u16(out->d, f16_of(scale[b]));
        }
    }
    return n;
}

/* m bytes of five digits each, the first the most significant: v of 0 ... 242 in base 3 becomes the least byte of which the
   decoder reads these digits.  The digits of a byte lie `step` codes apart; `digits` of them are there, the others are 0. */
FC_INLINE void pack_digits(uint8_t *p, const uint8_t *codes, int m, int digits) {
    for (int i = 0; i < m; i++) {
        unsigned v = 0;
        for (int n = 0; n < 5; n++) {
            const int place = FC_PLANT(TRIT_ORDER, n, digits - 1 - n);
            v = 3 * v + (n < digits ? codes[i + m * place] : 0);
        }
        p[i] = (uint8_t)((256 * v + 242) / 243);
    }
}

/* Clauses: BLOCK-TQ10-2 */
size_t FC_K(encode_tq1_0)(const float *values, uint8_t *blocks, size_t n, const fc_encoding *how) {
    (void)how;
    const float *x = values;
    block_tq1_0 *out = (block_tq1_0 *)blocks;
    for (size_t done = 0; done < n; done += FC_BATCH) {
        const size_t count = at_most_a_batch(n - done);
        const f32w d = batch_tops(x, count, SIZE);
        float scale[FC_BATCH], inverse[FC_BATCH];
        f32w_store(scale, d);
        f32w_store(inverse, inverse_w(d));
        for (size_t b = 0; b < count; b++, x += SIZE, out++) {
            uint8_t codes[SIZE];
            ternary_codes(x, inverse[b], codes);
            pack_digits(out->qs, codes, 32, 5);
            pack_digits(out->qs + 32, codes + 160, 16, 5);
            pack_digits(out->qh, codes + 240, 4, 4);
            write_u16(out->d, f16_of(scale[b]));
        }
    }
    return n;
}
