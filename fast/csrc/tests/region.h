/*
 * Memory with an unreadable page before and after it: a buffer that starts or ends at such a page makes any access outside of it
 * a crash, also one by a vector load that a sanitizer does not instrument.
 */
#ifndef FC_TESTS_REGION_H
#define FC_TESTS_REGION_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

typedef struct region {
    uint8_t *start, *end;
} region;

enum { REGION_PAGE = 65536 }; /* a multiple of every page size in use */

static inline region region_make(size_t bytes) {
    const size_t size = (bytes + REGION_PAGE - 1) / REGION_PAGE * REGION_PAGE;
    uint8_t *all = mmap(NULL, size + 2 * REGION_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED || mprotect(all + REGION_PAGE, size, PROT_READ | PROT_WRITE)) {
        perror("mmap");
        exit(2);
    }
    return (region){all + REGION_PAGE, all + REGION_PAGE + size};
}

#endif
