/* Checks of the C tests: each one counts, a failed one is reported with its place, and main ends in check_report(). */
#ifndef FC_TESTS_CHECK_H
#define FC_TESTS_CHECK_H
#include <stdio.h>

static _Atomic unsigned long check_count, check_failures; /* threads check too */

#define CHECK(condition, ...)                                                                                               \
    do {                                                                                                                    \
        check_count++;                                                                                                      \
        if (!(condition) && check_failures++ < 20) {                                                                        \
            printf("%s:%d: %s: ", __FILE__, __LINE__, #condition);                                                          \
            printf(__VA_ARGS__);                                                                                            \
            putchar('\n');                                                                                                  \
            fflush(stdout);                                                                                                 \
        }                                                                                                                   \
    } while (0)

/* A program that checked nothing has not passed. */
static int check_report(void) {
    printf("%lu checks, %lu failed\n", (unsigned long)check_count, (unsigned long)check_failures);
    return check_failures || !check_count;
}

#endif
