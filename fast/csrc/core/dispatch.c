/*
 * Instruction-set levels: the one place that knows which exist, which this CPU has, and which is in force.
 * Levels are ordered; the highest usable one is the default.  fc_isa_set forces another (tests, FUCINA_ISA).
 */
#include "core/dispatch.h"
#include "fucina.h"
#include <stdatomic.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#if defined(__x86_64__)
#define FC_LEVELS(X) X(baseline) X(avx2)
#elif defined(__aarch64__)
#define FC_LEVELS(X) X(neon)
#else
#define FC_LEVELS(X) X(baseline)
#endif

#define FC_DECLARE(level) extern const fc_kernels fc_kernels__##level;
FC_LEVELS(FC_DECLARE)
#define FC_ADDRESS(level) &fc_kernels__##level,
static const fc_kernels *const tables[] = {FC_LEVELS(FC_ADDRESS)};
#define FC_NAME(level) #level,
static const char *const names[] = {FC_LEVELS(FC_NAME)};
enum { LEVELS = sizeof tables / sizeof tables[0] };

/* index into tables, -1 until the first use; racing first uses store the same value */
static atomic_int in_force = -1;

int fc_isa_count(void) { return LEVELS; }

const char *fc_isa_name(int level) { return level >= 0 && level < LEVELS ? names[level] : NULL; }

/* Clause: NUM-ISA-1 */
int fc_isa_usable(int level) {
    if (level < 0 || level >= LEVELS) return 0;
#if defined(__x86_64__)
    if (level == 1) {
        unsigned a, b, c, d; /* not every compiler's __builtin_cpu_supports knows f16c */
        __builtin_cpu_init();
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
    }
#endif
    return 1;
}

static int detected(void) {
    int level = LEVELS - 1;
    while (level > 0 && !fc_isa_usable(level)) level--;
    return level;
}

/* Clause: NUM-ISA-1 */
int fc_isa_get(void) {
    int level = atomic_load_explicit(&in_force, memory_order_relaxed);
    if (level < 0) {
        level = detected();
        atomic_store_explicit(&in_force, level, memory_order_relaxed);
    }
    return level;
}

/* Clause: NUM-ISA-1 */
fc_status fc_isa_set(int level) {
    if (!fc_isa_usable(level)) return FC_BAD_ISA;
    atomic_store_explicit(&in_force, level, memory_order_relaxed);
    return FC_OK;
}

const fc_kernels *fc_kernels_in_force(void) { return tables[fc_isa_get()]; }

const char *fc_version(void) { return FC_VERSION; }

#if defined(__clang__)
#define FC_COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define FC_COMPILER "gcc " __VERSION__
#else
#define FC_COMPILER "unknown compiler"
#endif

const char *fc_build(void) { return FC_COMPILER ", " FC_FLAGS; }
