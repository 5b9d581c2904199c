"""``python -m fucina.fast``: what this installation is; with ``fpenv check``: who changed my floats."""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

import fucina.fast
from fucina.fast._fpenv_state import DEFAULT, sentence, state
from fucina.fast._native import ffi, lib
from fucina.fast._parser import Parser

_DESCRIPTION = "Tell what this installation of fucina is and what it sees of the machine."

_EPILOG = """\
commands:
  python -m fucina.fast                            the facts, for a person
  python -m fucina.fast --json                     the same as one JSON object, for a bug report or a script
  python -m fucina.fast fpenv check -- MODULE ...  which module changes the float environment as it is imported

environment variables:
  FUCINA_ISA           the instruction-set level to start with
  FUCINA_MAX_THREADS   an upper bound for the number of threads
  FUCINA_SPIN_BUDGET   how long an idle worker spins before it sleeps
  FUCINA_POOL_PROFILE  1: after each dispatch of a team, a line on stderr for what each of its threads did in it

exit code: 0; 1 if the float environment of a fresh process is not the default one; 2 if the request makes no sense
or the output cannot be written"""


_COUNTS = {
    "logical": "to run on",
    "physical": "physical",
    "performance": "for performance",
    "cgroup": "allowed by the control group",
}


def _team() -> dict[str, int | None]:
    parallel = fucina.fast.parallel
    return {
        "threads": parallel.cpu_thread_count(parallel.vector_max_threads),
        "most_threads": parallel.vector_max_threads,
        "logical_cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "physical_cpus": parallel.physical_cpu_count(),
        "performance_cpus": parallel.performance_cpu_count(),
        "cgroup_cpus": parallel.cgroup_cpu_budget(),
        "FUCINA_MAX_THREADS": parallel.env_positive_usize("FUCINA_MAX_THREADS"),
        "FUCINA_SPIN_BUDGET": parallel.env_spin_budget(),
    }


def _ignored() -> dict[str, str]:
    """Return the variables whose values count as none (clause TEAM-KNOB-1)."""
    parallel = fucina.fast.parallel
    read = {
        "FUCINA_MAX_THREADS": parallel.env_positive_usize("FUCINA_MAX_THREADS"),
        "FUCINA_SPIN_BUDGET": parallel.env_spin_budget(),
    }
    return {name: os.environ[name] for name, number in read.items() if number is None and os.environ.get(name)}


def _environment() -> dict[str, object]:
    fpenv = fucina.fast.fpenv
    if not fpenv.supported:
        return {"supported": False}
    now = state()
    return {"supported": True, "default": now == DEFAULT, **now}


def facts() -> dict[str, Any]:
    """Return the facts about this installation."""
    return {
        "version": fucina.fast.__version__,
        "isa_levels": list(fucina.fast.isa_levels()),
        "isa": fucina.fast.isa(),
        "isa_from": "FUCINA_ISA" if os.environ.get("FUCINA_ISA") else "detected",
        "team": _team(),
        "float_environment": _environment(),
        "ignored": _ignored(),
        "build": ffi.string(lib.fc_build()).decode("utf-8"),
        "machine": platform.machine(),
        "byte_order": sys.byteorder,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "capabilities": sorted(fucina.fast.capabilities),
    }


def lines(known: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the facts as a person would say them."""
    team, environment = known["team"], known["float_environment"]
    yield "version", known["version"]
    yield "instruction sets", f"{known['isa']} ({known['isa_from']}) of {', '.join(known['isa_levels'])}"
    capped = f", FUCINA_MAX_THREADS={team['FUCINA_MAX_THREADS']}" if team["FUCINA_MAX_THREADS"] else ""
    yield "threads", f"{team['threads']}, at most {team['most_threads']}{capped}"
    counts = [f"{team[f'{kind}_cpus']} {word}" for kind, word in _COUNTS.items() if team[f"{kind}_cpus"] is not None]
    yield "processors", ", ".join(counts)
    if known["ignored"]:
        values = ", ".join(f"{name}={value!r}" for name, value in known["ignored"].items())
        yield "ignored", f"{values}: digits only are a number, from 1 on for threads and from 0 on for spinning"
    if not environment["supported"]:
        yield "this thread's floats", "cannot be seen on this machine"
    elif environment["default"]:
        yield "this thread's floats", "the default environment"
    else:
        now = {key: environment[key] for key in DEFAULT}
        yield "this thread's floats", "NOT THE DEFAULT: " + sentence(now)
    yield "build", known["build"]
    yield "machine", f"{known['machine']}, {known['byte_order']}-endian"
    yield "python, numpy", f"{known['python']}, {known['numpy']}"
    yield "chapters", ", ".join(known["capabilities"])


def main(arguments: list[str] | None = None) -> int:
    """Print the facts about this installation, as lines or as JSON; or run the command ``fpenv``."""
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["fpenv"]:
        from fucina.fast import _fpenv_check

        return _fpenv_check.main(given[1:])
    parser = Parser(
        prog="python -m fucina.fast",
        usage="python -m fucina.fast [-h] [--json]\n       python -m fucina.fast fpenv check [-h] ...",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(given)
    known = facts()
    if options.json:
        print(json.dumps(known, indent=2))
    else:
        said = dict(lines(known))
        width = max(map(len, said)) + 2
        for name, value in said.items():
            print(f"{name:{width}}{value}")
    return 0 if known["float_environment"].get("default", True) else 1


if __name__ == "__main__":
    process = os.getpid()
    try:
        code = main()
        if sys.stdout is not None and os.getpid() == process:  # else closed by the caller, or those of a program
            sys.stdout.flush()
    except BrokenPipeError:  # the output went into a pager or `head` that is gone
        if os.getpid() != process:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 128 + signal.SIGPIPE  # what a shell says of a program that the signal ended; 1 would be about floats
    except OSError as error:  # a disk that is full: 1 would be about floats here too
        if os.getpid() != process:
            raise
        print(f"python -m fucina.fast: {error}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 2
    sys.exit(code)
