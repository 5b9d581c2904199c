"""The vocabulary: dtypes, their kinds, the float-op families and the storage geometry.

Nothing here computes; these are declarations that both implementations share.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = [
    "BLOCK_CONSTANTS",
    "GEOMETRY",
    "DType",
    "DTypeKind",
    "Field",
    "FloatOp",
    "Geometry",
]


class DType(enum.Enum):
    """The logical element format of an array (clause DTYPE-ENUM-1).

    Members stand in the documents' order; ``DType("f16")`` finds a member by name and ``member.index`` is its place.
    """

    bool = "bool"
    u8 = "u8"
    u16 = "u16"
    i8 = "i8"
    i16 = "i16"
    i32 = "i32"
    i64 = "i64"
    f16 = "f16"
    bf16 = "bf16"
    f32 = "f32"
    f64 = "f64"
    f8_e4m3 = "f8_e4m3"
    f8_e5m2 = "f8_e5m2"
    q1_0 = "q1_0"
    q2_0 = "q2_0"
    q4_0 = "q4_0"
    q4_1 = "q4_1"
    q5_0 = "q5_0"
    q5_1 = "q5_1"
    q8_0 = "q8_0"
    q8_1 = "q8_1"
    q2_k = "q2_k"
    q3_k = "q3_k"
    q4_k = "q4_k"
    q5_k = "q5_k"
    q6_k = "q6_k"
    q8_k = "q8_k"
    iq1_s = "iq1_s"
    iq1_m = "iq1_m"
    iq2_xxs = "iq2_xxs"
    iq2_xs = "iq2_xs"
    iq2_s = "iq2_s"
    iq3_xxs = "iq3_xxs"
    iq3_s = "iq3_s"
    iq4_nl = "iq4_nl"
    iq4_xs = "iq4_xs"
    tq1_0 = "tq1_0"
    tq2_0 = "tq2_0"
    mxfp4 = "mxfp4"
    nvfp4 = "nvfp4"

    __hash__ = object.__hash__  # an enumeration's own hashes the name, in Python; each member is one object

    @property
    def index(self) -> int:
        """Place of the member in the enumeration, from 0."""
        return _INDEX[self]

    def __repr__(self) -> str:
        return f"DType.{self.name}"


_INDEX = {member: i for i, member in enumerate(DType)}


class DTypeKind(enum.Enum):
    """How a dtype stores its elements (clause DTYPE-KIND-1)."""

    scalar = "scalar"
    block_quantized = "block_quantized"

    def __repr__(self) -> str:
        return f"DTypeKind.{self.name}"


class FloatOp(enum.Enum):
    """The families of operations that the compute/output policy distinguishes (clause DTYPE-POLICY-1)."""

    pointwise = "pointwise"
    widened = "widened"
    reduction = "reduction"
    matmul = "matmul"

    def __repr__(self) -> str:
        return f"FloatOp.{self.name}"


@dataclass(frozen=True, slots=True)
class Field:
    """One member of a packed block struct.

    ``format`` is a numpy type string with explicit little-endian order, ``count`` the number of items (1 for a plain
    member), ``offset`` its distance in bytes from the start of the block.
    """

    name: str
    format: str
    count: int
    offset: int


@dataclass(frozen=True, slots=True)
class Geometry:
    """Storage geometry of one dtype: what an array of it is made of.

    ``byte_size`` is the size of one storage element: a scalar, or one block of ``block_size`` logical elements.
    ``format`` is the numpy type string of a scalar's storage form in native order (``None`` for blocks), ``fields`` the
    packed struct of a block (empty for scalars).
    """

    kind: DTypeKind
    byte_size: int
    format: str | None = None
    block_size: int | None = None
    struct_name: str | None = None
    fields: tuple[Field, ...] = ()


def _scalar(byte_size: int, fmt: str) -> Geometry:
    return Geometry(DTypeKind.scalar, byte_size, format=fmt)


def _block(struct_name: str, block_size: int, byte_size: int, *fields: tuple[str, str, int]) -> Geometry:
    placed = []
    offset = 0
    for name, fmt, count in fields:
        placed.append(Field(name, fmt, count, offset))
        offset += int(fmt[2:]) * count
    if offset != byte_size:
        raise ImportError(f"DTYPE-GEOM-2: the fields of {struct_name} add up to {offset} bytes, not {byte_size}")
    return Geometry(
        DTypeKind.block_quantized, byte_size, block_size=block_size, struct_name=struct_name, fields=tuple(placed)
    )


_CLAIMS: tuple[tuple[DType, Geometry], ...] = (
    (DType.bool, _scalar(1, "?")),
    (DType.u8, _scalar(1, "u1")),
    (DType.u16, _scalar(2, "u2")),
    (DType.i8, _scalar(1, "i1")),
    (DType.i16, _scalar(2, "i2")),
    (DType.i32, _scalar(4, "i4")),
    (DType.i64, _scalar(8, "i8")),
    (DType.f16, _scalar(2, "f2")),
    (DType.bf16, _scalar(2, "u2")),
    (DType.f32, _scalar(4, "f4")),
    (DType.f64, _scalar(8, "f8")),
    (DType.f8_e4m3, _scalar(1, "u1")),
    (DType.f8_e5m2, _scalar(1, "u1")),
    (DType.q1_0, _block("BlockQ1_0", 128, 18, ("d", "<u2", 1), ("qs", "<u1", 16))),
    (DType.q2_0, _block("BlockQ2_0", 128, 34, ("d", "<u2", 1), ("qs", "<u1", 32))),
    (DType.q4_0, _block("BlockQ4_0", 32, 18, ("d", "<u2", 1), ("qs", "<u1", 16))),
    (DType.q4_1, _block("BlockQ4_1", 32, 20, ("d", "<u2", 1), ("m", "<u2", 1), ("qs", "<u1", 16))),
    (DType.q5_0, _block("BlockQ5_0", 32, 22, ("d", "<u2", 1), ("qh", "<u1", 4), ("qs", "<u1", 16))),
    (DType.q5_1, _block("BlockQ5_1", 32, 24, ("d", "<u2", 1), ("m", "<u2", 1), ("qh", "<u1", 4), ("qs", "<u1", 16))),
    (DType.q8_0, _block("BlockQ8_0", 32, 34, ("d", "<u2", 1), ("qs", "<i1", 32))),
    (DType.q8_1, _block("BlockQ8_1", 32, 36, ("d", "<u2", 1), ("s", "<u2", 1), ("qs", "<i1", 32))),
    (
        DType.q2_k,
        _block("BlockQ2_K", 256, 84, ("scales", "<u1", 16), ("qs", "<u1", 64), ("d", "<u2", 1), ("dmin", "<u2", 1)),
    ),
    (
        DType.q3_k,
        _block("BlockQ3_K", 256, 110, ("hmask", "<u1", 32), ("qs", "<u1", 64), ("scales", "<u1", 12), ("d", "<u2", 1)),
    ),
    (
        DType.q4_k,
        _block("BlockQ4_K", 256, 144, ("d", "<u2", 1), ("dmin", "<u2", 1), ("scales", "<u1", 12), ("qs", "<u1", 128)),
    ),
    (
        DType.q5_k,
        _block(
            "BlockQ5_K",
            256,
            176,
            ("d", "<u2", 1),
            ("dmin", "<u2", 1),
            ("scales", "<u1", 12),
            ("qh", "<u1", 32),
            ("qs", "<u1", 128),
        ),
    ),
    (
        DType.q6_k,
        _block("BlockQ6_K", 256, 210, ("ql", "<u1", 128), ("qh", "<u1", 64), ("scales", "<i1", 16), ("d", "<u2", 1)),
    ),
    (DType.q8_k, _block("BlockQ8_K", 256, 292, ("d", "<f4", 1), ("qs", "<i1", 256), ("bsums", "<i2", 16))),
    (DType.iq1_s, _block("BlockIQ1_S", 256, 50, ("d", "<u2", 1), ("qs", "<u1", 32), ("qh", "<u2", 8))),
    (DType.iq1_m, _block("BlockIQ1_M", 256, 56, ("qs", "<u1", 32), ("qh", "<u1", 16), ("scales", "<u2", 4))),
    (DType.iq2_xxs, _block("BlockIQ2_XXS", 256, 66, ("d", "<u2", 1), ("qs", "<u2", 32))),
    (DType.iq2_xs, _block("BlockIQ2_XS", 256, 74, ("d", "<u2", 1), ("qs", "<u2", 32), ("scales", "<u1", 8))),
    (
        DType.iq2_s,
        _block(
            "BlockIQ2_S",
            256,
            82,
            ("d", "<u2", 1),
            ("qs", "<u1", 32),
            ("signs", "<u1", 32),
            ("qh", "<u1", 8),
            ("scales", "<u1", 8),
        ),
    ),
    (DType.iq3_xxs, _block("BlockIQ3_XXS", 256, 98, ("d", "<u2", 1), ("qs", "<u1", 64), ("sas", "<u4", 8))),
    (
        DType.iq3_s,
        _block(
            "BlockIQ3_S",
            256,
            110,
            ("d", "<u2", 1),
            ("qs", "<u1", 64),
            ("qh", "<u1", 8),
            ("signs", "<u1", 32),
            ("scales", "<u1", 4),
        ),
    ),
    (DType.iq4_nl, _block("BlockIQ4_NL", 32, 18, ("d", "<u2", 1), ("qs", "<u1", 16))),
    (
        DType.iq4_xs,
        _block(
            "BlockIQ4_XS", 256, 136, ("d", "<u2", 1), ("scales_h", "<u2", 1), ("scales_l", "<u1", 4), ("qs", "<u1", 128)
        ),
    ),
    (DType.tq1_0, _block("BlockTQ1_0", 256, 54, ("qs", "<u1", 48), ("qh", "<u1", 4), ("d", "<u2", 1))),
    (DType.tq2_0, _block("BlockTQ2_0", 256, 66, ("qs", "<u1", 64), ("d", "<u2", 1))),
    (DType.mxfp4, _block("BlockMXFP4", 32, 17, ("e", "<u1", 1), ("qs", "<u1", 16))),
    (DType.nvfp4, _block("BlockNVFP4", 64, 36, ("d", "<u1", 4), ("qs", "<u1", 32))),
)


def _register(claims: tuple[tuple[DType, Geometry], ...]) -> Mapping[DType, Geometry]:
    table: dict[DType, Geometry] = {}
    for dtype, geometry in claims:
        if dtype in table:
            raise ImportError(f"DTYPE-GEOM-1: {dtype!r} is claimed twice in the geometry registry")
        table[dtype] = geometry
    missing = [dtype.name for dtype in DType if dtype not in table]
    if missing:
        raise ImportError(f"DTYPE-GEOM-1: no geometry is registered for {', '.join(missing)}")
    return MappingProxyType(table)


GEOMETRY: Mapping[DType, Geometry] = _register(_CLAIMS)
"""The one registry of storage geometry, keyed by dtype (clauses DTYPE-GEOM-1 to DTYPE-GEOM-3)."""

BLOCK_CONSTANTS: Mapping[str, int] = MappingProxyType(
    {
        "q1_0_block_size": 128,
        "q2_0_block_size": 128,
        "q4_0_block_size": 32,
        "q4_1_block_size": 32,
        "q5_0_block_size": 32,
        "q5_1_block_size": 32,
        "q8_0_block_size": 32,
        "q8_1_block_size": 32,
        "qk_k_block_size": 256,
        "k_scale_size": 12,
        "iq4_nl_block_size": 32,
        "mxfp4_block_size": 32,
        "nvfp4_block_size": 64,
        "nvfp4_subblock_size": 16,
        "iq3s_n_scale": 4,
    }
)
"""The documents' named size constants; both implementations export each from their ``dtype`` (clause DTYPE-GEOM-4)."""
