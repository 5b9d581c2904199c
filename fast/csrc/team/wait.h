/*
 * Waiting on a 32-bit word: spinning, and parking until another thread wakes the sleepers of the word.  On Linux the futex;
 * elsewhere (or with -DFC_NO_FUTEX) one lot of a mutex and a condition variable for all words.  A wait may end for no reason:
 * the caller looks at its word again.
 */
#ifndef FC_TEAM_WAIT_H
#define FC_TEAM_WAIT_H
#include <stdatomic.h>
#include <stdint.h>

typedef _Atomic uint32_t fc_word32;

enum { FC_WAIT_FOREVER = 0 };

/* Sleep while *word == expected, at most `nanoseconds` when that is not FC_WAIT_FOREVER. */
void fc_wait(fc_word32 *word, uint32_t expected, long nanoseconds);
/* Wake at most `count` of the threads that sleep on the word. */
void fc_wake(fc_word32 *word, uint32_t count);
/* In the child of a fork, where threads that slept or held the lot's mutex do not exist. */
void fc_wait_after_fork(void);

static inline void fc_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" : : : "memory"); /* yield takes no time on most cores */
#else
    __asm__ volatile("" : : : "memory");
#endif
}

#endif
