/* The block kernels of one level, in the order of the dtypes. */
#include "core/kernels.h"

const fc_block_kernels FC_K(blocks)[FC_BLOCK_DTYPES] = {
#define FC_ENTRY(name) [FC_##name - FC_SCALAR_DTYPES] = {FC_K(decode_##name), FC_K(encode_##name)},
    FC_BLOCK_FORMATS(FC_ENTRY)
#undef FC_ENTRY
};
