/* Parking: the futex, or where there is none a mutex and a condition variable. */
#define _GNU_SOURCE
#include "team/wait.h"
#include <limits.h>
#include <time.h>
#if defined(__linux__) && !defined(FC_NO_FUTEX)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#if defined(SYS_futex) && !defined(FC_NO_FUTEX)
enum { WAIT_PRIVATE = 0 | 128, WAKE_PRIVATE = 1 | 128 }; /* <linux/futex.h> is not everywhere */

void fc_wait(fc_word32 *word, uint32_t expected, long nanoseconds) {
    struct timespec most = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    syscall(SYS_futex, word, WAIT_PRIVATE, expected, nanoseconds == FC_WAIT_FOREVER ? NULL : &most, NULL, 0);
}

void fc_wake(fc_word32 *word, uint32_t count) {
    syscall(SYS_futex, word, WAKE_PRIVATE, count < INT_MAX ? (int)count : INT_MAX, NULL, NULL, 0);
}

void fc_wait_after_fork(void) {}
#else
#include <pthread.h>

static pthread_mutex_t lot = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t woken = PTHREAD_COND_INITIALIZER;

void fc_wait(fc_word32 *word, uint32_t expected, long nanoseconds) {
    struct timespec until;
    if (nanoseconds != FC_WAIT_FOREVER) {
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += nanoseconds % 1000000000;
        until.tv_sec += nanoseconds / 1000000000 + until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
    }
    pthread_mutex_lock(&lot);
    if (atomic_load(word) == expected) {
        if (nanoseconds == FC_WAIT_FOREVER)
            pthread_cond_wait(&woken, &lot);
        else
            pthread_cond_timedwait(&woken, &lot, &until);
    }
    pthread_mutex_unlock(&lot);
}

void fc_wake(fc_word32 *word, uint32_t count) {
    (void)word, (void)count;
    pthread_mutex_lock(&lot); /* so that no thread is between its look at the word and its sleep */
    pthread_cond_broadcast(&woken);
    pthread_mutex_unlock(&lot);
}

void fc_wait_after_fork(void) {
    lot = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    woken = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
}
#endif
