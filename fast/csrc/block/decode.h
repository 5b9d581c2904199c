/*
 * What the decoders share.  Every format decodes to small integer codes times a scale (plus an offset), so a kernel unpacks its
 * bits to sixteen signed bytes at a time and passes them to scaled() or shifted().
 */
#ifndef FC_BLOCK_DECODE_H
#define FC_BLOCK_DECODE_H
#include "block/bytes.h"
#include "block/layout.h"
#include "core/fault.h"
#include "core/kernels.h"
#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#endif

typedef uint8_t u8x16 __attribute__((vector_size(16)));
typedef int8_t i8x16 __attribute__((vector_size(16)));
typedef uint64_t u64x2 __attribute__((vector_size(16)));
typedef uint32_t u32x4 __attribute__((vector_size(16)));
typedef float f32x4 __attribute__((vector_size(16)));

/* -- bytes -- */

FC_INLINE u8x16 u8x16_load(const uint8_t *p) {
    u8x16 x;
    memcpy(&x, p, sizeof x);
    return x;
}
FC_INLINE i8x16 i8x16_all(int8_t x) { return (i8x16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
/* Eight bytes as a word in the machine's own order: for what is the same in every byte, and goes back to bytes. */
FC_INLINE uint64_t word_load(const uint8_t *p) {
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return x;
}
FC_INLINE uint32_t half_word_load(const uint8_t *p) {
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return x;
}
FC_INLINE u8x16 bytes_of_words(uint64_t first, uint64_t second) { return (u8x16)(u64x2){first, second}; }
/* Two words of a codebook: their element 0 is the lowest byte. */
FC_INLINE u8x16 bytes_of_rows(uint64_t first, uint64_t second) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return bytes_of_words(__builtin_bswap64(first), __builtin_bswap64(second));
#else
    return bytes_of_words(first, second);
#endif
}

/* a0 b0 a1 b1 ... of the low or the high halves */
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define FC_INTERLEAVED(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#endif
#endif
#ifndef FC_INTERLEAVED
#define FC_INTERLEAVED(a, b, ...) __builtin_shuffle(a, b, (u8x16){__VA_ARGS__})
#endif
FC_INLINE u8x16 interleaved_low(u8x16 a, u8x16 b) {
    return FC_INTERLEAVED(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
FC_INLINE u8x16 interleaved_high(u8x16 a, u8x16 b) {
    return FC_INTERLEAVED(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

/* The sixteen bits of two bytes, lowest first, as masks: -1 where the bit is set. */
FC_INLINE i8x16 masks_of_bits(uint8_t first, uint8_t second) {
    const uint64_t each = UINT64_C(0x0101010101010101);
    const u8x16 bit = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    return (i8x16)((bytes_of_words(first * each, second * each) & bit) == bit);
}
/* The codes, negative where the mask is set. */
FC_INLINE i8x16 with_signs(u8x16 magnitudes, i8x16 masks) { return ((i8x16)magnitudes ^ masks) - masks; }

/* table[code] for codes below 16 */
FC_INLINE i8x16 looked_up(const int8_t table[16], u8x16 codes) {
    i8x16 values;
#if defined(__AVX2__)
    memcpy(&values, table, sizeof values);
    values = (i8x16)_mm_shuffle_epi8((__m128i)values, (__m128i)codes);
#elif defined(__ARM_NEON) && defined(__aarch64__)
    values = (i8x16)vqtbl1q_s8(vld1q_s8(table), (uint8x16_t)codes);
#else /* the steps between the levels, summed up */
#define FC_STEP(k) (((i8x16)codes >= i8x16_all(k)) & i8x16_all((int8_t)(table[k] - table[k - 1])))
    values = i8x16_all(table[0]) + FC_STEP(1) + FC_STEP(2) + FC_STEP(3) + FC_STEP(4) + FC_STEP(5) + FC_STEP(6) + FC_STEP(7) + FC_STEP(8) +
             FC_STEP(9) + FC_STEP(10) + FC_STEP(11) + FC_STEP(12) + FC_STEP(13) + FC_STEP(14) + FC_STEP(15);
#undef FC_STEP
#endif
    return values;
}

/* -- floats -- */

/* An f16 field as the float it is (clause BLOCK-DECODE-1). */
FC_INLINE float scale_of(const uint8_t *field) {
#ifdef __F16C__
    return _cvtsh_ss(read_u16(field));
#else
    return read_scale(field);
#endif
}

FC_INLINE void store4(float *out, f32x4 x, int streaming) {
#ifdef __SSE2__
    if (streaming) {
        _mm_stream_ps(out, (__m128)x);
        return;
    }
#endif
    (void)streaming;
    memcpy(out, &x, sizeof x);
}
FC_INLINE f32x4 f32x4_all(float x) { return (f32x4){x, x, x, x}; }

/*
 * Clause BLOCK-DECODE-1: out[i] = F(codes[i]) * scale (+ offset), each operator one f32 operation.  Where the clause of a format
 * subtracts, the offset is minus the subtrahend, which is the same operation.
 */
FC_INLINE void decoded(i8x16 codes, float scale, int has_offset, float offset, float *out, int streaming) {
#if defined(__AVX2__)
    const __m128i v = (__m128i)codes;
    const __m256i wide[2] = {_mm256_cvtepi8_epi32(v), _mm256_cvtepi8_epi32(_mm_unpackhi_epi64(v, v))};
    for (int k = 0; k < 2; k++) {
        __m256 x = _mm256_mul_ps(_mm256_cvtepi32_ps(wide[k]), _mm256_set1_ps(scale));
        if (has_offset) x = _mm256_add_ps(x, _mm256_set1_ps(offset));
        if (streaming) {
            _mm_stream_ps(out + 8 * k, _mm256_castps256_ps128(x));
            _mm_stream_ps(out + 8 * k + 4, _mm256_extractf128_ps(x, 1));
        } else {
            _mm256_storeu_ps(out + 8 * k, x);
        }
    }
#elif defined(__SSE2__)
    const __m128i v = (__m128i)codes, low = _mm_unpacklo_epi8(v, v), high = _mm_unpackhi_epi8(v, v);
    const __m128i wide[4] = {_mm_unpacklo_epi16(low, low), _mm_unpackhi_epi16(low, low), _mm_unpacklo_epi16(high, high),
                             _mm_unpackhi_epi16(high, high)};
    for (int k = 0; k < 4; k++) {
        f32x4 x = (f32x4)_mm_cvtepi32_ps(_mm_srai_epi32(wide[k], 24)) * f32x4_all(scale);
        if (has_offset) x = x + f32x4_all(offset);
        store4(out + 4 * k, x, streaming);
    }
#else
    int8_t code[16];
    (void)streaming;
    memcpy(code, &codes, sizeof code);
    for (int i = 0; i < 16; i++) {
        const float x = (float)code[i] * scale;
        out[i] = has_offset ? x + offset : x;
    }
#endif
}
FC_INLINE void scaled(i8x16 codes, float scale, float *out, int streaming) {
    decoded(codes, scale, FC_PLANT(DECODED_MINUS_ZERO_LOST, 0, 1), 0, out, streaming);
}
FC_INLINE void shifted(u8x16 codes, float scale, float offset, float *out, int streaming) {
    decoded((i8x16)codes, scale, 1, offset, out, streaming);
}

/* -- whole arrays -- */

/* Whether a result that is past the caches can go around them; a plain store would first read the line that it overwrites. */
FC_INLINE int can_stream(const float *out) {
#ifdef __SSE2__
    return (uintptr_t)out % 16 == 0;
#else
    (void)out;
    return 0;
#endif
}

/* The kernel of a format whose block is decoded by <format>_block(block, out, streaming); clause BLOCK-CHUNK-1. */
#define FC_DECODER(format)                                                                                                  \
    FC_INLINE void format##_blocks(const block_##format *block, float *out, size_t n, int streaming) {                      \
        const size_t end = FC_PLANT(LONG_RANGE_CUT, n, n < 1024 ? n : n - 1);                                               \
        for (size_t i = 0; i < end; i++) format##_block(block + i, out + i * FC_SIZE_##format, streaming);                  \
    }                                                                                                                       \
    void FC_K(decode_##format)(const uint8_t *blocks, float *out, size_t n, int stream) {                                   \
        const block_##format *block = (const block_##format *)blocks;                                                       \
        if (stream && can_stream(out)) {                                                                                    \
            format##_blocks(block, out, n, 1);                                                                              \
            FC_STREAM_END();                                                                                                \
        } else {                                                                                                            \
            format##_blocks(block, out, n, 0);                                                                              \
        }                                                                                                                   \
    }
#ifdef __SSE2__
#define FC_STREAM_END() _mm_sfence()
#else
#define FC_STREAM_END() ((void)0)
#endif

#endif
