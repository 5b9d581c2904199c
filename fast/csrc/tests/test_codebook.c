/*
 * Clause BLOCK-TABLE-1 for the codebooks of encoding: the check values that the rules state for the neighbour lists (computed
 * there by other means), and that levels, map and lists belong together.
 */
#include "block/codebook.h"
#include "tests/check.h"
#include <stddef.h>

typedef struct expected {
    const char *name;
    int points, absent, shortest, longest;
    uint32_t entries, crc;
    int with_lengths; /* whether the CRC-32 covers each list's length */
} expected;

static const expected rows[FC_CODEBOOKS] = {
    [FC_CODEBOOK_IQ2XXS] = {"iq2xxs", 256, 6305, 2, 150, 113157, 0xab1beba1, 1},
    [FC_CODEBOOK_IQ2XS] = {"iq2xs", 512, 6049, 2, 292, 181721, 0xee4e63ea, 1},
    [FC_CODEBOOK_IQ2S] = {"iq2s", 1024, 5537, 1, 70, 44716, 0x9f608cd2, 1},
    [FC_CODEBOOK_IQ1S] = {"iq1s", 2048, 4513, 12, 205, 327721, 0xaf9a5737, 1},
    [FC_CODEBOOK_IQ3XXS] = {"iq3xxs", 256, 3840, 2, 36, 18985, 0x16e8dbee, 0},
    [FC_CODEBOOK_IQ3S] = {"iq3s", 512, 3584, 3, 38, 24733, 0xdf32439b, 0},
};

static uint32_t crc_u16(uint32_t crc, uint32_t value) {
    for (int byte = 0; byte < 2; byte++) {
        crc ^= value >> 8 * byte & 255;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0xedb88320) : 0);
    }
    return crc;
}

static uint32_t key_of(const fc_codebook *book, uint32_t code) { return book->width == 8 ? fc_codebook_key_8(code) : fc_codebook_key_4(code); }

static void check_codebook(enum fc_codebook_name which) {
    const expected *e = &rows[which];
    const fc_codebook *book = fc_codebook_of(which);
    CHECK(book->points == e->points, "%s: %d", e->name, book->points);
    CHECK(book == fc_codebook_of(which), "%s", e->name);
    const int bits = book->width == 8 ? 2 : 3, levels = book->width == 8 ? 3 : 8;
    for (int p = 0; p < book->points; p++) {
        uint32_t code = 0, key = 0, scale = 1;
        for (int k = 0; k < book->width; k++, scale *= (uint32_t)levels) {
            code |= (uint32_t)book->levels[p][k] << bits * k;
            key += book->levels[p][k] * scale;
        }
        CHECK(key_of(book, code) == key, "%s: point %d", e->name, p);
        CHECK(book->map[key] == p, "%s: point %d", e->name, p);
    }
    int absent = 0, shortest = 1 << 30, longest = 0;
    uint32_t crc = 0xffffffff;
    for (int key = 0; key < book->keys; key++) {
        const int length = (int)(book->start[key + 1] - book->start[key]);
        if (book->map[key] >= 0) {
            CHECK(length == 0, "%s: key %d", e->name, key);
            continue;
        }
        absent++;
        shortest = length < shortest ? length : shortest;
        longest = length > longest ? length : longest;
        if (e->with_lengths) crc = crc_u16(crc, (uint32_t)length);
        for (uint32_t i = book->start[key]; i < book->start[key + 1]; i++) crc = crc_u16(crc, (uint32_t)book->map[key_of(book, book->list[i])] & 0xffff);
    }
    CHECK(absent == e->absent, "%s: %d", e->name, absent);
    CHECK(shortest == e->shortest && longest == e->longest, "%s: %d, %d", e->name, shortest, longest);
    CHECK(book->start[book->keys] == e->entries, "%s: %lu", e->name, (unsigned long)book->start[book->keys]);
    CHECK((crc ^ 0xffffffff) == e->crc, "%s: %08lx", e->name, (unsigned long)(crc ^ 0xffffffff));
}

int main(void) {
    for (int which = 0; which < FC_CODEBOOKS; which++) check_codebook((enum fc_codebook_name)which);
    return check_report();
}
