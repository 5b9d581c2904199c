/*
 * Clauses BLOCK-CHUNK-1 and DTYPE-GEOM-2 at the C level: a decoder reads exactly n packed blocks at any address, writes exactly
 * n * size floats, and gives the same bits (or a NaN) whatever the level, the length of the call, the alignment and the kind of
 * store.  A few values follow from the clauses by hand.  With the argument `quick` alignments and long arrays are thinned out.
 */
#include "block/layout.h"
#include "core/dtype.h"
#include "fucina.h"
#include "tests/check.h"
#include "tests/patterns.h"
#include "tests/region.h"

enum { FEW = 5, LARGEST = 256, MOST_BYTES = 292, CANARY = 64, CANARY_BYTE = 0xc5 };

static int quick;
static region in_region, out_region;

#define WHERE "level %s, %s, %zu blocks, in %% 64 = %zu, out %% 64 = %zu"
#define PLACE fc_isa_name(fc_isa_get()), info->name, n, (size_t)((uintptr_t)blocks % 64), (size_t)((uintptr_t)out % 64)

static size_t differences(const float *got, const float *expected, size_t n) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count += memcmp(got + i, expected + i, sizeof *got) != 0 && !(got[i] != got[i] && expected[i] != expected[i]);
    return count;
}

/* Decode into out_region with canaries around it, compare with `expected`. */
static void decode_and_compare(int dtype, const struct fc_dtype_info *info, const uint8_t *blocks, float *out, size_t n, const float *expected) {
    const size_t values = n * (size_t)info->block_size;
    uint8_t *const start = (uint8_t *)out, *const end = (uint8_t *)(out + values);
    uint8_t *const from = start - out_region.start < CANARY ? out_region.start : start - CANARY;
    uint8_t *const to = out_region.end - end < CANARY ? out_region.end : end + CANARY;
    memset(from, CANARY_BYTE, (size_t)(to - from));
    const fc_status status = fc_dequantize(dtype, blocks, out, n);
    int outside = 0;
    for (uint8_t *p = from; p < start; p++) outside |= *p != CANARY_BYTE;
    for (uint8_t *p = end; p < to; p++) outside |= *p != CANARY_BYTE;
    CHECK(status == FC_OK, WHERE ": status %d", PLACE, status);
    CHECK(!outside, WHERE ": wrote outside", PLACE);
    const size_t wrong = differences(out, expected, values);
    CHECK(!wrong, WHERE ": %zu other values than block by block at the lowest level", PLACE, wrong);
}

/* Random bytes, so random scales: infinities, NaN and subnormals are among them. */
static void random_blocks(uint8_t *to, size_t bytes, uint64_t seed) {
    uint64_t state = 2 * seed + 1;
    for (size_t i = 0; i < bytes; i++) to[i] = (uint8_t)(pattern_next(&state) >> 24);
}

static void few_blocks(int dtype, const struct fc_dtype_info *info) {
    static uint8_t input[FEW * MOST_BYTES];
    static float expected[FEW * LARGEST];
    const size_t bytes = (size_t)info->byte_size, size = (size_t)info->block_size;
    random_blocks(input, FEW * bytes, 100 + (uint64_t)dtype);
    fc_isa_set(0);
    for (size_t i = 0; i < FEW; i++) fc_dequantize(dtype, input + i * bytes, expected + i * size, 1);
    for (int level = 0; level < fc_isa_count(); level++) {
        if (fc_isa_set(level) != FC_OK) continue;
        for (size_t n = 0; n <= FEW; n++) { /* ends at the unreadable page, then starts at one */
            uint8_t *const last = in_region.end - n * bytes;
            memcpy(last, input, n * bytes);
            decode_and_compare(dtype, info, last, (float *)(void *)out_region.end - n * size, n, expected);
            memcpy(in_region.start, input, n * bytes);
            decode_and_compare(dtype, info, in_region.start, (float *)(void *)out_region.start, n, expected);
        }
        for (size_t offset = 1; offset < 64; offset += quick ? 13 : 1) { /* every alignment of the one against some of the other */
            uint8_t *const blocks = in_region.start + offset;
            memcpy(blocks, input, FEW * bytes);
            for (size_t floats = offset % 3; floats < 16; floats += 3)
                decode_and_compare(dtype, info, blocks, (float *)(void *)(out_region.start + 4096) + floats, FEW, expected);
        }
    }
}

/* Long enough for streaming stores, where the output's place allows them and where it does not; pieces come from short calls. */
static void many_blocks(int dtype, const struct fc_dtype_info *info, size_t values) {
    const size_t bytes = (size_t)info->byte_size, size = (size_t)info->block_size, n = values / size, piece = 37;
    uint8_t *const blocks = in_region.end - n * bytes;
    float *const expected = malloc(n * size * sizeof *expected);
    if (!expected) exit(2);
    random_blocks(blocks, n * bytes, 200 + (uint64_t)dtype);
    fc_isa_set(0);
    for (size_t i = 0; i < n; i += piece) fc_dequantize(dtype, blocks + i * bytes, expected + i * size, n - i < piece ? n - i : piece);
    for (int level = 0; level < fc_isa_count(); level++) {
        if (fc_isa_set(level) != FC_OK) continue;
        for (size_t floats = 0; floats < 8; floats += quick ? 5 : 1)
            decode_and_compare(dtype, info, blocks, (float *)(void *)(out_region.start + 4096) + floats, n, expected);
    }
    free(expected);
}

/* One block of `bytes`, zero but for the given ones; its element `at` must have the bits `expected` (0x7fc00000: any NaN). */
struct known {
    int dtype;
    struct {
        int at, byte;
    } given[4];
    int at;
    uint32_t expected;
};
static const struct known known[] = {
    {FC_q8_0, {{0, 0x00}, {1, 0xbc}}, 7, 0x80000000},                       /* 0 * -1 is -0 */
    {FC_q8_0, {{0, 0x00}, {1, 0xbc}, {33, 0x80}}, 31, 0x43000000},          /* -128 * -1 */
    {FC_q8_0, {{0, 0x01}, {1, 0x00}, {2, 3}}, 0, 0x34400000},               /* 3 * 2^-24: a subnormal f16 */
    {FC_q8_0, {{0, 0x00}, {1, 0x7c}}, 0, 0x7fc00000},                       /* 0 * inf */
    {FC_q1_0, {{0, 0x00}, {1, 0x80}}, 127, 0x00000000},                     /* a clear bit negates, -0 too */
    {FC_q1_0, {{0, 0x00}, {1, 0x7c}, {17, 0x80}}, 127, 0x7f800000},
    {FC_q4_0, {{0, 0x00}, {1, 0x3c}, {17, 0xf0}}, 31, 0x40e00000},          /* (15 - 8) * 1 from the high nibble of the last byte */
    {FC_q5_0, {{0, 0x00}, {1, 0x3c}, {5, 0x80}}, 31, 0x00000000},           /* fifth bit alone: 16 - 16 */
    {FC_q4_1, {{1, 0x80}, {3, 0x80}}, 0, 0x80000000},                       /* 0 * -0 + -0 */
    {FC_q8_k, {{0, 0x01}, {4, 0xff}}, 0, 0x80000001},                       /* -1 * 2^-149 */
    {FC_q3_k, {{108, 0x00}, {109, 0x3c}}, 0, 0x43000000},                   /* (0 - 32) * (0 - 4): the clear bit of hmask takes 4 away */
    {FC_q3_k, {{0, 0x01}, {108, 0x00}, {109, 0x3c}}, 0, 0x80000000},        /* (0 - 32) * 0 */
    {FC_q2_k, {{0, 0xf1}, {16, 0x03}, {81, 0x3c}, {83, 0x3c}}, 0, 0xc1400000}, /* 1 * 3 - 15 */
    {FC_mxfp4, {{0, 0x00}, {1, 0x01}}, 0, 0x00200000},                      /* byte 0: 2^-127, halved, times 1 */
    {FC_mxfp4, {{0, 0xff}, {1, 0x01}}, 0, 0x7f000000},                      /* byte 255 is 2^128, not NaN */
    {FC_mxfp4, {{0, 0xff}, {1, 0x07}}, 0, 0x7f800000},                      /* 12 * 2^127 */
    {FC_mxfp4, {{0, 0x7f}, {1, 0x08}}, 0, 0x00000000},                      /* code 8 is +0 */
    {FC_nvfp4, {{0, 0x7f}, {4, 0x01}}, 0, 0x00000000},                      /* scale byte 0x7f is 0 */
    {FC_iq4_nl, {{1, 0xbc}}, 0, 0x42fe0000},                                /* level 0 is -127 */
    {FC_iq2_xxs, {{1, 0x3c}, {6, 0x01}}, 0, 0xbf800000},                    /* 0.5 * 0.25 * 8, the first sign set */
    {FC_iq3_xxs, {{1, 0x3c}}, 0, 0x3f800000},                               /* 0.5 * 0.5 * 4 */
    {FC_iq1_s, {{1, 0x3c}, {35, 0x80}}, 0, 0xbf900000},                     /* 1 * (-1 - 0.125) */
    {FC_tq1_0, {{0, 0xff}, {53, 0x3c}}, 0, 0x3f800000},                     /* digit 2, less 1 */
};

static void known_values(void) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const struct known *const k = known + i;
        struct fc_dtype_info info;
        uint8_t block[MOST_BYTES] = {0};
        float values[LARGEST];
        fc_dtype_info(k->dtype, &info);
        for (int j = 0; j < 4; j++) block[k->given[j].at] |= (uint8_t)k->given[j].byte;
        for (int level = 0; level < fc_isa_count(); level++) {
            if (fc_isa_set(level) != FC_OK) continue;
            fc_dequantize(k->dtype, block, values, 1);
            const float value = values[k->at];
            uint32_t bits;
            memcpy(&bits, &value, sizeof bits);
            CHECK(value != value ? k->expected == 0x7fc00000 : bits == k->expected, "level %s, %s, line %zu: element %d is %08x, not %08x",
                  fc_isa_name(level), info.name, i, k->at, bits, k->expected);
        }
    }
}

int main(int argc, char **argv) {
    quick = argc > 1 && strcmp(argv[1], "quick") == 0;
    const size_t values = ((size_t)12 << 20) / sizeof(float); /* above the size from which a kernel streams */
    in_region = region_make(values * MOST_BYTES / LARGEST + 8192);
    out_region = region_make(values * sizeof(float) + 8192);
    known_values();
    for (int dtype = FC_SCALAR_DTYPES; dtype < FC_DTYPES; dtype++) {
        struct fc_dtype_info info;
        CHECK(fc_dtype_info(dtype, &info) == FC_OK && info.kind == FC_KIND_BLOCK_QUANTIZED, "dtype %d", dtype);
        few_blocks(dtype, &info);
        if (!quick || dtype == FC_q4_k) many_blocks(dtype, &info, values);
    }
    static float none[1];
    CHECK(fc_dequantize(FC_f32, none, none, 0) == FC_BAD_DTYPE, "a scalar dtype has no decoder");
    CHECK(fc_dequantize(FC_DTYPES, none, none, 0) == FC_BAD_DTYPE, "no such dtype");
    return check_report();
}
