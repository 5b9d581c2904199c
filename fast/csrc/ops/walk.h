/* Views as the operations walk them: with the fewest axes that describe them, and any range of them as contiguous elements. */
#ifndef FC_OPS_WALK_H
#define FC_OPS_WALK_H
#include <stddef.h>
#include <stdint.h>

enum {
    FC_WALK_RANK = 8,
    FC_WALK_VIEWS = 2,
    FC_WALK_PIECE = 1024 /* elements that are brought together at once, in a buffer on the stack */
};

/* one or two views of the same shape */
struct fc_walk {
    int rank, views;
    size_t count, dims[FC_WALK_RANK];
    size_t strides[FC_WALK_VIEWS][FC_WALK_RANK];
};

/* Axes of size 1 go, and neighbours that lie row-major in each other, in all views, become one; at least one axis is left. */
void fc_walk_begin(struct fc_walk *w, int rank, const size_t *dims, int views, const size_t *const *strides);
/* Where an element of the row-major order lies, in elements from the first; index, if not NULL, gets its indices. */
size_t fc_walk_at(const struct fc_walk *w, int view, size_t element, size_t *index);
/* Bring the elements [start, start + n) of the row-major order together. */
void fc_walk_gather(const struct fc_walk *w, int view, const void *first, size_t size, size_t start, size_t n, void *to);
/* n elements that lie `stride` apart. */
void fc_gather_line(const unsigned char *from, size_t size, size_t stride, size_t n, unsigned char *to);

/* Row-major, all of it? */
static inline int fc_walk_is_dense(const struct fc_walk *w, int view) {
    return w->rank == 1 && (w->strides[view][0] == 1 || w->count == 1);
}

#endif
