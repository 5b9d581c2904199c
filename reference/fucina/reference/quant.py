"""Block formats: f32 values in 27 packed forms, both ways, by the clauses of chapter *block*.

The formats are in :mod:`fucina.reference.blocks`, one module each.  The functions here check their arguments, take
arrays apart into blocks, and write only when every block has its result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fucina.reference.block_arguments import blocks_per_row, check_options, given_importance, given_indices, given_scale
from fucina.reference.block_buffers import (
    Format,
    block_format,
    block_target,
    place,
    refuse_nonfinite,
    stored_blocks,
    to_encode,
)
from fucina.reference.blocks import CODECS
from fucina.reference.blocks.figures import figures
from fucina.reference.blocks.findings import findings
from fucina.reference.blocks.options import PLAIN, Options, Unencodable
from fucina.reference.buffers import Memory, empty, readable, refuse_overlap, require_count, writable
from fucina.reference.geometry import storage
from fucina.spec.errors import InvalidDataLength, InvalidShape, UnencodableBlock
from fucina.spec.quant import BlockReport, ErrorFigures
from fucina.spec.types import DType

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

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

# -- decoding


def dequantize(dtype: DType, blocks: Buffer, *, out: Buffer | None = None) -> npt.NDArray[np.float32]:
    """Decode blocks to f32.

    Parameters
    ----------
    dtype : DType
        A block dtype.
    blocks : buffer
        An array of the format's struct, or bytes whose last axis is a whole number of blocks: C-contiguous, of any
        alignment, writable or not.
    out : buffer, optional
        Where to write: f32, as many as the blocks have elements, writable, C-contiguous, aligned, no byte in
        common with ``blocks``.

    Returns
    -------
    ndarray of float32
        ``out`` itself if it is an array, a view of it if it is another buffer, else a new array: of the shape of the
        array of blocks, with the last axis times the block size.  A block without axes gives one axis.

    Raises
    ------
    InvalidDType
        If ``dtype`` is a scalar.
    DTypeMismatch, UnsupportedView
        If a buffer has another format, or is not C-contiguous; if ``out`` is misaligned.
    InvalidShape, InvalidDataLength
        If there is no block, or no whole number of them, along the last axis; if ``out`` has another length.
    ReadOnlyStorage, OverlappingMemory
        If ``out`` is read-only or overlaps the blocks.
    OutOfMemory
        If there is no ``out`` and no memory for a new array.

    Notes
    -----
    Clauses: BLOCK-IN-1, BLOCK-IN-2, BLOCK-OUT-1, BLOCK-ARG-1, BLOCK-DECODE-1, BLOCK-CHUNK-1
    """
    fmt = block_format(dtype)
    given = stored_blocks("blocks", blocks, fmt)
    shape = (*given.shape[:-1], given.shape[-1] * fmt.elements) if given.shape else (fmt.elements,)
    result, taken = _values_target(out, shape, given.count * fmt.elements)
    refuse_overlap(given.memory, taken, "BLOCK-OUT-1", "blocks")
    read = CODECS[dtype].decode
    taken.write([bits for block in given.read() for bits in read(block)])
    return result


def dequantize_rows(
    dtype: DType, blocks: Buffer, row_len: int, indices: Buffer | Sequence[int], *, out: Buffer | None = None
) -> npt.NDArray[np.float32]:
    """Decode some rows of a matrix of blocks.

    Parameters
    ----------
    dtype : DType
        A block dtype.
    blocks : buffer
        As for :func:`dequantize`; in C order, rows of ``row_len`` elements.
    row_len : int
        The elements of a row, a positive multiple of the block size.
    indices : array of integers or sequence of int
        The rows that are wanted, each in [0, rows), in any order and repeated at will.
    out : buffer, optional
        As for :func:`dequantize`; it must not overlap ``indices`` either.

    Returns
    -------
    ndarray of float32
        Those rows, of shape ``(*indices.shape, row_len)``.

    Raises
    ------
    IndexOutOfBounds
        If an index is below 0 or not below the number of rows; the first one is named.
    InvalidInteger
        If ``row_len`` or an index is no integer.
    InvalidShape, InvalidDataLength
        If ``row_len`` is no positive multiple of the block size, or the blocks are no whole rows.
    InvalidDType, DTypeMismatch, UnsupportedView, ReadOnlyStorage, OverlappingMemory, OutOfMemory
        As for :func:`dequantize`.

    Notes
    -----
    Clauses: BLOCK-ROWS-1, BLOCK-ROWS-2, BLOCK-IN-1, BLOCK-OUT-1
    """
    fmt = block_format(dtype)
    per_row = blocks_per_row(row_len, fmt)
    given = stored_blocks("blocks", blocks, fmt)
    if given.count % per_row:
        raise InvalidDataLength(
            f"blocks must hold whole rows of {per_row} blocks, got {given.count} blocks", clause="BLOCK-ROWS-1"
        )
    wanted = given_indices(indices, given.count // per_row)
    width = per_row * fmt.elements
    result, taken = _values_target(out, (*wanted.shape, width), len(wanted.rows) * width)
    refuse_overlap(given.memory, taken, "BLOCK-OUT-1", "blocks")
    wanted.refuse_overlap(taken)
    read, every = CODECS[dtype].decode, list(given.read())
    rows = (every[row * per_row : (row + 1) * per_row] for row in wanted.rows)
    taken.write([bits for row in rows for block in row for bits in read(block)])
    return result


def _values_target(out: Buffer | None, shape: tuple[int, ...], count: int) -> tuple[npt.NDArray[np.float32], Memory]:
    """Return the array that is returned in the end and the memory that values are written to.

    Notes
    -----
    Clauses: BLOCK-OUT-1
    """
    if out is None:
        made: Any = empty(shape, np.dtype(np.float32), "BLOCK-OUT-1")
        return made, writable("out", made, DType.f32, "BLOCK-OUT-1")
    taken = writable("out", out, DType.f32, "BLOCK-OUT-1")
    require_count("out", taken, count, "BLOCK-OUT-1")
    result: Any = out if isinstance(out, np.ndarray) else taken.patterns.view(np.float32).reshape(taken.shape)
    return result, taken


# -- encoding


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
    values : buffer
        f32, finite, C-contiguous, of any alignment, writable or not; the last axis is a nonzero multiple of the block
        size.
    out : buffer, optional
        Where to write: the format's struct or bytes, of exactly the size that is needed, writable, C-contiguous, of any
        alignment, no byte in common with the inputs.
    imatrix : buffer, optional
        The importance of the columns: f32, one for each element of the last axis, finite and not below zero.  iq1_s,
        iq1_m, iq2_xxs and iq2_xs take it; without one, all are 1.
    search : bool
        Whether iq4_nl searches for its scale; every other format takes True alone.
    scale : float, optional
        The scale of all blocks, finite and above zero, rounded to f32; tq2_0 alone takes it.

    Returns
    -------
    ndarray
        ``out`` itself if it is an array, a view of it if it is another buffer, else a new array of the struct: of the
        shape of the values, with the last axis over the block size.

    Raises
    ------
    InvalidDType
        If ``dtype`` is a scalar, or does not take an option that is given.
    DTypeMismatch, UnsupportedView
        If a buffer has another format or is not C-contiguous; if ``search`` is no bool or ``scale`` no number.
    InvalidShape, InvalidDataLength
        If the last axis is no nonzero multiple of the block size; if ``imatrix`` or ``out`` has another length.
    NonFiniteValue, InvalidBounds
        If a value or an importance is NaN or infinite, an importance below zero, or ``scale`` out of its range.
    UnencodableBlock
        If the sums of a block overflow so far that its encoder has no answer; the first one is named.
    ReadOnlyStorage, OverlappingMemory
        If ``out`` is read-only or overlaps an input.
    OutOfMemory
        If there is no ``out`` and no memory for a new array.

    Notes
    -----
    Clauses: BLOCK-VALUES-1, BLOCK-FINITE-1, BLOCK-OUT-1, BLOCK-ARG-1, BLOCK-IMATRIX-1, BLOCK-SCALE-1, BLOCK-REJECT-1,
    BLOCK-CHUNK-1
    """
    fmt = block_format(dtype)
    check_options(dtype, imatrix, search, scale)
    factor = None if scale is None else given_scale(scale)
    given = to_encode(values, fmt)
    importance = None if imatrix is None else readable("imatrix", imatrix, DType.f32, "BLOCK-IMATRIX-1")
    columns = None if importance is None else given_importance(importance, given.shape[-1])

    shape = (*given.shape[:-1], given.shape[-1] // fmt.elements)
    count = given.patterns.size // fmt.elements
    result: Any = empty(shape, fmt.struct, "BLOCK-OUT-1") if out is None else out
    taken = block_target("out", result, fmt, count)
    refuse_overlap(given, taken.memory, "BLOCK-OUT-1", "values")
    if importance is not None:
        refuse_overlap(importance, taken.memory, "BLOCK-OUT-1", "imatrix")
    patterns = given.read()
    refuse_nonfinite("values", patterns, given.shape, "BLOCK-FINITE-1")

    taken.write(_encoded(fmt, patterns, shape, Options(columns, bool(search), factor)))
    if isinstance(result, np.ndarray):
        return result
    form = fmt.struct if memoryview(result).itemsize > 1 else np.dtype(np.uint8)
    return taken.memory.patterns.view(form).reshape(taken.memory.shape)


def _encoded(fmt: Format, patterns: Sequence[int], shape: tuple[int, ...], options: Options) -> list[bytes]:
    """Return the blocks of values; the importance in ``options`` is that of a whole row.

    Notes
    -----
    Clauses: BLOCK-CHUNK-1, BLOCK-REJECT-1, BLOCK-IMATRIX-1
    """
    write, n, columns = CODECS[fmt.dtype].encode, fmt.elements, options.importance
    blocks = []
    for start in range(0, len(patterns), n):
        if columns is not None:
            column = start % len(columns)
            options = Options(columns[column : column + n], options.search, options.scale)
        try:
            blocks.append(write(patterns[start : start + n], options))
        except Unencodable:
            where = f"block [{place(start // n, shape)}], elements {start} to {start + n - 1} in C order"
            reason = "the sums of its values overflow f32; smaller ones are allowed"
            raise UnencodableBlock(f"{fmt.dtype.name} cannot hold {where}: {reason}", clause="BLOCK-REJECT-1") from None
    return blocks


# -- looking at blocks


def validate(dtype: DType, blocks: Buffer) -> BlockReport:
    """Report scales that are NaN, infinite or subnormal, codes that no encoder makes, and sums that are none.

    Parameters
    ----------
    dtype : DType
        A block dtype.
    blocks : buffer
        As for :func:`dequantize`; any bytes.

    Returns
    -------
    BlockReport
        The findings, one for each block, field and kind.

    Raises
    ------
    InvalidDType, DTypeMismatch, UnsupportedView, InvalidShape, InvalidDataLength
        As for :func:`dequantize`; never because of what the blocks hold.

    Notes
    -----
    Clauses: BLOCK-VALID-1, BLOCK-VALID-2, BLOCK-IN-1
    """
    given = stored_blocks("blocks", blocks, block_format(dtype))
    found = tuple(finding for index, block in enumerate(given.read()) for finding in findings(dtype, index, block))
    return BlockReport(dtype, given.count, found)


def error(dtype: DType, values: Buffer) -> ErrorFigures:
    """Measure what encoding and decoding with the defaults costs.

    Parameters
    ----------
    dtype : DType
        A block dtype.
    values : buffer
        As for :func:`quantize`, with one block at least.

    Returns
    -------
    ErrorFigures
        Root of the mean squared error, largest absolute error, bits per element.

    Raises
    ------
    InvalidShape
        If there are no values.
    InvalidDType, DTypeMismatch, UnsupportedView, NonFiniteValue, UnencodableBlock
        As for :func:`quantize`.

    Notes
    -----
    Clauses: BLOCK-FIGURES-1
    """
    fmt = block_format(dtype)
    given = to_encode(values, fmt)
    patterns = given.read()
    if not patterns:
        raise InvalidShape(f"values must not be empty, got shape {given.shape}", clause="BLOCK-FIGURES-1")
    refuse_nonfinite("values", patterns, given.shape, "BLOCK-FINITE-1")
    blocks = _encoded(fmt, patterns, (*given.shape[:-1], given.shape[-1] // fmt.elements), PLAIN)

    return figures(dtype, blocks, patterns)
