/*
 * Where memory comes from (clause STORAGE-FAULT-1).  Everything that the memory chapters call an allocation is taken here,
 * is counted, and can be made to fail: fc_memory_fail(n) makes the n-th one from now on fail, once; 0 disarms.
 */
#ifndef FC_STORAGE_MEMORY_H
#define FC_STORAGE_MEMORY_H
#include <stddef.h>
#include <stdint.h>

enum {
    FC_MEMORY_ALIGN = 64,
    FC_MEMORY_HUGE = 1 << 21 /* a huge page; blocks of two and more are aligned to one and ask for them */
};

/* Count one allocation; 0 when it is the one that was chosen to fail. */
int fc_memory_charge(void);
/* Uninitialized bytes at a multiple of 64; NULL when there are none.  0 bytes have an address of their own too. */
void *fc_memory_take(size_t bytes);
void fc_memory_give(void *memory);
/* A small record; NULL when there is no memory for it.  Given back with free(). */
void *fc_record_take(size_t bytes);
/* Grow an array of records; NULL, and the old one still there, when there is no memory. */
void *fc_record_grow(void *records, size_t bytes);

uint64_t fc_memory_count(void);
void fc_memory_fail(uint64_t n);

#endif
