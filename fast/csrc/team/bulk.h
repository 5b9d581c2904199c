/*
 * Elementwise work on the process's team.  A piece is called for disjoint ranges that cover 0 ... n, each a multiple of
 * `grain` long but the last; on the calling thread alone, once for everything, when n is below `least` or there is nobody
 * else.  The result of a piece must not depend on where the ranges are cut (clauses RNG-CHUNK-1, BRIDGE-ARRAY-4,
 * BLOCK-CHUNK-1); that is what keeps the bits the same for any team.
 */
#ifndef FC_TEAM_BULK_H
#define FC_TEAM_BULK_H
#include <stddef.h>

typedef void fc_piece(void *context, size_t start, size_t count);
void fc_bulk(size_t n, size_t least, size_t grain, fc_piece *piece, void *context);

#endif
