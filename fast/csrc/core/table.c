/* The kernel table of one level. */
#include "core/kernels.h"

extern const fc_kernels FC_K(kernels);
const fc_kernels FC_K(kernels) = {
    .casts = &FC_K(casts),
    .blocks = FC_K(blocks),
#define FC_ENTRY(name, parameters) .name = FC_K(name),
    FC_KERNEL_LISTS(FC_ENTRY)
#undef FC_ENTRY
};
