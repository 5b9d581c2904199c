/*
 * What the encoders of iq2 and iq1 share: energy and weights, octets as codes, and snapping an octet to its codebook
 * (clause BLOCK-SEARCH-6).  Every sum is left to right; lanes hold sums that do not depend on each other.
 */
#ifndef FC_BLOCK_SNAP_H
#define FC_BLOCK_SNAP_H
#include "block/bytes.h"
#include "block/codebook.h"
#include "block/layout.h"
#include "block/round.h"
#include "core/fault.h"
#include "core/kernels.h"

enum { BLOCK = 256, OCTET = 8 };
#define LARGEST 0x1.fffffep+127f

typedef uint16_t u16x8 __attribute__((vector_size(16)));

/* A reciprocal that is not finite is +0.  Clause: BLOCK-SCAN-1 */
FC_INLINE float inverse(float v) {
    const float r = 1 / v;
    return __builtin_fabsf(r) <= LARGEST ? r : 0;
}

/* The code of a group's scale, 0..most.  Clause: BLOCK-SEARCH-6 */
FC_INLINE uint32_t scale_code(float r, float s, int32_t most) {
    const int32_t n = even(0.5f * (r * s - 1));
    return (uint32_t)(n < 0 ? 0 : n > most ? most : n);
}

/* -- energy and weights -- */

FC_INLINE float energy(const float *x) {
    float sum = 0;
    for (int i = 0; i < BLOCK; i++) sum += x[i] * x[i];
    return sum;
}

/* The importance of block i of a call, or NULL.  Clause: BLOCK-IMATRIX-1 */
FC_INLINE const float *importance_of(const fc_encoding *how, size_t i) {
    if (!how->importance) return NULL;
    return how->importance + BLOCK * ((FC_PLANT(IMPORTANCE_FIRST_BLOCK, how->first + i, 0)) % how->row_blocks);
}

FC_INLINE void block_weights(const float *x, float v, const float *importance, float *w) {
    for (int i = 0; i < BLOCK; i++) w[i] = __builtin_sqrtf(v + x[i] * x[i]);
    if (importance)
        for (int i = 0; i < BLOCK; i++) w[i] = importance[i] * w[i];
}

/* -- codes -- */

/* Eight levels, one in each lane, as a code. */
FC_INLINE uint32_t code_of_levels(i32x8 level) {
    uint32_t code = 0;
    for (int k = 0; k < OCTET; k++) code |= (uint32_t)level[k] << 2 * k;
    return code;
}
FC_INLINE int code_level(uint32_t code, int k) { return (int)(code >> 2 * k & 3); }

/* The index of a code that is a point of the codebook. */
FC_INLINE uint32_t code_index(const fc_codebook *book, uint32_t code) { return (uint32_t)book->map[fc_codebook_key_8(code)]; }

/* -- snapping -- */

/* An octet's error terms b*e*e, for each element and level, ready to be looked up by eight candidates at a time: a candidate's
   error is the sum of eight of them, so it has the same bits as if it were computed for the candidate alone. */
typedef struct octet_terms {
#ifdef __AVX2__
    f32x8 level[OCTET]; /* of levels 0 1 2 2 0 1 2 2 */
#else
    f32x8 zero[OCTET];         /* of level 0, in all lanes */
    i32x8 one[OCTET], two[OCTET]; /* what turns its bits into those of level 1, of level 2 */
#endif
} octet_terms;

/* Weights b, targets t, scale s; level l stands for q0 + l*step (exact). */
FC_INLINE void make_terms(octet_terms *terms, const float *b, const float *t, float s, float q0, float step) {
#ifdef __AVX2__
    const f32x8 q = f32x8_all(q0) + (f32x8){0, 1, 2, 2, 0, 1, 2, 2} * f32x8_all(step), sq = f32x8_all(s) * q;
    for (int k = 0; k < OCTET; k++) {
        const f32x8 e = sq - f32x8_all(t[k]);
        terms->level[k] = f32x8_all(b[k]) * e * e;
    }
#else
    float of[3][OCTET];
    for (int l = 0; l < 3; l++) {
        const float sq = s * (q0 + (float)l * step);
        for (int k = 0; k < OCTET; k++) {
            const float e = sq - t[k];
            of[l][k] = b[k] * e * e;
        }
    }
    for (int k = 0; k < OCTET; k++) {
        const i32x8 zero = bits_of_f32x8(f32x8_all(of[0][k]));
        terms->zero[k] = f32x8_all(of[0][k]);
        terms->one[k] = zero ^ bits_of_f32x8(f32x8_all(of[1][k]));
        terms->two[k] = zero ^ bits_of_f32x8(f32x8_all(of[2][k]));
    }
#endif
}

/* The terms of element k for eight candidates.  Bits of other elements above a level do no harm. */
FC_INLINE f32x8 terms_of(const octet_terms *terms, i32x8 code, int k) {
#ifdef __AVX2__
    return (f32x8)_mm256_permutevar_ps((__m256)terms->level[k], (__m256i)(code >> 2 * k)); /* looks at the lowest two bits */
#else
    const i32x8 one = (i32x8)((u32x8)code << (31 - 2 * k)) >> 31, two = (i32x8)((u32x8)code << (30 - 2 * k)) >> 31;
    return f32x8_of_bits(bits_of_f32x8(terms->zero[k]) ^ (one & terms->one[k]) ^ (two & terms->two[k]));
#endif
}

/* The first lane in the order of `at` among those where `best` is least; -1 where none is below LARGEST. */
FC_INLINE int32_t first_of_least(f32x8 best, i32x8 at) {
#ifdef __AVX2__
    __m256 least = _mm256_min_ps((__m256)best, _mm256_permute2f128_ps((__m256)best, (__m256)best, 1));
    least = _mm256_min_ps(least, _mm256_permute_ps(least, 0x4e));
    least = _mm256_min_ps(least, _mm256_permute_ps(least, 0xb1));
    if (!(_mm256_cvtss_f32(least) < LARGEST)) return -1;
    const i32x8 place = select_i32(best == (f32x8)least, at, i32x8_all(INT32_MAX));
    __m128i first = _mm_min_epi32(_mm256_castsi256_si128((__m256i)place), _mm256_extracti128_si256((__m256i)place, 1));
    first = _mm_min_epi32(first, _mm_shuffle_epi32(first, 0x4e));
    return _mm_cvtsi128_si32(_mm_min_epi32(first, _mm_shuffle_epi32(first, 0xb1)));
#else
    float least = LARGEST;
    int32_t first = -1;
    for (int i = 0; i < 8; i++)
        if (best[i] < least || (best[i] == least && at[i] < first)) {
            least = best[i];
            first = at[i];
        }
    return first;
#endif
}

/* The neighbour of an absent code with the least error, the first of equals, as a code; -1 where no error is below LARGEST. */
/* Clause: BLOCK-SEARCH-6 */
static int32_t nearest_neighbour(const fc_codebook *book, uint32_t key, const octet_terms *terms) {
    const uint16_t *list = book->list + book->start[key];
    const int32_t length = (int32_t)(book->start[key + 1] - book->start[key]);
    f32x8 best = f32x8_all(LARGEST);
    i32x8 at = {0}, place = {0, 1, 2, 3, 4, 5, 6, 7};
    for (int32_t i = 0; i < length; i += 8, place += 8) {
        u16x8 some;
        memcpy(&some, list + i, sizeof some); /* behind the last list there is room to read */
        const i32x8 code = __builtin_convertvector(some, i32x8);
        f32x8 error = terms_of(terms, code, 0);
        for (int k = 1; k < OCTET; k++) error += terms_of(terms, code, k);
        const i32x8 better = (error < best) & (place < i32x8_all(length));
        best = select_f32(better, error, best);
        at = select_i32(better, place, at);
    }
    const int32_t first = first_of_least(best, at);
    return first < 0 ? -1 : list[first];
}

#endif
