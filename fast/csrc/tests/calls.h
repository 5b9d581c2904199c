/*
 * One list of calls that reaches every public function, with arguments where rounding, subnormals, overflow and NaN matter.
 * Each call writes its result into a buffer; two runs of the same call can then be compared byte for byte.
 */
#ifndef FC_TESTS_CALLS_H
#define FC_TESTS_CALLS_H
#include "fucina.h"
#include "tests/patterns.h"

enum { CALL_ELEMENTS = 70, CALL_BYTES = 1024, CALL_CASTS = T_COUNT * T_COUNT * 4 };

/* the fills and windows; `n` elements from element `first` on, the size of one in the third column */
#define CALL_LIST(X)                                                                                                        \
    X(gaussian, 4, fc_gaussian(seed, first, 0.1, out, n))                                                                   \
    X(gaussian_large_scale, 4, fc_gaussian(seed, first, 0x1.23456789ap127, out, n))                                         \
    X(gaussian_subnormal, 4, fc_gaussian(seed, first, 0x1.806p-140, out, n))                                                \
    X(gaussian_zero, 4, fc_gaussian(seed, first, 0.0, out, n))                                                              \
    X(gaussian_fast, 4, fc_gaussian_fast(seed, first, 0.7, out, n))                                                         \
    X(gaussian_fast_subnormal, 4, fc_gaussian_fast(seed, first, 0x1.806p-140, out, n))                                      \
    X(normal, 4, fc_normal(seed, first, 0.1, 3.1, out, n))                                                                  \
    X(normal_subnormal, 4, fc_normal(seed, first, 0x1.3p-149, 0x1.2345678p-130, out, n))                                    \
    X(normal_no_mean, 4, fc_normal(seed, first, -0.0, 2.0, out, n))                                                         \
    X(uniform, 4, fc_uniform(seed, first, -1.3, 1.1, out, n))                                                               \
    X(uniform_one_step, 4, fc_uniform(seed, first, 1.0, 0x1.0000018p0, out, n))                                             \
    X(uniform_subnormal, 4, fc_uniform(seed, first, -0x1.2345678p-140, 0x1.8p-141, out, n))                                 \
    X(uniform_widest, 4, fc_uniform(seed, first, -0x1.fffffep127, 0x1.fffffep127, out, n))                                  \
    X(kaiming_uniform_inexact, 4, fc_kaiming_uniform(seed, first, UINT64_C(9007199254740993), out, n))                      \
    X(kaiming_uniform, 4, fc_kaiming_uniform(seed, first, 23, out, n))                                                      \
    X(gumbel, 4, fc_gumbel(seed, first, out, n))                                                                            \
    X(randint, 8, fc_randint(seed, first, -3, 1000003, out, n))                                                             \
    X(randint_widest, 8, fc_randint(seed, first, INT64_MIN, INT64_MAX, out, n))                                             \
    X(dropout_mask, 1, fc_dropout_mask(seed, first, 0.1, out, n))                                                           \
    X(dropout_mask_none, 1, fc_dropout_mask(seed, first, 0.0, out, n))                                                      \
    X(dropout_mask_subnormal, 1, fc_dropout_mask(seed, first, 0x1.3p-149, out, n))

enum {
#define CALL_ENUM(name, size, call) CALL_##name,
    CALL_LIST(CALL_ENUM)
#undef CALL_ENUM
    CALL_FILLS
};

static const char *const call_name[CALL_FILLS] = {
#define CALL_NAME(name, size, call) #name,
    CALL_LIST(CALL_NAME)
#undef CALL_NAME
};
static const size_t call_size[CALL_FILLS] = {
#define CALL_SIZE(name, size, call) size,
    CALL_LIST(CALL_SIZE)
#undef CALL_SIZE
};

static inline fc_status call_fill(int which, uint64_t seed, uint64_t first, void *out, size_t n) {
    switch (which) {
#define CALL_CASE(name, size, call) \
    case CALL_##name: return call;
        CALL_LIST(CALL_CASE)
#undef CALL_CASE
    default: return FC_BAD_BOUNDS;
    }
}

/* the calls that are no fill with a per-element mapping; returns the bytes written */
#define CALL_OTHERS 8
static inline size_t call_other(int which, uint64_t seed, void *out) {
    double d[6] = {0};
    uint64_t w[T_COUNT * 4];
    size_t k = 0;
    switch (which) {
    case 0: fc_randperm(seed, out, CALL_ELEMENTS); return 8 * CALL_ELEMENTS;
    case 1: fc_gaussian_f64(seed, 3, 0x1.8p-3, out, CALL_ELEMENTS / 2); return 8 * (CALL_ELEMENTS / 2 * 2);
    case 2: fc_gumbel_f64(seed, 3, out, CALL_ELEMENTS); return 8 * CALL_ELEMENTS;
    case 3: fc_dropout_scale(0.1, out); return 4;
    case 4:
        d[0] = fc_exact_ln(0x1.5555555555555p-2), d[1] = fc_exact_sin(0x1.3333333333333p+1), d[2] = fc_exact_cos(0x1.3333333333333p+1);
        d[3] = fc_exact_ln(0x1p-1074), d[4] = fc_exact_sin(0x1p-1074), d[5] = fc_exact_cos(0x1p-1074); /* subnormal: no 0 under DAZ */
        memcpy(out, d, sizeof d);
        return sizeof d;
    case 5:
        for (int i = 0; i < 20; i++) w[k++] = fc_at(seed, (uint64_t)i << i);
        break;
    case 6: /* the smallest pattern above zero of every dtype: flushed by a careless reader under DAZ */
        for (int dtype = 0; dtype < T_COUNT; dtype++) {
            int truth = -1;
            fc_is_truthy(dtype, 1, &truth);
            w[k++] = (uint64_t)truth;
        }
        break;
    default:
        for (int dtype = 0; dtype < T_COUNT; dtype++)
            for (uint32_t mode = 0; mode < 4; mode++) fc_cast_bits(T_F32, dtype, mode, 0x3f801001u ^ (uint32_t)seed % 7, &w[k++]);
    }
    memcpy(out, w, 8 * k);
    return 8 * k;
}

#endif
