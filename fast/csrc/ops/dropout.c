/* Dropout of a view: the stream counts elements in row-major order, so that any part of the result can be made by itself. */
#include "bridge/pairs.h"
#include "core/dispatch.h"
#include "core/environment.h"
#include "fucina.h"
#include "ops/ops.h"
#include "ops/walk.h"
#include "team/bulk.h"

enum { LEAST = 1 << 16, GRAIN = 1 << 12, STREAM_BYTES = 1 << 24 };

struct task {
    const fc_kernels *kernels;
    struct fc_walk walk;
    const unsigned char *x;
    unsigned char *out;
    uint64_t seed, threshold;
    size_t size;
    float scale;
    int dtype, stream;
};

static void some(const struct task *t, int stream, const void *x, size_t start, size_t n) {
    t->kernels->dropped(t->dtype, stream, t->seed, start, t->threshold, t->scale, x, t->out + start * t->size, n);
}

static void piece(void *context, size_t start, size_t n) {
    const struct task *t = context;
    if (fc_walk_is_dense(&t->walk, 0)) {
        /* around the caches from a multiple of 32 bytes on */
        const size_t odd = t->stream ? (0 - (uintptr_t)(t->out + start * t->size)) % 32 / t->size : 0, head = odd < n ? odd : n;
        if (head) some(t, 0, t->x + start * t->size, start, head);
        some(t, t->stream, t->x + (start + head) * t->size, start + head, n - head);
        if (t->stream) t->kernels->stream_end();
        return;
    }
    for (size_t end = start + n; start < end; start += FC_WALK_PIECE) {
        uint64_t elements[FC_WALK_PIECE / 2];
        const size_t count = end - start < FC_WALK_PIECE ? end - start : FC_WALK_PIECE;
        fc_walk_gather(&t->walk, 0, t->x, t->size, start, count, elements);
        some(t, 0, elements, start, count);
    }
}

/* Clauses: POLICY-DROPOUT-1, RNG-DROPOUT-1, RNG-DROPOUT-2, NUM-PARAM-1 */
void fc_dropout(int dtype, int rank, const size_t *dims, const void *x, const size_t *strides, uint64_t seed, double p, void *out) {
    const fc_environment outer = fc_environment_enter();
    struct task t = {.kernels = fc_kernels_in_force(), .x = x, .out = out, .seed = seed, .size = fc_size_of(dtype), .dtype = dtype};
    const float probability = (float)fc_environment_pin(p);
    t.threshold = (uint64_t)((1.0 - (double)probability) * 0x1p53);
    t.scale = 1.0f / (1.0f - probability);
    fc_walk_begin(&t.walk, rank, dims, 1, &strides);
    t.stream = dtype == FC_f32 && t.walk.count >= STREAM_BYTES / t.size;
    fc_bulk(t.walk.count, LEAST, GRAIN, piece, &t);
    fc_environment_leave_with_flags(outer);
}
