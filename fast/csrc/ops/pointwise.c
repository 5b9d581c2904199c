/* Elementwise operations: the walk along the operands; the rows are rows.c's. */
#include "bridge/pairs.h"
#include "core/dispatch.h"
#include "core/environment.h"
#include "core/fault.h"
#include "fucina.h"
#include "ops/ops.h"
#include "ops/rows.h"
#include "ops/walk.h"
#include "team/bulk.h"

enum {
    LEAST = 1 << 17,        /* elements from which on the team helps */
    GRAIN = 1 << 12,
    SHORT = 1 << 12,        /* elements of which a row that lies there needs no walk */
    SHORT_ROW = 32,         /* below, rows are brought together first */
    STREAM_BYTES = 1 << 24, /* a result from which on it goes around the caches: they would not hold it until it is read */
};

struct task {
    const fc_kernels *kernels;
    struct fc_walk walk;
    const unsigned char *a, *b;
    unsigned char *out;
    size_t size;
    double value;
    int operation, dtype, stream;
};

/* One row; `how` is its form, and whether it is streamed. */
static void row(const struct task *t, int how, const unsigned char *a, const unsigned char *b, unsigned char *out, size_t n) {
    if (how & FC_ROW_STREAM) { /* up to a multiple of 32 as usual */
        const size_t head = (0 - (uintptr_t)out) % 32 / t->size, count = head < n ? head : n;
        const int form = how & ~FC_ROW_STREAM;
        if (count) row(t, form, a, b, out, count);
        a += form == FC_ROW_LEFT_ONE ? 0 : count * t->size;
        b += form == FC_ROW_RIGHT_ONE ? 0 : count * t->size;
        out += count * t->size;
        n -= count;
    }
    if (t->operation >= FC_RSQRT)
        t->kernels->roots(t->operation, t->dtype, a, out, n);
    else if (t->walk.views == 1)
        t->kernels->with_scalar(t->operation, t->dtype, how & FC_ROW_STREAM, t->value, a, out, n);
    else
        t->kernels->pointwise(t->operation, t->dtype, how, a, b, out, n);
}

/* Elements [start, start + n) of the result, whose operands are brought together if they do not lie so. */
static void gathered(const struct task *t, size_t start, size_t n) {
    uint64_t x[FC_WALK_PIECE], y[FC_WALK_PIECE];
    for (size_t end = start + n; start < end; start += FC_WALK_PIECE) {
        const size_t count = end - start < FC_WALK_PIECE ? end - start : FC_WALK_PIECE;
        fc_walk_gather(&t->walk, 0, t->a, t->size, start, count, x);
        if (t->walk.views == 2) fc_walk_gather(&t->walk, 1, t->b, t->size, start, count, y);
        row(t, FC_ROW_BOTH, (unsigned char *)x, (unsigned char *)y, t->out + start * t->size, count);
    }
}

static void piece(void *context, size_t start, size_t n) {
    const struct task *t = context;
    const struct fc_walk *w = &t->walk;
    const int inner = w->rank - 1, two = w->views == 2;
    const size_t a_stride = w->strides[0][inner], b_stride = two ? w->strides[1][inner] : 1, length = w->dims[inner];
    const int rows = a_stride <= 1 && b_stride <= 1 && a_stride + b_stride && (two || a_stride) && (inner == 0 || length >= SHORT_ROW);
    if (!rows) {
        gathered(t, start, n);
        return;
    }
    const int form = !a_stride ? FC_ROW_LEFT_ONE : !b_stride ? FC_ROW_RIGHT_ONE : FC_ROW_BOTH;
    while (n) {
        size_t index[FC_WALK_RANK];
        const unsigned char *a = t->a + fc_walk_at(w, 0, start, index) * t->size;
        const unsigned char *b = two ? t->b + fc_walk_at(w, 1, start, NULL) * t->size : a;
        const size_t left = length - index[inner], count = left < n ? left : n;
        row(t, form | t->stream, a, b, t->out + start * t->size, count);
        start += count;
        n -= count;
    }
    if (t->stream) t->kernels->stream_end();
}

static int is_float(int dtype) { return dtype == FC_f16 || dtype == FC_bf16 || dtype == FC_f32 || dtype == FC_f64; }

/* Of arithmetic on floats the flags stay. */
static void leave(int dtype, fc_environment outer) {
    if (is_float(dtype))
        fc_environment_leave_with_flags(outer);
    else
        fc_environment_leave(outer);
}

static void run(struct task *t) {
    const fc_environment outer = fc_environment_enter();
    t->kernels = fc_kernels_in_force();
    t->size = fc_size_of(t->dtype);
    t->stream = t->walk.count >= STREAM_BYTES / t->size && t->out != t->a && t->out != t->b ? FC_ROW_STREAM : 0;
    fc_bulk(t->walk.count, LEAST, GRAIN, piece, t);
    leave(t->dtype, outer);
}

/* Clauses: CONTEXT-OP-1, CONTEXT-ARITH-1, CONTEXT-ARITH-2 */
void fc_pointwise(int operation, int dtype, int rank, const size_t *dims, const void *a, const size_t *a_strides,
                  const void *b, const size_t *b_strides, void *out) {
    if (rank == 1 && dims[0] < SHORT && (a_strides[0] == 1 || dims[0] == 1) && (b_strides[0] == 1 || dims[0] == 1)) {
        const fc_environment outer = fc_environment_enter();
        fc_kernels_in_force()->pointwise(operation, dtype, FC_ROW_BOTH, a, b, out, dims[0]);
        leave(dtype, outer);
        return;
    }
    struct task t = {.a = a, .b = b, .out = out, .operation = operation, .dtype = dtype};
    fc_walk_begin(&t.walk, rank, dims, 2, (const size_t *const[]){a_strides, b_strides});
    run(&t);
}

/* Clauses: CONTEXT-SCALE-1, POLICY-SCALAR-1, NUM-PARAM-1 */
void fc_with_scalar(int operation, int dtype, int rank, const size_t *dims, const void *x, const size_t *strides, double value, void *out) {
    struct task t = {.a = x, .out = out, .value = value, .operation = operation, .dtype = dtype};
    fc_walk_begin(&t.walk, rank, dims, 1, &strides);
    run(&t);
}

/* Clauses: CONTEXT-SCALE-1, NUM-PARAM-1 */
void fc_scale(int dtype, int rank, const size_t *dims, const void *x, const size_t *strides, double factor, void *out) {
    fc_with_scalar(FC_MUL, dtype, rank, dims, x, strides, factor, out);
}

/* Clause: NUM-ELEM-1 */
void fc_unary(int operation, int dtype, int rank, const size_t *dims, const void *x, const size_t *strides, void *out) {
    fc_with_scalar(operation, dtype, rank, dims, x, strides, 0, out);
}

static int any_zero(size_t size, const void *x, size_t n) {
    int found = 0;
#define SCAN(type)                                                                    \
    {                                                                                 \
        const type *in = x;                                                           \
        for (size_t k = 0; k < n; k++) found |= in[k] == 0;                           \
        break;                                                                        \
    }
    switch (size) {
    case 1: SCAN(uint8_t)
    case 2: SCAN(uint16_t)
    case 4: SCAN(uint32_t)
    default: SCAN(uint64_t)
    }
    return found;
}

/* Clause: CONTEXT-ARITH-2 */
int fc_has_zero(int dtype, int rank, const size_t *dims, const void *x, const size_t *strides) {
    const size_t size = fc_size_of(dtype);
    size_t once[FC_WALK_RANK]; /* what is repeated is looked at once */
    struct fc_walk w;
    for (int k = 0; k < rank; k++) once[k] = strides[k] ? dims[k] : 1;
    fc_walk_begin(&w, rank, once, 1, &strides);
    int found = 0;
    for (size_t k = 0; k < w.count && !found; k += FC_WALK_PIECE) {
        const size_t count = w.count - k < FC_WALK_PIECE ? w.count - k : FC_WALK_PIECE;
        uint64_t elements[FC_WALK_PIECE];
        if (!fc_walk_is_dense(&w, 0)) fc_walk_gather(&w, 0, x, size, k, count, elements);
        found = any_zero(size, fc_walk_is_dense(&w, 0) ? (const unsigned char *)x + k * size : (const void *)elements, count);
    }
    return found;
}
