/* Teams: workers, dispatch, join, fork.  How it works is told in team.h. */
#define _GNU_SOURCE
#include "team/team.h"
#include "core/environment.h"
#include "core/fault.h"
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#if defined(__APPLE__)
#include <pthread/qos.h>
#endif

enum { INDEX_BITS = 24 };
#define INDEX_MASK (((uint64_t)1 << INDEX_BITS) - 1)

static _Thread_local int inside;
static _Thread_local uint32_t participant; /* of its team; 0 is who dispatches */
static char anyone;                        /* the dispatcher of a task that was begun and that nobody waits for yet */

int fc_team_inside(void) { return inside; }
int fc_team_worker(void) { return participant != 0; }

struct fc_trace *fc_team_trace(struct fc_team *team) { return team->profiling ? &team->traces[participant] : NULL; }

uint64_t fc_team_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* -- fork: the child has the thread that forked and no other, so every team there starts afresh */
static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t registered = PTHREAD_ONCE_INIT;
static struct fc_team *teams;

static void before_fork(void) { pthread_mutex_lock(&registry); }
static void in_parent(void) { pthread_mutex_unlock(&registry); }

/* Clause: TEAM-FORK-1 */
static void in_child(void) {
    fc_wait_after_fork();
    for (struct fc_team *t = teams; t; t = t->next) {
        atomic_store(&t->epoch, atomic_load(&t->epoch) + 1);
        t->started = FC_PLANT(FORK_KEEPS_TEAM, 0, t->started);
        atomic_store(&t->sleepers, 0);
        atomic_store(&t->stop, 0);
        /* a dispatcher that forked in a task of its own still has the team, and what was begun can be finished by anyone; any
           other dispatcher is gone */
        const void *const by = atomic_load(&t->dispatcher);
        if (by != &inside && by != &anyone) atomic_store(&t->busy, 0);
    }
    pthread_mutex_unlock(&registry);
}

static void watch_forks(void) { pthread_atfork(before_fork, in_parent, in_child); }

static void enlist(struct fc_team *team) {
    pthread_once(&registered, watch_forks);
    pthread_mutex_lock(&registry);
    team->next = teams;
    if (teams) teams->previous = team;
    teams = team;
    pthread_mutex_unlock(&registry);
}

static void strike_off(struct fc_team *team) {
    pthread_mutex_lock(&registry);
    if (team->previous)
        team->previous->next = team->next;
    else
        teams = team->next;
    if (team->next) team->next->previous = team->previous;
    pthread_mutex_unlock(&registry);
}

/* -- claiming: the same for the dispatcher and for workers */

/* Run a claim: chunks claim * stride to (claim + 1) * stride; returns how many.  Clauses: TEAM-ENV-1, TEAM-CHUNKS-1 */
static size_t run_claim(struct fc_team *team, fc_team_task run, void *context, uint32_t claim) {
    const size_t stride = atomic_load_explicit(&team->stride, memory_order_relaxed);
    const size_t chunks = atomic_load_explicit(&team->chunks, memory_order_relaxed), first = claim * stride;
    const size_t last = chunks - first < stride ? chunks : first + stride;
    for (size_t chunk = first; chunk < last; chunk++) {
        if (!FC_PLANTED(ENVIRONMENT_OF_CREATOR)) (void)fc_environment_enter(); /* whatever the creator, or a task, has left */
        run(context, chunk);
    }
    return last - first;
}

void fc_team_serial(size_t chunks, fc_team_task run, void *context) {
    for (size_t chunk = 0; chunk < chunks; chunk++) {
        if (!FC_PLANTED(ENVIRONMENT_OF_CREATOR)) (void)fc_environment_enter();
        run(context, chunk);
    }
}

/* Claim and run until nothing is left, as a worker until a fork in a task leaves it as the only thread of a child; returns how
   many claims were run.  `traced` is NULL unless claims are to be traced, `epoch` is that of a worker.  Clause: TEAM-FORK-2 */
static uint32_t work(struct fc_team *team, struct fc_trace *traced, const uint32_t *epoch) {
    uint32_t count = 0;
    size_t ran = 0;
    uint64_t ticket = atomic_load_explicit(&team->ticket, memory_order_acquire);
    for (;;) {
        /* These may already be those of a later dispatch.  Then the ticket has been closed before the write that was read
           here, and the swap fails. */
        const uint32_t claims = atomic_load_explicit(&team->claims, memory_order_acquire);
        fc_team_task run = atomic_load_explicit(&team->run, memory_order_acquire);
        void *context = atomic_load_explicit(&team->context, memory_order_acquire);
        const uint32_t index = (uint32_t)(ticket & INDEX_MASK);
        if (index >= claims) return count;
        if (!atomic_compare_exchange_weak_explicit(&team->ticket, &ticket, ticket + 1, memory_order_acq_rel, memory_order_acquire)) continue;
        fc_trace_begin(traced);
        if (!FC_PLANTED(LAST_CHUNK_LOST) || index + 1 < claims) ran = run_claim(team, run, context, index);
        if (FC_PLANTED(CHUNK_TWICE) && index == 1) run_claim(team, run, context, index);
        count++;
        if (epoch && atomic_load_explicit(&team->epoch, memory_order_relaxed) != *epoch) return count;
        fc_trace_end(traced, ran);
        ticket++;
    }
}

/* -- workers */

/* macOS: away from the efficiency cores, on which every join would wait for the slowest */
static void prefer_performance_cores(void) {
#if defined(__APPLE__)
    static _Thread_local int done;
    if (!done) pthread_set_qos_class_self_np(QOS_CLASS_USER_INITIATED, 0);
    done = 1;
#endif
}

/* The logical CPU of this thread, -1 where that cannot be asked. */
static int this_cpu(void) {
#if defined(__linux__)
    return sched_getcpu();
#else
    return -1;
#endif
}

/* Whether this worker was woken on the CPU of the dispatcher, which cannot run while the worker spins. */
static int in_the_way(struct fc_team *team) {
    const int home = atomic_load_explicit(&team->home, memory_order_relaxed);
    return home >= 0 && home == this_cpu();
}

/* Wait until the bell differs from what was last heard: spin, then park.  Clause: TEAM-SPIN-1 */
static uint32_t listen(struct fc_team *team, uint32_t heard) {
    uint32_t now = heard;
    for (uint32_t turn = in_the_way(team) ? 0 : team->spin; turn; turn--) {
        now = atomic_load_explicit(&team->bell, memory_order_acquire);
        if (now != heard) return now;
        fc_pause();
    }
    atomic_fetch_add(&team->sleepers, 1);
    /* sequentially consistent on both sides: either this look sees the bell, or the dispatcher sees the sleeper */
    while ((now = atomic_load(&team->bell)) == heard) fc_wait(&team->bell, heard, FC_WAIT_FOREVER);
    atomic_fetch_sub(&team->sleepers, 1);
    return now;
}

/* The last of two to leave an abandoned team takes it along. */
static void leave_abandoned(struct fc_team *team) {
    if (atomic_exchange(&team->left, 1)) free(team);
}

static void *worker_main(void *argument) {
    struct fc_seat *seat = argument;
    struct fc_team *team = seat->team;
    const uint32_t epoch = seat->epoch;
    uint32_t heard = seat->bell;
    inside = 1;
    participant = seat->index;
    prefer_performance_cores();
    const struct fc_team_host *host = seat->host; /* the team may go before this thread does */
    void *arrived = NULL;
    if (host) {
        arrived = host->arrive();
        atomic_fetch_add(&team->born, 1);
        fc_wake(&team->born, 1);
    }
    for (;;) {
        heard = listen(team, heard);
        if (atomic_load(&team->stop)) {
            if (!atomic_load(&team->abandoned)) break;
            work(team, NULL, &epoch); /* what was begun, if this is the first that is heard of it */
            if (atomic_load(&team->epoch) != epoch) return NULL;
            leave_abandoned(team);
            break;
        }
        struct fc_trace *trace = fc_team_trace(team);
        fc_trace_come(trace);
        const uint32_t count = work(team, trace && !team->graph ? trace : NULL, &epoch);
        /* forked in a task: this is the child, its only thread, and the dispatcher is not there */
        if (atomic_load(&team->epoch) != epoch) return NULL;
        if (count) atomic_fetch_add_explicit(&team->done, count, memory_order_release);
        fc_trace_go(trace);
        if (trace) atomic_fetch_add_explicit(&team->arrived, 1, memory_order_release);
    }
    if (host) host->leave(arrived);
    return NULL;
}

/* Signals belong to the program's own threads; those that a fault of the thread itself raises stay open. */
static void block_signals(sigset_t *before) {
    sigset_t all;
    const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGPROF};
    sigfillset(&all);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) sigdelset(&all, own[i]);
    pthread_sigmask(SIG_SETMASK, &all, before);
}

/* Clause: TEAM-SPIN-1 */
void fc_team_pace(struct fc_team *team, size_t cores) {
    const int over = team->workers + 1 > cores;
    uint32_t budget;
    team->spin = fc_env_spin_budget(&budget) ? budget : over ? 0 : FC_SPIN;
    team->join_spin = over ? FC_JOIN_SPIN_SHORT : FC_JOIN_SPIN;
}

/* Start what is missing; with fewer threads than wanted the team does the same work.  Clause: TEAM-LAZY-1 */
static void start(struct fc_team *team) {
    sigset_t before;
    pthread_attr_t attributes;
    if (team->started == team->workers) return;
    if (!team->ready) {
        fc_team_pace(team, fc_schedulable_cores());
        const char *profile = getenv("FUCINA_POOL_PROFILE");
        team->profiling = profile && profile[0] == '1' && !profile[1];
        team->ready = 1;
    }
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, (size_t)8 << 20); /* musl's default is too small for Python tasks */
    block_signals(&before);
    const size_t already = team->started;
    atomic_store(&team->born, 0);
    while (team->started < team->workers) {
        struct fc_seat *seat = &team->seats[team->started];
        seat->team = team;
        seat->index = (uint32_t)team->started + 1;
        seat->epoch = atomic_load(&team->epoch);
        seat->bell = atomic_load(&team->bell);
        seat->host = team->host;
        if (pthread_create(&seat->thread, &attributes, worker_main, seat) != 0) break;
        team->started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    for (uint32_t born; team->host && (born = atomic_load(&team->born)) < team->started - already;)
        fc_wait(&team->born, born, FC_WAIT_FOREVER);
}

/* -- one dispatcher at a time */

int fc_team_take(struct fc_team *team) {
    if (atomic_load_explicit(&team->busy, memory_order_relaxed) || atomic_exchange(&team->busy, 1)) return 0;
    atomic_store(&team->dispatcher, &inside);
    return 1;
}

void fc_team_give(struct fc_team *team) {
    atomic_store(&team->dispatcher, NULL);
    atomic_store(&team->busy, 0);
}

void fc_team_start(struct fc_team *team, const struct fc_team_host *host) {
    if (!fc_team_take(team)) return;
    team->host = host;
    start(team);
    fc_team_give(team);
}

static void ring(struct fc_team *team, size_t wanted) {
    atomic_fetch_add(&team->bell, 1);
    const uint32_t sleepers = atomic_load(&team->sleepers);
    if (sleepers) atomic_store_explicit(&team->home, this_cpu(), memory_order_relaxed);
    if (sleepers) fc_wake(&team->bell, wanted < sleepers && !team->profiling ? (uint32_t)wanted : UINT32_MAX);
}

/* Wait until the workers have completed all claims that were not run here.  Clause: TEAM-JOIN-1 */
static int join(struct fc_team *team, uint32_t awaited, uint32_t epoch) {
    uint32_t window = team->join_spin, done;
    for (;;) {
        for (uint32_t turn = window; turn; turn--) {
            done = atomic_load_explicit(&team->done, memory_order_acquire);
            if (done == awaited) break;
            if (atomic_load_explicit(&team->epoch, memory_order_relaxed) != epoch) return FC_TEAM_FORKED;
            fc_pause();
        }
        done = atomic_load_explicit(&team->done, memory_order_acquire);
        if (done == awaited) return FC_TEAM_PARALLEL;
        if (atomic_load(&team->epoch) != epoch) return FC_TEAM_FORKED;
        fc_wait(&team->done, done, FC_JOIN_SLEEP); /* nobody wakes it: workers report by an addition and nothing else */
        window = FC_JOIN_SPIN_SHORT;
    }
}

/* Tell the workers what there is to do from claim `first` on.  The caller has the team. */
static void publish(struct fc_team *team, size_t chunks, fc_team_task run, void *context, uint32_t first) {
    const size_t stride = chunks / INDEX_MASK + 1;
    const uint32_t claims = (uint32_t)((chunks + stride - 1) / stride);
    const uint64_t dispatch = ((atomic_load_explicit(&team->ticket, memory_order_relaxed) >> INDEX_BITS) + 1) << INDEX_BITS;
    /* closed first: with the old ticket still there, a late worker could read the new number of claims and take one more */
    atomic_store_explicit(&team->ticket, dispatch | INDEX_MASK, memory_order_relaxed);
    atomic_store_explicit(&team->run, run, memory_order_release);
    atomic_store_explicit(&team->context, context, memory_order_release);
    atomic_store_explicit(&team->chunks, chunks, memory_order_release);
    atomic_store_explicit(&team->stride, stride, memory_order_release);
    atomic_store_explicit(&team->claims, claims, memory_order_release);
    atomic_store_explicit(&team->done, 0, memory_order_relaxed);
    atomic_store_explicit(&team->ticket, dispatch | first, memory_order_release);
    if (team->started) ring(team, claims - first);
}

int fc_team_dispatch(struct fc_team *team, size_t chunks, size_t graph, fc_team_task run, void *context) {
    if (!team->host) start(team);
    if (!team->started && !graph) return FC_TEAM_SERIAL; /* one who takes part in a chain is enough */
    prefer_performance_cores();
    const uint32_t epoch = atomic_load(&team->epoch);
    struct fc_trace *trace = fc_team_trace(team), *traced = graph ? NULL : trace;
    const uint64_t begin = trace ? fc_team_clock() : 0;
    if (trace) atomic_store(&team->arrived, 0);
    team->graph = graph; /* workers look while profiling only, when each of them is waited for */
    publish(team, chunks, run, context, 1);
    const int outer = inside;
    inside = 1;
    fc_trace_come(trace);
    const size_t ran = run_claim(team, run, context, 0);
    fc_trace_end(traced, ran);
    const uint32_t own = 1 + work(team, traced, NULL);
    fc_trace_go(trace);
    inside = outer;
    const uint32_t claims = atomic_load_explicit(&team->claims, memory_order_relaxed);
    /* the planted fault spares larger dispatches, chains among them: their memory goes when they return, and a worker would crash */
    const int missing = FC_PLANTED(JOIN_MISSING) && chunks == 2;
    const int outcome = missing ? FC_TEAM_PARALLEL : join(team, claims - own, epoch);
    if (trace && outcome == FC_TEAM_PARALLEL && atomic_load(&team->epoch) == epoch) {
        while (atomic_load_explicit(&team->arrived, memory_order_acquire) < team->started) fc_pause();
        fc_team_show(team, begin, fc_team_clock());
    }
    return outcome;
}

/* Clauses: TEAM-CHUNKS-1, TEAM-SERIAL-1, TEAM-ENV-1 */
int fc_team_chunks(struct fc_team *team, size_t chunks, fc_team_task run, void *context) {
    int outcome = FC_TEAM_SERIAL;
    const fc_environment caller = fc_environment_enter();
    if (chunks > 1 && team->workers && !inside && fc_team_take(team)) {
        outcome = fc_team_dispatch(team, chunks, 0, run, context);
        fc_team_give(team);
    }
    if (outcome == FC_TEAM_SERIAL) fc_team_serial(chunks, run, context);
    fc_environment_leave(caller);
    return outcome;
}

/* -- a task beside the caller's own work: a dispatch of one chunk that is joined later */

/* Clause: TEAM-ONESHOT-1 */
int fc_team_begin(struct fc_team *team, fc_team_task run, void *context) {
    if (!fc_team_take(team)) return 0;
    if (!team->host) start(team);
    team->begun = atomic_load(&team->epoch);
    if (team->profiling) atomic_store(&team->arrived, 0);
    atomic_store(&team->dispatcher, &anyone);
    publish(team, 1, run, context, 0);
    return 1;
}

void fc_team_await(struct fc_team *team) { atomic_store(&team->dispatcher, &inside); }

/* Clause: TEAM-ONESHOT-1 */
int fc_team_finish(struct fc_team *team) {
    const int outer = inside;
    const fc_environment caller = fc_environment_enter();
    fc_team_await(team);
    inside = 1;
    const uint32_t own = work(team, NULL, NULL); /* the worker has not come for it yet: why wait? */
    inside = outer;
    fc_environment_leave(caller);
    const int outcome = join(team, 1 - own, team->begun);
    if (team->profiling && outcome == FC_TEAM_PARALLEL)
        while (atomic_load_explicit(&team->arrived, memory_order_acquire) < team->started) fc_pause();
    fc_team_give(team);
    return outcome;
}

/* -- birth and end */

void fc_team_make(struct fc_team *team, size_t workers) {
    team->workers = workers < FC_MAX_THREADS ? workers : FC_MAX_THREADS - 1;
    atomic_store(&team->home, -1);
    enlist(team);
}

/* Clause: TEAM-END-1 */
void fc_team_end(struct fc_team *team) {
    team->ready = 0; /* the next start reads the knobs again */
    if (!team->started) return;
    atomic_store(&team->stop, 1);
    ring(team, UINT32_MAX);
    for (size_t i = 0; i < team->started; i++) pthread_join(team->seats[i].thread, NULL);
    team->started = 0;
    atomic_store(&team->stop, 0);
}

struct fc_team *fc_team_open(size_t workers) {
    struct fc_team *team = aligned_alloc(FC_LINE, (sizeof *team + FC_LINE - 1) / FC_LINE * FC_LINE);
    if (team) {
        *team = (struct fc_team){0};
        fc_team_make(team, workers);
    }
    return team;
}

/* Who ends a team keeps it taken: a dispatcher that comes late finds it in use and not gone. */
int fc_team_close(struct fc_team *team) {
    if (!team || team->closed) return 1;
    if (!fc_team_take(team)) return 0;
    fc_team_end(team);
    strike_off(team);
    team->closed = 1;
    return 1;
}

void fc_team_abandon(struct fc_team *team, int within) {
    if (!team->started) {
        if (within) return;
        strike_off(team);
        free(team);
        return;
    }
    strike_off(team);
    pthread_detach(team->seats[0].thread);
    atomic_store(&team->abandoned, 1);
    atomic_store(&team->stop, 1);
    ring(team, UINT32_MAX);
    leave_abandoned(team);
}

int fc_team_free(struct fc_team *team) {
    if (!fc_team_close(team)) return 0;
    free(team);
    return 1;
}

size_t fc_team_workers(const struct fc_team *team) { return team->workers; }
size_t fc_team_threads(const struct fc_team *team) { return team->started; }
