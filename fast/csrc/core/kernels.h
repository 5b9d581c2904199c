/*
 * The kernels of one instruction-set level, as one table.  Each family has one list X(name, parameters); the lists drive the
 * table's members, the prototypes fc_<name>__<level> and the table itself (core/table.c).
 */
#ifndef FC_KERNELS_H
#define FC_KERNELS_H
#include "core/dtype.h"
#include <stddef.h>
#include <stdint.h>

/* in and out may have any alignment and do not overlap */
typedef void fc_cast_kernel(const void *in, void *out, size_t n);

/* rng/: arguments are valid; element j of out is element first + j of the stream */
#define FC_RNG_KERNELS(X)                                                                                                   \
    X(gaussian, (uint64_t seed, uint64_t first, float scale, float *out, size_t n))                                         \
    X(gaussian_fast, (uint64_t seed, uint64_t first, float scale, float *out, size_t n))                                    \
    X(add_mean, (float mean, float *out, size_t n))                                                                         \
    X(uniform, (uint64_t seed, uint64_t first, float lo, float hi, float *out, size_t n))                                   \
    X(gumbel, (uint64_t seed, uint64_t first, float *out, size_t n))                                                        \
    X(randint, (uint64_t seed, uint64_t first, int64_t low, uint64_t span, int64_t *out, size_t n))                         \
    X(randperm, (uint64_t seed, int64_t *out, size_t n))                                                                    \
    X(dropout_mask, (uint64_t seed, uint64_t first, uint64_t threshold, uint8_t *out, size_t n))                            \
    X(gaussian_f64, (uint64_t seed, uint64_t pair, double scale, double *out, size_t pairs))                                \
    X(gumbel_f64, (uint64_t seed, uint64_t first, double *out, size_t n))

#define FC_KERNEL_LISTS(X) FC_RNG_KERNELS(X)

/* bridge/: one kernel per (mode, source, target), NULL where a mode does not tell on the pair; the lists are in bridge/pairs.h */
enum { FC_CAST_MODES = 4 };
typedef fc_cast_kernel *fc_cast_table[FC_CAST_MODES][FC_SCALAR_DTYPES][FC_SCALAR_DTYPES];

typedef struct fc_kernels {
    const fc_cast_table *casts;
#define FC_MEMBER(name, parameters) void (*name) parameters;
    FC_KERNEL_LISTS(FC_MEMBER)
#undef FC_MEMBER
} fc_kernels;

#ifdef FC_ISA
#include "core/level.h"
#define FC_PROTOTYPE(name, parameters) void FC_K(name) parameters;
FC_KERNEL_LISTS(FC_PROTOTYPE)
#undef FC_PROTOTYPE
extern const fc_cast_table FC_K(casts);
#endif

#endif
