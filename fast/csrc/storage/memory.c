/* Allocation, its count, and the one that is made to fail. */
#define _DEFAULT_SOURCE /* madvise */
#include "storage/memory.h"
#include "core/fault.h"
#include <stdatomic.h>
#include <stdlib.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

static _Atomic uint64_t count, until; /* until: allocations up to the one that fails, that one included */

/* Clause: STORAGE-FAULT-1 */
uint64_t fc_memory_count(void) { return atomic_load_explicit(&count, memory_order_relaxed); }

/* Clause: STORAGE-FAULT-1 */
void fc_memory_fail(uint64_t n) { atomic_store(&until, n); }

/* Clause: STORAGE-FAULT-1 */
int fc_memory_charge(void) {
    atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
    uint64_t left = atomic_load_explicit(&until, memory_order_relaxed);
    while (left && !atomic_compare_exchange_weak(&until, &left, left - 1)) {
    }
    return left != 1;
}

/* Clauses: STORAGE-CREATE-1, POOL-SIZE-2, POOL-HUGE-1 */
void *fc_memory_take(size_t bytes) {
    if (!fc_memory_charge() || bytes > PTRDIFF_MAX - FC_MEMORY_HUGE) return NULL;
    const size_t align = bytes >= 2 * (size_t)FC_MEMORY_HUGE ? FC_MEMORY_HUGE : FC_MEMORY_ALIGN;
    const size_t room = bytes ? (bytes + FC_MEMORY_ALIGN - 1) / FC_MEMORY_ALIGN * FC_MEMORY_ALIGN : FC_MEMORY_ALIGN;
    void *memory = NULL;
    if (posix_memalign(&memory, align, room) != 0) return NULL;
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    /* advice: what the kernel makes of it changes no result */
    if (align == FC_MEMORY_HUGE) (void)madvise(memory, room / FC_MEMORY_HUGE * FC_MEMORY_HUGE, MADV_HUGEPAGE);
#endif
    return memory;
}

void fc_memory_give(void *memory) { free(memory); }

void *fc_record_take(size_t bytes) { return fc_memory_charge() ? malloc(bytes) : NULL; }

void *fc_record_grow(void *records, size_t bytes) { return fc_memory_charge() ? realloc(records, bytes) : NULL; }
