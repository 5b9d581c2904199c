/*
 * The gaussian fill (clauses RNG-GAUSS-1 to RNG-GAUSS-4): Box-Muller in doubles, every value correctly rounded.
 *
 * Blocks of pairs go through short passes over arrays that stay in the first-level cache:
 *   words, logarithm, angle, polar form, then rounding to f32 with a test.
 * A pass is short so that many of its iterations are in flight at once; fused, the one long dependency chain would wait for
 * itself.  The passes use no libm: their polynomials are off by at most FC_GAUSSIAN_BOUND (BOUNDS.md), and the test finds
 * the few values that lie so close to a rounding border of f32 that this might matter.  Those are computed again, exactly.
 */
#include "core/kernels.h"
#include "rng/blocks.h"
#include "rng/bounds.h"
#include "rng/exact.h"
#include "rng/logarithm.h"
#include "rng/unit.h"

typedef struct {
    double cosine[BLOCK], sine[BLOCK];
} polar;

/* x = angle - quarter * pi/2, where angle is the contract's product, bit for bit, and quarter the nearest integer;
   k = 2^64 times the unit double */
FC_INLINE fv reduced_angle(fv k, uv *quarter) {
    const fv angle = fv_mul(k, fv_all(FC_TAU * 0x1p-64));
    const fv shifted = fv_fma(k, fv_all(0x1p-62), fv_all(0x1.8p52)); /* the product is exact: one rounding either way */
    const fv n = fv_sub(shifted, fv_all(0x1.8p52));
    *quarter = uv_of_bits(shifted);
#if FC_FMA
    const fv x = fv_fnma(n, fv_all(0x1.921fb54442d18p0), angle); /* exact */
    return fv_fnma(n, fv_all(0x1.1a62633145c07p-54), x);
#else
    fv x = fv_fnma(n, fv_all(0x1.921fb544p0), angle); /* pi/2 in three parts; n times the first two is exact */
    x = fv_fnma(n, fv_all(0x1.0b4611a6p-34), x);
    return fv_fnma(n, fv_all(0x1.3198a2e037073p-69), x);
#endif
}

/* r * cos and r * sin of x + quarter * pi/2, for |x| <= pi/4 */
FC_INLINE void polar_form(fv r, fv x, uv quarter, fv *cosine, fv *sine) {
    const fv q = fv_mul(x, x);
    fv a = fv_fma(fv_all(-0x1.a961a1c9e236dp-26), q, fv_all(0x1.71d76d1759901p-19));
    fv b = fv_fma(fv_all(-0x1.23c97e8e6d7f0p-22), q, fv_all(0x1.a00eb9b04b1eep-16));
    a = fv_fma(a, q, fv_all(-0x1.a019f9396a969p-13));
    b = fv_fma(b, q, fv_all(-0x1.6c16b348be5a1p-10));
    a = fv_fma(a, q, fv_all(0x1.1111110c8734ap-7));
    b = fv_fma(b, q, fv_all(0x1.55555545c5185p-5));
    a = fv_fma(a, q, fv_all(-0x1.5555555552239p-3));
    b = fv_fma(b, q, fv_all(-0x1.ffffffffe98afp-2));
    a = fv_fma(a, fv_mul(q, x), x);   /* sin x */
    b = fv_fma(b, q, fv_all(1));      /* cos x */
    /* a quarter turn takes (cos, sin) to (-sin, cos), a half turn negates both */
    uv odd = uv_left(quarter, 63);
    if (FC_PLANTED(GAUSS_QUADRANT_SWAPPED)) odd = uv_and(odd, uv_left(uv_right(uv_xor(quarter, uv_all(2)), 1), 63));
    const uv sign = uv_all(UINT64_C(1) << 63), half_turn = uv_and(uv_left(quarter, 62), sign);
    r = fv_of_bits(uv_xor(uv_of_bits(r), half_turn));
    *sine = fv_mul(r, fv_select(odd, a, b));
    *cosine = fv_mul(r, fv_select(odd, b, fv_of_bits(uv_xor(uv_of_bits(a), sign))));
}

/* m pairs (a multiple of FC_WORDS) before their last rounding.  Clause: RNG-GAUSS-1 */
static void pairs(uint64_t seed, uint64_t pair, double scale, int m, polar *out) {
    _Alignas(64) uint64_t words[BLOCK], quarter[BLOCK];
    _Alignas(64) double logarithm[BLOCK], angle[BLOCK];
    const uint64_t state = fc_state(seed, 2 * pair);
    fc_words(state, 2 * FC_GAMMA, words, m);
    for (int i = 0; i < m; i += FV_LANES) {
        const fv u = fv_add(fv_of_top_53(uv_load(words + i)), fv_all(0x1p11));
        fv_store(logarithm + i, fv_scaled_ln(u, 64, -2));
    }
    fc_words(state + FC_GAMMA, 2 * FC_GAMMA, words, m);
    for (int i = 0; i < m; i += FV_LANES) {
        uv j;
        fv_store(angle + i, reduced_angle(fv_of_top_53(uv_load(words + i)), &j));
        uv_store(quarter + i, j);
    }
    for (int i = 0; i < m; i += FV_LANES) {
        fv cosine, sine;
        const fv r = fv_mul(fv_sqrt(fv_load(logarithm + i)), fv_all(FC_PLANT(GAUSS_SCALE_F32, scale, 1.0)));
        polar_form(r, fv_load(angle + i), uv_load(quarter + i), &cosine, &sine);
        fv_store(out->cosine + i, cosine);
        fv_store(out->sine + i, sine);
    }
    if (FC_PLANTED(GAUSS_SCALE_F32))
        for (int i = 0; i < m; i++) {
            out->cosine[i] = (float)out->cosine[i] * (float)scale;
            out->sine[i] = (float)out->sine[i] * (float)scale;
        }
}

/*
 * The rounding test.  A value and the contract's round to the same f32 unless a border, half way between two f32, lies
 * between them or on one of them.  Where every result is a normal f32 or zero, borders are the doubles whose low 29 bits
 * are 2^28, and the bound is a number of units in the last place: FC_GAUSSIAN_BOUND * 2^53 at the top of a binade, half at
 * its bottom.  Zeros are exact in both.
 */
FC_INLINE uint32_t units(void) { return (uint32_t)(FC_WIDENED(FC_GAUSSIAN_BOUND) * 0x1p53) + 1; }
FC_INLINE int near_border(double x) { return ((uint32_t)f64_bits(x) + 0x10000000 + units()) % 0x20000000 <= 2 * units(); }
/* Where results may be subnormal or overflow, both ends are rounded and compared.  NaN and infinities: not in doubt. */
FC_INLINE int ends_differ(double x) {
    const double by = FC_WIDENED(FC_GAUSSIAN_BOUND);
    const float high = (float)(x * (1 + by)), low = (float)(x * (1 - by));
    return (high < low) | (high > low);
}
FC_INLINE int in_doubt(double x, int plain) {
    if (FC_PLANTED(GAUSS_TEST_DROPPED)) return 0;
    return plain ? near_border(x) : ends_differ(x);
}
/* |scale| in [2^-45, 2^124]: |r cos| and |r sin| are 0 or in [2^-80, 9], so results are 0 or normal and finite.  Scale 0 is
   not plain: its zeros are not in doubt either way. */
FC_INLINE int is_plain(double scale) {
    const double size = scale < 0 ? -scale : scale;
    return size >= 0x1p-45 && size <= 0x1p124;
}

/* Round m pairs to f32, interleaved; returns whether a value may be in doubt.  stream: out is aligned to 16 bytes */
#ifdef __AVX2__
FC_INLINE int rounded(const polar *in, int m, int plain, int stream, fc_any_f32 *out) {
    const uint32_t d = units();
    const __m256i offset = _mm256_set1_epi32((int)(0x10000000 + d)), mask = _mm256_set1_epi32(0x1fffffff);
    __m256i least = _mm256_set1_epi32(-1);
    for (int i = 0; i < m; i += 4) {
        const __m256d cosine = _mm256_loadu_pd(in->cosine + i), sine = _mm256_loadu_pd(in->sine + i);
        const __m256i low = _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castpd_ps(cosine), _mm256_castpd_ps(sine), 0x88));
        least = _mm256_min_epu32(least, _mm256_and_si256(_mm256_add_epi32(low, offset), mask)); /* all eight values at once */
        fc_store_pairs(out + 2 * i, _mm256_cvtpd_ps(cosine), _mm256_cvtpd_ps(sine), stream);
    }
    if (!plain) {
        for (int i = 0; i < m; i++)
            if (in_doubt(in->cosine[i], 0) || in_doubt(in->sine[i], 0)) return 1;
        return 0;
    }
    const __m256i limit = _mm256_set1_epi32((int)(2 * d));
    return _mm256_movemask_epi8(_mm256_cmpeq_epi32(_mm256_min_epu32(least, limit), least)) != 0;
}
#else
FC_INLINE int rounded(const polar *in, int m, int plain, int stream, fc_any_f32 *out) {
    (void)stream;
    uint64_t doubt = 0;
    for (int i = 0; i < m; i++) {
        out[2 * i] = (float)in->cosine[i];
        out[2 * i + 1] = (float)in->sine[i];
    }
    if (plain) {
        const uint64_t offset = 0x10000000 + units(), limit = 2 * units();
        for (int i = 0; i < m; i++) { /* the subtraction wraps below the limit */
            doubt |= ((f64_bits(in->cosine[i]) + offset) & 0x1fffffff) - limit - 1;
            doubt |= ((f64_bits(in->sine[i]) + offset) & 0x1fffffff) - limit - 1;
        }
        return (int)(doubt >> 63);
    }
    for (int i = 0; i < m; i++) doubt |= (uint64_t)(in_doubt(in->cosine[i], 0) | in_doubt(in->sine[i], 0));
    return (int)doubt;
}
#endif

/* m pairs to out; values in doubt are computed again, exactly */
FC_INLINE void fill_block(uint64_t seed, uint64_t pair, float scale, int stream, int m, fc_any_f32 *out) {
    const int plain = is_plain(scale);
    polar value;
    pairs(seed, pair, scale, m, &value);
    if (__builtin_expect(!rounded(&value, m, plain, stream, out), 1) || FC_PLANTED(GAUSS_FALLBACK_INEXACT)) return;
    for (int i = 0; i < m; i++) {
        const uint64_t element = 2 * (pair + (uint64_t)i);
        if (in_doubt(value.cosine[i], plain)) out[2 * i] = fc_exact_gaussian(seed, element, scale);
        if (in_doubt(value.sine[i], plain)) out[2 * i + 1] = fc_exact_gaussian(seed, element + 1, scale);
    }
}

/* Clauses: RNG-GAUSS-2, RNG-GAUSS-3, RNG-GAUSS-4, RNG-CHUNK-1 */
void FC_K(gaussian)(uint64_t seed, uint64_t first, float scale, float *out, size_t n) {
    fc_fill_by_blocks(fill_block, seed, first, scale, out, n);
}

void FC_K(gaussian_f64)(uint64_t seed, uint64_t pair, double scale, double *out, size_t count) { /* out: aligned */
    polar value;
    while (count) {
        const int m = count < BLOCK ? (int)count : BLOCK;
        pairs(seed, pair, scale, fc_whole_runs(m), &value);
        for (int i = 0; i < m; i++) {
            out[2 * i] = value.cosine[i];
            out[2 * i + 1] = value.sine[i];
        }
        pair += (uint64_t)m;
        out += 2 * m;
        count -= (size_t)m;
    }
}

/* Clause: RNG-NORMAL-1 */
void FC_K(add_mean)(float mean, float *aligned_out, size_t n) {
    fc_any_f32 *out = aligned_out;
    for (size_t i = 0; i < n; i++) out[i] += mean;
}
