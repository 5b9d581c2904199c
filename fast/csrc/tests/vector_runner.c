/*
 * Plays a call file (tools/elsewhere/calls.py) on one level:  vector_runner CALLS LEVEL >OUTPUTS
 *
 * The file is little-endian throughout: the word "FUCALLS1", a count, and per call a header of 13 words of 64 bits
 *     operation, 4 arguments, n, status, infinity, free NaN, input bytes, expected bytes, output item size, input item size
 * then input and expected bytes, each padded to 8.  The runner turns items into the machine's byte order, makes the call through the
 * public interface and compares; it writes every output little-endian to stdout, so that outputs of any two machines can be compared.
 *   infinity: the pattern of the output format's infinity: patterns beyond it are NaNs and equal each other; 0: every bit counts.
 *   free NaN: 1 where the clause leaves the NaN's bits open (NUM-NAN-2): it is written as the infinity with the quiet bit set.
 * Exit code 0: every call gave what the file expects.
 */
#include "fucina.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CAST, CAST_BITS, TRUTHY, AT, GAUSSIAN, GAUSSIAN_FAST, NORMAL, UNIFORM, KAIMING, GUMBEL, RANDINT, RANDPERM, MASK, SCALE, DEQUANTIZE, QUANTIZE };
enum { HEADER_WORDS = 13 };

typedef struct call {
    uint64_t op, a[4], n, status, infinity, free_nan, in_bytes, expected_bytes, out_size, in_size;
    unsigned char *in;
    const unsigned char *expected;
} call;

static void fail(const char *what) {
    fprintf(stderr, "vector_runner: %s\n", what);
    exit(2);
}

static void *take(size_t bytes) {
    void *p = malloc(bytes ? bytes : 1);
    if (!p) fail("out of memory");
    return p;
}

static uint64_t word(const unsigned char *p) {
    uint64_t w = 0;
    for (int i = 7; i >= 0; i--) w = w << 8 | p[i];
    return w;
}

/* Between little-endian and the machine's order, item by item; nothing to do on a little-endian machine. */
static void reorder(unsigned char *p, size_t bytes, size_t size) {
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    if (first || size < 2) return;
    for (size_t i = 0; i + size <= bytes; i += size)
        for (size_t k = 0; k < size / 2; k++) {
            const unsigned char t = p[i + k];
            p[i + k] = p[i + size - 1 - k];
            p[i + size - 1 - k] = t;
        }
}

static double parameter(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t item_load(const unsigned char *p, size_t size) {
    uint64_t w = 0;
    uint32_t w4;
    uint16_t w2;
    switch (size) {
    case 1: return *p;
    case 2: return memcpy(&w2, p, 2), w2;
    case 4: return memcpy(&w4, p, 4), w4;
    default: return memcpy(&w, p, 8), w;
    }
}

static void item_store(unsigned char *p, size_t size, uint64_t w) {
    const uint32_t w4 = (uint32_t)w;
    const uint16_t w2 = (uint16_t)w;
    switch (size) {
    case 1: *p = (unsigned char)w; break;
    case 2: memcpy(p, &w2, 2); break;
    case 4: memcpy(p, &w4, 4); break;
    default: memcpy(p, &w, 8);
    }
}

static fc_status perform(const call *c, void *out) {
    const uint64_t *a = c->a;
    const size_t n = (size_t)c->n;
    unsigned char *bytes = out;
    fc_status status = FC_OK;
    switch (c->op) {
    case CAST: return fc_cast((int)a[0], (int)a[1], (uint32_t)a[2], c->in, out, n);
    case CAST_BITS:
        for (size_t i = 0; i < n && status == FC_OK; i++) {
            uint64_t w = 0;
            status = fc_cast_bits((int)a[0], (int)a[1], (uint32_t)a[2], item_load(c->in + i * c->in_size, c->in_size), &w);
            item_store(bytes + i * c->out_size, c->out_size, w);
        }
        return status;
    case TRUTHY:
        for (size_t i = 0; i < n && status == FC_OK; i++) {
            int truth = -1;
            status = fc_is_truthy((int)a[0], item_load(c->in + i * c->in_size, c->in_size), &truth);
            bytes[i] = (unsigned char)truth;
        }
        return status;
    case AT: /* pairs of seed and index */
        for (size_t i = 0; i < n; i++) item_store(bytes + 8 * i, 8, fc_at(item_load(c->in + 16 * i, 8), item_load(c->in + 16 * i + 8, 8)));
        return FC_OK;
    case GAUSSIAN: return fc_gaussian(a[0], a[1], parameter(a[2]), out, n);
    case GAUSSIAN_FAST: return fc_gaussian_fast(a[0], a[1], parameter(a[2]), out, n);
    case NORMAL: return fc_normal(a[0], a[1], parameter(a[2]), parameter(a[3]), out, n);
    case UNIFORM: return fc_uniform(a[0], a[1], parameter(a[2]), parameter(a[3]), out, n);
    case KAIMING: return fc_kaiming_uniform(a[0], a[1], a[2], out, n);
    case GUMBEL: return fc_gumbel(a[0], a[1], out, n);
    case RANDINT: return fc_randint(a[0], a[1], (int64_t)a[2], (int64_t)a[3], out, n);
    case RANDPERM: return fc_randperm(a[0], out, n);
    case MASK: return fc_dropout_mask(a[0], a[1], parameter(a[2]), out, n);
    case SCALE: return fc_dropout_scale(parameter(a[2]), out);
    case DEQUANTIZE: return fc_dequantize((int)a[0], c->in, out, (size_t)a[1]); /* items are floats, a[1] counts blocks */
    case QUANTIZE: {
        const struct fc_quantize_options options = {NULL, (size_t)a[1], 0, parameter(a[2]), (int)a[3], 0};
        size_t encoded;
        return fc_quantize((int)a[0], c->in, out, (size_t)a[1], &options, &encoded);
    }
    default: fail("unknown operation"); return FC_OK;
    }
}

static int is_nan(const call *c, const unsigned char *p) {
    const uint64_t sign = UINT64_C(1) << (8 * c->out_size - 1);
    return c->infinity && (item_load(p, (size_t)c->out_size) & ~sign) > c->infinity;
}

/* Compare an output (machine order) with the expected bytes (machine order); returns the number of wrong items, reports the first. */
static uint64_t compare(uint64_t index, const call *c, const unsigned char *out) {
    const size_t size = (size_t)c->out_size;
    uint64_t wrong = 0;
    for (size_t i = 0; i * size < c->expected_bytes; i++) {
        const unsigned char *got = out + i * size, *want = c->expected + i * size;
        if (memcmp(got, want, size) == 0) continue;
        if (is_nan(c, got) && is_nan(c, want)) continue;
        if (!wrong++)
            fprintf(stderr, "call %" PRIu64 " (operation %" PRIu64 "), item %zu: got %" PRIx64 ", expected %" PRIx64 "\n", index, c->op, i,
                    item_load(got, size), item_load(want, size));
    }
    return wrong;
}

static uint64_t play(uint64_t index, call *c) {
    const size_t bytes = (size_t)(c->n * c->out_size);
    unsigned char *out = take(bytes);
    memset(out, 0xee, bytes); /* what a refused call must leave */
    reorder(c->in, (size_t)c->in_bytes, (size_t)c->in_size);
    const fc_status status = perform(c, out);
    if ((uint64_t)status != c->status) {
        fprintf(stderr, "call %" PRIu64 " (operation %" PRIu64 "): status %d, expected %" PRIu64 "\n", index, c->op, status, c->status);
        free(out);
        return 1;
    }
    const uint64_t wrong = compare(index, c, out);
    if (c->free_nan) /* only ever f32 */
        for (size_t i = 0; i < bytes; i += 4)
            if (is_nan(c, out + i)) item_store(out + i, 4, c->infinity | 0x400000);
    reorder(out, bytes, (size_t)c->out_size);
    if (fwrite(out, 1, bytes, stdout) != bytes) fail("cannot write");
    free(out);
    return wrong;
}

static unsigned char *read_all(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) fail("cannot open the call file");
    const long size = ftell(file);
    rewind(file);
    unsigned char *data = take((size_t)size);
    if (fread(data, 1, (size_t)size, file) != (size_t)size) fail("cannot read the call file");
    fclose(file);
    *length = (size_t)size;
    return data;
}

int main(int argc, char **argv) {
    size_t length;
    uint64_t wrong = 0;
    int level = 0;
    if (argc != 3) fail("usage: vector_runner CALLS LEVEL");
    while (level < fc_isa_count() && strcmp(fc_isa_name(level), argv[2]) != 0) level++;
    if (fc_isa_set(level) != FC_OK) fail("this machine lacks the level");
    unsigned char *data = read_all(argv[1], &length), *p = data + 16;
    if (length < 16 || memcmp(data, "FUCALLS1", 8) != 0) fail("not a call file");
    const uint64_t count = word(data + 8);
    for (uint64_t i = 0; i < count; i++) {
        call c;
        uint64_t header[HEADER_WORDS];
        if ((size_t)(data + length - p) < 8 * HEADER_WORDS) fail("call file cut short");
        for (int k = 0; k < HEADER_WORDS; k++, p += 8) header[k] = word(p);
        memcpy(&c, header, sizeof header);
        c.in = p;
        p += (c.in_bytes + 7) / 8 * 8;
        c.expected = p;
        if (c.expected_bytes) reorder(p, (size_t)c.expected_bytes, (size_t)c.out_size);
        p += (c.expected_bytes + 7) / 8 * 8;
        if (p > data + length || c.expected_bytes > c.n * c.out_size) fail("call file cut short");
        wrong += play(i, &c);
    }
    free(data);
    if (fflush(stdout)) fail("cannot write");
    fprintf(stderr, "%" PRIu64 " calls, %" PRIu64 " wrong\n", count, wrong);
    return wrong != 0;
}
