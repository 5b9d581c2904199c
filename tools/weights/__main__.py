"""Encode every matrix of a model into every format that fits, decode, and record size against error.

``python -m tools.weights [--file MODEL.safetensors]`` writes docs/records/weights.json, from which the documentation
draws its table and its picture.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import sys
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import fucina.fast as fucina
from fucina.spec import DType, DTypeKind
from tools.weights import model

RECORD = Path(__file__).parents[2] / "docs" / "records" / "weights.json"
BLOCKS = [d for d in DType if fucina.dtype.kind(d) is DTypeKind.block_quantized]
WIDEST = 256


@dataclass
class Sums:
    """What adds up over tensors: squares of errors and of weights."""

    tensors: int = 0
    weights: int = 0
    error: float = 0.0
    energy: float = 0.0
    largest: float = 0.0

    def add(self, values: npt.NDArray[np.float32], decoded: npt.NDArray[np.float32]) -> None:
        """Count one tensor."""
        wide = values.astype(np.float64)
        difference = decoded.astype(np.float64) - wide
        self.tensors += 1
        self.weights += values.size
        self.error += float(np.sum(difference * difference))
        self.energy += float(np.sum(wide * wide))
        self.largest = max(self.largest, float(np.max(np.abs(difference))))

    @property
    def relative(self) -> float:
        """Root of the mean squared error over the root of the mean squared weight."""
        return math.sqrt(self.error / self.energy)

    @property
    def plain(self) -> float:
        """Root of the mean squared error."""
        return math.sqrt(self.error / self.weights)

    def record(self) -> dict[str, Any]:
        """Return the figures as plain data."""
        return {
            "tensors": self.tensors,
            "weights": self.weights,
            "rmse": self.plain,
            "relative_rmse": self.relative,
            "max_error": self.largest,
        }


@dataclass
class Figures:
    """One format: over all tensors that fit it, and over those that fit every format."""

    dtype: DType
    fitting: Sums = field(default_factory=Sums)
    common: Sums = field(default_factory=Sums)

    @property
    def bits(self) -> float:
        """Bits per weight."""
        return 8 * fucina.dtype.block_byte_size(self.dtype) / fucina.dtype.block_size(self.dtype)

    def measure(self, values: npt.NDArray[np.float32]) -> None:
        """Encode and decode one tensor."""
        decoded = fucina.quant.dequantize(self.dtype, fucina.quant.quantize(self.dtype, values))
        self.fitting.add(values, decoded)
        if values.shape[-1] % WIDEST == 0:
            self.common.add(values, decoded)

    def record(self) -> dict[str, Any]:
        """Return the figures as plain data."""
        common = self.common.record() if self.common.weights else None
        return {
            "format": self.dtype.name,
            "bits_per_weight": self.bits,
            "fitting": self.fitting.record(),
            "common": common,
        }


def _show(found: list[Figures], console: Console) -> None:
    table = Table(title="relative RMSE")
    for column in ("format", "bits", "tensors", "all that fit", "those that fit every format"):
        table.add_column(column, justify="left" if column == "format" else "right")
    for f in sorted(found, key=lambda f: f.bits):
        common = f"{f.common.relative:.5f}" if f.common.weights else ""
        table.add_row(f.dtype.name, f"{f.bits:.4g}", str(f.fitting.tensors), f"{f.fitting.relative:.5f}", common)
    console.print(table)


def main() -> int:
    """Run all formats over all tensors, show the table, write the record."""
    parser = argparse.ArgumentParser(prog="python -m tools.weights", description=__doc__)
    parser.add_argument("--file", type=Path, help="a safetensors file; default: the model of " + model.PACKAGE)
    parser.add_argument("--record", type=Path, default=RECORD, help="where the record goes")
    options = parser.parse_args()
    path = options.file or model.default_file()
    console = Console()
    tensors = list(model.matrices(path))
    work = [(d, v) for d in BLOCKS for _, v in tensors if v.size and v.shape[-1] % fucina.dtype.block_size(d) == 0]
    figures = {d: Figures(d) for d in BLOCKS}
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=len(work))
        for dtype, values in work:
            progress.update(task, description=f"{dtype.name:8}")
            figures[dtype].measure(values)
            progress.advance(task)
    found = [f for f in figures.values() if f.fitting.weights]
    _show(found, console)
    record = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "source": model.source(path),
        "sha256": model.digest(path),
        "versions": {"fucina": version("fucina"), "numpy": version("numpy")},
        "tensors": [{"name": name, "shape": list(v.shape)} for name, v in tensors],
        "formats": [f.record() for f in found],
    }
    options.record.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
