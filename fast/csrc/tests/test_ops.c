/*
 * Clauses CONTEXT-ARITH-1, CONTEXT-ARITH-2, CONTEXT-SCALE-1, CONTEXT-SUM-1, CONTEXT-SUM-2 and CONTEXT-CAST-1 at the C level:
 * every operation and dtype beside a literal rule, element by element, on views of many layouts, at every level, with one and
 * with several threads.  With the argument `quick` there are fewer layouts, and no long sums.
 */
#include "bridge/pairs.h"
#include "core/dtype.h"
#include "fucina.h"
#include "ops/ops.h"
#include "tests/check.h"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef __int128 whole;
static int quick;
static uint64_t state = 88172645463325252u;
static uint64_t draw(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}
static size_t below(size_t n) { return (size_t)(draw() % n); }

static const int numbers[] = {FC_u8, FC_u16, FC_i8, FC_i16, FC_i32, FC_i64, FC_f16, FC_bf16, FC_f32, FC_f64};
static int is_float(int dtype) { return dtype >= FC_f16 && dtype <= FC_f64; }

/* -- an element as a number */
static float f32_of(int dtype, const void *p) {
    uint64_t bits, wide = 0;
    uint16_t half;
    uint32_t word;
    float value;
    memcpy(&half, p, 2);
    bits = half;
    fc_cast_bits(dtype, FC_f32, 0, bits, &wide);
    word = (uint32_t)wide;
    memcpy(&value, &word, 4);
    return value;
}
static void to_half(int dtype, float value, void *p) {
    uint32_t word;
    uint64_t bits = 0;
    memcpy(&word, &value, 4);
    fc_cast_bits(FC_f32, dtype, 0, word, &bits);
    const uint16_t half = (uint16_t)bits;
    memcpy(p, &half, 2);
}
static int64_t whole_of(int dtype, const void *p) {
    switch (dtype) {
    case FC_bool:
    case FC_u8: return *(const uint8_t *)p;
    case FC_u16: return *(const uint16_t *)p;
    case FC_i8: return *(const int8_t *)p;
    case FC_i16: return *(const int16_t *)p;
    case FC_i32: return *(const int32_t *)p;
    default: return *(const int64_t *)p;
    }
}

#define LITERAL(type, x, y) (operation == FC_ADD ? (type)((x) + (y)) : operation == FC_SUB ? (type)((x) - (y)) : operation == FC_MUL ? (type)((x) * (y)) : (type)((x) / (y)))
static void literal(int operation, int dtype, const void *a, const void *b, void *out) {
    if (dtype == FC_f32) {
        const float x = *(const float *)a, y = *(const float *)b;
        *(float *)out = LITERAL(float, x, y);
    } else if (dtype == FC_f64) {
        const double x = *(const double *)a, y = *(const double *)b;
        *(double *)out = LITERAL(double, x, y);
    } else if (is_float(dtype)) {
        const float x = f32_of(dtype, a), y = f32_of(dtype, b);
        to_half(dtype, LITERAL(float, x, y), out);
    } else {
        const whole x = whole_of(dtype, a), y = whole_of(dtype, b);
        const whole exact = LITERAL(whole, x, y);
        const uint64_t low = (uint64_t)exact;
        switch (fc_size_of(dtype)) {
        case 1: *(uint8_t *)out = (uint8_t)low; break;
        case 2: *(uint16_t *)out = (uint16_t)low; break;
        case 4: *(uint32_t *)out = (uint32_t)low; break;
        default: *(uint64_t *)out = low;
        }
    }
}

static int is_nan(int dtype, const void *p) {
    if (dtype == FC_f32) return isnan(*(const float *)p);
    if (dtype == FC_f64) return isnan(*(const double *)p);
    return is_float(dtype) && isnan(f32_of(dtype, p));
}
static int same(int dtype, const void *a, const void *b) {
    return memcmp(a, b, fc_size_of(dtype)) == 0 || (is_nan(dtype, a) && is_nan(dtype, b));
}

/* Values of all sizes; of integers the ends, of floats specials too. */
static void fill(int dtype, unsigned char *p, size_t n, int no_zero) {
    const size_t size = fc_size_of(dtype);
    for (size_t k = 0; k < n; k++) {
        uint64_t bits = draw();
        if (draw() % 8 == 0) bits = draw() % 2 ? ~(uint64_t)0 : (uint64_t)1 << (8 * size - 1); /* -1, the least */
        if (is_float(dtype) && draw() % 4) {
            const double value = ((double)(int64_t)draw() * 0x1p-63) * (double)(1 + draw() % 1000);
            if (dtype == FC_f64) memcpy(&bits, &value, 8);
            else if (dtype == FC_f32) {
                const float single = (float)value;
                memcpy(&bits, &single, 4);
            } else to_half(dtype, (float)value, &bits);
        }
        memcpy(p + k * size, &bits, size);
        if (no_zero && whole_of(dtype, p + k * size) == 0) p[k * size] = 3;
    }
}

/* -- views: up to 4 axes, on a memory of MEMORY elements */
enum { MEMORY = 1 << 17, RANK = 4 };
struct view {
    size_t offset, strides[RANK];
};
/* strides of a view of a shape that stays within the memory: row-major, transposed, spread, repeated, or any */
static struct view lay(const size_t *dims) {
    struct view v = {0};
    const int how = (int)below(5);
    size_t step = how == 2 ? 2 : 1, reach = 0;
    for (int k = 0; k < RANK; k++) {
        const int axis = how == 1 ? k : RANK - 1 - k;
        v.strides[axis] = step;
        step *= dims[axis];
        if (how >= 3 && below(3) == 0) v.strides[axis] = 0;
        if (how == 4 && below(3) == 0) v.strides[axis] = below(6);
    }
    for (int k = 0; k < RANK; k++) reach += (dims[k] - 1) * v.strides[k];
    v.offset = reach + 1 < MEMORY ? below(MEMORY - reach < 70 ? MEMORY - reach : 70) : 0;
    if (reach >= MEMORY) memset(v.strides, 0, sizeof v.strides);
    return v;
}
static size_t place(const size_t *dims, const struct view *v, size_t element) {
    size_t at = v->offset;
    for (int k = RANK - 1; k >= 0; k--) {
        at += element % dims[k] * v->strides[k];
        element /= dims[k];
    }
    return at;
}
static size_t shape(size_t *dims) {
    static const size_t sizes[] = {1, 1, 2, 3, 5, 8, 31, 33, 64, 100};
    size_t count;
    do {
        count = 1;
        for (int k = 0; k < RANK; k++) count *= dims[k] = sizes[below(10)];
        if (below(6) == 0) {
            count /= dims[RANK - 1];
            count *= dims[RANK - 1] = 1 + below(5000);
        }
    } while (count > MEMORY / 2);
    return count;
}

static unsigned char left[MEMORY * 8], right[MEMORY * 8], result[MEMORY * 8 + 64];

static void pointwise(int operation, int dtype) {
    size_t dims[RANK];
    const size_t count = shape(dims), size = fc_size_of(dtype);
    const struct view a = lay(dims), b = lay(dims);
    unsigned char *out = result + 8 * below(8);
    for (int level = 0; level < fc_isa_count(); level++) {
        if (fc_isa_set(level) != FC_OK) continue;
        memset(result, 0x5a, sizeof result);
        fc_pointwise(operation, dtype, RANK, dims, left + a.offset * size, a.strides, right + b.offset * size, b.strides, out);
        size_t wrong = 0;
        for (size_t k = 0; k < count; k++) {
            uint64_t want = 0;
            literal(operation, dtype, left + place(dims, &a, k) * size, right + place(dims, &b, k) * size, &want);
            wrong += !same(dtype, &want, out + k * size);
        }
        CHECK(!wrong, "operation %d, dtype %d, level %s: %zu of %zu wrong, shape %zu %zu %zu %zu", operation, dtype, fc_isa_name(level), wrong,
              count, dims[0], dims[1], dims[2], dims[3]);
        CHECK(out[count * size] == 0x5a && (out == result || out[-1] == 0x5a), "wrote outside");
    }
}

/* The result on an operand, or on both. */
static void in_place(int operation, int dtype) {
    const size_t n = 1 + below(3000), size = fc_size_of(dtype), one = 1;
    static unsigned char first[3000 * 8], second[3000 * 8], want[3000 * 8];
    for (int which = 0; which < 3; which++) {
        memcpy(first, right, sizeof first);
        memcpy(second, right + sizeof first, sizeof second);
        unsigned char *a = which == 1 ? second : first, *b = which == 0 ? second : which == 1 ? first : a;
        for (size_t k = 0; k < n; k++) literal(operation, dtype, a + k * size, b + k * size, want + k * size);
        fc_pointwise(operation, dtype, 1, &n, a, &one, b, &one, first);
        size_t wrong = 0;
        for (size_t k = 0; k < n; k++) wrong += !same(dtype, want + k * size, first + k * size);
        CHECK(!wrong, "in place, operation %d, dtype %d, n %zu: %zu wrong", operation, dtype, n, wrong);
    }
}

static void scale(int dtype) {
    size_t dims[RANK];
    const size_t count = shape(dims), size = fc_size_of(dtype);
    const struct view x = lay(dims);
    const double factor = 0.1;
    size_t wrong = 0;
    fc_scale(dtype, RANK, dims, left + x.offset * size, x.strides, factor, result);
    for (size_t k = 0; k < count; k++) {
        const unsigned char *p = left + place(dims, &x, k) * size;
        uint64_t want = 0;
        double wide;
        float single;
        if (dtype == FC_f64) {
            memcpy(&wide, p, 8);
            wide *= factor;
            memcpy(&want, &wide, 8);
        } else if (dtype == FC_f32) {
            memcpy(&single, p, 4);
            single *= (float)factor;
            memcpy(&want, &single, 4);
        } else to_half(dtype, f32_of(dtype, p) * (float)factor, &want);
        wrong += !same(dtype, &want, result + k * size);
    }
    CHECK(!wrong, "scale, dtype %d: %zu of %zu wrong", dtype, wrong, count);
}

/* -- sums, as the clause says it */
#define RULE(type)                                                                                                          \
    static type rule_##type(const type *x, size_t n) {                                                                      \
        type lanes[32] = {0};                                                                                               \
        if (n > 8192) {                                                                                                     \
            const size_t m = (n + 8191) / 8192;                                                                             \
            type *sums = malloc(m * sizeof *sums);                                                                          \
            if (!sums) exit(2);                                                                                             \
            for (size_t k = 0; k < m; k++) sums[k] = rule_##type(x + 8192 * k, n - 8192 * k < 8192 ? n - 8192 * k : 8192);   \
            const type total = rule_##type(sums, m);                                                                        \
            free(sums);                                                                                                     \
            return total;                                                                                                   \
        }                                                                                                                   \
        for (size_t k = 0; k < n; k++) lanes[k % 32] += x[k];                                                               \
        for (size_t half = 16; half; half /= 2)                                                                             \
            for (size_t k = 0; k < half; k++) lanes[k] += lanes[k + half];                                                  \
        return lanes[0];                                                                                                    \
    }
RULE(float)
RULE(double)

static void rule(int dtype, const unsigned char *const *elements, size_t n, void *out) {
    if (dtype == FC_f64) {
        double *x = malloc(n * sizeof *x), total;
        if (!x) exit(2);
        for (size_t k = 0; k < n; k++) memcpy(x + k, elements[k], 8);
        total = rule_double(x, n);
        memcpy(out, &total, 8);
        free(x);
    } else if (is_float(dtype)) {
        float *x = malloc(n * sizeof *x), total;
        if (!x) exit(2);
        for (size_t k = 0; k < n; k++) x[k] = dtype == FC_f32 ? *(const float *)(const void *)elements[k] : f32_of(dtype, elements[k]);
        total = rule_float(x, n);
        memcpy(out, &total, 4);
        free(x);
    } else {
        uint64_t total = 0;
        for (size_t k = 0; k < n; k++) total += (uint64_t)whole_of(dtype, elements[k]);
        memcpy(out, &total, 8);
    }
}

static void sum(int dtype) {
    static const unsigned char *elements[MEMORY];
    size_t dims[RANK];
    const size_t count = shape(dims), size = fc_size_of(dtype);
    const int wide = fc_sum_dtype(dtype);
    const struct view x = lay(dims);
    for (int level = 0; level < fc_isa_count(); level++) {
        uint64_t want = 0;
        if (fc_isa_set(level) != FC_OK) continue;
        for (size_t k = 0; k < count; k++) elements[k] = left + place(dims, &x, k) * size;
        rule(dtype, elements, count, &want);
        fc_sum(dtype, RANK, dims, left + x.offset * size, x.strides, result);
        CHECK(same(wide, &want, result), "sum, dtype %d, level %s, %zu elements", dtype, fc_isa_name(level), count);
        for (int axis = 0; axis < RANK; axis++) {
            size_t inner = 1, wrong = 0;
            for (int k = axis + 1; k < RANK; k++) inner *= dims[k];
            fc_sum_axis(dtype, RANK, dims, left + x.offset * size, x.strides, axis, result);
            for (size_t k = 0; k < count / dims[axis]; k++) {
                for (size_t j = 0; j < dims[axis]; j++)
                    elements[j] = left + place(dims, &x, k / inner * inner * dims[axis] + j * inner + k % inner) * size;
                rule(dtype, elements, dims[axis], &want);
                wrong += !same(wide, &want, result + k * fc_size_of(wide));
            }
            CHECK(!wrong, "sum of axis %d, dtype %d, level %s: %zu wrong, shape %zu %zu %zu %zu", axis, dtype, fc_isa_name(level), wrong,
                  dims[0], dims[1], dims[2], dims[3]);
        }
    }
}

/* More elements than one level, two levels hold; rows of columns too.  The memory repeats. */
static void long_sums(void) {
    static const size_t lengths[] = {8191, 8192, 8193, 16384, 8192 * 33 + 5, 8192u * 8192u, 8192u * 8192u + 1, 8192u * 8193u};
    for (int k = 0; k < (quick ? 5 : 8); k++) {
        const size_t n = lengths[k], period = 8192 * 3 + 17;
        float *x = malloc(n * sizeof *x), want, got, columns[16];
        if (!x) exit(2);
        for (size_t i = 0; i < n; i++) memcpy(x + i, left + 4 * (i % period), 4);
        for (size_t i = 0; i < n; i++) x[i] = isfinite(x[i]) && fabsf(x[i]) < 0x1p60F ? x[i] : 1.25F;
        want = rule_float(x, n);
        fc_sum(FC_f32, 1, &n, x, (const size_t[]){1}, &got);
        CHECK(memcmp(&want, &got, 4) == 0, "sum of %zu: %a, not %a", n, got, want);
        fc_sum_axis(FC_f32, 2, (const size_t[]){n, 1}, x, (const size_t[]){1, 1}, 0, &got);
        CHECK(memcmp(&want, &got, 4) == 0, "sum along an axis of %zu: %a, not %a", n, got, want);
        fc_sum_axis(FC_f32, 2, (const size_t[]){n, 16}, x, (const size_t[]){0, 1}, 0, columns); /* x[0 ... 15], n times */
        for (int c = 0; c < 16; c += 5) {
            float *same_one = malloc(n * sizeof *same_one);
            if (!same_one) exit(2);
            for (size_t i = 0; i < n; i++) same_one[i] = x[c];
            want = rule_float(same_one, n);
            CHECK(memcmp(&want, columns + c, 4) == 0, "column %d of %zu rows: %a, not %a", c, n, columns[c], want);
            free(same_one);
        }
        free(x);
    }
}

/* Columns for which strips are wide, over more rows than a lane takes at a time; rows overlap in memory. */
static void tall(int dtype) {
    enum { ROWS = 300, COLUMNS = 5000, PITCH = 7 };
    static const unsigned char *elements[ROWS];
    const size_t size = fc_size_of(dtype);
    const int wide = fc_sum_dtype(dtype);
    for (int level = 0; level < fc_isa_count(); level++) {
        if (fc_isa_set(level) != FC_OK) continue;
        fc_sum_axis(dtype, 2, (const size_t[]){ROWS, COLUMNS}, left, (const size_t[]){PITCH, 1}, 0, result);
        size_t wrong = 0;
        for (size_t k = 0; k < COLUMNS; k++) {
            uint64_t want = 0;
            for (size_t j = 0; j < ROWS; j++) elements[j] = left + (j * PITCH + k) * size;
            rule(dtype, elements, ROWS, &want);
            wrong += !same(wide, &want, result + k * fc_size_of(wide));
        }
        CHECK(!wrong, "tall columns, dtype %d, level %s: %zu wrong", dtype, fc_isa_name(level), wrong);
    }
}

/* A result that goes around the caches, at an odd place, in rows of an odd length; one operand of each row is one element. */
static void streamed(int dtype) {
    enum { ROWS = 263, LENGTH = 65521 };
    const size_t size = fc_size_of(dtype), n = (size_t)ROWS * LENGTH;
    unsigned char *out = malloc((n + 2) * size);
    if (!out) exit(2);
    for (int level = 0; level < fc_isa_count(); level++) {
        if (fc_isa_set(level) != FC_OK) continue;
        memset(out, 0x5a, (n + 2) * size);
        fc_pointwise(FC_SUB, dtype, 2, (const size_t[]){ROWS, LENGTH}, left, (const size_t[]){1, 0}, right, (const size_t[]){3, 1}, out + size);
        size_t wrong = 0;
        for (size_t k = 0; k < n; k += k % LENGTH < 80 || k % LENGTH > LENGTH - 80 ? 1 : 61) {
            uint64_t want = 0;
            literal(FC_SUB, dtype, left + k / LENGTH * size, right + (k / LENGTH * 3 + k % LENGTH) * size, &want);
            wrong += !same(dtype, &want, out + (k + 1) * size);
        }
        CHECK(!wrong, "streamed, dtype %d, level %s: %zu wrong", dtype, fc_isa_name(level), wrong);
        CHECK(out[0] == 0x5a && out[(n + 1) * size] == 0x5a, "streamed, dtype %d: wrote outside", dtype);
    }
    free(out);
}

static void convert(int source, int target) {
    size_t dims[RANK];
    const size_t count = shape(dims), in = fc_size_of(source), out = fc_size_of(target);
    const struct view x = lay(dims);
    static unsigned char dense[MEMORY * 8], want[MEMORY * 8];
    for (size_t k = 0; k < count; k++) memcpy(dense + k * in, left + place(dims, &x, k) * in, in);
    fc_cast(source, target, 0, dense, want, count);
    fc_convert(source, target, RANK, dims, left + x.offset * in, x.strides, result);
    CHECK(memcmp(want, result, count * out) == 0, "conversion of %d to %d", source, target);
}

static void zeros(int dtype) {
    size_t dims[RANK];
    const size_t count = shape(dims), size = fc_size_of(dtype);
    const struct view x = lay(dims);
    CHECK(!fc_has_zero(dtype, RANK, dims, right + x.offset * size, x.strides), "no zero, dtype %d", dtype);
    unsigned char *one = right + place(dims, &x, below(count)) * size, kept[8];
    memcpy(kept, one, size);
    memset(one, 0, size);
    CHECK(fc_has_zero(dtype, RANK, dims, right + x.offset * size, x.strides), "a zero, dtype %d", dtype);
    memcpy(one, kept, size);
}

int main(int argc, char **argv) {
    quick = argc > 1 && strcmp(argv[1], "quick") == 0;
    const int times = quick ? 1 : 12;
    for (size_t d = 0; d < sizeof numbers / sizeof *numbers; d++) {
        const int dtype = numbers[d];
        fill(dtype, left, MEMORY, 0);
        fill(dtype, right, MEMORY, !is_float(dtype));
        for (int k = 0; k < times; k++) {
            for (int operation = FC_ADD; operation <= FC_DIV; operation++) {
                pointwise(operation, dtype);
                in_place(operation, dtype);
            }
            if (is_float(dtype)) scale(dtype);
            else zeros(dtype);
            sum(dtype);
        }
        tall(dtype);
        if (!quick) streamed(dtype);
        if (dtype == FC_f32) long_sums();
    }
    fill(FC_u8, left, MEMORY * 8, 0);
    sum(FC_bool);
    for (int source = 0; source < FC_SCALAR_DTYPES; source++)
        for (int target = 0; target < FC_SCALAR_DTYPES; target++) convert(source, target);
    return check_report();
}
