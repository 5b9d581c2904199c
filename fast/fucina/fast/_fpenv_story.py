"""What the watched process told, and the report that is made of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fucina.fast._apart import Ending
from fucina.fast._fpenv_state import sentence, shown
from fucina.fast._fpenv_watch import START, above

__all__ = ["SAME", "Change", "Story", "report"]

SAME = "importing thread only"


@dataclass
class Change:
    """One module and what it changed."""

    module: str
    file: str | None
    imported_by: list[str]
    before: dict[str, Any]
    after: dict[str, Any]

    def words(self) -> list[str]:
        """Return a phrase for each thing that changed."""
        return [
            f"{key.replace('_', ' ')}: {shown(old)} -> {shown(self.after[key])}"
            for key, old in self.before.items()
            if old != self.after[key]
        ]


@dataclass
class Story:
    """What a child has told of the program that it ran."""

    changes: list[Change] = field(default_factory=list)
    targets: list[dict[str, Any]] = field(default_factory=list)
    loading: list[tuple[str, str | None]] = field(default_factory=list)
    loaded: int = 0
    error: str | None = None
    begun: str | None = None
    removed_by: list[str] = field(default_factory=list)
    full: bool = False

    @classmethod
    def read(cls, entries: Iterable[list[Any]]) -> Story:
        """Return the story that a log tells."""
        story, had = cls(), 0
        for kind, *what in entries:
            match kind:
                case "begin":
                    (story.begun,), had = what, len(story.changes)
                case "load":
                    depth, module, file, story.loaded = what
                    story.loading[depth:] = [(module, file)]
                case "left":
                    depth, story.loaded = what
                    del story.loading[depth:]
                case "change":
                    story.changes.append(Change(*what))
                case "done":
                    outcome, story.error, stands = what
                    if not stands:
                        story.removed_by.append(story.begun or START)
                    changes = len(story.changes) - had
                    story.targets.append({"module": story.begun, "outcome": outcome, "changes": changes})
                    story.begun, story.loading = None, []
                case "full":
                    story.full = True
        if story.begun:
            changes = len(story.changes) - had
            story.targets.append({"module": story.begun, "outcome": "failed", "changes": changes})
        return story

    def end(self, ending: Ending, program: bool) -> None:
        """Say what was wrong with the end, if anything was."""
        last = self.targets[-1]["module"] if self.targets else START
        if self.full:
            self.error = "so much happened that the report could not hold it"
        elif self.error:
            return
        elif self.begun or not self.targets:
            if ending.signal:
                self.error = f"{ending.signal} ended the process {self._when(program)}"
            else:
                how = "without a word: os._exit, or another program in its place"
                self.error = f"the process ended with exit code {ending.code} {self._when(program)}, {how}"
        elif ending.signal:
            self.error = f"{ending.signal} ended the process when {last} was done"
        elif ending.code and program:
            self.error = f"{last} ended with exit code {ending.code}"
        elif ending.code:
            self.error = f"the process ended with exit code {ending.code} when {last} was done"
        if self.error and program and self.targets:
            self.targets[-1]["outcome"] = "failed"

    def _when(self, program: bool) -> str:
        if not self.loading:
            return START
        module, file = self.loading[-1]
        if program and len(self.loading) == 1:
            return f"while {module} ran"
        return f"while {module}{f' ({file})' if file else ''} was loaded{_by(above(self.loading))}"


def _by(modules: Sequence[str]) -> str:
    return f", imported by {' <- '.join(modules)}" if modules else ""


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def report(facts: dict[str, Any], changes: list[Change]) -> str:
    lines = [f"at the start: {sentence(facts['start'])}"]
    for change in changes:
        lines.append(f"{change.module}{f' ({change.file})' if change.file else ''}{_by(change.imported_by)}")
        lines += [f"    {words}" for words in change.words()]
    for target in facts["targets"]:
        if not target["changes"]:
            lines.append(f"{target['module']}: {target['outcome']}, no change")
    lines.append(f"at the end: {sentence(facts['end'])}")
    lines.append(f"{_counted(len(changes), 'change')}, {_counted(facts['modules_watched'], 'module')} watched, {SAME}")
    for name in facts["watch_removed_by"]:
        lines.append(f"{name} took the watch out of sys.meta_path: what it imported from then on counts as its own")
    if facts["error"]:
        lines.append(f"error: {facts['error']}")
    return "\n".join(lines)
