/*
 * Integers: the uniform ones of a range (clause RNG-INT-1) and random permutations (RNG-PERM-1).
 */
#include "core/kernels.h"
#include "rng/stream.h"
#include "rng/words.h"

enum { BLOCK = 512 };

/* Clauses: RNG-INT-1, RNG-ELEMENT-1, RNG-CHUNK-1.  span = high - low modulo 2^64 */
FC_INLINE int64_t in_range(uint64_t word, int64_t low, uint64_t span) {
    return (int64_t)((uint64_t)low + fc_multiply_high(FC_PLANT(RANDINT_LOW_HALF, word, word << 32), span));
}
void FC_K(randint)(uint64_t seed, uint64_t first, int64_t low, uint64_t span, int64_t *aligned_out, size_t n) {
    fc_any_i64 *out = aligned_out;
    _Alignas(64) uint64_t words[BLOCK];
    const int streaming = fc_worth_streaming(n * sizeof *out) && (uintptr_t)out % sizeof *out == 0;
    uint64_t state = fc_state(seed, first);
    while (n) {
        const int m = n < BLOCK ? (int)n : BLOCK;
        fc_words(state, FC_GAMMA, words, fc_whole_runs(m));
#ifdef __AVX2__
        if (streaming)
            for (int i = 0; i < m; i++) _mm_stream_si64((long long *)out + i, in_range(words[i], low, span));
        else
#endif
            for (int i = 0; i < m; i++) out[i] = in_range(words[i], low, span);
        state += (uint64_t)m * FC_GAMMA;
        out += m;
        n -= (size_t)m;
    }
    if (streaming) fc_stream_end();
}

/*
 * Fisher-Yates.  The draws depend on nothing but the seed, so they are made a block ahead of the swaps and the places they
 * point to are fetched meanwhile.  The permutation is built of 32-bit numbers in the lower half of the output, where twice as
 * many share a line and a page, and widened in place from the end; beyond 2^32 elements, of 64-bit ones.
 */
enum { DRAWS = 128 };
#define NARROW_TO (UINT64_C(1) << 32)

FC_INLINE uint64_t get(const char *base, uint64_t i, size_t size) {
    uint32_t narrow;
    uint64_t wide;
    return size == 4 ? (memcpy(&narrow, base + 4 * i, 4), narrow) : (memcpy(&wide, base + 8 * i, 8), wide);
}
FC_INLINE void put(char *base, uint64_t i, size_t size, uint64_t x) {
    const uint32_t narrow = (uint32_t)x;
    if (size == 4)
        memcpy(base + 4 * i, &narrow, 4);
    else
        memcpy(base + 8 * i, &x, 8);
}

typedef struct {
    uint64_t state, left; /* of the next draw; elements it may swap, its own included */
} drawing;

/* The next draws, at most DRAWS of them; returns how many.  Clause: RNG-PERM-1 */
FC_INLINE int draw(drawing *d, const char *base, size_t size, uint64_t *draws) {
    const int m = d->left - 1 < DRAWS ? (int)(d->left - 1) : DRAWS;
    fc_words(d->state, FC_GAMMA, draws, fc_whole_runs(m));
    for (int i = 0; i < m; i++) {
        draws[i] = fc_multiply_high(draws[i], FC_PLANT(PERM_OFF_BY_ONE, d->left - (uint64_t)i, d->left - (uint64_t)i - 1));
        __builtin_prefetch(base + draws[i] * size, 1);
    }
    d->state += (uint64_t)m * FC_GAMMA;
    d->left -= (uint64_t)m;
    return m;
}

/* size: of an element, 4 or 8 bytes.  Clause: RNG-PERM-1 */
FC_INLINE void permute(uint64_t seed, char *base, size_t size, size_t n) {
    _Alignas(64) uint64_t draws[2][DRAWS];
    for (uint64_t i = 0; i < n; i++) put(base, i, size, i);
    drawing d = {fc_state(seed, 0), n};
    uint64_t last = n - 1;
    int ahead = draw(&d, base, size, draws[0]);
    for (int which = 0; ahead; which ^= 1) {
        const int m = ahead;
        ahead = draw(&d, base, size, draws[which ^ 1]);
        for (int i = 0; i < m; i++, last--) {
            const uint64_t x = get(base, last, size), y = get(base, draws[which][i], size);
            put(base, last, size, y);
            put(base, draws[which][i], size, x);
        }
    }
}

/* Clause: RNG-PERM-1 */
void FC_K(randperm)(uint64_t seed, int64_t *aligned_out, size_t n) {
    char *out = (char *)aligned_out;
    if (n == 0) return;
    if (n > NARROW_TO) {
        permute(seed, out, 8, n);
        return;
    }
    permute(seed, out, 4, n);
    for (size_t i = n; i-- > 0;) put(out, i, 8, get(out, i, 4));
}
