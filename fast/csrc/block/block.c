/* The public functions of the block formats: find the kernel of the level in force, run it in the default environment. */
#include "core/dispatch.h"
#include "core/environment.h"
#include "core/fault.h"
#include "fucina.h"
#include <string.h>

static const fc_block_kernels *kernels_of(int dtype) {
    if (dtype < FC_SCALAR_DTYPES || dtype >= FC_DTYPES) return NULL;
    return &fc_kernels_in_force()->blocks[dtype - FC_SCALAR_DTYPES];
}

/* Clauses: BLOCK-DECODE-1, BLOCK-CHUNK-1 */
fc_status fc_dequantize(int dtype, const void *blocks, float *out, size_t n) {
    const fc_block_kernels *kernels = kernels_of(dtype);
    if (!kernels) return FC_BAD_DTYPE;
    const fc_environment caller = fc_environment_enter();
    kernels->decode(blocks, out, n);
    fc_environment_leave(caller);
    return FC_OK;
}

/* Clauses: BLOCK-ENCODE-1, BLOCK-CHUNK-1, BLOCK-REJECT-1 */
fc_status fc_quantize(int dtype, const void *values, void *blocks, size_t n, const struct fc_quantize_options *options, size_t *encoded) {
    enum { PIECE = 4096 }; /* floats copied at a time where the values are misaligned: 16 KiB of stack */
    const fc_block_kernels *kernels = kernels_of(dtype);
    struct fc_dtype_info info;
    if (!kernels || fc_dtype_info(dtype, &info) != FC_OK) return FC_BAD_DTYPE;
    const fc_environment caller = fc_environment_enter();
    fc_encoding how = {options->importance, options->row_blocks, options->first, options->scale, options->search};
    if ((uintptr_t)values % sizeof(float) == 0) {
        *encoded = kernels->encode(values, blocks, n, &how);
    } else {
        float piece[PIECE];
        const size_t most = PIECE / (size_t)info.block_size;
        const char *from = values;
        size_t done = 0, step = 0, took = 0;
        for (; done < n && took == step; done += took) {
            step = n - done < most ? n - done : most;
            memcpy(piece, from + done * (size_t)info.block_size * sizeof(float), step * (size_t)info.block_size * sizeof(float));
            how.first = options->first + done;
            took = kernels->encode(piece, (uint8_t *)blocks + done * (size_t)info.byte_size, step, &how);
        }
        *encoded = done;
    }
    fc_environment_leave(caller);
    return *encoded == n ? FC_OK : FC_BAD_BLOCK;
}

/* Clause: BLOCK-FINITE-1 */
size_t fc_first_nonfinite(const void *values, size_t n) {
    enum { PIECE = 256 };
    const char *from = values;
    uint32_t bits[PIECE];
    for (size_t done = 0; done < n; done += PIECE) {
        const size_t step = n - done < PIECE ? n - done : PIECE;
        memcpy(bits, from + done * sizeof *bits, step * sizeof *bits);
        uint32_t any = 0;
        for (size_t i = 0; i < step; i++) any |= (bits[i] & 0x7f800000) == 0x7f800000;
        if (any)
            for (size_t i = 0; i < step; i++)
                if ((bits[i] & 0x7f800000) == 0x7f800000) return done + i;
    }
    return n;
}
