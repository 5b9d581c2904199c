/*
 * The public interface of the C core.  Everything between the two marks is, to the letter, native.cdef.txt; a test keeps
 * the two equal.  No function calls Python; none but those of the team allocates or, when asked to, prints.  Each computes in
 * the default floating-point environment and leaves the caller's control bits and accrued flags as they were (clauses
 * NUM-ENV-2, NUM-ENV-3); but those of fpenv, whose subject is the caller's environment.
 * Buffers may have any alignment.  Arguments are checked by the caller unless a status says otherwise.
 */
#ifndef FUCINA_H
#define FUCINA_H
#include <stddef.h>
#include <stdint.h>

/* cdef begin */
typedef int fc_status;
enum {
    FC_OK,
    FC_BAD_DTYPE,
    FC_BAD_ISA,
    FC_BAD_BOUNDS,
    FC_BAD_BLOCK
};

/* core: version and instruction-set levels (core/dispatch.c) */
const char *fc_version(void);
const char *fc_build(void);
int fc_isa_count(void);
const char *fc_isa_name(int level);
int fc_isa_usable(int level);
int fc_isa_get(void);
fc_status fc_isa_set(int level);

/* dtypes by index in the documents' order; what each is (core/dtype.c) */
enum {
    FC_KIND_SCALAR,
    FC_KIND_BLOCK_QUANTIZED
};
enum {
    FC_ACCUMULATOR_NONE,
    FC_ACCUMULATOR_F32,
    FC_ACCUMULATOR_F64,
    FC_ACCUMULATOR_U64,
    FC_ACCUMULATOR_I64
};
enum {
    FC_DTYPE_F8 = 1,
    FC_DTYPE_SIGNED_INTEGER = 2,
    FC_DTYPE_UNSIGNED_INTEGER = 4,
    FC_DTYPE_FORWARD_FLOAT_MATH = 8,
    FC_DTYPE_GRAD = 16,
    FC_DTYPE_INT_MATH = 32,
    FC_DTYPE_TO_FLOAT = 64,
    FC_DTYPE_QUANTIZED_MATMUL_RHS = 128,
    FC_DTYPE_QUANTIZED_GET_ROWS = 256
};
struct fc_dtype_info {
    const char *name;
    int kind;
    int block_size;
    int byte_size;
    int properties;
    int logical;
    int accumulator;
};
fc_status fc_dtype_info(int dtype, struct fc_dtype_info *out);

/* bridge: source and target are scalar dtypes; patterns travel in the low bits of a uint64_t (bridge/bridge.c) */
enum {
    FC_CAST_SATURATE = 1,
    FC_CAST_SINGLE_ROUNDING = 2
};
fc_status fc_cast(int source, int target, uint32_t mode, const void *in, void *out, size_t n);
fc_status fc_cast_bits(int source, int target, uint32_t mode, uint64_t bits, uint64_t *out);
fc_status fc_is_truthy(int dtype, uint64_t bits, int *out);

/* rng: element j of a fill is element first + j of the stream (rng/rng.c); a double parameter is rounded to f32 on entry,
   inside the guarded environment (NUM-PARAM-1): a float parameter would be rounded by the caller, in its environment */
uint64_t fc_at(uint64_t seed, uint64_t i);
fc_status fc_gaussian(uint64_t seed, uint64_t first, double scale, float *out, size_t n);
fc_status fc_gaussian_fast(uint64_t seed, uint64_t first, double scale, float *out, size_t n);
fc_status fc_normal(uint64_t seed, uint64_t first, double mean, double std_dev, float *out, size_t n);
fc_status fc_uniform(uint64_t seed, uint64_t first, double lo, double hi, float *out, size_t n);
fc_status fc_kaiming_uniform(uint64_t seed, uint64_t first, uint64_t fan_in, float *out, size_t n);
fc_status fc_gumbel(uint64_t seed, uint64_t first, float *out, size_t n);
fc_status fc_randint(uint64_t seed, uint64_t first, int64_t low, int64_t high, int64_t *out, size_t n);
fc_status fc_randperm(uint64_t seed, int64_t *out, size_t n);
fc_status fc_dropout_mask(uint64_t seed, uint64_t first, double p, uint8_t *out, size_t n);
fc_status fc_dropout_scale(double p, float *out);

/* rng: windows for the conformance suite: the exact chain, and what a level's kernels hold before the last rounding */
double fc_exact_ln(double x);
double fc_exact_sin(double x);
double fc_exact_cos(double x);
fc_status fc_gaussian_f64(uint64_t seed, uint64_t pair, double scale, double *out, size_t pairs);
fc_status fc_gumbel_f64(uint64_t seed, uint64_t first, double *out, size_t n);
/* the relative bound on the first, and b in b * (1 + |value|), the bound on the second, that the rounding tests in force trust */
double fc_gaussian_bound(void);
double fc_gumbel_bound(void);

/* blocks: blocks and values have any alignment, out that of a float; encoded is how many blocks come before the first that
   cannot be encoded (FC_BAD_BLOCK): one whose sums overflow or, with check, one with values that are not all finite;
   first_nonfinite returns n where every value is finite (block/block.c) */
struct fc_quantize_options {
    const float *importance;
    size_t row_blocks;
    size_t first;
    double scale;
    int search;
    int check;
};
fc_status fc_dequantize(int dtype, const void *blocks, float *out, size_t n);
fc_status fc_quantize(int dtype, const void *values, void *blocks, size_t n, const struct fc_quantize_options *options,
                      size_t *encoded);
size_t fc_first_nonfinite(const void *values, size_t n);
/* row r of the rows is blocks r * row_blocks to (r + 1) * row_blocks; every index is below the number of rows */
fc_status fc_dequantize_rows(int dtype, const void *blocks, size_t row_blocks, const uint64_t *indices, size_t n, float *out);
/* what encoding cost: the root of the mean of the squared errors, and the largest error's magnitude */
fc_status fc_block_error(int dtype, const void *values, const void *blocks, size_t n, double *rmse, double *max_error);

/* fpenv: the calling thread's environment (fpenv/fpenv.c); these are not guarded.  A word holds the rounding, what is flushed
   to zero, and from bit FC_FPENV_TRAP_SHIFT on the exceptions that trap, in the order of the flags */
enum {
    FC_FPENV_NEAREST_EVEN,
    FC_FPENV_TOWARD_ZERO,
    FC_FPENV_UPWARD,
    FC_FPENV_DOWNWARD,
    FC_FPENV_ROUNDING = 3,
    FC_FPENV_FLUSH_RESULTS = 4,
    FC_FPENV_FLUSH_OPERANDS = 8,
    FC_FPENV_FLUSH_HALVES = 16,
    FC_FPENV_TRAP_SHIFT = 8
};
enum {
    FC_FLAG_INVALID = 1,
    FC_FLAG_DIVISION_BY_ZERO = 2,
    FC_FLAG_OVERFLOW = 4,
    FC_FLAG_UNDERFLOW = 8,
    FC_FLAG_INEXACT = 16,
    FC_FLAG_DENORMAL = 32
};
int fc_fpenv_supported(void);
uint32_t fc_fpenv_get(void);
void fc_fpenv_set(uint32_t word);
uint32_t fc_fpenv_flags(void);
void fc_fpenv_flags_set(uint32_t flags);

/* fpenv: one operation in the caller's environment, for the conformance suite (fpenv/operate.c) */
enum {
    FC_OPERATE_ADD,
    FC_OPERATE_SUBTRACT,
    FC_OPERATE_MULTIPLY,
    FC_OPERATE_DIVIDE,
    FC_OPERATE_SQRT,
    FC_OPERATE_TO_F32
};
fc_status fc_operate_f32(int operation, uint32_t a, uint32_t b, uint32_t *out);
fc_status fc_operate_f64(int operation, uint64_t a, uint64_t b, uint64_t *out);

/* team: workers that run chunks beside the calling thread (team/team.c).  A task must not end by any other way than returning.
   Outcomes: SERIAL, every chunk ran on the caller in order; PARALLEL, every chunk ran once; FORKED, this is the child of a
   fork inside a task and chunks that workers had claimed are lost.  open starts no thread; close ends them and refuses, 0, while a
   dispatch runs on this team; free, of a team that nobody calls any more, closes it too.  begin and finish are a dispatch of one task that is joined later, by any one thread; begin refuses, 0, a second;
   await, which finish does by itself, says that it is the calling thread that finishes: the child of a fork in any other has no
   such task, and before that the child of every fork has it.  abandon, in place of finish and free, lets a team of one worker
   end by itself after the task that was begun.  That task may be the one that the caller is within: in the child of a fork there,
   its thread comes back to the team */
enum {
    FC_TEAM_SERIAL,
    FC_TEAM_PARALLEL,
    FC_TEAM_FORKED,
    FC_TEAM_OUT_OF_MEMORY
};
typedef void (*fc_team_task)(void *context, size_t chunk);
struct fc_team;
struct fc_team *fc_team_open(size_t workers);
int fc_team_close(struct fc_team *team);
int fc_team_free(struct fc_team *team);
size_t fc_team_workers(const struct fc_team *team);
size_t fc_team_threads(const struct fc_team *team);
int fc_team_chunks(struct fc_team *team, size_t chunks, fc_team_task run, void *context);
int fc_team_begin(struct fc_team *team, fc_team_task run, void *context);
void fc_team_await(struct fc_team *team);
int fc_team_finish(struct fc_team *team);
void fc_team_abandon(struct fc_team *team, int within);
/* the process's own team, which the bulk functions use (team/process.c) */
void fc_team_run(size_t chunks, fc_team_task run, void *context);
void fc_team_shut(void);
/* for tests: whether bulk functions of more than a thread's work are always shared, and how many calls have been (team/process.c) */
void fc_bulk_share_always(int on);
uint64_t fc_bulk_shared_calls(void);

/* team: a dependency graph, the first `initial` tasks runnable; SERIAL: the team is not there and nothing ran (team/chain.c).
   The report's chain, NULL when nothing ran, is the caller's to free, once nobody can enqueue on it any more */
enum {
    FC_CHAIN_QUEUED,
    FC_CHAIN_TWICE,
    FC_CHAIN_MISSING,
    FC_CHAIN_RANGE,
    FC_CHAIN_OVER
};
struct fc_chain;
struct fc_chain_report {
    int violation;
    size_t index;
    size_t count;
    struct fc_chain *chain;
};
typedef void (*fc_chain_task)(void *context, size_t index, struct fc_chain *chain);
int fc_chain_enqueue(struct fc_chain *chain, size_t index);
void fc_chain_free(struct fc_chain *chain);
int fc_team_chained(struct fc_team *team, size_t tasks, size_t initial, fc_chain_task run, void *context,
                    struct fc_chain_report *report);

/* team: its size; a count of 0 is unknown, or none.  The environment's knobs: 0 for unset (team/sizing.c) */
size_t fc_max_threads(void);
void fc_set_max_threads(size_t count);
size_t fc_cpu_thread_count(size_t limit);
size_t fc_physical_cpu_count(void);
size_t fc_performance_cpu_count(void);
size_t fc_cgroup_cpu_budget(void);
size_t fc_schedulable_cores(void);
int fc_env_positive(const char *name, uint64_t *out);
int fc_env_spin_budget(uint32_t *out);
/* the probes on another tree of /sys and /proc, for tests */
void fc_probe_cpus(const char *root, size_t *cores, size_t *cpu_budget, size_t *schedulable_cores);
/* cdef end */

#endif
