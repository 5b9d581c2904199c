"""Call files: one call of the C interface after the other, as fast/csrc/tests/vector_runner.c reads them."""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Call", "CallSet", "Operation", "Status", "double_bits"]

MAGIC = b"FUCALLS1"
HEADER = struct.Struct("<13Q")
Bits = npt.NDArray[Any]


class Operation(enum.IntEnum):
    """What a call does; the numbers are those of vector_runner.c."""

    CAST = 0
    CAST_BITS = 1
    TRUTHY = 2
    AT = 3
    GAUSSIAN = 4
    GAUSSIAN_FAST = 5
    NORMAL = 6
    UNIFORM = 7
    KAIMING = 8
    GUMBEL = 9
    RANDINT = 10
    RANDPERM = 11
    MASK = 12
    SCALE = 13
    DEQUANTIZE = 14
    QUANTIZE = 15


class Status(enum.IntEnum):
    """The statuses of the C interface."""

    OK = 0
    BAD_DTYPE = 1
    BAD_ISA = 2
    BAD_BOUNDS = 3


def double_bits(value: float) -> int:
    """Return the bits of a double: how a float parameter travels in a header."""
    return int(np.float64(value).view(np.uint64))


@dataclass(frozen=True)
class Call:
    """One call.

    ``expected`` holds the items that the output must have, ``None`` where only the agreement of all targets is
    asked for.  ``infinity`` is the output format's infinity where NaNs compare as equal, else 0; ``free_nan`` says that
    the clause leaves a NaN's bits open, so that they do not enter the digest.
    """

    operation: Operation
    arguments: tuple[int, ...]
    n: int
    item_size: int
    expected: Bits | None = None
    given: Bits | None = None
    status: Status = Status.OK
    infinity: int = 0
    free_nan: bool = False

    def encoded(self) -> bytes:
        """Return the call as bytes of a call file."""
        given, expected = _little(self.given), _little(self.expected)
        if expected and len(expected) != self.n * self.item_size:
            raise ValueError(f"{self.operation.name}: {len(expected)} bytes expected of {self.n} items")
        arguments = [a & 0xFFFF_FFFF_FFFF_FFFF for a in self.arguments] + [0] * (4 - len(self.arguments))
        header = HEADER.pack(
            self.operation,
            *arguments,
            self.n,
            self.status,
            self.infinity,
            self.free_nan,
            len(given),
            len(expected),
            self.item_size,
            1 if self.given is None else self.given.dtype.itemsize,
        )
        return header + _padded(given) + _padded(expected)


def _little(array: Bits | None) -> bytes:
    return b"" if array is None else array.astype(array.dtype.newbyteorder("<")).tobytes()


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 8)


@dataclass(frozen=True)
class CallSet:
    """The calls that share a digest.

    ``sha256`` is the digest that the vectors themselves demand, where they do: the big fills.
    """

    name: str
    calls: tuple[Call, ...]
    sha256: str | None = None

    @property
    def values(self) -> int:
        """Number of output items."""
        return sum(call.n for call in self.calls)

    @property
    def expected_values(self) -> int:
        """Number of output items that the vectors prescribe; all of them where they prescribe the digest."""
        return self.values if self.sha256 else sum(c.n for c in self.calls if c.expected is not None)

    def write(self, path: Path) -> None:
        """Write the call file."""
        path.write_bytes(MAGIC + struct.pack("<Q", len(self.calls)) + b"".join(_encoded(self.calls)))


def _encoded(calls: Iterable[Call]) -> Iterable[bytes]:
    return (call.encoded() for call in calls)
