/*
 * Rows of the pointwise operations: operands that lie contiguous, or of which one is a single element.  Each vector is
 * stored after the operands of its own lanes were loaded, so that the result may lie exactly on an operand.
 */
#include "core/kernels.h"
#include "core/fault.h"
#include "ops/ops.h"
#include "ops/rows.h"
#include "ops/walk.h"
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef void row(int form, const void *a, const void *b, void *out, size_t n);

/* `wide` is what one element is computed in: C would take small ones to int, whose products may overflow */
#define VECTOR(type) typedef type type##_vector __attribute__((vector_size(32), aligned(sizeof(type)), may_alias));
VECTOR(float)
VECTOR(double)
VECTOR(uint8_t)
VECTOR(uint16_t)
VECTOR(uint32_t)
VECTOR(uint64_t)

/* 32 bytes to a multiple of 32 that are not read soon: around the caches, where that can be said */
#if defined(__AVX__)
#define STREAM(to, v) _mm256_stream_si256((__m256i *)(void *)(to), (__m256i)(v))
#elif defined(__x86_64__)
#define STREAM(to, v)                                                                                                      \
    {                                                                                                                      \
        __m128i halves[2];                                                                                                 \
        memcpy(halves, &(v), 32);                                                                                          \
        _mm_stream_si128((__m128i *)(void *)(to), halves[0]);                                                              \
        _mm_stream_si128((__m128i *)(void *)(to) + 1, halves[1]);                                                          \
    }
#else
#define STREAM(to, v) memcpy(to, &(v), 32)
#endif

#define LOOP(type, x, y, vx, vy, op, wide)                                                                                 \
    if (stream)                                                                                                            \
        for (; k + 4 * STEP <= n; k += 4 * STEP)                                                                           \
            for (size_t u = 0; u < 4; u++) {                                                                               \
                const type##_vector v = (vx)op(vy);                                                                        \
                STREAM(out + k + u * STEP, v);                                                                             \
            }                                                                                                              \
    for (; k + 4 * STEP <= n; k += 4 * STEP)                                                                               \
        for (size_t u = 0; u < 4; u++) *(type##_vector *)(out + k + u * STEP) = (vx)op(vy);                                \
    for (size_t u = 0; k + STEP <= n; k += STEP) *(type##_vector *)(out + k) = (vx)op(vy);                                 \
    for (; k < n; k++) out[k] = (type)((wide)(x)op(wide)(y));
#define AT(type, from) (*(const type##_vector *)(from + k + u * STEP))
#define ROW(name, type, op, wide)                                                                                          \
    static void name(int how, const void *first, const void *second, void *result, size_t n) {                             \
        enum { STEP = 32 / sizeof(type) };                                                                                 \
        const int stream = how & FC_ROW_STREAM, form = how & ~FC_ROW_STREAM;                                               \
        const type *a = first, *b = second;                                                                                \
        type *out = result;                                                                                                \
        size_t k = 0;                                                                                                      \
        if (form == FC_ROW_BOTH) {                                                                                         \
            LOOP(type, a[k], b[k], AT(type, a), AT(type, b), op, wide)                                                     \
        } else if (form == FC_ROW_RIGHT_ONE) {                                                                             \
            const type y = *b;                                                                                             \
            LOOP(type, a[k], y, AT(type, a), y, op, wide)                                                                  \
        } else {                                                                                                           \
            const type x = *a;                                                                                             \
            LOOP(type, x, b[k], x, AT(type, b), op, wide)                                                                  \
        }                                                                                                                  \
    }
#define RING(suffix, type, wide)                                                                                           \
    ROW(add_##suffix, type, +, wide)                                                                                       \
    ROW(sub_##suffix, type, -, wide)                                                                                       \
    ROW(mul_##suffix, type, *, wide)
RING(f32, float, float)
RING(f64, double, double)
ROW(div_f32, float, /, float)
ROW(div_f64, double, /, double)
RING(w8, uint8_t, uint32_t) /* modulo 2 to the width, whatever the sign */
RING(w16, uint16_t, uint32_t)
RING(w32, uint32_t, uint32_t)
RING(w64, uint64_t, uint64_t)

/* Clause: CONTEXT-ARITH-2.  A quotient of integers of at most 16 bits is never so near below a whole number that its f32 is
   that number, of 32 bits neither in f64, so that truncating the rounded quotient is truncating the quotient. */
#define QUOTIENT(name, type, expression)                                                                                   \
    static void name(int how, const void *first, const void *second, void *result, size_t n) {                             \
        const int form = how & ~FC_ROW_STREAM;                                                                             \
        const type *a = first, *b = second;                                                                                \
        type *out = result;                                                                                                \
        const size_t a_step = form != FC_ROW_LEFT_ONE, b_step = form != FC_ROW_RIGHT_ONE;                                  \
        for (size_t k = 0; k < n; k++) {                                                                                   \
            const type x = a[k * a_step], y = b[k * b_step];                                                               \
            out[k] = (type)(expression);                                                                                   \
        }                                                                                                                  \
    }
QUOTIENT(div_u8, uint8_t, (int32_t)((float)x / (float)y))
QUOTIENT(div_i8, int8_t, (int32_t)((float)x / (float)y))
QUOTIENT(div_u16, uint16_t, (int32_t)((float)x / (float)y))
QUOTIENT(div_i16, int16_t, (int32_t)((float)x / (float)y))
QUOTIENT(div_i32, int32_t, (int64_t)((double)x / (double)y)) /* -2^31 / -1 = 2^31 wraps in the conversion to 32 bits */
QUOTIENT(div_i64, int64_t, y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y)

#define WRAPPING(u, i)                                                                                                     \
    [FC_##i] = {add_w##u, sub_w##u, mul_w##u, div_##i}
static row *const rows[FC_SCALAR_DTYPES][4] = {
    [FC_f32] = {add_f32, sub_f32, mul_f32, div_f32}, [FC_f64] = {add_f64, sub_f64, mul_f64, div_f64},
    WRAPPING(8, u8), WRAPPING(16, u16), WRAPPING(8, i8), WRAPPING(16, i16), WRAPPING(32, i32), WRAPPING(64, i64),
};

static void widen(int dtype, const void *from, float *to, size_t n) { FC_K(casts)[0][dtype][FC_f32](from, to, n); }
static void narrow(int dtype, const float *from, void *to, size_t n) { FC_K(casts)[0][FC_f32][dtype](from, to, n); }
static const unsigned char *half(const void *first, size_t k) { return (const unsigned char *)first + 2 * k; }

/* Clause: CONTEXT-ARITH-1.  The f32 result of one operation on two f16, rounded to f16, is the f16 nearest to the exact one. */
static void halves(int operation, int dtype, int form, const void *a, const void *b, void *out, size_t n) {
    float x[FC_WALK_PIECE], y[FC_WALK_PIECE];
    if (form == FC_ROW_LEFT_ONE) widen(dtype, a, x, 1);
    if (form == FC_ROW_RIGHT_ONE) widen(dtype, b, y, 1);
    for (size_t k = 0; k < n; k += FC_WALK_PIECE) {
        const size_t count = n - k < FC_WALK_PIECE ? n - k : FC_WALK_PIECE;
        float z[FC_WALK_PIECE];
        if (form != FC_ROW_LEFT_ONE) widen(dtype, half(a, k), x, count);
        if (form != FC_ROW_RIGHT_ONE) widen(dtype, half(b, k), y, count);
        rows[FC_f32][operation](form, x, y, z, count);
        narrow(dtype, z, (unsigned char *)out + 2 * k, count);
    }
}

void FC_K(pointwise)(int operation, int dtype, int form, const void *a, const void *b, void *out, size_t n) {
    if (dtype == FC_f16 || dtype == FC_bf16)
        halves(operation, dtype, form & ~FC_ROW_STREAM, a, b, out, n);
    else
        rows[dtype][operation](form, a, b, out, n);
}

/* The greater of each element and a number: a NaN wins, and -0 < +0. */
#define GREATER(name, type, word)                                                                                          \
    static void name(const type *x, type value, type *out, size_t n) {                                                     \
        word right;                                                                                                        \
        memcpy(&right, &value, sizeof right);                                                                              \
        for (size_t k = 0; k < n; k++) {                                                                                   \
            const type a = x[k];                                                                                           \
            word left, best;                                                                                               \
            memcpy(&left, &a, sizeof left);                                                                                \
            best = a > value ? left : right;                                                                               \
            best = a == value ? left & right : best; /* of zeros, +0 if one is */                                \
            best = a != a ? left : best;                                                                                   \
            memcpy(out + k, &best, sizeof best);                                                                           \
        }                                                                                                                  \
    }
GREATER(greater_f32, float, uint32_t)
GREATER(greater_f64, double, uint64_t)

static void scalar_f32(int operation, int stream, const float *x, float value, float *out, size_t n) {
    if (operation == FC_MAXIMUM)
        greater_f32(x, value, out, n);
    else
        (operation == FC_ADD ? add_f32 : mul_f32)(FC_ROW_RIGHT_ONE | stream, x, &value, out, n);
}

/* Clause: CONTEXT-SCALE-1.  An element and a number: FC_ADD, FC_MUL or FC_MAXIMUM. */
void FC_K(with_scalar)(int operation, int dtype, int stream, double value, const void *x, void *out, size_t n) {
    const float single = (float)value;
    if (dtype == FC_f64 && operation == FC_MAXIMUM) {
        greater_f64(x, value, out, n);
    } else if (dtype == FC_f64) {
        (operation == FC_ADD ? add_f64 : mul_f64)(FC_ROW_RIGHT_ONE | stream, x, &value, out, n);
    } else if (dtype == FC_f32) {
        scalar_f32(operation, stream, x, single, out, n);
    } else {
        for (size_t k = 0; k < n; k += FC_WALK_PIECE) {
            const size_t count = n - k < FC_WALK_PIECE ? n - k : FC_WALK_PIECE;
            float wide[FC_WALK_PIECE], result[FC_WALK_PIECE];
            widen(dtype, half(x, k), wide, count);
            scalar_f32(operation, 0, wide, single, result, count);
            narrow(dtype, result, (unsigned char *)out + 2 * k, count);
        }
    }
}

/* After streaming, before another thread is told of it. */
void FC_K(stream_end)(void) {
#if defined(__x86_64__)
    _mm_sfence();
#endif
}
