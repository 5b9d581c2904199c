/* Decoding the formats of one scale for the whole block: q1_0 ... q8_1, q8_k, and the ternary tq1_0 and tq2_0. */
#include "block/decode.h"

/* The nibbles of sixteen bytes: element j is the low one of byte j, element 16 + j its high one. */
typedef struct {
    u8x16 low, high;
} nibbles;
FC_INLINE nibbles nibbles_of(const uint8_t *qs) {
    const u8x16 q = u8x16_load(qs);
    return FC_PLANT(NIBBLES_READ_SWAPPED, ((nibbles){q & 15, q >> 4}), ((nibbles){q >> 4, q & 15}));
}
/* The same with the fifth bits, bit i of the little-endian word qh for element i. */
FC_INLINE nibbles fifths_of(const uint8_t *qs, const uint8_t *qh) {
    const nibbles q = nibbles_of(qs);
    const uint8_t fifth = FC_PLANT(FIFTH_BIT_LOST, 16, 0);
    return (nibbles){q.low | ((u8x16)masks_of_bits(qh[0], qh[1]) & fifth), q.high | ((u8x16)masks_of_bits(qh[2], qh[3]) & fifth)};
}

/* Clause: BLOCK-Q10-1 */
FC_INLINE void q1_0_block(const block_q1_0 *b, float *out, int streaming) {
    const float d = scale_of(b->d);
    for (int k = 0; k < 8; k++) /* a clear bit is -1, a set one -1 + 2 */
        scaled((masks_of_bits(b->qs[2 * k], b->qs[2 * k + 1]) & 2) - 1, d, out + 16 * k, streaming);
}

/* Clause: BLOCK-Q20-1 */
FC_INLINE void q2_0_block(const block_q2_0 *b, float *out, int streaming) {
    const float d = scale_of(b->d);
    for (int half = 0; half < 2; half++, out += 64) {
        const u8x16 q = u8x16_load(b->qs + 16 * half);
        /* the four elements of a byte follow each other: 0 2 0 2 ... and 1 3 1 3 ..., then 0 1 2 3 ... */
        const u8x16 c0 = q & 3, c1 = q >> 2 & 3, c2 = q >> 4 & 3, c3 = FC_PLANT(Q2_0_LAST_PAIR, q >> 6, c2);
        const u8x16 even_low = interleaved_low(c0, c2), even_high = interleaved_high(c0, c2);
        const u8x16 odd_low = interleaved_low(c1, c3), odd_high = interleaved_high(c1, c3);
        scaled((i8x16)interleaved_low(even_low, odd_low) - 1, d, out, streaming);
        scaled((i8x16)interleaved_high(even_low, odd_low) - 1, d, out + 16, streaming);
        scaled((i8x16)interleaved_low(even_high, odd_high) - 1, d, out + 32, streaming);
        scaled((i8x16)interleaved_high(even_high, odd_high) - 1, d, out + 48, streaming);
    }
}

/* Clause: BLOCK-Q40-1 */
FC_INLINE void q4_0_block(const block_q4_0 *b, float *out, int streaming) {
    const float d = scale_of(b->d);
    const nibbles q = nibbles_of(b->qs);
    scaled((i8x16)q.low - 8, d, out, streaming);
    scaled((i8x16)q.high - 8, d, out + 16, streaming);
}

/* Clause: BLOCK-Q41-1 */
FC_INLINE void q4_1_block(const block_q4_1 *b, float *out, int streaming) {
    const float d = scale_of(b->d), m = FC_PLANT(Q4_1_MINIMUM_SUBTRACTED, scale_of(b->m), -scale_of(b->m));
    const nibbles q = nibbles_of(b->qs);
    shifted(q.low, d, m, out, streaming);
    shifted(q.high, d, m, out + 16, streaming);
}

/* Clause: BLOCK-Q50-1 */
FC_INLINE void q5_0_block(const block_q5_0 *b, float *out, int streaming) {
    const float d = scale_of(b->d);
    const nibbles q = fifths_of(b->qs, b->qh);
    scaled((i8x16)q.low - 16, d, out, streaming);
    scaled((i8x16)q.high - 16, d, out + 16, streaming);
}

/* Clause: BLOCK-Q51-1 */
FC_INLINE void q5_1_block(const block_q5_1 *b, float *out, int streaming) {
    const float d = scale_of(b->d), m = scale_of(b->m);
    const nibbles q = fifths_of(b->qs, b->qh);
    shifted(q.low, d, m, out, streaming);
    shifted(q.high, d, m, out + 16, streaming);
}

/* Clause: BLOCK-Q80-1 */
FC_INLINE void q8_0_block(const block_q8_0 *b, float *out, int streaming) {
    const float d = scale_of(b->d);
    for (int k = 0; k < 2; k++) scaled((i8x16)u8x16_load(b->qs + 16 * k), d, out + 16 * k, streaming);
}

/* Clause: BLOCK-Q81-1 */
FC_INLINE void q8_1_block(const block_q8_1 *b, float *out, int streaming) {
    const float d = scale_of(FC_PLANT(Q8_1_SUM_FOR_SCALE, b->d, b->s));
    for (int k = 0; k < 2; k++) scaled((i8x16)u8x16_load(b->qs + 16 * k), d, out + 16 * k, streaming);
}

/* Clause: BLOCK-Q8K-1 */
FC_INLINE void q8_k_block(const block_q8_k *b, float *out, int streaming) {
    const float d = f32_value(read_u32(b->d));
    for (int k = 0; k < 16; k++) scaled((i8x16)u8x16_load(b->qs + 16 * k), d, out + 16 * k, streaming);
}

/* Digit n of bytes that were multiplied by 3^n modulo 256 is floor(3 * byte / 256), which steps at 86 and at 171; less one. */
FC_INLINE i8x16 trits(u8x16 q) { return -1 - (i8x16)FC_PLANT(TRIT_STEP, q >= 86, q >= 85) - (i8x16)(q >= 171); }
FC_INLINE u8x16 tripled(u8x16 q) { return q + q + q; }

/* Clause: BLOCK-TQ10-1 */
FC_INLINE void tq1_0_block(const block_tq1_0 *b, float *out, int streaming) {
    const float d = scale_of(b->d);
    u8x16 first = u8x16_load(b->qs), second = u8x16_load(b->qs + 16), third = u8x16_load(b->qs + 32);
    for (int n = 0; n < 5; n++, out += 32) {
        scaled(trits(first), d, out, streaming);
        scaled(trits(second), d, out + 16, streaming);
        first = tripled(first), second = tripled(second);
    }
    for (int n = 0; n < 5; n++, out += 16) {
        scaled(trits(third), d, out, streaming);
        third = tripled(third);
    }
    uint8_t last[16]; /* four digits of four bytes */
    for (int i = 0; i < 4; i++) last[i] = b->qh[FC_PLANT(TRIT_BYTES_REVERSED, i, 3 - i)];
    for (int i = 4; i < 16; i++) last[i] = (uint8_t)(3 * last[i - 4]);
    scaled(trits(u8x16_load(last)), d, out, streaming);
}

/* Clause: BLOCK-TQ20-1 */
FC_INLINE void tq2_0_block(const block_tq2_0 *b, float *out, int streaming) {
    const float d = scale_of(b->d);
    for (int half = 0; half < 2; half++) {
        u8x16 first = u8x16_load(b->qs + 32 * half), second = u8x16_load(b->qs + 32 * half + 16);
        for (int k = 0; k < 4; k++, first >>= 2, second >>= 2, out += 32) {
            scaled((i8x16)(first & 3) - 1, d, out, streaming);
            scaled((i8x16)(second & 3) - 1, d, out + 16, streaming);
        }
    }
}

FC_DECODER(q1_0)
FC_DECODER(q2_0)
FC_DECODER(q4_0)
FC_DECODER(q4_1)
FC_DECODER(q5_0)
FC_DECODER(q5_1)
FC_DECODER(q8_0)
FC_DECODER(q8_1)
FC_DECODER(q8_k)
FC_DECODER(tq1_0)
FC_DECODER(tq2_0)
