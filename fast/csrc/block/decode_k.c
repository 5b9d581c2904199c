/* Decoding the K formats: 256 elements, groups of 16 or 32 with small integer scales (and minima) under one or two f16 scales. */
#include "block/decode.h"

/* Clause: BLOCK-Q2K-1 */
FC_INLINE void q2_k_block(const block_q2_k *b, float *out, int streaming) {
    float scale[16], offset[16];
    const u8x16 s = u8x16_load(b->scales);
    scaled((i8x16)(s & 15), scale_of(b->d), scale, 0);
    scaled((i8x16)(s >> 4), FC_PLANT(Q2_K_MINIMUM_ADDED, -scale_of(b->dmin), scale_of(b->dmin)), offset, 0);
    for (int half = 0, g = 0; half < 2; half++) {
        u8x16 first = u8x16_load(b->qs + 32 * half), second = u8x16_load(b->qs + 32 * half + 16);
        for (int k = 0; k < 4; k++, g += 2, first >>= 2, second >>= 2) {
            shifted(first & 3, scale[g], offset[g], out + 16 * g, streaming);
            shifted(second & 3, scale[g + 1], offset[g + 1], out + 16 * g + 16, streaming);
        }
    }
}

/* The sixteen 6-bit scales of q3_k: four low bits in the nibbles of eight bytes, two high ones in the pairs of four; less 32. */
FC_INLINE i8x16 q3_k_scales(const uint8_t *scales) {
    const uint64_t low = word_load(scales), nibble = UINT64_C(0x0f0f0f0f0f0f0f0f);
    const uint32_t high = half_word_load(scales + 8), pair = 0x03030303;
    const u8x16 top = (u8x16)(u32x4){high & pair, high >> 2 & pair, high >> 4 & pair, high >> 6 & pair};
    return (i8x16)(bytes_of_words(low & nibble, low >> 4 & nibble) | FC_PLANT(Q3_K_SCALE_PAIRS, top << 4, top << 2)) - 32;
}

/* Clause: BLOCK-Q3K-1 */
FC_INLINE void q3_k_block(const block_q3_k *b, float *out, int streaming) {
    float scale[16];
    scaled(q3_k_scales(b->scales), scale_of(b->d), scale, 0);
    /* a set bit of hmask is the code's third, so a clear one takes 4 away */
    const uint8_t flip = FC_PLANT(HMASK_READ_POLARITY, 255, 0);
    u8x16 high_first = u8x16_load(b->hmask) ^ flip, high_second = u8x16_load(b->hmask + 16) ^ flip;
    for (int half = 0, g = 0; half < 2; half++) {
        u8x16 first = u8x16_load(b->qs + 32 * half), second = u8x16_load(b->qs + 32 * half + 16);
        for (int k = 0; k < 4; k++, g += 2, first >>= 2, second >>= 2, high_first >>= 1, high_second >>= 1) {
            scaled((i8x16)((first & 3) - ((high_first & 1) << 2)), scale[g], out + 16 * g, streaming);
            scaled((i8x16)((second & 3) - ((high_second & 1) << 2)), scale[g + 1], out + 16 * g + 16, streaming);
        }
    }
}

/* The eight scales and eight minima of q4_k and q5_k, six bits each, times d, and times -dmin. */
FC_INLINE void scales_and_offsets(const uint8_t *scales, float d, float dmin, float scale[8], float offset[8]) {
    const uint32_t a = half_word_load(scales), b = half_word_load(scales + 4), c = half_word_load(scales + 8);
    const uint32_t six = 0x3f3f3f3f, nibble = 0x0f0f0f0f, pair = 0x03030303;
    const uint32_t minima = FC_PLANT(K_MINIMA_READ_FROM_SCALES, c >> 4, c) & nibble; /* the low bits of the last four */
    const u32x4 packed = {a & six, (c & nibble) | (a >> 6 & pair) << 4, b & six, minima | (b >> 6 & pair) << 4};
    float integer[16];
    scaled((i8x16)packed, 1, integer, 0);
    for (int s = 0; s < 8; s++) {
        scale[s] = integer[s] * d;
        offset[s] = integer[8 + s] * FC_PLANT(K_MINIMUM_ADDED, -dmin, dmin);
    }
}

/* Clause: BLOCK-Q4K-1 */
FC_INLINE void q4_k_block(const block_q4_k *b, float *out, int streaming) {
    float scale[8], offset[8];
    scales_and_offsets(b->scales, scale_of(b->d), scale_of(b->dmin), scale, offset);
    for (int s = 0; s < 8; s += 2) {
        const u8x16 first = u8x16_load(b->qs + 16 * s), second = u8x16_load(b->qs + 16 * s + 16);
        shifted(first & 15, scale[s], offset[s], out + 32 * s, streaming);
        shifted(second & 15, scale[s], offset[s], out + 32 * s + 16, streaming);
        shifted(first >> 4, scale[s + 1], offset[s + 1], out + 32 * s + 32, streaming);
        shifted(second >> 4, scale[s + 1], offset[s + 1], out + 32 * s + 48, streaming);
    }
}

/* Clause: BLOCK-Q5K-1 */
FC_INLINE void q5_k_block(const block_q5_k *b, float *out, int streaming) {
    float scale[8], offset[8];
    scales_and_offsets(b->scales, scale_of(b->d), scale_of(b->dmin), scale, offset);
    u8x16 high_first = u8x16_load(b->qh), high_second = u8x16_load(b->qh + 16);
    for (int s = 0; s < 8; s += 2, high_first >>= 2, high_second >>= 2) {
        const u8x16 first = u8x16_load(b->qs + 16 * s), second = u8x16_load(b->qs + 16 * s + 16);
        shifted((first & 15) | FC_PLANT(Q5_K_FIFTH_BIT_LOW, (high_first & 1) << 4, (high_first & 1) << 3), scale[s], offset[s], out + 32 * s, streaming);
        shifted((second & 15) | (high_second & 1) << 4, scale[s], offset[s], out + 32 * s + 16, streaming);
        shifted(first >> 4 | (high_first & 2) << 3, scale[s + 1], offset[s + 1], out + 32 * s + 32, streaming);
        shifted(second >> 4 | (high_second & 2) << 3, scale[s + 1], offset[s + 1], out + 32 * s + 48, streaming);
    }
}

/* Clause: BLOCK-Q6K-1 */
FC_INLINE void q6_k_block(const block_q6_k *b, float *out, int streaming) {
    float scale[16];
    scaled((i8x16)u8x16_load(b->scales), scale_of(b->d), scale, 0);
    for (int g = 0; g < 16; g += 8, out += 128) { /* four groups in the low nibbles of 64 bytes, four in the high ones */
        const uint8_t *const low = b->ql + 8 * g, *const high = b->qh + 4 * g;
        for (int k = 0; k < 2; k++) {
            const u8x16 first = u8x16_load(low + 16 * k), second = u8x16_load(low + 32 + 16 * k), pairs = u8x16_load(high + 16 * k);
            scaled((i8x16)((first & 15) | (pairs & 3) << 4) - 32, scale[g + k], out + 16 * k, streaming);
            scaled((i8x16)((second & 15) | (FC_PLANT(Q6_K_PAIRS_UNSHIFTED, pairs << 2, pairs) & 48)) - 32, scale[g + k + 2],
                   out + 16 * k + 32, streaming);
            scaled((i8x16)(first >> 4 | (pairs & 48)) - 32, scale[g + k + 4], out + 16 * k + 64, streaming);
            scaled((i8x16)(second >> 4 | (pairs >> 2 & 48)) - 32, scale[g + k + 6], out + 16 * k + 96, streaming);
        }
    }
}

FC_DECODER(q2_k)
FC_DECODER(q3_k)
FC_DECODER(q4_k)
FC_DECODER(q5_k)
FC_DECODER(q6_k)
