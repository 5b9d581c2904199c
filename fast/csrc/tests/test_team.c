/*
 * The team (clauses TEAM-*): every chunk once, whatever the team's size, the number of chunks and who else is at it; chains
 * and their violations; nesting, several dispatchers, forks, one-shot tasks, the end.  A first argument is the number of
 * dispatches (default 20,000; a run under ThreadSanitizer takes a million).  FUCINA_TESTS_WITHOUT_FORKS leaves the forks
 * out: QEMU's user mode aborts in the child of a process that has threads.
 */
#define _GNU_SOURCE
#include "core/environment.h"
#include "fucina.h"
#include "team/bulk.h"
#include "team/team.h"
#include "tests/check.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 700 };

static uint64_t next(uint64_t *seed) {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* -- chunks */
struct counts {
    struct fc_team *team;
    size_t chunks, nested;
    _Atomic unsigned inner;
    unsigned char ran[MOST]; /* written by whoever runs the chunk and read after the join: no atomics, so the join is tested */
};

static void count_inner(void *context, size_t chunk) {
    (void)chunk;
    atomic_fetch_add(&((struct counts *)context)->inner, 1);
}

static void count(void *context, size_t chunk) {
    struct counts *counts = context;
    counts->ran[chunk]++;
    if (counts->nested && chunk % counts->nested == 0) {
        /* on this team, which is busy, and on the process's; a chunk that runs serially is in no dispatch */
        const int outcome = fc_team_chunks(counts->team, 3, count_inner, counts);
        CHECK(outcome == FC_TEAM_SERIAL || !fc_team_inside(), "a nested dispatch went parallel");
        fc_team_run(2, count_inner, counts);
    }
}

static void check_counts(struct counts *counts, const char *what) {
    size_t wrong = 0, nested = 0;
    for (size_t i = 0; i < MOST; i++) wrong += counts->ran[i] != (i < counts->chunks);
    for (size_t i = 0; counts->nested && i < counts->chunks; i++) nested += i % counts->nested == 0;
    CHECK(wrong == 0, "%s: %zu of %zu chunks did not run once", what, wrong, counts->chunks);
    CHECK(atomic_load(&counts->inner) == 5 * nested, "%s: %u inner chunks", what, atomic_load(&counts->inner));
}

static void dispatch(struct fc_team *team, uint64_t *seed, const char *what) {
    static _Thread_local struct counts counts;
    memset(&counts, 0, sizeof counts);
    counts.team = team;
    counts.chunks = next(seed) % 4 ? next(seed) % 9 : next(seed) % MOST;
    counts.nested = next(seed) % 8 ? 0 : 1 + next(seed) % 5;
    fc_team_chunks(team, counts.chunks, count, &counts);
    check_counts(&counts, what);
}

/* -- chains: task i of a random graph waits for some earlier ones; the last of them to end enqueues it */
enum { NODES = 200 };
struct graph {
    _Atomic int waits[NODES];
    int before[NODES][3], ran[NODES], fault; /* fault: 1 enqueue task 5 twice, 2 never enqueue task 7 */
    size_t nodes, initial;
    _Atomic int twice;
};

static void visit(void *context, size_t index, struct fc_chain *chain) {
    struct graph *graph = context;
    graph->ran[index]++;
    for (size_t i = graph->initial; i < graph->nodes; i++)
        for (int k = 0; k < 3; k++)
            if (graph->before[i][k] == (int)index && atomic_fetch_sub(&graph->waits[i], 1) == 1) {
                int ready = 1;
                for (int q = 0; q < 3; q++) ready &= graph->ran[graph->before[i][q]] == 1;
                CHECK(ready, "task %zu became runnable early", i);
                if (graph->fault != 2 || i != 7) CHECK(fc_chain_enqueue(chain, i) == FC_CHAIN_QUEUED, "enqueue");
                if (graph->fault == 1 && i == 5 && fc_chain_enqueue(chain, i) == FC_CHAIN_TWICE) atomic_fetch_add(&graph->twice, 1);
            }
    CHECK(fc_chain_enqueue(chain, graph->nodes) == FC_CHAIN_RANGE, "range");
}

static void chain(struct fc_team *team, uint64_t *seed, int fault) {
    static _Thread_local struct graph graph;
    struct fc_chain_report report;
    memset(&graph, 0, sizeof graph);
    graph.nodes = fault ? 20 : 1 + next(seed) % NODES;
    graph.initial = fault ? 3 : 1 + next(seed) % graph.nodes;
    graph.fault = fault;
    for (size_t i = graph.initial; i < graph.nodes; i++) {
        graph.waits[i] = 3;
        for (int k = 0; k < 3; k++) graph.before[i][k] = (int)(next(seed) % i);
    }
    if (fault == 2) /* what waits for the missing one would be missing too */
        for (size_t i = 8; i < graph.nodes; i++)
            for (int k = 0; k < 3; k++) graph.before[i][k] = k;
    const int outcome = fc_team_chained(team, graph.nodes, graph.initial, visit, &graph, &report);
    if (outcome == FC_TEAM_SERIAL) {
        CHECK(fc_team_workers(team) == 0, "the team was not there");
        return;
    }
    CHECK(outcome == FC_TEAM_PARALLEL, "outcome %d", outcome);
    size_t wrong = 0;
    for (size_t i = 0; i < graph.nodes; i++) wrong += graph.ran[i] != !(fault == 2 && i == 7);
    CHECK(wrong == 0, "%zu of %zu tasks did not run once", wrong, graph.nodes);
    const int expected = fault == 1 ? FC_CHAIN_TWICE : fault == 2 ? FC_CHAIN_MISSING : FC_CHAIN_QUEUED;
    CHECK(report.violation == expected, "violation %d", report.violation);
    CHECK(!fault || report.index == (fault == 1 ? 5 : 7), "index %zu", report.index);
    CHECK(fc_chain_enqueue(report.chain, 0) == FC_CHAIN_OVER, "enqueue after the end");
    fc_chain_free(report.chain);
    CHECK(graph.twice == (fault == 1), "enqueue said so");
}

/* -- the environment of tasks */
static void look(void *context, size_t chunk) {
    const fc_environment found = fc_environment_enter();
    int *wrong = context;
#if defined(__x86_64__)
    wrong[chunk] = (found & FC_CSR_CONTROL) != FC_CSR_DEFAULT;
    _mm_setcsr(0x9fc0 | 0x2000); /* and leave it bad for the next chunk */
    if (chunk % 3) _mm_setcsr(FC_CSR_DEFAULT);
#else
    (void)found, (void)wrong, (void)chunk;
#endif
}

static void environments(void) {
#if defined(__x86_64__)
    int wrong[64] = {0}, sum = 0;
    struct fc_team *team = fc_team_open(3);
    _mm_setcsr(0x9fc0); /* the workers are born into this */
    fc_team_chunks(team, 64, look, wrong);
    CHECK(_mm_getcsr() == 0x9fc0, "the caller's control word became %x", _mm_getcsr());
    fc_team_free(team);
    _mm_setcsr(FC_CSR_DEFAULT);
    for (int i = 0; i < 64; i++) sum += wrong[i];
    CHECK(sum == 0, "%d chunks ran in another environment", sum);
#endif
}

/* -- forks */
static void use_after_fork(struct fc_team *team, uint64_t *seed) {
    CHECK(fc_team_take(team) && team->started == 0, "the child's team is not afresh");
    fc_team_give(team);
    /* the sanitizers' own locks do not outlive the fork of a process that has threads: none is started in its child */
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
    for (int i = 0; i < 20; i++) dispatch(team, seed, "child");
#else
    (void)seed;
#endif
}

static void fork_and_check(struct fc_team *team, uint64_t *seed) {
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        check_failures = 0;
        use_after_fork(team, seed);
        fc_team_shut();
        fc_team_free(team);
        _exit(check_failures != 0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0, "child ended with %d", status);
}

struct forking {
    pthread_t main;
    _Atomic int children, parents;
};
/* Forks in the chunk of the dispatcher and in one of a worker: the dispatcher waits until a worker is there. */
static void fork_inside(void *context, size_t chunk) {
    struct forking *forking = context;
    const int dispatcher = pthread_equal(pthread_self(), forking->main);
    struct timespec pause = {0, 1000000};
    if (chunk == 0) {
        for (int i = 0; i < 2000 && !atomic_load(&forking->parents); i++) nanosleep(&pause, NULL);
        return;
    }
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        alarm(30);
        if (dispatcher) _exit(0);
        return; /* on the worker's thread: nobody waits for it, and the process must end by itself */
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0, "child of a task ended with %d", status);
    atomic_fetch_add(&forking->parents, 1);
}

/* Fork in the dispatcher's first chunk while a worker holds another: that one is lost in the child, which must be told. */
static void fork_first(void *context, size_t chunk) {
    struct forking *forking = context;
    struct timespec pause = {0, 1000000};
    if (chunk) {
        atomic_fetch_add(&forking->parents, 1);
        for (int i = 0; i < 2000 && !atomic_load(&forking->children); i++) nanosleep(&pause, NULL);
        return;
    }
    for (int i = 0; i < 2000 && !atomic_load(&forking->parents); i++) nanosleep(&pause, NULL);
    fflush(stdout);
    if (fork() == 0) alarm(30);
    atomic_fetch_add(&forking->children, 1);
}

static void forks(void) {
    struct forking forking = {.main = pthread_self()};
    if (fc_max_threads() == 1) return;
    struct fc_team *team = fc_team_open(1);
    fc_team_chunks(team, 2, fork_inside, &forking);
    CHECK(atomic_load(&forking.parents) == 1, "no fork");
    fc_team_free(team);
    team = fc_team_open(1);
    memset(&forking, 0, sizeof forking);
    const pid_t me = getpid();
    const int outcome = fc_team_chunks(team, 2, fork_first, &forking);
    if (getpid() != me) {
        uint64_t seed = 5;
        int bad = outcome != FC_TEAM_FORKED;
        check_failures = 0;
        use_after_fork(team, &seed);
        _exit(bad || check_failures || !fc_team_free(team));
    }
    CHECK(outcome == FC_TEAM_PARALLEL, "outcome %d", outcome);
    int status = -1;
    wait(&status);
    CHECK(status == 0, "child ended with %d", status);
    fc_team_free(team);
}

/* -- one task beside the caller */
static void mark(void *context, size_t chunk) { *(size_t *)context += chunk + 1; }

static void leave(void *context, size_t chunk) {
    (void)chunk;
    atomic_fetch_add((_Atomic unsigned *)context, 1);
}

static void one_shots(int times) {
    struct fc_team *worker = fc_team_open(1);
    size_t marks = 0;
    for (int i = 0; i < times; i++) {
        CHECK(fc_team_begin(worker, mark, &marks) == 1, "begin");
        CHECK(fc_team_begin(worker, mark, &marks) == 0, "begin while one runs");
        CHECK(fc_team_close(worker) == 0, "close while one runs");
        if (i % 3 == 0) nanosleep(&(struct timespec){0, 20000}, NULL);
        CHECK(fc_team_finish(worker) == FC_TEAM_PARALLEL, "finish");
    }
    CHECK(marks == (size_t)times, "%zu marks", marks);
    static _Atomic unsigned left;
    for (int i = 0; i < 50; i++) { /* begun, and nobody comes for it */
        struct fc_team *dropped = fc_team_open(1);
        if (i % 2) {
            fc_team_begin(dropped, mark, &marks);
            fc_team_finish(dropped);
        }
        CHECK(fc_team_begin(dropped, leave, &left) == 1, "begin");
        if (i % 3 == 0) nanosleep(&(struct timespec){0, 100000}, NULL);
        fc_team_abandon(dropped, 0);
    }
    if (fc_max_threads() > 1)
        for (int i = 0; i < 5000 && atomic_load(&left) < 50; i++) nanosleep(&(struct timespec){0, 1000000}, NULL);
    CHECK(fc_max_threads() == 1 || atomic_load(&left) == 50, "%u of 50 tasks ran that nobody waits for", atomic_load(&left));
    CHECK(fc_team_free(worker) == 1, "close");
}

/* -- a team whose threads have to be asked for: it starts them when it is told to, and without them does the same work */
static _Atomic unsigned arrivals, departures;
static void *arrive(void) {
    nanosleep(&(struct timespec){0, 2000000}, NULL);
    atomic_fetch_add(&arrivals, 1);
    return &arrivals;
}
static void depart(void *arrived) {
    CHECK(arrived == &arrivals, "what arrived does not leave");
    atomic_fetch_add(&departures, 1);
}

static void hosted(uint64_t *seed, int forking) {
    const struct fc_team_host host = {arrive, depart};
    size_t marks = 0, threads = 0;
    struct fc_team *team = fc_team_open(3);
    for (int i = 0; i < 3; i++) {
        fc_team_start(team, &host);
        threads = fc_team_threads(team);
        CHECK(threads == fc_team_workers(team) && atomic_load(&arrivals) == threads, "not all have arrived");
        dispatch(team, seed, "hosted");
        chain(team, seed, 0);
    }
    fflush(stdout);
    const pid_t child = forking ? fork() : -1;
    if (child == 0) { /* no thread here, and none comes unasked */
        alarm(60);
        check_failures = 0;
        for (int i = 0; i < 20; i++) dispatch(team, seed, "hosted, without threads");
        for (int fault = 0; fault < 3; fault++) chain(team, seed, fault);
        for (int i = 0; i < 3; i++) {
            CHECK(fc_team_begin(team, mark, &marks) == 1 && marks == (size_t)i, "begun without threads");
            CHECK(fc_team_finish(team) == FC_TEAM_PARALLEL && marks == (size_t)i + 1, "who waits did not run it");
        }
        CHECK(fc_team_threads(team) == 0 && atomic_load(&arrivals) == threads, "a thread came unasked");
        fc_team_free(team);
        CHECK(atomic_load(&departures) == 0, "a thread left that is not there");
        _exit(check_failures != 0);
    }
    int status = -1;
    if (forking) waitpid(child, &status, 0);
    CHECK(!forking || status == 0, "child ended with %d", status);
    CHECK(fc_team_free(team) == 1 && atomic_load(&departures) == threads, "%u of %zu have left", atomic_load(&departures), threads);
}

/* -- several dispatchers */
struct dispatcher {
    struct fc_team *team;
    uint64_t seed;
    unsigned long times;
};
static void *dispatcher_main(void *argument) {
    struct dispatcher *d = argument;
    for (unsigned long i = 0; i < d->times; i++) dispatch(d->team, &d->seed, "two dispatchers");
    return NULL;
}

struct sum {
    const uint32_t *in;
    uint32_t *out;
};
static void add_one(void *context, size_t start, size_t n) {
    const struct sum *sum = context;
    for (size_t i = start; i < start + n; i++) sum->out[i] = sum->in[i] + 1;
}

static void bulks(void) {
    enum { N = 100003 };
    static uint32_t in[N], out[N];
    for (size_t i = 0; i < N; i++) in[i] = (uint32_t)(i * 7);
    const size_t sizes[] = {1, 2, 3, 5, 8};
    for (size_t s = 0; s < 5; s++) {
        fc_set_max_threads(sizes[s]);
        CHECK(fc_cpu_thread_count(64) == sizes[s], "%zu threads", sizes[s]);
        for (size_t n = 0; n < N; n = n * 3 + 1) {
            size_t wrong = 0;
            memset(out, 0, sizeof out);
            struct sum sum = {in, out};
            fc_bulk(n, 100, 64, add_one, &sum);
            for (size_t i = 0; i < N; i++) wrong += out[i] != (i < n ? in[i] + 1 : 0);
            CHECK(wrong == 0, "%zu elements of %zu wrong, %zu threads", wrong, n, sizes[s]);
        }
    }
}

/* -- the switch of tests: somebody else has a part of every call that is large enough, though he comes late */
struct late {
    pthread_t main;
    _Atomic unsigned pieces, others;
};
static void late_piece(void *context, size_t start, size_t n) {
    struct late *late = context;
    (void)start;
    atomic_fetch_add(&late->pieces, (unsigned)n);
    if (pthread_equal(pthread_self(), late->main)) return;
    nanosleep(&(struct timespec){0, 2000000}, NULL);
    atomic_fetch_add(&late->others, 1);
}

static void always_shared(void) {
    enum { TIMES = 40 };
    const uint64_t before = fc_bulk_shared_calls();
    unsigned alone = 0;
    fc_set_max_threads(2);
    fc_bulk_share_always(1);
    for (int i = 0; i < TIMES; i++) {
        struct late late = {.main = pthread_self()};
        fc_bulk(64, 2, 1, late_piece, &late);
        CHECK(atomic_load(&late.pieces) == 64, "%u pieces", atomic_load(&late.pieces));
        alone += !atomic_load(&late.others);
    }
    struct late late = {.main = pthread_self()};
    fc_bulk(1, 2, 1, late_piece, &late);
    fc_bulk_share_always(0);
    CHECK(atomic_load(&late.pieces) == 1 && !atomic_load(&late.others), "a call that is too small was shared");
    if (fc_max_threads() == 1) return;
    CHECK(alone == 0, "%u calls by one thread alone", alone);
    CHECK(fc_bulk_shared_calls() - before == TIMES, "%u calls shared", (unsigned)(fc_bulk_shared_calls() - before));
}

/* -- after a loss the caller works alone for a while */
struct watched {
    pthread_t main;
    _Atomic unsigned others;
    long delay; /* nanoseconds that a piece takes another thread */
};
static void watched_piece(void *context, size_t start, size_t n) {
    struct watched *watched = context;
    (void)start, (void)n;
    if (pthread_equal(pthread_self(), watched->main)) {
        nanosleep(&(struct timespec){0, 50000}, NULL);
    } else {
        atomic_fetch_add(&watched->others, 1);
        nanosleep(&(struct timespec){0, watched->delay}, NULL);
    }
}

static unsigned others_in_one(struct watched *watched) {
    atomic_store(&watched->others, 0);
    fc_bulk(64, 2, 1, watched_piece, watched);
    return atomic_load(&watched->others);
}

/* For longer than the longest rest. */
static int others_soon(struct watched *watched) {
    for (int i = 0; i < 50000; i++)
        if (others_in_one(watched)) return 1;
    return 0;
}

static void rests(void) {
    struct watched watched = {.main = pthread_self(), .delay = 50000};
    if (fc_schedulable_cores() == 1 || fc_max_threads() == 1) return; /* a team of two is taken at its word, or is none */
    fc_set_max_threads(2);
    CHECK(others_soon(&watched), "nobody came");
    /* one piece of the other thread takes longer than the whole work here; on a machine at work so may a call after it,
       longer than the rest, or the work here: then once more */
    unsigned alone = 0;
    for (int attempt = 0; attempt < 20 && alone < 10; attempt++) {
        watched.delay = 200000000;
        CHECK(others_soon(&watched), "nobody came, slow");
        watched.delay = 50000;
        for (alone = 0; alone < 10 && !others_in_one(&watched); alone++) {}
    }
    CHECK(alone == 10, "no rest after a loss");
    CHECK(others_soon(&watched), "the rest does not end");
}

static void knobs(void) {
    const char *const bad[] = {"", " ", "abc", "-1", "+1", "1e3", "99999999999999999999", "4 ", " 4", "4,3,2", "0x4"};
    uint64_t value;
    uint32_t budget;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        setenv("FUCINA_TEST_KNOB", bad[i], 1);
        setenv("FUCINA_SPIN_BUDGET", bad[i], 1);
        CHECK(!fc_env_positive("FUCINA_TEST_KNOB", &value), "'%s' counts", bad[i]);
        CHECK(!fc_env_spin_budget(&budget), "'%s' counts", bad[i]);
    }
    setenv("FUCINA_TEST_KNOB", "0", 1);
    CHECK(!fc_env_positive("FUCINA_TEST_KNOB", &value), "0 counts");
    setenv("FUCINA_TEST_KNOB", "0018446744073709551615", 1);
    CHECK(fc_env_positive("FUCINA_TEST_KNOB", &value) && value == UINT64_MAX, "largest");
    setenv("FUCINA_SPIN_BUDGET", "0", 1);
    CHECK(fc_env_spin_budget(&budget) && budget == 0, "0 is a budget");
    setenv("FUCINA_SPIN_BUDGET", "4294967295", 1);
    CHECK(fc_env_spin_budget(&budget) && budget == UINT32_MAX, "largest budget");
    setenv("FUCINA_SPIN_BUDGET", "4294967296", 1);
    CHECK(!fc_env_spin_budget(&budget), "beyond the largest budget");
    unsetenv("FUCINA_SPIN_BUDGET");
    unsetenv("FUCINA_TEST_KNOB");
    CHECK(!fc_env_positive("FUCINA_TEST_KNOB", &value), "unset");
}

int main(int argc, char **argv) {
    const unsigned long times = argc > 1 && strcmp(argv[1], "quick") ? strtoul(argv[1], NULL, 10) : argc > 1 ? 300 : 20000;
    uint64_t seed = 88172645463325252u;
    alarm(times > 100000 ? 3000 : 300); /* a deadlock ends the program */
    knobs();
    environments();
    const int forking = getenv("FUCINA_TESTS_WITHOUT_FORKS") == NULL;
    if (forking) forks();
    one_shots((int)(times / 20));
    hosted(&seed, forking);
    const size_t workers[] = {0, 1, 3, 7, 63};
    for (size_t w = 0; w < 5; w++) {
        const char *const budgets[] = {"0", "50", ""};
        for (int b = 0; b < 3; b++) {
            setenv("FUCINA_SPIN_BUDGET", budgets[b], 1);
            struct fc_team *team = fc_team_open(workers[w]);
            CHECK(team && fc_team_workers(team) == (workers[w] < fc_max_threads() ? workers[w] : fc_max_threads() - 1), "open");
            const unsigned long share = times / (workers[w] > 7 ? 200 : 12);
            for (unsigned long i = 0; i < share; i++) {
                dispatch(team, &seed, "one dispatcher");
                if (i % 8 == 0) chain(team, &seed, 0);
                if (i % 64 == 1) chain(team, &seed, 1);
                if (i % 64 == 2) chain(team, &seed, 2);
                if (forking && i % 1000 == 3) fork_and_check(team, &seed);
                if (i % 500 == 4) nanosleep(&(struct timespec){0, 3000000}, NULL); /* long enough to park */
            }
            struct dispatcher both[2] = {{team, seed, share / 4}, {team, seed + 1, share / 4}};
            pthread_t threads[2];
            for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, dispatcher_main, &both[i]);
            for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
            CHECK(fc_team_free(team) == 1, "close");
        }
    }
    unsetenv("FUCINA_SPIN_BUDGET");
    rests();
    always_shared();
    bulks();
    fc_team_shut();
    bulks(); /* after its end it starts again */
    fc_team_shut();
    return check_report();
}
