/*
 * The gumbel fill (clauses RNG-GUMBEL-1, RNG-GUMBEL-2): -ln(-ln u) in doubles, every value correctly rounded.
 *
 * As in gaussian.c: short passes over a block, a rounding test, an exact fallback.  The inner logarithm's relative error is
 * an absolute one after the outer, so the bound is FC_GUMBEL_BOUND * (1 + |value|); near 0 the test simply fails more often.
 */
#include "core/kernels.h"
#include "rng/bounds.h"
#include "rng/exact.h"
#include "rng/logarithm.h"
#include "rng/stream.h"
#include "rng/unit.h"
#include "rng/words.h"

enum { BLOCK = 512 };

/* m values (a multiple of FC_WORDS) before their last rounding.  Clause: RNG-GUMBEL-1 */
static void values(uint64_t seed, uint64_t first, int m, double *out) {
    _Alignas(64) uint64_t words[BLOCK];
    fc_words(fc_state(seed, first), FC_GAMMA, words, m);
    for (int i = 0; i < m; i += FV_LANES) {
        /* 2^64 u; the contract's own rounding of word + 1/2, and its minimum (RNG-GUMBEL-2) */
        const fv k = fv_add(fv_of_top_53(uv_load(words + i)), fv_all(0x1p10));
        const fv u = fv_min(k, fv_all(FC_PLANT(GUMBEL_NO_CLAMP, 0x1.fffffffffffffp63, 0x1p64)));
        fv_store(out + i, fv_scaled_ln(u, 64, -1));
    }
    for (int i = 0; i < m; i += FV_LANES) fv_store(out + i, fv_scaled_ln(fv_load(out + i), 0, -1));
}

FC_INLINE double reach(double y) {
    const double by = FC_WIDENED(FC_GUMBEL_BOUND);
    return by + by * (y < 0 ? -y : y);
}
FC_INLINE int in_doubt(double y) {
    if (FC_PLANTED(GUMBEL_TEST_DROPPED)) return 0;
    const double d = reach(y);
    return (float)(y + d) != (float)(y - d);
}

/* Round m values to f32; returns whether one is in doubt: whether the ends of its interval round apart.  stream: out is
   aligned to 16 bytes */
#ifdef __AVX2__
FC_INLINE int rounded(const double *in, int m, int stream, fc_any_f32 *out) {
    const __m256d by = _mm256_set1_pd(FC_WIDENED(FC_GUMBEL_BOUND)), sign = _mm256_set1_pd(-0.0);
    __m128 doubt = _mm_setzero_ps();
    for (int i = 0; i < m; i += 4) {
        const __m256d y = _mm256_loadu_pd(in + i), d = _mm256_fmadd_pd(_mm256_andnot_pd(sign, y), by, by);
        const __m128 high = _mm256_cvtpd_ps(_mm256_add_pd(y, d)), low = _mm256_cvtpd_ps(_mm256_sub_pd(y, d));
        doubt = _mm_or_ps(doubt, _mm_cmpneq_ps(high, low));
        fc_store_4(out + i, FC_PLANT(GUMBEL_TEST_DROPPED, high, _mm256_cvtpd_ps(y)), stream);
    }
    return _mm_movemask_ps(doubt);
}
#else
FC_INLINE int rounded(const double *in, int m, int stream, fc_any_f32 *out) {
    (void)stream;
    int doubt = 0;
    for (int i = 0; i < m; i++) {
        doubt |= in_doubt(in[i]);
        out[i] = (float)in[i];
    }
    return doubt;
}
#endif

/* m values to out; values in doubt are computed again, exactly */
FC_INLINE void fill_block(uint64_t seed, uint64_t first, int m, int stream, fc_any_f32 *out) {
    _Alignas(64) double value[BLOCK];
    values(seed, first, m, value);
    if (!rounded(value, m, stream, out)) return;
    for (int i = 0; i < m; i++)
        if (in_doubt(value[i])) out[i] = FC_PLANT(GUMBEL_FALLBACK_INEXACT, fc_exact_gumbel(seed, first + (uint64_t)i), (float)value[i]);
}

/* Clauses: RNG-GUMBEL-1, RNG-GUMBEL-2, RNG-ELEMENT-1, RNG-CHUNK-1 */
void FC_K(gumbel)(uint64_t seed, uint64_t first, float *aligned_out, size_t n) {
    fc_any_f32 *out = aligned_out;
    const int streaming = fc_worth_streaming(n * sizeof *out) && (uintptr_t)out % 16 == 0;
    _Alignas(64) float some[BLOCK];
    for (; n >= BLOCK; first += BLOCK, out += BLOCK, n -= BLOCK)
        if (streaming)
            fill_block(seed, first, BLOCK, 1, out);
        else
            fill_block(seed, first, BLOCK, 0, out);
    if (n) {
        fill_block(seed, first, fc_whole_runs((int)n), 0, some);
        memcpy(out, some, n * sizeof *out);
    }
    if (streaming) fc_stream_end();
}

void FC_K(gumbel_f64)(uint64_t seed, uint64_t first, double *out, size_t n) {
    _Alignas(64) double value[BLOCK];
    while (n) {
        const int m = n < BLOCK ? (int)n : BLOCK;
        values(seed, first, fc_whole_runs(m), value);
        memcpy(out, value, (size_t)m * sizeof *out);
        first += (uint64_t)m;
        out += m;
        n -= (size_t)m;
    }
}
