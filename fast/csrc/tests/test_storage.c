/* References that race, the pool on several threads, failing allocations, and copies of views against the plain walk. */
#include "check.h"
#include "core/dtype.h"
#include "fucina.h"
#include "storage/memory.h"
#include "storage/pool.h"
#include "tensor/copy.h"
#include "tensor/geometry.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4 };
static unsigned rounds = 20000;

/* -- references */

static _Atomic int finished;
static void on_finish(struct fc_storage *s) {
    atomic_fetch_add(&finished, 1);
    fc_storage_destroy(s);
}
static void nothing(struct fc_storage *s) { (void)s; }
static struct fc_owner owner = {on_finish, nothing, nothing, nothing};

static void *refer(void *context) {
    struct fc_storage *s = context;
    unsigned refused = 0;
    for (unsigned k = 0; k < rounds; k++) {
        refused += !fc_storage_retain(s);
        refused += !fc_storage_pin(s);
        refused += !fc_storage_release(s);
        fc_storage_unpin(s);
    }
    fc_storage_release(s);
    fc_storage_drop(s);
    return (void *)(uintptr_t)refused;
}

static void run(void *(*work)(void *), void *context, const char *what) {
    pthread_t threads[THREADS];
    for (int k = 0; k < THREADS; k++) pthread_create(&threads[k], NULL, work, context);
    for (int k = 0; k < THREADS; k++) {
        void *wrong;
        pthread_join(threads[k], &wrong);
        CHECK(wrong == NULL, "%s: %lu times on thread %d", what, (unsigned long)(uintptr_t)wrong, k);
    }
}

static void test_references(void) {
    for (int turn = 0; turn < 5; turn++) {
        struct fc_storage *s = fc_storage_new(FC_f32, FC_STORAGE_OWNED, fc_memory_take(64), 64, 0);
        s->owner = &owner;
        atomic_store(&finished, 0);
        for (int k = 0; k < THREADS; k++) {
            fc_storage_retain(s);
            fc_storage_hold(s);
        }
        fc_storage_release(s);
        run(refer, s, "a reference was refused");
        CHECK(atomic_load(&finished) == 1, "the end came %d times", atomic_load(&finished));
        CHECK(fc_refs_of(fc_life_of(s)) == 0 && !s->data, "something is left");
        CHECK(!fc_storage_retain(s) && !fc_storage_release(s) && !fc_storage_pin(s) && !fc_storage_destroy(s), "it lives on");
        fc_storage_drop(s);
    }
}

static void test_pins_keep_the_memory(void) {
    struct fc_storage *s = fc_storage_new(FC_u8, FC_STORAGE_OWNED, fc_memory_take(16), 16, 0);
    memset(s->data, 7, 16);
    CHECK(fc_storage_pin(s), "no pin");
    CHECK(fc_storage_destroy(s) && s->data && s->data[15] == 7, "the memory went under a pin");
    fc_storage_unpin(s);
    CHECK(!s->data, "the memory stays");
    fc_storage_drop(s);
}

/* -- pool */

static void *lend(void *context) {
    struct fc_pool *pool = context;
    uintptr_t wrong = 0;
    unsigned seed = (unsigned)(uintptr_t)&wrong;
    struct fc_storage *held[8] = {NULL};
    for (unsigned k = 0; k < rounds; k++) {
        seed = seed * 1664525u + 1013904223u;
        const unsigned place = seed >> 29, length = (seed >> 8) % 3000 + 1;
        if (held[place]) {
            const unsigned char mark = held[place]->data[0];
            wrong += held[place]->data[held[place]->bytes - 1] != mark;
            fc_storage_release(held[place]);
            fc_storage_drop(held[place]);
            held[place] = NULL;
        } else {
            held[place] = fc_pool_acquire(pool, seed & 64 ? FC_f32 : FC_u8, length, seed & 64 ? 4 : 1);
            memset(held[place]->data, (int)(seed & 255), held[place]->bytes);
        }
    }
    for (int k = 0; k < 8; k++)
        if (held[k]) {
            fc_storage_release(held[k]);
            fc_storage_drop(held[k]);
        }
    return (void *)wrong;
}

static void test_pool(void) {
    struct fc_pool *pool = fc_pool_open();
    struct fc_pool_counters c;
    run(lend, pool, "two owners of one memory");
    fc_pool_counters(pool, &c);
    CHECK(c.outstanding == 0 && c.cached_bytes > 0, "%zu out, %zu bytes cached", c.outstanding, c.cached_bytes);
    fc_pool_close(pool);
    fc_pool_counters(pool, &c);
    CHECK(c.cached_bytes == 0 && c.cached_buffers == 0 && c.cached_slabs == 0, "something is cached after the end");
    CHECK(!fc_pool_acquire(pool, FC_f32, 1, 4), "a closed pool lends");
    fc_pool_drop(pool);
    CHECK(fc_pool_f32_bytes(1) == 4 && fc_pool_f32_bytes(1025) == 8192 && fc_pool_f32_bytes(SIZE_MAX) == 0, "f32 sizes");
    CHECK(fc_pool_slab_bytes(0, 1) == 4096 && fc_pool_slab_bytes(4097, 1) == 8192, "slab sizes");
    CHECK(fc_pool_slab_bytes(SIZE_MAX, 2) == 0 && fc_pool_slab_bytes(SIZE_MAX, 1) == 0, "slabs that cannot be");
}

static void test_failing_allocations(void) {
    for (unsigned n = 1; n <= 3; n++) {
        struct fc_pool *pool = fc_pool_open();
        struct fc_pool_counters c;
        fc_memory_fail(n);
        struct fc_storage *s = fc_pool_acquire(pool, FC_f32, 100, 4);
        fc_memory_fail(0);
        fc_pool_counters(pool, &c);
        CHECK(!s && c.outstanding == 0 && c.cached_bytes == 0, "allocation %u", n);
        s = fc_pool_acquire(pool, FC_f32, 100, 4);
        CHECK(s != NULL, "after allocation %u", n);
        fc_pool_close(pool);
        fc_storage_release(s); /* freed, for its pool is closed */
        CHECK(!s->data, "kept by a closed pool");
        fc_storage_drop(s);
        fc_pool_drop(pool);
    }
}

/* -- copies */

static void plain_walk(const unsigned char *from, size_t element, int rank, const size_t *dims, const size_t *strides,
                       unsigned char *to) {
    size_t index[FC_MAX_RANK] = {0};
    for (;;) {
        size_t place = 0;
        for (int k = 0; k < rank; k++) place += index[k] * strides[k];
        memcpy(to, from + place * element, element);
        to += element;
        int k = rank - 1;
        while (k >= 0 && ++index[k] == dims[k]) index[k--] = 0;
        if (k < 0) return;
    }
}

static void test_view(size_t element, int rank, const size_t *dims, const size_t *strides, size_t shift) {
    size_t reach = 1, count = 1;
    for (int k = 0; k < rank; k++) {
        reach += (dims[k] - 1) * strides[k];
        count *= dims[k];
    }
    unsigned char *from = malloc(reach * element + shift), *wanted = malloc(count * element), *got = malloc(count * element + shift + 1);
    for (size_t k = 0; k < reach * element + shift; k++) from[k] = (unsigned char)(k * 167 + (k >> 8));
    got[count * element + shift] = 0xa5;
    plain_walk(from + shift, element, rank, dims, strides, wanted);
    fc_copy_view(from + shift, element, rank, dims, strides, got + shift);
    CHECK(!memcmp(wanted, got + shift, count * element), "element %zu, rank %d, dims %zu %zu, strides %zu %zu", element, rank,
          dims[0], dims[1], strides[0], strides[1]);
    for (size_t part = 0; part < 3; part++) { /* thirds, as ranges */
        const size_t start = count * part / 3, end = count * (part + 1) / 3;
        memset(got + shift, 0, count * element);
        fc_copy_range(from + shift, element, rank, dims, strides, start, end - start, got + shift);
        CHECK(!memcmp(wanted + start * element, got + shift, (end - start) * element), "range %zu to %zu", start, end);
    }
    CHECK(got[count * element + shift] == 0xa5, "written behind the end");
    free(from);
    free(wanted);
    free(got);
}

static void test_copies(void) {
    static const size_t elements[] = {1, 2, 4, 8, 18, 34, 292};
    static const size_t sides[] = {1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 33, 64, 65, 130};
    for (int level = 0; level < fc_isa_count(); level++) {
        if (fc_isa_set(level) != FC_OK) continue;
        for (size_t e = 0; e < sizeof elements / sizeof *elements; e++)
            for (size_t a = 0; a < sizeof sides / sizeof *sides; a++)
                for (size_t b = 0; b < sizeof sides / sizeof *sides; b += elements[e] > 8 ? 4 : 1) {
                    const size_t rows = sides[a], columns = sides[b], element = elements[e];
                    test_view(element, 2, (size_t[]){rows, columns}, (size_t[]){1, rows}, 0);
                    test_view(element, 2, (size_t[]){rows, columns}, (size_t[]){1, rows + 3}, element & 1);
                    if (element != 4) continue;
                    test_view(element, 2, (size_t[]){rows, columns}, (size_t[]){columns + 1, 1}, 1);
                    test_view(element, 2, (size_t[]){rows, columns}, (size_t[]){2 * columns, 2}, 0);
                    test_view(element, 3, (size_t[]){3, rows, columns}, (size_t[]){0, 1, rows}, 0);
                    test_view(element, 3, (size_t[]){rows, 3, columns}, (size_t[]){1, rows, 3 * rows}, 0);
                    test_view(element, 3, (size_t[]){rows, 1, columns}, (size_t[]){0, 5, 0}, 0);
                    test_view(element, 4, (size_t[]){2, rows, 2, columns}, (size_t[]){7, 1, 0, rows}, 0);
                }
        for (size_t e = 1; e < 4; e++) { /* past the caches, and shared out */
            const size_t n = 1 << (12 - e / 2);
            test_view(elements[e], 2, (size_t[]){n, n}, (size_t[]){1, n}, 0);
        }
    }
}

int main(int count, char **arguments) {
    if (count > 1 && !strcmp(arguments[1], "quick")) rounds = 500;
    test_references();
    test_pins_keep_the_memory();
    test_pool();
    test_failing_allocations();
    test_copies();
    return check_report();
}
