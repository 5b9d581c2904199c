/*
 * Streaming stores: outputs larger than the caches are written past them, which saves reading their lines first.
 *
 * FC_STREAM_BYTES counts the output alone, all that a fill touches; casts, which read as much again, have a border of their
 * own (bridge/avx2.h).  A fill computes for so long that little depends on it: measured on the uniform fill, the fastest,
 * with 16 MiB of last-level cache, the two ways are level to 1 in 100 from 1 to 6 MiB, and streaming leads from 8 MiB.
 */
#ifndef FC_RNG_STREAM_H
#define FC_RNG_STREAM_H
#include "rng/word.h"

enum { FC_STREAM_BYTES = 4 << 20 }; /* above the second-level caches of today's machines, which keep what fits */

#ifdef __AVX2__
#include <immintrin.h>
FC_INLINE int fc_worth_streaming(size_t bytes) { return bytes >= FC_STREAM_BYTES; }
FC_INLINE void fc_stream_end(void) { _mm_sfence(); } /* ordinary stores of this thread stay behind the streamed ones */

/* stream: p is aligned to the register, else anyhow */
FC_INLINE void fc_store_4(fc_any_f32 *p, __m128 x, int stream) {
    float *to = (float *)(void *)p;
    if (stream)
        _mm_stream_ps(to, x);
    else
        _mm_storeu_ps(to, x);
}
FC_INLINE void fc_store_8(fc_any_f32 *p, __m256 x, int stream) {
    float *to = (float *)(void *)p;
    if (stream)
        _mm256_stream_ps(to, x);
    else
        _mm256_storeu_ps(to, x);
}
/* four even and four odd elements */
FC_INLINE void fc_store_pairs(fc_any_f32 *p, __m128 even, __m128 odd, int stream) {
    fc_store_4(p, _mm_unpacklo_ps(even, odd), stream);
    fc_store_4(p + 4, _mm_unpackhi_ps(even, odd), stream);
}
#else
FC_INLINE int fc_worth_streaming(size_t bytes) {
    (void)bytes;
    return 0;
}
FC_INLINE void fc_stream_end(void) {}
#endif

#endif
