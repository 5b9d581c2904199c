"""What an implementation exports, as typing Protocols.

An implementation is a module that satisfies :class:`Implementation`; mypy proves it for both of ours, and the
conformance suite takes any other module of that shape.  Scalars travel in *scalar form* (clause DTYPE-STORAGE-1):
``bool`` elements are Python bools, integers and the raw-bit floats bf16, f8_e4m3, f8_e5m2 are ints, f16, f32 and f64
are fucina.spec.fpenv.  Arrays travel in *storage form* (clause DTYPE-STORAGE-2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    import numpy as np
    import numpy.typing as npt
    import typing_extensions

    import fucina.spec.fpenv
    from fucina.spec.quant import BlockReport, ErrorFigures
    from fucina.spec.types import DType, DTypeKind, FloatOp

    AnyArray: TypeAlias = npt.NDArray[Any]
    # numpy's stubs call an ndarray a buffer from Python 3.12 on only
    Buffer: TypeAlias = typing_extensions.Buffer | AnyArray

__all__ = [
    "BitFloat",
    "DTypePart",
    "FloatGuard",
    "FloatProbe",
    "FloatRecord",
    "FpenvPart",
    "Implementation",
    "IsaControl",
    "Operations",
    "QuantPart",
    "RngPart",
    "ScalarValue",
    "Sharing",
    "Windows",
]

ScalarValue: TypeAlias = bool | int | float
"""One element in scalar form."""


class BitFloat(Protocol):
    """A bf16 or FP8 element as a value: the bit pattern and nothing else (clauses BRIDGE-VALUE-1, BRIDGE-VALUE-2)."""

    dtype: ClassVar[DType]

    def __init__(self, bits: int, /) -> None: ...
    @property
    def bits(self) -> int: ...
    def to_f32(self) -> float: ...
    @classmethod
    def from_f32(cls, value: float, /) -> BitFloat: ...


class DTypePart(Protocol):
    """The ``dtype`` module of an implementation: chapters ``dtype`` and ``bridge``."""

    q1_0_block_size: int
    q2_0_block_size: int
    q4_0_block_size: int
    q4_1_block_size: int
    q5_0_block_size: int
    q5_1_block_size: int
    q8_0_block_size: int
    q8_1_block_size: int
    qk_k_block_size: int
    k_scale_size: int
    iq4_nl_block_size: int
    mxfp4_block_size: int
    nvfp4_block_size: int
    nvfp4_subblock_size: int
    iq3s_n_scale: int

    # -- predicates and geometry
    def kind(self, dtype: DType) -> DTypeKind: ...
    def is_scalar(self, dtype: DType) -> bool: ...
    def is_block_quantized(self, dtype: DType) -> bool: ...
    def is_f8(self, dtype: DType) -> bool: ...
    def is_signed_integer(self, dtype: DType) -> bool: ...
    def is_unsigned_integer(self, dtype: DType) -> bool: ...
    def supports_forward_float_math(self, dtype: DType) -> bool: ...
    def supports_grad(self, dtype: DType) -> bool: ...
    def supports_int_math(self, dtype: DType) -> bool: ...
    def supports_to_float(self, dtype: DType) -> bool: ...
    def supports_quantized_matmul_rhs(self, dtype: DType) -> bool: ...
    def supports_quantized_get_rows(self, dtype: DType) -> bool: ...
    def logical_dtype(self, dtype: DType) -> DType: ...
    def block_size(self, dtype: DType) -> int: ...
    def block_byte_size(self, dtype: DType) -> int: ...
    def scalar_byte_size(self, dtype: DType) -> int: ...
    def scalar(self, dtype: DType) -> type[np.generic]: ...
    def storage(self, dtype: DType) -> np.dtype[Any]: ...
    def element(self, dtype: DType) -> type[Any]: ...
    def accumulator(self, dtype: DType) -> np.dtype[Any]: ...
    def name(self, dtype: DType) -> str: ...
    def zero(self, dtype: DType) -> ScalarValue: ...
    def one(self, dtype: DType) -> ScalarValue: ...
    def compute_dtype(self, op: FloatOp, dtype: DType) -> DType: ...
    def output_dtype(self, op: FloatOp, dtype: DType) -> DType: ...

    # -- one element
    def to_f32(self, dtype: DType, value: ScalarValue) -> float: ...
    def to_f64(self, dtype: DType, value: ScalarValue) -> float: ...
    def from_f32(self, dtype: DType, value: float) -> ScalarValue: ...
    def from_f64(self, dtype: DType, value: float) -> ScalarValue: ...
    def cast_float(self, source: DType, target: DType, value: ScalarValue) -> ScalarValue: ...
    def cast_scalar(self, source: DType, target: DType, value: ScalarValue) -> ScalarValue: ...
    def cast_bits(self, source: DType, target: DType, bits: int) -> int: ...
    def is_truthy(self, dtype: DType, value: ScalarValue) -> bool: ...
    def to_accumulator(self, dtype: DType, value: ScalarValue) -> ScalarValue: ...
    def from_accumulator(self, dtype: DType, value: ScalarValue) -> ScalarValue: ...
    def bf16_to_f32(self, bits: int) -> float: ...
    def f32_to_bf16(self, value: float) -> int: ...
    def f8e4m3_to_f32(self, bits: int) -> float: ...
    def f32_to_f8e4m3(self, value: float) -> int: ...
    def f8e5m2_to_f32(self, bits: int) -> float: ...
    def f32_to_f8e5m2(self, value: float) -> int: ...

    # -- arrays
    def cast_array(
        self,
        source: DType,
        target: DType,
        array: Buffer,
        *,
        out: Buffer | None = None,
        saturate: bool = False,
        single_rounding: bool = False,
    ) -> AnyArray: ...
    def convert(self, array: Buffer, to: DType, *, source: DType | None = None) -> AnyArray: ...


class RngPart(Protocol):
    """The ``rng`` module of an implementation: chapter ``rng``.

    Fills write into ``out`` and return ``None``; float outputs are f32, integer outputs i64, masks bool.
    """

    def splitmix64(self, state: int) -> tuple[int, int]: ...
    def at(self, seed: int, i: int) -> int: ...
    def gaussian_fill(self, seed: int, out: Buffer, scale: float) -> None: ...
    def gaussian_fill_at(self, seed: int, first: int, out: Buffer, scale: float) -> None: ...
    def gaussian_fill_at_fast(self, seed: int, first: int, out: Buffer, scale: float) -> None: ...
    def uniform_fill(self, seed: int, out: Buffer, lo: float, hi: float) -> None: ...
    def uniform_fill_at(self, seed: int, first: int, out: Buffer, lo: float, hi: float) -> None: ...
    def kaiming_uniform_fill(self, seed: int, out: Buffer, fan_in: int) -> None: ...
    def kaiming_uniform_fill_at(self, seed: int, first: int, out: Buffer, fan_in: int) -> None: ...
    def normal_fill(self, seed: int, out: Buffer, mean: float, std_dev: float) -> None: ...
    def normal_fill_at(self, seed: int, first: int, out: Buffer, mean: float, std_dev: float) -> None: ...
    def gumbel_fill(self, seed: int, out: Buffer) -> None: ...
    def gumbel_fill_at(self, seed: int, first: int, out: Buffer) -> None: ...
    def randint_fill(self, seed: int, out: Buffer, low: int, high: int) -> None: ...
    def randint_fill_at(self, seed: int, first: int, out: Buffer, low: int, high: int) -> None: ...
    def randperm_fill(self, seed: int, out: Buffer) -> None: ...
    def dropout_mask(self, seed: int, first: int, out: Buffer, p: float) -> None: ...
    def dropout_scale(self, p: float) -> float: ...


class QuantPart(Protocol):
    """The ``quant`` module of an implementation: chapter ``block``.

    Blocks travel as an array of the format's packed struct (``BlockQ4_K`` and its siblings, clause BLOCK-STRUCT-1) or
    as plain bytes; the values are f32.
    """

    BlockQ1_0: np.dtype[np.void]
    BlockQ2_0: np.dtype[np.void]
    BlockQ4_0: np.dtype[np.void]
    BlockQ4_1: np.dtype[np.void]
    BlockQ5_0: np.dtype[np.void]
    BlockQ5_1: np.dtype[np.void]
    BlockQ8_0: np.dtype[np.void]
    BlockQ8_1: np.dtype[np.void]
    BlockQ2_K: np.dtype[np.void]
    BlockQ3_K: np.dtype[np.void]
    BlockQ4_K: np.dtype[np.void]
    BlockQ5_K: np.dtype[np.void]
    BlockQ6_K: np.dtype[np.void]
    BlockQ8_K: np.dtype[np.void]
    BlockIQ1_S: np.dtype[np.void]
    BlockIQ1_M: np.dtype[np.void]
    BlockIQ2_XXS: np.dtype[np.void]
    BlockIQ2_XS: np.dtype[np.void]
    BlockIQ2_S: np.dtype[np.void]
    BlockIQ3_XXS: np.dtype[np.void]
    BlockIQ3_S: np.dtype[np.void]
    BlockIQ4_NL: np.dtype[np.void]
    BlockIQ4_XS: np.dtype[np.void]
    BlockTQ1_0: np.dtype[np.void]
    BlockTQ2_0: np.dtype[np.void]
    BlockMXFP4: np.dtype[np.void]
    BlockNVFP4: np.dtype[np.void]

    def dequantize(self, dtype: DType, blocks: Buffer, *, out: Buffer | None = None) -> npt.NDArray[np.float32]: ...
    def quantize(
        self,
        dtype: DType,
        values: Buffer,
        *,
        out: Buffer | None = None,
        imatrix: Buffer | None = None,
        search: bool = True,
        scale: float | None = None,
    ) -> AnyArray: ...
    def dequantize_rows(
        self,
        dtype: DType,
        blocks: Buffer,
        row_len: int,
        indices: Buffer | Sequence[int],
        *,
        out: Buffer | None = None,
    ) -> npt.NDArray[np.float32]: ...
    def validate(self, dtype: DType, blocks: Buffer) -> BlockReport: ...
    def error(self, dtype: DType, values: Buffer) -> ErrorFigures: ...


class FloatGuard(Protocol):
    """A snapshot of the calling thread's rounding and underflow (``Guard`` of the module ``fpenv``)."""

    def __init__(self) -> None: ...
    @classmethod
    def begin(cls) -> FloatGuard: ...
    def restore(self) -> None: ...
    def __enter__(self) -> FloatGuard: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class FloatProbe(Protocol):
    """What a region raises on its thread (``Probe`` of the module ``fpenv``)."""

    def __init__(self) -> None: ...
    @classmethod
    def begin(cls) -> FloatProbe: ...
    def sample(self) -> fucina.spec.fpenv.Exceptions: ...
    def end(self) -> fucina.spec.fpenv.Exceptions: ...
    def __enter__(self) -> FloatProbe: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class FloatRecord(Protocol):
    """The environment of a moment, to compare later ones with (``Record`` of the module ``fpenv``)."""

    def __init__(self) -> None: ...
    @classmethod
    def begin(cls) -> FloatRecord: ...
    @property
    def environment(self) -> fucina.spec.fpenv.Environment | None: ...
    def check(self) -> None: ...


class FpenvPart(Protocol):
    """The ``fpenv`` module of an implementation: chapter ``fpenv``.

    Each function acts on the calling thread.
    """

    supported: bool
    RoundingMode: type[fucina.spec.fpenv.RoundingMode]
    UnderflowMode: type[fucina.spec.fpenv.UnderflowMode]
    Environment: type[fucina.spec.fpenv.Environment]
    default_environment: fucina.spec.fpenv.Environment
    Exceptions: type[fucina.spec.fpenv.Exceptions]

    def get(self) -> fucina.spec.fpenv.Environment | None: ...
    def set(self, environment: fucina.spec.fpenv.Environment) -> None: ...
    def rounding_mode(self) -> fucina.spec.fpenv.RoundingMode | None: ...
    def underflow_mode(self) -> fucina.spec.fpenv.UnderflowMode | None: ...
    def assert_default(self) -> None: ...
    def test_exceptions(self) -> fucina.spec.fpenv.Exceptions: ...
    def clear_exceptions(self) -> None: ...
    def raise_exceptions(self, flags: fucina.spec.fpenv.Exceptions) -> None: ...
    @property
    def Guard(self) -> type[FloatGuard]: ...  # noqa: N802
    @property
    def Probe(self) -> type[FloatProbe]: ...  # noqa: N802
    @property
    def Record(self) -> type[FloatRecord]: ...  # noqa: N802
    def guard(self) -> FloatGuard: ...
    def probe(self) -> FloatProbe: ...


@runtime_checkable
class IsaControl(Protocol):
    """What an implementation with several instruction-set levels adds; the suite then runs on each level.

    Clauses: NUM-ISA-1
    """

    def isa_levels(self) -> tuple[str, ...]: ...
    def isa(self) -> str: ...
    def set_isa(self, level: str) -> None: ...


@runtime_checkable
class Windows(Protocol):
    """The module ``<implementation>.windows``: what the exact fills hold before their last rounding to f32.

    No part of the contract, and offered by choice: an implementation that evaluates a fill quickly, and takes an exact
    path where the last rounding is in doubt, lets the suite see that its error bound holds, which no output shows
    (clauses NUM-ELEM-1, RNG-GAUSS-1, RNG-GUMBEL-1).

    ``gaussian_f64`` returns the ``2 * n_pairs`` values of consecutive pairs as f64, ``gumbel_f64`` those of ``n``
    elements.  With the bound b that the rounding test trusts, ``|value - exact| <= b * |exact|`` for gaussian values
    and ``<= b * (1 + |exact|)`` for gumbel values.  ``exact_ln``, ``exact_sin`` and ``exact_cos`` are the functions of
    the exact path.
    """

    def gaussian_f64(self, seed: int, pair: int, scale: float, n_pairs: int) -> npt.NDArray[np.float64]: ...
    def gumbel_f64(self, seed: int, first: int, n: int) -> npt.NDArray[np.float64]: ...
    def gaussian_bound(self) -> float: ...
    def gumbel_bound(self) -> float: ...
    def exact_ln(self, x: float) -> float: ...
    def exact_sin(self, x: float) -> float: ...
    def exact_cos(self, x: float) -> float: ...


@runtime_checkable
class Operations(Protocol):
    """What the module ``<implementation>.windows`` has if it also does single operations of the floating-point unit.

    No part of the contract, and offered by choice, so that the suite can see what the modes of the chapter ``fpenv`` do
    to operations, row by row (clauses FPENV-SET-2, FPENV-FLAGS-1).

    ``operate`` does ``add``, ``subtract``, ``multiply``, ``divide`` or ``sqrt`` on patterns of ``"f32"`` or ``"f64"``,
    or ``to_f32`` of ``"f64"``, in the environment of the calling thread, and returns the pattern of the result.
    """

    def operate(self, kind: str, operation: str, a: int, b: int = 0) -> int: ...


@runtime_checkable
class Sharing(Protocol):
    """What the module ``<implementation>.windows`` has if bulk functions may do without the team although it is free.

    No part of the contract, and offered by choice: where cores are busy such a function may compute on the calling
    thread alone (clause TEAM-BULK-2), and a comparison of several threads with one would compare one with one.

    From ``share_always(True)`` to ``share_always(False)`` every bulk call that is large enough for the team, and gets
    it, has a part of its work done by another thread.  ``shared_calls()`` counts the calls of the process of which
    another thread has done a part.
    """

    def share_always(self, on: bool) -> None: ...
    def shared_calls(self) -> int: ...


class Implementation(Protocol):
    """The root of an implementation.

    ``capabilities`` names the chapters that the module claims (``"dtype"``, ``"bridge"``, ``"rng"``, ...); the suite
    runs the clauses of those chapters and lists every other as not claimed.  A module may have a true
    ``refuses_environments`` beside it: its functions raise where the caller's floating-point environment is not the
    default one (clause NUM-ENV-2).
    """

    capabilities: frozenset[str]
    DType: type[DType]
    DTypeKind: type[DTypeKind]
    FloatOp: type[FloatOp]

    @property
    def Bf16(self) -> type[BitFloat]: ...  # noqa: N802 - the documents' name of a type
    @property
    def F8E4M3(self) -> type[BitFloat]: ...  # noqa: N802
    @property
    def F8E5M2(self) -> type[BitFloat]: ...  # noqa: N802
    @property
    def dtype(self) -> DTypePart: ...
    @property
    def rng(self) -> RngPart: ...
    @property
    def quant(self) -> QuantPart: ...
    @property
    def fpenv(self) -> FpenvPart: ...
