/*
 * The public functions of the streams: parameters to f32, domains, then the kernel of the level in force.
 * All arithmetic on the caller's numbers happens in the default environment, hence the pins (NUM-ENV-2, NUM-PARAM-1).
 */
#include "core/dispatch.h"
#include "core/environment.h"
#include "core/fault.h"
#include "fucina.h"
#include "rng/bounds.h"
#include "rng/exact.h"
#include "rng/word.h"

/* Clause: NUM-PARAM-1 */
static float parameter(double x) { return (float)fc_environment_pin(x); }

static uint64_t key(uint64_t seed) { return FC_PLANT(SEED_TRUNCATED, seed, (uint32_t)seed); }

/* Clauses: RNG-STREAM-1, RNG-AT-1 */
uint64_t fc_at(uint64_t seed, uint64_t i) { return fc_word(key(seed), i); }

/* Clauses: RNG-GAUSS-1, RNG-GAUSS-2, RNG-GAUSS-3, RNG-GAUSS-4 */
fc_status fc_gaussian(uint64_t seed, uint64_t first, double scale, float *out, size_t n) {
    const fc_environment caller = fc_environment_enter();
    fc_kernels_in_force()->gaussian(key(seed), first, parameter(scale), out, n);
    fc_environment_leave(caller);
    return FC_OK;
}

/* Clauses: RNG-FAST-1, RNG-FAST-2 */
fc_status fc_gaussian_fast(uint64_t seed, uint64_t first, double scale, float *out, size_t n) {
    const fc_environment caller = fc_environment_enter();
    fc_kernels_in_force()->gaussian_fast(key(seed), first, parameter(scale), out, n);
    fc_environment_leave(caller);
    return FC_OK;
}

#ifdef FC_FAULTS
/* planted: scale and mean in one rounding, as a contracted a * b + c has it */
static void fused_normal(uint64_t seed, uint64_t first, float mean, float std_dev, float *out, size_t n) {
    fc_kernels_in_force()->gaussian(seed, first, 1.0f, out, n);
    for (size_t i = 0; i < n; i++) out[i] = (float)((double)out[i] * std_dev + mean);
}
#endif

/* Clause: RNG-NORMAL-1 */
fc_status fc_normal(uint64_t seed, uint64_t first, double mean, double std_dev, float *out, size_t n) {
    enum { PIECE = 4096 }; /* values: in the first-level cache, so that the addition costs no trip to memory */
    const fc_environment caller = fc_environment_enter();
    const fc_kernels *kernels = fc_kernels_in_force();
    const float m = parameter(mean), s = parameter(std_dev);
    seed = key(seed);
    if (m == 0 && !FC_PLANTED(NORMAL_ZERO_ADDED))
        kernels->gaussian(seed, first, s, out, n);
    else
        while (n) {
            const size_t piece = n < PIECE ? n : PIECE;
#ifdef FC_FAULTS
            if (FC_PLANTED(NORMAL_FUSED))
                fused_normal(seed, first, m, s, out, piece);
            else
#endif
            {
                kernels->gaussian(seed, first, s, out, piece);
                kernels->add_mean(m, out, piece);
            }
            first += piece;
            out += piece;
            n -= piece;
        }
    fc_environment_leave(caller);
    return FC_OK;
}

/* Clauses: RNG-UNIF-1, RNG-UNIF-2, RNG-UNIF-3, RNG-ELEMENT-1 */
fc_status fc_uniform(uint64_t seed, uint64_t first, double lo, double hi, float *out, size_t n) {
    const fc_environment caller = fc_environment_enter();
    const float low = parameter(lo), high = parameter(hi);
    const int valid = low < high && low > -__builtin_inff() && high < __builtin_inff();
    if (valid) fc_kernels_in_force()->uniform(key(seed), first, low, high, out, n);
    fc_environment_leave(caller);
    return valid ? FC_OK : FC_BAD_BOUNDS;
}

/* Clauses: RNG-KAIMING-1, RNG-KAIMING-2, RNG-ELEMENT-1 */
fc_status fc_kaiming_uniform(uint64_t seed, uint64_t first, uint64_t fan_in, float *out, size_t n) {
    if (fan_in == 0) return FC_BAD_BOUNDS;
    const fc_environment caller = fc_environment_enter();
    /* in exact halves, so that the one rounding of a fan_in beyond 2^53 happens here and now */
    const double fan = fc_environment_pin((double)(fan_in >> 32)) * 0x1p32 + fc_environment_pin((double)(fan_in & 0xffffffff));
    const float bound = FC_PLANT(KAIMING_F32, (float)__builtin_sqrt(1.0 / fan), __builtin_sqrtf(1.0f / (float)fan));
    fc_kernels_in_force()->uniform(key(seed), first, -bound, bound, out, n);
    fc_environment_leave(caller);
    return FC_OK;
}

/* Clauses: RNG-GUMBEL-1, RNG-GUMBEL-2, RNG-ELEMENT-1 */
fc_status fc_gumbel(uint64_t seed, uint64_t first, float *out, size_t n) {
    const fc_environment caller = fc_environment_enter();
    fc_kernels_in_force()->gumbel(key(seed), first, out, n);
    fc_environment_leave(caller);
    return FC_OK;
}

/* Clauses: RNG-INT-1, RNG-INT-2, RNG-ELEMENT-1 */
fc_status fc_randint(uint64_t seed, uint64_t first, int64_t low, int64_t high, int64_t *out, size_t n) {
    if (low >= high) return FC_BAD_BOUNDS;
    fc_kernels_in_force()->randint(key(seed), first, low, (uint64_t)high - (uint64_t)low, out, n);
    return FC_OK;
}

/* Clause: RNG-PERM-1 */
fc_status fc_randperm(uint64_t seed, int64_t *out, size_t n) {
    fc_kernels_in_force()->randperm(key(seed), out, n);
    return FC_OK;
}

/* Clauses: RNG-DROPOUT-1, RNG-DROPOUT-3 */
fc_status fc_dropout_mask(uint64_t seed, uint64_t first, double p, uint8_t *out, size_t n) {
    const fc_environment caller = fc_environment_enter();
    const float probability = parameter(p);
    const int valid = probability >= 0 && probability < 1;
    if (valid) fc_kernels_in_force()->dropout_mask(key(seed), first, (uint64_t)((1.0 - (double)probability) * 0x1p53), out, n);
    fc_environment_leave(caller);
    return valid ? FC_OK : FC_BAD_BOUNDS;
}

/* Clauses: RNG-DROPOUT-2, RNG-DROPOUT-3 */
fc_status fc_dropout_scale(double p, float *out) {
    const fc_environment caller = fc_environment_enter();
    const float probability = parameter(p);
    const int valid = probability >= 0 && probability < 1;
    if (valid) *out = 1.0f / (1.0f - probability);
    fc_environment_leave(caller);
    return valid ? FC_OK : FC_BAD_BOUNDS;
}

/* The exact functions in the default environment: as they stand they would take a subnormal argument for 0 under DAZ. */
static double guarded(double (*function)(double), double x) {
    const fc_environment caller = fc_environment_enter();
    const double value = fc_environment_pin(function(fc_environment_pin(x)));
    fc_environment_leave(caller);
    return value;
}
/* Clause: NUM-ELEM-1 */
double fc_exact_ln(double x) { return guarded(fc_ln, x); }
/* Clause: NUM-ELEM-1 */
double fc_exact_sin(double x) { return guarded(fc_sin, x); }
/* Clause: NUM-ELEM-1 */
double fc_exact_cos(double x) { return guarded(fc_cos, x); }

/* Clause: RNG-GAUSS-1, before the last rounding */
fc_status fc_gaussian_f64(uint64_t seed, uint64_t pair, double scale, double *out, size_t pairs) {
    const fc_environment caller = fc_environment_enter();
    fc_kernels_in_force()->gaussian_f64(key(seed), pair, scale, out, pairs);
    fc_environment_leave(caller);
    return FC_OK;
}
double fc_gaussian_bound(void) { return FC_GAUSSIAN_BOUND; }

/* Clause: RNG-GUMBEL-1, before the last rounding */
fc_status fc_gumbel_f64(uint64_t seed, uint64_t first, double *out, size_t n) {
    const fc_environment caller = fc_environment_enter();
    fc_kernels_in_force()->gumbel_f64(key(seed), first, out, n);
    fc_environment_leave(caller);
    return FC_OK;
}
double fc_gumbel_bound(void) { return FC_GUMBEL_BOUND; }
