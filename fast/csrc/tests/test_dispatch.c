/*
 * Levels: their names, forcing, and the refusal of those that this CPU lacks; and the statuses of bad arguments.
 * With the argument `only-baseline` the program claims that the CPU has nothing above the lowest level (run under an emulator).
 */
#include "fucina.h"
#include "tests/check.h"
#include "tests/patterns.h"
#include <math.h>

static void levels(int only_baseline) {
    const int count = fc_isa_count();
    int best = 0;
    CHECK(count >= 1, "%d levels", count);
    CHECK(fc_isa_name(-1) == NULL && fc_isa_name(count) == NULL, "a name outside the levels");
    CHECK(!fc_isa_usable(-1) && !fc_isa_usable(count), "usable outside the levels");
    CHECK(fc_isa_usable(0), "the lowest level must always be usable");
    for (int level = 0; level < count; level++) {
        CHECK(fc_isa_name(level) && *fc_isa_name(level), "level %d has no name", level);
        for (int other = 0; other < level; other++)
            CHECK(strcmp(fc_isa_name(level), fc_isa_name(other)) != 0, "levels %d and %d share a name", level, other);
        if (fc_isa_usable(level)) best = level;
    }
    if (only_baseline) CHECK(best == 0, "level %s is usable on a CPU that lacks it", fc_isa_name(best));
    CHECK(fc_isa_get() == best, "default %d, highest usable %d", fc_isa_get(), best);
    for (int level = 0; level < count; level++) {
        const int before = fc_isa_get();
        const fc_status status = fc_isa_set(level);
        CHECK(status == (fc_isa_usable(level) ? FC_OK : FC_BAD_ISA), "set %d: status %d", level, status);
        CHECK(fc_isa_get() == (status == FC_OK ? level : before), "set %d: now %d", level, fc_isa_get());
    }
    fc_isa_set(0);
    static const int outside[] = {-1, -2147483647 - 1, 1000, 2147483647};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        CHECK(fc_isa_set(outside[i]) == FC_BAD_ISA && fc_isa_get() == 0, "set %d: now %d", outside[i], fc_isa_get());
    CHECK(fc_isa_set(count) == FC_BAD_ISA && fc_isa_get() == 0, "set %d: now %d", count, fc_isa_get());
    CHECK(fc_isa_set(best) == FC_OK, "back to level %d", best);
}

static void texts(void) {
    CHECK(strchr(fc_version(), '.') != NULL, "version %s", fc_version());
    CHECK(strstr(fc_build(), "-ffp-contract=off") != NULL, "build %s", fc_build());
}

/* Every call that the interface refuses, each with an output that must stay as it was. */
static void refusals(void) {
    enum { N = 4 };
    const double nan = NAN, inf = INFINITY, low = -1.0, high = 1.0;
    float f[N] = {1, 2, 3, 4}, in[N] = {5, 6, 7, 8};
    const float f_was[N] = {1, 2, 3, 4};
    int64_t i[N] = {1, 2, 3, 4};
    const int64_t i_was[N] = {1, 2, 3, 4};
    uint8_t m[N] = {9, 9, 9, 9};
    uint64_t bits = 77;
    int truth = 77;
#define REFUSED(status, call) CHECK((call) == (status), "%s", #call)
    REFUSED(FC_BAD_DTYPE, fc_cast(-1, T_F32, 0, in, f, N));
    REFUSED(FC_BAD_DTYPE, fc_cast(T_COUNT, T_F32, 0, in, f, N));
    REFUSED(FC_BAD_DTYPE, fc_cast(T_F32, -1, 0, in, f, N));
    REFUSED(FC_BAD_DTYPE, fc_cast(T_F32, T_COUNT, 0, in, f, N));
    REFUSED(FC_BAD_DTYPE, fc_cast(39, 39, 0, in, f, 0));
    REFUSED(FC_BAD_DTYPE, fc_cast_bits(T_COUNT, T_F32, 0, 1, &bits));
    REFUSED(FC_BAD_DTYPE, fc_cast_bits(T_F32, -1, 0, 1, &bits));
    REFUSED(FC_BAD_DTYPE, fc_is_truthy(-1, 1, &truth));
    REFUSED(FC_BAD_DTYPE, fc_is_truthy(T_COUNT, 1, &truth));
    REFUSED(FC_BAD_BOUNDS, fc_uniform(1, 0, high, low, f, N));
    REFUSED(FC_BAD_BOUNDS, fc_uniform(1, 0, low, low, f, N));
    REFUSED(FC_BAD_BOUNDS, fc_uniform(1, 0, 0.0, -0.0, f, N));
    REFUSED(FC_BAD_BOUNDS, fc_uniform(1, 0, nan, high, f, N));
    REFUSED(FC_BAD_BOUNDS, fc_uniform(1, 0, low, nan, f, N));
    REFUSED(FC_BAD_BOUNDS, fc_uniform(1, 0, low, inf, f, N));
    REFUSED(FC_BAD_BOUNDS, fc_uniform(1, 0, -inf, high, f, N));
    REFUSED(FC_BAD_BOUNDS, fc_uniform(1, 0, high, low, f, 0));
    /* the bounds that count are the rounded ones (NUM-PARAM-1) */
    REFUSED(FC_BAD_BOUNDS, fc_uniform(1, 0, 1.0, 1.0 + 0x1p-40, f, N));
    REFUSED(FC_BAD_BOUNDS, fc_uniform(1, 0, low, 0x1p200, f, N));
    REFUSED(FC_BAD_BOUNDS, fc_dropout_mask(1, 0, 1.0 - 0x1p-40, m, N));
    REFUSED(FC_BAD_BOUNDS, fc_kaiming_uniform(1, 0, 0, f, N));
    REFUSED(FC_BAD_BOUNDS, fc_randint(1, 0, 5, 5, i, N));
    REFUSED(FC_BAD_BOUNDS, fc_randint(1, 0, 5, -5, i, N));
    REFUSED(FC_BAD_BOUNDS, fc_randint(1, 0, INT64_MAX, INT64_MIN, i, 0));
    REFUSED(FC_BAD_BOUNDS, fc_dropout_mask(1, 0, 1.0, m, N));
    REFUSED(FC_BAD_BOUNDS, fc_dropout_mask(1, 0, -0.25, m, N));
    REFUSED(FC_BAD_BOUNDS, fc_dropout_mask(1, 0, nan, m, N));
    REFUSED(FC_BAD_BOUNDS, fc_dropout_mask(1, 0, inf, m, 0));
    REFUSED(FC_BAD_BOUNDS, fc_dropout_scale(1.0, f));
    REFUSED(FC_BAD_BOUNDS, fc_dropout_scale(-0.25, f));
    REFUSED(FC_BAD_BOUNDS, fc_dropout_scale(nan, f));
#undef REFUSED
    CHECK(memcmp(f, f_was, sizeof f) == 0 && memcmp(i, i_was, sizeof i) == 0, "a refused call wrote");
    CHECK(m[0] == 9 && m[1] == 9 && m[2] == 9 && m[3] == 9 && bits == 77 && truth == 77, "a refused call wrote");
}

int main(int argc, char **argv) {
    levels(argc > 1 && strcmp(argv[1], "only-baseline") == 0);
    texts();
    for (int level = 0; level < fc_isa_count(); level++)
        if (fc_isa_set(level) == FC_OK) refusals();
    return check_report();
}
