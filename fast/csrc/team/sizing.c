/* How many threads: the caller's wish, what the machine has, what the environment allows.  Everything is asked once. */
#include "core/fault.h"
#include "team/team.h"
#include "team/topology.h"
#include <stdlib.h>

/* Clause: TEAM-KNOB-1 */
static int decimal(const char *text, uint64_t most, uint64_t *out) {
    uint64_t value = 0;
    if (!text || !*text) return 0;
    if (FC_PLANTED(KNOB_LENIENT)) {
        *out = strtoull(text, NULL, 10);
        return 1;
    }
    for (; *text; text++) {
        if (*text < '0' || *text > '9') return 0;
        const uint64_t digit = (uint64_t)(*text - '0');
        if (value > (most - digit) / 10) return 0;
        value = value * 10 + digit;
    }
    *out = value;
    return 1;
}

/* Clause: TEAM-KNOB-1 */
int fc_env_positive(const char *name, uint64_t *out) { return decimal(getenv(name), SIZE_MAX, out) && *out; }

/* Clauses: TEAM-KNOB-1, TEAM-SPIN-1 */
int fc_env_spin_budget(uint32_t *out) {
    uint64_t value;
    if (!decimal(getenv("FUCINA_SPIN_BUDGET"), UINT32_MAX, &value)) return 0;
    *out = (uint32_t)value;
    return FC_PLANT(SPIN_ZERO_UNSET, 1, value != 0);
}

/* The lesser of two counts of which 0 is unknown. */
static size_t lesser(size_t a, size_t b) { return !a || (b && b < a) ? b : a; }

/* How many threads can run at once; unlike either count this is known always.  Clause: TEAM-SPIN-1 */
static size_t at_once(size_t cores, size_t cpu_budget) { return lesser(cores ? cores : fc_logical_cpus(), cpu_budget); }

static size_t physical, performance, budget, schedulable;
static pthread_once_t probed = PTHREAD_ONCE_INIT;
static void probe(void) {
    physical = fc_physical_cores("");
    performance = fc_performance_cores();
    budget = fc_cgroup_budget("");
    schedulable = at_once(physical, budget);
}

/* Clause: TEAM-PHYSICAL-1 */
size_t fc_physical_cpu_count(void) {
    pthread_once(&probed, probe);
    return physical;
}
/* Clause: TEAM-PHYSICAL-1 */
size_t fc_performance_cpu_count(void) {
    pthread_once(&probed, probe);
    return performance;
}
/* Clause: TEAM-BUDGET-1 */
size_t fc_cgroup_cpu_budget(void) {
    pthread_once(&probed, probe);
    return budget;
}

/* Clause: TEAM-SPIN-1 */
size_t fc_schedulable_cores(void) {
    pthread_once(&probed, probe);
    return schedulable;
}

static _Atomic size_t wished, detected; /* 0 for not yet */

/* Clauses: TEAM-SIZE-1, TEAM-SIZE-2 */
static size_t detect(void) {
    size_t count = atomic_load_explicit(&detected, memory_order_relaxed);
    if (count) return count;
    uint64_t most;
    count = lesser(fc_logical_cpus(), fc_physical_cpu_count());
    count = lesser(count, fc_performance_cpu_count());
    count = lesser(count, fc_cgroup_cpu_budget());
    if (fc_env_positive("FUCINA_MAX_THREADS", &most) && (FC_PLANTED(KNOB_RAISES) || most < count)) count = (size_t)most;
    size_t none = 0; /* of several first callers one wins for all */
    return atomic_compare_exchange_strong(&detected, &none, count) ? count : none;
}

/* Clause: TEAM-SIZE-3 */
void fc_set_max_threads(size_t count) {
    if (count) atomic_store(&wished, count);
}

/* Clauses: TEAM-SIZE-1, TEAM-SIZE-3 */
size_t fc_cpu_thread_count(size_t limit) {
    const size_t wish = atomic_load_explicit(&wished, memory_order_relaxed);
    size_t count = wish ? wish : detect();
    if (count > limit) count = limit;
    return count ? count : 1;
}

size_t fc_max_threads(void) { return FC_MAX_THREADS; }

/* Clauses: TEAM-PHYSICAL-1, TEAM-BUDGET-1, TEAM-SPIN-1 */
void fc_probe_cpus(const char *root, size_t *cores, size_t *cpu_budget, size_t *schedulable_cores) {
    *cores = fc_physical_cores(root);
    *cpu_budget = fc_cgroup_budget(root);
    *schedulable_cores = at_once(*cores, *cpu_budget);
}
