/*
 * The codebooks of the searching encoders, made for encoding (clause BLOCK-TABLE-1): the points as small levels, the map from
 * levels to a point's index, and for every combination of levels that is no point the points nearest to it.
 *
 * A code packs the levels of 8 or 4 elements, element 0 lowest: 2 bits each where there are eight (levels 0..2), 3 bits each
 * where there are four (levels 0..7).  A key numbers the codes without gaps, in the same order.
 */
#ifndef FC_BLOCK_CODEBOOK_H
#define FC_BLOCK_CODEBOOK_H
#include "core/inline.h"
#include <stdint.h>

enum fc_codebook_name {
    FC_CODEBOOK_IQ2XXS,
    FC_CODEBOOK_IQ2XS,
    FC_CODEBOOK_IQ2S,
    FC_CODEBOOK_IQ1S,
    FC_CODEBOOK_IQ3XXS,
    FC_CODEBOOK_IQ3S,
    FC_CODEBOOKS
};
enum { FC_CODEBOOK_OVERREAD = 8 }; /* entries behind the last list that may be read (they mean nothing) */

typedef struct fc_codebook {
    int width, points, keys;
    const uint8_t (*levels)[8]; /* index -> levels, 0 behind the width */
    const int16_t *map;         /* key -> index, or -1 */
    const uint32_t *start;      /* key -> first entry of its neighbour list, start[key + 1] ends it; empty where map has an index */
    const uint16_t *list;       /* the neighbours as codes (the index is map[key]), by ascending distance, then index */
} fc_codebook;

/* Build it when it is first asked for.  Any thread at any time. */
const fc_codebook *fc_codebook_of(enum fc_codebook_name which);

/* The key of a code of eight levels: neighbouring digits are joined, to base 9, 81 and 6561. */
FC_INLINE uint32_t fc_codebook_key_8(uint32_t code) {
    code -= code >> 2 & 0x3333;
    code -= (code >> 4 & 0x0f0f) * 7;
    return code - (code >> 8) * 175;
}
/* The key of a code of four levels. */
FC_INLINE uint32_t fc_codebook_key_4(uint32_t code) { return code; }

#endif
