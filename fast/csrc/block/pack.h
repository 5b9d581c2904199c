/* From lanes to bytes, and from bytes that hold one code each to bytes that hold several. */
#ifndef FC_BLOCK_PACK_H
#define FC_BLOCK_PACK_H
#include "block/bytes.h"
#include "block/wide.h"

/* Sixteen codes in lanes */
enum { FC_SIXTEEN = 16 / FC_WIDE };

/* Sixteen codes, each in -128 ... 127, as sixteen bytes */
FC_INLINE void store_codes(void *p, const i32w codes[FC_SIXTEEN]) {
#if defined(__AVX2__)
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32((__m256i)codes[0], (__m256i)codes[1]), 0xd8);
    const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    memcpy(p, &bytes, sizeof bytes);
#elif defined(__SSE2__)
    const __m128i low = _mm_packs_epi32((__m128i)codes[0], (__m128i)codes[1]), high = _mm_packs_epi32((__m128i)codes[2], (__m128i)codes[3]);
    const __m128i bytes = _mm_packs_epi16(low, high);
    memcpy(p, &bytes, sizeof bytes);
#else
    typedef int8_t i8w __attribute__((vector_size(FC_WIDE)));
    for (int i = 0; i < FC_SIXTEEN; i++) {
        const i8w bytes = __builtin_convertvector(codes[i], i8w);
        memcpy((uint8_t *)p + FC_WIDE * i, &bytes, sizeof bytes);
    }
#endif
}

/* The packing below works on words of eight bytes; a code shifted up by as many bits as its byte has free stays in that byte,
   whatever the byte order of the machine. */
FC_INLINE uint64_t eight_bytes(const uint8_t *p) {
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

/* n codes of four bits (a multiple of 8) in the low halves of n bytes, n more in the high halves */
FC_INLINE void pack_nibbles(uint8_t *p, const uint8_t *low, const uint8_t *high, int n) {
    for (int i = 0; i < n; i += 8) {
        const uint64_t word = eight_bytes(low + i) | eight_bytes(high + i) << 4;
        memcpy(p + i, &word, sizeof word);
    }
}

/* Four planes of 32 codes of two bits: bits 0-1, 2-3, 4-5, 6-7 of 32 bytes */
FC_INLINE void pack_planes(uint8_t *p, const uint8_t *codes) {
    for (int i = 0; i < 32; i += 8) {
        const uint64_t low = eight_bytes(codes + i) | eight_bytes(codes + i + 32) << 2;
        const uint64_t high = eight_bytes(codes + i + 64) << 4 | eight_bytes(codes + i + 96) << 6;
        const uint64_t word = low | high;
        memcpy(p + i, &word, sizeof word);
    }
}

/* Eight planes of 32 codes of which bit `place` is taken: bit g of byte i is that of code 32g + i. */
FC_INLINE void pack_bit_planes(uint8_t *p, const uint8_t *codes, int place) {
    for (int i = 0; i < 32; i += 8) {
        uint64_t word = 0;
        for (int g = 0; g < 8; g++) word |= (eight_bytes(codes + 32 * g + i) >> place & UINT64_C(0x0101010101010101)) << g;
        memcpy(p + i, &word, sizeof word);
    }
}

/* The low or the high bits of n codes, in bytes */
FC_INLINE void split_codes(const uint8_t *codes, int n, int bits, uint8_t *low, uint8_t *high) {
    for (int i = 0; i < n; i += 8) {
        const uint64_t word = eight_bytes(codes + i), mask = UINT64_C(0x0101010101010101) * ((1u << bits) - 1);
        const uint64_t below = word & mask, above = (word & ~mask) >> bits;
        memcpy(low + i, &below, sizeof below);
        memcpy(high + i, &above, sizeof above);
    }
}

/* Bit `place` of sixteen bytes, the first lowest.  In the portable way a product's top byte collects eight, and no two terms meet. */
FC_INLINE uint16_t bits_of_bytes(const uint8_t *codes, int place) {
#ifdef __SSE2__
    __m128i bytes;
    memcpy(&bytes, codes, sizeof bytes);
    return (uint16_t)_mm_movemask_epi8(_mm_slli_epi64(bytes, 7 - place));
#else
    unsigned bits = 0;
    for (int half = 0; half < 2; half++) {
        const uint64_t eight = read_u32(codes + 8 * half) | (uint64_t)read_u32(codes + 8 * half + 4) << 32;
        bits |= (unsigned)(((eight >> place & UINT64_C(0x0101010101010101)) * UINT64_C(0x0102040810204080)) >> 56) << 8 * half;
    }
    return (uint16_t)bits;
#endif
}

/* Four codes of two bits as one byte, the first lowest: of the lowest byte of each word the shifted neighbours are collected. */
FC_INLINE uint8_t pairs_of_bytes(const uint8_t *codes) {
    const uint32_t word = read_u32(codes);
    return (uint8_t)(word | word >> 6 | word >> 12 | word >> 18);
}

#endif
