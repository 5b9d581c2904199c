"""Dispatch of empty work on two participants, beside OpenMP and ThreadPoolExecutor.

Wall time in microseconds, medians of interleaved rounds; each contestant is a process of its own, so that no threads of
another runtime share the cores with it.  *hot* is one dispatch after the other, *idle* one after 10 ms of sleep, *busy*
hot while another process keeps one core busy.  The contestant ``ours, meeting`` cannot be served by the caller alone:
its first chunk waits for its second.  Needs gcc with libgomp.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from neighbour import neighbour
from rich.console import Console
from rich.progress import track

CSRC = Path(__file__).parents[1] / "fast/csrc"
EXECUTOR_NAME = "ThreadPoolExecutor"
CASES: tuple[tuple[str, int, int, dict[str, float]], ...] = (
    ("one after the other", 20000, 0, {"OpenMP": 0.35, EXECUTOR_NAME: 0.005}),
    ("after 10 ms of sleep", 60, 10, {"OpenMP": 1.2}),
    ("one after the other, one core busy", 5000, 0, {}),
)
"""What is measured: name, dispatches, milliseconds of sleep before each, goals of ours over others."""

OPENMP = r"""
#include <omp.h>
static void run_once(void) {
#pragma omp parallel
    { __asm__ volatile("" ::: "memory"); }
}
static void prepare(void) { omp_set_num_threads(2); }
"""

OURS = r"""
#include "fucina.h"
#include "team/wait.h"
static struct fc_team *team;
static _Atomic int met;
static void empty(void *context, size_t chunk) { (void)context, (void)chunk; __asm__ volatile("" ::: "memory"); }
static void meet(void *context, size_t chunk) {
    (void)context;
    if (chunk) met = 1;
    else while (!met) fc_pause();
}
static void run_once(void) {
#ifdef MEETING
    met = 0;
    fc_team_chunks(team, 2, meet, 0);
#else
    fc_team_chunks(team, 2, empty, 0);
#endif
}
static void prepare(void) { (void)meet, (void)empty; team = fc_team_open(1); }
"""

MAIN = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static int order(const void *a, const void *b) { double x = *(double *)a, y = *(double *)b; return (x > y) - (x < y); }
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}
int main(int argc, char **argv) {
    int count = atoi(argv[1]); long idle = atol(argv[2]); (void)argc;
    double *s = malloc(sizeof *s * count);
    prepare();
    for (int i = -20; i < count; i++) {
        if (idle) { struct timespec t = {0, idle * 1000000}; nanosleep(&t, NULL); }
        double t0 = now();
        run_once();
        if (i >= 0) s[i] = now() - t0;
    }
    qsort(s, count, sizeof *s, order);
    printf("%.4f\n", s[count / 2]);
    return 0;
}
"""

EXECUTOR = """
import sys, time
from concurrent.futures import ThreadPoolExecutor, wait
count, idle = int(sys.argv[1]), int(sys.argv[2])
pool, times = ThreadPoolExecutor(2), []
for i in range(-20, count):
    if idle: time.sleep(idle / 1000)
    start = time.perf_counter()
    wait([pool.submit(int) for _ in range(2)])
    times.append(time.perf_counter() - start)
print(sorted(times)[len(times) // 2] * 1e6)
"""


def _compile(place: Path) -> dict[str, list[str]]:
    compiler = shutil.which("gcc")
    if compiler is None:
        raise SystemExit("gcc is missing: the bench compiles its contestants")
    flags = ["-O2", "-std=c11", "-D_DEFAULT_SOURCE", "-pthread", f"-I{CSRC}"]
    team = [str(path) for path in sorted((CSRC / "team").glob("*.c"))]
    made: dict[str, list[str]] = {}
    for name, text, more in (
        ("ours", OURS, team),
        ("ours, meeting", "#define MEETING\n" + OURS, team),
        ("OpenMP", OPENMP, ["-fopenmp"]),
    ):
        source, program = place / f"{name}.c", place / name
        source.write_text(text + MAIN)
        subprocess.run([compiler, *flags, str(source), *more, "-o", str(program)], check=True)
        made[name] = [str(program)]
    made[EXECUTOR_NAME] = [sys.executable, "-c", EXECUTOR]
    return made


def _run(command: list[str], count: int, idle: int) -> float:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("FUCINA_", "OMP_"))}
    if idle:
        environment["OMP_WAIT_POLICY"] = "passive"
    done = subprocess.run(
        [*command, str(count), str(idle)], capture_output=True, text=True, check=True, env=environment, timeout=300
    )
    return float(done.stdout)


def measured(console: Console, *, quick: bool) -> list[dict[str, object]]:
    """Return the cases: name, the median of the microseconds of each contestant, ratios to those with a goal."""
    found: list[dict[str, object]] = []
    rounds = 3 if quick else 9
    with tempfile.TemporaryDirectory() as place:
        made = _compile(Path(place))
        for case, count, idle, goals in track(CASES, description="dispatch", console=console):
            samples: dict[str, list[float]] = {name: [] for name in made}
            with neighbour() if case.endswith("busy") else contextlib.nullcontext():
                for _ in range(rounds):
                    for name, command in made.items():
                        few = count // 20 if name == EXECUTOR_NAME and not idle else count
                        samples[name].append(_run(command, few, idle))
            medians = {name: statistics.median(times) for name, times in samples.items()}
            against = [{"rival": r, "goal": g, "ratio": medians["ours"] / medians[r]} for r, g in goals.items()]
            found.append({"case": case, "microseconds": medians, "against": against})
    return found
