/*
 * The dropout mask (clause RNG-DROPOUT-1): element i is kept iff (word i >> 11) < threshold.  And dropout itself, mask and
 * product in one pass: x * scale where an element is kept, else +0 (clause RNG-DROPOUT-2).
 */
#include "core/kernels.h"
#include "rng/words.h"
#include <string.h>

enum { BLOCK = 512 };

/* m bytes (a multiple of FC_WORDS on AVX2, any number else) of 0 and 1; threshold < 2^53 */
#ifdef __AVX2__
FC_INLINE void masked(const uint64_t *words, uint64_t threshold, int m, uint8_t *out) {
    /* word < threshold << 11, as a signed comparison */
    const __m256i sign = _mm256_set1_epi64x(INT64_MIN), below = _mm256_xor_si256(_mm256_set1_epi64x((int64_t)(threshold << 11)), sign);
    for (int i = 0; i < m; i += 16) {
        __m256i kept[4];
        for (int k = 0; k < 4; k++) {
            const __m256i word = _mm256_loadu_si256((const __m256i_u *)(words + i + 4 * k));
            kept[k] = _mm256_cmpgt_epi64(below, _mm256_xor_si256(word, sign));
        }
        /* -1 in 64 bits, to 32, to 16, to 8; packs work in halves: words 0 1 4 5 8 9 12 13 | 2 3 6 7 10 11 14 15 */
        const __m256i a = _mm256_packs_epi32(kept[0], kept[1]), b = _mm256_packs_epi32(kept[2], kept[3]);
        const __m256i c = _mm256_packs_epi32(a, b);
        const __m128i d = _mm_packs_epi16(_mm256_castsi256_si128(c), _mm256_extracti128_si256(c, 1));
        const __m128i order = _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
        _mm_storeu_si128((__m128i_u *)(out + i), _mm_and_si128(_mm_shuffle_epi8(d, order), _mm_set1_epi8(1)));
    }
}
#else
FC_INLINE void masked(const uint64_t *words, uint64_t threshold, int m, uint8_t *out) {
    for (int i = 0; i < m; i++) out[i] = (words[i] >> 11) < threshold;
}
#endif

/* Clauses: RNG-DROPOUT-1, RNG-CHUNK-1.  threshold = (1 - p) * 2^53 */
void FC_K(dropout_mask)(uint64_t seed, uint64_t first, uint64_t threshold, uint8_t *out, size_t n) {
    _Alignas(64) uint64_t words[BLOCK];
    uint8_t some[BLOCK];
    uint64_t state = fc_state(seed, FC_PLANT(DROPOUT_FROM_ZERO, first, 0));
    threshold += FC_PLANT(DROPOUT_INCLUSIVE, 0, 1);
    if (threshold >> 53) { /* p = 0, to within rounding: every element is kept */
        memset(out, 1, n);
        return;
    }
    for (; n >= BLOCK; out += BLOCK, n -= BLOCK, state += BLOCK * FC_GAMMA) {
        fc_words(state, FC_GAMMA, words, BLOCK);
        masked(words, threshold, BLOCK, out);
    }
    const int m = fc_whole_runs((int)n);
    fc_words(state, FC_GAMMA, words, m);
    masked(words, threshold, m, some);
    if (n) memcpy(out, some, n);
}

/* m elements; threshold <= 2^53.  stream: out is at a multiple of 32 bytes, and m of eight */
#ifdef __AVX2__
FC_INLINE void applied(const uint64_t *words, uint64_t threshold, float scale, int stream, const float *x, float *out, size_t m) {
    /* dropped: word > threshold * 2^11 - 1, as a signed comparison; the last one when all are kept */
    const __m256i sign = _mm256_set1_epi64x(INT64_MIN);
    const __m256i last = _mm256_xor_si256(_mm256_set1_epi64x((int64_t)((threshold << 11) - 1)), sign);
    const __m256 factor = _mm256_set1_ps(scale);
    size_t i = 0;
    for (; i < m / 8 * 8; i += 8) {
        __m256i dropped[2];
        for (size_t k = 0; k < 2; k++) {
            const __m256i word = _mm256_loadu_si256((const __m256i_u *)(words + i + 4 * k));
            dropped[k] = _mm256_cmpgt_epi64(_mm256_xor_si256(word, sign), last);
        }
        const __m256 pairs = _mm256_shuffle_ps(_mm256_castsi256_ps(dropped[0]), _mm256_castsi256_ps(dropped[1]), 0x88);
        const __m256 mask = _mm256_castsi256_ps(_mm256_permute4x64_epi64(_mm256_castps_si256(pairs), 0xd8));
        const __m256 in = _mm256_loadu_ps(x + i), product = FC_PLANT(DROPOUT_SCALE_LOST, _mm256_mul_ps(in, factor), in);
        const __m256 none = FC_PLANT(DROPOUT_MINUS_ZERO, _mm256_setzero_ps(), _mm256_and_ps(in, _mm256_set1_ps(-0.0f)));
        const __m256 value = _mm256_blendv_ps(product, none, mask);
        if (stream)
            _mm256_stream_ps(out + i, value);
        else
            _mm256_storeu_ps(out + i, value);
    }
    for (; i < m; i++) out[i] = words[i] >> 11 < threshold ? x[i] * FC_PLANT(DROPOUT_SCALE_LOST, scale, 1) : 0;
}
#else
FC_INLINE void applied(const uint64_t *words, uint64_t threshold, float scale, int stream, const float *x, float *out, size_t m) {
    (void)stream;
    for (size_t i = 0; i < m; i++) {
        const float none = FC_PLANT(DROPOUT_MINUS_ZERO, 0.0f, __builtin_copysignf(0, x[i]));
        out[i] = words[i] >> 11 < threshold ? x[i] * FC_PLANT(DROPOUT_SCALE_LOST, scale, 1) : none;
    }
}
#endif

/* Element i of x is element first + i of the stream.  Clauses: RNG-DROPOUT-1, RNG-DROPOUT-2 */
void FC_K(dropped)(int dtype, int stream, uint64_t seed, uint64_t first, uint64_t threshold, float scale, const void *x, void *out, size_t n) {
    _Alignas(64) uint64_t words[BLOCK];
    float wide[BLOCK], product[BLOCK];
    uint64_t state = fc_state(seed, first);
    const unsigned char *in = x;
    unsigned char *to = out;
    const size_t size = dtype == FC_f32 ? 4 : 2;
    for (size_t k = 0; k < n; k += BLOCK, in += BLOCK * size, to += BLOCK * size, state += BLOCK * FC_GAMMA) {
        const size_t count = n - k < BLOCK ? n - k : BLOCK;
        fc_words(state, FC_GAMMA, words, fc_whole_runs((int)count));
        if (dtype != FC_f32) {
            FC_K(casts)[0][dtype][FC_f32](in, wide, count);
            applied(words, threshold, scale, 0, wide, product, count);
            FC_K(casts)[0][FC_f32][dtype](product, to, count);
        } else if (stream && count == BLOCK) {
            applied(words, threshold, scale, 1, (const float *)(const void *)in, (float *)(void *)to, count);
        } else {
            applied(words, threshold, scale, 0, (const float *)(const void *)in, (float *)(void *)to, count);
        }
    }
}
