/*
 * The calling thread's floating-point environment: reads and writes of the control and status registers, in one word that
 * means the same on every machine.  These functions act on the environment of the caller, so that none of them is guarded
 * by core/environment.h.  The x87 unit of x86-64 has an environment of its own, which no result depends on and nobody
 * touches here.
 */
#include "core/fault.h"
#include "fucina.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
/* MXCSR: flags 0-5, DAZ 6, masks 7-12, rounding 13-14, FTZ 15; writing a 1 to any bit above is a fault of the processor */
enum { FLAGS = 0x3f, DAZ = 0x40, MASKS = 0x1f80, MASK_SHIFT = 7, RC_SHIFT = 13, RC = 3 << RC_SHIFT, FTZ = 0x8000, KNOWN = 0xffff };
static uint32_t read_control(void) { return _mm_getcsr(); }
static void write_control(uint32_t csr) { _mm_setcsr(csr & KNOWN); }

/* the hardware's order of flags: invalid, denormal, division by zero, overflow, underflow, inexact */
static uint32_t ordered(uint32_t raw) {
    return (raw & 1) | (raw >> 2 & 1) << 1 | (raw >> 3 & 1) << 2 | (raw >> 4 & 1) << 3 | (raw >> 5 & 1) << 4 | (raw >> 1 & 1) << 5;
}
static uint32_t unordered(uint32_t flags) {
    return (flags & 1) | (flags >> 5 & 1) << 1 | (flags >> 1 & 1) << 2 | (flags >> 2 & 1) << 3 | (flags >> 3 & 1) << 4 | (flags >> 4 & 1) << 5;
}
#elif defined(__aarch64__)
/* FPCR: traps 8-12 and 15, FZ16 19, rounding 22-23, FZ 24; FPSR: flags 0-4 and 7 */
enum { FLAGS = 0x9f, FZ16 = 1 << 19, RM_SHIFT = 22, RM = 3 << RM_SHIFT, FZ = 1 << 24, TRAP_SHIFT = 8 };
static uint64_t read_control(void) {
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    return fpcr;
}
static void write_control(uint64_t fpcr) { __asm__ volatile("msr fpcr, %0" : : "r"(fpcr)); }

/* the hardware's order of flags: invalid, division by zero, overflow, underflow, inexact, and denormal at bit 7 */
static uint32_t ordered(uint32_t raw) { return (raw & 0x1f) | (raw >> 7 & 1) << 5; }
static uint32_t unordered(uint32_t flags) { return (flags & 0x1f) | (flags >> 5 & 1) << 7; }
#endif

/* FPENV-SUPPORT-1: whether the registers are reached */
int fc_fpenv_supported(void) {
#if defined(__x86_64__) || defined(__aarch64__)
    return 1;
#else
    return 0;
#endif
}

/* FPENV-GET-1, FPENV-GUARD-1, FPENV-ASSERT-1: rounding, underflow and traps of the calling thread; 0 where not supported */
uint32_t fc_fpenv_get(void) {
#if defined(__x86_64__)
    static const uint8_t modes[] = {FC_FPENV_NEAREST_EVEN, FC_FPENV_DOWNWARD, FC_FPENV_UPWARD, FC_FPENV_TOWARD_ZERO};
    const uint32_t csr = read_control();
    return modes[(csr & RC) >> RC_SHIFT] | (csr & FTZ ? FC_FPENV_FLUSH_RESULTS : 0u) | (csr & DAZ ? FC_FPENV_FLUSH_OPERANDS : 0u) |
           ordered((~csr & MASKS) >> MASK_SHIFT) << FC_FPENV_TRAP_SHIFT;
#elif defined(__aarch64__)
    static const uint8_t modes[] = {FC_FPENV_NEAREST_EVEN, FC_FPENV_UPWARD, FC_FPENV_DOWNWARD, FC_FPENV_TOWARD_ZERO};
    const uint64_t fpcr = read_control();
    return modes[(fpcr & RM) >> RM_SHIFT] | (fpcr & FZ ? FC_FPENV_FLUSH_RESULTS | FC_FPENV_FLUSH_OPERANDS : 0u) |
           (fpcr & FZ16 ? FC_FPENV_FLUSH_HALVES : 0u) | ordered((uint32_t)(fpcr >> TRAP_SHIFT)) << FC_FPENV_TRAP_SHIFT;
#else
    return 0;
#endif
}

/* FPENV-SET-1, FPENV-SET-2, FPENV-GUARD-1: rounding and underflow as in the word; traps, flags and all else stay */
void fc_fpenv_set(uint32_t word) {
#if defined(__x86_64__)
    static const uint8_t codes[] = {0, 3, 2, 1}; /* by FC_FPENV_NEAREST_EVEN, TOWARD_ZERO, UPWARD, DOWNWARD */
    const uint32_t mode = word & FC_FPENV_ROUNDING;
    const uint32_t code = FC_PLANT(FPENV_ROUNDING_SWAPPED, codes[mode], (codes[mode] << 1 | codes[mode] >> 1) & 3u);
    uint32_t csr = read_control() & ~(uint32_t)(RC | FTZ | FC_PLANT(FPENV_DAZ_LEFT, DAZ, 0));
    csr |= code << RC_SHIFT | (word & FC_FPENV_FLUSH_RESULTS ? FTZ : 0u);
    if (!FC_PLANTED(FPENV_DAZ_LEFT)) csr |= word & FC_FPENV_FLUSH_OPERANDS ? DAZ : 0u;
    if (FC_PLANTED(FPENV_SET_CLEARS_FLAGS)) csr &= ~(uint32_t)FLAGS;
    write_control(FC_PLANT(FPENV_TRAPS_MASKED, csr, csr | MASKS));
#elif defined(__aarch64__)
    static const uint8_t codes[] = {0, 3, 1, 2};
    uint64_t fpcr = read_control() & ~(uint64_t)(RM | FZ | FZ16);
    fpcr |= (uint64_t)codes[word & FC_FPENV_ROUNDING] << RM_SHIFT | (word & FC_FPENV_FLUSH_RESULTS ? FZ : 0u) |
            (word & FC_FPENV_FLUSH_HALVES ? FZ16 : 0u);
    write_control(fpcr);
#else
    (void)word;
#endif
}

/* FPENV-FLAGS-1: the exceptions that have accrued on the calling thread */
uint32_t fc_fpenv_flags(void) {
#if defined(__x86_64__)
    return ordered(read_control() & FC_PLANT(FPENV_DENORMAL_LOST, FLAGS, FLAGS - 2));
#elif defined(__aarch64__)
    uint64_t fpsr;
    __asm__ volatile("mrs %0, fpsr" : "=r"(fpsr));
    return ordered((uint32_t)fpsr & FLAGS);
#else
    return 0;
#endif
}

/* FPENV-FLAGS-2, FPENV-FLAGS-3: exactly these exceptions have accrued from now on; nothing traps */
void fc_fpenv_flags_set(uint32_t flags) {
#if defined(__x86_64__)
    const uint32_t kept = read_control() & ~(uint32_t)FC_PLANT(FPENV_RAISE_ADDS, FLAGS, flags ? 0 : FLAGS);
    write_control(kept | unordered(flags));
#elif defined(__aarch64__)
    uint64_t fpsr;
    __asm__ volatile("mrs %0, fpsr" : "=r"(fpsr));
    __asm__ volatile("msr fpsr, %0" : : "r"((fpsr & ~(uint64_t)FLAGS) | unordered(flags)));
#else
    (void)flags;
#endif
}
