/*
 * The team's protocol (team.c, told in team.h): a dispatcher and WORKERS workers, DISPATCHES dispatches.
 *
 *     spin -a team.pml && gcc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m100000 -w26
 *
 * Checked: every chunk of every dispatch runs exactly once, in its own dispatch and with that dispatch's description; no state
 * is without a next step before the end (a lost wake-up or a lost report would be one).  Faults that the checker finds:
 * -DOPEN, the ticket is not closed before the description changes, which the C test once met; -DDEAF, the dispatcher looks
 * for sleepers before it rings; -DBLIND, the futex sleeps without a look at the word; -DLATE, the count of what is done
 * begins at 0 after the ticket is out.
 *
 * The words are as in C: ticket (dispatch, index), bell, sleepers, done.  Every access of a word that others change is a step
 * of its own, joined only with what follows on variables that nobody else sees.  A worker may hear the bell while it spins or
 * go to sleep at any time, which is every spin budget.  The futex wakes as many as are wanted, any of those that sleep.  The
 * join of C sleeps with a time limit and looks again, here it waits for the count.  Memory is sequentially consistent.
 */
#ifndef WORKERS
#define WORKERS 3
#endif
#ifndef DISPATCHES
#define DISPATCHES 2
#endif
/* dispatch n, from 1 on, has n + 1 chunks: the next one has more, which is what a late worker could mistake */
#define CHUNKS_OF(n) ((n) + 1)
#define MOST CHUNKS_OF(DISPATCHES)
#define CLOSED 7

/* what there is to do: the number of the dispatch stands for run and context */
unsigned job : 2, claims : 3;
/* the ticket, one 64-bit word in C: read and swapped as a whole */
unsigned ticket_dispatch : 2, ticket_index : 3 = CLOSED;
unsigned bell : 3, sleepers : 3, done : 3;
bool asleep[3]; /* the futex of the bell */
bool stop;
bool ran[DISPATCHES * MOST];
unsigned ended : 3;

inline run_chunk(description, index) {
    assert(description >= 1 && index < CHUNKS_OF(description));
    assert(!ran[(description - 1) * MOST + index]);
    ran[(description - 1) * MOST + index] = true
}

/* claim and run until nothing is left; the same for everybody */
inline work() {
    atomic { seen_dispatch = ticket_dispatch; seen_index = ticket_index };
    do
    :: seen_claims = claims;
       atomic {
           seen_job = job;
           if
           :: seen_index >= seen_claims ->
              seen_dispatch = 0; seen_index = 0; seen_claims = 0; seen_job = 0; /* dead: fewer states */
              break
           :: else
           fi
       };
       atomic { /* the compare-and-swap */
           seen_claims = 0;
           if
           :: ticket_dispatch == seen_dispatch && ticket_index == seen_index ->
              ticket_index++
           :: else ->
              seen_dispatch = ticket_dispatch;
              seen_index = ticket_index;
              seen_job = 0 /* lost */
           fi
       };
       if
       :: seen_job != 0 ->
          d_step {
              assert(seen_job == seen_dispatch); /* the description read is that of the dispatch claimed from */
              run_chunk(seen_job, seen_index);
              count++;
              seen_index++;
              seen_job = 0
          }
       :: else
       fi
    od
}

/* as many of the sleepers go on as are wanted, any of them */
inline ring(wanted) {
#ifdef DEAF
    found = sleepers;
    bell++;
#else
    bell++;
    found = sleepers;
#endif
    atomic {
        if
        :: found > 0 ->
           found = wanted;
           do
           :: found > 0 && asleep[0] -> asleep[0] = false; found--
           :: found > 0 && asleep[1] -> asleep[1] = false; found--
           :: found > 0 && asleep[2] -> asleep[2] = false; found--
           :: found == 0 || !(asleep[0] || asleep[1] || asleep[2]) -> break
           od
        :: else
        fi;
        found = 0
    }
}

active [WORKERS] proctype worker() {
    unsigned heard : 3, count : 3, seen_dispatch : 2, seen_index : 3, seen_claims : 3, seen_job : 2;
    do
    :: if
       :: atomic { bell != heard -> heard = bell } /* while it spins */
       :: sleepers++;
          do
          :: atomic { bell != heard -> heard = bell; break }
#ifdef BLIND
          :: asleep[_pid] = true;
#else
          :: atomic { bell == heard -> asleep[_pid] = true }; /* the futex looks at the word and sleeps in one step */
#endif
             !asleep[_pid]
          od;
          sleepers--
       fi;
       if
       :: stop -> break
       :: else
       fi;
       work();
       if
       :: count > 0 -> atomic { done = done + count; count = 0 }
       :: else
       fi
    od;
    ended++
}

active proctype dispatcher() {
    unsigned n : 2, count : 3, seen_dispatch : 2, seen_index : 3, seen_claims : 3, seen_job : 2, found : 3, i : 3;
    n = 1;
    do
    :: n > DISPATCHES -> break
    :: else ->
#ifndef OPEN
        atomic { ticket_dispatch = n; ticket_index = CLOSED };
#endif
        job = n;
        claims = CHUNKS_OF(n);
#ifndef LATE
        done = 0;
#endif
        atomic { ticket_dispatch = n; ticket_index = 1 };
#ifdef LATE
        done = 0;
#endif
        ring(CHUNKS_OF(n) - 1);
        d_step { run_chunk(n, 0) };
        work();
        atomic {
            done == CHUNKS_OF(n) - 1 - count; /* the join: a state from which this never comes true is a deadlock */
            count = 0;
            i = 0;
            do
            :: i < CHUNKS_OF(n) -> assert(ran[(n - 1) * MOST + i]); i++
            :: else -> break
            od;
            i = 0;
            n++
        }
    od;
    stop = true;
    ring(WORKERS);
    (ended == WORKERS)
}
