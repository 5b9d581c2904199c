/* Decoding the formats of sixteen uneven levels: iq4_nl, iq4_xs, and the four-bit floats mxfp4 and nvfp4. */
#include "block/decode.h"
#include "block_tables.h"

/* Sixteen bytes to 32 elements: the low nibbles, then the high ones. */
FC_INLINE void levels(const int8_t table[16], const uint8_t *qs, float scale, float *out, int streaming) {
    const u8x16 q = u8x16_load(qs);
    scaled(looked_up(table, q & 15), scale, out, streaming);
    scaled(looked_up(table, FC_PLANT(LEVELS_LOW_TWICE, q >> 4, q & 15)), scale, out + 16, streaming);
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
        const int32_t ls = (int32_t)((low >> (4 * k) & 15) | (high >> (2 * k) & 3) << 4) - FC_PLANT(IQ4XS_BIAS, 32, 31);
        levels(fc_kvalues_iq4nl, b->qs + 16 * k, d * (float)ls, out + 32 * k, streaming);
    }
}

/* Clause: BLOCK-MXFP4-1 */
FC_INLINE void mxfp4_block(const block_mxfp4 *b, float *out, int streaming) {
    const uint32_t scale = FC_PLANT(E8M0_UNHALVED, fc_e8m0_half_f32_bits[b->e[0]], (uint32_t)b->e[0] << 23);
    levels(fc_kvalues_e2m1_doubled, b->qs, f32_value(scale), out, streaming);
}

/* Clause: BLOCK-NVFP4-1 */
FC_INLINE void nvfp4_block(const block_nvfp4 *b, float *out, int streaming) {
    const uint64_t nibble = UINT64_C(0x0f0f0f0f0f0f0f0f);
    for (int s = 0; s < 4; s++) {
        const uint64_t q = word_load(b->qs + 8 * s);
        const u8x16 codes = bytes_of_words(q & nibble, FC_PLANT(NVFP4_LOW_TWICE, q >> 4, q) & nibble);
        const uint32_t scale = fc_ue4m3_half_f32_bits[FC_PLANT(UE4M3_SIGN_CUT, b->d[s], b->d[s] & 127)];
        scaled(looked_up(fc_kvalues_e2m1_doubled, codes), f32_value(scale), out + 16 * s, streaming);
    }
}

FC_DECODER(iq4_nl)
FC_DECODER(iq4_xs)
FC_DECODER(mxfp4)
FC_DECODER(nvfp4)
