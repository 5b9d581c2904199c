/* Decoding the formats of sixteen uneven levels: iq4_nl, iq4_xs, and the four-bit floats mxfp4 and nvfp4. */
#include "block/decode.h"
#include "block_tables.h"

/* Sixteen bytes to 32 elements: the low nibbles, then the high ones. */
FC_INLINE void levels(const int8_t table[16], const uint8_t *qs, float scale, float *out, int streaming) {
    const u8x16 q = u8x16_load(qs);
    scaled(looked_up(table, q & 15), scale, out, streaming);
    scaled(looked_up(table, q >> 4), scale, out + 16, streaming);
}

/* Clause: BLOCK-IQ4NL-1 */
FC_INLINE void iq4_nl_block(const block_iq4_nl *b, float *out, int streaming) {
    levels(fc_kvalues_iq4nl, b->qs, scale_of(b->d), out, streaming);
}

/* Clause: BLOCK-IQ4XS-1 */
FC_INLINE void iq4_xs_block(const block_iq4_xs *b, float *out, int streaming) {
    const float d = scale_of(b->d);
    const uint32_t low = read_u32(b->scales_l), high = read_u16(b->scales_h);
    for (int k = 0; k < 8; k++) {
        const int32_t ls = (int32_t)((low >> (4 * k) & 15) | (high >> (2 * k) & 3) << 4) - 32;
        levels(fc_kvalues_iq4nl, b->qs + 16 * k, d * (float)ls, out + 32 * k, streaming);
    }
}

/* Clause: BLOCK-MXFP4-1 */
FC_INLINE void mxfp4_block(const block_mxfp4 *b, float *out, int streaming) {
    levels(fc_kvalues_e2m1_doubled, b->qs, f32_value(fc_e8m0_half_f32_bits[b->e[0]]), out, streaming);
}

/* Clause: BLOCK-NVFP4-1 */
FC_INLINE void nvfp4_block(const block_nvfp4 *b, float *out, int streaming) {
    const uint64_t nibble = UINT64_C(0x0f0f0f0f0f0f0f0f);
    for (int s = 0; s < 4; s++) {
        const uint64_t q = word_load(b->qs + 8 * s);
        const u8x16 codes = bytes_of_words(q & nibble, q >> 4 & nibble);
        scaled(looked_up(fc_kvalues_e2m1_doubled, codes), f32_value(fc_ue4m3_half_f32_bits[b->d[s]]), out + 16 * s, streaming);
    }
}

FC_DECODER(iq4_nl)
FC_DECODER(iq4_xs)
FC_DECODER(mxfp4)
FC_DECODER(nvfp4)
