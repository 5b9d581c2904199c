/*
 * The fast gaussian fill (clauses RNG-FAST-1, RNG-FAST-2): Box-Muller in f32.  The clause prescribes every operation, so
 * here an expression is the contract: one rounding per operation, in the order written, no fma (NUM-ARITH-1).
 */
#include "core/kernels.h"
#include "rng/blocks.h"

/*
 * The clause's steps, cut where a long dependency chain would wait for itself: each of the following is one pass over a
 * block (see gaussian.c).  Clause: RNG-FAST-1
 */

/* u = 2^e (1 + f), with 1 + f in [0.707, 1.414) */
FC_INLINE void split(float u, float *e, float *f) {
    const uint32_t bits = f32_bits(u);
    float m = f32_value((bits & 0x7fffff) | 0x3f000000); /* in [1/2, 1) */
    const int32_t low = m < 0.7071067811865476f;
    m = low ? m + m : m;
    *e = (float)((int32_t)(bits >> 23) - 126 - low);
    *f = m - 1.0f;
}
FC_INLINE float ln_polynomial(float f) {
    float p = 7.0376836292e-2f;
    p = p * f + -1.1514610310e-1f;
    p = p * f + 1.1676998740e-1f;
    p = p * f + -1.2420140846e-1f;
    p = p * f + 1.4249322787e-1f;
    p = p * f + -1.6668057665e-1f;
    p = p * f + 2.0000714765e-1f;
    p = p * f + -2.4999993993e-1f;
    return p * f + 3.3333331174e-1f;
}
FC_INLINE float radius_of(float e, float f, float p) {
    const float z = f * f;
    float y = (f * z) * p;
    y += e * -2.12194440e-4f;
    y -= 0.5f * z;
    y = f + y;
    const float ln = y + e * 0.693359375f;
    return __builtin_sqrtf(-2.0f * ln);
}
/* a turn u in [0, 1] as an angle in [-pi/4, pi/4] and a number of quarter turns */
FC_INLINE float quarters(float u, float *j) {
    const float t = u * 4.0f;
    *j = (float)(int32_t)(t + 0.5f); /* t is not negative: truncation is floor */
    return (t - *j) * 1.5707963267948966f;
}
FC_INLINE float sine_of(float g) {
    const float z = g * g;
    float s = -1.9515295891e-4f;
    s = s * z + 8.3321608736e-3f;
    s = s * z + -1.6666654611e-1f;
    return g + (g * z) * s;
}
FC_INLINE float cosine_of(float g) {
    const float z = g * g;
    float c = 2.443315711809948e-5f;
    c = c * z + -1.388731625493765e-3f;
    c = c * z + 4.166664568298827e-2f;
    return FC_PLANT(FAST_CONTRACTED, (1.0f - 0.5f * z) + (z * z) * c, (float)((double)(1.0f - 0.5f * z) + (double)(z * z) * c));
}
/* sine and cosine of g to (r * cos) * scale and (r * sin) * scale, by quadrants */
FC_INLINE void polar_form(float r, float scale, float j, float *sine, float *cosine) {
    const uint32_t q = (uint32_t)(int32_t)j, s = f32_bits(*sine), c = f32_bits(*cosine), swapped = (s ^ c) & (0 - (q & 1));
    *sine = r * f32_value((s ^ swapped) ^ (q & 2) << 30) * scale;
    *cosine = r * f32_value((c ^ swapped) ^ ((q + 1) & 2) << 30) * scale;
}

FC_INLINE void interleave(const float *even, const float *odd, int m, int stream, fc_any_f32 *out) {
#ifdef __AVX2__
    for (int i = 0; i < m; i += 4) fc_store_pairs(out + 2 * i, _mm_load_ps(even + i), _mm_load_ps(odd + i), stream);
#else
    (void)stream;
    for (int i = 0; i < m; i++) {
        out[2 * i] = even[i];
        out[2 * i + 1] = odd[i];
    }
#endif
}

/* m pairs (a multiple of FC_WORDS) */
FC_INLINE void fill_block(uint64_t seed, uint64_t pair, float scale, int stream, int m, fc_any_f32 *out) {
    _Alignas(64) uint64_t words[BLOCK];
    _Alignas(64) float unit[BLOCK], e[BLOCK], f[BLOCK], p[BLOCK], radius[BLOCK], sine[BLOCK], cosine[BLOCK];
    float *const j = e, *const g = f; /* the same memory, used in turn */
    const uint64_t state = fc_state(seed, 2 * pair);
    fc_words(state, 2 * FC_GAMMA, words, m);
    for (int i = 0; i < m; i += FV_LANES)
        fv_store_f32(unit + i, fv_mul(fv_add(fv_of_top_53(uv_load(words + i)), fv_all(0x1p11)), fv_all(0x1p-64)));
    for (int i = 0; i < m; i++) split(unit[i], &e[i], &f[i]);
    for (int i = 0; i < m; i++) p[i] = ln_polynomial(f[i]);
    for (int i = 0; i < m; i++) radius[i] = radius_of(e[i], f[i], p[i]);
    fc_words(state + FC_GAMMA, 2 * FC_GAMMA, words, m);
    for (int i = 0; i < m; i += FV_LANES) fv_store_f32(unit + i, fv_mul(fv_of_top_53(uv_load(words + i)), fv_all(0x1p-64)));
    for (int i = 0; i < m; i++) g[i] = quarters(unit[i], &j[i]);
    for (int i = 0; i < m; i++) {
        sine[i] = sine_of(g[i]);
        cosine[i] = cosine_of(g[i]);
    }
    for (int i = 0; i < m; i++) polar_form(radius[i], scale, j[i], &sine[i], &cosine[i]);
    interleave(cosine, sine, m, stream, out);
}

/* Clauses: RNG-FAST-1, RNG-FAST-2, RNG-CHUNK-1 */
void FC_K(gaussian_fast)(uint64_t seed, uint64_t first, float scale, float *out, size_t n) {
    fc_fill_by_blocks(fill_block, seed, first, scale, out, n);
}
