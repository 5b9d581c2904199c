/* Conversion of a view to another dtype, by the bridge's kernels. */
#include "bridge/pairs.h"
#include "core/dispatch.h"
#include "core/environment.h"
#include "fucina.h"
#include "ops/ops.h"
#include "ops/walk.h"
#include "team/bulk.h"

enum { LEAST = 1 << 16, GRAIN = 1 << 12 };

struct task {
    struct fc_walk walk;
    fc_cast_kernel *kernel;
    const void *x;
    unsigned char *out;
    size_t in_size, out_size;
};

static void piece(void *context, size_t start, size_t n) {
    const struct task *t = context;
    uint64_t elements[FC_WALK_PIECE];
    for (size_t end = start + n; start < end; start += FC_WALK_PIECE) {
        const size_t count = end - start < FC_WALK_PIECE ? end - start : FC_WALK_PIECE;
        fc_walk_gather(&t->walk, 0, t->x, t->in_size, start, count, elements);
        t->kernel(elements, t->out + start * t->out_size, count);
    }
}

/* Clauses: CONTEXT-CAST-1, BRIDGE-SCALAR-3 */
void fc_convert(int source, int target, int rank, const size_t *dims, const void *x, const size_t *strides, void *out) {
    struct task t = {.x = x, .out = out, .in_size = fc_size_of(source), .out_size = fc_size_of(target)};
    fc_walk_begin(&t.walk, rank, dims, 1, &strides);
    if (fc_walk_is_dense(&t.walk, 0)) {
        fc_cast(source, target, 0, x, out, t.walk.count);
        return;
    }
    const fc_environment outer = fc_environment_enter();
    t.kernel = (*fc_kernels_in_force()->casts)[0][source][target];
    fc_bulk(t.walk.count, LEAST, GRAIN, piece, &t);
    fc_environment_leave(outer);
}
