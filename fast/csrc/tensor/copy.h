/*
 * Copies of views into contiguous memory (clauses TENSOR-COPY-1 to 3).  Elements are moved whole, whatever they are; a large
 * copy is shared out over the process's team.
 */
#ifndef FC_TENSOR_COPY_H
#define FC_TENSOR_COPY_H
#include <stddef.h>

/* All elements in row-major order.  from is where the view's first element lies; dims and strides in elements. */
void fc_copy_view(const void *from, size_t element, int rank, const size_t *dims, const size_t *strides, void *to);
/* The elements [start, start + count) of the row-major order. */
void fc_copy_range(const void *from, size_t element, int rank, const size_t *dims, const size_t *strides, size_t start,
                   size_t count, void *to);

#endif
