/*
 * The cast loop for AVX2 with F16C.  A step makes 32 bytes of output; every function switches on constants, so that each
 * kernel of bridge/casts.c holds the instructions of its own pair only.  F16C and the conversion instructions quiet a NaN and keep its
 * sign and top payload bits, which is what NUM-NAN-1 asks for.
 */
#ifndef FC_AVX2_H
#define FC_AVX2_H
#include "bridge/lanes.h"
#include "bridge/pairs.h"
#include "core/kernels.h"

/* -- loads: N elements of any source from p, as lanes of one wide type -- */

/* bool bytes as 0 or 1 (clause BRIDGE-BOOL-2: any byte but 0 is true). */
FC_INLINE __m128i as_bool(__m128i bytes) {
    return FC_PLANT(TRUE_ALL_ONES, _mm_min_epu8(bytes, _mm_set1_epi8(1)), _mm_cmpgt_epi8(bytes, _mm_setzero_si128()));
}

/* Eight integers modulo 2^32 (of i64 the low halves). */
FC_INLINE __m256i load_i32x8(int source, const char *p) {
    switch (source) {
    case FC_bool: return _mm256_cvtepu8_epi32(as_bool(load8(p)));
    case FC_u8: return _mm256_cvtepu8_epi32(load8(p));
    case FC_u16: return _mm256_cvtepu16_epi32(load16(p));
    case FC_i8: return _mm256_cvtepi8_epi32(load8(p));
    case FC_i16: return _mm256_cvtepi16_epi32(load16(p));
    case FC_i32: return load32(p);
    default: return by_qwords(low_halves(load32(p), load32(p + 32)));
    }
}

/* Four integers of at most 32 bits. */
FC_INLINE __m128i load_i32x4(int source, const char *p) {
    switch (source) {
    case FC_bool: return _mm_cvtepu8_epi32(as_bool(load4(p)));
    case FC_u8: return _mm_cvtepu8_epi32(load4(p));
    case FC_u16: return _mm_cvtepu16_epi32(load8(p));
    case FC_i8: return _mm_cvtepi8_epi32(load4(p));
    case FC_i16: return _mm_cvtepi16_epi32(load8(p));
    default: return load16(p);
    }
}

FC_INLINE __m256i load_i64x4(int source, const char *p) {
    switch (source) {
    case FC_bool: return _mm256_cvtepu8_epi64(as_bool(load4(p)));
    case FC_u8: return _mm256_cvtepu8_epi64(load4(p));
    case FC_u16: return _mm256_cvtepu16_epi64(load8(p));
    case FC_i8: return _mm256_cvtepi8_epi64(load4(p));
    case FC_i16: return _mm256_cvtepi16_epi64(load8(p));
    case FC_i32: return _mm256_cvtepi32_epi64(load16(p));
    default: return load32(p);
    }
}

/* Four of any source; i64 is rounded once, or to odd for a later single rounding. */
FC_INLINE __m256d load_f64x4(int source, int mode, const char *p) {
    switch (source) {
    case FC_f16: return _mm256_cvtps_pd(_mm_cvtph_ps(load8(p)));
    case FC_bf16: return _mm256_cvtps_pd(_mm_castsi128_ps(_mm_unpacklo_epi16(_mm_setzero_si128(), load8(p))));
    case FC_f32: return _mm256_cvtps_pd(_mm_loadu_ps((const float *)p));
    case FC_f64: return _mm256_loadu_pd((const double *)p);
    case FC_f8_e4m3: return _mm256_cvtps_pd(_mm_mul_ps(_mm_cvtph_ps(f16_of_scaled_e4m3(load4(p))), _mm_set1_ps(256)));
    case FC_f8_e5m2: return _mm256_cvtps_pd(_mm_cvtph_ps(f16_of_e5m2(load4(p))));
    case FC_i64: return f64_of_i64(mode & FC_CAST_SINGLE_ROUNDING ? i64_to_odd(load32(p)) : load32(p));
    default: return _mm256_cvtepi32_pd(load_i32x4(source, p));
    }
}

/* What f32 does not hold goes through f64, rounded to odd under single rounding unless f32 is the target. */
FC_INLINE __m128 load_wide(int source, int target, int mode, const char *p) {
    const __m256d x = load_f64x4(source, mode, p);
    if (!(mode & FC_CAST_SINGLE_ROUNDING) || target == FC_f32) return _mm256_cvtpd_ps(x);
    /* two bits more than the target keeps; the subnormals of bf16 are those of f32, which has these places there too */
    return _mm256_cvtpd_ps(round_to_odd(x, target == FC_bf16 ? 40 : 29));
}

/* Eight of any source: exact, but f64 and i32 rounded once and i64 twice. */
FC_INLINE __m256 load_f32x8(int source, int target, int mode, const char *p) {
    if (FC_PLANTED(F64_F16_ROUNDED_ONCE) && source == FC_f64 && target == FC_f16) mode |= FC_CAST_SINGLE_ROUNDING;
    if (FC_PLANTED(I64_F32_ROUNDED_ONCE) && source == FC_i64 && target == FC_f32) mode |= FC_CAST_SINGLE_ROUNDING;
    switch (source) {
    case FC_f16: return _mm256_cvtph_ps(load16(p));
    case FC_bf16: return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load16(p)), 16));
    case FC_f32: return _mm256_loadu_ps((const float *)p);
    case FC_f8_e4m3: return _mm256_mul_ps(_mm256_cvtph_ps(f16_of_scaled_e4m3(load8(p))), _mm256_set1_ps(256));
    case FC_f8_e5m2: return _mm256_cvtph_ps(f16_of_e5m2(load8(p)));
    case FC_f64:
    case FC_i64: return _mm256_set_m128(load_wide(source, target, mode, p + 32), load_wide(source, target, mode, p));
    case FC_i32:
        if (mode & FC_CAST_SINGLE_ROUNDING) return _mm256_set_m128(load_wide(source, target, mode, p + 16), load_wide(source, target, mode, p));
        return _mm256_cvtepi32_ps(load32(p));
    default: return _mm256_cvtepi32_ps(load_i32x8(source, p));
    }
}

/* Eight floats as the integers of the target, for i8 and i16 up to a last saturation. */
FC_INLINE __m256i integers_of_floats(int source, int target, const char *p) {
    if (source == FC_f64) {
        const __m128i low = i32_of_f64(load_f64x4(source, 0, p), target);
        return _mm256_set_m128i(i32_of_f64(load_f64x4(source, 0, p + 32), target), low);
    }
    return i32_of_f32(load_f32x8(source, target, 0, p), target);
}

/* -- targets of one byte: 32 elements -- */

/* Clauses BRIDGE-BOOL-1, BRIDGE-TRUTHY-1: true unless the bits are all zero, of a float those of the magnitude. */
FC_INLINE __m256i step_bool(int source, const char *p) {
    const unsigned size = fc_size_of(source);
    const int signless = !is_integer(source) && !FC_PLANTED(MINUS_ZERO_TRUE);
    const __m256i one = _mm256_set1_epi8(1), zero = _mm256_setzero_si256();
    __m256i v[8];
    if (FC_PLANTED(FLOAT_BOOL_TRUNCATED) && !is_integer(source)) {
        for (unsigned k = 0; k < 4; k++) v[k] = integers_of_floats(source, FC_i8, p + 8 * size * k);
        return _mm256_min_epu8(bytes_of_integers(v, FC_i8), one);
    }
    for (unsigned k = 0; k < size; k++) v[k] = load32(p + 32 * k);
    switch (size) {
    case 1: return _mm256_min_epu8(signless ? _mm256_and_si256(v[0], _mm256_set1_epi8(0x7f)) : v[0], one);
    case 2:
        for (int k = 0; k < 2; k++) v[k] = _mm256_min_epu16(signless ? _mm256_add_epi16(v[k], v[k]) : v[k], _mm256_set1_epi16(1));
        return by_qwords(_mm256_packus_epi16(v[0], v[1]));
    case 4:
        for (int k = 0; k < 4; k++) v[k] = _mm256_cmpeq_epi32(signless ? _mm256_add_epi32(v[k], v[k]) : v[k], zero);
        return _mm256_add_epi8(mask_bytes_of_dwords(v), one);
    default:
        for (int k = 0; k < 8; k++) v[k] = _mm256_cmpeq_epi64(signless ? _mm256_add_epi64(v[k], v[k]) : v[k], zero);
        return _mm256_add_epi8(mask_bytes_of_qwords(v), one);
    }
}

/* Clause BRIDGE-INT-1: of an integer the low byte. */
FC_INLINE __m256i step_byte(int source, int target, const char *p) {
    const unsigned size = fc_size_of(source);
    __m256i v[8];
    if (!is_integer(source)) {
        for (unsigned k = 0; k < 4; k++) v[k] = integers_of_floats(source, target, p + 8 * size * k);
        return bytes_of_integers(v, target);
    }
    for (unsigned k = 0; k < size; k++) v[k] = load32(p + 32 * k);
    switch (size) {
    case 1: return FC_PLANT(TRUE_ALL_ONES, _mm256_min_epu8(v[0], _mm256_set1_epi8(1)), _mm256_cmpgt_epi8(v[0], _mm256_setzero_si256())); /* of bool: the others are copies */
    case 2: return low_bytes_of_words(v);
    case 4: return low_bytes_of_dwords(v);
    default: return low_bytes_of_qwords(v);
    }
}

FC_INLINE __m256i step_f8(int source, int target, int mode, const char *p) {
    __m256 x[4];
    for (unsigned k = 0; k < 4; k++) x[k] = load_f32x8(source, target, mode, p + 8 * fc_size_of(source) * k);
    if (source == FC_f16 && target == FC_f8_e5m2) return e5m2_of_f16(load32(p), load32(p + 32), mode);
    return f8_of_f32(x, target, mode);
}

/* -- targets of two bytes: 16 elements -- */

FC_INLINE __m256i step_word(int source, int target, const char *p) {
    const unsigned size = fc_size_of(source);
    if (!is_integer(source)) {
        const __m256i low = integers_of_floats(source, target, p), high = integers_of_floats(source, target, p + 8 * size);
        return words_of_integers(low, high, target);
    }
    __m256i v[4];
    switch (source) {
    case FC_bool: return _mm256_cvtepu8_epi16(as_bool(load16(p)));
    case FC_u8: return _mm256_cvtepu8_epi16(load16(p));
    case FC_i8: return _mm256_cvtepi8_epi16(load16(p));
    case FC_u16:
    case FC_i16: return load32(p);
    case FC_i32: return low_words_of_dwords(load32(p), load32(p + 32));
    default:
        for (int k = 0; k < 4; k++) v[k] = load32(p + 32 * k);
        return low_words_of_qwords(v);
    }
}

FC_INLINE __m256i step_f16(int source, int mode, const char *p) {
    if (source == FC_f8_e5m2) {
        const __m256i h = f16_of_e5m2_x16(load16(p));
        return mode & FC_CAST_SATURATE ? saturated_f16(h) : h;
    }
    const __m128i low = f16_of_f32(load_f32x8(source, FC_f16, mode, p), mode);
    return _mm256_set_m128i(f16_of_f32(load_f32x8(source, FC_f16, mode, p + 8 * fc_size_of(source)), mode), low);
}

FC_INLINE __m256i step_bf16(int source, int mode, const char *p) {
    const __m256 low = load_f32x8(source, FC_bf16, mode, p), high = load_f32x8(source, FC_bf16, mode, p + 8 * fc_size_of(source));
    return bf16_of_f32(low, high, mode, fc_size_of(source) == 1);
}

/* -- any target: 32 bytes -- */

/* The bits stay: the same dtype, or integers of the same size. */
FC_INLINE int is_copy(int source, int target) {
    const int numbers = source != FC_bool && target != FC_bool && is_integer(source) && is_integer(target);
    return source == target || (numbers && fc_size_of(source) == fc_size_of(target));
}

/* One function per target, as the kernels of bridge/casts.c name them: a kernel then takes in the code of one target only. */
#define FC_STEP_TO(target, expression)                                              \
    FC_INLINE __m256i step_to_##target(int source, int mode, const char *p) {       \
        (void)mode;                                                                 \
        return is_copy(source, FC_##target) ? load32(p) : (expression);             \
    }
FC_STEP_TO(bool, step_bool(source, p))
FC_STEP_TO(u8, step_byte(source, FC_u8, p))
FC_STEP_TO(u16, step_word(source, FC_u16, p))
FC_STEP_TO(i8, step_byte(source, FC_i8, p))
FC_STEP_TO(i16, step_word(source, FC_i16, p))
FC_STEP_TO(i32, is_integer(source) ? load_i32x8(source, p) : integers_of_floats(source, FC_i32, p))
FC_STEP_TO(i64, is_integer(source) ? load_i64x4(source, p) : i64_of_f64(load_f64x4(source, 0, p)))
FC_STEP_TO(f16, step_f16(source, mode, p))
FC_STEP_TO(bf16, step_bf16(source, mode, p))
FC_STEP_TO(f32, _mm256_castps_si256(load_f32x8(source, FC_f32, mode, p)))
FC_STEP_TO(f64, _mm256_castpd_si256(load_f64x4(source, mode, p)))
FC_STEP_TO(f8_e4m3, step_f8(source, FC_f8_e4m3, mode, p))
FC_STEP_TO(f8_e5m2, step_f8(source, FC_f8_e5m2, mode, p))

/*
 * A cast of so many bytes writes past the caches: its output would not stay there, and its lines need not be read first.  The
 * weights and the limit fit what was measured with 16 MiB of last-level cache: the two ways are level at 7 MB (f64 -> f32) to
 * 10 MB (i16 -> f64) in all.
 */
FC_INLINE int is_beyond_caches(size_t in_bytes, size_t out_bytes) { return 4 * in_bytes + 3 * out_bytes >= (size_t)32 << 20; }

/* Input is asked for ahead of the hardware's own prefetching, which stops at the end of every page. */
enum { PREFETCH_BYTES = 640, SHORT_COPY_BYTES = 4096 };

typedef __m256i step_function(int source, int mode, const char *p);

/*
 * Clauses: BRIDGE-FLOAT-1, BRIDGE-INT-1, BRIDGE-INT-2, BRIDGE-BOOL-2, BRIDGE-SCALAR-2, BRIDGE-ARRAY-4
 * Two steps, one cache line of output, at a time: one from the first element, then whole lines, then one up to the last element.
 * Where these overlap they write the same bytes.
 */
FC_INLINE void cast_lines(int source, int target, int mode, step_function *step, const void *input, void *output, size_t n, fc_cast_kernel *self) {
    const char *in = input;
    char *out = output;
    const size_t in_size = fc_size_of(source), out_size = fc_size_of(target), lanes = 32 / out_size, in_step = lanes * in_size;
    if (is_copy(source, target) && n * out_size < SHORT_COPY_BYTES) {
        memcpy(out, in, n * out_size);
        return;
    }
    if (n < 2 * lanes) { /* the same instructions on two full steps of which n elements are the caller's */
        char whole_in[2 * 32 * 8], whole_out[2 * 32];
        memset(whole_in, 0, 2 * in_step);
        memcpy(whole_in, in, n * in_size);
        self(whole_in, whole_out, 2 * lanes);
        memcpy(out, whole_out, n * out_size);
        return;
    }
    const char *const in_last = in + (n - 2 * lanes) * in_size;
    char *const last = out + (n - 2 * lanes) * out_size;
    /* from where it stands to the first whole cache line of output, if the elements meet one */
    const size_t head = -(uintptr_t)out % 64;
    const int can_align = head % out_size == 0, can_stream = can_align && is_beyond_caches(n * in_size, n * out_size);
    int streaming = can_stream && head == 0;
    char *limit = can_align && head != 0 ? out : last;
    for (;;) {
        for (; out <= limit; in += 2 * in_step, out += 64) {
            for (size_t line = 0; line < 2 * in_step; line += 64) prefetch(in + line + PREFETCH_BYTES);
            const __m256i low = step(source, mode, in), high = step(source, mode, in + in_step);
            if (streaming) {
                stream32(out, low);
                stream32(out + 32, high);
            } else {
                store32(out, low);
                store32(out + 32, high);
            }
        }
        if (out == last + 64 || (FC_PLANTED(CAST_TAIL_DROPPED) && limit == last)) break;
        if (limit == last) { /* the rest */
            in = in_last;
            out = last;
            streaming = 0;
        } else { /* the first line is done: back to where whole lines begin */
            in -= (64 - head) / out_size * in_size;
            out -= 64 - head;
            limit = last;
            streaming = can_stream;
        }
    }
    if (can_stream) _mm_sfence();
}
#define FC_CAST_LOOP(source, target, mode, in, out, n, self) cast_lines(FC_##source, FC_##target, mode, step_to_##target, in, out, n, self)

#endif
