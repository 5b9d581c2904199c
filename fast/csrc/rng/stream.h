/*
 * Streaming stores: outputs larger than the caches are written past them, which saves reading their lines first.
 */
#ifndef FC_RNG_STREAM_H
#define FC_RNG_STREAM_H
#include <stddef.h>
#include <stdint.h>

enum { FC_STREAM_BYTES = 4 << 20 }; /* from here on; the second-level caches of today's machines are smaller */

#ifdef __AVX2__
#include <immintrin.h>
static inline int fc_worth_streaming(size_t bytes) { return bytes >= FC_STREAM_BYTES; }
static inline void fc_stream_end(void) { _mm_sfence(); } /* ordinary stores of this thread stay behind the streamed ones */
#else
static inline int fc_worth_streaming(size_t bytes) {
    (void)bytes;
    return 0;
}
static inline void fc_stream_end(void) {}
#endif

#endif
