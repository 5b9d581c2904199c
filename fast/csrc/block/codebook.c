/*
 * Codebooks for encoding: built once each, in integers, into arrays of the sizes that the rules state.  The distances of one
 * code to all points are bytes that are added row by row, which the compiler vectorises; a list is read off in two scans.
 */
#include "block/codebook.h"
#include "block_tables.h"
#include "core/fault.h"
#include <stdatomic.h>
#include <stddef.h>

enum { KEYS_8 = 6561, KEYS_4 = 4096, MOST_POINTS = 2048, MOST_LOW = 64 * 512 };

/* NAME, name, points, entries of all lists, shells of a list, elements, levels of an element, keys, level of a table value v */
#define CODEBOOKS(X)                                         \
    X(IQ2XXS, iq2xxs, 256, 113157, 2, 8, 3, KEYS_8, v / 17)  \
    X(IQ2XS, iq2xs, 512, 181721, 2, 8, 3, KEYS_8, v / 17)    \
    X(IQ2S, iq2s, 1024, 44716, 1, 8, 3, KEYS_8, v / 17)      \
    X(IQ1S, iq1s, 2048, 327721, 3, 8, 3, KEYS_8, v + 1)      \
    X(IQ3XXS, iq3xxs, 256, 18985, 2, 4, 8, KEYS_4, v / 8)    \
    X(IQ3S, iq3s, 512, 24733, 3, 4, 8, KEYS_4, (v - 1) / 2)

typedef struct plan {
    uint8_t (*levels)[8];
    int16_t *map;
    uint32_t *start;
    uint16_t *list;
    int points, width, base, shells;
    uint32_t room;
} plan;

#define STORAGE(NAME, name, points, entries, shells, width, base, keys, level) \
    static uint8_t name##_levels[points][8];                                   \
    static int16_t name##_map[keys];                                           \
    static uint32_t name##_start[keys + 1];                                    \
    static uint16_t name##_list[entries + FC_CODEBOOK_OVERREAD];               \
    static int name##_level(int v) { return level; }
CODEBOOKS(STORAGE)
#undef STORAGE

#define PLAN(NAME, name, points, entries, shells, width, base, keys, level) \
    [FC_CODEBOOK_##NAME] = {name##_levels, name##_map, name##_start, name##_list, points, width, base, shells, entries},
static const plan plans[FC_CODEBOOKS] = {CODEBOOKS(PLAN)};
#undef PLAN

#define VIEW(NAME, name, points, entries, shells, width, base, keys, level) \
    [FC_CODEBOOK_##NAME] = {width, points, keys, (const uint8_t (*)[8])name##_levels, name##_map, name##_start, name##_list},
static const fc_codebook views[FC_CODEBOOKS] = {CODEBOOKS(VIEW)};
#undef VIEW

/* The levels of all points, from the tables of decoding, whose values are signed bytes. */
static void read_levels(enum fc_codebook_name which) {
    switch (which) {
#define READ(NAME, name, points, entries, shells, width, base, keys, level)                               \
    case FC_CODEBOOK_##NAME:                                                                              \
        for (int p = 0; p < (points); p++)                                                                \
            for (int k = 0; k < (width); k++) {                                                           \
                const int byte = (int)(fc_##name##_grid[p] >> 8 * k & 255);                               \
                name##_levels[p][k] = (uint8_t)name##_level(byte < 128 ? byte : byte - 256);              \
            }                                                                                             \
        break;
        CODEBOOKS(READ)
#undef READ
    default: break;
    }
}

static int key_of(const plan *b, const uint8_t *levels) {
    int key = 0;
    for (int k = b->width; k-- > 0;) key = key * b->base + levels[k];
    return key;
}
static uint16_t code_of(const plan *b, const uint8_t *levels) {
    unsigned code = 0;
    for (int k = b->width; k-- > 0;) code = code << (b->width == 8 ? 2 : 3) | levels[k];
    return (uint16_t)code;
}

/* sum[p] = from[p] + the squared distance of element k of point p from a level; from may be sum */
static void add_element(const plan *b, int k, int level, const uint8_t *from, uint8_t *sum) {
    for (int p = 0; p < b->points; p++) {
        const int difference = b->levels[p][k] - level;
        sum[p] = (uint8_t)(from[p] + difference * difference);
    }
}

/* The points in the nearest shells, in order; distances are below 200. */
static uint32_t write_list(const plan *b, const uint8_t *restrict distance, const uint16_t *code, uint32_t at) {
    const int shells = FC_PLANT(CODEBOOK_ONE_SHELL, b->shells, 1);
    uint8_t shell[3], least = 255;
    uint16_t near[MOST_POINTS];
    for (int p = 0; p < b->points; p++) least = distance[p] < least ? distance[p] : least;
    shell[0] = least;
    for (int s = 1; s < shells; s++) {
        const uint8_t beyond = (uint8_t)(least + 1); /* what is nearer wraps to above all others */
        uint8_t step = 255;
        for (int p = 0; p < b->points; p++) {
            const uint8_t over = (uint8_t)(distance[p] - beyond);
            step = over < step ? over : step;
        }
        shell[s] = least = (uint8_t)(beyond + step);
    }
    int found = 0;
    for (int p = 0; p < b->points; p++) {
        near[found] = (uint16_t)p;
        found += distance[p] <= least;
    }
    if (found > (int)(b->room - at)) found = (int)(b->room - at); /* no list is cut: the sizes are the tables' own */
    for (int s = 0; s < shells; s++)
        for (int i = 0; i < found; i++)
            if (distance[near[i]] == shell[s]) b->list[at++] = code[near[i]];
    return at;
}

static void build(const plan *b) {
    static const uint8_t zeros[MOST_POINTS];
    uint8_t low[MOST_LOW], base[MOST_POINTS], distance[MOST_POINTS]; /* low: all combinations of elements 0 and 1 */
    uint16_t code[MOST_POINTS];
    const int pairs = b->base * b->base;
    const int keys = b->width == 8 ? KEYS_8 : KEYS_4;
    for (int key = 0, p = 0; key < keys; key++) /* the keys of the points ascend */
        b->map[key] = (int16_t)(p < b->points && key == key_of(b, b->levels[p]) ? p++ : -1);
    for (int p = 0; p < b->points; p++) code[p] = code_of(b, b->levels[p]);
    for (int pair = 0; pair < pairs; pair++) {
        uint8_t *row = low + pair * b->points;
        add_element(b, 0, pair % b->base, zeros, row);
        add_element(b, 1, pair / b->base, row, row);
    }
    uint32_t at = 0;
    for (int high = 0; high < keys / pairs; high++) {
        for (int k = 2, rest = high; k < b->width; k++, rest /= b->base) add_element(b, k, rest % b->base, k == 2 ? zeros : base, base);
        for (int pair = 0; pair < pairs; pair++) {
            const int key = high * pairs + pair;
            b->start[key] = at;
            if (b->map[key] >= 0) continue;
            const uint8_t *row = low + pair * b->points;
            for (int p = 0; p < b->points; p++) distance[p] = (uint8_t)(base[p] + row[p]);
            at = write_list(b, distance, code, at);
        }
    }
    b->start[keys] = at;
}

/* Clause: BLOCK-TABLE-1 */
const fc_codebook *fc_codebook_of(enum fc_codebook_name which) {
    enum { ABSENT, BEING_BUILT, READY };
    static atomic_int state[FC_CODEBOOKS];
    /* A child forked while another thread of its parent was building would wait for ever: it builds for itself in the end.
       Every value is written in its final form, so that a second build beside readers changes nothing. */
    long patience = 1L << 30;
    int seen;
    while ((seen = atomic_load_explicit(&state[which], memory_order_acquire)) != READY) {
        if (seen == BEING_BUILT && patience-- > 0) continue;
        if (seen == ABSENT && !atomic_compare_exchange_strong(&state[which], &seen, BEING_BUILT)) continue;
        read_levels(which);
        build(&plans[which]);
        atomic_store_explicit(&state[which], READY, memory_order_release);
    }
    return &views[which];
}
