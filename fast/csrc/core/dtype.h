/* The dtypes' indices, in the documents' order: FC_bool, FC_u8, ... (clause DTYPE-ENUM-1). */
#ifndef FC_DTYPE_H
#define FC_DTYPE_H

enum {
#define FC_DTYPE(name, kind, block, bytes, properties, logical, accumulator) FC_##name,
#include "core/dtypes.def"
#undef FC_DTYPE
    FC_DTYPES,
    FC_SCALAR_DTYPES = FC_f8_e5m2 + 1
};

#endif
