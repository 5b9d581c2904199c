/* Names of one instruction-set level: every kernel file is compiled once per level with -DFC_ISA=<level>. */
#ifndef FC_LEVEL_H
#define FC_LEVEL_H
#include <float.h>

#ifndef FC_ISA
#error "kernel files are compiled with -DFC_ISA=<level>"
#endif
/* NUM-ARITH-1: every written operation is one IEEE operation in its own type */
_Static_assert(FLT_EVAL_METHOD == 0, "float expressions must not be evaluated in a wider type");
#ifdef __FAST_MATH__
#error "the contract does not survive -ffast-math"
#endif

#define FC_JOIN_(a, b) a##b
#define FC_JOIN(a, b) FC_JOIN_(a, b)
#define FC_K(name) FC_JOIN(FC_JOIN(FC_JOIN(fc_, name), __), FC_ISA)

#endif
