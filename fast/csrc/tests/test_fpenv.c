/*
 * Chapter fpenv: the word that the functions speak in is what stands in the registers, in every state that the machine has;
 * a write changes what it is meant to change and nothing else, whatever its unused bits hold.
 */
#include "fucina.h"
#include "tests/check.h"
#include "tests/control.h"

#if defined(__x86_64__) || defined(__aarch64__)
enum { FLUSHES = FC_FPENV_FLUSH_RESULTS | FC_FPENV_FLUSH_OPERANDS | FC_FPENV_FLUSH_HALVES, ALL = 63 };

#if defined(__x86_64__)
static const uint32_t modes[] = {FC_FPENV_NEAREST_EVEN, FC_FPENV_DOWNWARD, FC_FPENV_UPWARD, FC_FPENV_TOWARD_ZERO};
static uint32_t word_of(uint32_t csr) {
    const uint32_t traps = ~csr >> 7 & 0x3f; /* invalid, denormal, division by zero, overflow, underflow, inexact */
    return modes[csr >> 13 & 3] | (csr & 0x8000 ? 4u : 0) | (csr & 0x40 ? 8u : 0) |
           ((traps & 1) | (traps >> 2 & 15) << 1 | (traps >> 1 & 1) << 5) << FC_FPENV_TRAP_SHIFT;
}
static uint32_t flags_in(uint32_t csr) { return (csr & 1) | (csr >> 2 & 15) << 1 | (csr >> 1 & 1) << 5; }
static uint32_t offered(uint32_t word) { return word & (FC_FPENV_ROUNDING | FC_FPENV_FLUSH_RESULTS | FC_FPENV_FLUSH_OPERANDS); }
#else
static const uint32_t modes[] = {FC_FPENV_NEAREST_EVEN, FC_FPENV_UPWARD, FC_FPENV_DOWNWARD, FC_FPENV_TOWARD_ZERO};
static uint32_t word_of(uint64_t w) {
    const uint32_t fpcr = (uint32_t)w;
    return modes[fpcr >> 22 & 3] | (fpcr >> 24 & 1 ? 12u : 0) | (fpcr >> 19 & 1 ? 16u : 0) |
           ((fpcr >> 8 & 31) | (fpcr >> 15 & 1) << 5) << FC_FPENV_TRAP_SHIFT;
}
static uint32_t flags_in(uint64_t w) { return (uint32_t)(w >> 32 & 31) | (uint32_t)(w >> 39 & 1) << 5; }
static uint32_t offered(uint32_t word) {
    const control_word before = control_get();
    control_set(1 << 19);
    const int halves = (control_get() & 1 << 19) != 0;
    control_set(before);
    return (word & FC_FPENV_ROUNDING) | (word & FC_FPENV_FLUSH_RESULTS ? 12u : 0) | (halves ? word & 16u : 0);
}
#endif

static void reads_and_writes(int state, control_word initial) {
    control_set(control_state(state));
    const control_word before = control_get(); /* what the machine took: some bits may not exist */
    const uint32_t word = fc_fpenv_get(), flags = fc_fpenv_flags();
    const control_word read = control_get();
    control_set(initial);
    CHECK(read == before, "state %d: changed by reading", state);
    CHECK(word == word_of(before), "state %d: word %x, not %x", state, word, word_of(before));
    CHECK(flags == flags_in(before), "state %d: flags %x, not %x", state, flags, flags_in(before));
    for (uint32_t wanted = 0; wanted < 32; wanted++)
        for (int noise = 0; noise < 2; noise++) {
            control_set(before);
            fc_fpenv_set(wanted | (noise ? ~31u : 0u));
            const control_word after = control_get();
            control_set(initial);
            CHECK((word_of(after) & (FC_FPENV_ROUNDING | FLUSHES)) == offered(wanted), "state %d, set %x: %x", state, wanted, word_of(after));
            CHECK(word_of(after) >> FC_FPENV_TRAP_SHIFT == word >> FC_FPENV_TRAP_SHIFT, "state %d, set %x: traps", state, wanted);
            CHECK(flags_in(after) == flags, "state %d, set %x: flags", state, wanted);
        }
    for (uint32_t wanted = 0; wanted <= ALL; wanted++)
        for (int noise = 0; noise < 2; noise++) {
            control_set(before);
            fc_fpenv_flags_set(wanted | (noise ? ~(uint32_t)ALL : 0u));
            const control_word after = control_get();
            control_set(initial);
            CHECK(flags_in(after) == wanted, "state %d, flags %x: %x", state, wanted, flags_in(after));
            CHECK(word_of(after) == word, "state %d, flags %x: control %x, not %x", state, wanted, word_of(after), word);
        }
}

int main(void) {
    const control_word initial = control_get();
    CHECK(fc_fpenv_supported() == 1, "the registers are reached here");
    for (int state = 0; state < control_states; state++) reads_and_writes(state, initial);
    /* 1/3 rounds up upward and down else; half the least normal number is flushed or not */
    for (uint32_t word = 0; word < 8; word++) {
        uint32_t third = 0, half = 0;
        uint64_t narrow = 0;
        control_set(control_state(0));
        fc_fpenv_set(word);
        fc_operate_f32(FC_OPERATE_DIVIDE, 0x3f800000, 0x40400000, &third);
        fc_operate_f32(FC_OPERATE_MULTIPLY, 0x00800000, 0x3f000000, &half);
        fc_operate_f64(FC_OPERATE_TO_F32, 0x3fd5555555555555, 0, &narrow); /* f64(1/3) */
        control_set(initial);
        const uint32_t mode = word & FC_FPENV_ROUNDING;
        const uint32_t expected = mode == FC_FPENV_NEAREST_EVEN || mode == FC_FPENV_UPWARD ? 0x3eaaaaab : 0x3eaaaaaa;
        CHECK(third == expected && narrow == expected, "word %x: 1/3 is %x, %x", word, third, (uint32_t)narrow);
        CHECK(half == (word & FC_FPENV_FLUSH_RESULTS ? 0u : 0x00400000u), "word %x: half is %x", word, half);
    }
    uint32_t nothing;
    CHECK(fc_operate_f32(FC_OPERATE_TO_F32, 0, 0, &nothing) == FC_BAD_BOUNDS, "no conversion of f32");
    CHECK(fc_operate_f32(-1, 0, 0, &nothing) == FC_BAD_BOUNDS, "no operation -1");
    return check_report();
}
#else
int main(void) {
    CHECK(fc_fpenv_supported() == 0, "not supported here");
    fc_fpenv_set(7);
    fc_fpenv_flags_set(63);
    CHECK(fc_fpenv_get() == 0 && fc_fpenv_flags() == 0, "nothing is seen");
    return check_report();
}
#endif
