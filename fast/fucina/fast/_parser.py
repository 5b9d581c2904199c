"""The parser of the command lines of this package."""

from __future__ import annotations

import argparse
from typing import Any

__all__ = ["Parser"]


class Parser(argparse.ArgumentParser):
    """A parser whose help, if it cannot be written, is an error: argparse's own passes over a disk that is full."""

    def print_help(self, file: Any = None) -> None:
        """Print the help."""
        print(self.format_help(), end="", file=file, flush=True)
