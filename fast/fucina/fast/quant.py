"""Block formats: 27 GGML-compatible encodings of f32 values, both ways.

Blocks travel as arrays of the format's packed struct (``BlockQ4_K`` and its siblings) or as plain bytes, straight from
a file: any object with the buffer protocol, at any address.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fucina.fast import _block_arguments as arguments
from fucina.fast._accelerate import accelerated, blocks_known
from fucina.fast._block_buffers import (
    Blocks,
    block_dtype,
    block_target,
    geometry_of,
    require_finite,
    stored_blocks,
    values_to_encode,
)
from fucina.fast._block_report import findings
from fucina.fast._buffers import Memory, empty, refuse_overlap, require_count, writing
from fucina.fast._flags import kept_flags
from fucina.fast._native import ffi, lib
from fucina.fast.geometry import storage
from fucina.spec.errors import InvalidDataLength, InvalidShape, OverlappingMemory, UnencodableBlock
from fucina.spec.quant import BlockReport, ErrorFigures
from fucina.spec.types import DType

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from fucina.fast._native import CData
    from fucina.spec.interface import AnyArray, Buffer

__all__ = [
    "BlockIQ1_M",
    "BlockIQ1_S",
    "BlockIQ2_S",
    "BlockIQ2_XS",
    "BlockIQ2_XXS",
    "BlockIQ3_S",
    "BlockIQ3_XXS",
    "BlockIQ4_NL",
    "BlockIQ4_XS",
    "BlockMXFP4",
    "BlockNVFP4",
    "BlockQ1_0",
    "BlockQ2_0",
    "BlockQ2_K",
    "BlockQ3_K",
    "BlockQ4_0",
    "BlockQ4_1",
    "BlockQ4_K",
    "BlockQ5_0",
    "BlockQ5_1",
    "BlockQ5_K",
    "BlockQ6_K",
    "BlockQ8_0",
    "BlockQ8_1",
    "BlockQ8_K",
    "BlockTQ1_0",
    "BlockTQ2_0",
    "dequantize",
    "dequantize_rows",
    "error",
    "quantize",
    "validate",
]

BlockQ1_0: np.dtype[np.void] = storage(DType.q1_0)
BlockQ2_0: np.dtype[np.void] = storage(DType.q2_0)
BlockQ4_0: np.dtype[np.void] = storage(DType.q4_0)
BlockQ4_1: np.dtype[np.void] = storage(DType.q4_1)
BlockQ5_0: np.dtype[np.void] = storage(DType.q5_0)
BlockQ5_1: np.dtype[np.void] = storage(DType.q5_1)
BlockQ8_0: np.dtype[np.void] = storage(DType.q8_0)
BlockQ8_1: np.dtype[np.void] = storage(DType.q8_1)
BlockQ2_K: np.dtype[np.void] = storage(DType.q2_k)
BlockQ3_K: np.dtype[np.void] = storage(DType.q3_k)
BlockQ4_K: np.dtype[np.void] = storage(DType.q4_k)
BlockQ5_K: np.dtype[np.void] = storage(DType.q5_k)
BlockQ6_K: np.dtype[np.void] = storage(DType.q6_k)
BlockQ8_K: np.dtype[np.void] = storage(DType.q8_k)
BlockIQ1_S: np.dtype[np.void] = storage(DType.iq1_s)
BlockIQ1_M: np.dtype[np.void] = storage(DType.iq1_m)
BlockIQ2_XXS: np.dtype[np.void] = storage(DType.iq2_xxs)
BlockIQ2_XS: np.dtype[np.void] = storage(DType.iq2_xs)
BlockIQ2_S: np.dtype[np.void] = storage(DType.iq2_s)
BlockIQ3_XXS: np.dtype[np.void] = storage(DType.iq3_xxs)
BlockIQ3_S: np.dtype[np.void] = storage(DType.iq3_s)
BlockIQ4_NL: np.dtype[np.void] = storage(DType.iq4_nl)
BlockIQ4_XS: np.dtype[np.void] = storage(DType.iq4_xs)
BlockTQ1_0: np.dtype[np.void] = storage(DType.tq1_0)
BlockTQ2_0: np.dtype[np.void] = storage(DType.tq2_0)
BlockMXFP4: np.dtype[np.void] = storage(DType.mxfp4)
BlockNVFP4: np.dtype[np.void] = storage(DType.nvfp4)

_MAY_REJECT = frozenset(
    {DType.iq1_s, DType.iq1_m, DType.iq2_xxs, DType.iq2_xs, DType.iq2_s, DType.iq3_xxs, DType.iq3_s}
)
"""The formats whose encoder has no answer for some finite blocks."""
blocks_known(storage, _MAY_REJECT)


@accelerated
def dequantize(dtype: DType, blocks: Buffer, *, out: Buffer | None = None) -> npt.NDArray[np.float32]:
    """Decode blocks to f32.

    Parameters
    ----------
    dtype : DType
        A block dtype.
    blocks : buffer
        An array of the format's struct, or bytes whose last axis is a whole number of blocks: C-contiguous, at any
        address, read-only or not.
    out : buffer of f32, optional
        C-contiguous, writable, aligned, with as many elements as the blocks hold, sharing no memory with them.

    Returns
    -------
    ndarray of float32
        ``out`` itself when it is an ndarray, a view of it when it is another buffer, else a new array: the shape of the
        array of blocks with its last axis multiplied by the block size.

    Raises
    ------
    InvalidDType
        For a scalar dtype.
    DTypeMismatch, UnsupportedView, InvalidShape, InvalidDataLength
        If ``blocks`` are no such blocks.
    DTypeMismatch, UnsupportedView, ReadOnlyStorage, InvalidDataLength, OverlappingMemory
        If ``out`` cannot take the result; it is untouched.
    OutOfMemory
        Without ``out``: a new array of this size cannot be had.

    Clauses: BLOCK-DECODE-1, BLOCK-IN-1, BLOCK-IN-2, BLOCK-OUT-1, BLOCK-ARG-1, BLOCK-CHUNK-1

    Examples
    --------
    >>> fucina.quant.dequantize(fucina.DType.q4_0, bytes([0, 0x3C]) + bytes([0x98] * 16))[[0, 16]]
    array([0., 1.], dtype=float32)
    """
    block_dtype(dtype)
    given = stored_blocks("blocks", blocks, dtype)
    size = geometry_of(dtype).elements
    shape = (*given.shape[:-1], given.shape[-1] * size) if given.shape else (size,)
    result, filled = _f32_target(out, shape)
    refuse_overlap("blocks", given.memory, "out", filled, "BLOCK-OUT-1")
    lib.fc_dequantize(dtype.index, given.memory.pointer("void *"), filled.pointer("float *"), given.count)
    return result


@accelerated
def quantize(
    dtype: DType,
    values: Buffer,
    *,
    out: Buffer | None = None,
    imatrix: Buffer | None = None,
    search: bool = True,
    scale: float | None = None,
) -> AnyArray:
    """Encode f32 values as blocks.

    Parameters
    ----------
    dtype : DType
        A block dtype.
    values : buffer of f32
        Finite numbers, C-contiguous, in native byte order; the last axis a nonzero multiple of the block size.
    out : buffer, optional
        Where the blocks go: structs of the format or bytes, C-contiguous, writable, at any address, of exactly the size
        needed, sharing no memory with the inputs.
    imatrix : buffer of f32, optional
        The importance of each column, as long as the last axis, finite and not negative; iq1_s, iq1_m, iq2_xxs and
        iq2_xs only.
    search : bool
        False: iq4_nl without its search for the scale.
    scale : float, optional
        The scale of every block, finite and positive; tq2_0 only.

    Returns
    -------
    ndarray
        ``out`` itself when it is an ndarray, a view of it when it is another buffer, else a new array of the format's
        struct: the shape of ``values`` with its last axis divided by the block size.

    Raises
    ------
    InvalidDType
        For a scalar dtype, and for an option that the format does not have.
    InvalidShape
        For a last axis that is no multiple of the block size.
    NonFiniteValue
        For a NaN or an infinity; the message has the first index.
    UnencodableBlock
        If the sums of a block overflow so that its format has no answer (iq1, iq2, iq3; from about 1e13 on).
    InvalidBounds, InvalidDataLength
        For an ``imatrix`` or a ``scale`` outside its domain.
    DTypeMismatch, UnsupportedView, ReadOnlyStorage, InvalidDataLength, OverlappingMemory, OutOfMemory
        For buffers that do not fit.  On each error ``out`` is untouched.

    Clauses: BLOCK-ENCODE-1, BLOCK-VALUES-1, BLOCK-FINITE-1, BLOCK-OUT-1, BLOCK-ARG-1, BLOCK-IMATRIX-1, BLOCK-SCALE-1,
    BLOCK-REJECT-1, BLOCK-CHUNK-1

    Examples
    --------
    >>> values = np.linspace(-1, 1, 32, dtype=np.float32)
    >>> fucina.quant.quantize(fucina.DType.q8_0, values).view(np.uint8)[:3]
    array([  8,  32, 129], dtype=uint8)
    """
    block_dtype(dtype)
    searching = arguments.search_option(dtype, imatrix, search, scale)
    given_scale = arguments.scale_option(scale)
    given = values_to_encode(values, dtype)
    columns = given.shape[-1] * geometry_of(dtype).elements
    importance, checked = arguments.imatrix_option(imatrix, columns)
    if out is None:
        result: Any = empty(given.shape, storage(dtype), "BLOCK-OUT-1")
        filled = Memory.of(result)
    else:
        filled = block_target("out", out, dtype, given.count)
        form = np.dtype(np.uint8) if filled.view.itemsize == 1 else storage(dtype)
        result = out if isinstance(out, np.ndarray) else np.frombuffer(filled.view, form).reshape(filled.view.shape)
        refuse_overlap("values", given.memory, "out", filled, "BLOCK-OUT-1")
        if importance is not None:
            refuse_overlap("imatrix", importance, "out", filled, "BLOCK-OUT-1")
    if out is not None:  # into an array of our own the values are looked at as they are encoded: one way through memory
        require_finite("values", given.memory, "BLOCK-FINITE-1")
    weights = ffi.NULL if checked is None else checked.pointer("float *")
    options = ffi.new("struct fc_quantize_options *", (weights, given.shape[-1], 0, given_scale, searching))
    options.check = out is None
    if out is None or dtype not in _MAY_REJECT:
        _encode(dtype, given, filled, options)
    else:  # nothing may be written before the last block is known to have an answer
        aside = empty((given.count,), storage(dtype), "BLOCK-OUT-1")
        _encode(dtype, given, Memory.of(aside), options)
        np.frombuffer(filled.view, np.uint8)[:] = aside.view(np.uint8)
    made: AnyArray = result
    return made


def _encode(dtype: DType, given: Blocks, target: Memory, options: CData) -> None:
    """Encode all blocks into memory that has room for them.

    Clauses: BLOCK-REJECT-1
    """
    encoded = ffi.new("size_t *")
    values, blocks = given.memory.pointer("void *"), target.pointer("void *")
    if lib.fc_quantize(dtype.index, values, blocks, given.count, options, encoded) == lib.FC_BAD_BLOCK:
        require_finite("values", given.memory, "BLOCK-FINITE-1")
        bad, size = int(encoded[0]), geometry_of(dtype).elements
        place = ", ".join(str(int(i)) for i in np.unravel_index(bad, given.shape))
        raise UnencodableBlock(
            f"{dtype.name} has no encoding for block [{place}] of shape {given.shape}, values {bad * size} to "
            f"{(bad + 1) * size - 1} in C order: sums over numbers of this size overflow f32; scale them down",
            clause="BLOCK-REJECT-1",
        )


@accelerated
def dequantize_rows(
    dtype: DType, blocks: Buffer, row_len: int, indices: Buffer | Sequence[int], *, out: Buffer | None = None
) -> npt.NDArray[np.float32]:
    """Decode some rows of a matrix of blocks: the gather of an embedding table.

    Parameters
    ----------
    dtype : DType
        A block dtype.
    blocks : buffer
        As for :func:`dequantize`; taken as consecutive rows of ``row_len`` elements.
    row_len : int
        Elements in a row, a positive multiple of the block size.
    indices : array of integers or sequence of int
        Which rows, each in [0, number of rows), in any order, repeated or not.
    out : buffer of f32, optional
        As for :func:`dequantize`.

    Returns
    -------
    ndarray of float32
        Shape ``(*indices.shape, row_len)``.

    Raises
    ------
    IndexOutOfBounds
        For an index below 0 or not below the number of rows; the message has the first one.
    InvalidInteger, InvalidShape, InvalidDataLength
        For indices or a row length that are no integers, a row length that is no multiple of the block size, blocks
        that are no whole number of rows.
    InvalidDType, DTypeMismatch, UnsupportedView, ReadOnlyStorage, OverlappingMemory, OutOfMemory
        As for :func:`dequantize`.  On each error ``out`` is untouched.

    Clauses: BLOCK-ROWS-1, BLOCK-ROWS-2, BLOCK-OUT-1, BLOCK-IN-1
    """
    block_dtype(dtype)
    row_blocks = arguments.row_blocks(row_len, dtype)
    given = stored_blocks("blocks", blocks, dtype)
    if given.count % row_blocks:
        raise InvalidDataLength(
            f"blocks must hold whole rows of {row_blocks} blocks ({row_len} elements), got {given.count} blocks",
            clause="BLOCK-ROWS-1",
        )
    with kept_flags():
        chosen, wanted = arguments.row_indices(indices, given.count // row_blocks)
    result, filled = _f32_target(out, (*wanted.shape, row_blocks * geometry_of(dtype).elements))
    refuse_overlap("blocks", given.memory, "out", filled, "BLOCK-OUT-1")
    if np.shares_memory(wanted, result):
        raise OverlappingMemory(
            f"out must not share memory with indices, got {result.nbytes} bytes over them", clause="BLOCK-OUT-1"
        )
    if chosen.size:  # where no row is wanted, a row may be longer than any memory
        words = Memory.of(chosen).pointer("uint64_t *")
        lib.fc_dequantize_rows(
            dtype.index, given.memory.pointer("void *"), row_blocks, words, chosen.size, filled.pointer("float *")
        )
    return result


def validate(dtype: DType, blocks: Buffer) -> BlockReport:
    """Look for NaN, infinite and subnormal scales and codes outside the format: what healthy weights do not hold.

    Parameters
    ----------
    dtype : DType
        A block dtype.
    blocks : buffer
        As for :func:`dequantize`; any bytes whatever.

    Returns
    -------
    BlockReport
        One finding for each block, field and kind; ``report.ok`` is True if there is none but subnormal scales.

    Raises
    ------
    InvalidDType, DTypeMismatch, UnsupportedView, InvalidShape, InvalidDataLength
        As for :func:`dequantize`.

    Clauses: BLOCK-VALID-1, BLOCK-VALID-2
    """
    block_dtype(dtype)
    given = stored_blocks("blocks", blocks, dtype)
    held = np.frombuffer(given.memory.view, storage(dtype)) if given.count else np.empty(0, storage(dtype))
    with kept_flags():
        found = tuple(findings(dtype, held))
    return BlockReport(dtype, given.count, found)


def error(dtype: DType, values: Buffer) -> ErrorFigures:
    """Measure what a format costs: encode with the defaults, decode, compare.

    Parameters
    ----------
    dtype : DType
        A block dtype.
    values : buffer of f32
        As for :func:`quantize`, at least one block.

    Returns
    -------
    ErrorFigures
        Root mean squared error, largest absolute error, bits per weight.

    Raises
    ------
    InvalidShape
        If there is no value at all.
    InvalidDType, DTypeMismatch, UnsupportedView, NonFiniteValue, UnencodableBlock, OutOfMemory
        As for :func:`quantize`.

    Clauses: BLOCK-FIGURES-1
    """
    block_dtype(dtype)
    given = values_to_encode(values, dtype)  # looked at once: the next time an object may show another buffer
    if not given.count:
        raise InvalidShape(f"values must hold a block, got shape {given.shape} in blocks", clause="BLOCK-FIGURES-1")
    blocks = quantize(dtype, given.memory.view)
    figures = ffi.new("double[2]")
    encoded, original = Memory.of(blocks).pointer("void *"), given.memory.pointer("void *")
    lib.fc_block_error(dtype.index, original, encoded, given.count, figures, figures + 1)
    size = geometry_of(dtype)
    return ErrorFigures(dtype, float(figures[0]), float(figures[1]), 8 * size.bytes / size.elements)


def _f32_target(out: Buffer | None, shape: tuple[int, ...]) -> tuple[npt.NDArray[np.float32], Memory]:
    """Return where f32 results go: a new array, or the caller's.

    Clauses: BLOCK-OUT-1
    """
    result: Any = empty(shape, np.dtype(np.float32), "BLOCK-OUT-1") if out is None else out
    filled = writing("out", result, DType.f32, "BLOCK-OUT-1")
    require_count("out", filled, math.prod(shape), "BLOCK-OUT-1")
    made: npt.NDArray[np.float32] = result if isinstance(result, np.ndarray) else np.asarray(filled.view)
    return made, filled
