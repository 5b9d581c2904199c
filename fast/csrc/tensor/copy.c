/*
 * The odometer.  A view is first brought to the fewest axes that describe it: axes of size 1 go, neighbours that lie row-major
 * in each other become one.  Then the innermost axis is copied at once, as a memcpy, a strided loop or one element repeated,
 * and the outer axes count.  Where another axis than the innermost has stride 1, planes of the two are transposed in tiles.
 */
#include "tensor/copy.h"
#include "core/dispatch.h"
#include "core/fault.h"
#include "team/bulk.h"
#include "tensor/geometry.h"
#include <stdint.h>
#include <string.h>

/* Bytes from which on a copy is shared out, and from which on it goes past the caches; rows of a plane are cut at tiles. */
enum { SHARED = 1 << 19, BEYOND_CACHES = 8 << 20, FC_LINE = 64 };

struct view {
    const unsigned char *from;
    size_t element;
    int rank;
    size_t dims[FC_MAX_RANK], strides[FC_MAX_RANK];
};

static void simplify(struct view *v, const void *from, size_t element, int rank, const size_t *dims, const size_t *strides) {
    v->from = from;
    v->element = element;
    v->rank = 0;
    for (int k = 0; k < rank; k++) {
        if (dims[k] == 1) continue;
        if (v->rank && v->strides[v->rank - 1] == dims[k] * strides[k]) { /* also where both are 0 */
            v->dims[v->rank - 1] *= dims[k];
            v->strides[v->rank - 1] = strides[k];
        } else {
            v->dims[v->rank] = dims[k];
            v->strides[v->rank++] = strides[k];
        }
    }
    if (!v->rank) {
        v->dims[0] = v->strides[0] = 1;
        v->rank = 1;
    }
}

#define GATHER(type)                                                                      \
    {                                                                                     \
        const type *in = (const type *)(const void *)from;                                \
        type *out = (type *)(void *)to;                                                   \
        for (size_t k = 0; k < n; k++) out[k] = in[k * stride];                           \
    }

static int is_aligned(const void *a, const void *b, size_t element) {
    return ((uintptr_t)a | (uintptr_t)b) % element == 0;
}

/* n elements that are `stride` apart */
static void run(const unsigned char *from, size_t element, size_t n, size_t stride, unsigned char *to) {
    if (stride == 1) {
        memcpy(to, from, n * element);
    } else if (element == 1) {
        for (size_t k = 0; k < n; k++) to[k] = from[k * stride];
    } else if (element == 4 && is_aligned(from, to, 4)) {
        GATHER(uint32_t)
    } else if (element == 8 && is_aligned(from, to, 8)) {
        GATHER(uint64_t)
    } else if (element == 2 && is_aligned(from, to, 2)) {
        GATHER(uint16_t)
    } else {
        for (size_t k = 0; k < n; k++) memcpy(to + k * element, from + k * stride * element, element);
    }
}
#undef GATHER

/* The axis, not the innermost, along which elements are neighbours; rank where there is none worth the tiles. */
static int neighbours(const struct view *v) {
    const int inner = v->rank - 1;
    int axis = 0;
    while (axis < inner && !(v->strides[axis] == 1 && v->dims[axis] >= 4)) axis++;
    return axis < inner && v->strides[inner] > 1 && v->dims[inner] >= 4 ? axis : v->rank;
}

/* A plane of neighbouring rows, a part of its rows at a time. */
struct plane {
    size_t element, in_pitch, out_pitch, columns;
    const unsigned char *in;
    unsigned char *out;
    int beyond;
};
static void plane_piece(void *context, size_t start, size_t count) {
    const struct plane *p = context;
    fc_kernels_in_force()->transpose(p->element, p->in + start * p->element, p->in_pitch, p->out + start * p->out_pitch,
                                     p->out_pitch, count, p->columns, p->beyond);
}

/* Part of the elements of a view. */
struct part {
    const struct view *v;
    unsigned char *to;
};
static void copy_part(const struct view *v, size_t start, size_t count, unsigned char *to);
static void view_piece(void *context, size_t start, size_t count) {
    const struct part *p = context;
    copy_part(p->v, start, count, p->to + start * p->v->element);
}

/* Clause: TENSOR-COPY-1 */
void fc_copy_view(const void *from, size_t element, int rank, const size_t *dims, const size_t *strides, void *to) {
    struct view v;
    size_t index[FC_MAX_RANK] = {0}, out_strides[FC_MAX_RANK];
    simplify(&v, from, element, rank, dims, strides);
    fc_row_major(v.rank, v.dims, out_strides);
    const int inner = v.rank - 1, across = neighbours(&v);
    const size_t n = out_strides[0] * v.dims[0], least = SHARED / element;
    if (across == v.rank) {
        struct part part = {&v, to};
        fc_bulk(n, least, 4096, view_piece, &part);
        return;
    }
    struct plane plane = {element, v.strides[inner] * element, out_strides[across] * element, v.dims[inner], from, to, n * element >= BEYOND_CACHES};
    for (;;) {
        fc_bulk(v.dims[across], least / v.dims[inner], FC_LINE, plane_piece, &plane);
        int k = inner - 1;
        for (; k >= 0; k--) {
            if (k == across) continue;
            plane.in += v.strides[k] * element;
            plane.out += out_strides[k] * element;
            if (++index[k] < v.dims[k]) break;
            plane.in -= v.dims[k] * v.strides[k] * element;
            plane.out -= v.dims[k] * out_strides[k] * element;
            index[k] = 0;
        }
        if (k < 0) return;
    }
}

/* The odometer: elements [start, start + count) of the row-major order. */
static void copy_part(const struct view *v, size_t start, size_t count, unsigned char *to) {
    size_t index[FC_MAX_RANK], place = 0;
    for (int k = v->rank - 1; k >= 0; k--) {
        index[k] = start % v->dims[k];
        start /= v->dims[k];
        place += index[k] * v->strides[k];
    }
    const int inner = v->rank - 1;
    while (count) {
        const size_t left = v->dims[inner] - index[inner], n = left < count ? left : count;
        run(v->from + place * v->element, v->element, n, v->strides[inner], to);
        to += n * v->element;
        count -= n;
        place -= index[inner] * v->strides[inner];
        index[inner] = 0;
        for (int k = inner - 1; k >= 0; k--) {
            place += v->strides[k];
            if (++index[k] < v->dims[k]) break;
            place -= v->dims[k] * v->strides[k];
            index[k] = 0;
        }
    }
}

/* Clause: TENSOR-COPY-2 */
void fc_copy_range(const void *from, size_t element, int rank, const size_t *dims, const size_t *strides, size_t start,
                   size_t count, void *to) {
    struct view v;
    simplify(&v, from, element, rank, dims, strides);
    copy_part(&v, start, count, to);
}
