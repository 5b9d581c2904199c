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

enum { BLOCK = 256, OCTET = 8, MOST_NEIGHBOURS = 292 }; /* the longest list: clause BLOCK-TABLE-1 */
#define LARGEST 0x1.fffffep+127f

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

/* Clauses: BLOCK-SEARCH-6, BLOCK-ENCODE-1 */
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

/* Clause: BLOCK-SEARCH-6 */
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

#ifdef __AVX2__

/* An octet's error terms b*e*e for each element and level, as tables that eight candidates look up at a time: a candidate's error
   is the sum of eight of them, and has the same bits as if it were computed for the candidate alone. */
typedef struct octet_terms {
    f32x8 level[OCTET]; /* of levels 0 1 2 2 0 1 2 2 */
} octet_terms;

/* Weights b, targets t, scale s; level l stands for q0 + l*step (exact). */
FC_INLINE void make_terms(octet_terms *terms, const float *b, const float *t, float s, float q0, float step) {
    const f32x8 q = f32x8_all(q0) + (f32x8){0, 1, 2, 2, 0, 1, 2, 2} * f32x8_all(step), sq = f32x8_all(s) * q;
    for (int k = 0; k < OCTET; k++) {
        const f32x8 e = sq - f32x8_all(t[k]);
        terms->level[k] = f32x8_all(b[k]) * e * e;
    }
}

/* The terms of element k for eight candidates; the lookup minds the lowest two bits of a lane only. */
FC_INLINE f32x8 terms_of(const octet_terms *terms, i32x8 code, int k) {
    return (f32x8)_mm256_permutevar_ps((__m256)terms->level[k], (__m256i)(code >> 2 * k));
}

/* Of the lanes where `best` is least the first in the order of `at`; -1 where none is below LARGEST. */
FC_INLINE int32_t first_of_least(f32x8 best, i32x8 at) {
    __m256 least = _mm256_min_ps((__m256)best, _mm256_permute2f128_ps((__m256)best, (__m256)best, 1));
    least = _mm256_min_ps(least, _mm256_permute_ps(least, 0x4e));
    least = _mm256_min_ps(least, _mm256_permute_ps(least, 0xb1));
    if (!(_mm256_cvtss_f32(least) < LARGEST)) return -1;
    const i32x8 place = select_i32(best == (f32x8)least, at, i32x8_all(INT32_MAX));
    __m128i first = _mm_min_epi32(_mm256_castsi256_si128((__m256i)place), _mm256_extracti128_si256((__m256i)place, 1));
    first = _mm_min_epi32(first, _mm_shuffle_epi32(first, 0x4e));
    return _mm_cvtsi128_si32(_mm_min_epi32(first, _mm_shuffle_epi32(first, 0xb1)));
}

/* The neighbour of an absent code with the least error, the first of equals, as a code; -1 where no error is below LARGEST. */
/* Clause: BLOCK-SEARCH-6 */
static int32_t nearest_neighbour(const fc_codebook *book, uint32_t key, const octet_terms *terms) {
    const uint16_t *list = book->list + book->start[key];
    const int32_t length = (int32_t)(book->start[key + 1] - book->start[key]);
    f32x8 best = f32x8_all(LARGEST);
    i32x8 at = {0}, place = {0, 1, 2, 3, 4, 5, 6, 7};
    for (int32_t i = 0; i < length; i += 8, place += 8) {
        const void *next = list + i; /* behind the last list there is room to read: FC_CODEBOOK_OVERREAD */
        const i32x8 code = (i32x8)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)next));
        f32x8 error = terms_of(terms, code, 0);
        for (int k = 1; k < OCTET; k++) error += terms_of(terms, code, k);
        const i32x8 better = (error < best) & (place < i32x8_all(length));
        best = select_f32(better, error, best);
        at = select_i32(better, place, at);
    }
    const int32_t first = first_of_least(best, at);
    return first < 0 ? -1 : list[first];
}

#else

typedef float f32x4 __attribute__((vector_size(16)));

/* An octet's error terms b*e*e for each element and level. */
typedef struct octet_terms {
    float level[3][OCTET];
} octet_terms;

/* Weights b, targets t, scale s; level l stands for q0 + l*step (exact). */
FC_INLINE void make_terms(octet_terms *terms, const float *b, const float *t, float s, float q0, float step) {
    for (int l = 0; l < 3; l++) {
        const f32x8 e = f32x8_all(s * (q0 + (float)l * step)) - f32x8_load(t);
        f32x8_store(terms->level[l], f32x8_load(b) * e * e);
    }
}

/* The sums over four elements from k on, by the eight bits of their levels. */
FC_INLINE void half_sums(const octet_terms *terms, int k, float *sums) {
    const float (*of)[OCTET] = terms->level;
    const f32x4 none = {of[0][k], of[1][k], of[2][k], of[2][k]};
    for (int l = 0; l < 3; l++) {
        const f32x4 one = none + of[l][k + 1];
        for (int m = 0; m < 3; m++) {
            const f32x4 two = one + of[m][k + 2];
            for (int n = 0; n < 3; n++) {
                const f32x4 three = two + of[n][k + 3];
                memcpy(sums + 4 * l + 16 * m + 64 * n, &three, sizeof three);
            }
        }
    }
}

/* A candidate's error as the rule has it: summed left to right. */
FC_INLINE float exact_error(const octet_terms *terms, uint32_t code) {
    float sum = 0;
    for (int k = 0; k < OCTET; k++) sum += terms->level[code_level(code, k)][k];
    return sum;
}

/*
 * The same by a filter: an error is first taken as the sum of two halves, looked up in a table each.  All terms are positive, so
 * in whatever order they are added, the sum is within 7 * 2^-24 of the true one (relative; sums of subnormals are exact).  The
 * winner's is therefore within a factor 1 + 2^-18 of the least of the list, and only what is gets its exact error.  Close to the
 * overflow, or where a term is a NaN, everything does.
 */
/* Clause: BLOCK-SEARCH-6 */
static int32_t nearest_neighbour(const fc_codebook *book, uint32_t key, const octet_terms *terms) {
    const uint16_t *list = book->list + book->start[key];
    const int32_t length = (int32_t)(book->start[key + 1] - book->start[key]);
    float low[256], high[256], error[MOST_NEIGHBOURS + 8];
    half_sums(terms, 0, low);
    half_sums(terms, 4, high);
    float least = __builtin_inff();
    for (int32_t i = 0; i < length; i++) {
        error[i] = low[list[i] & 255] + high[list[i] >> 8];
        least = error[i] < least ? error[i] : least;
    }
    for (int32_t i = length; i < length + 8; i++) error[i] = __builtin_nanf("");
    const f32x8 bound = f32x8_all(least < 0x1p120f ? least * (1 + 0x1p-18f) : __builtin_inff());
    float best = LARGEST;
    int32_t winner = -1;
    for (int32_t i = 0; i < length; i += 8)
        for (uint32_t close = lane_bits(at_least(bound, f32x8_load(error + i))); close; close &= close - 1) {
            const uint32_t code = list[i + __builtin_ctz(close)];
            const float e = exact_error(terms, code);
            if (e < best) {
                best = e;
                winner = (int32_t)code;
            }
        }
    return winner;
}

#endif

#endif
