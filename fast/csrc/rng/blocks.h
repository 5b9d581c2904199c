/*
 * The way of both gaussian fills through their stream: a pair of words makes a pair of values, element 2i and 2i + 1, and a
 * block of pairs is made at once.  A window may begin with the second of a pair and end with the first of one.
 */
#ifndef FC_RNG_BLOCKS_H
#define FC_RNG_BLOCKS_H
#include "rng/stream.h"
#include "rng/words.h"

enum { BLOCK = 256 }; /* pairs: up to 15 KiB of arrays on the stack, in the first-level cache */

/* m pairs, a multiple of FC_WORDS and at most BLOCK, to out.  stream: out is aligned to 16 bytes, and written past the caches */
typedef void fc_block(uint64_t seed, uint64_t pair, float scale, int stream, int m, fc_any_f32 *out);

/* Inlined with its block.  Clauses: RNG-GAUSS-2, RNG-GAUSS-3, RNG-FAST-2, RNG-CHUNK-1 */
FC_INLINE void fc_fill_by_blocks(fc_block *block, uint64_t seed, uint64_t first, float scale, fc_any_f32 *out, size_t n) {
    const int streaming = fc_worth_streaming(n * sizeof *out);
    _Alignas(64) float some[2 * BLOCK];
    while (n) {
        /* values to leave out, for an odd first; then up to a block of them, in memory of our own unless all are wanted */
        const size_t skip = FC_PLANT(GAUSS_ODD_START, (size_t)(first % 2), (size_t)0);
        const size_t take = n < 2 * BLOCK - skip ? n : 2 * BLOCK - skip, made = (skip + take + 1) / 2;
        const int m = fc_whole_runs((int)made);
        if (skip || take != 2 * (size_t)m) {
            block(seed, first / 2, scale, 0, m, some);
            memcpy(out, some + skip, FC_PLANT(GAUSS_ODD_LENGTH, take, skip ? take : 2 * made) * sizeof *out);
        } else if (streaming && (uintptr_t)out % 16 == 0)
            block(seed, first / 2, scale, 1, m, out);
        else
            block(seed, first / 2, scale, 0, m, out);
        first += take;
        out += take;
        n -= take;
    }
    if (streaming) fc_stream_end();
}

#endif
