"""``python -m fucina.fast``: what this installation is; with ``fpenv check``: who changed my floats."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys

import numpy as np

import fucina.fast
from fucina.fast._native import ffi, lib


def _facts() -> dict[str, object]:
    return {
        "version": fucina.fast.__version__,
        "isa_levels": list(fucina.fast.isa_levels()),
        "isa": fucina.fast.isa(),
        "isa_from": "FUCINA_ISA" if os.environ.get("FUCINA_ISA") else "detected",
        "build": ffi.string(lib.fc_build()).decode("utf-8"),
        "machine": platform.machine(),
        "byte_order": sys.byteorder,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "float_environment": "each call uses the default one and leaves the caller's as it was (NUM-ENV-2, NUM-ENV-3)",
    }


def main(arguments: list[str] | None = None) -> int:
    """Print the facts about this installation, as lines or as JSON; or run the command ``fpenv``."""
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["fpenv"]:
        from fucina.fast import _fpenv_check

        return _fpenv_check.main(given[1:])
    parser = argparse.ArgumentParser(
        prog="python -m fucina.fast",
        description="Tell what this installation of fucina is.",
        epilog="python -m fucina.fast fpenv check -- MODULE ... says which module changes the float environment",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(given)
    facts = _facts()
    if options.json:
        print(json.dumps(facts, indent=2))
        return 0
    for name, value in facts.items():
        text = ", ".join(value) if isinstance(value, list) else value
        print(f"{name.replace('_', ' '):18} {text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
