/*
 * Clause BRIDGE-ARRAY-4 at the C level: a bulk cast equals the lowest level's, element by element, at every length 0..70, at every
 * alignment of input and output, from read-only memory, and touches nothing outside its buffers.  Every pair of dtypes, every mode.
 * With the argument `quick` (valgrind) lengths and alignments are thinned out and the long casts shortened.
 */
#include "fucina.h"
#include "tests/check.h"
#include "tests/patterns.h"
#include "tests/region.h"

enum { SHORT = 70, CANARY = 64, CANARY_BYTE = 0xc5 };

static int quick;
static region in_region, out_region;

/* One cast into out_region at `out` with canaries around it, compared with `expected`. */
static void cast_and_compare(int source, int target, uint32_t mode, const void *in, uint8_t *out, size_t n, const uint8_t *expected) {
    const size_t bytes = n * dtype_size[target];
    uint8_t *from = out - out_region.start < CANARY ? out_region.start : out - CANARY;
    uint8_t *to = out_region.end - (out + bytes) < CANARY ? out_region.end : out + bytes + CANARY;
    memset(from, CANARY_BYTE, (size_t)(to - from));
    const fc_status status = fc_cast(source, target, mode, in, out, n);
    int outside = 0;
    for (uint8_t *p = from; p < out; p++) outside |= *p != CANARY_BYTE;
    for (uint8_t *p = out + bytes; p < to; p++) outside |= *p != CANARY_BYTE;
#define WHERE "level %s, %s -> %s, mode %u, n %zu, in %% 64 = %zu, out %% 64 = %zu"
#define PLACE fc_isa_name(fc_isa_get()), dtype_name[source], dtype_name[target], mode, n, (size_t)((uintptr_t)in % 64), (size_t)((uintptr_t)out % 64)
    CHECK(status == FC_OK, WHERE ": status %d", PLACE, status);
    CHECK(!outside, WHERE ": wrote outside", PLACE);
    CHECK(memcmp(out, expected, bytes) == 0, WHERE ": other bytes than the lowest level", PLACE);
}

static void short_casts(int source, int target, uint32_t mode) {
    static uint8_t input[SHORT * 8], expected[SHORT * 8];
    const size_t in_size = dtype_size[source], out_size = dtype_size[target];
    pattern_fill(source, 1000 + (uint64_t)(source * T_COUNT + target), input, SHORT);
    fc_isa_set(0);
    fc_cast(source, target, mode, input, expected, SHORT);
    for (size_t i = 0; i < SHORT; i++) { /* the bulk form is the scalar form, element by element */
        uint64_t bits = 0;
        const uint64_t given = pattern_load(input + i * in_size, in_size), want = pattern_load(expected + i * out_size, out_size);
        const fc_status status = fc_cast_bits(source, target, mode, given, &bits);
        CHECK(status == FC_OK && bits == want, "%s -> %s, mode %u: %llx: one element gives %llx, bulk %llx", dtype_name[source], dtype_name[target],
              mode, (unsigned long long)given, (unsigned long long)bits, (unsigned long long)want);
    }
    for (int level = 0; level < fc_isa_count(); level++) {
        if (fc_isa_set(level) != FC_OK) continue;
        for (size_t n = 0; n <= SHORT; n += quick ? 7 : 1) { /* ends at the unreadable page, then starts at one */
            uint8_t *in = in_region.end - n * in_size;
            memcpy(in, input, n * in_size);
            cast_and_compare(source, target, mode, in, out_region.end - n * out_size, n, expected);
            memcpy(in_region.start, input, n * in_size);
            cast_and_compare(source, target, mode, in_region.start, out_region.start, n, expected);
        }
        const size_t n = SHORT - 7;
        for (size_t offset = 1; offset < 64; offset += quick ? 13 : 1) { /* every alignment of the one against a fixed other */
            uint8_t *in = in_region.start + offset, *out = out_region.start + 4096 + offset;
            memcpy(in, input, n * in_size);
            cast_and_compare(source, target, mode, in, out_region.start + 4096, n, expected);
            cast_and_compare(source, target, mode, in, out, n, expected);
            cast_and_compare(source, target, mode, memcpy(in_region.start, input, n * in_size), out, n, expected);
        }
    }
}

/* Long enough for streaming stores, at an odd length and odd places; pieces of the expected bytes come from short calls. */
static void long_cast(int source, int target, uint32_t mode, size_t n) {
    const size_t in_size = dtype_size[source], out_size = dtype_size[target], piece = 4099;
    uint8_t *in = in_region.end - n * in_size, *expected = malloc(n * out_size);
    if (!expected) exit(2);
    pattern_fill(source, 5000 + (uint64_t)target, in, n);
    fc_isa_set(0);
    for (size_t i = 0; i < n; i += piece)
        fc_cast(source, target, mode, in + i * in_size, expected + i * out_size, n - i < piece ? n - i : piece);
    for (int level = 0; level < fc_isa_count(); level++) {
        if (fc_isa_set(level) != FC_OK) continue;
        cast_and_compare(source, target, mode, in, out_region.end - n * out_size, n, expected);
        cast_and_compare(source, target, mode, in, out_region.start + 1, n, expected);
        cast_and_compare(source, target, mode, in, out_region.start + 4096 + out_size, n, expected);
    }
    free(expected);
}

int main(int argc, char **argv) {
    static const int pairs[][2] = {{T_F32, T_BF16},  {T_F32, T_F16},  {T_BF16, T_F32}, {T_F16, T_F32}, {T_F32, T_E4M3}, {T_E4M3, T_F32}, {T_F32, T_E5M2},
                                   {T_E5M2, T_F32},  {T_F32, T_I32},  {T_F64, T_I64},  {T_F32, T_F64}, {T_F64, T_F32},  {T_F32, T_F32},  {T_BOOL, T_F64},
                                   {T_BF16, T_E4M3}, {T_F64, T_BF16}, {T_I64, T_BOOL}, {T_I32, T_F16}, {T_U8, T_I64},   {T_U16, T_U8}};
    quick = argc > 1 && strcmp(argv[1], "quick") == 0;
    /* above the size of any cache's share from which a kernel may stream */
    const size_t length = (quick ? 20000 : (size_t)5 << 20) + 37;
    in_region = region_make(length * 8 + 8192);
    out_region = region_make(length * 8 + 8192);
    for (int source = 0; source < T_COUNT; source++)
        for (int target = 0; target < T_COUNT; target++)
            for (uint32_t mode = 0; mode < 4; mode++) short_casts(source, target, mode);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) long_cast(pairs[i][0], pairs[i][1], 0, length);
    return check_report();
}
