"""Plays call sets on one target and reduces the outputs to digests."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from tools.elsewhere.calls import CallSet
from tools.elsewhere.targets import Target

__all__ = ["Played", "play"]


@dataclass
class Played:
    """What a target gave: a SHA-256 per set, and what went wrong."""

    target: Target
    digests: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0


def play(target: Target, runner: Path, files: dict[str, Path], sets: tuple[CallSet, ...]) -> Played:
    """Run the player on every set that the target takes; its outputs go through a pipe into the digest."""
    played = Played(target)
    began = time.monotonic()
    for calls in sets:
        if calls.sha256 and not target.big:
            continue
        digest, count = hashlib.sha256(), 0
        command = [*target.emulator, str(runner), str(files[calls.name]), target.level]
        with (
            tempfile.TemporaryFile() as messages,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=messages) as child,
        ):
            assert child.stdout is not None
            while chunk := child.stdout.read(1 << 20):
                digest.update(chunk)
                count += len(chunk)
            code = child.wait()
            messages.seek(0)
            said = messages.read().decode(errors="replace").strip()
        if code:
            played.problems.append(f"{calls.name}: the player ended with {code}: {said[-1500:]}")
        elif count != sum(call.n * call.item_size for call in calls.calls):
            played.problems.append(f"{calls.name}: {count} bytes of output")
        elif calls.sha256 and digest.hexdigest() != calls.sha256:
            played.problems.append(f"{calls.name}: SHA-256 {digest.hexdigest()}, the vectors say {calls.sha256}")
        played.digests[calls.name] = digest.hexdigest()
    played.seconds = time.monotonic() - began
    return played
