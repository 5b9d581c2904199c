"""Compare every block format with the ``gguf`` package and with ggml's own C, bit for bit, and record the counts.

ggml's C is built twice from one source: with each operation rounded on its own, which is what the contract says, and
with the contraction to FMA that GCC does by default where the processor has it.  The rows and the model's matrices on
which the two builds give other bytes are counted too.  ``python -m tools.peers`` writes docs/records/peers.json.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import fucina.fast as fucina
from fucina.spec import DType
from tools.ggml import CONTRACTED, SOURCE, STRICT, Ggml, MissingPeerError
from tools.peers import gguf_package, samples
from tools.weights import model

RECORD = Path(__file__).parents[2] / "docs" / "records" / "peers.json"
Bytes = npt.NDArray[np.uint8]
Values = npt.NDArray[np.float32]


def different_values(ours: Values, theirs: Values) -> int:
    """Count the blocks whose bits differ, shape (n, elements); NaNs are one class."""
    a, b = ours.reshape(theirs.shape), theirs
    wrong = (a.view(np.uint32) != b.view(np.uint32)) & ~(np.isnan(a) & np.isnan(b))
    return int(np.count_nonzero(wrong.any(axis=1)))


def different_bytes(ours: Bytes, theirs: Bytes) -> int:
    """Count the blocks that differ, shape (n, bytes of a block)."""
    return int(np.count_nonzero((ours != theirs.reshape(ours.shape)).any(axis=1)))


def encoded(dtype: DType, values: Values) -> Bytes:
    """Encode with ours, to bytes, a line a block."""
    return fucina.quant.quantize(dtype, values).view(np.uint8).reshape(-1, fucina.dtype.block_byte_size(dtype))


def decoding(dtype: DType, sample: Values, strict: Ggml | None) -> dict[str, Any]:
    """Compare decoders on all kinds of blocks."""
    kinds = samples.blocks(dtype, sample)
    counts: dict[str, Any] = {"blocks": {kind: len(b) for kind, b in kinds.items()}, "gguf": None, "ggml": None}
    for kind, blocks in kinds.items():
        ours = fucina.quant.dequantize(dtype, np.ascontiguousarray(blocks))
        if gguf_package.decodes(dtype):
            counts["gguf"] = counts["gguf"] or {}
            counts["gguf"][kind] = different_values(ours, gguf_package.decode(dtype, blocks))
        if strict is not None and (theirs := strict.decode(dtype, blocks)) is not None:
            counts["ggml"] = counts["ggml"] or {}
            counts["ggml"][kind] = different_values(ours, theirs)
    return counts


def encoding(dtype: DType, strict: Ggml | None, contracted: Ggml | None) -> dict[str, Any]:
    """Compare encoders on all kinds of rows; ``contracted`` counts the rows on which the two builds differ."""
    counts: dict[str, Any] = {"rows": {}, "blocks": {}, "gguf": None, "ggml": None, "contracted": None}
    for kind, rows in samples.rows().items():
        ours = encoded(dtype, rows)
        counts["rows"][kind], counts["blocks"][kind] = len(rows), len(ours)
        if gguf_package.encodes(dtype):
            counts["gguf"] = counts["gguf"] or {}
            counts["gguf"][kind] = different_bytes(ours, gguf_package.encode(dtype, rows))
        if strict is not None and contracted is not None:
            counts["ggml"], counts["contracted"] = counts["ggml"] or {}, counts["contracted"] or {}
            plain = strict.encode(dtype, rows)
            counts["ggml"][kind] = different_bytes(ours, plain)
            of_rows = (plain != contracted.encode(dtype, rows)).reshape(len(rows), -1)
            counts["contracted"][kind] = int(np.count_nonzero(of_rows.any(axis=1)))
    return counts


def on_model(
    dtype: DType, matrices: list[tuple[str, Values]], strict: Ggml | None, contracted: Ggml | None
) -> dict[str, Any]:
    """Encode the matrices that fit: ours at every level, ggml's two builds."""
    levels = {level: hashlib.sha256() for level in fucina.isa_levels()}
    best = fucina.isa()
    fitting = [v for _, v in matrices if v.shape[-1] % fucina.dtype.block_size(dtype) == 0]
    against_ours = against_each_other = blocks = other_blocks = 0
    try:
        for values in fitting:
            for level, digest in levels.items():
                fucina.set_isa(level)
                ours = encoded(dtype, values)
                digest.update(ours.tobytes())
            if strict is not None and contracted is not None:
                plain, fused = strict.encode(dtype, values), contracted.encode(dtype, values)
                against_ours += not np.array_equal(ours, plain)
                against_each_other += not np.array_equal(plain, fused)
                blocks, other_blocks = blocks + len(plain), other_blocks + different_bytes(plain, fused)
    finally:
        fucina.set_isa(best)
    return {
        "matrices": len(fitting),
        "blocks": blocks,
        "ggml": against_ours if strict else None,
        "contracted": against_each_other if contracted else None,
        "contracted_blocks": other_blocks if contracted else None,
        "sha256": {level: digest.hexdigest() for level, digest in levels.items()},
    }


def wrong(entry: dict[str, Any]) -> int:
    """Count what must be zero in the record of one format."""
    found = [entry[part][peer] for part in ("decode", "encode") for peer in ("gguf", "ggml")]
    total = sum(sum(kinds.values()) for kinds in found if kinds)
    return total + (entry["model"]["ggml"] or 0) + len(set(entry["model"]["sha256"].values())) - 1


def _show(entries: list[dict[str, Any]], console: Console) -> None:
    def cell(kinds: dict[str, int] | None) -> str:
        return "-" if kinds is None else str(sum(kinds.values()))

    table = Table(title="Blocks that differ")
    for column in (
        "format",
        "decode gguf",
        "decode ggml",
        "encode gguf",
        "encode ggml",
        "rows with FMA",
        "matrices with FMA",
    ):
        table.add_column(column, justify="left" if column == "format" else "right")
    for e in entries:
        found = [e[part][peer] for part in ("decode", "encode") for peer in ("gguf", "ggml")]
        matrices = f"{e['model']['contracted']} of {e['model']['matrices']}"
        table.add_row(e["format"], *map(cell, found), cell(e["encode"]["contracted"]), matrices)
    console.print(table)


def main() -> int:
    """Compare all formats, show the table, write the record; fail if anything differs that must not."""
    parser = argparse.ArgumentParser(prog="python -m tools.peers", description=__doc__)
    parser.add_argument("--record", type=Path, default=RECORD, help="where the record goes")
    options = parser.parse_args()
    console = Console()
    strict = contracted = None
    note = ""
    try:
        strict, contracted = Ggml.build(STRICT), Ggml.build(CONTRACTED)
    except MissingPeerError as missing:
        note = str(missing)
        console.print(f"[yellow]without ggml's C: {note}")
    path = model.default_file()
    matrices = list(model.matrices(path))
    sample = samples.rows()["gaussian"]
    entries: list[dict[str, Any]] = []
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=len(samples.BLOCKS))
        for dtype in samples.BLOCKS:
            progress.update(task, description=f"{dtype.name:8}")
            entries.append(
                {
                    "format": dtype.name,
                    "decode": decoding(dtype, sample, strict),
                    "encode": encoding(dtype, strict, contracted),
                    "model": on_model(dtype, matrices, strict, contracted),
                }
            )
            progress.advance(task)
    _show(entries, console)
    record = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": platform.machine(),
        "versions": {name: version(name) for name in ("fucina", "numpy", "gguf")},
        "ggml": {"of": SOURCE, "strict": " ".join(STRICT), "contracted": " ".join(CONTRACTED), "missing": note},
        "model": {"source": model.source(path), "sha256": model.digest(path), "matrices": len(matrices)},
        "formats": entries,
    }
    options.record.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    differing = [e["format"] for e in entries if wrong(e)]
    if differing:
        console.print(f"[bold red]differ: {', '.join(differing)}")
    return bool(differing)


if __name__ == "__main__":
    sys.exit(main())
