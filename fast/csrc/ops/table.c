/* Rows of a table by their indices: brought together, and added up where they came from. */
#include "bridge/pairs.h"
#include "core/dispatch.h"
#include "core/environment.h"
#include "core/fault.h"
#include "fucina.h"
#include "ops/ops.h"
#include "ops/rows.h"
#include "ops/walk.h"
#include "team/bulk.h"
#include <string.h>

enum { LEAST = 1 << 16, GRAIN = 1 << 8, BROAD = 1 << 10 }; /* elements; BROAD: rows that are cut, not shared out */

struct task {
    const fc_kernels *kernels;
    struct fc_walk row; /* the other axes */
    const unsigned char *x;
    unsigned char *out;
    const int64_t *indices;
    size_t size, stride, count, rows;
    int broad;
};

static struct task task_of(size_t size, int rank, const size_t *dims, const void *x, const size_t *strides, const int64_t *indices, void *out) {
    struct task t = {.x = x, .out = out, .indices = indices, .size = size, .stride = strides[0]};
    const size_t *inner = strides + 1;
    fc_walk_begin(&t.row, rank - 1, dims + 1, 1, &inner);
    return t;
}

static void gather(void *context, size_t start, size_t n) {
    const struct task *t = context;
    const size_t bytes = t->row.count * t->size;
    for (size_t k = start; k < start + n; k++)
        fc_walk_gather(&t->row, 0, t->x + (size_t)t->indices[k] * t->stride * t->size, t->size, 0, t->row.count, t->out + k * bytes);
}

/* Clause: POLICY-ROWS-1 */
void fc_gather_rows(size_t size, int rank, const size_t *dims, const void *x, const size_t *strides, const int64_t *indices, size_t count, void *out) {
    struct task t = task_of(size, rank, dims, x, strides, indices, out);
    fc_bulk(count, LEAST / t.row.count + 2, GRAIN / t.row.count + 1, gather, &t);
}

/* Rows [first, last), columns [column, column + n) of the result. */
static void add_up(const struct task *t, size_t first, size_t last, size_t column, size_t n) {
    float *out = (float *)(void *)t->out + column;
    for (size_t r = first; r < last; r++) memset(out + r * t->row.count, 0, n * sizeof *out);
    for (size_t k = 0; k < t->count; k++) {
        const size_t i = FC_PLANT(SCATTER_DESCENDING, k, t->count - 1 - k), r = (size_t)t->indices[i];
        if (r < first || r >= last) continue;
        const unsigned char *g = t->x + i * t->stride * t->size;
        for (size_t at = 0; at < n; at += FC_WALK_PIECE) {
            float room[FC_WALK_PIECE], *to = out + r * t->row.count + at;
            const size_t count = n - at < FC_WALK_PIECE ? n - at : FC_WALK_PIECE;
            const void *from = g + (column + at) * t->size;
            if (!fc_walk_is_dense(&t->row, 0)) {
                fc_walk_gather(&t->row, 0, g, t->size, column + at, count, room);
                from = room;
            }
            t->kernels->pointwise(FC_ADD, FC_f32, FC_ROW_BOTH, to, from, to, count);
        }
    }
}

static void scatter(void *context, size_t start, size_t n) {
    const struct task *t = context;
    if (t->broad)
        add_up(t, 0, t->rows, start, n);
    else
        add_up(t, start, start + n, 0, t->row.count);
}

/* Clause: AUTOGRAD-VJP-5 */
void fc_scatter_add_rows(int rank, const size_t *dims, const float *g, const size_t *strides, const int64_t *indices, size_t rows, float *out) {
    const fc_environment outer = fc_environment_enter();
    struct task t = task_of(4, rank, dims, g, strides, indices, out);
    t.kernels = fc_kernels_in_force();
    t.count = dims[0];
    t.rows = rows;
    t.broad = t.row.count >= BROAD;
    const size_t lines = t.count + rows; /* that are touched */
    if (t.broad)
        fc_bulk(t.row.count, LEAST / lines + 2, GRAIN, scatter, &t);
    else
        fc_bulk(rows, lines * t.row.count < LEAST ? rows + 1 : 2, rows / (4 * fc_cpu_thread_count(64)) + 1, scatter, &t);
    fc_environment_leave_with_flags(outer);
}
