"""``python -m fucina.conformance``: run the suite, or explain a clause."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from fucina.conformance.errors import UsageError

__all__ = ["main"]

_NEEDED = frozenset({"pytest", "_pytest", "hypothesis", "_hypothesis_pytestplugin", "rich"})


def main(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code: 0 conforming, 1 not, 2 the request makes no sense.

    Parameters
    ----------
    arguments : sequence of str
        What stands after ``python -m fucina.conformance``.
    """
    try:
        if arguments[:1] == ["explain"]:
            from fucina.conformance.explain import main as explain

            return explain(arguments[1:])
        from fucina.conformance.command import main as run  # needs pytest, hypothesis and rich

        return run(arguments)
    except UsageError as error:
        print(f"fucina.conformance: {error}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        if error.name not in _NEEDED:
            raise
        print(f"fucina.conformance needs {error.name}: pip install 'fucina[conformance]'", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the output went into a pager or `head` that is gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
