/*
 * The kernels behind the facade, each beside a literal rule: odd sizes, strides of all kinds, special values, every dtype, every
 * level, one to eight participants.  With the argument `quick` there are fewer of everything.
 */
#include "bridge/pairs.h"
#include "fucina.h"
#include "ops/fma.h"
#include "ops/ops.h"
#include "storage/memory.h"
#include "tests/check.h"
#include "tests/patterns.h"
#include <math.h>
#include <stdlib.h>

static int quick;
static uint64_t state = 88172645463325252u;
static size_t below(size_t n) { return (size_t)(pattern_next(&state) % n); }

enum { MEMORY = 1 << 22 };
static unsigned char left[MEMORY], right[MEMORY], result[MEMORY + 64];
static const int floats[] = {FC_f16, FC_bf16, FC_f32, FC_f64};

/* -- elements as numbers */
static double number(int dtype, const void *p) {
    uint64_t wide = 0;
    double value;
    if (dtype == FC_i64) {
        int64_t whole;
        memcpy(&whole, p, 8);
        return (double)whole;
    }
    fc_cast_bits(dtype, FC_f64, 0, pattern_load(p, fc_size_of(dtype)), &wide);
    memcpy(&value, &wide, 8);
    return value;
}
/* a number of the accumulator's dtype as an element */
static void element(int dtype, double value, void *p) {
    uint64_t bits, narrow = 0;
    memcpy(&bits, &value, 8);
    fc_cast_bits(FC_f64, dtype, 0, bits, &narrow);
    pattern_store(p, fc_size_of(dtype), narrow);
}
static int same(int dtype, const void *a, const void *b) {
    if (memcmp(a, b, fc_size_of(dtype)) == 0) return 1;
    return dtype >= FC_f16 && isnan(number(dtype, a)) && isnan(number(dtype, b));
}
/* one number in `rare` is any pattern, NaN, an infinity or subnormal among them; the others are of ordinary size */
static void fill(int dtype, unsigned char *p, size_t n, size_t rare) {
    const size_t size = fc_size_of(dtype);
    for (size_t k = 0; k < n; k++) {
        if (dtype < FC_f16 || below(rare) == 0)
            pattern_store(p + k * size, size, pattern_element(dtype, &state));
        else
            element(dtype, (double)((int64_t)pattern_next(&state)) * 0x1p-63 * (double)(1 + below(4)), p + k * size);
    }
}

/* Every level with every number of participants. */
#define EACH_LEVEL(level)                                    \
    for (int level = 0; level < fc_isa_count(); level++)     \
        if (fc_isa_set(level) == FC_OK)
static size_t participants(size_t turn) {
    const size_t count = turn % 8 + 1;
    fc_set_max_threads(count);
    return count;
}

/* The C library's fma, but for a product alone: beside +0 musl's loses the sign of one that underflows, and a
   multiplication rounds it once as well. */
static double exact_fma(double x, double y, double z) { return z == 0 && x != 0 && y != 0 ? x * y : fma(x, y, z); }
static float exact_fmaf(float x, float y, float z) { return z == 0 && x != 0 && y != 0 ? x * y : fmaf(x, y, z); }

/* -- fma in software beside the C library's */
static void soft(void) {
    const size_t times = quick ? 200000 : 4000000;
    size_t wrong32 = 0, wrong64 = 0;
    for (size_t k = 0; k < times; k++) {
        double d[3];
        float f[3];
        for (int i = 0; i < 3; i++) {
            const uint64_t wide = pattern_element(FC_f64, &state);
            const uint32_t narrow = (uint32_t)pattern_element(FC_f32, &state);
            memcpy(d + i, &wide, 8);
            memcpy(f + i, &narrow, 4);
        }
        if (below(2)) { /* an addend that nearly cancels the product, by any number of places */
            d[2] = -(d[0] * d[1]) * (below(2) ? 1 : 1 + (double)below(9) * 0x1p-52) + ldexp(d[2], -(int)below(1100));
            f[2] = -(f[0] * f[1]);
        } else if (below(2)) { /* near the least numbers and the largest */
            d[0] = ldexp(frexp(d[0], &(int){0}), -(int)below(600)), d[1] = ldexp(frexp(d[1], &(int){0}), -(int)below(600));
            d[2] = ldexp(frexp(d[2], &(int){0}), below(2) ? -1060 - (int)below(20) : 1024 - (int)below(60));
        }
        const double want = exact_fma(d[0], d[1], d[2]), got = fma64_soft(d[0], d[1], d[2]);
        const float want32 = exact_fmaf(f[0], f[1], f[2]), got32 = fma32_soft(f[0], f[1], f[2]);
        wrong64 += !same(FC_f64, &want, &got);
        wrong32 += !same(FC_f32, &want32, &got32);
        if (!same(FC_f64, &want, &got) && wrong64 < 3) printf("fma(%a, %a, %a) = %a, not %a\n", d[0], d[1], d[2], want, got);
    }
    CHECK(!wrong64, "fma64 in software: %zu of %zu wrong", wrong64, times);
    CHECK(!wrong32, "fma32 in software: %zu of %zu wrong", wrong32, times);
}

/* -- matrix products */
static void chain(int dtype, const unsigned char *a, size_t a_step, const unsigned char *b, size_t b_step, size_t k, void *out) {
    const size_t size = fc_size_of(dtype);
    double wide = 0;
    float acc = 0;
    for (size_t l = 0; l < k; l++) {
        const double x = number(dtype, a + l * a_step * size), y = number(dtype, b + l * b_step * size);
        if (dtype == FC_f64)
            wide = exact_fma(x, y, wide);
        else
            acc = exact_fmaf((float)x, (float)y, acc);
    }
    element(dtype, dtype == FC_f64 ? wide : (double)acc, out);
}
/* strides of a matrix within the memory: row-major, transposed, spread, repeated */
static void lay(size_t rows, size_t columns, size_t *strides) {
    switch (below(6)) {
    case 0: strides[0] = 1, strides[1] = rows; break;
    case 1: strides[0] = columns + 3, strides[1] = 1; break;
    case 2: strides[0] = 2 * columns, strides[1] = 2; break;
    case 3: strides[0] = 0, strides[1] = 1; break;
    case 4: strides[0] = 1, strides[1] = 0; break;
    default: strides[0] = columns, strides[1] = 1;
    }
}
static void one_matmul(int dtype, size_t m, size_t n, size_t k, const size_t *as, const size_t *bs, size_t turn) {
    const size_t size = fc_size_of(dtype);
    const unsigned char *a = left + size * below(9), *b = right + size * below(9);
    unsigned char *out = result + 8 * below(8);
    EACH_LEVEL(level) {
        const size_t count = participants(turn + (size_t)level);
        memset(result, 0x5a, sizeof result);
        fc_matmul(dtype, m, n, k, a, as, b, bs, out);
        size_t wrong = 0;
        for (size_t e = 0; e < m * n; e += m * n * k > 1 << 19 ? 1 + below(40) : 1) {
            uint64_t want = 0;
            chain(dtype, a + e / n * as[0] * size, as[1], b + e % n * bs[1] * size, bs[0], k, &want);
            wrong += !same(dtype, &want, out + e * size);
        }
        CHECK(!wrong, "matmul %zu %zu %zu, dtype %d, level %s, %zu participants, strides %zu %zu, %zu %zu: %zu wrong", m, k, n, dtype,
              fc_isa_name(level), count, as[0], as[1], bs[0], bs[1], wrong);
        CHECK(out[m * n * size] == 0x5a && (out == result || out[-1] == 0x5a), "matmul wrote outside");
    }
}
static void matmul(int dtype) {
    static const size_t sizes[] = {1, 1, 2, 3, 5, 6, 7, 8, 13, 16, 17, 24, 31, 33, 70}, depths[] = {1, 2, 3, 4, 15, 16, 17, 127, 145, 257, 513, 700};
    for (size_t turn = 0; turn < (quick ? 12 : 90); turn++) {
        const size_t m = sizes[below(15)], n = sizes[below(15)], k = depths[below(12)];
        size_t as[2], bs[2];
        lay(m, k, as);
        lay(k, n, bs);
        one_matmul(dtype, m, n, k, as, bs, turn);
    }
    /* large enough for the team, and for blocks beyond the stack's; a row and a column too */
    static const size_t large[][3] = {{130, 150, 97}, {67, 300, 530}, {7, 1100, 300}, {200, 9, 700}, {1, 1700, 200}, {1500, 1, 150}, {1, 70, 3000}};
    for (size_t turn = 0; turn < (quick ? 1 : 14); turn++) {
        const size_t *s = large[turn % 7];
        size_t as[2] = {s[2], 1}, bs[2] = {s[1], 1};
        if (turn >= 7) as[0] = 1, as[1] = s[0], bs[0] = 1, bs[1] = s[2];
        one_matmul(dtype, s[0], s[1], s[2], as, bs, turn);
    }
    if (!quick) {
        fc_memory_fail(1); /* no blocks: the stack's */
        one_matmul(dtype, 66, 130, 257, (const size_t[]){257, 1}, (const size_t[]){1, 257}, 0);
        fc_memory_fail(0);
    }
}

/* -- views of four axes */
enum { RANK = 4, ELEMENTS = 1 << 16 };
struct view {
    size_t dims[RANK], strides[RANK], count;
};
static struct view any_view(void) {
    static const size_t sizes[] = {1, 1, 2, 3, 5, 7, 9, 17, 33, 40};
    struct view v;
    do {
        v.count = 1;
        for (int k = 0; k < RANK; k++) v.count *= v.dims[k] = below(12) ? sizes[below(10)] : 1 + below(1500);
    } while (v.count > ELEMENTS / 2);
    const size_t how = below(4);
    size_t step = how == 2 ? 2 : 1;
    for (int k = 0; k < RANK; k++) {
        const int axis = how == 1 ? k : RANK - 1 - k;
        v.strides[axis] = how == 3 && below(3) == 0 ? 0 : step;
        step *= v.dims[axis];
    }
    return v;
}
static size_t place(const struct view *v, size_t element) {
    size_t at = 0;
    for (int k = RANK - 1; k >= 0; k--) {
        at += element % v->dims[k] * v->strides[k];
        element /= v->dims[k];
    }
    return at;
}
static size_t inner_of(const struct view *v, int axis) {
    size_t inner = 1;
    for (int k = axis + 1; k < RANK; k++) inner *= v->dims[k];
    return inner;
}

/* -- an element and a number; roots */
static float greater(float a, float b) {
    if (a != a) return a;
    if (b != b) return b;
    if (a == 0 && b == 0) return signbit(a) ? b : a;
    return a > b ? a : b;
}
static void with_scalar(int dtype, size_t turn) {
    static const double values[] = {0.1, -0.0, 0.0, 1e-3, NAN, INFINITY, -3.25, 0x1.000002p-126};
    const struct view v = any_view();
    const size_t size = fc_size_of(dtype);
    const double value = values[below(8)];
    EACH_LEVEL(level) {
        participants(turn);
        for (int operation = FC_ADD; operation <= FC_MAXIMUM; operation += FC_MAXIMUM - FC_ADD) {
            size_t wrong = 0;
            fc_with_scalar(operation, dtype, RANK, v.dims, left, v.strides, value, result);
            for (size_t k = 0; k < v.count; k++) {
                const double x = number(dtype, left + place(&v, k) * size);
                uint64_t want = 0;
                if (dtype == FC_f64)
                    element(dtype, operation == FC_ADD ? x + value : x == value && x == 0 ? (signbit(x) ? value : x) : x != x ? x : value != value ? value : x > value ? x : value, &want);
                else
                    element(dtype, (double)(operation == FC_ADD ? (float)x + (float)value : greater((float)x, (float)value)), &want);
                wrong += !same(dtype, &want, result + k * size);
            }
            CHECK(!wrong, "operation %d with %a, dtype %d, level %s: %zu of %zu wrong", operation, value, dtype, fc_isa_name(level), wrong, v.count);
        }
    }
}

/* factors * factors * x against a power of two, as lists of 16-bit digits: -1, 0, 1 */
static int square_against(uint64_t factor, uint64_t x, int power) {
    uint64_t digits[16] = {0}, terms[3] = {factor, factor, x};
    digits[0] = 1;
    for (int t = 0; t < 3; t++) {
        uint64_t next[16] = {0};
        for (int i = 0; i < 12; i++)
            for (int j = 0; j < 4; j++) {
                next[i + j] += digits[i] * (terms[t] >> (16 * j) & 0xffff);
                for (int k = i + j; next[k] >> 16; k++) next[k + 1] += next[k] >> 16, next[k] &= 0xffff;
            }
        memcpy(digits, next, sizeof digits);
    }
    for (int i = 15; i >= 0; i--) {
        const uint64_t of_power = power / 16 == i ? (uint64_t)1 << power % 16 : 0;
        if (digits[i] != of_power) return digits[i] < of_power ? -1 : 1;
    }
    return 0;
}
/* whether y is the number of `bits` bits nearest to 1 / sqrt(x), for x > 0 */
static int is_rsqrt(double x, double y, int bits) {
    int ex, ey;
    uint64_t mx = (uint64_t)ldexp(frexp(x, &ex), 53), my = (uint64_t)ldexp(frexp(y, &ey), bits);
    ex -= 53, ey -= bits;
    /* in quarters of a unit, for the number below a power of two is nearer */
    const uint64_t low = 4 * my - (my == (uint64_t)1 << (bits - 1) ? 1 : 2), high = 4 * my + 2;
    const int power = -ex - 2 * (ey - 2);
    return square_against(low, mx, power) < 0 && square_against(high, mx, power) > 0;
}
static void roots(int dtype, size_t turn) {
    const struct view v = any_view();
    const size_t size = fc_size_of(dtype);
    EACH_LEVEL(level) {
        size_t wrong[2] = {0, 0};
        participants(turn);
        for (int which = 0; which < 2; which++) {
            fc_unary(which ? FC_SQRT : FC_RSQRT, dtype, RANK, v.dims, left, v.strides, result);
            for (size_t k = 0; k < v.count; k++) {
                const unsigned char *p = result + k * size;
                const double x = number(dtype, left + place(&v, k) * size), y = number(dtype, p);
                uint64_t want = 0;
                int good;
                if (which) {
                    element(dtype, dtype == FC_f64 ? sqrt(x) : (double)sqrtf((float)x), &want);
                    good = same(dtype, &want, p);
                } else if (x != x || x < 0) {
                    good = y != y;
                } else if (x == 0) {
                    good = isinf(y) && !signbit(y) == !signbit(x);
                } else if (isinf(x)) {
                    good = y == 0 && !signbit(y);
                } else if (dtype == FC_f64) {
                    good = is_rsqrt(x, y, 53);
                } else { /* the f32 nearest to an f64 that is right, or the neighbour that is */
                    float wide = (float)(1 / sqrt(x));
                    for (int tries = 0; tries < 3 && !is_rsqrt(x, (double)wide, 24); tries++)
                        wide = tries ? nextafterf(nextafterf(wide, 0), 0) : nextafterf(wide, INFINITY);
                    element(dtype, (double)wide, &want);
                    good = same(dtype, &want, p);
                }
                wrong[which] += !good;
            }
        }
        CHECK(!wrong[0], "rsqrt, dtype %d, level %s: %zu of %zu wrong", dtype, fc_isa_name(level), wrong[0], v.count);
        CHECK(!wrong[1], "sqrt, dtype %d, level %s: %zu of %zu wrong", dtype, fc_isa_name(level), wrong[1], v.count);
    }
}
/* every mantissa of f32 with two exponents, which are all that tell; where f64 comes near a midpoint, exactly */
static void every_rsqrt(void) {
    enum { MANTISSAS = 1 << 23, PART = 1 << 16 };
    static float in[PART], out[PART];
    const size_t n = PART, one = 1;
    EACH_LEVEL(level) {
        size_t wrong = 0, near = 0;
        for (uint32_t first = 0; first < 2 * MANTISSAS; first += PART) {
            for (uint32_t k = 0; k < PART; k++) {
                const uint32_t bits = (127u << 23) + first + k;
                memcpy(in + k, &bits, 4);
            }
            fc_unary(FC_RSQRT, FC_f32, 1, &n, in, &one, out);
            for (size_t k = 0; k < PART; k++) {
                const double y = 1 / sqrt((double)in[k]);
                uint64_t bits;
                memcpy(&bits, &y, 8);
                const uint64_t rest = bits & 0x1fffffff;
                if (rest > 0x10000000 - 100 && rest < 0x10000000 + 100) {
                    near++;
                    wrong += !is_rsqrt((double)in[k], (double)out[k], 24);
                } else {
                    wrong += (float)y != out[k];
                }
            }
        }
        CHECK(!wrong, "rsqrt of every f32, level %s: %zu wrong, %zu near a midpoint", fc_isa_name(level), wrong, near);
    }
}

/* -- sums of any axes, as the clause says it */
#define RULE(type)                                                                                                        \
    static type rule_##type(const type *x, size_t n) {                                                                    \
        type lanes[32] = {0};                                                                                             \
        if (n > 8192) {                                                                                                   \
            type sums[64];                                                                                                \
            size_t m = 0;                                                                                                 \
            for (size_t k = 0; k < n; k += 8192) sums[m++] = rule_##type(x + k, n - k < 8192 ? n - k : 8192);             \
            return rule_##type(sums, m);                                                                                  \
        }                                                                                                                 \
        for (size_t k = 0; k < n; k++) lanes[k % 32] += x[k];                                                             \
        for (size_t half = 16; half; half /= 2)                                                                           \
            for (size_t k = 0; k < half; k++) lanes[k] += lanes[k + half];                                                \
        return lanes[0];                                                                                                  \
    }
RULE(float)
RULE(double)

static void sum_axes(int dtype, size_t turn) {
    static float singles[ELEMENTS];
    static double doubles[ELEMENTS];
    const struct view v = any_view();
    const size_t size = fc_size_of(dtype);
    const int wide = fc_sum_dtype(dtype);
    EACH_LEVEL(level) for (unsigned mask = 0; mask < 16; mask += quick ? 5 : 1) {
        size_t wrong = 0, others = 1;
        participants(turn + mask);
        for (int k = 0; k < RANK; k++) others *= mask >> k & 1 ? 1 : v.dims[k];
        memset(result, 0x5a, 64 + others * 8);
        fc_sum_axes(dtype, RANK, v.dims, left, v.strides, mask, result);
        for (size_t one = 0; one < others; one += others > 24 ? 1 + below(others / 12) : 1) {
            size_t n = 0;
            int64_t whole = 0;
            for (size_t e = 0; e < v.count; e++) { /* those that belong to it, in their order */
                size_t rest = e, index = 0, step = 1;
                for (int k = RANK - 1; k >= 0; k--) {
                    if (!(mask >> k & 1)) index += rest % v.dims[k] * step, step *= v.dims[k];
                    rest /= v.dims[k];
                }
                if (index != one) continue;
                const unsigned char *p = left + place(&v, e) * size;
                uint64_t bits = pattern_load(p, size);
                if (wide == FC_i64)
                    whole = (int64_t)((uint64_t)whole + (dtype == FC_i8 ? (uint64_t)(int8_t)bits : dtype == FC_i16 ? (uint64_t)(int16_t)bits : dtype == FC_i32 ? (uint64_t)(int32_t)bits : bits));
                else if (wide == FC_f64)
                    doubles[n++] = number(dtype, p);
                else
                    singles[n++] = (float)number(dtype, p);
            }
            uint64_t want = (uint64_t)whole;
            if (wide == FC_f64) {
                const double total = rule_double(doubles, n);
                memcpy(&want, &total, 8);
            } else if (wide == FC_f32) {
                const float total = rule_float(singles, n);
                memcpy(&want, &total, 4);
            }
            wrong += !same(wide, &want, result + one * fc_size_of(wide));
        }
        CHECK(!wrong, "sum of axes %x, dtype %d, level %s: %zu wrong, shape %zu %zu %zu %zu", mask, dtype, fc_isa_name(level), wrong, v.dims[0],
              v.dims[1], v.dims[2], v.dims[3]);
        CHECK(result[others * fc_size_of(wide)] == 0x5a, "sum of axes wrote outside");
    }
}

/* -- dropout */
static void dropout(int dtype, size_t turn) {
    static const double chances[] = {0, 0.1, 0.5, 0x1p-149, 0x1.fffffep-1, 1e-9, 0.3};
    struct view v = any_view();
    if (turn == 0) v = (struct view){{1, 1, 3, ELEMENTS - 5}, {1, 1, 0, 1}, 3 * (ELEMENTS - 5)}; /* the team's */
    const size_t size = fc_size_of(dtype);
    const uint64_t seed = pattern_next(&state);
    const float p = (float)chances[below(7)];
    float scale;
    fc_dropout_scale((double)p, &scale);
    EACH_LEVEL(level) {
        size_t wrong = 0;
        unsigned char *out = result + 8 * below(8);
        participants(turn);
        memset(result, 0x5a, v.count * size + 128);
        fc_dropout(dtype, RANK, v.dims, left, v.strides, seed, (double)p, out);
        for (size_t k = 0; k < v.count; k++) {
            uint8_t kept;
            uint64_t want = 0;
            fc_dropout_mask(seed, k, (double)p, &kept, 1);
            if (kept) element(dtype, (double)((float)number(dtype, left + place(&v, k) * size) * scale), &want);
            wrong += !same(dtype, &want, out + k * size);
        }
        CHECK(!wrong, "dropout %a, dtype %d, level %s: %zu of %zu wrong", (double)p, dtype, fc_isa_name(level), wrong, v.count);
        CHECK(out[v.count * size] == 0x5a && (out == result || out[-1] == 0x5a), "dropout wrote outside");
    }
}
/* a result beyond the caches, at an odd place */
static void large_dropout(void) {
    const size_t n = (1 << 22) + 13, one = 1;
    float *x = malloc(n * sizeof *x), *out = malloc((n + 2) * sizeof *out), scale;
    uint8_t *mask = malloc(n);
    if (!x || !out || !mask) exit(2);
    for (size_t k = 0; k < n; k++) x[k] = (float)(k % 1000) - 500.25F;
    fc_dropout_mask(7, 0, 0.25, mask, n);
    fc_dropout_scale(0.25, &scale);
    EACH_LEVEL(level) for (size_t turn = 0; turn < 2; turn++) {
        size_t wrong = 0;
        participants(turn);
        out[0] = out[n + 1] = 5;
        fc_dropout(FC_f32, 1, &n, x, &one, 7, 0.25, out + 1);
        for (size_t k = 0; k < n; k++) wrong += out[k + 1] != (mask[k] ? x[k] * scale : 0) || (!mask[k] && signbit(out[k + 1]));
        CHECK(!wrong && out[0] == 5 && out[n + 1] == 5, "large dropout, level %s: %zu wrong", fc_isa_name(level), wrong);
    }
    free(x), free(out), free(mask);
}

/* -- order: does a come before b, in the plain words of the clauses? */
static int64_t whole_of(int dtype, uint64_t bits) {
    return dtype == FC_i8 ? (int8_t)bits : dtype == FC_i16 ? (int16_t)bits : dtype == FC_i32 ? (int32_t)bits : dtype == FC_bool ? bits != 0 : (int64_t)bits;
}
static int before(int dtype, int descending, const unsigned char *a, const unsigned char *b) {
    const size_t size = fc_size_of(dtype);
    if (dtype < FC_f16) {
        const int64_t x = whole_of(dtype, pattern_load(a, size)), y = whole_of(dtype, pattern_load(b, size));
        return descending ? x > y : x < y;
    }
    const double x = number(dtype, a), y = number(dtype, b);
    if (x != x || y != y) return x == x && y != y;
    if (x == 0 && y == 0) return descending ? signbit(y) && !signbit(x) : signbit(x) && !signbit(y);
    return descending ? x > y : x < y;
}
/* few values, so that there are many ties */
static void coarse(int dtype, unsigned char *p, size_t n) {
    static const double values[] = {0.0, -0.0, 1, -1, 2.5, NAN, INFINITY, -INFINITY, 3, 0x1p-14};
    const size_t size = fc_size_of(dtype);
    for (size_t k = 0; k < n; k++) {
        if (dtype < FC_f16 || below(4) == 0) {
            uint64_t bits = pattern_element(dtype, &state);
            if (dtype < FC_f16 && below(2)) bits = below(3) - 1;
            pattern_store(p + k * size, size, bits);
        } else {
            element(dtype, values[below(10)], p + k * size);
        }
    }
    if (dtype == FC_bool)
        for (size_t k = 0; k < n; k++) p[k] = (unsigned char)below(2);
}
static void order(int dtype, size_t turn) {
    static size_t want[ELEMENTS];
    static unsigned char sorted[ELEMENTS * 8], values[ELEMENTS * 8];
    static int64_t indices[ELEMENTS], top[ELEMENTS], most[ELEMENTS];
    struct view v = any_view();
    const int axis = (int)below(RANK), descending = (int)below(2);
    if (turn == 0) { /* a long line, and several of them */
        v = (struct view){{1, 3, 1, 5000}, {1, 5000, 1, 1}, 15000};
    }
    const int along = turn == 0 ? 3 : axis;
    const size_t size = fc_size_of(dtype), n = v.dims[along], inner = inner_of(&v, along), k = 1 + below(n < 100 ? n : 100);
    participants(turn);
    CHECK(fc_argsort(dtype, RANK, v.dims, left, v.strides, along, descending, indices) && fc_sort(dtype, RANK, v.dims, left, v.strides, along, descending, sorted), "memory");
    fc_argmax(dtype, RANK, v.dims, left, v.strides, along, most);
    if (dtype >= FC_f16) CHECK(fc_top_k(dtype, RANK, v.dims, left, v.strides, along, k, values, top), "memory");
    size_t wrong_sort = 0, wrong_top = 0, wrong_most = 0;
    for (size_t line = 0; line < v.count / n; line++) {
        const size_t first = line / inner * inner * n + line % inner;
#define AT(i) (left + place(&v, first + (i) * inner) * size)
        for (int direction = 0; direction < 2; direction++) { /* the clause's order; then that of top_k */
            const int down = direction ? 1 : descending;
            for (size_t i = 0; i < n; i++) {
                size_t to = i;
                if (n > 1000 && i) { /* by bisection, the same place: behind all that do not come after it */
                    size_t low = 0, high = i;
                    while (low < high) {
                        const size_t middle = (low + high) / 2;
                        if (before(dtype, down, AT(i), AT(want[middle]))) high = middle;
                        else low = middle + 1;
                    }
                    memmove(want + low + 1, want + low, (i - low) * sizeof *want);
                    want[low] = i;
                    continue;
                }
                for (; to && before(dtype, down, AT(i), AT(want[to - 1])); to--) want[to] = want[to - 1];
                want[to] = i;
            }
            if (!direction)
                for (size_t i = 0; i < n; i++)
                    wrong_sort += indices[first + i * inner] != (int64_t)want[i] || memcmp(sorted + (first + i * inner) * size, AT(want[i]), size) != 0;
        }
        const size_t first_top = line / inner * inner * k + line % inner;
        for (size_t i = 0; i < k && dtype >= FC_f16; i++) {
            const unsigned char *got = values + (first_top + i * inner) * size;
            const double x = number(dtype, AT(want[i]));
            if (x != x)
                wrong_top += top[first_top + i * inner] != 0 || number(dtype, got) != -INFINITY;
            else
                wrong_top += top[first_top + i * inner] != (int64_t)want[i] || memcmp(got, AT(want[i]), size) != 0;
        }
        size_t best = 0;
        for (size_t i = 1; i < n; i++) {
            const double x = dtype < FC_f16 ? 0 : number(dtype, AT(i)), y = dtype < FC_f16 ? 0 : number(dtype, AT(best));
            const int more = dtype < FC_f16 ? before(dtype, 1, AT(i), AT(best)) : x == x && (y != y || x > y);
            if (more) best = i;
        }
        wrong_most += most[line] != (int64_t)best;
    }
    CHECK(!wrong_sort, "sort, dtype %d, descending %d, axis %d of %zu %zu %zu %zu: %zu wrong", dtype, descending, along, v.dims[0], v.dims[1],
          v.dims[2], v.dims[3], wrong_sort);
    CHECK(!wrong_top, "top %zu, dtype %d, axis %d of %zu: %zu wrong", k, dtype, along, n, wrong_top);
    CHECK(!wrong_most, "argmax, dtype %d, axis %d of %zu %zu %zu %zu: %zu wrong", dtype, along, v.dims[0], v.dims[1], v.dims[2], v.dims[3], wrong_most);
}
static void no_memory(void) {
    const size_t n = 100, one = 1;
    int64_t out[100];
    fc_memory_fail(1);
    CHECK(!fc_argsort(FC_f32, 1, &n, left, &one, 0, 0, out), "sorted without memory");
    fc_memory_fail(0);
}

/* -- rows */
static void rows(size_t size, size_t turn) {
    const struct view v = any_view();
    static int64_t indices[64];
    const size_t count = 1 + below(64), inner = inner_of(&v, 0);
    size_t wrong = 0;
    if (count * inner * size > MEMORY) return;
    for (size_t k = 0; k < count; k++) indices[k] = (int64_t)below(v.dims[0]);
    participants(turn);
    fc_gather_rows(size, RANK, v.dims, left, v.strides, indices, count, result);
    for (size_t k = 0; k < count * inner; k++)
        wrong += memcmp(result + k * size, left + place(&v, (size_t)indices[k / inner] * inner + k % inner) * size, size) != 0;
    CHECK(!wrong, "rows of %zu bytes: %zu wrong", size, wrong);
}
static void scatter(size_t turn) {
    struct view v = any_view();
    static int64_t indices[ELEMENTS];
    static float want[ELEMENTS], *g = (float *)(void *)left;
    if (turn % 3 == 0) v = (struct view){{17, 1, 1, 2500}, {2500, 1, 1, 1}, 17 * 2500};
    const size_t inner = inner_of(&v, 0), n = 1 + below(20);
    if (n * inner > ELEMENTS) return;
    for (size_t k = 0; k < v.dims[0]; k++) indices[k] = (int64_t)below(n);
    for (size_t k = 0; k < n * inner; k++) want[k] = 0;
    for (size_t k = 0; k < v.count; k++) want[(size_t)indices[k / inner] * inner + k % inner] += g[place(&v, k)];
    EACH_LEVEL(level) {
        size_t wrong = 0;
        participants(turn);
        memset(result, 0x5a, n * inner * 4 + 4);
        fc_scatter_add_rows(RANK, v.dims, g, v.strides, indices, n, (float *)(void *)result);
        for (size_t k = 0; k < n * inner; k++) wrong += !same(FC_f32, want + k, result + 4 * k);
        CHECK(!wrong && result[n * inner * 4] == 0x5a, "rows added up, level %s: %zu wrong", fc_isa_name(level), wrong);
    }
}

int main(int argc, char **argv) {
    quick = argc > 1 && strcmp(argv[1], "quick") == 0;
    soft();
    for (size_t d = 0; d < sizeof floats / sizeof *floats; d++) {
        const int dtype = floats[d];
        fill(dtype, left, MEMORY / fc_size_of(dtype), 5000);
        fill(dtype, right, MEMORY / fc_size_of(dtype), 5000);
        matmul(dtype);
        for (size_t turn = 0; turn < (quick ? 3 : 40); turn++) {
            fill(dtype, left, ELEMENTS, turn % 2 ? 3 : 50);
            with_scalar(dtype, turn);
            roots(dtype, turn);
            if (dtype != FC_f64) dropout(dtype, turn);
        }
        fill(dtype, left, ELEMENTS, 5000);
        for (size_t turn = 0; turn < (quick ? 1 : 4); turn++) sum_axes(dtype, turn);
    }
    for (int dtype = FC_bool; dtype <= FC_f64; dtype++) {
        for (size_t turn = 0; turn < (quick ? 4 : 40); turn++) {
            if (turn % 3 == 0) fill(dtype, left, ELEMENTS, 3);
            else coarse(dtype, left, ELEMENTS);
            order(dtype, turn);
        }
        if (dtype < FC_f16)
            sum_axes(dtype, 1);
    }
    no_memory();
    for (size_t turn = 0; turn < (quick ? 10 : 100); turn++) rows((size_t)1 << turn % 4, turn);
    fill(FC_f32, left, ELEMENTS, 1000);
    for (size_t turn = 0; turn < (quick ? 6 : 60); turn++) scatter(turn);
    large_dropout();
    if (!quick) every_rsqrt();
    return check_report();
}
