"""ggml's own C, built from the source distribution of llama-cpp-python, as a peer: ``Ggml.build(flags)``.

Only what decodes and encodes is compiled: ggml-quants.c and the tables of ggml.c.  Nothing of it is shipped; the source
is fetched by pip at the pinned version into a cache directory, and whoever cannot fetch or compile gets
:class:`MissingPeerError`, which callers show as a note.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fucina.fast.dtype import block_size, storage
from fucina.spec import DType

__all__ = ["CONTRACTED", "NATIVE", "SOURCE", "STRICT", "Ggml", "MissingPeerError"]

SOURCE = "llama-cpp-python==0.3.36"
NATIVE = ("-O3", "-march=native")
"""As most people build it; GCC contracts to FMA by default."""
STRICT = (*NATIVE, "-ffp-contract=off")
CONTRACTED = (*NATIVE, "-mfma", "-ffp-contract=fast")

NEEDS_IMPORTANCE = ("iq1_s", "iq1_m", "iq2_xxs", "iq2_xs")
GRID_TYPES = {"iq2_xxs": 16, "iq2_xs": 17, "iq1_s": 19, "iq2_s": 22, "iq1_m": 29}
"""ggml's type ids of the formats whose search needs a table of neighbours made at run time."""
NO_DECODER = ("q8_1",)
ROW_ENCODERS = ("q8_1", "q8_k")
"""Formats that ggml encodes for its own dot products only: they have no entry for whole tensors."""


class MissingPeerError(Exception):
    """The peer cannot be had here; the message says why."""


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    path = Path(base) / "fucina-peers"
    path.mkdir(parents=True, exist_ok=True)
    return path


def _sdist() -> Path:
    """Return the source distribution: given by FUCINA_GGML_SDIST, cached, or fetched by pip."""
    if given := os.environ.get("FUCINA_GGML_SDIST"):
        return Path(given)
    wanted = _cache() / (SOURCE.replace("-", "_").replace("==", "-") + ".tar.gz")
    if not wanted.exists():
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
        result = subprocess.run([*command, "-d", str(_cache()), SOURCE], capture_output=True, text=True, check=False)
        if result.returncode or not wanted.exists():
            reason = (result.stderr.strip().splitlines() or ["no file of the expected name"])[-1]
            raise MissingPeerError(f"pip could not fetch {SOURCE}: {reason}")
    return wanted


def _sources(target: Path) -> Path:
    """Unpack ggml's folders ``src`` and ``include`` and return the first."""
    with tarfile.open(_sdist()) as archive:
        ggml = [m for m in archive.getmembers() if "/vendor/llama.cpp/ggml/" in m.name]
        wanted = [m for m in ggml if m.name.endswith((".c", ".h"))]
        archive.extractall(target, members=wanted, filter="data")
    (source,) = target.glob("*/vendor/llama.cpp/ggml/src")
    (source / "ggml-version.h").touch()  # ggml's own build makes this one
    header = source / "ggml-common.h"
    text = header.read_text(encoding="utf-8")
    if text.count("#define QK2_0 64\n") != 1:
        raise MissingPeerError(f"{SOURCE} declares another q2_0 than the one of 64 elements")
    header.write_text(text.replace("#define QK2_0 64\n", "#define QK2_0 128\n"), encoding="utf-8")  # clause BLOCK-Q20-1
    return source


def _compiled(flags: Sequence[str]) -> Path:
    """Return the shared library of these flags, from the cache or built now."""
    compiler = os.environ.get("CC", "cc")
    if shutil.which(compiler) is None:
        raise MissingPeerError(f"no C compiler {compiler}")
    shim = Path(__file__).with_name("shim.c")
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
    key = "\n".join([SOURCE, version, *flags, shim.read_text(encoding="utf-8"), "128"])
    library = _cache() / f"ggml-{hashlib.sha256(key.encode()).hexdigest()[:16]}.so"
    if library.exists():
        return library
    with tempfile.TemporaryDirectory(prefix="fucina-ggml-") as place:
        source = _sources(Path(place))
        made = Path(place) / "ggml.so"
        defines = ["-D_GNU_SOURCE", '-DGGML_VERSION=""', '-DGGML_COMMIT=""', "-DNDEBUG"]
        options = ["-std=gnu11", "-w", "-fPIC", "-shared", *flags, *defines, f"-I{source}", f"-I{source}/../include"]
        files = [str(source / "ggml-quants.c"), str(source / "ggml.c"), str(shim)]
        result = subprocess.run(
            [compiler, *options, *files, "-o", str(made), "-lm"], capture_output=True, text=True, check=False
        )
        if result.returncode:
            raise MissingPeerError(f"ggml does not compile: {result.stderr[:300]}")
        shutil.copyfile(made, library.with_suffix(".new"))
        library.with_suffix(".new").replace(library)
    return library


class Ggml:
    """The C library built with given compiler flags, behind the calls that a comparison needs."""

    def __init__(self, library: Path, flags: Sequence[str]) -> None:
        self.flags = tuple(flags)
        self._lib = ctypes.CDLL(str(library))
        self._ready: set[DType] = set()

    @classmethod
    def build(cls, flags: Sequence[str]) -> Ggml:
        """Fetch, compile, load; raise :class:`MissingPeerError` where that cannot be."""
        return cls(_compiled(flags), flags)

    def _function(self, name: str, result: Any, *arguments: Any) -> Any:
        function = getattr(self._lib, name)
        function.restype, function.argtypes = result, arguments
        return function

    def decoder(self, dtype: DType) -> Any:
        """Return ``f(blocks address, values address, count of values)``, or None where ggml has none."""
        if dtype.name in NO_DECODER:
            return None
        name = f"dequantize_row_{_theirs(dtype)}"
        return self._function(name, None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)

    def encoder(self, dtype: DType, columns: int) -> Any:
        """Return ``f(values address, blocks address, rows)`` for rows of ``columns`` values."""
        theirs = _theirs(dtype)
        if dtype.name in ROW_ENCODERS:
            row = self._function(f"quantize_row_{theirs}_ref", None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
            return lambda values, blocks, rows: row(values, blocks, rows * columns)
        if dtype not in self._ready:  # neighbours of the grids, made once
            if dtype.name in GRID_TYPES:
                self._function("iq2xs_init_impl", None, ctypes.c_int)(GRID_TYPES[dtype.name])
            elif dtype.name in ("iq3_xxs", "iq3_s"):
                self._function("iq3xs_init_impl", None, ctypes.c_int)(256 if dtype.name == "iq3_xxs" else 512)
            self._ready.add(dtype)
        chunk = self._function(
            f"quantize_{theirs}",
            ctypes.c_size_t,
            *(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p),
        )
        ones = np.ones(columns, np.float32)
        importance = ones.ctypes.data if dtype.name in NEEDS_IMPORTANCE else None
        # the closure keeps the ones alive
        return lambda values, blocks, rows, _keep=ones: chunk(values, blocks, rows, columns, importance)

    def decode(self, dtype: DType, blocks: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32] | None:
        """Decode blocks, shape (n, bytes of a block), to shape (n, elements of a block)."""
        decoder = self.decoder(dtype)
        if decoder is None:
            return None
        values = np.zeros((len(blocks), block_size(dtype)), np.float32)
        held = np.ascontiguousarray(blocks)
        decoder(held.ctypes.data, values.ctypes.data, values.size)
        return values

    def encode(self, dtype: DType, values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint8]:
        """Encode rows, shape (rows, columns), to blocks, shape (n, bytes of a block)."""
        rows, columns = values.shape
        held = np.ascontiguousarray(values)
        blocks = np.zeros((rows * columns // block_size(dtype), storage(dtype).itemsize), np.uint8)
        self.encoder(dtype, columns)(held.ctypes.data, blocks.ctypes.data, rows)
        return blocks


def _theirs(dtype: DType) -> str:
    return dtype.name.removesuffix("_k") + "_K" if dtype.name.endswith("_k") else dtype.name
