/*
 * Encoders of the plain formats: one scale a block, codes from the unrounded scale (clauses BLOCK-ENCODE-1, BLOCK-SCAN-1,
 * BLOCK-ROUND-1, BLOCK-CHUNK-1).  Eight blocks are scanned side by side; the codes are made element by element.
 */
#include "block/bytes.h"
#include "block/pack.h"
#include "block/round.h"
#include "block/scan.h"
#include "core/fault.h"
#include "core/kernels.h"

enum { LANES = 8 };

#ifdef FC_FAULTS
static f32x8 contracted(f32x8 x, f32x8 r, float offset) {
    for (int i = 0; i < LANES; i++) x[i] = (float)((double)x[i] * (double)r[i] + (double)offset);
    return x;
}
#endif

/* CLAMP(CHOP(v), 0, top) */
FC_INLINE i32x8 chopped(f32x8 v, float top) {
    return __builtin_convertvector(lesser(greater(v, f32x8_all(0)), f32x8_all(top)), i32x8);
}

/* The low four bits of 32 codes, and of five-bit codes the fifth bits, which lie before them */
FC_INLINE void pack_32(uint8_t *p, const uint8_t *codes, int five) {
    uint8_t low[32];
    if (five) {
        for (int i = 0; i < 4; i++) p[i] = bits_of_bytes(codes + 8 * i, 4);
        p += 4;
        for (int i = 0; i < 32; i++) low[i] = codes[i] & 15;
        codes = low;
    }
    pack_nibbles(p, codes + FC_PLANT(NIBBLES_SWAPPED, 0, 16), codes + FC_PLANT(NIBBLES_SWAPPED, 16, 0), 16);
}

/* q4_0 and q5_0: the number of largest magnitude becomes the least code, -top */
FC_INLINE size_t encode_signed(const float *x, uint8_t *p, size_t n, int five) {
    const float top = five ? 16 : 8, offset = top + 0.5f;
    for (size_t done = 0; done < n; done += LANES) {
        const size_t count = at_most_eight(n - done);
        const f32x8 d = eight_peaks(x, count, 32) / f32x8_all(-top), r = inverse_x8(d);
        for (size_t b = 0; b < count; b++, x += 32, p += five ? 22 : 18) {
            i32x8 codes[4];
            uint8_t bytes[32];
            const float scale = d[b], inverse = r[b];
            for (int i = 0; i < 4; i++) {
                const f32x8 scaled = f32x8_load(x + 8 * i) * f32x8_all(inverse);
                const f32x8 v = FC_PLANT(Q4_0_FUSED, scaled + f32x8_all(offset), contracted(f32x8_load(x + 8 * i), f32x8_all(inverse), offset));
                codes[i] = chopped(v, 2 * top - 1);
            }
            store_bytes(bytes, codes[0], codes[1]);
            store_bytes(bytes + 16, codes[2], codes[3]);
            write_u16(p, f16_of(FC_PLANT(MINUS_ZERO_SCALE_LOST, scale, scale + 0.0f)));
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
    for (size_t done = 0; done < n; done += LANES) {
        const size_t count = at_most_eight(n - done);
        const fc_ranges range = eight_ranges(x, count, 32);
        const f32x8 d = (range.hi - range.lo) / f32x8_all(top), r = inverse_x8(d);
        for (size_t b = 0; b < count; b++, x += 32, p += five ? 24 : 20) {
            i32x8 codes[4];
            uint8_t bytes[32];
            const float lo = range.lo[b], scale = d[b], inverse = r[b];
            for (int i = 0; i < 4; i++)
                codes[i] = chopped((f32x8_load(x + 8 * i) - f32x8_all(lo)) * f32x8_all(inverse) + f32x8_all(0.5f), top);
            store_bytes(bytes, codes[0], codes[1]);
            store_bytes(bytes + 16, codes[2], codes[3]);
            write_u16(p, f16_of(scale));
            write_u16(p + 2, f16_of(lo));
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
    const f32x8 least = f32x8_all(-127), most = f32x8_all(127);
    for (size_t done = 0; done < n; done += LANES) {
        const size_t count = at_most_eight(n - done);
        const f32x8 tops = eight_tops(x, count, 32), d = tops / most, r = FC_PLANT(RECIPROCAL_OF_TOP, inverse_x8(d), most * inverse_x8(tops));
        for (size_t b = 0; b < count; b++, x += 32, p += with_sum ? 36 : 34) {
            i32x8 codes[4], sums = {0};
            const float scale = d[b], inverse = r[b];
            for (int i = 0; i < 4; i++) {
                const f32x8 v = lesser(greater(f32x8_load(x + 8 * i) * f32x8_all(inverse), least), most);
                codes[i] = FC_PLANT(Q8_HALF_EVEN, away_x8(v), even_x8(v));
                sums += codes[i];
            }
            write_u16(p, f16_of(scale));
            if (with_sum) {
                int32_t sum = 0;
                for (int i = 0; i < LANES; i++) sum += sums[i];
                write_u16(p + 2, f16_of((float)sum * FC_PLANT(Q8_1_STORED_SCALE, scale, widened(f16_of(scale)))));
            }
            uint8_t *const bytes = p + (with_sum ? 4 : 2);
            store_bytes(bytes, codes[0], codes[1]);
            store_bytes(bytes + 16, codes[2], codes[3]);
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

/* The mean magnitude of up to eight blocks of 128: each lane adds up one block, element after element. */
FC_INLINE f32x8 eight_means(const float *x, size_t count) {
    f32x8 sum = {0};
    for (int i = 0; i < 128; i += LANES) {
        f32x8 rows[8] = {{0}};
        for (size_t b = 0; b < count; b++) rows[b] = f32x8_load(x + 128 * b + i);
        transposed(rows);
        for (int j = 0; j < LANES; j++) sum += magnitude(rows[j]);
    }
    return sum / f32x8_all(128);
}

/* Clauses: BLOCK-Q10-2 */
size_t FC_K(encode_q1_0)(const float *values, uint8_t *blocks, size_t n, const fc_encoding *how) {
    (void)how;
    const float *x = values;
    uint8_t *p = blocks;
    for (size_t done = 0; done < n; done += LANES) {
        const size_t count = at_most_eight(n - done);
        const f32x8 d = eight_means(x, count);
        for (size_t b = 0; b < count; b++, x += 128, p += 18) {
            write_u16(p, f16_of(d[b]));
            for (int i = 0; i < 16; i += 2) {
                uint8_t bits[16];
                const i32x8 one = i32x8_all(1), first = f32x8_load(x + 8 * i) >= f32x8_all(0), second = f32x8_load(x + 8 * i + 8) >= f32x8_all(0);
                store_bytes(bits, first & one, second & one);
                p[2 + i] = bits_of_bytes(bits, 0);
                p[3 + i] = bits_of_bytes(bits + 8, 0);
            }
        }
    }
    return n;
}

/* Clauses: BLOCK-Q20-2 */
size_t FC_K(encode_q2_0)(const float *values, uint8_t *blocks, size_t n, const fc_encoding *how) {
    (void)how;
    const float *x = values;
    uint8_t *p = blocks;
    for (size_t done = 0; done < n; done += LANES) {
        const size_t count = at_most_eight(n - done);
        const f32x8 d = eight_tops(x, count, 128), r = inverse_x8(d);
        for (size_t b = 0; b < count; b++, x += 128, p += 34) {
            uint8_t bytes[128];
            const float inverse = r[b];
            for (int i = 0; i < 128; i += 16) {
                i32x8 codes[2];
                for (int j = 0; j < 2; j++) {
                    const f32x8 v = lesser(greater(f32x8_load(x + i + 8 * j) * f32x8_all(inverse), f32x8_all(-1)), f32x8_all(2));
                    codes[j] = away_x8(v) + i32x8_all(1);
                }
                store_bytes(bytes + i, codes[0], codes[1]);
            }
            write_u16(p, f16_of(d[b]));
            for (int i = 0; i < 32; i++) p[2 + i] = pairs_of_bytes(bytes + 4 * i);
        }
    }
    return n;
}
