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
        const double want = fma(d[0], d[1], d[2]), got = fma64_soft(d[0], d[1], d[2]);
        const float want32 = fmaf(f[0], f[1], f[2]), got32 = fma32_soft(f[0], f[1], f[2]);
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
            wide = fma(x, y, wide);
        else
            acc = fmaf((float)x, (float)y, acc);
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
    for (size_t turn = 0; turn < (quick ? 12 : 150); turn++) {
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

int main(int argc, char **argv) {
    quick = argc > 1 && strcmp(argv[1], "quick") == 0;
    soft();
    for (size_t d = 0; d < sizeof floats / sizeof *floats; d++) {
        const int dtype = floats[d];
        fill(dtype, left, MEMORY / fc_size_of(dtype), 5000);
        fill(dtype, right, MEMORY / fc_size_of(dtype), 5000);
        matmul(dtype);
    }
    return check_report();
}
