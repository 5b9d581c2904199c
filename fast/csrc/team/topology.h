/* What the operating system says about processors: cores behind the logical CPUs, and the CPU time of the control group. */
#ifndef FC_TEAM_TOPOLOGY_H
#define FC_TEAM_TOPOLOGY_H
#include <stddef.h>

/* Logical CPUs that this thread may run on, at least 1. */
size_t fc_logical_cpus(void);
/* Physical cores behind them, and performance cores of the machine; 0 where unknown.  `root` is put before every path. */
size_t fc_physical_cores(const char *root);
size_t fc_performance_cores(void);
/* The tightest CPU budget of the process's control groups and all above them, in whole CPUs, at least 1; 0 for none. */
size_t fc_cgroup_budget(const char *root);

#endif
