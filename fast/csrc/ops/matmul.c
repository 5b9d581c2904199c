/*
 * Matrix products: how the result is cut, among participants and for the caches.  No cut goes through a chain that would
 * then be added, so the bits are those of the kernels (ops/chains.c) whatever the cut.
 */
#include "bridge/pairs.h"
#include "core/dispatch.h"
#include "core/environment.h"
#include "fucina.h"
#include "ops/ops.h"
#include "ops/product.h"
#include "storage/memory.h"
#include "team/bulk.h"
#include "team/slots.h"
#include <string.h>

enum {
    LEAST = 1 << 20,                       /* steps of chains from which on the team helps */
    SMALL = 1 << 18,                       /* and below which blocks on the stack will do */
    ROWS_BYTES = 96 * 4,                   /* of a's block: 96 rows of f32 stay in the second-level cache */
    COLUMNS_BYTES = 1024 * 4,              /* of b's, the same */
    DEPTH = 512,                           /* of both: a panel of b is as large as a first-level cache */
    STACK_ROWS = 24, STACK_COLUMNS_BYTES = 128, STACK_DEPTH = 256,
    HALF_ROWS = 192, HALF_COLUMNS = 512,   /* of a result that is narrowed, put together in f32 first */
    VECTOR_LEAST = 1 << 18,
    VECTOR_PIECE = 1024                    /* columns of a row that is narrowed */
};

struct task {
    const fc_kernels *kernels;
    struct fc_product whole;
    struct fc_product_row row;
    unsigned char *out, *memory;
    int wide;
    size_t size, wide_size, rows, columns, across; /* of a piece; pieces from left to right */
    size_t room, slots; /* bytes of a participant's blocks, and for how many there are */
    fc_slots taken;
};

/* where the blocks of one participant are */
struct blocks {
    unsigned char *a, *b, *c; /* c: of a result that is narrowed */
    size_t rows, columns, depth, c_rows, c_columns;
};

static size_t lesser(size_t a, size_t b) { return a < b ? a : b; }
static size_t up(size_t n, size_t step) { return (n + step - 1) / step * step; }

static void narrow(const struct task *t, const float *from, unsigned char *to, size_t n) {
    (*t->kernels->casts)[0][FC_f32][t->whole.dtype](from, to, n);
}

/* Rows [i, i + m), columns [j, j + n) of the result. */
static void part(const struct task *t, const struct blocks *blocks, size_t i, size_t m, size_t j, size_t n) {
    struct fc_product p = t->whole;
    p.a_block = blocks->a;
    p.b_block = blocks->b;
    p.rows = blocks->rows;
    p.columns = blocks->columns;
    p.depth = blocks->depth;
    if (t->size == t->wide_size) {
        p.a += i * p.a_row * t->size;
        p.b += j * p.b_column * t->size;
        p.c = t->out + (i * t->whole.n + j) * t->size;
        p.c_row = t->whole.n;
        p.m = m;
        p.n = n;
        t->kernels->product(&p);
        return;
    }
    for (size_t row = i; row < i + m; row += blocks->c_rows)
        for (size_t column = j; column < j + n; column += blocks->c_columns) {
            p.m = lesser(i + m - row, blocks->c_rows);
            p.n = lesser(j + n - column, blocks->c_columns);
            p.a = t->whole.a + row * p.a_row * t->size;
            p.b = t->whole.b + column * p.b_column * t->size;
            p.c = blocks->c;
            p.c_row = blocks->c_columns;
            t->kernels->product(&p);
            for (size_t r = 0; r < p.m; r++)
                narrow(t, (const float *)p.c + r * p.c_row, t->out + ((row + r) * t->whole.n + column) * t->size, p.n);
        }
}

/* Bytes of a participant's blocks, and where they begin. */
static size_t layout(const struct task *t, unsigned char *memory, struct blocks *b) {
    b->depth = lesser(t->whole.k, DEPTH);
    const size_t deep = b->depth * t->wide_size, line = FC_TILE_BYTES / t->wide_size;
    b->rows = lesser(ROWS_BYTES / t->wide_size / FC_TILE_ROWS * FC_TILE_ROWS, up(t->rows, FC_TILE_ROWS));
    b->columns = lesser(COLUMNS_BYTES / t->wide_size, up(t->columns, line));
    b->c_rows = lesser(HALF_ROWS, t->rows);
    b->c_columns = up(lesser(HALF_COLUMNS, t->columns), line);
    if (t->size != t->wide_size) b->columns = lesser(b->columns, b->c_columns);
    const size_t a = up(b->rows * deep, 64), c = a + up(b->columns * deep, 64);
    const size_t end = c + (t->size == t->wide_size ? 0 : b->c_rows * b->c_columns * t->wide_size);
    if (memory) {
        b->a = memory;
        b->b = memory + a;
        b->c = memory + c;
    }
    return up(end, 4096);
}

static void on_the_stack(const struct task *t, size_t i, size_t m, size_t j, size_t n) {
    _Alignas(64) unsigned char a[STACK_ROWS * STACK_DEPTH * 8], b[STACK_COLUMNS_BYTES * STACK_DEPTH], c[STACK_ROWS * STACK_COLUMNS_BYTES];
    const size_t columns = STACK_COLUMNS_BYTES / t->wide_size;
    part(t, &(struct blocks){a, b, c, STACK_ROWS, columns, STACK_DEPTH, STACK_ROWS, columns}, i, m, j, n);
}

static void pieces(void *context, size_t start, size_t n) {
    struct task *t = context;
    const size_t slot = fc_slot_take(&t->taken, t->slots);
    for (size_t k = start; k < start + n; k++) {
        const size_t i = k / t->across * t->rows, j = k % t->across * t->columns;
        const size_t rows = lesser(t->rows, t->whole.m - i), columns = lesser(t->columns, t->whole.n - j);
        struct blocks own;
        if (slot < t->slots) {
            layout(t, t->memory + slot * t->room, &own);
            part(t, &own, i, rows, j, columns);
        } else {
            on_the_stack(t, i, rows, j, columns);
        }
    }
    if (slot < t->slots) fc_slot_give(&t->taken, slot);
}

static void columns(void *context, size_t start, size_t n) {
    const struct task *t = context;
    struct fc_product_row row = t->row;
    for (size_t end = start + n; start < end; start += row.n) {
        float wide[VECTOR_PIECE];
        row.n = t->size == t->wide_size ? end - start : lesser(end - start, VECTOR_PIECE);
        row.w = t->row.w + start * row.w_column * t->size;
        row.y = t->size == t->wide_size ? (void *)(t->out + start * t->size) : wide;
        t->kernels->product_row(&row);
        if (row.y == wide) narrow(t, wide, t->out + start * t->size, row.n);
    }
}

/* Cut the result among the participants, so that what all of them lay out together is least; one piece each, and one more. */
static void cut(struct task *t, size_t participants) {
    const size_t m = t->whole.m, n = t->whole.n, line = FC_TILE_BYTES / t->wide_size;
    size_t best = 0;
    for (size_t down = 1; down <= 2 * participants; down++) {
        const size_t across = (2 * participants + down - 1) / down;
        const size_t rows = up((m + down - 1) / down, FC_TILE_ROWS), width = up((n + across - 1) / across, line);
        if (best && rows + width >= best) continue;
        best = rows + width;
        t->rows = rows;
        t->columns = width;
    }
}

/* Clause: POLICY-DOT-1 */
void fc_matmul(int dtype, size_t m, size_t n, size_t k, const void *a, const size_t *a_strides, const void *b,
               const size_t *b_strides, void *out) {
    const fc_environment outer = fc_environment_enter();
    struct task t = {.kernels = fc_kernels_in_force(), .out = out, .wide = dtype == FC_f64 ? FC_f64 : FC_f32};
    t.size = fc_size_of(dtype);
    t.wide_size = fc_size_of(t.wide);
    t.whole = (struct fc_product){.dtype = dtype, .a = a, .b = b, .m = m, .n = n, .k = k, .a_row = a_strides[0], .a_k = a_strides[1],
                                  .b_k = b_strides[0], .b_column = b_strides[1]};
    if (m == 1 || n == 1) {
        t.row = m == 1 ? (struct fc_product_row){.dtype = dtype, .x = a, .w = b, .n = n, .k = k, .x_k = a_strides[1], .w_k = b_strides[0], .w_column = b_strides[1]}
                       : (struct fc_product_row){.dtype = dtype, .x = b, .w = a, .n = m, .k = k, .x_k = b_strides[0], .w_k = a_strides[1], .w_column = a_strides[0]};
        fc_bulk(t.row.n, VECTOR_LEAST / k + 2, t.row.w_column == 1 ? 1024 : 64, columns, &t);
    } else {
        size_t work;
        if (__builtin_mul_overflow(m * n, k, &work)) work = SIZE_MAX;
        const size_t participants = work < LEAST ? 1 : fc_cpu_thread_count(FC_SLOTS);
        t.rows = m;
        t.columns = n;
        if (participants > 1) cut(&t, participants);
        t.across = (n + t.columns - 1) / t.columns;
        const size_t all = (m + t.rows - 1) / t.rows * t.across;
        if (work >= SMALL) {
            t.slots = lesser(participants, all);
            t.room = layout(&t, NULL, &(struct blocks){0});
            t.memory = fc_memory_take(t.slots * t.room); /* where there is none the stack will do, slowly */
            if (!t.memory) t.slots = 0;
        }
        fc_bulk(all, 2, 1, pieces, &t);
        if (t.memory) fc_memory_give(t.memory);
    }
    fc_environment_leave_with_flags(outer);
}
