/* Which planted fault is in force; only in builds with -Dfaults=true. */
#include "core/fault.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int fc_fault_in_force = FC_FAULT_NONE;

static const char *const names[] = {
    "NONE",
#define FC_FAULT(name, clause, text) #name,
#include "core/faults.def"
#undef FC_FAULT
};

__attribute__((constructor)) static void choose(void) {
    const char *wanted = getenv("FUCINA_FAULT");
    if (!wanted || !*wanted) return;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(wanted, names[i]) == 0) {
            fc_fault_in_force = (int)i;
            return;
        }
    fprintf(stderr, "FUCINA_FAULT=%s: no such planted fault\n", wanted);
    abort();
}
