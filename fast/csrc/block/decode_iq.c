/*
 * Decoding the codebook formats iq1, iq2, iq3: a group is rows of a codebook, eight or four elements each, with signs beside them.
 * No element of a codebook is zero, so a sign may go into the integer: F(-g) * scale is -(F(g) * scale), infinities included.
 */
#include "block/decode.h"
#include "block_tables.h"

/* (D * (0.5 + F(sc))) * factor, as iq2 and iq3_xxs have it */
FC_INLINE float half_step(float d, uint32_t sc, float factor) { return d * (0.5f + (float)sc) * factor; }

/* The sign byte of seven stored signs: its eighth makes the number of minus signs even. */
FC_INLINE uint8_t signs_of(uint32_t code) { return FC_PLANT(EIGHTH_SIGN_LOST, fc_ksigns_iq2xs[code & 127], (uint8_t)(code & 127)); }

/* half_step(), times 0.25, for sixteen groups whose scales are nibbles, low ones first. */
FC_INLINE void half_steps(const uint8_t *nibbles, float d, float scale[16]) {
    const uint64_t q = word_load(nibbles), low = UINT64_C(0x0f0f0f0f0f0f0f0f);
    float sc[16];
    scaled((i8x16)interleaved_low(bytes_of_words(q & low, 0), bytes_of_words(q >> 4 & low, 0)), 1, sc, 0);
    for (int k = 0; k < 16; k++) scale[k] = d * (FC_PLANT(IQ2_HALF_MISSING, 0.5f, 0.0f) + sc[k]) * 0.25f;
}

/* Clause: BLOCK-IQ2XXS-1 */
FC_INLINE void iq2_xxs_block(const block_iq2_xxs *b, float *out, int streaming) {
    const float d = scale_of(b->d);
    for (int k = 0; k < 8; k++, out += 32) {
        const uint8_t *const index = b->qs + 8 * k;
        const uint32_t word = read_u32(index + 4);
        const float scale = half_step(d, word >> 28, FC_PLANT(IQ2XXS_FACTOR, 0.25f, 0.5f));
        for (int t = 0; t < 4; t += 2)
            scaled(with_signs(bytes_of_rows(fc_iq2xxs_grid[index[t]], fc_iq2xxs_grid[index[t + 1]]),
                              masks_of_bits(signs_of(word >> (7 * t)), signs_of(word >> (7 * t + 7)))),
                   scale, out + 8 * t, streaming);
    }
}

/* Clause: BLOCK-IQ2XS-1 */
FC_INLINE void iq2_xs_block(const block_iq2_xs *b, float *out, int streaming) {
    float scale[16];
    half_steps(b->scales, scale_of(b->d), scale);
    for (int k = 0; k < 16; k++) {
        const uint32_t first = read_u16(b->qs + 4 * k), second = read_u16(b->qs + 4 * k + 2);
        scaled(with_signs(bytes_of_rows(fc_iq2xs_grid[first & 511], fc_iq2xs_grid[second & 511]),
                          masks_of_bits(signs_of(first >> 9), signs_of(second >> 9))),
               scale[k], out + 16 * k, streaming);
    }
}

/* Clause: BLOCK-IQ2S-1 */
FC_INLINE void iq2_s_block(const block_iq2_s *b, float *out, int streaming) {
    float scale[16];
    half_steps(b->scales, scale_of(b->d), scale);
    for (int k = 0; k < 16; k++) { /* two octets; their index bits 8 and 9 are pairs of bits of qh */
        const int high = b->qh[k / 2] >> (4 * FC_PLANT(IQ2S_QH_REVERSED, k % 2, 1 - k % 2));
        const uint64_t first = fc_iq2s_grid[b->qs[2 * k] | (high & 3) << 8], second = fc_iq2s_grid[b->qs[2 * k + 1] | (high & 12) << 6];
        scaled(with_signs(bytes_of_rows(first, second), masks_of_bits(b->signs[2 * k], b->signs[2 * k + 1])),
               scale[k], out + 16 * k, streaming);
    }
}

FC_INLINE uint64_t two_rows(uint32_t first, uint32_t second) { return first | (uint64_t)second << 32; }

/* Clause: BLOCK-IQ3XXS-1 */
FC_INLINE void iq3_xxs_block(const block_iq3_xxs *b, float *out, int streaming) {
    const float d = scale_of(b->d);
    for (int k = 0; k < 8; k++, out += 32) {
        const uint32_t word = read_u32(b->sas + 4 * k);
        const float scale = half_step(d, word >> 28, FC_PLANT(IQ3XXS_FACTOR, 0.5f, 0.25f));
        for (int t = 0; t < 4; t += 2) {
            const uint8_t *const q = b->qs + 8 * k + 2 * t;
            scaled(with_signs(bytes_of_rows(two_rows(fc_iq3xxs_grid[q[0]], fc_iq3xxs_grid[q[1]]),
                                            two_rows(fc_iq3xxs_grid[q[2]], fc_iq3xxs_grid[q[3]])),
                              masks_of_bits(signs_of(word >> (7 * t)), signs_of(word >> (7 * t + 7)))),
                   scale, out + 8 * t, streaming);
        }
    }
}

/* Row r of a group of eight, its ninth index bit in bit r of `high`. */
FC_INLINE uint32_t iq3_s_row(const uint8_t *qs, uint32_t high, int r) {
    return fc_iq3s_grid[qs[r] | FC_PLANT(IQ3S_NINTH_BIT_LOST, high >> r & 1, 0u) << 8];
}

/* Clause: BLOCK-IQ3S-1 */
FC_INLINE void iq3_s_block(const block_iq3_s *b, float *out, int streaming) {
    const float d = scale_of(b->d);
    for (int k = 0; k < 8; k++) {
        const uint8_t *const q = b->qs + 8 * k;
        const uint32_t high = b->qh[k];
        const float scale = d * (float)(FC_PLANT(IQ3S_EVEN_SCALE, 1, 0) + 2 * (b->scales[k / 2] >> (4 * (k % 2)) & 15));
        for (int t = 0; t < 4; t += 2)
            scaled(with_signs(bytes_of_rows(two_rows(iq3_s_row(q, high, 2 * t), iq3_s_row(q, high, 2 * t + 1)),
                                            two_rows(iq3_s_row(q, high, 2 * t + 2), iq3_s_row(q, high, 2 * t + 3))),
                              masks_of_bits(b->signs[4 * k + t], b->signs[4 * k + t + 1])),
                   scale, out + 32 * k + 8 * t, streaming);
    }
}

/*
 * iq1: the element g of the codebook (-1, 0, 1) plus or minus 1/8.  Counted in eighths the sum is 8 g +- 1, an integer that is
 * never zero, and the eighth goes into the scale: all these products are exact.
 */
FC_INLINE i8x16 eighths(uint32_t first, uint32_t second, uint64_t first_delta, uint64_t second_delta) {
    const u8x16 g = bytes_of_rows(fc_iq1s_grid[first], fc_iq1s_grid[second]);
    return (i8x16)((g << 3) + bytes_of_words(first_delta, second_delta));
}
/* +1 or -1 in every byte */
FC_INLINE uint64_t delta_bytes(int is_negative) {
    return FC_PLANT(IQ1_DELTA_TURNED, is_negative, !is_negative) ? UINT64_C(0xffffffffffffffff) : UINT64_C(0x0101010101010101);
}
FC_INLINE float eighth_scale(float d, uint32_t sc) { return d * (float)(2 * (sc & FC_PLANT(IQ1_DELTA_IN_SCALE, 7, 15)) + 1) * 0.125f; }

/* Clause: BLOCK-IQ1S-1 */
FC_INLINE void iq1_s_block(const block_iq1_s *b, float *out, int streaming) {
    const float d = scale_of(b->d);
    for (int k = 0; k < 8; k++) {
        const uint8_t *const q = b->qs + 4 * k;
        const uint32_t w = read_u16(b->qh + 2 * k);
        const float scale = eighth_scale(d, w >> 12);
        const uint64_t delta = delta_bytes(w >> 15 != 0);
        scaled(eighths(q[0] | (w & 7) << 8, q[1] | (w >> 3 & 7) << 8, delta, delta), scale, out + 32 * k, streaming);
        scaled(eighths(q[2] | (w >> 6 & 7) << 8, q[3] | (w >> 9 & 7) << 8, delta, delta), scale, out + 32 * k + 16, streaming);
    }
}

/* Clause: BLOCK-IQ1M-1 */
FC_INLINE void iq1_m_block(const block_iq1_m *b, float *out, int streaming) {
    uint32_t words[4], bits = 0; /* the f16 scale is spread over the top nibbles of the scale words */
    for (int k = 0; k < 4; k++) {
        words[k] = read_u16(b->scales + 2 * k);
        bits |= words[k] >> 12 << (4 * FC_PLANT(IQ1M_SCALE_REVERSED, k, 3 - k));
    }
    uint8_t field[2];
    write_u16(field, (uint16_t)bits);
    const float d = scale_of(field);
    for (int k = 0; k < 16; k++) { /* two octets, a nibble of qh each: three index bits and the sign of the shift */
        const uint32_t high = b->qh[k];
        scaled(eighths(b->qs[2 * k] | (high & 7) << 8, b->qs[2 * k + 1] | (high >> 4 & 7) << 8, delta_bytes(high >> 3 & 1),
                       delta_bytes(high >> 7 & 1)),
               eighth_scale(d, words[k / 4] >> (3 * (k % 4))), out + 16 * k, streaming);
    }
}

FC_DECODER(iq2_xxs)
FC_DECODER(iq2_xs)
FC_DECODER(iq2_s)
FC_DECODER(iq3_xxs)
FC_DECODER(iq3_s)
FC_DECODER(iq1_s)
FC_DECODER(iq1_m)
