/* Logical CPUs, physical cores, performance cores. */
#define _GNU_SOURCE
#include "team/topology.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__linux__)
#include <sched.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#if defined(__APPLE__)
static size_t sysctl_count(const char *name) {
    int value = 0;
    size_t size = sizeof value;
    return sysctlbyname(name, &value, &size, NULL, 0) == 0 && value > 0 ? (size_t)value : 0;
}
size_t fc_performance_cores(void) { return sysctl_count("hw.perflevel0.physicalcpu"); }
#else
size_t fc_performance_cores(void) { return 0; }
#endif

#if defined(__linux__)
enum { MOST_CPUS = 1 << 16 };

/* The affinity mask of the calling thread; the kernel refuses a set that is smaller than its own. */
static cpu_set_t *affinity(int *cpus) {
    for (*cpus = 1024; *cpus <= MOST_CPUS; *cpus *= 4) {
        cpu_set_t *set = CPU_ALLOC((size_t)*cpus);
        if (!set) return NULL;
        if (sched_getaffinity(0, CPU_ALLOC_SIZE((size_t)*cpus), set) == 0) return set;
        CPU_FREE(set);
    }
    return NULL;
}

/* The number that a file of /sys begins with, or -1. */
static long first_number(const char *root, int cpu, const char *name) {
    char path[4096];
    long number = -1;
    if (snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%d/topology/%s", root, cpu, name) >= (int)sizeof path) return -1;
    FILE *file = fopen(path, "re");
    if (!file) return -1;
    if (fscanf(file, "%ld", &number) != 1) number = -1;
    fclose(file);
    return number;
}

/* A name for the core of a logical CPU: its first sibling, or package and core; -1 where /sys does not say. */
static long core_of(const char *root, int cpu) {
    long core = first_number(root, cpu, "core_cpus_list");
    if (core < 0) core = first_number(root, cpu, "thread_siblings_list");
    if (core >= 0) return core;
    const long package = first_number(root, cpu, "physical_package_id");
    core = first_number(root, cpu, "core_id");
    return package < 0 || core < 0 ? -1 : (package + 1) * MOST_CPUS + core;
}

/* Clause: TEAM-PHYSICAL-1 */
size_t fc_physical_cores(const char *root) {
    int cpus;
    cpu_set_t *set = affinity(&cpus);
    if (!set) return 0;
    const size_t size = CPU_ALLOC_SIZE((size_t)cpus), logical = (size_t)CPU_COUNT_S(size, set);
    long *cores = malloc((logical ? logical : 1) * sizeof *cores);
    size_t found = 0;
    for (int cpu = 0; cores && cpu < cpus; cpu++) {
        if (!CPU_ISSET_S((size_t)cpu, size, set)) continue;
        const long core = core_of(root, cpu);
        if (core < 0) { /* one unknown CPU makes the count unknown */
            found = 0;
            break;
        }
        size_t i = 0;
        while (i < found && cores[i] != core) i++;
        if (i == found) cores[found++] = core;
    }
    free(cores);
    CPU_FREE(set);
    return found;
}

size_t fc_logical_cpus(void) {
    int cpus;
    cpu_set_t *set = affinity(&cpus);
    size_t count = 0;
    if (set) {
        count = (size_t)CPU_COUNT_S(CPU_ALLOC_SIZE((size_t)cpus), set);
        CPU_FREE(set);
    } else {
        const long online = sysconf(_SC_NPROCESSORS_ONLN);
        if (online > 0) count = (size_t)online;
    }
    return count ? count : 1;
}
#else
size_t fc_logical_cpus(void) {
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (size_t)online : 1;
}
size_t fc_physical_cores(const char *root) {
    (void)root;
#if defined(__APPLE__)
    return sysctl_count("hw.physicalcpu");
#else
    return 0;
#endif
}
#endif
