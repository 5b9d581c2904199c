/*
 * Words of the stream (clauses RNG-STREAM-1, RNG-AT-1): splitmix64 as a function of seed and index.
 * Everything here wraps modulo 2^64, as the clauses want it.
 */
#ifndef FC_RNG_WORD_H
#define FC_RNG_WORD_H
#include "core/bits.h"
#include "core/fault.h"
#include "core/inline.h"
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FC_GAMMA FC_PLANT(WORD_GAMMA, UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0x9e3779b97f4a7c17))
#define FC_MIX_1 UINT64_C(0xbf58476d1ce4e5b9)
#define FC_MIX_2 UINT64_C(0x94d049bb133111eb)
#define FC_MIX_SHIFT FC_PLANT(WORD_MIX_SHIFT, 31, 32)

__extension__ typedef unsigned __int128 fc_u128;

/* elements of outputs, which may have any alignment */
typedef float fc_any_f32 __attribute__((aligned(1)));
typedef int64_t fc_any_i64 __attribute__((aligned(1)));

FC_INLINE uint64_t fc_mix(uint64_t z) {
    z = (z ^ (z >> 30)) * FC_MIX_1;
    z = (z ^ (z >> 27)) * FC_MIX_2;
    return z ^ (z >> FC_MIX_SHIFT);
}

/* The state whose mix is word i. */
FC_INLINE uint64_t fc_state(uint64_t seed, uint64_t i) { return seed + FC_PLANT(WORD_INDEX, i + 1, i) * FC_GAMMA; }

/* Clause: RNG-AT-1 */
FC_INLINE uint64_t fc_word(uint64_t seed, uint64_t i) { return fc_mix(fc_state(seed, i)); }

/* floor(word * range / 2^64) */
FC_INLINE uint64_t fc_multiply_high(uint64_t word, uint64_t range) { return (uint64_t)((fc_u128)word * range >> 64); }

#endif
