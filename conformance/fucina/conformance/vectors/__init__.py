"""Frozen vectors: bit patterns computed by software that is not ours (clause RNG-CONTRACT-1).

The files stand in the folder ``v1`` of this package, beside a manifest that names the origin, the clauses, the NaN rule
and the SHA-256 of each.  Reading verifies the checksum; nothing here or elsewhere writes one of these files.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["VERSION", "Call", "Record", "VectorError", "calls", "folder", "load", "load_json", "manifest", "read"]

VERSION = "v1"


class VectorError(RuntimeError):
    """A vector file is missing or is not the one that was frozen."""


@dataclass(frozen=True)
class Record:
    """What the manifest says about one file."""

    name: str
    sha256: str
    origin: str
    clauses: tuple[str, ...]
    nan: str
    note: str


@dataclass(frozen=True)
class Call:
    """One row of a table of fills: the parameters of the call and the patterns of its output.

    ``parameters`` holds the columns of the file other than the bookkeeping ones, floats as f32 values.
    """

    row: int
    seed: int
    parameters: Mapping[str, Any]
    expected: npt.NDArray[Any]

    def __str__(self) -> str:
        shown = ", ".join(f"{key}={value!r}" for key, value in self.parameters.items())
        return f"row {self.row} (seed={self.seed:#x}, {shown}, n={len(self.expected)})"


def folder() -> Path:
    """Return the folder of the frozen files."""
    return Path(__file__).parent / VERSION


@cache
def manifest() -> Mapping[str, Record]:
    """Return the manifest: file name -> record."""
    text = json.loads((folder() / "MANIFEST.json").read_text(encoding="utf-8"))
    return MappingProxyType(
        {
            name: Record(
                name, entry["sha256"], entry["origin"], tuple(entry["clauses"]), entry["nan"], entry.get("note", "")
            )
            for name, entry in text["files"].items()
        }
    )


def read(name: str, sha256: str, where: Path) -> bytes:
    """Return the bytes of a file after comparing their SHA-256.

    Raises
    ------
    VectorError
        The file is missing, or its checksum is another one.
    """
    try:
        content = (where / name).read_bytes()
    except OSError as error:
        raise VectorError(f"{name}: cannot be read ({error.strerror})") from error
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise VectorError(f"{name}: SHA-256 is {found}, the manifest says {sha256}; frozen vectors never change")
    return content


def _frozen(name: str) -> bytes:
    record = manifest().get(name)
    if record is None:
        raise VectorError(f"{name}: not in the manifest")
    return read(name, record.sha256, folder())


@cache
def load(name: str) -> Mapping[str, npt.NDArray[Any]]:
    """Return the arrays of ``<name>.npz``, read-only, after verifying the checksum.

    Parameters
    ----------
    name
        File name without the suffix, e.g. ``"rng_gumbel_fill"``.

    Raises
    ------
    VectorError
        The file is not the frozen one.
    """
    arrays = {}
    with np.load(io.BytesIO(_frozen(f"{name}.npz")), allow_pickle=False) as opened:
        for key in opened.files:
            array = opened[key].astype(opened[key].dtype.newbyteorder("="))
            array.setflags(write=False)
            arrays[key] = array
    return MappingProxyType(arrays)


@cache
def load_json(name: str) -> Any:
    """Return the contents of ``<name>.json`` after verifying the checksum (shared: do not change them)."""
    return json.loads(_frozen(f"{name}.json"))


def calls(name: str) -> Iterator[Call]:
    """Yield the rows of a table of fills."""
    table = load(name)
    columns = [key for key in table if key not in ("seed", "length", "start", "values")]
    for row in range(len(table["seed"])):
        parameters: dict[str, Any] = {}
        for key in columns:
            value = table[key][row]
            if key.endswith("_bits"):
                parameters[key.removesuffix("_bits")] = float(value.view(np.float32))
            else:
                parameters[key] = int(value)
        start, length = int(table["start"][row]), int(table["length"][row])
        yield Call(row, int(table["seed"][row]), parameters, table["values"][start : start + length])
