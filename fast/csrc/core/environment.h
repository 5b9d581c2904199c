/*
 * The default floating-point environment around a public function (clauses NUM-ENV-2, NUM-ENV-3): enter() makes it so,
 * leave() puts the caller's control bits and accrued flags back exactly; leave_with_flags(), of tensor arithmetic, keeps
 * what was raised in between.  The kernels in between are calls into other
 * translation units, so the compiler cannot move arithmetic across either.
 */
#ifndef FC_ENVIRONMENT_H
#define FC_ENVIRONMENT_H
#include "core/fault.h"
#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
typedef uint32_t fc_environment;
enum { FC_CSR_DEFAULT = 0x1f80, FC_CSR_CONTROL = 0xffc0 }; /* control: FTZ, rounding, trap masks, DAZ */
static inline fc_environment fc_environment_enter(void) {
    const uint32_t csr = _mm_getcsr();
    if (__builtin_expect((csr & FC_CSR_CONTROL) != FC_CSR_DEFAULT, 0) && !FC_PLANTED(ENVIRONMENT_AS_FOUND)) _mm_setcsr(FC_CSR_DEFAULT);
    return csr;
}
static inline void fc_environment_leave(fc_environment csr) {
    if (_mm_getcsr() != csr) _mm_setcsr(FC_PLANT(FLAGS_LEFT, csr, csr | (_mm_getcsr() & 0x3f)));
}
static inline void fc_environment_leave_with_flags(fc_environment csr) {
    if ((_mm_getcsr() ^ csr) & FC_CSR_CONTROL) _mm_setcsr(csr | (_mm_getcsr() & 0x3f));
}
#elif defined(__aarch64__)
typedef struct { uint64_t control, status; } fc_environment;
static inline fc_environment fc_environment_enter(void) {
    fc_environment e;
    __asm__ volatile("mrs %0, fpcr" : "=r"(e.control));
    __asm__ volatile("mrs %0, fpsr" : "=r"(e.status));
    if (__builtin_expect(e.control != 0, 0) && !FC_PLANTED(ENVIRONMENT_AS_FOUND)) __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0));
    return e;
}
static inline void fc_environment_leave(fc_environment e) {
    if (__builtin_expect(e.control != 0, 0)) __asm__ volatile("msr fpcr, %0" : : "r"(e.control));
    if (!FC_PLANTED(FLAGS_LEFT)) __asm__ volatile("msr fpsr, %0" : : "r"(e.status));
}
static inline void fc_environment_leave_with_flags(fc_environment e) {
    if (__builtin_expect(e.control != 0, 0)) __asm__ volatile("msr fpcr, %0" : : "r"(e.control));
}
#else
#include <fenv.h>
typedef fenv_t fc_environment;
static inline fc_environment fc_environment_enter(void) {
    fenv_t e;
    fegetenv(&e);
    if (!FC_PLANTED(ENVIRONMENT_AS_FOUND)) fesetenv(FE_DFL_ENV);
    return e;
}
static inline void fc_environment_leave(fc_environment e) { fesetenv(&e); }
static inline void fc_environment_leave_with_flags(fc_environment e) { feupdateenv(&e); }
#endif

/*
 * The same value, as if it came into being here: arithmetic on it cannot be moved above an fc_environment_enter() that
 * stands before.  For arithmetic in a public function itself, such as rounding a parameter to f32 (NUM-PARAM-1).
 */
static inline double fc_environment_pin(double x) {
    __asm__ volatile("" : "+m"(x) : : "memory");
    return x;
}

#endif
