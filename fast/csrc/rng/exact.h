/*
 * The slow path that is always right: correctly rounded ln, sin and cos (clause NUM-ELEM-1), and single elements of the two
 * mappings that need them.  Compiled once, for no level in particular; no libm.
 */
#ifndef FC_RNG_EXACT_H
#define FC_RNG_EXACT_H
#include <stdint.h>

/* ln of a positive finite x, sin and cos of x in [0, 8); NaN for any other x.  In the default environment: the public forms
   fc_exact_ln, fc_exact_sin and fc_exact_cos enter it (rng/rng.c) */
double fc_ln(double x);
double fc_sin(double x);
double fc_cos(double x);

/* Element i of the gaussian stream with this scale (RNG-GAUSS-1), and of the gumbel stream (RNG-GUMBEL-1). */
float fc_exact_gaussian(uint64_t seed, uint64_t i, double scale);
float fc_exact_gumbel(uint64_t seed, uint64_t i);

#endif
