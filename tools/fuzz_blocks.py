"""Any bytes and any floats through every decoder and encoder: ``python -m tools.fuzz_blocks --minutes 10``.

Meant for an extension module built with the sanitizers, started by ``tools.sanitized``: a read or write out of bounds,
or undefined behaviour, ends the process.  Inputs lie at odd addresses and end where their allocation ends.  Besides,
each case is held against what needs no second implementation: every instruction-set level gives the same answer, a
part of an array decodes and encodes as it does within the whole, what cannot be encoded is refused before anything is
written, and what was encoded decodes.

A case is its number and nothing else; ``--first N --cases 1`` plays one again.  The number of the case at work is in
the file that ``--trace`` names.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import sys
import time
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import fucina.fast as fucina
from fucina.fast import _native
from fucina.spec import DType, DTypeKind
from fucina.spec.errors import NonFiniteValue, UnencodableBlock

RECORD = Path(__file__).parents[1] / "docs" / "records" / "fuzz.json"
BLOCKS = [d for d in DType if fucina.dtype.kind(d) is DTypeKind.block_quantized]
TAKE_IMPORTANCE = ("iq1_s", "iq1_m", "iq2_xxs", "iq2_xs")
PATTERNS = np.array(
    [
        *(0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x00800000, 0x3F800000, 0xBF800000),
        *(0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0x477FE000, 0x33800000),
    ],
    np.uint32,
)
"""Zeros, subnormals, the smallest normal, ones, the largest, infinities, NaNs, the ends of f16."""
CANARY = 0xA5

Bytes = npt.NDArray[np.uint8]
Values = npt.NDArray[np.float32]


class FindingError(AssertionError):
    """Two answers that must be equal are not."""


def placed(data: Bytes, offset: int) -> Bytes:
    """Return a copy that begins ``offset`` bytes into its allocation and ends with it."""
    room = np.empty(data.size + offset, np.uint8)
    room[offset:] = data.ravel()
    return room[offset:]


def some_values(rng: np.random.Generator, count: int) -> Values:
    """Return floats of one of many kinds; half of the kinds are finite throughout."""
    kind = int(rng.integers(12))
    normal = rng.standard_normal(count).astype(np.float32)
    if kind == 0:
        return rng.integers(0, 1 << 32, count, np.uint32).view(np.float32)
    if kind == 1:
        return PATTERNS[rng.integers(0, len(PATTERNS), count)].view(np.float32)
    if kind == 2:  # numbers, and one or two patterns among them
        normal[rng.integers(0, count, 2)] = rng.choice(PATTERNS, 2).view(np.float32)
        return normal
    if kind == 3:  # one magnitude for all: from subnormals to the largest
        scaled: Values = np.ldexp(normal, int(rng.integers(-150, 128)))
        return scaled
    if kind == 4:  # any finite number
        words = rng.integers(0, 1 << 32, count, np.uint32)
        words[(words >> 23 & 0xFF) == 0xFF] ^= 1 << 23
        return words.view(np.float32)
    if kind == 5:
        few = rng.standard_normal(int(rng.integers(1, 5))).astype(np.float32)
        return few[rng.integers(0, len(few), count)]
    if kind == 6:  # mostly zero
        normal[rng.random(count) < 0.95] = rng.choice([0.0, -0.0])
        return normal
    if kind == 7:  # one of them far above the others
        normal[rng.integers(count)] *= np.float32(10.0 ** rng.uniform(0, 30))
        return normal
    if kind == 8:  # multiples: ties everywhere
        return np.asarray(np.rint(normal * 8) / 8, np.float32)
    if kind == 9:  # all of one sign, close together
        return np.asarray(np.abs(normal * 1e-3 + 1), np.float32)
    if kind == 10:
        return np.sort(normal)
    return normal


def some_blocks(rng: np.random.Generator, dtype: DType, count: int) -> Bytes:
    """Return blocks of one of several kinds: any bytes, constant bytes, encoded ones, each with odd scales at times."""
    size = fucina.dtype.block_byte_size(dtype)
    kind = int(rng.integers(4))
    if kind == 0:
        data = rng.integers(0, 256, (count, size), np.uint8)
    elif kind == 1:
        data = np.repeat(rng.integers(0, 256, (count, 1), np.uint8), size, axis=1)
    elif kind == 2:
        data = rng.choice(np.array([0, 1, 0x7F, 0x80, 0xFF], np.uint8), (count, size))
    else:
        values = rng.standard_normal((count, fucina.dtype.block_size(dtype))).astype(np.float32)
        data = fucina.quant.quantize(dtype, values).view(np.uint8).reshape(count, size).copy()
    if rng.random() < 0.5:
        struct = data.reshape(-1).view(fucina.dtype.storage(dtype))
        words = rng.choice(PATTERNS, count)
        for field in set(struct.dtype.names or ()) & {"d", "dmin", "m", "s"}:
            whole = struct[field]
            if whole.ndim == 1:
                kept = words.view(np.float32) if whole.dtype.itemsize == 4 else words >> 16
                struct[field] = kept.astype(np.uint16).view(whole.dtype) if whole.dtype.itemsize == 2 else kept
    return data


def same_values(a: Values, b: Values) -> bool:
    """Compare bits; NaNs are one class."""
    nan = np.isnan(a)
    return bool(np.array_equal(nan, np.isnan(b)) and np.array_equal(a.view(np.uint32)[~nan], b.view(np.uint32)[~nan]))


def demand(holds: bool, what: str) -> None:
    """Raise :class:`FindingError` unless it holds."""
    if not holds:
        raise FindingError(what)


def decode_case(rng: np.random.Generator, dtype: DType, done: Counter[str]) -> None:
    """Decode some blocks at every level, whole, in part, by rows; look them over."""
    count = int(rng.integers(1, 40))
    data = some_blocks(rng, dtype, count)
    held = placed(data, int(rng.integers(0, 9))).reshape(count, -1)
    first: Values | None = None
    for level in fucina.isa_levels():
        fucina.set_isa(level)
        values = fucina.quant.dequantize(dtype, held)
        first = values if first is None else first
        demand(same_values(first, values), f"{dtype.name}: {level} decodes otherwise")
    assert first is not None
    start = int(rng.integers(count))
    stop = int(rng.integers(start, count)) + 1
    part = fucina.quant.dequantize(dtype, placed(data[start:stop], int(rng.integers(0, 9))).reshape(stop - start, -1))
    demand(same_values(first[start:stop], part), f"{dtype.name}: a part decodes otherwise")
    indices = rng.integers(0, count, int(rng.integers(0, 6)))
    rows = fucina.quant.dequantize_rows(dtype, held, fucina.dtype.block_size(dtype), indices)
    demand(same_values(first[indices], rows), f"{dtype.name}: rows are not those of the whole")
    demand(fucina.quant.validate(dtype, held).blocks == count, f"{dtype.name}: validate counts otherwise")
    done["decoded blocks"] += count * len(fucina.isa_levels())


def encode_case(rng: np.random.Generator, dtype: DType, done: Counter[str]) -> None:
    """Encode some values at every level, whole and in part; decode what comes out."""
    slow = dtype.name.startswith("iq")
    size, count = fucina.dtype.block_size(dtype), int(rng.integers(1, 3 if slow else 12))
    values = some_values(rng, count * size)
    offset = int(rng.integers(0, 9))
    held = placed(values.view(np.uint8), offset).view(np.float32).reshape(1, -1) if offset % 4 == 0 else None
    if held is None:  # numpy makes no view of its own at an odd address
        room = np.empty(values.nbytes + offset, np.uint8)
        held = np.ndarray((1, values.size), np.float32, room.data, offset)
        held[...] = values
    options: dict[str, Any] = {}
    if dtype.name in TAKE_IMPORTANCE and rng.random() < 0.5:
        importance = np.abs(some_values(rng, count * size))
        options["imatrix"] = np.where(np.isfinite(importance), importance, np.float32(1))
    if dtype.name == "iq4_nl" and rng.random() < 0.5:
        options["search"] = False
    if dtype.name == "tq2_0" and rng.random() < 0.5:
        options["scale"] = float(np.float32(10.0 ** rng.uniform(-40, 38)) or np.float32(1))
    finite = bool(np.isfinite(values).all())
    out = placed(np.full(count * fucina.dtype.block_byte_size(dtype), CANARY, np.uint8), int(rng.integers(0, 9)))
    answers = []
    for level in fucina.isa_levels():
        fucina.set_isa(level)
        out[:] = CANARY
        try:
            fucina.quant.quantize(dtype, held, out=out.reshape(1, -1), **options)
            answers.append(out.tobytes())
            demand(finite, f"{dtype.name}: {level} encodes what is not finite")
        except (NonFiniteValue, UnencodableBlock) as refused:
            answers.append(repr(refused).encode())
            demand(isinstance(refused, UnencodableBlock) == finite, f"{dtype.name}: {level} refuses for another reason")
            demand(bool((out == CANARY).all()), f"{dtype.name}: {level} writes and refuses")
            done["refused arrays"] += 1
    demand(len(set(answers)) == 1, f"{dtype.name}: levels encode otherwise")
    if answers[0] != out.tobytes():  # refused
        return
    done["encoded blocks"] += count * len(answers)
    fucina.quant.dequantize(dtype, out)
    block = int(rng.integers(count))
    if "imatrix" in options:
        options["imatrix"] = options["imatrix"][block * size : (block + 1) * size].copy()
    alone = fucina.quant.quantize(dtype, values[block * size : (block + 1) * size].copy(), **options)
    width = fucina.dtype.block_byte_size(dtype)
    demand(
        alone.tobytes() == answers[0][block * width : (block + 1) * width],
        f"{dtype.name}: a block alone encodes otherwise",
    )


def play(case: int, done: dict[DType, Counter[str]]) -> None:
    """Play the case of this number."""
    dtype = BLOCKS[case % len(BLOCKS)]
    rng = np.random.default_rng([2026, case])
    best = fucina.isa()
    try:
        with np.errstate(all="ignore"):
            decode_case(rng, dtype, done[dtype])
            encode_case(rng, dtype, done[dtype])
    finally:
        fucina.set_isa(best)


def main() -> int:
    """Play cases until the time is over; write the record of a run without a finding."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz_blocks", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--cases", type=int, default=sys.maxsize, help="play no more than so many")
    parser.add_argument("--trace", type=Path, help="file that always holds the number of the case at work")
    parser.add_argument("--record", type=Path, help="where the record goes; default: only runs of 10 minutes write one")
    options = parser.parse_args()
    done: dict[DType, Counter[str]] = {d: Counter() for d in BLOCKS}
    began = time.monotonic()
    case = options.first
    columns = TextColumn("case {task.fields[case]}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console()) as progress:
        task = progress.add_task("", total=options.minutes * 60, case=case)
        while (spent := time.monotonic() - began) < options.minutes * 60 and case < options.first + options.cases:
            if options.trace:
                options.trace.write_text(str(case), encoding="ascii")
            try:
                play(case, done)
            except FindingError as finding:
                progress.console.print(f"[bold red]case {case}: {finding}")
                return 1
            progress.update(task, completed=spent, case=case)
            case += 1
    record = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": platform.machine(),
        "versions": {name: version(name) for name in ("fucina", "numpy")},
        "sanitizers": sanitizers(),
        "levels": list(fucina.isa_levels()),
        "minutes": round((time.monotonic() - began) / 60, 1),
        "first": options.first,
        "cases": case - options.first,
        "formats": [{"format": d.name} | dict(sorted(done[d].items())) for d in BLOCKS],
    }
    target = options.record or (RECORD if options.minutes >= 10 else None)
    if target is not None:
        target.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0


def sanitizers() -> list[str]:
    """Return which sanitizers the extension module of this process was built with."""
    code = Path(str(_native.__file__)).read_bytes()
    marks = {"AddressSanitizer": b"__asan_report", "UBSan": b"__ubsan_handle"}
    return [name for name, mark in marks.items() if mark in code]


if __name__ == "__main__":
    sys.exit(main())
