/* The bridges' public functions: check the dtypes, find the kernel, run it in the default environment. */
#include "core/dispatch.h"
#include "core/environment.h"
#include "core/fault.h"
#include "bridge/pairs.h"
#include "fucina.h"
#include "team/bulk.h"
#include <string.h>

static int is_scalar(int dtype) { return dtype >= 0 && dtype < FC_SCALAR_DTYPES; }

/* The kernel of the pair under a mode: a mode that does not tell on the pair falls away. */
static fc_cast_kernel *kernel_of(int source, int target, uint32_t mode) {
    const fc_cast_table *casts = fc_kernels_in_force()->casts;
    if (FC_PLANTED(SATURATE_IGNORED)) mode &= ~(uint32_t)FC_CAST_SATURATE;
    fc_cast_kernel *kernel = (*casts)[mode & (FC_CAST_MODES - 1)][source][target];
    if (!kernel) kernel = (*casts)[mode & FC_CAST_SATURATE][source][target];
    if (!kernel) kernel = (*casts)[mode & FC_CAST_SINGLE_ROUNDING][source][target];
    if (!kernel) kernel = (*casts)[0][source][target];
    return kernel;
}

static void run(fc_cast_kernel *kernel, const void *in, void *out, size_t n) {
    const fc_environment outer = fc_environment_enter();
    kernel(in, out, n);
    fc_environment_leave(outer);
}

/* Casts on the process's team, from so many bytes read and written on: an estimate of what outweighs the waking of a worker. */
enum { LEAST_BYTES = 1 << 20, GRAIN = 1 << 13 };

struct cast {
    fc_cast_kernel *kernel;
    const uint8_t *in;
    uint8_t *out;
    size_t in_size, out_size;
};

static void cast_piece(void *context, size_t start, size_t n) {
    const struct cast *cast = context;
    cast->kernel(cast->in + start * cast->in_size, cast->out + start * cast->out_size, n);
}

/* Clauses: BRIDGE-ARRAY-1, BRIDGE-ARRAY-4, BRIDGE-SCALAR-3, BRIDGE-SAT-1, BRIDGE-SINGLE-1 */
fc_status fc_cast(int source, int target, uint32_t mode, const void *in, void *out, size_t n) {
    if (!is_scalar(source) || !is_scalar(target)) return FC_BAD_DTYPE;
    if (n) {
        const fc_environment outer = fc_environment_enter();
        struct cast cast = {kernel_of(source, target, mode), in, out, fc_size_of(source), fc_size_of(target)};
        fc_bulk(n, LEAST_BYTES / (cast.in_size + cast.out_size), GRAIN, cast_piece, &cast);
        fc_environment_leave(outer);
    }
    return FC_OK;
}

/* An element's pattern to and from the low bits of a word, whatever the byte order. */
static void put_bits(void *element, unsigned size, uint64_t bits) {
    const uint8_t b8 = (uint8_t)bits;
    const uint16_t b16 = (uint16_t)bits;
    const uint32_t b32 = (uint32_t)bits;
    memcpy(element, size == 1 ? (const void *)&b8 : size == 2 ? (const void *)&b16 : size == 4 ? (const void *)&b32 : &bits, size);
}

static uint64_t get_bits(const void *element, unsigned size) {
    uint8_t b8;
    uint16_t b16;
    uint32_t b32;
    uint64_t b64;
    switch (size) {
    case 1: memcpy(&b8, element, 1); return b8;
    case 2: memcpy(&b16, element, 2); return b16;
    case 4: memcpy(&b32, element, 4); return b32;
    default: memcpy(&b64, element, 8); return b64;
    }
}

/* Clause BRIDGE-BITS-1: the bulk kernel on one element, so that the two cannot differ. */
fc_status fc_cast_bits(int source, int target, uint32_t mode, uint64_t bits, uint64_t *out) {
    uint64_t in_element, out_element;
    if (!is_scalar(source) || !is_scalar(target)) return FC_BAD_DTYPE;
    put_bits(&in_element, fc_size_of(source), bits);
    run(kernel_of(source, target, mode), &in_element, &out_element, 1);
    *out = get_bits(&out_element, fc_size_of(target));
    return FC_OK;
}

/* Clause BRIDGE-TRUTHY-1: truthiness is the cast to bool. */
fc_status fc_is_truthy(int dtype, uint64_t bits, int *out) {
    uint64_t truth;
    const fc_status status = fc_cast_bits(dtype, FC_bool, 0, bits, &truth);
    if (status == FC_OK) *out = truth != 0; /* a bool's own byte is not normalised by the cast */
    return status;
}
