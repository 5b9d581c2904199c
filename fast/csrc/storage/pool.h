/*
 * The pool: storage that is used again (chapter pool).  Two ascending free lists share one budget of bytes: buffers of f32,
 * and slabs for everything else.  Every function may be called from any thread; the mutex is never held while memory is
 * allocated or freed.
 */
#ifndef FC_STORAGE_POOL_H
#define FC_STORAGE_POOL_H
#include "storage/storage.h"

enum { FC_POOL_RANK = 8 };

/* A pooled storage: its header, its place among those that are out, and the shape of the newest tensor on it. */
struct fc_pooled {
    struct fc_storage storage; /* first, so that a pointer to it is a pointer to this */
    struct fc_pooled *newer, *older;
    size_t shape[FC_POOL_RANK];
    size_t asked; /* of a lease: its elements */
    uint8_t rank; /* 0: there has been no tensor */
    uint8_t arm;
    uint8_t scratch;
};

struct fc_pool_counters {
    size_t cached_buffers, cached_slabs, cached_bytes, outstanding, cap;
};

struct fc_pool;
struct fc_pool *fc_pool_open(void); /* NULL: no memory */
/* Frees the lists; what is still out is freed when it comes back. */
void fc_pool_close(struct fc_pool *pool);
void fc_pool_drop(struct fc_pool *pool); /* the owner's, after the last use */

/* The byte count that a request is rounded to; 0 when there is no such number (POOL-SIZE-1, POOL-SIZE-2). */
size_t fc_pool_f32_bytes(size_t length);
size_t fc_pool_slab_bytes(size_t length, size_t element);

/* A storage with one reference and one holder; NULL without memory, or when the pool is closed.  The f32 arm takes at least
   one element. */
struct fc_storage *fc_pool_acquire(struct fc_pool *pool, int dtype, size_t length, size_t element);
/* A slab for anything: a storage of bytes. */
struct fc_storage *fc_pool_scratch(struct fc_pool *pool, size_t length, size_t element);

void fc_pool_counters(struct fc_pool *pool, struct fc_pool_counters *out);
void fc_pool_set_cap(struct fc_pool *pool, size_t cap);
/* Up to `room` storages that are out, oldest first, each with a holder for the caller; returns how many there are. */
size_t fc_pool_outstanding(struct fc_pool *pool, struct fc_storage **out, size_t room);

/* Of storage.c: the storage is over.  Keep: its memory may be used again. */
void fc_pool_take_back(struct fc_pool *pool, struct fc_pooled *pooled, int keep);

#endif
