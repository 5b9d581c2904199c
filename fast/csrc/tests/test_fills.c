/*
 * Clause RNG-CHUNK-1 at the C level: every fill equals the lowest level's, at every length 0..70, every element alignment, whatever
 * the first index and however it is cut into pieces, and writes nothing outside its output.  `quick`: thinned out for valgrind.
 */
#include "tests/calls.h"
#include "tests/check.h"
#include "tests/region.h"

enum { SHORT = 70, CANARY = 64, CANARY_BYTE = 0x3c };

static int quick;
static region out_region;

static const char *level_name(void) { return fc_isa_name(fc_isa_get()); }

static void fill_and_compare(int which, uint64_t first, uint8_t *out, size_t n, const uint8_t *expected) {
    const size_t bytes = n * call_size[which];
    uint8_t *from = out - out_region.start < CANARY ? out_region.start : out - CANARY;
    uint8_t *to = out_region.end - (out + bytes) < CANARY ? out_region.end : out + bytes + CANARY;
    memset(from, CANARY_BYTE, (size_t)(to - from));
    const fc_status status = call_fill(which, 9, first, out, n);
    int outside = 0;
    for (uint8_t *p = from; p < out; p++) outside |= *p != CANARY_BYTE;
    for (uint8_t *p = out + bytes; p < to; p++) outside |= *p != CANARY_BYTE;
    CHECK(status == FC_OK, "level %s, %s, n %zu: status %d", level_name(), call_name[which], n, status);
    CHECK(!outside, "level %s, %s, first %llu, n %zu: wrote outside", level_name(), call_name[which], (unsigned long long)first, n);
    CHECK(memcmp(out, expected, bytes) == 0, "level %s, %s, first %llu, n %zu, out %% 64 = %zu: other bytes", level_name(), call_name[which],
          (unsigned long long)first, n, (size_t)((uintptr_t)out % 64));
}

static void short_fills(int which, uint64_t first) {
    static uint64_t expected[SHORT];
    const size_t size = call_size[which];
    fc_isa_set(0);
    for (size_t i = 0; i < SHORT; i++) /* the reference: one element a call */
        CHECK(call_fill(which, 9, first + i, (uint8_t *)expected + i * size, 1) == FC_OK, "%s", call_name[which]);
    for (int level = 0; level < fc_isa_count(); level++) {
        if (fc_isa_set(level) != FC_OK) continue;
        for (size_t n = 0; n <= SHORT; n += quick ? 7 : 1) {
            fill_and_compare(which, first, out_region.end - n * size, n, (const uint8_t *)expected);
            fill_and_compare(which, first, out_region.start, n, (const uint8_t *)expected);
        }
        for (size_t offset = size; offset < 64; offset += size * (quick ? 3 : 1))
            fill_and_compare(which, first, out_region.start + 4096 + offset, SHORT - 7, (const uint8_t *)expected);
        for (size_t start = 1; start < SHORT; start += quick ? 17 : 1) /* the rest from every start */
            fill_and_compare(which, first + start, out_region.start + 64, SHORT - start, (const uint8_t *)expected + start * size);
    }
}

/* Beyond the kernels' blocks and above cache size, against the lowest level in uneven pieces. */
static void long_fill(int which, size_t n) {
    const size_t size = call_size[which];
    const uint64_t first = 12345;
    uint8_t *expected = malloc(n * size);
    if (!expected) exit(2);
    fc_isa_set(0);
    for (size_t i = 0, piece = 1; i < n; i += piece, piece = piece % 4801 + 241) {
        if (piece > n - i) piece = n - i;
        call_fill(which, 9, first + i, expected + i * size, piece);
    }
    for (int level = 0; level < fc_isa_count(); level++) {
        if (fc_isa_set(level) != FC_OK) continue;
        fill_and_compare(which, first, out_region.end - n * size, n, expected);
        fill_and_compare(which, first, out_region.start + size, n, expected);
    }
    free(expected);
}

/* RNG-PERM-1: a permutation of 0..n-1, the same on every level, for every short length and a long one. */
static void permutations(size_t longest) {
    int64_t *expected = malloc(longest * sizeof *expected);
    uint8_t *seen = malloc(longest);
    if (!expected || !seen) exit(2);
    for (size_t n = 0; n <= longest; n = n < SHORT ? n + 1 : n < longest ? longest : n + 1) {
        fc_isa_set(0);
        CHECK(fc_randperm(3, expected, n) == FC_OK, "n %zu", n);
        memset(seen, 0, longest);
        for (size_t i = 0; i < n; i++) {
            const int fits = expected[i] >= 0 && (uint64_t)expected[i] < n && !seen[expected[i]];
            CHECK(fits, "n %zu: %lld at %zu", n, (long long)expected[i], i);
            if (fits) seen[expected[i]] = 1;
        }
        for (int level = 0; level < fc_isa_count(); level++) {
            if (fc_isa_set(level) != FC_OK) continue;
            uint8_t *out = out_region.end - n * 8, *from = out - CANARY;
            memset(from, CANARY_BYTE, (size_t)(out_region.end - from));
            fc_randperm(3, (int64_t *)(void *)out, n);
            int outside = 0;
            for (uint8_t *p = from; p < out; p++) outside |= *p != CANARY_BYTE;
            CHECK(!outside && memcmp(out, expected, n * 8) == 0, "level %s, n %zu", level_name(), n);
        }
    }
    free(expected);
    free(seen);
}

int main(int argc, char **argv) {
    static const uint64_t firsts[] = {0, 1, 2, 4095, UINT64_C(1) << 32, UINT64_MAX - SHORT + 1};
    quick = argc > 1 && strcmp(argv[1], "quick") == 0;
    const size_t length = (quick ? 9000 : (size_t)1 << 20) + 13;
    out_region = region_make(length * 8 + 8192);
    for (int which = 0; which < CALL_FILLS; which++) {
        for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++) short_fills(which, firsts[i]);
        long_fill(which, length);
    }
    permutations(quick ? 3000 : 200000);
    return check_report();
}
