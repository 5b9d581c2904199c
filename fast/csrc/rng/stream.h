/*
 * Streaming stores: outputs larger than the caches are written past them, which saves reading their lines first.
 */
#ifndef FC_RNG_STREAM_H
#define FC_RNG_STREAM_H
#include "rng/word.h"

enum { FC_STREAM_BYTES = 4 << 20 }; /* from here on; the second-level caches of today's machines are smaller */

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
