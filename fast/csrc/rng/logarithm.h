/*
 * c * ln(v * 2^-shift) on lanes, for c = -1 or -2 and v > 0 normal: the contract's logarithm but for a small, proven error
 * (BOUNDS.md, "Logarithm").
 *
 * v = 2^e m with sqrt(1/2) <= m < sqrt(2); ln m = 2 artanh(s), s = (m - 1) / (m + 1), |s| < 0.1716; and
 * c * 2 artanh(s) = s * P(s^2) with a minimax P.  Near v = 2^shift the sum has no large term to cancel (e is 0), so the
 * error is relative to the result even where the logarithm goes to 0.
 */
#ifndef FC_RNG_LOGARITHM_H
#define FC_RNG_LOGARITHM_H
#include "rng/vector.h"

FC_INLINE fv fv_scaled_ln(fv v, int shift, double c) {
    const uint64_t sqrt_half = UINT64_C(0x3fe6a09e667f3bcd), bias = UINT64_C(64) << 52;
    const uv bits = uv_of_bits(v), t = uv_sub(bits, uv_all(sqrt_half - bias));
    const fv e = fv_sub(fv_of_bits(uv_or(uv_right(t, 52), uv_all(UINT64_C(0x4330000000000000)))), fv_all(0x1p52 + 64 + shift));
    const fv m = fv_of_bits(uv_sub(bits, uv_sub(uv_and(t, uv_all(UINT64_C(0xfff0000000000000))), uv_all(bias))));
    const fv s = fv_div(fv_sub(m, fv_all(1)), fv_add(m, fv_all(1)));
    const fv q = fv_mul(s, s);
    fv p = fv_fma(fv_all(c * 0x1.9111bd5e4cd67p-3), q, fv_all(c * 0x1.c62b5960b45f7p-3));
    p = fv_fma(p, q, fv_all(c * 0x1.24941118fe939p-2));
    p = fv_fma(p, q, fv_all(c * 0x1.999996ab538a6p-2));
    p = fv_fma(p, q, fv_all(c * 0x1.555555561d7d1p-1));
    p = fv_fma(p, q, fv_all(c * 2));
    return fv_fma(s, p, fv_mul(e, fv_all(c * 0x1.62e42fefa39efp-1)));
}

#endif
