/*
 * Clauses NUM-ENV-2 and NUM-ENV-3: whatever control state the caller has set - rounding mode, flushing, traps, raised flags -
 * every public function writes the same bytes and gives the state back exactly, on every level.
 */
#include "tests/calls.h"
#include "tests/check.h"
#include "tests/control.h"

static uint64_t input[CALL_ELEMENTS];

/* the calls in one numbering: fills, others, then the casts (source, target, mode); returns the bytes written */
static size_t run(int call, void *out) {
    if (call < CALL_FILLS) {
        call_fill(call, 11, 5, out, CALL_ELEMENTS);
        return call_size[call] * CALL_ELEMENTS;
    }
    call -= CALL_FILLS;
    if (call < CALL_OTHERS) return call_other(call, 11, out);
    call -= CALL_OTHERS;
    const int source = call / 4 / T_COUNT, target = call / 4 % T_COUNT;
    pattern_fill(source, (uint64_t)source + 1, input, CALL_ELEMENTS);
    fc_cast(source, target, (uint32_t)(call % 4), input, out, CALL_ELEMENTS);
    return dtype_size[target] * CALL_ELEMENTS;
}

int main(void) {
    static uint8_t expected[CALL_BYTES], got[CALL_BYTES];
    const control_word initial = control_get();
    for (int level = 0; level < fc_isa_count(); level++) {
        if (fc_isa_set(level) != FC_OK) continue;
        for (int call = 0; call < CALL_FILLS + CALL_OTHERS + CALL_CASTS; call++) {
            memset(expected, 0xa5, sizeof expected);
            control_set(control_state(0));
            const size_t bytes = run(call, expected);
            const control_word quiet = control_get();
            control_set(initial);
            CHECK(bytes && bytes <= CALL_BYTES, "call %d writes %zu bytes", call, bytes);
            CHECK(quiet == control_state(0), "level %s, call %d raised flags: %llx", fc_isa_name(level), call, (unsigned long long)quiet);
            for (int state = 1; state < control_states; state++) {
                memset(got, 0xa5, sizeof got);
                control_set(control_state(state));
                const control_word before = control_get(); /* what the machine took: some bits may not exist */
                run(call, got);
                const control_word after = control_get();
                control_set(initial);
                CHECK(after == before, "level %s, call %d: control %llx became %llx", fc_isa_name(level), call, (unsigned long long)before,
                      (unsigned long long)after);
                CHECK(memcmp(got, expected, CALL_BYTES) == 0, "level %s, call %d: other bytes under control %llx", fc_isa_name(level), call,
                      (unsigned long long)before);
            }
        }
    }
    return check_report();
}
