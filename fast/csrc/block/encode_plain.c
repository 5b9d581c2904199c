/*
 * Encoders of the plain formats: one scale a block, codes from the unrounded scale (clauses BLOCK-ENCODE-1, BLOCK-SCAN-1,
 * BLOCK-ROUND-1, BLOCK-CHUNK-1).  Blocks are scanned side by side; the codes are made element by element.
 */
#include "block/bytes.h"
#include "block/layout.h"
#include "block/pack.h"
#include "block/scan.h"
#include "core/fault.h"
#include "core/kernels.h"

#ifdef FC_FAULTS
static f32w contracted(f32w x, float r, float offset) {
    for (int i = 0; i < FC_WIDE; i++) x[i] = (float)((double)x[i] * (double)r + (double)offset);
    return x;
}
#endif

/* CLAMP(CHOP(v), 0, top) */
FC_INLINE i32w chopped(f32w v, float top) {
    return __builtin_convertvector(lesser_w(greater_w(v, f32w_all(0)), f32w_all(top)), i32w);
}

/* CLAMP(AWAY(v), lo, hi) */
FC_INLINE i32w away_within(f32w v, float lo, float hi) {
    const f32w within = lesser_w(greater_w(v, f32w_all(lo)), f32w_all(hi));
    return FC_PLANT(Q8_HALF_EVEN, away_w(within), even_w(within));
}

/* The low four bits of 32 codes, and of five-bit codes the fifth bits, which lie before them */
FC_INLINE void pack_32(uint8_t *p, const uint8_t *codes, int five) {
    uint8_t low[32], high[32];
    if (five) {
        write_u16(p, bits_of_bytes(codes, 4));
        write_u16(p + 2, bits_of_bytes(codes + 16, 4));
        p += 4;
        split_codes(codes, 32, 4, low, high);
        codes = low;
    }
    pack_nibbles(p, codes + FC_PLANT(NIBBLES_SWAPPED, 0, 16), codes + FC_PLANT(NIBBLES_SWAPPED, 16, 0), 16);
}

/* q4_0 and q5_0: the number of largest magnitude becomes the least code, -top */
FC_INLINE size_t encode_signed(const float *x, uint8_t *p, size_t n, int five) {
    const float top = five ? 16 : 8, offset = top + 0.5f;
    for (size_t done = 0; done < n; done += FC_BATCH) {
        const size_t count = at_most_a_batch(n - done);
        float scale[FC_BATCH], inverse[FC_BATCH];
        const f32w d = batch_peaks(x, count, 32) / f32w_all(-top);
        f32w_store(scale, d);
        f32w_store(inverse, inverse_w(d));
        for (size_t b = 0; b < count; b++, x += 32, p += five ? FC_BYTES_q5_0 : FC_BYTES_q4_0) {
            uint8_t bytes[32];
            for (int i = 0; i < 32; i += 16) {
                i32w codes[FC_SIXTEEN];
                for (int j = 0; j < FC_SIXTEEN; j++) {
                    const f32w v = f32w_load(x + i + FC_WIDE * j), scaled = v * f32w_all(inverse[b]);
                    codes[j] = chopped(FC_PLANT(Q4_0_FUSED, scaled + f32w_all(offset), contracted(v, inverse[b], offset)), 2 * top - 1);
                }
                store_codes(bytes + i, codes);
            }
            write_u16(p, f16_of(FC_PLANT(MINUS_ZERO_SCALE_LOST, scale[b], scale[b] + 0.0f)));
            pack_32(p + 2, bytes, five);
        }
    }
    return n;
}

/* Clauses: BLOCK-Q40-2 */
size_t FC_K(encode_q4_0)(const float *values, uint8_t *blocks, size_t n, const fc_encoding *how) {
    (void)how;
    return encode_signed(values, blocks, n, 0);
}

/* Clauses: BLOCK-Q50-2 */
size_t FC_K(encode_q5_0)(const float *values, uint8_t *blocks, size_t n, const fc_encoding *how) {
    (void)how;
    return encode_signed(values, blocks, n, 1);
}

/* q4_1 and q5_1: codes 0 ... top from the least element to the largest */
FC_INLINE size_t encode_offset(const float *x, uint8_t *p, size_t n, int five) {
    const float top = five ? 31 : 15;
    for (size_t done = 0; done < n; done += FC_BATCH) {
        const size_t count = at_most_a_batch(n - done);
        float least[FC_BATCH], scale[FC_BATCH], inverse[FC_BATCH];
        const fc_ranges range = batch_ranges(x, count, 32);
        const f32w d = (range.hi - range.lo) / f32w_all(top);
        f32w_store(least, range.lo);
        f32w_store(scale, d);
        f32w_store(inverse, inverse_w(d));
        for (size_t b = 0; b < count; b++, x += 32, p += five ? FC_BYTES_q5_1 : FC_BYTES_q4_1) {
            uint8_t bytes[32];
            for (int i = 0; i < 32; i += 16) {
                i32w codes[FC_SIXTEEN];
                for (int j = 0; j < FC_SIXTEEN; j++) {
                    const f32w above = f32w_load(x + i + FC_WIDE * j) - f32w_all(least[b]);
                    codes[j] = chopped(above * f32w_all(inverse[b]) + f32w_all(0.5f), top);
                }
                store_codes(bytes + i, codes);
            }
            write_u16(p, f16_of(scale[b]));
            write_u16(p + 2, f16_of(least[b]));
            pack_32(p + 4, bytes, five);
        }
    }
    return n;
}

/* Clauses: BLOCK-Q41-2 */
size_t FC_K(encode_q4_1)(const float *values, uint8_t *blocks, size_t n, const fc_encoding *how) {
    (void)how;
    return encode_offset(values, blocks, n, 0);
}

/* Clauses: BLOCK-Q51-2 */
size_t FC_K(encode_q5_1)(const float *values, uint8_t *blocks, size_t n, const fc_encoding *how) {
    (void)how;
    return encode_offset(values, blocks, n, 1);
}

/* q8_0 and q8_1: signed bytes; q8_1 keeps their sum times the scale */
FC_INLINE size_t encode_bytes(const float *x, uint8_t *p, size_t n, int with_sum) {
    for (size_t done = 0; done < n; done += FC_BATCH) {
        const size_t count = at_most_a_batch(n - done);
        float scale[FC_BATCH], inverse[FC_BATCH];
        const f32w tops = batch_tops(x, count, 32), d = tops / f32w_all(127);
        f32w_store(scale, d);
        f32w_store(inverse, FC_PLANT(RECIPROCAL_OF_TOP, inverse_w(d), f32w_all(127) * inverse_w(tops)));
        for (size_t b = 0; b < count; b++, x += 32, p += with_sum ? FC_BYTES_q8_1 : FC_BYTES_q8_0) {
            i32w sums = i32w_all(0);
            for (int i = 0; i < 32; i += 16) {
                i32w codes[FC_SIXTEEN];
                for (int j = 0; j < FC_SIXTEEN; j++) {
                    codes[j] = away_within(f32w_load(x + i + FC_WIDE * j) * f32w_all(inverse[b]), -127, 127);
                    sums += codes[j];
                }
                store_codes(p + (with_sum ? 4 : 2) + i, codes);
            }
            write_u16(p, f16_of(scale[b]));
            if (with_sum) {
                int32_t sum = 0;
                for (int i = 0; i < FC_WIDE; i++) sum += sums[i];
                write_u16(p + 2, f16_of((float)sum * FC_PLANT(Q8_1_STORED_SCALE, scale[b], widened(f16_of(scale[b])))));
            }
        }
    }
    return n;
}

/* Clauses: BLOCK-Q80-2 */
size_t FC_K(encode_q8_0)(const float *values, uint8_t *blocks, size_t n, const fc_encoding *how) {
    (void)how;
    return encode_bytes(values, blocks, n, 0);
}

/* Clauses: BLOCK-Q81-2 */
size_t FC_K(encode_q8_1)(const float *values, uint8_t *blocks, size_t n, const fc_encoding *how) {
    (void)how;
    return encode_bytes(values, blocks, n, 1);
}

/* The mean magnitude of blocks of 128: each lane adds up one block, element after element. */
FC_INLINE f32w batch_means(const float *x, size_t count) {
    f32w sum = f32w_all(0);
    for (int i = 0; i < 128; i += FC_WIDE) {
        f32w rows[FC_BATCH] = {{0}};
        for (size_t b = 0; b < count; b++) rows[b] = f32w_load(x + 128 * b + i);
        turned_w(rows);
        for (int j = 0; j < FC_WIDE; j++) sum += magnitude_w(rows[j]);
    }
    return sum / f32w_all(128);
}

/* Clauses: BLOCK-Q10-2 */
size_t FC_K(encode_q1_0)(const float *values, uint8_t *blocks, size_t n, const fc_encoding *how) {
    (void)how;
    const float *x = values;
    block_q1_0 *out = (block_q1_0 *)blocks;
    for (size_t done = 0; done < n; done += FC_BATCH) {
        const size_t count = at_most_a_batch(n - done);
        float mean[FC_BATCH];
        f32w_store(mean, count == FC_BATCH ? batch_means(x, FC_BATCH) : batch_means(x, count));
        for (size_t b = 0; b < count; b++, x += 128, out++) {
            write_u16(out->d, f16_of(mean[b]));
            for (int i = 0; i < 128; i += 8) {
                uint32_t bits = 0;
                for (int j = 0; j < 8; j += FC_WIDE) bits |= lane_bits_w(f32w_load(x + i + j) >= f32w_all(0)) << j;
                out->qs[i / 8] = (uint8_t)bits;
            }
        }
    }
    return n;
}

/* Clauses: BLOCK-Q20-2 */
size_t FC_K(encode_q2_0)(const float *values, uint8_t *blocks, size_t n, const fc_encoding *how) {
    (void)how;
    const float *x = values;
    block_q2_0 *out = (block_q2_0 *)blocks;
    for (size_t done = 0; done < n; done += FC_BATCH) {
        const size_t count = at_most_a_batch(n - done);
        float scale[FC_BATCH], inverse[FC_BATCH];
        const f32w d = batch_tops(x, count, 128);
        f32w_store(scale, d);
        f32w_store(inverse, inverse_w(d));
        for (size_t b = 0; b < count; b++, x += 128, out++) {
            uint8_t bytes[128];
            for (int i = 0; i < 128; i += 16) {
                i32w codes[FC_SIXTEEN];
                for (int j = 0; j < FC_SIXTEEN; j++)
                    codes[j] = away_within(f32w_load(x + i + FC_WIDE * j) * f32w_all(inverse[b]), -1, 2) + i32w_all(1);
                store_codes(bytes + i, codes);
            }
            write_u16(out->d, f16_of(scale[b]));
            for (int i = 0; i < 32; i++) out->qs[i] = pairs_of_bytes(bytes + 4 * i);
        }
    }
    return n;
}
