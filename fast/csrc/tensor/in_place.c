/*
 * In-place arithmetic: plain loops for the dtypes that C has, f16 and bf16 by pieces through f32.  For f16 that is exactly
 * one rounding: the f32 result of a sum or product of f16 values, rounded to f16, is the f16 nearest to the exact one.
 */
#include "tensor/in_place.h"
#include "core/dispatch.h"
#include "core/dtype.h"
#include "core/environment.h"
#include "core/fault.h"
#include <float.h>
#include <stdint.h>

_Static_assert(FLT_EVAL_METHOD == 0, "float expressions must not be evaluated in a wider type");
enum { PIECE = 512 };

#define ADD(type)                                                                                  \
    {                                                                                              \
        type *a = values;                                                                          \
        const type *b = other;                                                                     \
        for (size_t k = 0; k < n; k++) a[k] = (type)(a[k] + b[k]);                                 \
    }

static void widen(int dtype, const unsigned char *from, float *to, size_t n) {
    (*fc_kernels_in_force()->casts)[0][dtype][FC_f32](from, to, n);
}
static void narrow(int dtype, const float *from, unsigned char *to, size_t n) {
    (*fc_kernels_in_force()->casts)[0][FC_f32][dtype](from, to, n);
}

static void add_halves(int dtype, void *values, const void *other, size_t n) {
    float a[PIECE], b[PIECE];
    for (size_t start = 0; start < n; start += PIECE) {
        const size_t count = n - start < PIECE ? n - start : PIECE;
        unsigned char *place = (unsigned char *)values + 2 * start;
        widen(dtype, place, a, count);
        widen(dtype, (const unsigned char *)other + 2 * start, b, count);
        for (size_t k = 0; k < count; k++) a[k] += b[k];
        narrow(dtype, a, place, count);
    }
}

/* Clauses: TENSOR-ADD-1, DTYPE-POLICY-1 */
int fc_add_in_place(int dtype, void *values, const void *other, size_t n) {
    const fc_environment outer = fc_environment_enter();
    int known = 1;
    switch (dtype) {
    case FC_u8:
    case FC_i8: ADD(uint8_t) break; /* wrapping: as unsigned */
    case FC_u16:
    case FC_i16: ADD(uint16_t) break;
    case FC_i32: ADD(uint32_t) break;
    case FC_i64: ADD(uint64_t) break;
    case FC_f32: ADD(float) break;
    case FC_f64: ADD(double) break;
    case FC_f16:
    case FC_bf16: add_halves(dtype, values, other, n); break;
    default: known = 0;
    }
    fc_environment_leave(outer);
    return known;
}

static void scale_halves(int dtype, void *values, float scalar, size_t n) {
    float a[PIECE];
    for (size_t start = 0; start < n; start += PIECE) {
        const size_t count = n - start < PIECE ? n - start : PIECE;
        unsigned char *place = (unsigned char *)values + 2 * start;
        widen(dtype, place, a, count);
        for (size_t k = 0; k < count; k++) a[k] *= scalar;
        narrow(dtype, a, place, count);
    }
}

/* Clauses: TENSOR-SCALE-1, NUM-PARAM-1 */
int fc_scale_in_place(int dtype, void *values, double scalar, size_t n) {
    const fc_environment outer = fc_environment_enter();
    const double pinned = fc_environment_pin(scalar);
    const float single = (float)pinned;
    int known = 1;
    switch (dtype) {
    case FC_f32: {
        float *a = values;
        for (size_t k = 0; k < n; k++) a[k] *= single;
        break;
    }
    case FC_f64: {
        double *a = values;
        for (size_t k = 0; k < n; k++) a[k] *= pinned;
        break;
    }
    case FC_f16:
    case FC_bf16: scale_halves(dtype, values, single, n); break;
    default: known = 0;
    }
    fc_environment_leave(outer);
    return known;
}
