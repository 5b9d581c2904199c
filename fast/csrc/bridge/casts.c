/*
 * The cast kernels of one level: one function per entry of bridge/pairs.h, each an instance of the level's FC_CAST_LOOP with
 * constant dtypes and mode: bridge/plain.h (any CPU) or bridge/avx2.h.
 */
#include "core/kernels.h"
#include "fucina.h"

#if defined(__AVX2__) && defined(__F16C__)
#include "bridge/avx2.h"
#else
#include "bridge/plain.h"
#endif

enum {
    MODE_default = 0,
    MODE_saturate = FC_CAST_SATURATE,
    MODE_single = FC_CAST_SINGLE_ROUNDING,
    MODE_saturate_single = FC_CAST_SATURATE | FC_CAST_SINGLE_ROUNDING
};

#define KERNEL(source, target, mode)                                                                                   \
    static void cast_##source##_##target##_##mode(const void *in, void *out, size_t n) {                               \
        FC_CAST_LOOP(source, target, MODE_##mode, in, out, n, cast_##source##_##target##_##mode);               \
    }
#define ENTRY(source, target, mode) [MODE_##mode][FC_##source][FC_##target] = cast_##source##_##target##_##mode,

#define KERNEL_default(source, target) KERNEL(source, target, default)
#define KERNEL_saturate(source, target) KERNEL(source, target, saturate)
#define KERNEL_single(source, target) KERNEL(source, target, single)
#define KERNEL_saturate_single(source, target) KERNEL(source, target, saturate_single)
FC_PAIRS(KERNEL_default)
FC_SATURATING_PAIRS(KERNEL_saturate)
FC_SINGLE_PAIRS(KERNEL_single)
FC_SATURATING_SINGLE_PAIRS(KERNEL_saturate_single)

#define ENTRY_default(source, target) ENTRY(source, target, default)
#define ENTRY_saturate(source, target) ENTRY(source, target, saturate)
#define ENTRY_single(source, target) ENTRY(source, target, single)
#define ENTRY_saturate_single(source, target) ENTRY(source, target, saturate_single)
const fc_cast_table FC_K(casts) = {
    FC_PAIRS(ENTRY_default)
    FC_SATURATING_PAIRS(ENTRY_saturate)
    FC_SINGLE_PAIRS(ENTRY_single)
    FC_SATURATING_SINGLE_PAIRS(ENTRY_saturate_single)
};
