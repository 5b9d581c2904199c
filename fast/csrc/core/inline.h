/*
 * FC_INLINE: a step of a kernel.  In an optimised build it is inlined for sure, which turns constant dtypes and modes into
 * straight code; without optimisation that would only multiply the code.
 */
#ifndef FC_INLINE_H
#define FC_INLINE_H

#ifdef __OPTIMIZE__
#define FC_INLINE static inline __attribute__((always_inline))
#else
#define FC_INLINE static inline
#endif

#endif
