"""Rows of the block formats: ours beside memcpy of the f32 side, the ``gguf`` package and ggml's own C.

ggml's C is compiled as most people build it, ``-O3 -march=native``; where it cannot be had its figures are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from harness import Contestant, Goal, Row
from peers import memcpy, optional

import fucina.fast as fucina
from fucina.spec import DType
from tools.ggml import NATIVE, Ggml, MissingPeerError

gguf = optional("gguf")

quant = fucina.quant
BLOCKS = [d for d in DType if fucina.dtype.kind(d) is fucina.DTypeKind.block_quantized]
COLUMNS = 4096
DECODED_ROWS = 4096
GATHERED_ROWS = 512
TWICE_DECODED = {
    *("q2_k", "q3_k", "q6_k", "iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s", "mxfp4", "nvfp4"),
}
"""Formats whose decoder has the goal of half of ggml's time."""
TWICE_ENCODED = {"q2_k", "q3_k", "q4_k", "q5_k", "q6_k"}


def _encoded_rows(dtype: DType) -> int:
    """Return how many rows are encoded: fewer where a search makes the encoders slow."""
    if dtype.name.startswith("iq"):
        return 64
    return 1024 if dtype.name.endswith("_k") or dtype.name == "nvfp4" else 4096


@cache
def ggml() -> Ggml | None:
    """Return ggml's C, or None with a note on the terminal."""
    try:
        return Ggml.build(NATIVE)
    except MissingPeerError as missing:
        print(f"no rows of ggml's C: {missing}")
        return None


def _gguf_type(dtype: DType, *, encode: bool = False) -> Any:
    """Return the package's number of a format that it decodes (or encodes), else None."""
    if gguf is None or dtype.name.upper() not in gguf.GGMLQuantizationType.__members__:
        return None
    kind = gguf.GGMLQuantizationType[dtype.name.upper()]
    traits = gguf.quants._type_traits.get(kind)
    if traits is None or (encode and "quantize_blocks" not in vars(traits)):
        return None
    return kind


def _normal(rows: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(0).standard_normal((rows, COLUMNS), np.float32)


def _blocks(dtype: DType, rows: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return encoded Gaussian rows as bytes, the first 64 of them repeated."""
    few = quant.quantize(dtype, _normal(min(rows, 64)))
    return np.tile(few, (rows // len(few), 1)).view(np.uint8)


def _decode(dtype: DType, rows: int) -> Row:
    n = rows * COLUMNS
    blocks, out = _blocks(dtype, rows), np.zeros((rows, COLUMNS), np.float32)
    contestants = [
        Contestant("ours", "fucina.fast", lambda: quant.dequantize(dtype, blocks, out=out)),
        memcpy(8 * n),
    ]
    if (kind := _gguf_type(dtype)) is not None:
        contestants.append(Contestant("peer", "gguf", lambda: gguf.quants.dequantize(blocks, kind)))
    if (library := ggml()) is not None and (decoder := library.decoder(dtype)) is not None:
        there, into = blocks.ctypes.data, out.ctypes.data
        contestants.append(Contestant("peer", "ggml C", lambda: decoder(there, into, n)))
    goals = [Goal(0.5 if dtype.name in TWICE_DECODED else 1.0, "ggml"), Goal(2.0, "memcpy", kind="limit")]
    return Row(f"decode {dtype.name}", n, contestants, goals)


def _encode(dtype: DType, rows: int) -> Row:
    n = rows * COLUMNS
    values = _normal(rows)
    blocks = np.zeros((rows, COLUMNS // fucina.dtype.block_size(dtype)), fucina.dtype.storage(dtype))
    contestants = [
        Contestant("ours", "fucina.fast", lambda: quant.quantize(dtype, values, out=blocks)),
        memcpy(8 * n),
    ]
    if (kind := _gguf_type(dtype, encode=True)) is not None:
        contestants.append(Contestant("peer", "gguf", lambda: gguf.quants.quantize(values, kind)))
    if (library := ggml()) is not None:
        encoder, there, into = library.encoder(dtype, COLUMNS), values.ctypes.data, blocks.ctypes.data
        contestants.append(Contestant("peer", "ggml C", lambda: encoder(there, into, rows)))
    goals = [Goal(0.5 if dtype.name in TWICE_ENCODED else 1.0, "ggml"), Goal(0.2, "gguf")]
    return Row(f"encode {dtype.name}", n, contestants, goals)


def _gather(dtype: DType, rows: int) -> Row:
    n = GATHERED_ROWS * COLUMNS
    blocks, out = _blocks(dtype, rows), np.zeros((GATHERED_ROWS, COLUMNS), np.float32)
    indices = np.random.default_rng(1).integers(0, rows, GATHERED_ROWS)
    contestants = [
        Contestant("ours", "fucina.fast", lambda: quant.dequantize_rows(dtype, blocks, COLUMNS, indices, out=out)),
        memcpy(8 * n),
    ]
    if (kind := _gguf_type(dtype)) is not None:
        contestants.append(Contestant("peer", "gguf", lambda: gguf.quants.dequantize(blocks[indices], kind)))
    if (library := ggml()) is not None and (decoder := library.decoder(dtype)) is not None:
        start, step, into = blocks.ctypes.data, blocks.strides[0], out.ctypes.data
        places = [(start + int(i) * step, into + k * 4 * COLUMNS) for k, i in enumerate(indices)]

        def each() -> None:
            for place, target in places:
                decoder(place, target, COLUMNS)

        contestants.append(Contestant("peer", "ggml C, row by row", each))
    return Row(f"rows {dtype.name}", n, contestants, [Goal(1.0)])


def _call(dtype: DType, values: int, *, encode: bool) -> Row:
    """Return a row about few values, where the cost of a call counts."""
    plain = np.random.default_rng(0).standard_normal((1, values), np.float32)
    blocks = quant.quantize(dtype, plain)
    held = blocks.view(np.uint8)
    there, into = (plain, held) if encode else (held, plain.copy())
    source, target = there.ctypes.data, into.ctypes.data
    library = ggml()
    if encode:
        ours: Callable[[], object] = lambda: quant.quantize(dtype, plain, out=held)  # noqa: E731
        theirs = library.encoder(dtype, values) if library else None
        count = 1
    else:
        ours = lambda: quant.dequantize(dtype, held, out=into)  # noqa: E731
        theirs = library.decoder(dtype) if library else None
        count = values
    contestants = [Contestant("ours", "fucina.fast", ours), memcpy(8 * values)]
    if (kind := _gguf_type(dtype, encode=encode)) is not None:
        call = gguf.quants.quantize if encode else gguf.quants.dequantize
        contestants.append(Contestant("peer", "gguf", lambda: call(there, kind)))
    if theirs is not None:
        contestants.append(Contestant("peer", "ggml C by ctypes", lambda: theirs(source, target, count)))
    name = f"{'encode' if encode else 'decode'} {dtype.name}, {'one block' if values < 1000 else '1024 values'}"
    return Row(name, values, contestants, [Goal(1.0, "ggml"), Goal(0.5, "gguf")])


def rows(*, quick: bool) -> list[tuple[str, Callable[[], Row]]]:
    """Return all rows, by name and still to be made; quick: an eighth of the values."""
    share = 8 if quick else 1
    made: list[tuple[str, Callable[[], Row]]] = []
    for dtype in BLOCKS:
        made.append((f"decode {dtype.name}", partial(_decode, dtype, DECODED_ROWS // share)))
    for dtype in BLOCKS:
        made.append((f"encode {dtype.name}", partial(_encode, dtype, _encoded_rows(dtype) // share)))
    for dtype in BLOCKS:
        made.append((f"rows {dtype.name}", partial(_gather, dtype, DECODED_ROWS // share)))
    for encode in (False, True):
        for dtype in BLOCKS:
            for values in (fucina.dtype.block_size(dtype), 1024):
                name = f"{'encode' if encode else 'decode'} {dtype.name}, {values} values"
                made.append((name, partial(_call, dtype, values, encode=encode)))
    return made
