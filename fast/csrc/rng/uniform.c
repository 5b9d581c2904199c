/*
 * The uniform fill (clauses RNG-UNIF-1, RNG-UNIF-2).
 */
#include "core/kernels.h"
#include "rng/stream.h"
#include "rng/words.h"

enum { BLOCK = 512 };

typedef struct {
    double lo, step;    /* v = lo + step * k, k = 2^64 times the unit double: the power of two moves without rounding */
    uv high, low;       /* where lo is 0 and step a power of two, the product is exact and goes into the conversion's ... */
    fv offset;          /* ... exponents: see fv_of_integer */
    float last;         /* the largest f32 below hi */
} mapping;

/* Clause: RNG-UNIF-2 */
static float next_below(float x) {
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = x == 0 ? INT32_MIN + 1 : x > 0 ? bits - 1 : bits + 1;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Clauses: RNG-UNIF-1, RNG-UNIF-2 */
FC_INLINE fv mapped(uv word, const mapping *map, int exact) {
    if (exact) return fv_of_halves(uv_and(word, uv_all(~UINT64_C(0x7ff))), map->high, map->low, map->offset);
    return fv_add(fv_all(map->lo), fv_mul(fv_all(map->step), fv_of_top_53(word)));
}

/* m values (a multiple of FC_WORDS) */
FC_INLINE void fill_block(uint64_t state, const mapping *map, int exact, int stream, int m, fc_any_f32 *out) {
    _Alignas(64) uint64_t words[BLOCK];
    fc_words(state, FC_GAMMA, words, m);
    for (int i = 0; i < m; i += FV_LANES) {
        const fv v = mapped(uv_load(words + i), map, exact);
#ifdef __AVX2__
        const __m256 both = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(v.r[0])), _mm256_cvtpd_ps(v.r[1]), 1);
        const __m256 clamped = _mm256_min_ps(_mm256_set1_ps(map->last), both); /* of equals the second, so -0 and +0 stay */
        fc_store_8(out + i, clamped, stream);
#else
        (void)stream;
        const float x = (float)v;
        out[i] = map->last < x ? map->last : x;
#endif
    }
}

FC_INLINE void fill(uint64_t seed, uint64_t first, const mapping *map, int exact, fc_any_f32 *out, size_t n) {
    _Alignas(64) float some[BLOCK];
    const int streaming = fc_worth_streaming(n * sizeof *out);
    const size_t ahead = (0 - (uintptr_t)out / sizeof *out) % 8; /* elements up to where streaming stores may start */
    uint64_t state = fc_state(seed, first);
    while (n) {
        const int align = streaming && (uintptr_t)out % 32 && (uintptr_t)out % sizeof *out == 0;
        const size_t take = align ? ahead : n < BLOCK ? n : BLOCK;
        if (take < BLOCK) {
            fill_block(state, map, exact, 0, fc_whole_runs((int)take), some);
            memcpy(out, some, take * sizeof *out);
        } else if (streaming && (uintptr_t)out % 32 == 0)
            fill_block(state, map, exact, 1, BLOCK, out);
        else
            fill_block(state, map, exact, 0, BLOCK, out);
        state += take * FC_GAMMA;
        out += take;
        n -= take;
    }
    if (streaming) fc_stream_end();
}

/* Clauses: RNG-UNIF-1, RNG-UNIF-2, RNG-ELEMENT-1, RNG-CHUNK-1 */
void FC_K(uniform)(uint64_t seed, uint64_t first, float lo, float hi, float *out, size_t n) {
    const double width = (double)hi - (double)lo;
    mapping map = {.lo = lo, .step = width * 0x1p-64, .last = FC_PLANT(UNIFORM_NO_CLAMP, next_below(hi), __builtin_inff())};
    const uint64_t exponent = f64_bits(map.step) - f64_bits(1.0); /* of a power of two */
    if (lo == 0 && exponent << 12 == 0) {
        map.high = uv_all(UINT64_C(0x4530000000000000) + exponent);
        map.low = uv_all(UINT64_C(0x4330000000000000) + exponent);
        map.offset = fv_all(0x1.00000001p84 * map.step);
        fill(seed, first, &map, 1, out, n);
    } else
        fill(seed, first, &map, 0, out, n);
}
