/*
 * The error bounds that the rounding tests rest on.  BOUNDS.md derives them, bounds.py computes and checks every figure in
 * it, fc_gaussian_bound() and fc_gumbel_bound() let the conformance suite compare them with the errors it measures.
 */
#ifndef FC_RNG_BOUNDS_H
#define FC_RNG_BOUNDS_H
#include "core/fault.h"

/* |kernel - contract| <= FC_GAUSSIAN_BOUND * |contract| for every element of a gaussian fill before its last rounding */
#define FC_GAUSSIAN_BOUND FC_PLANT(GAUSS_BOUND_TIGHT, 0x1.98p-44, 0x1p-50)
/* |kernel - contract| <= FC_GUMBEL_BOUND * (1 + |contract|), likewise */
#define FC_GUMBEL_BOUND FC_PLANT(GUMBEL_BOUND_TIGHT, 0x1.15p-45, 0x1p-50)

/* The rounding tests widen a bound by this much, for their own two roundings and for |kernel| standing in for |contract|. */
#define FC_WIDENED(bound) ((bound) * (1 + 0x1p-20) + 0x1p-51)

#endif
