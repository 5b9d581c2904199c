/*
 * The packed blocks in memory (clauses BLOCK-STRUCT-1, DTYPE-GEOM-2).  Every member is bytes, so a struct has alignment 1 and no
 * padding, and may lie at any address; what a multi-byte field holds is read and written through block/bytes.h.
 */
#ifndef FC_BLOCK_LAYOUT_H
#define FC_BLOCK_LAYOUT_H
#include <stdint.h>

/* elements and bytes of a block: FC_SIZE_q4_0, FC_BYTES_q4_0 ... (of a scalar dtype 0 and its byte size) */
enum {
#define FC_DTYPE(name, kind, size, bytes, properties, logical, accumulator) FC_SIZE_##name = size, FC_BYTES_##name = bytes,
#include "core/dtypes.def"
#undef FC_DTYPE
};

/* FC_BLOCK(format, members): the struct block_<format>, pinned to the byte size of the registry */
#define FC_BLOCK(format, ...)                                                                                               \
    typedef struct {                                                                                                        \
        uint8_t __VA_ARGS__;                                                                                                \
    } block_##format;                                                                                                       \
    _Static_assert(sizeof(block_##format) == FC_BYTES_##format, "packed size of " #format);

FC_BLOCK(q1_0, d[2], qs[16])
FC_BLOCK(q2_0, d[2], qs[32])
FC_BLOCK(q4_0, d[2], qs[16])
FC_BLOCK(q4_1, d[2], m[2], qs[16])
FC_BLOCK(q5_0, d[2], qh[4], qs[16])
FC_BLOCK(q5_1, d[2], m[2], qh[4], qs[16])
FC_BLOCK(q8_0, d[2], qs[32])
FC_BLOCK(q8_1, d[2], s[2], qs[32])
FC_BLOCK(q2_k, scales[16], qs[64], d[2], dmin[2])
FC_BLOCK(q3_k, hmask[32], qs[64], scales[12], d[2])
FC_BLOCK(q4_k, d[2], dmin[2], scales[12], qs[128])
FC_BLOCK(q5_k, d[2], dmin[2], scales[12], qh[32], qs[128])
FC_BLOCK(q6_k, ql[128], qh[64], scales[16], d[2])
FC_BLOCK(q8_k, d[4], qs[256], bsums[32])
FC_BLOCK(iq1_s, d[2], qs[32], qh[16])
FC_BLOCK(iq1_m, qs[32], qh[16], scales[8])
FC_BLOCK(iq2_xxs, d[2], qs[64])
FC_BLOCK(iq2_xs, d[2], qs[64], scales[8])
FC_BLOCK(iq2_s, d[2], qs[32], signs[32], qh[8], scales[8])
FC_BLOCK(iq3_xxs, d[2], qs[64], sas[32])
FC_BLOCK(iq3_s, d[2], qs[64], qh[8], signs[32], scales[4])
FC_BLOCK(iq4_nl, d[2], qs[16])
FC_BLOCK(iq4_xs, d[2], scales_h[2], scales_l[4], qs[128])
FC_BLOCK(tq1_0, qs[48], qh[4], d[2])
FC_BLOCK(tq2_0, qs[64], d[2])
FC_BLOCK(mxfp4, e[1], qs[16])
FC_BLOCK(nvfp4, d[4], qs[32])
#undef FC_BLOCK

#endif
