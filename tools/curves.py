"""How the error of a format depends on the size of a weight: ``python -m tools.curves`` records it.

The weights are a seeded stream and the codes a contract, so the record comes out the same wherever it is made.
"""

from __future__ import annotations

import datetime
import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import fucina.fast as fucina
from fucina.spec import DType

RECORD = Path(__file__).parents[1] / "docs" / "records" / "curves.json"
SEED, COUNT, DEVIATION = 1, 1 << 20, 0.02
FORMATS = (DType.bf16, DType.f8_e4m3, DType.f8_e5m2, DType.q8_0, DType.q4_k)
EDGES = 10.0 ** (np.arange(-18, 5) / 6)
"""Borders of the classes of size, in deviations: six in a decade."""

LEAST = 100
"""A class with fewer weights than that is left out."""


def there_and_back(dtype: DType, values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Encode and decode."""
    if fucina.dtype.is_block_quantized(dtype):
        return fucina.quant.dequantize(dtype, fucina.quant.quantize(dtype, values))
    return np.asarray(fucina.dtype.cast_array(dtype, DType.f32, fucina.dtype.convert(values, dtype)), np.float32)


def curves() -> list[dict[str, Any]]:
    """Return for each format the root mean squared error by size of the weight, both in deviations."""
    values = np.zeros(COUNT, np.float32)
    fucina.rng.normal_fill(SEED, values, 0.0, DEVIATION)
    wide = values.astype(np.float64)
    place = np.digitize(np.abs(wide) / DEVIATION, EDGES)
    counts = np.bincount(place, minlength=len(EDGES) + 1)
    found = []
    for dtype in FORMATS:
        print(dtype.name, flush=True)
        errors = (there_and_back(dtype, values).astype(np.float64) - wide) / DEVIATION
        sums = np.bincount(place, errors**2, minlength=len(EDGES) + 1)
        points = [
            [float(f"{np.sqrt(EDGES[i - 1] * EDGES[i]):.6g}"), float(f"{np.sqrt(sums[i] / counts[i]):.6g}")]
            for i in range(1, len(EDGES))
            if counts[i] >= LEAST
        ]
        found.append({"format": dtype.name, "points": points})
    return found


def main() -> int:
    """Write the record."""
    record = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "versions": {name: version(name) for name in ("fucina", "numpy")},
        "weights": {"seed": SEED, "count": COUNT, "deviation": DEVIATION},
        "formats": curves(),
    }
    RECORD.write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
