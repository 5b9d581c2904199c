"""What ``quant.validate`` looks for, format by format, on whole arrays of blocks.

Only patterns and integers are looked at: numbers would be read in the caller's floating-point environment.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fucina.spec.quant import BlockFinding
from fucina.spec.types import GEOMETRY, DType

if TYPE_CHECKING:
    import numpy.typing as npt

    from fucina.spec.quant import FindingKind

    Bits = npt.NDArray[Any]
    Mask = npt.NDArray[np.bool_]

__all__ = ["findings"]

PIECE = 1 << 14
"""Blocks looked at in one go, so that the masks stay in the cache and memory use does not grow with the array."""

KINDS: tuple[FindingKind, ...] = ("nan", "inf", "subnormal", "code", "sum")


class _Look(NamedTuple):
    """One kind of oddity in one field: what the items hold (blocks by items) and which of them are odd."""

    field: str
    kind: FindingKind
    bits: Bits
    odd: Mask
    reason: str


def findings(dtype: DType, blocks: npt.NDArray[np.void]) -> Iterator[BlockFinding]:
    """Yield what is odd, block by block.

    Parameters
    ----------
    dtype : DType
        The format.
    blocks : ndarray of its struct
        Shape (n,).

    Clauses: BLOCK-VALID-1, BLOCK-VALID-2
    """
    order = {field.name: place for place, field in enumerate(GEOMETRY[dtype].fields)}
    for start in range(0, len(blocks), PIECE):
        piece = blocks[start : start + PIECE]
        found = []
        for look in _looks(dtype, piece):
            rows: Any = look.odd.any(axis=1).tolist()
            for block, has_odd in enumerate(rows):
                if not has_odd:
                    continue
                odd = look.odd[block]
                item = int(odd.argmax())
                bits = int(look.bits[block, item])
                rank = (block, order[look.field], KINDS.index(look.kind))
                made = BlockFinding(
                    start + block, look.field, item, int(odd.sum()), look.kind, bits, look.reason.format(bits)
                )
                found.append((rank, made))
        yield from (made for _, made in sorted(found, key=lambda pair: pair[0]))


def _looks(dtype: DType, blocks: npt.NDArray[np.void]) -> Iterator[_Look]:
    """Yield the looks at every field of a format that can hold something odd."""
    names = blocks.dtype.names or ()
    if dtype is DType.mxfp4:
        yield from _e8m0(blocks["e"].reshape(-1, 1))
    elif dtype is DType.nvfp4:
        yield from _ue4m3(blocks["d"])
    elif dtype is DType.iq1_m:
        words = blocks["scales"].astype(np.uint16) >> 12
        assembled = words[:, 0] | words[:, 1] << 4 | words[:, 2] << 8 | words[:, 3] << 12
        yield from _scales("scales", assembled.reshape(-1, 1), 10)
    elif dtype is DType.q8_k:
        yield from _scales("d", blocks["d"].view(np.dtype("<u4")).astype(np.uint32).reshape(-1, 1), 23)
        yield _sums(blocks)
    else:
        for field in ("d", "m", "dmin", "s"):
            if field in names:
                yield from _scales(field, blocks[field].astype(np.uint16).reshape(-1, 1), 10)
    if dtype in (DType.q2_0, DType.tq2_0):
        yield _pairs(blocks["qs"])
    if dtype is DType.tq1_0:
        yield from _digits(blocks)


def _scales(field: str, bits: Bits, fraction_bits: int) -> Iterator[_Look]:
    """Look at a binary floating-point scale with ``fraction_bits`` bits of fraction."""
    fraction = bits & ((1 << fraction_bits) - 1)
    top = 31 if fraction_bits == 10 else 255
    exponent = bits >> fraction_bits & top
    width = 4 if fraction_bits == 10 else 8
    shown = f"0x{{:0{width}x}}"
    yield _Look(field, "nan", bits, (exponent == top) & (fraction != 0), f"the scale {shown} is NaN")
    yield _Look(field, "inf", bits, (exponent == top) & (fraction == 0), f"the scale {shown} is infinite")
    yield _Look(field, "subnormal", bits, (exponent == 0) & (fraction != 0), f"the scale {shown} is subnormal")


def _e8m0(bits: Bits) -> Iterator[_Look]:
    """Look at the exponent byte of mxfp4."""
    yield _Look("e", "nan", bits, bits == 255, "the exponent byte 0x{:02x} is NaN under OCP; it stands for 2^127 here")
    yield _Look("e", "subnormal", bits, bits < 2, "the exponent byte 0x{:02x} makes a scale that is an f32 subnormal")


def _ue4m3(bits: Bits) -> Iterator[_Look]:
    """Look at the scale bytes of nvfp4."""
    nan = (bits & 0x7F) == 0x7F
    yield _Look("d", "nan", bits, nan, "the scale byte 0x{:02x} is NaN under OCP; here 0x7f is 0 and 0xff is 480")
    yield _Look("d", "subnormal", bits, (bits > 0) & (bits < 8), "the scale byte 0x{:02x} is subnormal")
    yield _Look("d", "code", bits, (bits > 0x7F) & ~nan, "the scale byte 0x{:02x} has a sign, which is ignored")


def _pairs(bits: Bits) -> _Look:
    """Look for code 3, which the ternary formats do not have."""
    odd = (bits & bits >> 1 & 0x55) != 0
    return _Look("qs", "code", bits, odd, "the byte 0x{:02x} holds code 3, which decodes to twice the scale")


def _digits(blocks: npt.NDArray[np.void]) -> Iterator[_Look]:
    """Look for bytes that no five, in qh no four, base-3 digits give."""
    for field, step in (("qs", 1), ("qh", 3)):
        made = np.zeros(256, np.bool_)
        made[[(256 * v + 242) // 243 for v in range(0, 243, step)]] = True
        bits = blocks[field]
        yield _Look(field, "code", bits, ~made[bits], "the byte 0x{:02x} is not what base-3 digits are stored as")


def _sums(blocks: npt.NDArray[np.void]) -> _Look:
    """Look for stored sums of q8_k that are not the sums."""
    true = blocks["qs"].astype(np.int32).reshape(-1, 16, 16).sum(axis=2)
    stored = blocks["bsums"].astype(np.int32)
    return _Look("bsums", "sum", stored & 0xFFFF, stored != true, "the stored sum 0x{:04x} is not the sum of its codes")
