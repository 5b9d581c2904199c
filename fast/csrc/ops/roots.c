/*
 * Square roots and their reciprocals, correctly rounded (clause NUM-ELEM-1).
 *
 * rsqrt of f32 is 1 / sqrt(x) in f64: two roundings, each of at most 2^-53 of the value, so at most two units of the last
 * place from the exact value.  Where a midpoint of two f32 is no further than DOUBT units away, integers decide.  No exact
 * value is a midpoint: 1 / x would be the square of an odd number greater than 1 times a power of two.
 * rsqrt of f64 is decided in integers always.
 */
#include "core/kernels.h"
#include "ops/fma.h"
#include "ops/ops.h"
#include "ops/walk.h"

enum { BLOCK = 64, DOUBT = 8, CUT = 1 << 28 }; /* CUT: a midpoint of f32 in the 29 bits that f64 has more */

static int doubtful(uint64_t bits) { return (bits & (2 * CUT - 1)) - (CUT - DOUBT) <= 2 * DOUBT; }

/* x > 0, finite; y is less than CUT units from the midpoint of the two f32 around it */
static float decide(float x, double y) {
    const uint64_t middle = (f64_bits(y) & ~(uint64_t)(2 * CUT - 1)) | CUT;
    int ex, em;
    const uint64_t mx = fma_split(f64_bits((double)x), &ex) >> 29, mm = fma_split(middle, &em) >> 28; /* 24 and 25 bits */
    const int places = -(ex + 29) - 2 * (em + 28); /* x * middle^2 < 1: the product of the integers is below 2^places */
    return (float)f64_value((fma_u128)mx * mm * mm < (fma_u128)1 << places ? middle + 1 : middle - 1);
}

static void rsqrt_f32(const float *x, float *out, size_t n) {
    double y[BLOCK];
    for (size_t start = 0; start < n; start += BLOCK) {
        const size_t count = n - start < BLOCK ? n - start : BLOCK;
        const float *in = x + start;
        uint64_t any = 0;
        for (size_t k = 0; k < count; k++) y[k] = 1.0 / __builtin_sqrt((double)in[k]);
        for (size_t k = 0; k < count; k++) out[start + k] = FC_PLANT(RSQRT_F32, (float)y[k], 1.0f / __builtin_sqrtf(in[k]));
        for (size_t k = 0; k < count; k++) any |= (uint64_t)doubtful(f64_bits(y[k]));
        for (size_t k = 0; k < count && any && !FC_PLANTED(RSQRT_F32); k++)
            if (doubtful(f64_bits(y[k])) && in[k] > 0) out[start + k] = decide(in[k], y[k]); /* an infinity is not doubtful */
    }
}

/* odd^2 * m < 2^160? */
static int less(uint64_t odd, uint64_t m) {
    const fma_u128 square = (fma_u128)odd * odd, low = (fma_u128)(uint64_t)square * m, high = (fma_u128)(uint64_t)(square >> 64) * m;
    return high + (low >> 64) < (fma_u128)1 << 96;
}

static double rsqrt_one(double x) {
    if (!(x > 0) || f64_bits(x) == UINT64_C(0x7ff) << 52) return 1.0 / __builtin_sqrt(x);
    int e;
    uint64_t m = fma_split(f64_bits(x), &e);
    if (e % 2) {
        m *= 2;
        e--;
    }
    /* m of 53 or 54 bits, and x^-1/2 = y * 2^(-79 - e/2) with 2^52 < y <= 2^53; y is the nearest integer where
       (2y - 1)^2 m < 2^160 < (2y + 1)^2 m */
    uint64_t y = (uint64_t)(0x1p79 / __builtin_sqrt((double)m));
    while (!less(2 * y - 1, m)) y--;
    while (less(2 * y + 1, m)) y++;
    return (double)y * f64_value((uint64_t)(1023 - 79 - e / 2) << 52);
}

void FC_K(roots)(int operation, int dtype, const void *x, void *out, size_t n) {
    if (dtype == FC_f64) {
        const double *in = x;
        double *to = out;
        if (operation == FC_SQRT)
            for (size_t k = 0; k < n; k++) to[k] = __builtin_sqrt(in[k]);
        else
            for (size_t k = 0; k < n; k++) to[k] = rsqrt_one(in[k]);
        return;
    }
    for (size_t k = 0; k < n; k += FC_WALK_PIECE) {
        const size_t count = n - k < FC_WALK_PIECE ? n - k : FC_WALK_PIECE;
        const unsigned char *half = (const unsigned char *)x + 2 * k;
        float wide[FC_WALK_PIECE], root[FC_WALK_PIECE];
        const float *in = dtype == FC_f32 ? (const float *)x + k : wide;
        float *to = dtype == FC_f32 ? (float *)out + k : root;
        if (dtype != FC_f32) FC_K(casts)[0][dtype][FC_f32](half, wide, count);
        if (operation == FC_SQRT)
            for (size_t i = 0; i < count; i++) to[i] = __builtin_sqrtf(in[i]);
        else
            rsqrt_f32(in, to, count);
        if (dtype != FC_f32) FC_K(casts)[0][FC_f32][dtype](root, (unsigned char *)out + 2 * k, count);
    }
}
