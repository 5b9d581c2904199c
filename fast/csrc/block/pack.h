/* From lanes to bytes, and from bytes that hold one code each to bytes that hold several. */
#ifndef FC_BLOCK_PACK_H
#define FC_BLOCK_PACK_H
#include "block/bytes.h"
#include "block/vector.h"

/* Sixteen lanes, each in -128 ... 127, as sixteen bytes */
FC_INLINE void store_bytes(void *p, i32x8 a, i32x8 b) {
#if defined(__AVX2__)
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32((__m256i)a, (__m256i)b), 0xd8);
    const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    memcpy(p, &bytes, sizeof bytes);
#elif defined(__SSE2__)
    __m128i x[2], y[2];
    memcpy(x, &a, sizeof a);
    memcpy(y, &b, sizeof b);
    const __m128i bytes = _mm_packs_epi16(_mm_packs_epi32(x[0], x[1]), _mm_packs_epi32(y[0], y[1]));
    memcpy(p, &bytes, sizeof bytes);
#else
    const i8x8 low = __builtin_convertvector(a, i8x8), high = __builtin_convertvector(b, i8x8);
    memcpy(p, &low, sizeof low);
    memcpy((uint8_t *)p + 8, &high, sizeof high);
#endif
}

/* n codes of four bits in the low halves of n bytes, n more in the high halves */
FC_INLINE void pack_nibbles(uint8_t *p, const uint8_t *low, const uint8_t *high, int n) {
    for (int i = 0; i < n; i++) p[i] = (uint8_t)(low[i] | high[i] << 4);
}

/* Four planes of 32 codes of two bits: bits 0-1, 2-3, 4-5, 6-7 of 32 bytes */
FC_INLINE void pack_planes(uint8_t *p, const uint8_t *codes) {
    for (int i = 0; i < 32; i++)
        p[i] = (uint8_t)(codes[i] | codes[i + 32] << 2 | codes[i + 64] << 4 | codes[i + 96] << 6);
}

/* Bit `place` of eight bytes as one byte, the first lowest: the product's top byte collects them, and no two terms meet. */
FC_INLINE uint8_t bits_of_bytes(const uint8_t *codes, int place) {
    const uint64_t eight = read_u32(codes) | (uint64_t)read_u32(codes + 4) << 32;
    return (uint8_t)(((eight >> place & UINT64_C(0x0101010101010101)) * UINT64_C(0x0102040810204080)) >> 56);
}

/* Four codes of two bits as one byte, the first lowest */
FC_INLINE uint8_t pairs_of_bytes(const uint8_t *codes) {
    return (uint8_t)(codes[0] | codes[1] << 2 | codes[2] << 4 | codes[3] << 6);
}

#endif
