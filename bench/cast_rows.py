"""Rows of the casts: every pair that a peer supports, ours beside numpy, ml_dtypes and torch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from harness import Contestant, Goal, Row
from peers import memcpy, optional

import fucina.fast as fucina
from fucina.spec import DType

torch = optional("torch")
ml_dtypes = optional("ml_dtypes")

BIG = 1 << 24
SCALARS = list(DType)[:13]
NAMED = {
    ("f32", "bf16"): 0.95,
    ("f32", "f16"): 0.95,
    ("bf16", "f32"): 0.65,
    ("f16", "f32"): 0.65,
    ("f32", "f8_e4m3"): 0.55,
    ("f8_e4m3", "f32"): 0.06,
    ("f32", "f8_e5m2"): 0.8,
    ("f8_e5m2", "f32"): 0.3,
    ("f32", "i32"): 0.75,
    ("f64", "i64"): 0.75,
}
"""Pairs with a goal of their own at 2^24; every other pair must not be slower than any peer."""


def _numpy_type(dtype: DType) -> Any:
    own = {"bf16": "bfloat16", "f8_e4m3": "float8_e4m3fn", "f8_e5m2": "float8_e5m2"}
    if dtype.name in own:
        return getattr(ml_dtypes, own[dtype.name]) if ml_dtypes else None
    return fucina.dtype.storage(dtype)


def _torch_type(dtype: DType) -> Any:
    names = {
        "bool": "bool", "u8": "uint8", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "f16": "float16",
        "bf16": "bfloat16", "f32": "float32", "f64": "float64", "f8_e4m3": "float8_e4m3fn", "f8_e5m2": "float8_e5m2",
    }  # fmt: skip
    return getattr(torch, names[dtype.name]) if torch and dtype.name in names else None


def _torch_view(array: np.ndarray[Any, Any], kind: Any) -> Any:
    carrier = {1: np.uint8, 2: np.int16}.get(array.itemsize)
    return torch.from_numpy(array.view(carrier) if carrier else array).view(kind)


def _row(source: DType, target: DType, n: int) -> Row:
    wide = np.random.default_rng(0).standard_normal(n, np.float32)
    wide *= 50.0 if target.name[0] in "iu" or source.name[0] in "iu" else 4.0
    if source.name[0] == "u" or target.name[0] == "u":
        np.abs(wide, out=wide)
    data = np.empty(n, fucina.dtype.storage(source))
    fucina.dtype.cast_array(DType.f32, source, wide, out=data)
    out = np.zeros(n, fucina.dtype.storage(target))
    cast, copyto = fucina.dtype.cast_array, np.copyto  # looked up once: what is measured is the call
    contestants = [
        Contestant("ours", "fucina.fast", lambda: cast(source, target, data, out=out)),
        memcpy(n * (data.itemsize + out.itemsize)),
    ]
    kind_in, kind_out = _numpy_type(source), _numpy_type(target)
    if kind_in is not None and kind_out is not None:
        their_in, their_out = data.view(kind_in), out.view(kind_out)
        label = "numpy" if kind_in is data.dtype and kind_out is out.dtype else "ml_dtypes"
        contestants.append(Contestant("peer", f"{label} copyto", lambda: copyto(their_out, their_in, casting="unsafe")))
        contestants.append(Contestant("peer", f"{label} astype", lambda: their_in.astype(kind_out)))
    torch_in, torch_out = _torch_type(source), _torch_type(target)
    if torch_in is not None and torch_out is not None:
        tensor_in, tensor_out = _torch_view(data, torch_in), _torch_view(out, torch_out)
        contestants.append(Contestant("peer", "torch copy_", lambda: tensor_out.copy_(tensor_in)))
    if n == BIG and (source.name, target.name) in NAMED:
        goals = [Goal(NAMED[source.name, target.name], "torch"), Goal(1.0)]
    elif n == 1000:
        goals = [Goal(0.5, "numpy")] if any(c.label.startswith("numpy") for c in contestants) else [Goal(0.5)]
    else:
        goals = [Goal(1.0)]
    return Row(f"{source.name} -> {target.name}", n, contestants, goals)


def rows(n: int, *, every_pair: bool) -> list[tuple[str, Callable[[], Row]]]:
    """Return the rows of one size, by name and still to be made: the named pairs, or all 169."""
    pairs = [(s, t) for s in SCALARS for t in SCALARS if every_pair or (s.name, t.name) in NAMED]
    return [(f"{s.name} -> {t.name}", partial(_row, s, t, n)) for s, t in pairs]
