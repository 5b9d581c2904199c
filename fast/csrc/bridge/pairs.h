/*
 * The pairs of scalar dtypes, as lists.  FC_PAIRS is the whole product; the other lists name the pairs on which a mode tells,
 * and bridge/casts.c makes one kernel of every entry.  A pair absent from a mode's list has nothing to saturate (the target
 * is not a small float, or the source holds no infinity and nothing above its range) or is rounded once anyway (clauses
 * BRIDGE-SAT-1, BRIDGE-SINGLE-1).
 */
#ifndef FC_PAIRS_H
#define FC_PAIRS_H
#include "core/dtype.h"
#include "core/inline.h"

#define FC_PAIRS_OF(X, source)                                                                                             \
    X(source, bool) X(source, u8) X(source, u16) X(source, i8) X(source, i16) X(source, i32) X(source, i64) X(source, f16) \
    X(source, bf16) X(source, f32) X(source, f64) X(source, f8_e4m3) X(source, f8_e5m2)
#define FC_PAIRS(X)                                                                                            \
    FC_PAIRS_OF(X, bool) FC_PAIRS_OF(X, u8) FC_PAIRS_OF(X, u16) FC_PAIRS_OF(X, i8) FC_PAIRS_OF(X, i16)         \
    FC_PAIRS_OF(X, i32) FC_PAIRS_OF(X, i64) FC_PAIRS_OF(X, f16) FC_PAIRS_OF(X, bf16) FC_PAIRS_OF(X, f32)       \
    FC_PAIRS_OF(X, f64) FC_PAIRS_OF(X, f8_e4m3) FC_PAIRS_OF(X, f8_e5m2)

#define FC_SATURATING_PAIRS(X)                                                                              \
    X(f16, bf16) X(f32, bf16) X(f64, bf16) X(f8_e5m2, bf16)                                                 \
    X(u16, f16) X(i32, f16) X(i64, f16) X(bf16, f16) X(f32, f16) X(f64, f16) X(f8_e5m2, f16)                \
    X(u16, f8_e4m3) X(i16, f8_e4m3) X(i32, f8_e4m3) X(i64, f8_e4m3) X(f16, f8_e4m3) X(bf16, f8_e4m3)        \
    X(f32, f8_e4m3) X(f64, f8_e4m3) X(f8_e5m2, f8_e4m3)                                                     \
    X(u16, f8_e5m2) X(i32, f8_e5m2) X(i64, f8_e5m2) X(f16, f8_e5m2) X(bf16, f8_e5m2) X(f32, f8_e5m2) X(f64, f8_e5m2)

/* An integer that f32 cannot hold lies above 2^24: beyond f16 and f8, so that only bf16 and f32 can tell how often it was rounded. */
#define FC_SINGLE_PAIRS(X) FC_SATURATING_SINGLE_PAIRS(X) X(i32, bf16) X(i64, bf16) X(i64, f32)
#define FC_SATURATING_SINGLE_PAIRS(X) X(f64, f16) X(f64, bf16) X(f64, f8_e4m3) X(f64, f8_e5m2)

FC_INLINE int is_integer(int dtype) { return dtype <= FC_i64; } /* bool too: its value is 0 or 1 */

/* Folds to a constant wherever `dtype` is one. */
FC_INLINE unsigned fc_size_of(int dtype) {
    static const unsigned short sizes[] = {
#define FC_DTYPE(name, kind, block, bytes, properties, logical, accumulator) bytes,
#include "core/dtypes.def"
#undef FC_DTYPE
    };
    return sizes[dtype];
}

#endif
