/*
 * One operation in the caller's environment, for the conformance suite: what rounding, underflow and flags do to it.  The
 * operands come from memory and the result goes there, so that the operation is done where it stands and at run time.
 */
#include "core/bits.h"
#include "fucina.h"
#include <math.h>

static double sqrt_f64(double x) {
#if defined(__x86_64__)
    __asm__ volatile("sqrtsd %0, %0" : "+x"(x));
    return x;
#elif defined(__aarch64__)
    __asm__ volatile("fsqrt %d0, %d0" : "+w"(x));
    return x;
#else
    return sqrt(x);
#endif
}

static float sqrt_f32(float x) {
#if defined(__x86_64__)
    __asm__ volatile("sqrtss %0, %0" : "+x"(x));
    return x;
#elif defined(__aarch64__)
    __asm__ volatile("fsqrt %s0, %s0" : "+w"(x));
    return x;
#else
    return (float)sqrt(x);
#endif
}

/* FPENV-SET-2, FPENV-FLAGS-1 */
fc_status fc_operate_f32(int operation, uint32_t a, uint32_t b, uint32_t *out) {
    volatile float x = f32_value(a), y = f32_value(b), z;
    switch (operation) {
    case FC_OPERATE_ADD: z = x + y; break;
    case FC_OPERATE_SUBTRACT: z = x - y; break;
    case FC_OPERATE_MULTIPLY: z = x * y; break;
    case FC_OPERATE_DIVIDE: z = x / y; break;
    case FC_OPERATE_SQRT: z = sqrt_f32(x); break;
    default: return FC_BAD_BOUNDS;
    }
    *out = f32_bits(z);
    return FC_OK;
}

/* FPENV-SET-2, FPENV-FLAGS-1; a conversion gives the pattern of an f32 */
fc_status fc_operate_f64(int operation, uint64_t a, uint64_t b, uint64_t *out) {
    volatile double x = f64_value(a), y = f64_value(b), z;
    switch (operation) {
    case FC_OPERATE_ADD: z = x + y; break;
    case FC_OPERATE_SUBTRACT: z = x - y; break;
    case FC_OPERATE_MULTIPLY: z = x * y; break;
    case FC_OPERATE_DIVIDE: z = x / y; break;
    case FC_OPERATE_SQRT: z = sqrt_f64(x); break;
    case FC_OPERATE_TO_F32: {
        volatile float narrow = (float)x;
        *out = f32_bits(narrow);
        return FC_OK;
    }
    default: return FC_BAD_BOUNDS;
    }
    *out = f64_bits(z);
    return FC_OK;
}
