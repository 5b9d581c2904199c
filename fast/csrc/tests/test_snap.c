/*
 * Clause BLOCK-SEARCH-6 for the snap of an octet, which takes short cuts: its choice must be that of the plain walk through the
 * neighbour list, one candidate after the other, where errors tie, underflow, overflow or are NaN, too.
 */
#include "block/snap.h"
#include "tests/check.h"

static uint64_t state = UINT64_C(0x9e3779b97f4a7c15);
static uint32_t word(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 20);
}
static float unit(void) { return (float)(word() & 0xffffff) * 0x1p-24f; }

/* The rule as it is written: level l stands for q0 + l*step. */
static int32_t plain_walk(const fc_codebook *book, uint32_t key, const float *b, const float *t, float s, float q0, float step) {
    float best = 0x1.fffffep+127f;
    int32_t winner = -1;
    for (uint32_t i = book->start[key]; i < book->start[key + 1]; i++) {
        float sum = 0;
        for (int k = 0; k < 8; k++) {
            const float e = s * (q0 + (float)(book->list[i] >> 2 * k & 3) * step) - t[k];
            sum += b[k] * e * e;
        }
        if (sum < best) {
            best = sum;
            winner = book->list[i];
        }
    }
    return winner;
}

enum { ORDINARY, TIES, NEAR_TIES, FEW_WEIGHTS, SUBNORMAL, TINY, HUGE_TARGETS, OVERFLOWING, WITH_NAN, KINDS };

static void draw(int kind, float *b, float *t, float *s) {
    const float one = unit(), other = 1 + unit(), weight = 0.1f + unit();
    *s = 0.5f * unit();
    for (int k = 0; k < 8; k++) {
        b[k] = 0.1f + unit();
        t[k] = 3 * unit() - 0.2f;
        if (kind == TIES) {
            b[k] = 1;
            t[k] = (float)(word() % 3);
        }
        if (kind == NEAR_TIES) { /* the same terms in another order: sums that differ by roundings */
            b[k] = weight;
            t[k] = word() % 3 ? one : other;
        }
        if (kind == FEW_WEIGHTS && word() % 4) b[k] = 0;
        if (kind == SUBNORMAL) b[k] *= 0x1p-140f;
        if (kind == TINY) b[k] *= 0x1p-124f;
        if (kind == HUGE_TARGETS) t[k] *= 0x1p62f;
        if (kind == OVERFLOWING) t[k] *= 0x1p63f;
        if (kind == WITH_NAN && word() % 16 == 0) t[k] = b[k] = __builtin_inff();
    }
    if (kind == TIES) *s = 0.5f;
    if (kind == HUGE_TARGETS) *s *= 0x1p62f;
    if (kind == OVERFLOWING) *s *= 0x1p63f;
    if (kind == WITH_NAN && word() % 4 == 0) *s = __builtin_inff();
}

int main(int argc, char **argv) {
    (void)argv;
    const int rounds = argc > 1 ? 200 : 20000;
    unsigned long none = 0, some = 0;
    for (int which = FC_CODEBOOK_IQ2XXS; which <= FC_CODEBOOK_IQ1S; which++) {
        const fc_codebook *book = fc_codebook_of((enum fc_codebook_name)which);
        const int signed_levels = which == FC_CODEBOOK_IQ1S;
        const float q0 = signed_levels ? -0.875f : 1, step = signed_levels ? 1 : 2;
        for (int i = 0; i < rounds * KINDS; i++) {
            uint32_t key = word() % (uint32_t)book->keys;
            while (book->map[key] >= 0) key = (key + 1) % (uint32_t)book->keys;
            float b[8], t[8], s;
            draw(i % KINDS, b, t, &s);
            octet_terms terms;
            make_terms(&terms, b, t, s, q0, step);
            const int32_t got = nearest_neighbour(book, key, &terms), expected = plain_walk(book, key, b, t, s, q0, step);
            CHECK(got == expected, "codebook %d, key %lu, kind %d: %ld, not %ld", which, (unsigned long)key, i % KINDS, (long)got, (long)expected);
            if (expected < 0) none++;
            else some++;
        }
    }
    CHECK(none > 0 && some > none, "%lu snaps without a winner, %lu with one", none, some);
    return check_report();
}
