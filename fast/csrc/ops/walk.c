/* The odometer of the operations. */
#include "ops/walk.h"
#include <string.h>

void fc_walk_begin(struct fc_walk *w, int rank, const size_t *dims, int views, const size_t *const *strides) {
    w->rank = 0;
    w->views = views;
    w->count = 1;
    for (int k = 0; k < rank; k++) {
        if (dims[k] == 1) continue;
        w->count *= dims[k];
        const int last = w->rank - 1;
        int joins = w->rank > 0;
        for (int v = 0; v < views; v++) joins = joins && w->strides[v][last] == dims[k] * strides[v][k];
        const int at = joins ? last : w->rank++;
        w->dims[at] = joins ? w->dims[at] * dims[k] : dims[k];
        for (int v = 0; v < views; v++) w->strides[v][at] = strides[v][k];
    }
    if (!w->rank) {
        w->rank = 1;
        w->dims[0] = 1;
        for (int v = 0; v < views; v++) w->strides[v][0] = 1;
    }
}

size_t fc_walk_at(const struct fc_walk *w, int view, size_t element, size_t *index) {
    size_t at = 0;
    for (int k = w->rank - 1; k >= 0; k--) {
        const size_t i = k ? element % w->dims[k] : element;
        element = k ? element / w->dims[k] : 0;
        at += i * w->strides[view][k];
        if (index) index[k] = i;
    }
    return at;
}

#define LINE(type)                                                      \
    {                                                                   \
        const type *in = (const type *)(const void *)from;              \
        type *out = (type *)(void *)to;                                 \
        for (size_t k = 0; k < n; k++) out[k] = in[k * stride];         \
        break;                                                          \
    }

/* elements are aligned to their size */
void fc_gather_line(const unsigned char *from, size_t size, size_t stride, size_t n, unsigned char *to) {
    if (stride == 1) {
        memcpy(to, from, n * size);
        return;
    }
    switch (size) {
    case 1: LINE(uint8_t)
    case 2: LINE(uint16_t)
    case 4: LINE(uint32_t)
    default: LINE(uint64_t)
    }
}

void fc_walk_gather(const struct fc_walk *w, int view, const void *first, size_t size, size_t start, size_t n, void *to) {
    const int inner = w->rank - 1;
    const size_t *strides = w->strides[view];
    size_t index[FC_WALK_RANK];
    const unsigned char *from = (const unsigned char *)first + fc_walk_at(w, view, start, index) * size;
    unsigned char *out = to;
    while (n) {
        const size_t left = w->dims[inner] - index[inner], run = left < n ? left : n;
        fc_gather_line(from, size, strides[inner], run, out);
        out += run * size;
        n -= run;
        if (!n) return;
        /* carry: back to the beginning of the axis, and on along the next outer one that has an index left */
        from -= index[inner] * strides[inner] * size;
        index[inner] = 0;
        for (int k = inner - 1; k >= 0; k--) {
            if (++index[k] < w->dims[k]) {
                from += strides[k] * size;
                break;
            }
            from -= (w->dims[k] - 1) * strides[k] * size;
            index[k] = 0;
        }
    }
}
