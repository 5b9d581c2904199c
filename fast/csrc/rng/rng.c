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
#include "team/bulk.h"

/* Clause: NUM-PARAM-1 */
static float parameter(double x) { return (float)fc_environment_pin(x); }

/*
 * Fills on the process's team: a fill of elements first to first + n is the fills of its parts (RNG-CHUNK-1).  From LEAST
 * elements on the work should outweigh the waking of a worker; a part is a multiple of the GRAIN, which is even, so that no
 * pair is drawn twice.  The numbers are estimates, not measured optima; they change no bit.
 */
enum { LEAST_SLOW = 1 << 14, LEAST_QUICK = 1 << 16, GRAIN = 1 << 12 };

struct fill {
    const fc_kernels *kernels; /* one level for the whole call, whatever another thread sets meanwhile */
    uint64_t seed, first, u;
    int64_t i;
    float a, b;
    void *out;
};

static void fill(size_t n, size_t least, fc_piece *piece, struct fill *what) {
    what->kernels = fc_kernels_in_force();
    fc_bulk(n, least, GRAIN, piece, what);
}

/* a planted fault of the team's use: each part begins the stream anew */
static uint64_t place(const struct fill *f, size_t start) { return f->first + FC_PLANT(PIECES_RESTART, start, 0 * start); }

static uint64_t key(uint64_t seed) { return FC_PLANT(SEED_TRUNCATED, seed, (uint32_t)seed); }

/* Clauses: RNG-STREAM-1, RNG-AT-1 */
uint64_t fc_at(uint64_t seed, uint64_t i) { return fc_word(key(seed), i); }

static void gaussian_piece(void *context, size_t start, size_t n) {
    const struct fill *f = context;
    f->kernels->gaussian(f->seed, place(f, start), f->a, (float *)f->out + start, n);
}

/* Clauses: RNG-GAUSS-1, RNG-GAUSS-2, RNG-GAUSS-3, RNG-GAUSS-4 */
fc_status fc_gaussian(uint64_t seed, uint64_t first, double scale, float *out, size_t n) {
    const fc_environment caller = fc_environment_enter();
    fill(n, LEAST_SLOW, gaussian_piece, &(struct fill){.seed = key(seed), .first = first, .a = parameter(scale), .out = out});
    fc_environment_leave(caller);
    return FC_OK;
}

static void gaussian_fast_piece(void *context, size_t start, size_t n) {
    const struct fill *f = context;
    f->kernels->gaussian_fast(f->seed, place(f, start), f->a, (float *)f->out + start, n);
}

/* Clauses: RNG-FAST-1, RNG-FAST-2 */
fc_status fc_gaussian_fast(uint64_t seed, uint64_t first, double scale, float *out, size_t n) {
    const fc_environment caller = fc_environment_enter();
    fill(n, LEAST_SLOW, gaussian_fast_piece, &(struct fill){.seed = key(seed), .first = first, .a = parameter(scale), .out = out});
    fc_environment_leave(caller);
    return FC_OK;
}

#ifdef FC_FAULTS
/* planted: scale and mean in one rounding, as a contracted a * b + c has it */
static void fused_normal(const struct fill *f, size_t start, size_t n) {
    float *out = (float *)f->out + start;
    f->kernels->gaussian(f->seed, place(f, start), 1.0f, out, n);
    for (size_t i = 0; i < n; i++) out[i] = (float)((double)out[i] * f->b + f->a);
}
#endif

static void normal_piece(void *context, size_t start, size_t n) {
    enum { PIECE = 4096 }; /* values: in the first-level cache, so that the addition costs no trip to memory */
    const struct fill *f = context;
    float *out = (float *)f->out;
    while (n) {
        const size_t piece = n < PIECE ? n : PIECE;
#ifdef FC_FAULTS
        if (FC_PLANTED(NORMAL_FUSED))
            fused_normal(f, start, piece);
        else
#endif
        {
            f->kernels->gaussian(f->seed, place(f, start), f->b, out + start, piece);
            f->kernels->add_mean(f->a, out + start, piece);
        }
        start += piece;
        n -= piece;
    }
}

/* Clause: RNG-NORMAL-1 */
fc_status fc_normal(uint64_t seed, uint64_t first, double mean, double std_dev, float *out, size_t n) {
    const fc_environment caller = fc_environment_enter();
    struct fill f = {.seed = key(seed), .first = first, .a = parameter(mean), .b = parameter(std_dev), .out = out};
    if (f.a == 0 && !FC_PLANTED(NORMAL_ZERO_ADDED)) {
        f.a = f.b;
        fill(n, LEAST_SLOW, gaussian_piece, &f);
    } else {
        fill(n, LEAST_SLOW, normal_piece, &f);
    }
    fc_environment_leave(caller);
    return FC_OK;
}

static void uniform_piece(void *context, size_t start, size_t n) {
    const struct fill *f = context;
    f->kernels->uniform(f->seed, place(f, start), f->a, f->b, (float *)f->out + start, n);
}

/* Clauses: RNG-UNIF-1, RNG-UNIF-2, RNG-UNIF-3, RNG-ELEMENT-1 */
fc_status fc_uniform(uint64_t seed, uint64_t first, double lo, double hi, float *out, size_t n) {
    const fc_environment caller = fc_environment_enter();
    const float low = parameter(lo), high = parameter(hi);
    const int valid = low < high && low > -__builtin_inff() && high < __builtin_inff();
    if (valid) fill(n, LEAST_QUICK, uniform_piece, &(struct fill){.seed = key(seed), .first = first, .a = low, .b = high, .out = out});
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
    fill(n, LEAST_QUICK, uniform_piece, &(struct fill){.seed = key(seed), .first = first, .a = -bound, .b = bound, .out = out});
    fc_environment_leave(caller);
    return FC_OK;
}

static void gumbel_piece(void *context, size_t start, size_t n) {
    const struct fill *f = context;
    f->kernels->gumbel(f->seed, place(f, start), (float *)f->out + start, n);
}

/* Clauses: RNG-GUMBEL-1, RNG-GUMBEL-2, RNG-ELEMENT-1 */
fc_status fc_gumbel(uint64_t seed, uint64_t first, float *out, size_t n) {
    const fc_environment caller = fc_environment_enter();
    fill(n, LEAST_SLOW, gumbel_piece, &(struct fill){.seed = key(seed), .first = first, .out = out});
    fc_environment_leave(caller);
    return FC_OK;
}

static void randint_piece(void *context, size_t start, size_t n) {
    const struct fill *f = context;
    f->kernels->randint(f->seed, place(f, start), f->i, f->u, (int64_t *)f->out + start, n);
}

/* Clauses: RNG-INT-1, RNG-INT-2, RNG-ELEMENT-1 */
fc_status fc_randint(uint64_t seed, uint64_t first, int64_t low, int64_t high, int64_t *out, size_t n) {
    if (low >= high) return FC_BAD_BOUNDS;
    struct fill f = {.seed = key(seed), .first = first, .i = low, .u = (uint64_t)high - (uint64_t)low, .out = out};
    fill(n, LEAST_QUICK, randint_piece, &f);
    return FC_OK;
}

/* On one thread: each swap depends on those before.  Clause: RNG-PERM-1 */
fc_status fc_randperm(uint64_t seed, int64_t *out, size_t n) {
    fc_kernels_in_force()->randperm(key(seed), out, n);
    return FC_OK;
}

static void dropout_piece(void *context, size_t start, size_t n) {
    const struct fill *f = context;
    f->kernels->dropout_mask(f->seed, place(f, start), f->u, (uint8_t *)f->out + start, n);
}

/* Clauses: RNG-DROPOUT-1, RNG-DROPOUT-3 */
fc_status fc_dropout_mask(uint64_t seed, uint64_t first, double p, uint8_t *out, size_t n) {
    const fc_environment caller = fc_environment_enter();
    const float probability = parameter(p);
    const int valid = probability >= 0 && probability < 1;
    struct fill f = {.seed = key(seed), .first = first, .u = 0, .out = out};
    if (valid) {
        f.u = (uint64_t)((1.0 - (double)probability) * 0x1p53);
        fill(n, LEAST_QUICK, dropout_piece, &f);
    }
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
