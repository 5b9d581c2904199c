/*
 * Sums as fixed trees (clause CONTEXT-SUM-1).  A sequence of any length is taken in one pass: the sums of its blocks are
 * added to the lanes of the level above as they come, there too the block is folded when it is full, and so on.  A level
 * that has got one sum only folds to that sum, so that it does no harm to go one level too high at the end.
 */
#include "bridge/pairs.h"
#include "core/dispatch.h"
#include "core/environment.h"
#include "core/fault.h"
#include "fucina.h"
#include "ops/lanes.h"
#include "ops/ops.h"
#include "ops/walk.h"
#include "team/bulk.h"
#include <stdlib.h>
#include <string.h>

enum {
    LEAST = 1 << 17, /* elements from which on the team helps */
    LEVELS = 5,      /* 8192^5 = 2^65 elements */
    ROUND = 1024,    /* blocks whose sums are made side by side */
    STRIP_BYTES = 1 << 14, /* of a row: the longer the stretches of memory that are read the better, though the lanes of so
                              wide a strip just fill a second-level cache */
    NARROW_BYTES = 4 * FC_COLUMNS, /* of a strip whose lanes are on the stack */
    TALL = 256,            /* rows for which the lanes of a wide strip are worth their memory */
    MOST = 64,       /* participants that strips are made for */
    NARROW = 8       /* fewer neighbouring columns are added one by one */
};

struct task {
    const fc_kernels *kernels;
    struct fc_walk walk; /* what one sum goes along, or the other axes */
    struct fc_walk along; /* what each of several sums goes along */
    const unsigned char *x;
    unsigned char *out;
    size_t size, wide_size;
    size_t length, stride; /* of one line; the stride where it has one */
    size_t strip, strips;  /* columns of a piece, pieces of a row */
    size_t first;          /* the first block of a round */
    int dtype, wide;
};

int fc_sum_dtype(int dtype) {
    if (dtype == FC_f16 || dtype == FC_bf16 || dtype == FC_f32) return FC_f32;
    return dtype == FC_f64 ? FC_f64 : FC_i64;
}

static struct task task_of(int dtype, const void *x, void *out) {
    struct task t = {.kernels = fc_kernels_in_force(), .x = x, .out = out, .dtype = dtype, .wide = fc_sum_dtype(dtype)};
    t.size = fc_size_of(dtype);
    t.wide_size = fc_size_of(t.wide);
    return t;
}

/* Of arithmetic on floats the flags stay. */
static void leave(const struct task *t, fc_environment outer) {
    if (t->wide == FC_i64)
        fc_environment_leave(outer);
    else
        fc_environment_leave_with_flags(outer);
}

/* -- the levels above the blocks */
union lanes {
    float f32[FC_LANES];
    double f64[FC_LANES];
    uint64_t i64[FC_LANES];
};
struct tree {
    union lanes lanes[LEVELS];
    size_t count[LEVELS];
};

/* Add a sum to a level. */
static void grow(const struct task *t, struct tree *tree, int level, const void *sum) {
    size_t *count = tree->count + level;
    const size_t lane = *count % FC_LANES;
    union lanes *lanes = tree->lanes + level, one;
    memcpy(&one, sum, t->wide_size);
    if (!*count) memset(lanes, 0, sizeof *lanes);
    if (t->wide == FC_f32)
        lanes->f32[lane] += one.f32[0];
    else if (t->wide == FC_f64)
        lanes->f64[lane] += one.f64[0];
    else
        lanes->i64[0] += one.i64[0];
    if (++*count < FC_BLOCK || level + 1 == LEVELS) return;
    t->kernels->fold(t->wide, lanes, 1);
    *count = 0;
    grow(t, tree, level + 1, lanes);
}

/* The sum of everything: each level's rest is the last block of the level above. */
static void finish(const struct task *t, struct tree *tree, void *out) {
    const union lanes *sum = NULL;
    for (int level = 0; level < LEVELS; level++) {
        if (sum) grow(t, tree, level, sum);
        sum = NULL;
        if (!tree->count[level]) continue;
        sum = tree->lanes + level;
        t->kernels->fold(t->wide, tree->lanes + level, 1);
        tree->count[level] = 0;
        int above = level + 1;
        while (above < LEVELS && !tree->count[above]) above++;
        if (above == LEVELS) break;
    }
    memcpy(out, sum, t->wide_size);
}

/* -- all elements of a view */

/* The sum of one block, of n elements from `start` on in the walk's order. */
static void block(const struct task *t, size_t start, size_t n, void *out) {
    uint64_t lanes[FC_LANES] = {0};
    if (fc_walk_is_dense(&t->walk, 0)) {
        t->kernels->sum_lanes(t->dtype, t->x + start * t->size, n, lanes);
    } else {
        for (size_t k = 0; k < n; k += FC_WALK_PIECE) {
            const size_t count = n - k < FC_WALK_PIECE ? n - k : FC_WALK_PIECE;
            uint64_t elements[FC_WALK_PIECE];
            fc_walk_gather(&t->walk, 0, t->x, t->size, start + k, count, elements);
            t->kernels->sum_lanes(t->dtype, elements, count, lanes);
        }
    }
    t->kernels->fold(t->wide, lanes, 1);
    memcpy(out, lanes, t->wide_size);
}

/* The sums of FC_ROWS lines of f32, of up to a block, which lie `pitch` elements apart. */
static void side_by_side(const struct task *t, const unsigned char *x, size_t pitch, size_t n, unsigned char *out) {
    float lanes[FC_ROWS][FC_LANES];
    t->kernels->sum_rows(x, pitch, n, lanes);
    for (size_t row = 0; row < FC_ROWS; row++) {
        t->kernels->fold(FC_f32, lanes[row], 1);
        memcpy(out + row * sizeof(float), lanes[row], sizeof(float));
    }
}

static void blocks(void *context, size_t start, size_t n) {
    const struct task *t = context;
    const size_t end = start + n, whole = t->walk.count / FC_BLOCK - t->first;
    if (t->dtype == FC_f32 && fc_walk_is_dense(&t->walk, 0))
        for (; start + FC_ROWS <= end && start + FC_ROWS <= whole; start += FC_ROWS)
            side_by_side(t, t->x + (t->first + start) * FC_BLOCK * t->size, FC_BLOCK, FC_BLOCK, t->out + start * t->wide_size);
    for (size_t k = start; k < end; k++) {
        const size_t at = (t->first + k) * FC_BLOCK, left = t->walk.count - at;
        block(t, at, left < FC_BLOCK ? left : FC_BLOCK, t->out + k * t->wide_size);
    }
}

static void sum_all(struct task *t, void *out) {
    if (t->walk.count <= FC_BLOCK) {
        block(t, 0, t->walk.count, out);
        return;
    }
    const size_t count = (t->walk.count - 1) / FC_BLOCK + 1;
    uint64_t sums[ROUND];
    struct tree tree;
    memset(tree.count, 0, sizeof tree.count);
    t->out = (unsigned char *)sums;
    for (t->first = 0; t->first < count; t->first += ROUND) {
        const size_t n = count - t->first < ROUND ? count - t->first : ROUND;
        fc_bulk(n, LEAST / FC_BLOCK, 1, blocks, t);
        for (size_t k = 0; k < n; k++) grow(t, &tree, 0, t->out + k * t->wide_size);
    }
    finish(t, &tree, out);
}

/* Clauses: CONTEXT-SUM-1, CONTEXT-SUM-2 */
void fc_sum(int dtype, int rank, const size_t *dims, const void *x, const size_t *strides, void *out) {
    const fc_environment outer = fc_environment_enter();
    struct task t = task_of(dtype, x, out);
    fc_walk_begin(&t.walk, rank, dims, 1, &strides);
    sum_all(&t, out);
    leave(&t, outer);
}

/* -- along one axis: line by line */

static void line(const struct task *t, const unsigned char *from, void *out) {
    struct task own = {.kernels = t->kernels, .x = from, .size = t->size, .wide_size = t->wide_size, .dtype = t->dtype, .wide = t->wide};
    own.walk = t->along;
    if (t->length <= FC_BLOCK) {
        block(&own, 0, t->length, out);
        return;
    }
    struct tree tree;
    memset(tree.count, 0, sizeof tree.count);
    for (size_t at = 0; at < t->length; at += FC_BLOCK) {
        uint64_t sum;
        block(&own, at, t->length - at < FC_BLOCK ? t->length - at : FC_BLOCK, &sum);
        grow(t, &tree, 0, &sum);
    }
    finish(t, &tree, out);
}

static void lines(void *context, size_t start, size_t n) {
    const struct task *t = context;
    const size_t end = start + n;
    if (t->dtype == FC_f32 && fc_walk_is_dense(&t->along, 0) && t->length <= FC_BLOCK && t->walk.rank == 1) {
        const size_t pitch = t->walk.strides[0][0];
        for (; start + FC_ROWS <= end; start += FC_ROWS)
            side_by_side(t, t->x + start * pitch * t->size, pitch, t->length, t->out + start * t->wide_size);
    }
    for (size_t k = start; k < end; k++)
        line(t, t->x + fc_walk_at(&t->walk, 0, k, NULL) * t->size, t->out + k * t->wide_size);
}

/* -- along one axis: many columns side by side */

/* The sums of up to 2^26 rows of `width` columns; `upper` is used where there is more than one block of rows. */
static void strip(const struct task *t, const unsigned char *from, size_t width, unsigned char *lanes, unsigned char *upper, void *out) {
    const size_t row = width * t->wide_size, room = FC_LANES * row;
    memset(upper, 0, t->length > FC_BLOCK ? room : 0);
    for (size_t at = 0, number = 0; at < t->length; at += FC_BLOCK, number++) {
        const size_t rows = t->length - at < FC_BLOCK ? t->length - at : FC_BLOCK;
        memset(lanes, 0, room);
        t->kernels->sum_columns(t->dtype, from + at * t->stride * t->size, t->stride, rows, width, lanes);
        t->kernels->fold(t->wide, lanes, width);
        if (t->length <= FC_BLOCK) {
            memcpy(out, lanes, row);
            return;
        }
        t->kernels->sum_columns(t->wide, lanes, 0, 1, width, upper + (t->wide == FC_i64 ? 0 : number % FC_LANES) * row);
    }
    t->kernels->fold(t->wide, upper, width);
    memcpy(out, upper, row);
}

static void strips(void *context, size_t start, size_t n) {
    const struct task *t = context;
    uint64_t small[2][FC_LANES * NARROW_BYTES / 8];
    const size_t columns = t->walk.dims[t->walk.rank - 1], narrow = NARROW_BYTES / t->wide_size;
    const size_t room = FC_LANES * t->strip * t->wide_size;
    unsigned char *memory = t->strip > narrow ? malloc(2 * room) : NULL; /* where there is none, strips are narrow */
    unsigned char *lanes = memory ? memory : (unsigned char *)small[0], *upper = memory ? memory + room : (unsigned char *)small[1];
    const size_t most = memory ? t->strip : narrow;
    for (size_t k = start; k < start + n; k++) {
        const size_t first = k % t->strips * t->strip, end = first + t->strip < columns ? first + t->strip : columns;
        for (size_t column = first; column < end; column += most) {
            const size_t element = k / t->strips * columns + column, width = end - column < most ? end - column : most;
            strip(t, t->x + fc_walk_at(&t->walk, 0, element, NULL) * t->size, width, lanes, upper, t->out + element * t->wide_size);
        }
    }
    free(memory);
}

/* Clauses: CONTEXT-SUM-1, CONTEXT-SUM-2, POLICY-SUM-1 */
void fc_sum_axes(int dtype, int rank, const size_t *dims, const void *x, const size_t *strides, unsigned mask, void *out) {
    const fc_environment outer = fc_environment_enter();
    struct task t = task_of(dtype, x, out);
    size_t some_dims[2][FC_WALK_RANK], some_strides[2][FC_WALK_RANK];
    int ranks[2] = {0, 0};
    for (int k = 0; k < rank; k++) {
        const int summed = (int)(mask >> FC_PLANT(SUM_AXES_SHIFTED, k, rank - 1 - k) & 1), at = ranks[summed]++;
        some_dims[summed][at] = dims[k];
        some_strides[summed][at] = strides[k];
    }
    fc_walk_begin(&t.walk, ranks[0], some_dims[0], 1, (const size_t *const[]){some_strides[0]});
    fc_walk_begin(&t.along, ranks[1], some_dims[1], 1, (const size_t *const[]){some_strides[1]});
    t.length = t.along.count;
    t.stride = t.along.strides[0][0];
    const int inner = t.walk.rank - 1, straight = t.along.rank == 1 && (t.length == 1 || t.stride != 1);
    if (straight && t.walk.strides[0][inner] == 1 && t.walk.dims[inner] >= NARROW && t.length <= (size_t)FC_BLOCK * FC_BLOCK) {
        const size_t columns = t.walk.dims[inner], rows = t.walk.count / columns, narrow = NARROW_BYTES / t.wide_size;
        t.strip = t.length < TALL ? narrow : STRIP_BYTES / t.wide_size;
        const size_t participants = t.strip > narrow ? fc_cpu_thread_count(MOST) : 1;
        while (t.strip > narrow && rows * ((columns - 1) / t.strip + 1) < participants) t.strip /= 2;
        t.strips = (columns - 1) / t.strip + 1;
        fc_bulk(rows * t.strips, LEAST / t.strip / t.length + 2, 1, strips, &t);
    } else if (t.walk.count == 1) {
        t.walk = t.along;
        sum_all(&t, out);
    } else {
        fc_bulk(t.walk.count, LEAST / t.length + 2, 1, lines, &t);
    }
    leave(&t, outer);
}

void fc_sum_axis(int dtype, int rank, const size_t *dims, const void *x, const size_t *strides, int axis, void *out) {
    fc_sum_axes(dtype, rank, dims, x, strides, 1u << axis, out);
}
