"""``python -m fucina.conformance``: run the suite, or explain a clause."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, requires

from fucina.conformance.errors import UsageError
from fucina.conformance.options import parser

__all__ = ["main"]

_NEEDED = ("pytest", "hypothesis", "rich")
_MODULES = frozenset({*_NEEDED, "_pytest", "_hypothesis_pytestplugin"})


def _extra() -> str:
    """Return what the suite needs on top of the library, by its names: the library itself may come from anywhere."""
    try:
        found = [r.partition(";") for r in requires("fucina") or ()]
    except PackageNotFoundError:  # a source tree on the path
        found = []
    return shlex.join(r.strip() for r, _, when in found if "conformance" in when) or " ".join(_NEEDED)


def _run(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["explain"]:
        from fucina.conformance.explain import main as explain

        return explain(arguments[1:])
    options = parser().parse_args(arguments)
    from fucina.conformance.command import main as run  # needs pytest, hypothesis and rich

    return run(options)


def _silence() -> None:
    """Let the interpreter flush into nothing at its end: what is left of the output has nowhere to go."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code: 0 conforming, 1 not, 2 the request cannot be served.

    Parameters
    ----------
    arguments : sequence of str
        What stands after ``python -m fucina.conformance``.
    """
    try:
        code = _run(arguments)
        if sys.stdout is not None:  # else closed by the caller
            sys.stdout.flush()
        return code
    except UsageError as error:
        print(f"fucina.conformance: {error}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        if error.name not in _MODULES:
            raise
        print(f"fucina.conformance needs {error.name}: python -m pip install {_extra()}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the output went into a pager or `head` that is gone
        _silence()
        return 1
    except OSError as error:  # a disk that is full, most likely: 1 would be about the implementations
        print(f"fucina.conformance: {error}", file=sys.stderr)
        _silence()
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
