/*
 * How long the threads of a team wait (clause TEAM-SPIN-1): what its turns are set to, and what they do.  The program brings its
 * own parking in place of team/wait.c and so sees who begins to sleep, and when.  It compares times with each other, never
 * with a number, for a turn takes what it takes.
 */
#define _GNU_SOURCE
#include "fucina.h"
#include "team/team.h"
#include "tests/check.h"
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* -- parking that keeps a record: a wait may end for no reason, so a short sleep is one */
enum { SLEEPS = 12 };
static struct fc_team *watched;
static _Atomic unsigned joins, wakes, other_lengths;
static _Atomic uint64_t asleep[SLEEPS], awake[SLEEPS], parked; /* of the join; when a worker first began to sleep, 0 for not yet */

void fc_wait(fc_word32 *word, uint32_t expected, long nanoseconds) {
    const uint64_t now = fc_team_clock();
    const int of_join = watched && word == &watched->done;
    const unsigned place = of_join ? atomic_load(&joins) : 0;
    uint64_t never = 0;
    if (watched && word == &watched->bell) atomic_compare_exchange_strong(&parked, &never, now);
    if (of_join && nanoseconds != 1000000) atomic_fetch_add(&other_lengths, 1);
    if (atomic_load(word) == expected) nanosleep(&(struct timespec){0, 100000}, NULL);
    if (!of_join) return;
    if (place < SLEEPS) {
        atomic_store(&asleep[place], now);
        atomic_store(&awake[place], fc_team_clock());
    }
    atomic_fetch_add(&joins, 1);
}
void fc_wake(fc_word32 *word, uint32_t count) {
    (void)count;
    if (watched && word == &watched->done) atomic_fetch_add(&wakes, 1);
}
void fc_wait_after_fork(void) {}

/* -- the numbers */
static void check_pace(size_t workers, size_t cores, uint32_t spin, uint32_t join_spin, const char *what) {
    struct fc_team *team = fc_team_open(workers);
    fc_team_pace(team, cores);
    CHECK(team->spin == spin, "%s, %zu workers, %zu cores: a worker spins %u turns", what, workers, cores, team->spin);
    CHECK(team->join_spin == join_spin, "%s, %zu workers, %zu cores: the join spins %u turns", what, workers, cores, team->join_spin);
    fc_team_free(team);
}

static void numbers(void) {
    const char *const nothing[] = {NULL, "", " ", "garbage", "-1", "+1", "1e3", "0x4", "4 ", "4294967296", "99999999999999999999"};
    for (size_t i = 0; i < sizeof nothing / sizeof nothing[0]; i++) {
        const char *what = nothing[i] ? nothing[i] : "no budget";
        if (nothing[i])
            setenv("FUCINA_SPIN_BUDGET", nothing[i], 1);
        else
            unsetenv("FUCINA_SPIN_BUDGET");
        check_pace(0, 1, 32768, 1000000, what);
        if (fc_max_threads() < 4) continue;
        check_pace(1, 2, 32768, 1000000, what);
        check_pace(3, 4, 32768, 1000000, what);
        check_pace(3, 64, 32768, 1000000, what);
        check_pace(1, 1, 0, 4096, what);
        check_pace(3, 3, 0, 4096, what);
    }
    const struct {
        const char *text;
        uint32_t turns;
    } budgets[] = {{"0", 0}, {"1", 1}, {"0050", 50}, {"32769", 32769}, {"4294967295", UINT32_MAX}};
    for (size_t i = 0; i < sizeof budgets / sizeof budgets[0]; i++) {
        setenv("FUCINA_SPIN_BUDGET", budgets[i].text, 1);
        check_pace(0, 1, budgets[i].turns, 1000000, budgets[i].text);
        if (fc_max_threads() < 4) continue;
        check_pace(3, 4, budgets[i].turns, 1000000, budgets[i].text);
        check_pace(3, 2, budgets[i].turns, 4096, budgets[i].text);
    }
    unsetenv("FUCINA_SPIN_BUDGET");
}

/* -- a team that has started: of this machine's cores, the budget read then and not again */
static void nothing(void *context, size_t chunk) { (void)context, (void)chunk; }

static void check_started(struct fc_team *team, uint32_t spin, const char *what) {
    const int over = fc_team_workers(team) + 1 > fc_schedulable_cores();
    fc_team_chunks(team, 2, nothing, NULL);
    CHECK(team->spin == spin, "%s: a worker spins %u turns", what, team->spin);
    CHECK(team->join_spin == (over ? 4096 : 1000000), "%s: the join spins %u turns", what, team->join_spin);
}

static void started(void) {
    const size_t workers[] = {1, fc_schedulable_cores(), fc_max_threads() - 1};
    CHECK(fc_schedulable_cores() > 0, "nothing can run");
    for (size_t i = 0; i < 3; i++) {
        struct fc_team *team = fc_team_open(workers[i]);
        const uint32_t by_default = fc_team_workers(team) + 1 > fc_schedulable_cores() ? 0 : 32768;
        check_started(team, by_default, "by default");
        setenv("FUCINA_SPIN_BUDGET", "77", 1);
        check_started(team, by_default, "a budget set later");
        fc_team_take(team);
        fc_team_end(team);
        fc_team_give(team);
        check_started(team, 77, "started again");
        unsetenv("FUCINA_SPIN_BUDGET");
        fc_team_free(team);
    }
}

/* -- what the turns do.  Chunk 0 is the caller's and ends when a worker has begun chunk 1 */
struct meeting {
    _Atomic int begun;
    unsigned until; /* chunk 1 ends after so many sleeps of the join */
    _Atomic uint64_t ended[2];
};

static void meet(void *context, size_t chunk) {
    struct meeting *meeting = context;
    const struct timespec pause = {0, 1000000};
    if (chunk) {
        atomic_store(&meeting->begun, 1);
        for (int i = 0; i < 20000 && atomic_load(&joins) < meeting->until; i++) nanosleep(&pause, NULL);
        atomic_store(&parked, 0); /* it may have slept before it came */
    } else {
        while (!atomic_load(&meeting->begun)) sched_yield();
    }
    atomic_store(&meeting->ended[chunk], fc_team_clock());
}

/* A team's first dispatch: a worker that is awake is not woken on the caller's CPU, where it would not spin. */
static struct meeting *dispatch(uint32_t spin, uint32_t join_spin, unsigned until) {
    static struct meeting meeting;
    struct fc_team *team = fc_team_open(1);
    meeting = (struct meeting){.until = until};
    team->spin = spin;
    team->join_spin = join_spin;
    team->ready = 1; /* the next start leaves them as they are */
    atomic_store(&joins, 0);
    atomic_store(&parked, 0);
    watched = team;
    const int outcome = fc_team_chunks(team, 2, meet, &meeting);
    CHECK(outcome == FC_TEAM_PARALLEL, "outcome %d", outcome);
    while (!until && !atomic_load(&parked)) sched_yield();
    fc_team_free(team);
    watched = NULL;
    return &meeting;
}

/* How long the join spins before its first sleep, and at least between two. */
static uint64_t first_window(uint32_t join_spin, uint64_t *later) {
    const struct meeting *meeting = dispatch(0, join_spin, SLEEPS);
    CHECK(atomic_load(&joins) >= SLEEPS, "%u sleeps", atomic_load(&joins));
    *later = UINT64_MAX;
    for (int i = 1; i < SLEEPS; i++) {
        const uint64_t window = atomic_load(&asleep[i]) - atomic_load(&awake[i - 1]);
        if (window < *later) *later = window;
    }
    return atomic_load(&asleep[0]) - atomic_load(&meeting->ended[0]);
}

enum { MUCH = 20, TRIALS = 5 }; /* 1000000 turns are 244 times 4096; somebody else may have the CPU in between */

static void joins_sleep(void) {
    uint64_t later = 0, least = UINT64_MAX;
    const uint64_t first = first_window(FC_JOIN_SPIN, &later);
    CHECK(first > MUCH * later, "%u us before the first sleep, %u us between two", (unsigned)(first / 1000), (unsigned)(later / 1000));
    for (int i = 0; i < TRIALS; i++) {
        const uint64_t window = first_window(FC_JOIN_SPIN_SHORT, &later);
        if (window < least) least = window;
    }
    CHECK(first > MUCH * least, "%u us before the first sleep, %u us if oversubscribed", (unsigned)(first / 1000), (unsigned)(least / 1000));
    CHECK(atomic_load(&other_lengths) == 0, "%u sleeps of the join were not of 1 ms", atomic_load(&other_lengths));
    CHECK(atomic_load(&wakes) == 0, "a worker woke the join %u times", atomic_load(&wakes));
}

static uint64_t until_parked(uint32_t spin) {
    const struct meeting *meeting = dispatch(spin, FC_JOIN_SPIN, 0);
    return atomic_load(&parked) - atomic_load(&meeting->ended[1]);
}

static void workers_park(void) {
    uint64_t least = UINT64_MAX, most = 0;
    for (int i = 0; i < TRIALS; i++) {
        const uint64_t at_once = until_parked(0), spun = until_parked(FC_JOIN_SPIN);
        if (at_once < least) least = at_once;
        if (spun > most) most = spun;
    }
    CHECK(most > MUCH * least, "a worker parks after %u us, without turns after %u us", (unsigned)(most / 1000), (unsigned)(least / 1000));
}

int main(void) {
    alarm(300); /* a deadlock ends the program */
    numbers();
    if (fc_max_threads() > 1) {
        started();
        joins_sleep();
        workers_park();
    }
    return check_report();
}
