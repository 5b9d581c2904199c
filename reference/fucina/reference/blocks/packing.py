"""How codes lie in bytes: 1, 2 or 4 bits each, in runs of bytes; fields of two bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["pack", "signed", "u16", "u16_bytes", "unpack"]


def unpack(data: bytes, bits: int, run: int) -> list[int]:
    """Return the codes of packed bytes.

    Parameters
    ----------
    data : bytes
        Whole runs.
    bits : int
        The bits of a code: 1, 2 or 4.
    run : int
        The bytes of a run.  The first codes of a run are the lowest bits of its bytes, one after the other, the next
        codes the next bits, and so on.  So a run of one byte holds codes that follow each other; 4 bits and a run over
        all bytes make the low nibbles the first half of the codes and the high ones the second.

    Returns
    -------
    list of int
        ``8 / bits`` codes per byte.
    """
    mask = (1 << bits) - 1
    return [
        byte >> shift & mask
        for start in range(0, len(data), run)
        for shift in range(0, 8, bits)
        for byte in data[start : start + run]
    ]


def pack(codes: Sequence[int], bits: int, run: int) -> bytes:
    """Return the bytes of codes: the inverse of :func:`unpack`."""
    span = 8 // bits * run  # the codes of one run
    return bytes(
        sum(codes[start + j + plane * run] << plane * bits for plane in range(8 // bits))
        for start in range(0, len(codes), span)
        for j in range(run)
    )


def u16(block: bytes, offset: int = 0) -> int:
    """Return the 16-bit field at a place of a block; it is little-endian."""
    return int.from_bytes(block[offset : offset + 2], "little")


def u16_bytes(value: int) -> bytes:
    """Return a 16-bit field as it lies in a block."""
    return value.to_bytes(2, "little")


def signed(byte: int) -> int:
    """Return eight bits read as two's complement."""
    return byte - 256 if byte >= 128 else byte
