/*
 * The floating-point control state of the calling thread, for the environment test: one word per state, read and written
 * whole.  `control_states` counts the states that the machine offers; state 0 is the default one.
 */
#ifndef FC_TESTS_CONTROL_H
#define FC_TESTS_CONTROL_H
#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
/* 4 rounding modes x FTZ x DAZ x unmasked traps x all flags already raised */
enum { control_states = 4 * 2 * 2 * 2 * 2 };
typedef uint32_t control_word;
static inline control_word control_state(int i) {
    const uint32_t u = (uint32_t)i;
    return (u & 3) << 13 | (u >> 2 & 1) << 15 | (u >> 3 & 1) << 6 | (u >> 4 & 1 ? 0 : 0x1f80u) | (u >> 5 & 1 ? 0x3fu : 0);
}
static inline void control_set(control_word w) { _mm_setcsr(w); }
static inline control_word control_get(void) { return _mm_getcsr(); }
#elif defined(__aarch64__)
/* 4 rounding modes x FZ x FZ16 x default NaN x trap enables (where implemented) x all flags already raised */
enum { control_states = 4 * 2 * 2 * 2 * 2 * 2 };
typedef uint64_t control_word; /* FPCR in the low half, FPSR in the high half */
static inline control_word control_state(int i) {
    const uint64_t u = (uint64_t)i;
    const uint64_t control = (u & 3) << 22 | (u >> 2 & 1) << 24 | (u >> 3 & 1) << 19 | (u >> 4 & 1) << 25 | (u >> 5 & 1 ? 0x9f00u : 0);
    return control | (uint64_t)(u >> 6 & 1 ? 0x9f : 0) << 32;
}
static inline void control_set(control_word w) {
    __asm__ volatile("msr fpcr, %0" : : "r"(w & 0xffffffffu) : "memory");
    __asm__ volatile("msr fpsr, %0" : : "r"(w >> 32) : "memory");
}
static inline control_word control_get(void) {
    uint64_t control, status;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control) : : "memory");
    __asm__ volatile("mrs %0, fpsr" : "=r"(status) : : "memory");
    return control | status << 32;
}
#elif defined(__s390x__)
/* the FPC register: 4 rounding modes (bits 62-63) x trap masks (bits 32-36) x all flags already raised (bits 40-44) */
enum { control_states = 4 * 2 * 2 };
typedef uint32_t control_word;
static inline control_word control_state(int i) {
    const uint32_t u = (uint32_t)i;
    return (u & 3) | (u >> 2 & 1 ? 0xf8000000u : 0) | (u >> 3 & 1 ? 0x00f80000u : 0);
}
static inline void control_set(control_word w) { __asm__ volatile("sfpc %0" : : "d"(w) : "memory"); }
static inline control_word control_get(void) {
    control_word w;
    __asm__ volatile("efpc %0" : "=d"(w) : : "memory");
    return w;
}
#else
#include <fenv.h>
/* 4 rounding modes x all flags already raised, as far as <fenv.h> reaches */
enum { control_states = 4 * 2 };
typedef int control_word;
static inline control_word control_state(int i) {
    static const int modes[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
    return modes[i & 3] << 8 | (i >> 2 & 1 ? FE_ALL_EXCEPT : 0);
}
static inline void control_set(control_word w) {
    fesetround(w >> 8);
    feclearexcept(FE_ALL_EXCEPT);
    feraiseexcept(w & FE_ALL_EXCEPT);
}
static inline control_word control_get(void) { return fegetround() << 8 | fetestexcept(FE_ALL_EXCEPT); }
#endif

#endif
