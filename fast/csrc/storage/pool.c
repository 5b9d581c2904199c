/* The pool's free lists, budget and list of what is out. */
#include "storage/pool.h"
#include "core/dtype.h"
#include "core/fault.h"
#include "storage/memory.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { F32, SLABS, ARMS };
enum { SLAB_QUANTUM = 4096, SMALL = 1024 };
static const size_t default_cap = (size_t)1 << 30;

struct entry {
    unsigned char *data;
    size_t bytes;
};
/* Ascending by bytes.  There is room for everything that is cached and everything that is out, so that a release never
   has to allocate. */
struct list {
    struct entry *entries;
    size_t count, out, room;
};
struct fc_pool {
    pthread_mutex_t mutex;
    struct list lists[ARMS];
    size_t cached_bytes, cap, outstanding;
    struct fc_pooled *newest;
    size_t holders; /* the owner and every storage that is out */
    int closed;
};

static void lock(struct fc_pool *pool) { pthread_mutex_lock(&pool->mutex); }
static void unlock(struct fc_pool *pool) { pthread_mutex_unlock(&pool->mutex); }

/* Clause: POOL-CAP-1 */
struct fc_pool *fc_pool_open(void) {
    struct fc_pool *pool = calloc(1, sizeof *pool); /* uncounted: a context allocates nothing at first (CONTEXT-LIFE-1) */
    if (!pool) return NULL;
    if (pthread_mutex_init(&pool->mutex, NULL) != 0) {
        free(pool);
        return NULL;
    }
    pool->cap = default_cap;
    pool->holders = 1;
    return pool;
}

/* Leave the mutex, with one holder less. */
static void leave(struct fc_pool *pool) {
    const size_t left = --pool->holders;
    unlock(pool);
    if (left) return;
    pthread_mutex_destroy(&pool->mutex);
    for (int arm = 0; arm < ARMS; arm++) free(pool->lists[arm].entries);
    free(pool);
}

void fc_pool_drop(struct fc_pool *pool) {
    lock(pool);
    leave(pool);
}

/* Clause: POOL-LEAK-1 */
void fc_pool_close(struct fc_pool *pool) {
    struct list lists[ARMS];
    lock(pool);
    pool->closed = 1;
    for (int arm = 0; arm < ARMS; arm++) {
        lists[arm] = pool->lists[arm];
        pool->lists[arm] = (struct list){.out = lists[arm].out};
    }
    pool->cached_bytes = 0;
    unlock(pool);
    for (int arm = 0; arm < ARMS; arm++) {
        for (size_t k = 0; k < lists[arm].count; k++) fc_memory_give(lists[arm].entries[k].data);
        free(lists[arm].entries);
    }
}

/* Clause: POOL-SIZE-1 */
size_t fc_pool_f32_bytes(size_t length) {
    size_t rounded = 1;
    if (length <= SMALL) {
        while (rounded < length) rounded *= 2;
        if (FC_PLANTED(ROUNDING_EXACT)) rounded = length;
    } else {
        if (length > SIZE_MAX - (SMALL - 1)) return 0;
        rounded = FC_PLANT(ROUNDING_UP_ALWAYS, (length + SMALL - 1) / SMALL, length / SMALL + 1) * SMALL;
    }
    return rounded > SIZE_MAX / sizeof(float) ? 0 : rounded * sizeof(float);
}

/* Clause: POOL-SIZE-2 */
size_t fc_pool_slab_bytes(size_t length, size_t element) {
    if (length > SIZE_MAX / element) return 0;
    const size_t bytes = length ? length * element : 1;
    return bytes > SIZE_MAX - (SLAB_QUANTUM - 1) ? 0 : (bytes + SLAB_QUANTUM - 1) / SLAB_QUANTUM * SLAB_QUANTUM;
}

/* The first entry of at least so many bytes (clause POOL-FIT-1). */
static size_t first_fit(const struct list *list, size_t bytes) {
    size_t low = 0, high = list->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (list->entries[middle].bytes < bytes)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Clauses: POOL-LIFO-1, POOL-FIT-1 */
static void put(struct list *list, struct entry entry) {
    const size_t k = first_fit(list, FC_PLANT(POOL_FIFO, entry.bytes, entry.bytes + 1));
    if (k < list->count) memmove(list->entries + k + 1, list->entries + k, (list->count - k) * sizeof *list->entries);
    list->entries[k] = entry;
    list->count++;
}

/*
 * An entry that fits, or one with data NULL and a place in the list that is kept free for what will be allocated; 0 when
 * there is no memory for the list, or the pool is closed.  Called and left with the mutex held.
 */
static int take(struct fc_pool *pool, struct list *list, size_t bytes, struct entry *entry) {
    for (;;) {
        if (pool->closed) return 0;
        const size_t k = first_fit(list, bytes);
        if (k < list->count) {
            *entry = list->entries[k];
            if (k < --list->count) memmove(list->entries + k, list->entries + k + 1, (list->count - k) * sizeof *list->entries);
            pool->cached_bytes -= entry->bytes;
            break;
        }
        *entry = (struct entry){NULL, bytes};
        if (list->count + list->out < list->room) break;
        const size_t room = 2 * list->room + 16;
        unlock(pool);
        struct entry *entries = fc_record_take(room * sizeof *entries);
        lock(pool);
        if (!entries) return 0;
        if (list->room < room && !pool->closed) {
            struct entry *old = list->entries;
            if (list->count) memcpy(entries, old, list->count * sizeof *entries);
            list->entries = entries;
            list->room = room;
            entries = old;
        }
        free(entries);
    }
    list->out++;
    return 1;
}

/* Clauses: POOL-FIT-1, POOL-COUNT-1, POOL-MEMORY-1, POOL-THREAD-1 */
static struct fc_storage *acquire(struct fc_pool *pool, int arm, int dtype, size_t bytes) {
    struct list *list = &pool->lists[arm];
    struct entry entry;
    struct fc_pooled *pooled = bytes ? fc_record_take(sizeof *pooled) : NULL;
    if (!pooled) return NULL;
    lock(pool);
    if (!take(pool, list, bytes, &entry)) {
        unlock(pool);
        free(pooled);
        return NULL;
    }
    if (!entry.data) {
        unlock(pool);
        entry.data = fc_memory_take(bytes);
        lock(pool);
        if (!entry.data) {
            if (!FC_PLANTED(OUT_KEPT_ON_FAILURE)) list->out--;
            else pool->outstanding++;
            unlock(pool);
            free(pooled);
            return NULL;
        }
    }
    fc_storage_init(&pooled->storage, dtype, FC_STORAGE_POOLED, entry.data, entry.bytes, 0);
    pooled->storage.pool = pool;
    pooled->arm = (uint8_t)arm;
    pooled->asked = 0;
    pooled->rank = 0;
    pooled->scratch = 0;
    pooled->newer = NULL;
    pooled->older = pool->newest;
    if (pooled->older) pooled->older->newer = pooled;
    pool->newest = pooled;
    pool->outstanding++;
    pool->holders++;
    unlock(pool);
    return &pooled->storage;
}

/* Clauses: POOL-SIZE-1, POOL-TYPED-1 */
struct fc_storage *fc_pool_acquire(struct fc_pool *pool, int dtype, size_t length, size_t element) {
    if (dtype == FC_f32) return acquire(pool, F32, dtype, fc_pool_f32_bytes(length));
    return acquire(pool, SLABS, dtype, fc_pool_slab_bytes(length, element));
}

/* Clause: POOL-SCRATCH-1 */
struct fc_storage *fc_pool_scratch(struct fc_pool *pool, size_t length, size_t element) {
    struct fc_storage *s = acquire(pool, SLABS, FC_u8, fc_pool_slab_bytes(length, element));
    if (s) {
        ((struct fc_pooled *)s)->scratch = 1;
        ((struct fc_pooled *)s)->asked = length;
    }
    return s;
}

/* Clauses: POOL-LIFO-1, POOL-CAP-1, POOL-COUNT-1, POOL-SCRATCH-2 */
void fc_pool_take_back(struct fc_pool *pool, struct fc_pooled *pooled, int keep) {
    struct fc_storage *s = &pooled->storage;
    struct list *list = &pool->lists[pooled->arm];
    lock(pool);
    if (pooled->newer)
        pooled->newer->older = pooled->older;
    else
        pool->newest = pooled->older;
    if (pooled->older) pooled->older->newer = pooled->newer;
    pool->outstanding--;
    list->out--;
    const size_t cap = pool->cap, bytes = s->bytes;
    const int fits = FC_PLANT(CAP_OFF_BY_ONE, bytes <= cap && pool->cached_bytes <= cap - bytes,
                              bytes < cap && pool->cached_bytes < cap - bytes);
    if (keep && !pool->closed && (fits || FC_PLANTED(CAP_IGNORED))) {
        put(list, (struct entry){s->data, bytes});
        pool->cached_bytes += bytes;
        s->data = NULL;
    }
    leave(pool);
}

/* Clause: POOL-COUNT-1 */
void fc_pool_counters(struct fc_pool *pool, struct fc_pool_counters *out) {
    lock(pool);
    *out = (struct fc_pool_counters){pool->lists[F32].count, pool->lists[SLABS].count, pool->cached_bytes, pool->outstanding,
                                     pool->cap};
    unlock(pool);
}

/* Clause: POOL-CAP-1 */
void fc_pool_set_cap(struct fc_pool *pool, size_t cap) {
    lock(pool);
    pool->cap = cap;
    unlock(pool);
}

/* Clause: POOL-LEAK-1 */
size_t fc_pool_outstanding(struct fc_pool *pool, struct fc_storage **out, size_t room) {
    lock(pool);
    size_t count = 0;
    for (const struct fc_pooled *p = pool->newest; p; p = p->older) count++;
    size_t k = count;
    for (struct fc_pooled *p = pool->newest; p; p = p->older) {
        if (--k >= room) continue;
        fc_storage_hold(&p->storage);
        out[k] = &p->storage;
    }
    unlock(pool);
    return count;
}
