/*
 * Order along an axis, line by line.  Elements are compared as unsigned keys: a key of all ones is a NaN, which so comes
 * last in both directions; the sort is stable on keys, and so on elements.  There is no arithmetic here on floats.
 */
#include "bridge/pairs.h"
#include "core/fault.h"
#include "fucina.h"
#include "ops/ops.h"
#include "ops/walk.h"
#include "storage/memory.h"
#include "team/bulk.h"
#include "team/slots.h"
#include <string.h>

enum {
    LEAST = 1 << 15, /* elements from which on the team helps */
    FEW = 32,        /* elements that are sorted by insertion */
    SMALL = 64,      /* up to so many are kept in order while a line goes by */
    COLUMNS = 256
};
enum { ASCENDING, DESCENDING, GREATEST }; /* what keys are for; for the greatest, a NaN is 0 and -0 is +0 */

struct task {
    struct fc_walk others; /* the other axes */
    const unsigned char *x;
    unsigned char *values;
    int64_t *indices;
    size_t size, length, stride, inner; /* of a line; inner: elements of the axes behind it */
    size_t k;
    int dtype, order;
    unsigned char *memory;
    size_t room, slots;
    fc_slots taken;
};

/* -- keys */
#define FLOAT_KEYS(key, bits, infinity)                                                                                    \
    {                                                                                                                      \
        const bits *in = elements, sign = (bits)~((bits)~(bits)0 >> 1), all = (bits)~(bits)0;                              \
        for (size_t i = 0; i < n; i++) {                                                                                   \
            const bits u = in[i], size = u & (bits)~sign, up = u & sign ? (bits)~u : u | sign;                             \
            const int nan = size > (infinity);                                                                             \
            const bits down = (bits)(all - up), nan_down = FC_PLANT(SORT_NAN_FIRST, all, 0);                               \
            out[i] = order == GREATEST ? (nan ? 0 : size ? up : sign) : order == ASCENDING ? (nan ? all : up) : nan ? nan_down : down; \
        }                                                                                                                  \
        break;                                                                                                             \
    }
#define WHOLE_KEYS(key, bits, sign)                                                                                        \
    {                                                                                                                      \
        const bits *in = elements;                                                                                         \
        for (size_t i = 0; i < n; i++) {                                                                                   \
            const bits up = in[i] ^ (bits)(sign);                                                                          \
            out[i] = order == DESCENDING ? (bits)~up : up;                                                                 \
        }                                                                                                                  \
        break;                                                                                                             \
    }
static void keys_narrow(int dtype, int order, const void *elements, size_t n, uint32_t *out) {
    switch (dtype) {
    case FC_bool: {
        const uint8_t *in = elements;
        for (size_t i = 0; i < n; i++) out[i] = (in[i] != 0) ^ (order == DESCENDING);
        break;
    }
    case FC_u8: WHOLE_KEYS(uint32_t, uint8_t, 0)
    case FC_u16: WHOLE_KEYS(uint32_t, uint16_t, 0)
    case FC_i8: WHOLE_KEYS(uint32_t, uint8_t, 0x80)
    case FC_i16: WHOLE_KEYS(uint32_t, uint16_t, 0x8000)
    case FC_i32: WHOLE_KEYS(uint32_t, uint32_t, 0x80000000)
    case FC_f16: FLOAT_KEYS(uint32_t, uint16_t, 0x7c00)
    case FC_bf16: FLOAT_KEYS(uint32_t, uint16_t, 0x7f80)
    default: FLOAT_KEYS(uint32_t, uint32_t, 0x7f800000)
    }
}
static void keys_wide(int dtype, int order, const void *elements, size_t n, uint64_t *out) {
    switch (dtype) {
    case FC_i64: WHOLE_KEYS(uint64_t, uint64_t, UINT64_C(1) << 63)
    default: FLOAT_KEYS(uint64_t, uint64_t, UINT64_C(0x7ff) << 52)
    }
}

/* Where the line of the others' element lies: in x, and in a result whose axis has `length` elements. */
static const unsigned char *line_of(const struct task *t, size_t other) { return t->x + fc_walk_at(&t->others, 0, other, NULL) * t->size; }
static size_t place_of(const struct task *t, size_t other, size_t length) { return other / t->inner * t->inner * length + other % t->inner; }

/* The key that no NaN-free element of the dtype has, below which all of them are. */
static uint64_t none_of(const struct task *t) { return t->dtype < FC_f16 ? UINT64_MAX : UINT64_MAX >> (64 - 8 * t->size); }
static uint64_t minus_infinity(int dtype) {
    return dtype == FC_f16 ? 0xfc00 : dtype == FC_bf16 ? 0xff80 : dtype == FC_f32 ? 0xff800000 : UINT64_C(0xfff) << 52;
}

/* -- all of it once for keys of 32 bits and once for 64 */
#define ORDER(width, key)                                                                                                  \
    /* n keys of a line, from its element `start` on */                                                                    \
    static void line_##width(const struct task *t, const unsigned char *line, size_t start, size_t n, key *out) {          \
        for (size_t i = 0; i < n; i += FC_WALK_PIECE) {                                                                    \
            uint64_t elements[FC_WALK_PIECE];                                                                              \
            const size_t count = n - i < FC_WALK_PIECE ? n - i : FC_WALK_PIECE;                                            \
            fc_gather_line(line + (start + i) * t->stride * t->size, t->size, t->stride, count, (unsigned char *)elements); \
            keys_##width(t->dtype, t->order, elements, count, out + i);                                                    \
        }                                                                                                                  \
    }                                                                                                                      \
    static size_t greatest_##width(const struct task *t, const unsigned char *line) {                                      \
        key best = 0;                                                                                                      \
        size_t at = 0;                                                                                                     \
        for (size_t start = 0; start < t->length; start += FC_WALK_PIECE) {                                                \
            key keys[FC_WALK_PIECE], top = 0;                                                                              \
            const size_t left = t->length - start, n = left < FC_WALK_PIECE ? left : FC_WALK_PIECE;                        \
            line_##width(t, line, start, n, keys);                                                                         \
            for (size_t i = 0; i < n; i++) top = keys[i] > top ? keys[i] : top;                                            \
            if (FC_PLANT(ARGMAX_LAST, top <= best, top < best)) continue;                                                  \
            best = top;                                                                                                    \
            at = 0;                                                                                                        \
            while (keys[at] != top) at++;                                                                                  \
            at += start;                                                                                                   \
        }                                                                                                                  \
        return at;                                                                                                         \
    }                                                                                                                      \
    /* many lines that lie side by side */                                                                                 \
    static void columns_##width(const struct task *t, const unsigned char *first, size_t n, int64_t *out) {                \
        key best[COLUMNS] = {0}, at[COLUMNS] = {0}, keys[COLUMNS];                                                         \
        for (size_t row = 0; row < t->length; row++) {                                                                     \
            keys_##width(t->dtype, GREATEST, first + row * t->stride * t->size, n, keys);                                  \
            for (size_t i = 0; i < n; i++) {                                                                               \
                const int more = FC_PLANT(ARGMAX_LAST, keys[i] > best[i], keys[i] >= best[i]);                             \
                at[i] = more ? (key)row : at[i];                                                                           \
                best[i] = more ? keys[i] : best[i];                                                                        \
            }                                                                                                              \
        }                                                                                                                  \
        for (size_t i = 0; i < n; i++) out[i] = (int64_t)at[i];                                                            \
    }                                                                                                                      \
    /* keys ascending, with their indices; the other two are room */                                                       \
    static void sorted_##width(key *keys, int64_t *indices, key *other_keys, int64_t *other_indices, size_t n) {           \
        if (n <= FEW) {                                                                                                    \
            for (size_t i = 1; i < n; i++) {                                                                               \
                const key one = keys[i];                                                                                   \
                const int64_t index = indices[i];                                                                          \
                size_t to = i;                                                                                             \
                for (; to && keys[to - 1] > one; to--) {                                                                   \
                    keys[to] = keys[to - 1];                                                                               \
                    indices[to] = indices[to - 1];                                                                         \
                }                                                                                                          \
                keys[to] = one;                                                                                            \
                indices[to] = index;                                                                                       \
            }                                                                                                              \
            return;                                                                                                        \
        }                                                                                                                  \
        size_t counts[sizeof(key)][256] = {{0}};                                                                           \
        for (size_t i = 0; i < n; i++)                                                                                     \
            for (size_t digit = 0; digit < sizeof(key); digit++) counts[digit][keys[i] >> (8 * digit) & 0xff]++;           \
        key *from = keys;                                                                                                  \
        int64_t *from_index = indices;                                                                                     \
        for (size_t digit = 0; digit < sizeof(key); digit++) {                                                             \
            size_t *count = counts[digit], sum = 0;                                                                        \
            if (count[from[0] >> (8 * digit) & 0xff] == n) continue; /* all have the same */                               \
            for (size_t d = 0; d < 256; d++) {                                                                             \
                const size_t here = count[d];                                                                              \
                count[d] = sum;                                                                                            \
                sum += here;                                                                                               \
            }                                                                                                              \
            for (size_t i = 0; i < n; i++) {                                                                               \
                const size_t to = count[from[i] >> (8 * digit) & 0xff]++;                                                  \
                other_keys[to] = from[i];                                                                                  \
                other_indices[to] = from_index[i];                                                                         \
            }                                                                                                              \
            key *const keys_read = from;                                                                                   \
            int64_t *const indices_read = from_index;                                                                      \
            from = other_keys;                                                                                             \
            from_index = other_indices;                                                                                    \
            other_keys = keys_read;                                                                                        \
            other_indices = indices_read;                                                                                  \
        }                                                                                                                  \
        if (from == keys) return;                                                                                          \
        memcpy(keys, from, n * sizeof *keys);                                                                              \
        memcpy(indices, from_index, n * sizeof *indices);                                                                  \
    }                                                                                                                      \
    static void sort_line_##width(const struct task *t, size_t other, unsigned char *room) {                               \
        const size_t n = t->length;                                                                                        \
        int64_t *indices = (int64_t *)(void *)room, *other_indices = indices + n;                                          \
        key *keys = (key *)(void *)(other_indices + n), *other_keys = keys + n;                                            \
        const unsigned char *line = line_of(t, other);                                                                     \
        line_##width(t, line, 0, n, keys);                                                                                 \
        for (size_t i = 0; i < n; i++) indices[i] = (int64_t)i;                                                            \
        sorted_##width(keys, indices, other_keys, other_indices, n);                                                       \
        const size_t most = t->k ? t->k : n;                                                                               \
        size_t found = n < most ? n : most;                                                                                \
        while (t->k && found && keys[found - 1] == (key)none_of(t)) found--;                                               \
        put(t, other, indices, found, most);                                                                               \
    }                                                                                                                      \
    /* the k first in descending order, kept in order while the line goes by */                                            \
    static void top_##width(const struct task *t, size_t other) {                                                          \
        key keys[FC_WALK_PIECE], best[SMALL];                                                                              \
        int64_t at[SMALL];                                                                                                 \
        size_t found = 0;                                                                                                  \
        const unsigned char *line = line_of(t, other);                                                                     \
        for (size_t start = 0; start < t->length; start += FC_WALK_PIECE) {                                                \
            const size_t left = t->length - start, n = left < FC_WALK_PIECE ? left : FC_WALK_PIECE;                        \
            line_##width(t, line, start, n, keys);                                                                         \
            for (size_t i = 0; i < n; i++) {                                                                               \
                if (keys[i] == (key)none_of(t) || (found == t->k && keys[i] >= best[found - 1])) continue;                 \
                size_t to = found < t->k ? found++ : found - 1;                                                            \
                for (; to && FC_PLANT(TOP_K_TIE_LAST, best[to - 1] > keys[i], best[to - 1] >= keys[i]); to--) {            \
                    best[to] = best[to - 1];                                                                               \
                    at[to] = at[to - 1];                                                                                   \
                }                                                                                                          \
                best[to] = keys[i];                                                                                        \
                at[to] = (int64_t)(start + i);                                                                             \
            }                                                                                                              \
        }                                                                                                                  \
        put(t, other, at, found, t->k);                                                                                    \
    }

/* Write `found` of a line's elements, in the order of the indices; of top_k the rest up to `most` too. */
static void put(const struct task *t, size_t other, const int64_t *indices, size_t found, size_t most) {
    const unsigned char *line = line_of(t, other);
    const size_t first = place_of(t, other, most);
    const uint64_t least = minus_infinity(t->dtype);
    for (size_t i = 0; i < most && t->indices; i++) t->indices[first + i * t->inner] = i < found ? indices[i] : 0;
    if (!t->values) return;
#define VALUES(type)                                                                                                       \
    {                                                                                                                      \
        const type *in = (const type *)(const void *)line;                                                                 \
        type *out = (type *)(void *)t->values + first;                                                                     \
        for (size_t i = 0; i < most; i++) out[i * t->inner] = i < found ? in[(size_t)indices[i] * t->stride] : (type)least; \
        break;                                                                                                             \
    }
    switch (t->size) {
    case 1: VALUES(uint8_t)
    case 2: VALUES(uint16_t)
    case 4: VALUES(uint32_t)
    default: VALUES(uint64_t)
    }
}
ORDER(narrow, uint32_t)
ORDER(wide, uint64_t)

static struct task task_of(int dtype, int rank, const size_t *dims, const void *x, const size_t *strides, int axis, int order) {
    struct task t = {.x = x, .size = fc_size_of(dtype), .length = dims[axis], .stride = strides[axis], .inner = 1, .dtype = dtype, .order = order};
    size_t other_dims[FC_WALK_RANK], other_strides[FC_WALK_RANK];
    int others = 0;
    for (int k = 0; k < rank; k++) {
        if (k > axis) t.inner *= dims[k];
        if (k == axis) continue;
        other_dims[others] = dims[k];
        other_strides[others++] = strides[k];
    }
    fc_walk_begin(&t.others, others, other_dims, 1, (const size_t *const[]){other_strides});
    return t;
}

static void argmax_piece(void *context, size_t start, size_t n) {
    const struct task *t = context;
    const int last = t->others.rank - 1, wide = t->size == 8;
    const size_t width = t->others.dims[last];
    const int beside = t->others.strides[0][last] == 1 && t->stride != 1 && width >= 8 && t->length < UINT32_MAX;
    for (size_t end = start + n; start < end;) {
        if (beside) {
            size_t count = width - start % width;
            if (count > end - start) count = end - start;
            if (count > COLUMNS) count = COLUMNS;
            (wide ? columns_wide : columns_narrow)(t, line_of(t, start), count, t->indices + start);
            start += count;
        } else {
            t->indices[start] = (int64_t)(wide ? greatest_wide : greatest_narrow)(t, line_of(t, start));
            start++;
        }
    }
}

/* Clause: POLICY-ARGMAX-1 */
void fc_argmax(int dtype, int rank, const size_t *dims, const void *x, const size_t *strides, int axis, int64_t *out) {
    struct task t = task_of(dtype, rank, dims, x, strides, axis, GREATEST);
    t.indices = out;
    fc_bulk(t.others.count, LEAST / t.length + 2, t.stride == 1 ? 1 : 64, argmax_piece, &t);
}

static void sort_piece(void *context, size_t start, size_t n) {
    struct task *t = context;
    size_t slot;
    do slot = fc_slot_take(&t->taken, t->slots); /* more participants than there were a moment ago: one will end */
    while (slot == t->slots);
    for (size_t k = start; k < start + n; k++) (t->size == 8 ? sort_line_wide : sort_line_narrow)(t, k, t->memory + slot * t->room);
    fc_slot_give(&t->taken, slot);
}

static int sort(struct task *t) {
    const size_t participants = t->others.count == 1 ? 1 : fc_cpu_thread_count(FC_SLOTS);
    size_t bytes;
    t->slots = participants < t->others.count ? participants : t->others.count;
    if (__builtin_mul_overflow(t->length, 2 * (sizeof(int64_t) + (t->size == 8 ? sizeof(uint64_t) : sizeof(uint32_t))), &t->room)) return 0;
    t->room = (t->room + 63) / 64 * 64;
    if (__builtin_mul_overflow(t->room, t->slots, &bytes) || !(t->memory = fc_memory_take(bytes))) return 0;
    fc_bulk(t->others.count, LEAST / t->length + 2, 1, sort_piece, t);
    fc_memory_give(t->memory);
    return 1;
}

/* Clause: POLICY-SORT-1 */
int fc_argsort(int dtype, int rank, const size_t *dims, const void *x, const size_t *strides, int axis, int descending, int64_t *out) {
    struct task t = task_of(dtype, rank, dims, x, strides, axis, descending ? DESCENDING : ASCENDING);
    t.indices = out;
    return sort(&t);
}

/* Clause: POLICY-SORT-1 */
int fc_sort(int dtype, int rank, const size_t *dims, const void *x, const size_t *strides, int axis, int descending, void *out) {
    struct task t = task_of(dtype, rank, dims, x, strides, axis, descending ? DESCENDING : ASCENDING);
    t.values = out;
    return sort(&t);
}

static void top_piece(void *context, size_t start, size_t n) {
    const struct task *t = context;
    for (size_t k = start; k < start + n; k++) (t->size == 8 ? top_wide : top_narrow)(t, k);
}

/* Clause: POLICY-TOPK-1 */
int fc_top_k(int dtype, int rank, const size_t *dims, const void *x, const size_t *strides, int axis, size_t k, void *values, int64_t *indices) {
    struct task t = task_of(dtype, rank, dims, x, strides, axis, DESCENDING);
    t.values = values;
    t.indices = indices;
    t.k = k;
    if (k > SMALL) return sort(&t);
    fc_bulk(t.others.count, LEAST / t.length + 2, 1, top_piece, &t);
    return 1;
}
