"""``.. said-by:: fucina.fast --help`` - what a command of the project prints, asked while the page is made."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import OptionSpec


class SaidBy(SphinxDirective):
    """The directive; the option ``exit`` is the exit code to expect, 0 if it is left out."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[OptionSpec] = {"exit": directives.nonnegative_int}

    def run(self) -> list[nodes.Node]:
        """Return the command and its output as a console shows them."""
        command = self.arguments[0]
        done = subprocess.run(
            [sys.executable, "-m", *command.split()],
            capture_output=True,
            text=True,
            env=os.environ | {"COLUMNS": "88", "NO_COLOR": "1"},
        )
        if done.returncode != self.options.get("exit", 0):
            raise self.error(f"python -m {command} ended with exit code {done.returncode}: {done.stderr}")
        self.env.note_reread()  # it may say something else after the next change of the code
        shown = f"$ python -m {command}\n{done.stdout.rstrip()}"
        return [nodes.literal_block(shown, shown, language="console")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("said-by", SaidBy)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
