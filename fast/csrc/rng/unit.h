/*
 * The unit doubles of clause RNG-UNIT-1, scalar form.  All three are exact: at most 53 significant bits, times 2^-53.
 */
#ifndef FC_RNG_UNIT_H
#define FC_RNG_UNIT_H
#include "rng/word.h"

#define FC_TAU 0x1.921fb54442d18p2 /* 2 pi to nearest */

/* in (0, 1] */
FC_INLINE double fc_unit_open_zero(uint64_t word) { return (double)((word >> 11) + 1) * 0x1p-53; }
/* in [0, 1) */
FC_INLINE double fc_unit(uint64_t word) { return (double)(word >> 11) * 0x1p-53; }
/* Clause: RNG-GUMBEL-2.  In (0, 1): the sum rounds to 2^53 for the last word, hence the minimum. */
FC_INLINE double fc_unit_open(uint64_t word) {
    const double u = ((double)(word >> 11) + 0.5) * 0x1p-53, last = FC_PLANT(GUMBEL_NO_CLAMP, 0x1.fffffffffffffp-1, 1.0);
    return u < last ? u : last;
}

#endif
