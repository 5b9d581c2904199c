"""The crosswalk: every name that the documents publish, its Python name, and its clauses.

It covers the sections 6.1 to 6.10 and 8.1 to 8.6.

``python -m fucina.spec.crosswalk`` prints the table of the crosswalk page.
"""

from __future__ import annotations

from dataclasses import dataclass

from fucina.spec import crosswalk_execution as execution
from fucina.spec import crosswalk_facade as facade
from fucina.spec import crosswalk_memory as memory
from fucina.spec import crosswalk_team as team
from fucina.spec.types import GEOMETRY

__all__ = ["CROSSWALK", "Entry", "table"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One row.

    Parameters
    ----------
    documented : str
        The name in the documents; empty for an addition.
    section : str
        The section that declares it; empty for an addition.
    python : str
        The name in an implementation, relative to its root; of what is only named the one it would have.
    clauses : tuple of str
        The clauses that say what it does; empty for what is only named.
    status : str
        ``here``, ``addition``, or ``named only``: the documents name it as an example, and define it elsewhere.
    """

    documented: str
    section: str
    python: str
    clauses: tuple[str, ...] = ()
    status: str = "here"


def _here(section: str, *rows: str) -> tuple[Entry, ...]:
    """Each row: documented name, Python name, clause ids."""
    return tuple(Entry(name, section, python, tuple(ids)) for name, python, *ids in map(str.split, rows))


def _added(*rows: str) -> tuple[Entry, ...]:
    """Each row: Python name, clause ids."""
    return tuple(Entry("", "", python, tuple(ids), "addition") for python, *ids in map(str.split, rows))


def _named(section: str, *rows: str) -> tuple[Entry, ...]:
    """Each row: documented name, Python name."""
    return tuple(Entry(name, section, python, (), "named only") for name, python in map(str.split, rows))


_RNG = _here(
    "6.8",
    "rng rng RNG-CONTRACT-1",
    "splitmix64 rng.splitmix64 RNG-STREAM-1 RNG-SEED-1",
    "at rng.at RNG-AT-1 RNG-SEED-1",
    "gaussianFill rng.gaussian_fill RNG-GAUSS-1 RNG-GAUSS-2 RNG-GAUSS-4",
    "gaussianFillAt rng.gaussian_fill_at RNG-GAUSS-1 RNG-GAUSS-3 RNG-GAUSS-4",
    "gaussianFillAtFast rng.gaussian_fill_at_fast RNG-FAST-1 RNG-FAST-2 RNG-FAST-3",
    "uniformFill rng.uniform_fill RNG-UNIF-1 RNG-UNIF-2 RNG-UNIF-3",
    "kaimingUniformFill rng.kaiming_uniform_fill RNG-KAIMING-1 RNG-KAIMING-2",
    "normalFill rng.normal_fill RNG-NORMAL-1",
    "gumbelFill rng.gumbel_fill RNG-GUMBEL-1 RNG-GUMBEL-2",
    "randintFill rng.randint_fill RNG-INT-1 RNG-INT-2",
    "randpermFill rng.randperm_fill RNG-PERM-1",
) + _here("6.8", *facade.RNG)

_RNG_ADDED = _added(
    "rng.uniform_fill_at RNG-ELEMENT-1 RNG-UNIF-1",
    "rng.kaiming_uniform_fill_at RNG-ELEMENT-1 RNG-KAIMING-1",
    "rng.normal_fill_at RNG-ELEMENT-1 RNG-NORMAL-1",
    "rng.gumbel_fill_at RNG-ELEMENT-1 RNG-GUMBEL-1",
    "rng.randint_fill_at RNG-ELEMENT-1 RNG-INT-1",
    "rng.dropout_mask RNG-DROPOUT-1 RNG-DROPOUT-3",
    "rng.dropout_scale RNG-DROPOUT-2 RNG-DROPOUT-3",
)

_FPENV = _here(
    "6.10",
    "supported fpenv.supported FPENV-SUPPORT-1",
    "RoundingMode fpenv.RoundingMode FPENV-MODE-1",
    "UnderflowMode fpenv.UnderflowMode FPENV-MODE-1",
    "Environment fpenv.Environment FPENV-MODE-2",
    "isDefault fpenv.Environment.is_default FPENV-MODE-2",
    "default_environment fpenv.default_environment FPENV-MODE-2",
    "get fpenv.get FPENV-GET-1 FPENV-SUPPORT-1",
    "set fpenv.set FPENV-SET-1 FPENV-SET-2 FPENV-SET-3",
    "roundingMode fpenv.rounding_mode FPENV-GET-1",
    "underflowMode fpenv.underflow_mode FPENV-GET-1",
    "assertDefault fpenv.assert_default FPENV-ASSERT-1",
    "Exceptions fpenv.Exceptions FPENV-EXC-1",
    "any fpenv.Exceptions.any FPENV-EXC-2",
    "anySignificant fpenv.Exceptions.any_significant FPENV-EXC-2",
    "unionWith fpenv.Exceptions.union_with FPENV-EXC-2",
    "testExceptions fpenv.test_exceptions FPENV-FLAGS-1",
    "clearExceptions fpenv.clear_exceptions FPENV-FLAGS-2",
    "raiseExceptions fpenv.raise_exceptions FPENV-FLAGS-3",
    "Guard fpenv.Guard FPENV-GUARD-1 FPENV-GUARD-2 FPENV-THREAD-1",
    "Guard.begin fpenv.Guard.begin FPENV-GUARD-1",
    "Guard.restore fpenv.Guard.restore FPENV-GUARD-1 FPENV-SET-3",
    "Probe fpenv.Probe FPENV-PROBE-1 FPENV-PROBE-2 FPENV-THREAD-1",
    "Probe.begin fpenv.Probe.begin FPENV-PROBE-1",
    "Probe.sample fpenv.Probe.sample FPENV-PROBE-1",
    "Probe.end fpenv.Probe.end FPENV-PROBE-1 FPENV-PROBE-2",
    "checkFloatEnvironment ExecContext.check_float_environment CONTEXT-FPENV-1",
    "floatEnvironmentAtInit ExecContext.float_environment_at_init CONTEXT-FPENV-1",
)

_FPENV_ADDED = _added(
    "fpenv.guard FPENV-GUARD-3",
    "fpenv.probe FPENV-PROBE-3",
    "fpenv.Record FPENV-RECORD-1 FPENV-RECORD-2",
    "fpenv.Record.begin FPENV-RECORD-1",
    "fpenv.Record.environment FPENV-RECORD-1",
    "fpenv.Record.check FPENV-RECORD-2",
)

_ENUM = (
    _here(
        "8.1",
        "DType DType DTYPE-ENUM-1",
        "DTypeKind DTypeKind DTYPE-KIND-1",
        "kind dtype.kind DTYPE-KIND-1",
        "isScalar dtype.is_scalar DTYPE-PRED-1",
        "isBlockQuantized dtype.is_block_quantized DTYPE-PRED-1",
        "blockSize dtype.block_size DTYPE-GEOM-1",
        "blockByteSize dtype.block_byte_size DTYPE-GEOM-2",
        "q1_0_block_size dtype.q1_0_block_size DTYPE-GEOM-4",
        "q2_0_block_size dtype.q2_0_block_size DTYPE-GEOM-4",
        "q4_0_block_size dtype.q4_0_block_size DTYPE-GEOM-4",
        "q4_1_block_size dtype.q4_1_block_size DTYPE-GEOM-4",
        "q5_0_block_size dtype.q5_0_block_size DTYPE-GEOM-4",
        "q5_1_block_size dtype.q5_1_block_size DTYPE-GEOM-4",
        "q8_0_block_size dtype.q8_0_block_size DTYPE-GEOM-4",
        "q8_1_block_size dtype.q8_1_block_size DTYPE-GEOM-4",
        "qk_k_block_size dtype.qk_k_block_size DTYPE-GEOM-4",
        "k_scale_size dtype.k_scale_size DTYPE-GEOM-4",
        "iq4_nl_block_size dtype.iq4_nl_block_size DTYPE-GEOM-4",
        "mxfp4_block_size dtype.mxfp4_block_size DTYPE-GEOM-4",
        "nvfp4_block_size dtype.nvfp4_block_size DTYPE-GEOM-4",
        "nvfp4_subblock_size dtype.nvfp4_subblock_size DTYPE-GEOM-4",
        "iq3s_n_scale dtype.iq3s_n_scale DTYPE-GEOM-4",
    )
    + _here(
        "8.1",
        *(
            f"{geometry.struct_name} quant.{geometry.struct_name} BLOCK-STRUCT-1"
            for geometry in GEOMETRY.values()
            if geometry.fields
        ),
    )
    + _here("8.1", "storageElementCount internal.shape_mod.storage_element_count SHAPE-COUNT-2")
)

_BLOCKS_ADDED = _added(
    "quant.dequantize BLOCK-DECODE-1 BLOCK-ARG-1 BLOCK-IN-1 BLOCK-IN-2 BLOCK-OUT-1",
    "quant.quantize BLOCK-ENCODE-1 BLOCK-ARG-1 BLOCK-VALUES-1 BLOCK-FINITE-1 BLOCK-OUT-1 BLOCK-IMATRIX-1 BLOCK-SCALE-1"
    " BLOCK-REJECT-1",
    "quant.dequantize_rows BLOCK-ROWS-1 BLOCK-ROWS-2 BLOCK-IN-1 BLOCK-OUT-1",
    "quant.validate BLOCK-VALID-1 BLOCK-VALID-2",
    "quant.error BLOCK-FIGURES-1",
)

_HELPERS = _here(
    "8.2",
    "Scalar dtype.scalar DTYPE-STORAGE-1",
    "Storage dtype.storage DTYPE-STORAGE-2",
    "Element dtype.element DTYPE-STORAGE-3",
    "Accumulator dtype.accumulator DTYPE-ACC-1",
    "isF8 dtype.is_f8 DTYPE-PRED-2",
    "isSignedInteger dtype.is_signed_integer DTYPE-PRED-2",
    "isUnsignedInteger dtype.is_unsigned_integer DTYPE-PRED-2",
    "supportsForwardFloatMath dtype.supports_forward_float_math DTYPE-PRED-3",
    "supportsGrad dtype.supports_grad DTYPE-PRED-3",
    "supportsIntMath dtype.supports_int_math DTYPE-PRED-3",
    "supportsToFloat dtype.supports_to_float DTYPE-PRED-4",
    "supportsQuantizedMatmulRhs dtype.supports_quantized_matmul_rhs DTYPE-PRED-4",
    "supportsQuantizedGetRows dtype.supports_quantized_get_rows DTYPE-PRED-4",
    "logicalDType dtype.logical_dtype DTYPE-LOGICAL-1",
    "zero dtype.zero DTYPE-CONST-1",
    "one dtype.one DTYPE-CONST-1",
    "name dtype.name DTYPE-NAME-1",
    "toF32 dtype.to_f32 BRIDGE-SCALAR-1",
    "toF64 dtype.to_f64 BRIDGE-SCALAR-1",
    "fromF32 dtype.from_f32 BRIDGE-SCALAR-1",
    "fromF64 dtype.from_f64 BRIDGE-SCALAR-1 BRIDGE-SCALAR-2",
    "castFloat dtype.cast_float BRIDGE-FLOAT-1",
    "castScalar dtype.cast_scalar BRIDGE-SCALAR-3 BRIDGE-SCALAR-4",
    "isTruthy dtype.is_truthy BRIDGE-TRUTHY-1",
    "toAccumulator dtype.to_accumulator DTYPE-ACC-2",
    "fromAccumulator dtype.from_accumulator DTYPE-ACC-3",
    "bf16ToF32 dtype.bf16_to_f32 BRIDGE-BF16-1",
    "f32ToBf16 dtype.f32_to_bf16 BRIDGE-BF16-2 BRIDGE-BF16-3",
    "f8e4m3ToF32 dtype.f8e4m3_to_f32 BRIDGE-E4M3-1 BRIDGE-E4M3-3",
    "f32ToF8e4m3 dtype.f32_to_f8e4m3 BRIDGE-E4M3-2 BRIDGE-E4M3-3",
    "f8e5m2ToF32 dtype.f8e5m2_to_f32 BRIDGE-E5M2-1 BRIDGE-E5M2-3",
    "f32ToF8e5m2 dtype.f32_to_f8e5m2 BRIDGE-E5M2-2 BRIDGE-E5M2-3",
    "Bf16 Bf16 BRIDGE-VALUE-1 BRIDGE-VALUE-2",
    "F8E4M3 F8E4M3 BRIDGE-VALUE-1 BRIDGE-VALUE-2",
    "F8E5M2 F8E5M2 BRIDGE-VALUE-1 BRIDGE-VALUE-2",
    "bits Bf16.bits BRIDGE-VALUE-1",
    "toF32 Bf16.to_f32 BRIDGE-VALUE-1",
    "fromF32 Bf16.from_f32 BRIDGE-VALUE-1",
)

_HELPERS_ADDED = _added(
    "dtype.scalar_byte_size DTYPE-GEOM-3",
    "dtype.cast_bits BRIDGE-BITS-1",
    "dtype.cast_array BRIDGE-ARRAY-1 BRIDGE-ARRAY-2 BRIDGE-ARRAY-3 BRIDGE-ARRAY-4 BRIDGE-SAT-1 BRIDGE-SINGLE-1",
    "dtype.convert BRIDGE-CONVERT-1",
)

_POLICY = _here(
    "8.3",
    "FloatOp FloatOp DTYPE-POLICY-1",
    "computeDType dtype.compute_dtype DTYPE-POLICY-2 DTYPE-POLICY-4",
    "outputDType dtype.output_dtype DTYPE-POLICY-3 DTYPE-POLICY-4",
)

# named by the policy chapter as examples; each is declared in, and belongs to, another one
_POLICY_ELSEWHERE = (
    _here(
        "8.3",
        "ExecContext ExecContext CONTEXT-LIFE-1",
        "ctx.prepareAs ExecContext.prepare_as CONTEXT-PREPARE-1",
        "ctx.storeAs ExecContext.store_as CONTEXT-STORE-1",
        "cast ExecContext.cast CONTEXT-CAST-1",
    )
    + _here("8.3", *facade.POLICY)
    + _named("8.3", *facade.NAMED)
)

_MEMORY = (
    _here("8.4", *memory.STORAGE)
    + _added(*memory.STORAGE_ADDED)
    + _here("8.5", *memory.TENSOR)
    + _added(*memory.TENSOR_ADDED)
    + _here("8.6", *memory.INTERNAL)
    + _here("8.6", "thread_mod thread_mod TEAM-THREADS-1")
    + _here("8.6", "backend_mod internal.backend_mod CONTEXT-TEAM-1")
    + _here("8.6", *facade.INSPECTION)
    + _added(*memory.INTERNAL_ADDED)
)

_EXECUTION = (
    _here("6.1", *execution.CONTEXT)
    + _added(*execution.CONTEXT_ADDED)
    + _here("6.2", *execution.MODEL, *facade.OWNERSHIP)
    + _here("6.3", *execution.SCOPE, *facade.SCOPES)
    + _added(*execution.SCOPE_ADDED)
    + _here("6.4", *execution.RAW)
    + _named("6.4", *facade.RAW_NAMED)
    + _added(*execution.RAW_ADDED)
    + _here("6.5", *execution.POOL)
    + _here("6.7", *execution.LIFETIME)
)

_TEAM = _here("6.6", *team.TEAM) + _here("6.9", *team.ALLOCATOR) + _added(*team.ADDED)

CROSSWALK: tuple[Entry, ...] = (
    _EXECUTION
    + _TEAM
    + _RNG
    + _RNG_ADDED
    + _FPENV
    + _FPENV_ADDED
    + _ENUM
    + _BLOCKS_ADDED
    + _HELPERS
    + _HELPERS_ADDED
    + _POLICY
    + _POLICY_ELSEWHERE
    + _MEMORY
    + _added(*facade.ADDED)
)
"""All rows, in the order of the documents; additions follow the section that they belong to."""


def table() -> str:
    """Return the rows as the body of the ``csv-table`` on the crosswalk page."""
    lines = []
    for entry in CROSSWALK:
        name = f"``{entry.documented}``" if entry.documented else "\\-"
        links = " ".join(f":clause:`{clause}`" for clause in entry.clauses) or "\\-"
        lines.append(f"   {name}, {entry.section or chr(92) + '-'}, ``{entry.python}``, {links}, {entry.status}")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
