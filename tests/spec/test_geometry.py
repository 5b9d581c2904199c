"""The geometry registry: one claim for each dtype, and what follows from it (clauses DTYPE-GEOM-1 to DTYPE-GEOM-4)."""

import re

import numpy as np
import pytest

from fucina.spec import types
from fucina.spec.types import BLOCK_CONSTANTS, GEOMETRY, DType, DTypeKind


def test_the_registry_covers_every_dtype() -> None:
    assert dict(types._register(types._CLAIMS)) == dict(GEOMETRY)
    assert set(GEOMETRY) == set(DType)


def test_a_dtype_claimed_twice_is_refused() -> None:
    with pytest.raises(ImportError, match=r"DTYPE-GEOM-1: DType\.f16 is claimed twice"):
        types._register((*types._CLAIMS, (DType.f16, GEOMETRY[DType.f16])))


@pytest.mark.parametrize("missing", DType, ids=lambda dtype: dtype.name)
def test_a_dtype_never_claimed_is_refused(missing: DType) -> None:
    claims = tuple(claim for claim in types._CLAIMS if claim[0] is not missing)
    with pytest.raises(ImportError, match=rf"DTYPE-GEOM-1: .*\b{missing.name}\b"):
        types._register(claims)


def test_fields_that_do_not_add_up_are_refused() -> None:
    with pytest.raises(ImportError, match="DTYPE-GEOM-2: the fields of Wrong add up to 3 bytes, not 4"):
        types._block("Wrong", 32, 4, ("d", "<u2", 1), ("qs", "<u1", 1))


def test_the_registry_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        GEOMETRY[DType.f16] = GEOMETRY[DType.f32]  # type: ignore[index]


@pytest.mark.parametrize("dtype", DType, ids=lambda dtype: dtype.name)
def test_a_geometry_is_consistent(dtype: DType) -> None:
    geometry = GEOMETRY[dtype]
    if geometry.kind is DTypeKind.scalar:
        assert dtype.index < 13
        assert geometry.format is not None
        assert np.dtype(geometry.format).itemsize == geometry.byte_size
        assert (geometry.block_size, geometry.struct_name, geometry.fields) == (None, None, ())
    else:
        assert geometry.format is None
        assert geometry.struct_name == "Block" + dtype.name.upper()
        end = 0
        for field in geometry.fields:
            assert field.offset == end
            assert field.format[0] == "<"
            end += np.dtype(field.format).itemsize * field.count
        assert end == geometry.byte_size


def test_the_named_sizes_agree_with_the_registry() -> None:
    """Each constant is the size of its format; the three others are field counts."""
    for name, value in BLOCK_CONSTANTS.items():
        if name == "qk_k_block_size":
            k_quants = [d for d in DType if re.fullmatch(r"(q\d_k|iq(?!4_nl).*|tq.*)", d.name)]
            assert {GEOMETRY[d].block_size for d in k_quants} == {value}
            assert len(k_quants) == 16
        elif name.endswith("_block_size"):
            assert GEOMETRY[DType(name.removesuffix("_block_size"))].block_size == value
    counts = {
        dtype: {field.name: field.count for field in GEOMETRY[dtype].fields}
        for dtype in (DType.q3_k, DType.q4_k, DType.q5_k, DType.iq3_s, DType.nvfp4)
    }
    assert {counts[d]["scales"] for d in (DType.q3_k, DType.q4_k, DType.q5_k)} == {BLOCK_CONSTANTS["k_scale_size"]}
    assert counts[DType.iq3_s]["scales"] == BLOCK_CONSTANTS["iq3s_n_scale"]
    assert counts[DType.nvfp4]["d"] * BLOCK_CONSTANTS["nvfp4_subblock_size"] == GEOMETRY[DType.nvfp4].block_size


def test_enumerations_are_in_the_documents_order() -> None:
    assert [dtype.index for dtype in DType] == list(range(40))
    assert [DType(dtype.name) for dtype in DType] == list(DType)
    assert [kind.name for kind in DTypeKind] == ["scalar", "block_quantized"]
    assert [op.name for op in types.FloatOp] == ["pointwise", "widened", "reduction", "matmul"]
