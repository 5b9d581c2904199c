/*
 * Encoders of the fp4 formats: an eight-bit float as the scale of a group, and the nearest of fifteen levels (clauses
 * BLOCK-ENCODE-1, BLOCK-SCAN-1, BLOCK-CHUNK-1).
 */
#include "block/layout.h"
#include "block/pack.h"
#include "block/scan.h"
#include "block_tables.h"
#include "core/bits.h"
#include "core/fault.h"
#include "core/kernels.h"

/*
 * NEAREST on eight numbers.  A level of the other sign is never strictly nearer than 0, the first level, so the magnitude decides
 * and the sign goes into bit 3 of a code that is not 0.  Along the ascending levels the computed distances fall and then
 * rise, never strictly in between, so the first of the least ones is the last that is less than the one before.
 * Clause: BLOCK-SCAN-1
 */
FC_INLINE i32w nearest(f32w x, float z) {
    const f32w a = magnitude_w(x);
    f32w before = a;
    i32w code = i32w_all(0);
    for (int level = 1; level < 8; level++) {
        const f32w distance = magnitude_w(f32w_all((float)fc_kvalues_e2m1_doubled[level] * z) - a);
        code = select_i32w(FC_PLANT(FP4_TIE_UP, distance < before, distance <= before), i32w_all(level), code);
        before = distance;
    }
    return code | ((code != i32w_all(0)) & (x < f32w_all(0)) & i32w_all(8));
}

FC_INLINE void nearest_codes(const float *x, int n, float z, uint8_t *bytes) {
    for (int i = 0; i < n; i += 16) {
        i32w codes[FC_SIXTEEN];
        for (int j = 0; j < FC_SIXTEEN; j++) codes[j] = nearest(f32w_load(x + i + FC_WIDE * j), z);
        store_codes(bytes + i, codes);
    }
}

/* floor(log2 top) where the logarithm is first rounded to f32, which can carry it up to the next integer. */
FC_INLINE int rounded_log2(float top) {
    static const uint8_t up[8] = {0, 1, 2, 5, 11, 22, 44, 44}; /* by the number of bits of h less one */
    const uint32_t bits = f32_bits(top);
    const int exponent = (int)(bits >> 23 & 0xff) - 127, h = exponent >= 0 ? exponent : -exponent - 1;
    const int length = h < 2 ? 0 : 31 - __builtin_clz((unsigned)h);
    return exponent + ((bits & 0x7fffff) >= 0x800000u - FC_PLANT(LOG2_FLOORED, up[length], 0));
}

/* Clauses: BLOCK-MXFP4-2 */
size_t FC_K(encode_mxfp4)(const float *values, uint8_t *blocks, size_t n, const fc_encoding *how) {
    (void)how;
    const float *x = values;
    block_mxfp4 *out = (block_mxfp4 *)blocks;
    for (size_t done = 0; done < n; done += FC_BATCH) {
        const size_t count = at_most_a_batch(n - done);
        float top[FC_BATCH];
        f32w_store(top, batch_tops(x, count, 32));
        for (size_t b = 0; b < count; b++, x += 32, out++) {
            const int e = top[b] < 0x1p-125f ? 0 : rounded_log2(top[b]) + 125;
            out->e[0] = (uint8_t)(e < 0 ? 0 : e > 255 ? 255 : e);
            uint8_t codes[32];
            nearest_codes(x, 32, f32_value(fc_e8m0_half_f32_bits[out->e[0]]), codes);
            pack_nibbles(out->qs, codes, codes + 16, 16);
        }
    }
    return n;
}

/* The scale byte of a group whose largest magnitude is 6y: not the encoding of the dtype f8_e4m3. */
FC_INLINE uint8_t scale_byte(float y) {
    if (!(y > 0)) return 0;
    if (y > 448) y = 448;
    const uint32_t bits = f32_bits(y);
    const int g = (int)(bits >> 23) - 120;
    if (g <= 0) {
        const int k = (int)(y * 512 + 0.5f);
        return (uint8_t)(k < 7 ? k : 7);
    }
    /* three bits and the fourth one added: a carry goes into the exponent by itself */
    const int byte = 8 * g + (int)(bits >> 20 & 7) + FC_PLANT(NVFP4_SCALE_CUT, (int)(bits >> 19 & 1), 0);
    return (uint8_t)(byte < 8 * 15 ? byte : 0x7e);
}

/* Clauses: BLOCK-NVFP4-2 */
size_t FC_K(encode_nvfp4)(const float *values, uint8_t *blocks, size_t n, const fc_encoding *how) {
    (void)how;
    const float *x = values;
    block_nvfp4 *out = (block_nvfp4 *)blocks;
    enum { BLOCKS = FC_BATCH / 4 };
    for (size_t done = 0; done < n; done += BLOCKS) {
        const size_t count = n - done < BLOCKS ? n - done : BLOCKS;
        const f32w tops = batch_tops(x, 4 * count, 16);
        float y[FC_BATCH];
        f32w_store(y, FC_PLANT(NVFP4_SIXTH, tops / f32w_all(6), tops * f32w_all(1.0f / 6)));
        for (size_t b = 0; b < count; b++, out++)
            for (size_t s = 0; s < 4; s++, x += 16) {
                out->d[s] = scale_byte(y[4 * b + s]);
                uint8_t codes[16];
                nearest_codes(x, 16, f32_value(fc_ue4m3_half_f32_bits[out->d[s]]), codes);
                pack_nibbles(out->qs + 8 * s, codes, codes + 8, 8);
            }
    }
    return n;
}
