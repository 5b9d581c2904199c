/* References to a storage, and its end. */
#include "storage/storage.h"
#include "core/fault.h"
#include "storage/memory.h"
#include "storage/pool.h"
#include <stdlib.h>

void fc_storage_init(struct fc_storage *s, int dtype, int kind, void *data, size_t bytes, int read_only) {
    atomic_init(&s->life, FC_HELD);
    atomic_init(&s->holders, 1);
    atomic_init(&s->generation, 0);
    s->data = data;
    s->bytes = bytes;
    s->pool = NULL;
    s->owner = NULL;
    s->dtype = (uint8_t)dtype;
    s->kind = (uint8_t)kind;
    s->read_only = (uint8_t)(read_only != 0);
}

/* Clause: STORAGE-CREATE-1 */
struct fc_storage *fc_storage_new(int dtype, int kind, void *data, size_t bytes, int read_only) {
    struct fc_storage *s = fc_record_take(sizeof *s);
    if (s) fc_storage_init(s, dtype, kind, data, bytes, read_only);
    return s;
}

/* Clauses: STORAGE-REF-1, STORAGE-THREAD-1, STORAGE-DEAD-1 */
int fc_storage_retain(struct fc_storage *s) {
    uint64_t life = atomic_load_explicit(&s->life, memory_order_relaxed);
    do {
        if (life & (FC_RELEASED | FC_DESTROYED) || fc_held_of(life) == FC_COUNT_MASK) return 0;
    } while (!atomic_compare_exchange_weak_explicit(&s->life, &life, life + FC_HELD, memory_order_relaxed, memory_order_relaxed));
    return 1;
}

/* The hook, or the end without one. */
static void finish(struct fc_storage *s) {
    if (s->owner && s->owner->finish) {
        s->owner->finish(s);
        if (FC_PLANTED(HOOK_TWICE)) s->owner->finish(s);
    } else {
        fc_storage_destroy(s);
    }
}

/* Clauses: STORAGE-REF-1, STORAGE-HOOK-1, STORAGE-THREAD-1 */
int fc_storage_release(struct fc_storage *s) {
    uint64_t life = atomic_load_explicit(&s->life, memory_order_relaxed), next;
    do {
        if (fc_held_of(life) == 0) return 0;
        next = life - FC_HELD;
        if (fc_held_of(next) + (FC_PLANTED(PIN_FORGOTTEN) ? 0 : fc_pins_of(next)) == 0) next |= FC_RELEASED;
    } while (!atomic_compare_exchange_weak_explicit(&s->life, &life, next, memory_order_acq_rel, memory_order_relaxed));
    if ((next & FC_RELEASED) && !(life & (FC_RELEASED | FC_DESTROYED))) finish(s);
    return 1;
}

/* Clause: STORAGE-PIN-1 */
int fc_storage_pin(struct fc_storage *s) {
    uint64_t life = atomic_load_explicit(&s->life, memory_order_relaxed);
    do {
        if (life & FC_DESTROYED || fc_pins_of(life) == FC_COUNT_MASK) return 0;
    } while (!atomic_compare_exchange_weak_explicit(&s->life, &life, life + FC_PIN, memory_order_acquire, memory_order_relaxed));
    fc_storage_hold(s);
    return 1;
}

/* The memory of a destroyed storage that no array sees any more. */
static void forget(struct fc_storage *s) {
    unsigned char *data = s->data;
    s->data = NULL;
    if (s->kind != FC_STORAGE_BORROWED) fc_memory_give(data);
    if (s->owner && s->owner->forget) s->owner->forget(s);
}

/* Clauses: STORAGE-PIN-1, STORAGE-HOOK-1 */
void fc_storage_unpin(struct fc_storage *s) {
    uint64_t life = atomic_load_explicit(&s->life, memory_order_relaxed), next;
    do {
        next = life - FC_PIN;
        if (fc_held_of(next) + fc_pins_of(next) == 0) next |= FC_RELEASED;
    } while (!atomic_compare_exchange_weak_explicit(&s->life, &life, next, memory_order_acq_rel, memory_order_relaxed));
    if (life & FC_DESTROYED) {
        if (fc_pins_of(next) == 0) forget(s);
    } else if ((next & FC_RELEASED) && !(life & FC_RELEASED)) {
        finish(s);
    }
    fc_storage_drop(s);
}

/* Clauses: STORAGE-REF-1, STORAGE-GC-1 */
void fc_storage_let_go(struct fc_storage *s) {
    if (!s->pool || s->owner || fc_life_of(s) != FC_HELD || atomic_load_explicit(&s->holders, memory_order_acquire) != 1) {
        fc_storage_release(s);
        fc_storage_drop(s);
        return;
    }
    /* the only reference and the only holder: all that others can still do is find it in the pool's list and hold it */
    struct fc_pool *pool = s->pool;
    atomic_store_explicit(&s->life, FC_RELEASED | FC_DESTROYED, memory_order_release);
    s->pool = NULL;
    fc_pool_take_back(pool, (struct fc_pooled *)s, 1);
    forget(s);
    if (atomic_load_explicit(&s->holders, memory_order_acquire) == 1)
        free(s);
    else
        fc_storage_drop(s);
}

/* Clause: STORAGE-REF-2 */
int fc_storage_reset(struct fc_storage *s) {
    uint64_t life = atomic_load_explicit(&s->life, memory_order_relaxed), next;
    do {
        if (life & FC_DESTROYED) return FC_RESET_DESTROYED;
        if (fc_refs_of(life) > 1) return FC_RESET_HELD;
        next = fc_refs_of(life) ? life & ~FC_RELEASED : FC_HELD;
    } while (!atomic_compare_exchange_weak_explicit(&s->life, &life, next, memory_order_acq_rel, memory_order_relaxed));
    return FC_RESET;
}

/* Clauses: STORAGE-DESTROY-1, STORAGE-PIN-1, POOL-STALE-1 */
int fc_storage_destroy(struct fc_storage *s) {
    uint64_t life = atomic_load_explicit(&s->life, memory_order_relaxed), next;
    do {
        if (life & FC_DESTROYED) return 0;
        next = ((life & ~FC_COUNT_MASK) + FC_PIN) | FC_RELEASED | FC_DESTROYED; /* with a pin, for what runs below */
    } while (!atomic_compare_exchange_weak_explicit(&s->life, &life, next, memory_order_acq_rel, memory_order_relaxed));
    fc_storage_hold(s);
    if (s->owner && s->owner->closing) s->owner->closing(s);
    if (s->pool) {
        struct fc_pool *pool = s->pool;
        s->pool = NULL;
        fc_pool_take_back(pool, (struct fc_pooled *)s, fc_pins_of(fc_life_of(s)) == 1);
    }
    fc_storage_unpin(s);
    return 1;
}

/* Clause: STORAGE-GC-1 */
void fc_storage_drop(struct fc_storage *s) {
    if (atomic_fetch_sub_explicit(&s->holders, 1, memory_order_acq_rel) != 1) return;
    /* nothing else points here, so nothing races; a hook may take hold of it again */
    if (!(fc_life_of(s) & (FC_RELEASED | FC_DESTROYED))) {
        atomic_store_explicit(&s->holders, 1, memory_order_relaxed);
        atomic_store_explicit(&s->life, FC_RELEASED, memory_order_relaxed);
        finish(s);
        if (atomic_fetch_sub_explicit(&s->holders, 1, memory_order_acq_rel) != 1) return;
    }
    if (!(fc_life_of(s) & FC_DESTROYED)) { /* parked where nobody can reach it */
        atomic_store_explicit(&s->holders, 2, memory_order_relaxed);
        atomic_store_explicit(&s->life, FC_RELEASED, memory_order_relaxed);
        fc_storage_destroy(s);
        if (atomic_fetch_sub_explicit(&s->holders, 2, memory_order_acq_rel) != 2) return;
    }
    if (s->owner && s->owner->end) s->owner->end(s);
    free(s);
}
