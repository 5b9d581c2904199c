"""What ``quant.validate`` reports about one block: scales that are no ordinary numbers, codes no encoder makes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, get_args

from fucina.reference.blocks.packing import signed, u16
from fucina.reference.blocks.tq1_0 import fraction
from fucina.reference.formats import F16, F32, Format
from fucina.reference.geometry import storage
from fucina.spec.quant import BlockFinding, FindingKind
from fucina.spec.types import GEOMETRY, DType, Field

__all__ = ["findings"]

KINDS: tuple[FindingKind, ...] = get_args(FindingKind)


class Odd(NamedTuple):
    """What is odd about one item of a field."""

    item: int
    kind: FindingKind
    bits: int
    reason: str


Look = Callable[[bytes], Iterable[Odd]]
"""Looks at the bytes of one field."""


def findings(dtype: DType, index: int, block: bytes) -> Iterator[BlockFinding]:
    """Yield what is odd about a block, in the order of its fields; one finding per field and kind.

    Parameters
    ----------
    dtype : DType
        The format.
    index : int
        Which block of the array it is.
    block : bytes
        The block, any bytes whatever.

    Notes
    -----
    Clauses: BLOCK-VALID-1, BLOCK-VALID-2
    """
    for field in GEOMETRY[dtype].fields:
        odd = sorted(_field(dtype, field, block), key=lambda found: (KINDS.index(found.kind), found.item))
        for kind in KINDS:
            same = [found for found in odd if found.kind == kind]
            if same:
                item, _, bits, reason = same[0]
                yield BlockFinding(index, field.name, item, len(same), kind, bits, reason)


def _field(dtype: DType, field: Field, block: bytes) -> Iterable[Odd]:
    """Return what is odd about one field.

    Notes
    -----
    Clauses: BLOCK-VALID-1
    """
    data = block[field.offset : field.offset + storage(dtype)[field.name].itemsize]
    if dtype is DType.q8_k and field.name == "bsums":
        return _sums(data, codes=block[4:260])
    look = LOOKS.get((dtype, field.name)) or SCALES.get(field.name)
    return look(data) if look else ()


# -- scales


def _scale(fmt: Format, bits: int) -> Iterator[Odd]:
    """Look at a scale of a binary floating-point format."""
    magnitude = bits & ((1 << fmt.sign_shift) - 1)
    shown = f"the scale 0x{bits:0{(fmt.sign_shift + 1) // 4}x} of {fmt.name}"
    if magnitude > fmt.overflow:
        yield Odd(0, "nan", bits, f"{shown} is a NaN")
    elif magnitude == fmt.overflow:
        yield Odd(0, "inf", bits, f"{shown} is infinite")
    elif 0 < magnitude < 1 << fmt.mantissa_bits:
        yield Odd(0, "subnormal", bits, f"{shown} is subnormal")


def _f16_scale(data: bytes) -> Iterator[Odd]:
    return _scale(F16, u16(data))


def _f32_scale(data: bytes) -> Iterator[Odd]:
    return _scale(F32, int.from_bytes(data, "little"))


def _spread_scale(data: bytes) -> Iterator[Odd]:
    """Look at the scale of iq1_m, which is spread over the top nibbles of four words."""
    return _scale(F16, sum((u16(data, 2 * k) >> 12) << 4 * k for k in range(4)))


def _e8m0(data: bytes) -> Iterator[Odd]:
    e = data[0]
    if e == 255:
        yield Odd(0, "nan", e, "the scale byte 0xff is NaN under OCP, 2^127 here")
    elif e < 2:
        yield Odd(0, "subnormal", e, f"the scale byte 0x{e:02x} stands for half of 2^{e - 127}, an f32 subnormal")


def _ue4m3(data: bytes) -> Iterator[Odd]:
    for item, byte in enumerate(data):
        if byte in (0x7F, 0xFF):
            meaning = "0" if byte == 0x7F else "480"
            yield Odd(item, "nan", byte, f"the scale byte 0x{byte:02x} is NaN under OCP, {meaning} here")
        elif byte & 0x80:
            yield Odd(item, "code", byte, f"the scale byte 0x{byte:02x} has its sign bit set, which is ignored")
        elif 0 < byte < 8:
            yield Odd(item, "subnormal", byte, f"the scale byte 0x{byte:02x} is subnormal")


# -- codes and sums


def _pairs(data: bytes) -> Iterator[Odd]:
    for item, byte in enumerate(data):
        if any(byte >> shift & 3 == 3 for shift in (0, 2, 4, 6)):
            yield Odd(item, "code", byte, f"the byte 0x{byte:02x} holds the code 3, which stands for twice the scale")


def _digits(data: bytes, numbers: range) -> Iterator[Odd]:
    """Look for bytes that stand for none of the numbers of their ternary digits."""
    made = {fraction(number) for number in numbers}
    for item, byte in enumerate(data):
        if byte not in made:
            yield Odd(item, "code", byte, f"the byte 0x{byte:02x} stands for no number of ternary digits")


def _five_digits(data: bytes) -> Iterator[Odd]:
    return _digits(data, range(243))


def _four_digits(data: bytes) -> Iterator[Odd]:
    return _digits(data, range(0, 243, 3))


def _sums(data: bytes, codes: bytes) -> Iterator[Odd]:
    for item in range(16):
        held, true = u16(data, 2 * item), sum(map(signed, codes[16 * item : 16 * item + 16]))
        if held != true & 0xFFFF:
            yield Odd(item, "sum", held, f"the sum 0x{held:04x} is not the sum of its 16 codes, {true}")


SCALES: dict[str, Look] = dict.fromkeys(("d", "m", "dmin", "s"), _f16_scale)
"""Looks at the fields that are an f16 scale wherever they occur, but for the exceptions below."""

LOOKS: dict[tuple[DType, str], Look] = {
    (DType.q8_k, "d"): _f32_scale,
    (DType.iq1_m, "scales"): _spread_scale,
    (DType.mxfp4, "e"): _e8m0,
    (DType.nvfp4, "d"): _ue4m3,
    (DType.q2_0, "qs"): _pairs,
    (DType.tq2_0, "qs"): _pairs,
    (DType.tq1_0, "qs"): _five_digits,
    (DType.tq1_0, "qh"): _four_digits,
}
"""Looks at the fields of one format."""
