/*
 * Runs of words: out[i] = mix(state + i * step), the first pass of every kernel (clauses RNG-STREAM-1, RNG-AT-1).
 */
#ifndef FC_RNG_WORDS_H
#define FC_RNG_WORDS_H
#include "rng/vector.h"

enum { FC_WORDS = 16 }; /* runs come in multiples of this */

/* Round a count up to whole runs. */
FC_INLINE int fc_whole_runs(int n) { return (n + FC_WORDS - 1) / FC_WORDS * FC_WORDS; }

#ifdef __AVX2__
/*
 * Three registers and four scalars at a time: the vector unit alone is bound by its one shifter and one multiplier, and
 * meanwhile the integer units hash every fourth word for nothing.
 */
enum { FC_WORDS_REGISTERS = 3, FC_WORDS_SCALARS = 4 };
#define FC_EACH_REGISTER for (int r = 0; r < FC_WORDS_REGISTERS; r++)

/* 64-bit products by a constant: low x low in full, the two cross products added to the upper half. */
FC_INLINE void fc_words_multiply(__m256i z[FC_WORDS_REGISTERS], uint64_t constant) {
    const __m256i low = _mm256_set1_epi64x((long long)constant), high = _mm256_set1_epi64x((long long)(constant >> 32));
    const __m256i up = _mm256_setr_epi8(-1, -1, -1, -1, 0, 1, 2, 3, -1, -1, -1, -1, 8, 9, 10, 11, /* low half to upper half */
                                        -1, -1, -1, -1, 0, 1, 2, 3, -1, -1, -1, -1, 8, 9, 10, 11);
    __m256i cross[FC_WORDS_REGISTERS], other[FC_WORDS_REGISTERS];
    FC_EACH_REGISTER cross[r] = _mm256_shuffle_epi32(z[r], 0xf5);
    FC_EACH_REGISTER other[r] = _mm256_mul_epu32(z[r], high);
    FC_EACH_REGISTER cross[r] = _mm256_mul_epu32(cross[r], low);
    FC_EACH_REGISTER z[r] = _mm256_mul_epu32(z[r], low);
    FC_EACH_REGISTER cross[r] = _mm256_add_epi64(cross[r], other[r]);
    FC_EACH_REGISTER cross[r] = _mm256_shuffle_epi8(cross[r], up);
    FC_EACH_REGISTER z[r] = _mm256_add_epi64(z[r], cross[r]);
}
FC_INLINE void fc_words_shift(__m256i z[FC_WORDS_REGISTERS], int k) {
    FC_EACH_REGISTER z[r] = _mm256_xor_si256(z[r], _mm256_srli_epi64(z[r], k));
}
/* n: a multiple of FC_WORDS */
FC_INLINE void fc_words(uint64_t state, uint64_t step, uint64_t *out, int n) {
    __m256i state4[FC_WORDS_REGISTERS];
    for (uint64_t r = 0; r < FC_WORDS_REGISTERS; r++)
        state4[r] = _mm256_setr_epi64x((long long)(state + 4 * r * step), (long long)(state + (4 * r + 1) * step),
                                       (long long)(state + (4 * r + 2) * step), (long long)(state + (4 * r + 3) * step));
    state += 4 * FC_WORDS_REGISTERS * step;
    const __m256i stride = _mm256_set1_epi64x((long long)(FC_WORDS * step));
    for (int i = 0; i < n; i += FC_WORDS) {
        __m256i z[FC_WORDS_REGISTERS];
        FC_EACH_REGISTER {
            z[r] = state4[r];
            state4[r] = _mm256_add_epi64(state4[r], stride);
        }
        fc_words_shift(z, 30);
        fc_words_multiply(z, FC_MIX_1);
        fc_words_shift(z, 27);
        fc_words_multiply(z, FC_MIX_2);
        fc_words_shift(z, FC_MIX_SHIFT);
        FC_EACH_REGISTER _mm256_storeu_si256((__m256i_u *)(out + i + 4 * r), z[r]);
        for (uint64_t s = 0; s < FC_WORDS_SCALARS; s++) {
            uint64_t x = state + s * step;
            __asm__("" : "+r"(x)); /* keeps the compiler from hashing these in the vector unit too */
            out[i + 4 * FC_WORDS_REGISTERS + (int)s] = fc_mix(x);
        }
        state += FC_WORDS * step;
    }
}
_Static_assert(4 * FC_WORDS_REGISTERS + FC_WORDS_SCALARS == FC_WORDS, "one turn makes one run");
#else
FC_INLINE void fc_words(uint64_t state, uint64_t step, uint64_t *out, int n) {
    for (int i = 0; i < n; i++) out[i] = fc_mix(state + (uint64_t)i * step);
}
#endif

#endif
