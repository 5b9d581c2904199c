/*
 * Planted faults: the test of the test suite (conformance/meta).  A fault is one wrong expression next to the right one,
 *     FC_PLANT(NAME, right, wrong)
 * In a normal build it is `right` and nothing else.  In a build with -Dfaults=true the environment variable FUCINA_FAULT,
 * read when the library is first used, names the fault in force.  The list is core/faults.def.
 */
#ifndef FC_FAULT_H
#define FC_FAULT_H
#ifdef FC_FAULTS
enum {
    FC_FAULT_NONE,
#define FC_FAULT(name, clause, text) FC_FAULT_##name,
#include "core/faults.def"
#undef FC_FAULT
};
extern int fc_fault_in_force;
#define FC_PLANTED(name) (fc_fault_in_force == FC_FAULT_##name)
#define FC_PLANT(name, right, wrong) (FC_PLANTED(name) ? (wrong) : (right))
#else
#define FC_PLANTED(name) 0
#define FC_PLANT(name, right, wrong) (right)
#endif
#endif
