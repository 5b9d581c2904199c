/*
 * Conversions of whole AVX2 registers, for bridge/avx2.h: the same functions as bridge/element.h, 4 to 32 lanes at a time,
 * written apart so that the two levels check each other.
 */
#ifndef FC_LANES_H
#define FC_LANES_H
#include "core/dtype.h"
#include "core/fault.h"
#include "core/inline.h"
#include "fucina.h"
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

FC_INLINE __m128i load4(const char *p) {
    int32_t bytes;
    memcpy(&bytes, p, sizeof bytes);
    return _mm_cvtsi32_si128(bytes);
}
FC_INLINE __m128i load8(const char *p) { return _mm_loadl_epi64((const __m128i_u *)p); }
FC_INLINE __m128i load16(const char *p) { return _mm_loadu_si128((const __m128i_u *)p); }
FC_INLINE __m256i load32(const char *p) { return _mm256_loadu_si256((const __m256i_u *)p); }
FC_INLINE void store32(char *p, __m256i v) { _mm256_storeu_si256((__m256i_u *)p, v); }
FC_INLINE void stream32(char *p, __m256i v) { _mm256_stream_si256((__m256i *)p, v); }
FC_INLINE void prefetch(const char *p) { _mm_prefetch(p, _MM_HINT_T0); } /* of any address: it cannot fault */


FC_INLINE __m256i nan_lanes(__m256 x) { return _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)); }
FC_INLINE __m256 blend_f32(__m256 x, float other, __m256i lanes) {
    return _mm256_blendv_ps(x, _mm256_set1_ps(other), _mm256_castsi256_ps(lanes));
}

/* -- narrowing: packs work within 128-bit halves, so each ends in a permutation that puts the elements in order -- */

FC_INLINE __m256i by_qwords(__m256i v) { return _mm256_permute4x64_epi64(v, 0xd8); }
FC_INLINE __m256i by_dwords(__m256i v) { return _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)); }
FC_INLINE __m256i by_words(__m256i v) {
    const __m256i interleave = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15));
    return _mm256_shuffle_epi8(by_qwords(v), interleave);
}

/* Low halves of eight 64-bit lanes, in the order a0 a1 b0 b1 | a2 a3 b2 b3. */
FC_INLINE __m256i low_halves(__m256i a, __m256i b) {
    return _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0x88));
}

/* 32 dwords to bytes not yet in order: unsigned ones up to 255, or signed ones that saturate. */
FC_INLINE __m256i packed_bytes(const __m256i v[4], int is_signed) {
    const __m256i low = _mm256_packs_epi32(v[0], v[1]), high = _mm256_packs_epi32(v[2], v[3]);
    return is_signed ? _mm256_packs_epi16(low, high) : _mm256_packus_epi16(low, high);
}

/* The low bytes of 32 lanes of two, four or eight bytes (clause BRIDGE-INT-1). */
FC_INLINE __m256i low_bytes_of_words(const __m256i v[2]) {
    const __m256i mask = _mm256_set1_epi16(0xff);
    return by_qwords(_mm256_packus_epi16(_mm256_and_si256(v[0], mask), _mm256_and_si256(v[1], mask)));
}
FC_INLINE __m256i low_bytes_of_dwords(const __m256i v[4]) {
    __m256i low[4];
    for (int k = 0; k < 4; k++) low[k] = _mm256_and_si256(v[k], _mm256_set1_epi32(0xff));
    return by_dwords(packed_bytes(low, 0));
}
FC_INLINE __m256i low_bytes_of_qwords(const __m256i v[8]) {
    __m256i low[4];
    for (int k = 0; k < 4; k++) low[k] = _mm256_and_si256(low_halves(v[2 * k], v[2 * k + 1]), _mm256_set1_epi32(0xff));
    return by_words(packed_bytes(low, 0));
}

/* The same of lanes that are all ones or all zero. */
FC_INLINE __m256i mask_bytes_of_dwords(const __m256i v[4]) { return by_dwords(packed_bytes(v, 1)); }
FC_INLINE __m256i mask_bytes_of_qwords(const __m256i v[8]) {
    __m256i low[4];
    for (int k = 0; k < 4; k++) low[k] = low_halves(v[2 * k], v[2 * k + 1]);
    return by_words(packed_bytes(low, 1));
}

/* The low words of 16 dwords, in order or as low_halves() leaves them. */
FC_INLINE __m256i packed_words(__m256i a, __m256i b) {
    const __m256i mask = _mm256_set1_epi32(0xffff);
    return _mm256_packus_epi32(_mm256_and_si256(a, mask), _mm256_and_si256(b, mask));
}
FC_INLINE __m256i low_words_of_dwords(__m256i a, __m256i b) { return by_qwords(packed_words(a, b)); }
FC_INLINE __m256i low_words_of_qwords(const __m256i v[4]) {
    return by_dwords(packed_words(low_halves(v[0], v[1]), low_halves(v[2], v[3])));
}

/* -- float to integer, clause BRIDGE-INT-3 -- */

/*
 * Eight floats to the integers of the target.  For i8 and i16 anything below the range will do: bytes_of_integers() and
 * words_of_integers() saturate.  A NaN operand of max_ps and min_ps yields the second operand: here the bound.
 */
FC_INLINE __m256i i32_of_f32(__m256 x, int target) {
    const int is_signed = target == FC_i8 || target == FC_i16 || target == FC_i32;
    const float high = target == FC_u8 ? 255 : target == FC_u16 ? 65535 : target == FC_i8 ? 127 : 32767;
    if (is_signed) {
        const __m256 number = _mm256_cmp_ps(x, x, _CMP_ORD_Q), above = _mm256_cmp_ps(x, _mm256_set1_ps(0x1p31F), _CMP_GE_OQ);
        x = FC_PLANT(NAN_INT_MIN, _mm256_and_ps(x, number), x);
        if (target == FC_i32) return _mm256_xor_si256(_mm256_cvttps_epi32(x), _mm256_castps_si256(above));
        if (!FC_PLANTED(FLOAT_INT_WRAPPED)) x = _mm256_min_ps(_mm256_set1_ps(high), x);
        return _mm256_cvttps_epi32(x);
    }
    if (!FC_PLANTED(FLOAT_INT_WRAPPED) && !(FC_PLANTED(NEGATIVE_U8_WRAPPED) && target == FC_u8)) x = _mm256_max_ps(x, _mm256_setzero_ps());
    if (!FC_PLANTED(FLOAT_INT_WRAPPED)) x = _mm256_min_ps(x, _mm256_set1_ps(high));
    return _mm256_cvttps_epi32(x);
}

/* The same of four doubles; f64 holds every bound. */
FC_INLINE __m128i i32_of_f64(__m256d x, int target) {
    const int is_signed = target == FC_i8 || target == FC_i16 || target == FC_i32;
    const double high = target == FC_u8 ? 255 : target == FC_u16 ? 65535 : target == FC_i8 ? 127 : target == FC_i16 ? 32767 : 2147483647;
    if (is_signed) x = FC_PLANT(NAN_INT_MIN, _mm256_and_pd(x, _mm256_cmp_pd(x, x, _CMP_ORD_Q)), x);
    else if (!FC_PLANTED(FLOAT_INT_WRAPPED) && !(FC_PLANTED(NEGATIVE_U8_WRAPPED) && target == FC_u8)) x = _mm256_max_pd(x, _mm256_setzero_pd());
    if (!FC_PLANTED(FLOAT_INT_WRAPPED)) x = is_signed ? _mm256_min_pd(_mm256_set1_pd(high), x) : _mm256_min_pd(x, _mm256_set1_pd(high));
    return _mm256_cvttpd_epi32(x);
}

FC_INLINE __m256i bytes_of_integers(const __m256i v[4], int target) {
    if (FC_PLANTED(FLOAT_INT_WRAPPED) || FC_PLANTED(NEGATIVE_U8_WRAPPED)) return low_bytes_of_dwords(v);
    return by_dwords(packed_bytes(v, target == FC_i8));
}

FC_INLINE __m256i words_of_integers(__m256i a, __m256i b, int target) {
    if (FC_PLANTED(FLOAT_INT_WRAPPED)) return low_words_of_dwords(a, b);
    return by_qwords(target == FC_i16 ? _mm256_packs_epi32(a, b) : _mm256_packus_epi32(a, b));
}

/*
 * Four doubles to i64.  Below 2^51 adding 1.5 * 2^52 leaves the integer in the mantissa.  Otherwise, when any lane asks for it,
 * the significand is shifted into place: a shift count out of range (negative ones are huge) gives zero, so the sum of a left
 * and a right shift is always the right one.
 */
FC_INLINE __m256i i64_of_f64(__m256d x) {
    const __m256d sign = _mm256_set1_pd(-0.0), anchor = _mm256_set1_pd(0x1.8p52);
    const __m256d small = _mm256_cmp_pd(_mm256_andnot_pd(sign, x), _mm256_set1_pd(0x1p51), _CMP_LT_OQ);
    if (__builtin_expect(_mm256_movemask_pd(small) == 15, 1)) {
        const __m256d sum = _mm256_add_pd(_mm256_round_pd(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC), anchor);
        return _mm256_sub_epi64(_mm256_castpd_si256(sum), _mm256_castpd_si256(anchor));
    }
    const __m256i u = _mm256_castpd_si256(x), negative = _mm256_cmpgt_epi64(_mm256_setzero_si256(), u);
    const __m256i exponent = _mm256_and_si256(_mm256_srli_epi64(u, 52), _mm256_set1_epi64x(0x7ff)), unit = _mm256_set1_epi64x(1075);
    const __m256i mantissa = _mm256_set1_epi64x((INT64_C(1) << 52) - 1), implicit = _mm256_set1_epi64x(INT64_C(1) << 52);
    const __m256i significand = _mm256_or_si256(_mm256_and_si256(u, mantissa), implicit);
    const __m256i magnitude = _mm256_or_si256(_mm256_srlv_epi64(significand, _mm256_sub_epi64(unit, exponent)),
                                              _mm256_sllv_epi64(significand, _mm256_sub_epi64(exponent, unit)));
    const __m256i v = _mm256_sub_epi64(_mm256_xor_si256(magnitude, negative), negative);
    const __m256i bound = _mm256_xor_si256(_mm256_set1_epi64x(INT64_MAX), negative);
    const __m256i beyond = _mm256_cmpgt_epi64(exponent, _mm256_set1_epi64x(1085)), nan = _mm256_castpd_si256(_mm256_cmp_pd(x, x, _CMP_UNORD_Q));
    const __m256i saturated = _mm256_blendv_epi8(v, bound, beyond);
    return FC_PLANT(NAN_INT_MIN, _mm256_andnot_si256(nan, saturated), _mm256_blendv_epi8(saturated, _mm256_set1_epi64x(INT64_MIN), nan));
}

/* -- i64 to f64, and rounding to odd: see bridge/element.h -- */

FC_INLINE __m256d f64_of_i64(__m256i v) {
    const __m256i low = _mm256_blend_epi32(v, _mm256_set1_epi64x(INT64_C(0x4330000000000000)), 0xaa);
    const __m256i high = _mm256_xor_si256(_mm256_srli_epi64(v, 32), _mm256_set1_epi64x(INT64_C(0x4530000080000000)));
    return _mm256_add_pd(_mm256_sub_pd(_mm256_castsi256_pd(high), _mm256_set1_pd(0x1p84 + 0x1p63 + 0x1p52)), _mm256_castsi256_pd(low));
}

FC_INLINE __m256i odd_bits(__m256i u, int place) {
    const __m256i unit = _mm256_set1_epi64x(INT64_C(1) << place), below = _mm256_set1_epi64x((INT64_C(1) << place) - 1);
    const __m256i sticky = _mm256_and_si256(_mm256_add_epi64(_mm256_and_si256(u, below), below), unit);
    return _mm256_or_si256(_mm256_andnot_si256(below, u), sticky);
}
FC_INLINE __m256d round_to_odd(__m256d x, int place) { return _mm256_castsi256_pd(odd_bits(_mm256_castpd_si256(x), place)); }

/* The high halves tell which lanes reach 2^53 (from 2^52 on it would do no harm either). */
FC_INLINE __m256i i64_to_odd(__m256i v) {
    const __m256i magnitude = _mm256_xor_si256(v, _mm256_srai_epi32(v, 31));
    const __m256i large = _mm256_shuffle_epi32(_mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32((1 << 21) - 1)), 0xf5);
    return _mm256_blendv_epi8(v, odd_bits(v, 11), large);
}

/* -- f8 to f16: a byte goes to the top of a word -- */

/* Clause BRIDGE-E5M2-3: the NaN codes 0x7d, 0x7e, 0x7f mean the same NaN, whose f16 is 0x7e00. */
FC_INLINE __m128i canonical_e5m2(__m128i v) {
    const __m128i nan = _mm_cmpgt_epi8(_mm_and_si128(v, _mm_set1_epi8(0x7f)), _mm_set1_epi8(0x7c));
    return _mm_blendv_epi8(v, _mm_or_si128(_mm_and_si128(v, _mm_set1_epi8(-0x80)), _mm_set1_epi8(0x7e)), nan);
}
FC_INLINE __m128i f16_of_e5m2(__m128i v) { return _mm_unpacklo_epi8(_mm_setzero_si128(), canonical_e5m2(v)); }
FC_INLINE __m256i f16_of_e5m2_x16(__m128i v) { return _mm256_slli_epi16(_mm256_cvtepu8_epi16(canonical_e5m2(v)), 8); }

/* Eight e4m3 codes to f16 values 2^-8 times theirs (the biases differ by 8), the NaN codes to 0x7e00. */
FC_INLINE __m128i f16_of_scaled_e4m3(__m128i v) {
    const __m128i h = _mm_and_si128(_mm_slli_epi16(_mm_cvtepi8_epi16(v), 7), _mm_set1_epi16((short)0xbf80));
    const __m128i nan = _mm_cmpeq_epi16(_mm_or_si128(h, _mm_set1_epi16(-0x8000)), _mm_set1_epi16((short)0xbf80));
    return FC_PLANT(E4M3_NAN_DECODED_480, _mm_xor_si128(h, _mm_and_si128(nan, _mm_set1_epi16(0x3f80 ^ 0x7e00))), h);
}

/* -- encoding from f32 -- */

/* The largest finite value of the target stands in for what lies beyond it; NaN stays (the second operand). */
FC_INLINE __m256 clamp_f32(__m256 x, float largest) {
    return _mm256_max_ps(_mm256_set1_ps(-largest), _mm256_min_ps(_mm256_set1_ps(largest), x));
}

/* Clause BRIDGE-SAT-1: an infinity is one pattern above the largest finite value. */
FC_INLINE __m256i saturated_f16(__m256i h) {
    return _mm256_add_epi16(h, _mm256_cmpeq_epi16(_mm256_and_si256(h, _mm256_set1_epi16(0x7fff)), _mm256_set1_epi16(0x7c00)));
}

/* Clauses BRIDGE-F16-2, BRIDGE-F16-3, BRIDGE-SAT-1. */
FC_INLINE __m128i f16_of_f32(__m256 x, int mode) {
    if (mode & FC_CAST_SATURATE) x = clamp_f32(x, 65504);
    if (FC_PLANTED(F16_65520_FINITE)) x = _mm256_blendv_ps(x, _mm256_set1_ps(65504), _mm256_cmp_ps(x, _mm256_set1_ps(65520), _CMP_EQ_OQ));
    const __m128i h = _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
    const __m128i magnitude = _mm_set1_epi16(0x7fff);
    if (!FC_PLANTED(F16_SUBNORMAL_FLUSHED)) return h;
    return _mm_andnot_si128(_mm_and_si128(magnitude, _mm_cmpgt_epi16(_mm_set1_epi16(0x400), _mm_and_si128(h, magnitude))), h);
}

/* Clauses BRIDGE-BF16-2, BRIDGE-BF16-3, BRIDGE-SAT-1; the code in the low half of each lane. */
FC_INLINE __m256i bf16_lanes(__m256 x, int mode, int exact) {
    if (mode & FC_CAST_SATURATE) x = clamp_f32(x, 0x1.fep127F);
    const __m256i u = _mm256_castps_si256(x), odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    if (exact) return _mm256_srli_epi32(u, 16);
    const __m256i sum = _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i rounded = FC_PLANT(BF16_TRUNCATED, sum, u);
    __m256i quiet = _mm256_or_si256(u, _mm256_set1_epi32(0x400000));
    if (FC_PLANTED(BF16_NAN_PAYLOAD_DROPPED)) quiet = _mm256_and_si256(quiet, _mm256_set1_epi32((int)0xffc00000));
    return _mm256_srli_epi32(FC_PLANT(BF16_NAN_BIASED, _mm256_blendv_epi8(rounded, quiet, nan_lanes(x)), rounded), 16);
}
FC_INLINE __m256i bf16_of_f32(__m256 low, __m256 high, int mode, int exact) {
    return by_qwords(_mm256_packus_epi32(bf16_lanes(low, mode, exact), bf16_lanes(high, mode, exact)));
}

/*
 * The magnitude code of one f8 format in each lane; see magnitude_code() of bridge/element.h.  `cap` is the least value with
 * the overflow code, or under saturation the largest finite one; min_ps sends NaN there too, so that where the overflow code
 * is the NaN code (e4m3) nothing more is to do, and where not, `nan` is a value whose code is the NaN code.
 */
FC_INLINE __m256i f8_lanes(__m256 x, int man, int emin, float cap, float nan) {
    const __m256i least = _mm256_set1_epi32((127 + emin) << 23), exponents = _mm256_set1_epi32(0x7f800000);
    __m256 magnitude = _mm256_min_ps(_mm256_andnot_ps(_mm256_set1_ps(-0.0F), x), _mm256_set1_ps(cap));
    if (nan != cap) magnitude = blend_f32(magnitude, nan, nan_lanes(x));
    const __m256i exponent = _mm256_max_epi32(_mm256_and_si256(_mm256_castps_si256(magnitude), exponents), least);
    const __m256i anchor = _mm256_add_epi32(exponent, _mm256_set1_epi32((23 - man) << 23));
    const __m256i sum = _mm256_castps_si256(_mm256_add_ps(magnitude, _mm256_castsi256_ps(anchor)));
    return _mm256_add_epi32(_mm256_sub_epi32(sum, anchor), _mm256_srli_epi32(_mm256_sub_epi32(exponent, least), 23 - man));
}

/* Clauses BRIDGE-E4M3-2, BRIDGE-E4M3-3, BRIDGE-E5M2-2, BRIDGE-E5M2-3, BRIDGE-SAT-1. */
FC_INLINE __m256i f8_of_f32(const __m256 x[4], int target, int mode) {
    const int saturate = mode & FC_CAST_SATURATE;
    __m256i codes[4], signs[4];
    for (int k = 0; k < 4; k++) {
        __m256 v = x[k];
        signs[k] = _mm256_castps_si256(FC_PLANT(F8_NAN_SIGN_LOST, v, blend_f32(v, 0, nan_lanes(v))));
        if (target == FC_f8_e4m3) {
            const __m256 magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0F), v), tie = _mm256_cmp_ps(magnitude, _mm256_set1_ps(464), _CMP_EQ_OQ);
            if (FC_PLANTED(E4M3_TIE_464_UP)) v = blend_f32(v, 465, _mm256_castps_si256(tie));
            codes[k] = f8_lanes(v, 3, -6, saturate ? 448 : FC_PLANT(E4M3_OVERFLOW_CLAMPED, 480, 448), 480);
        } else {
            const __m256i some = _mm256_castps_si256(_mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_NEQ_OQ));
            if (FC_PLANTED(E5M2_HALF_AWAY)) v = _mm256_castsi256_ps(_mm256_sub_epi32(_mm256_castps_si256(v), some));
            codes[k] = f8_lanes(v, 2, -14, saturate ? 57344 : FC_PLANT(E5M2_OVERFLOW_CLAMPED, 65536, 57344), 98304);
        }
    }
    /* saturating packs carry the sign bits along, whatever else the lanes hold */
    const __m256i sign = _mm256_and_si256(packed_bytes(signs, 1), _mm256_set1_epi8(-0x80));
    return by_dwords(_mm256_or_si256(packed_bytes(codes, 0), sign));
}

/* f16 to e5m2 without leaving words: the formats differ in mantissa bits alone. */
FC_INLINE __m256i e5m2_of_f16(__m256i low, __m256i high, int mode) {
    const int clamp = (mode & FC_CAST_SATURATE) || FC_PLANTED(E5M2_OVERFLOW_CLAMPED);
    __m256i v[2] = {low, high};
    for (int k = 0; k < 2; k++) {
        const __m256i magnitude = _mm256_and_si256(v[k], _mm256_set1_epi16(0x7fff)), odd = _mm256_and_si256(_mm256_srli_epi16(v[k], 8), _mm256_set1_epi16(1));
        const __m256i half = _mm256_add_epi16(_mm256_set1_epi16(0x7f), FC_PLANT(E5M2_HALF_AWAY, odd, _mm256_set1_epi16(1)));
        const __m256i nan = _mm256_cmpgt_epi16(magnitude, _mm256_set1_epi16(0x7c00)), sum = _mm256_srli_epi16(_mm256_add_epi16(magnitude, half), 8);
        const __m256i rounded = clamp ? _mm256_min_epi16(sum, _mm256_set1_epi16(0x7b)) : sum;
        __m256i sign = _mm256_and_si256(_mm256_srli_epi16(v[k], 8), _mm256_set1_epi16(0x80));
        if (FC_PLANTED(F8_NAN_SIGN_LOST)) sign = _mm256_andnot_si256(nan, sign);
        v[k] = _mm256_or_si256(_mm256_blendv_epi8(rounded, _mm256_set1_epi16(0x7e), nan), sign);
    }
    return by_qwords(_mm256_packus_epi16(v[0], v[1]));
}

#endif
