/*
 * FC_INLINE: a step of a kernel.  In a build for speed it is inlined for sure, which turns constant dtypes and modes into
 * straight code; without optimisation or under a sanitizer that would only multiply the code.
 */
#ifndef FC_INLINE_H
#define FC_INLINE_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FC_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define FC_SANITIZED
#endif

#if defined(__OPTIMIZE__) && !defined(FC_SANITIZED)
#define FC_INLINE static inline __attribute__((always_inline))
#else
#define FC_INLINE static inline
#endif

#endif
