"""The tests of the floating-point environment know every function that touches a number.

The suite computes in every combination of rounding, FTZ and DAZ and compares bits (clause NUM-ENV-2); what it
computes is the tour of ``suite/work.py``.  Here the tour is held against the interface: each public function of the
crosswalk is called by it, or stands below among those that touch no element.  A new name is in neither list, and
the test fails.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import BuiltinMethodType, FrameType, ModuleType
from typing import Any

import pytest

from fucina.conformance.suite.work import arithmetic, calls
from fucina.spec.crosswalk import CROSSWALK

# what runs threads, keeps memory or places, or tells about dtypes and the machine
SILENT_PARTS = (
    *("parallel", "thread_mod", "fpenv", "BufferPool", "ScratchLease", "ExecScope", "PreparedTensor", "RankedTensor"),
    *("Selection", "MoeDecodeScratchView", "MoeDecodeChainScratchView", "ExecContext.rt", "RhsLifetime"),
    *("internal.gpu", "internal.shape_mod", "internal.backend_mod", "internal.thread_mod"),
)
SILENT: dict[str, str] = {
    "dtype": """
        kind is_scalar is_block_quantized block_size block_byte_size scalar storage element accumulator is_f8
        is_signed_integer is_unsigned_integer supports_forward_float_math supports_grad supports_int_math
        supports_to_float supports_quantized_matmul_rhs supports_quantized_get_rows logical_dtype name
        scalar_byte_size compute_dtype output_dtype zero""",
    "ExecContext": """
        no_grad grad_enabled deinit exec_scope_active open_exec_scope close_exec_scope reserve_scope_slot
        adopt_scope_value_assume_capacity adopt_scope_node_assume_capacity exec_scope try_work_pool work_pool
        dot_backward_worker pin_rowwise_kernels classify replace lock_moe_decode_scratch
        unlock_moe_decode_scratch carve_moe_decode_scratch carve_moe_decode_chain_scratch empty
        check_rhs_lifetime check_float_environment float_environment_at_init from_borrowed_storage_slice""",
    "internal": "fail_allocation allocation_count",
    "internal.storage_mod.Buffer": """
        create create_with_release from_borrowed_slice from_borrowed_const_slice
        from_borrowed_slice_with_release retain release is_unique reset_refs destroy destroy_header wait_ready
        discard_pending has_pending acquire_pending set_pending_use wait_unused wait_mutable set_host_shadow""",
    "internal.tensor_mod": "RankedTensor RankedTensorOf scalar storage require_same_shape",
    "internal.RawTensor": """
        from_borrowed_slice from_borrowed_const_slice from_borrowed_storage_slice from_owned_buffer from_dlpack
        deinit rank len storage_len rows cols is_scalar is_contiguous clone_view reshape view_with_strides
        view_with_strides_offset broadcast_to broadcast_to_rank data data_const data_const_checked
        can_take_in_place rank_view""",
    "Tensor": "empty empty_like deinit",
}


def _found(implementation: Any, dotted: str) -> Any:
    found = implementation
    for part in dotted.split("."):
        found = getattr(found, part, None)
    return found


def _functions(implementation: Any) -> dict[str, Any]:
    """Return the public functions and methods by their names; types and properties compute nothing by themselves."""
    found = {entry.python: _found(implementation, entry.python) for entry in CROSSWALK if entry.clauses}
    return {name: value for name, value in found.items() if callable(value) and not isinstance(value, type)}


def _identity(function: Any) -> object:
    """Return what a call of the function shows: its code, or that of what it wraps; what is of C stands for itself."""
    function = inspect.unwrap(getattr(function, "__func__", function))
    if isinstance(function, BuiltinMethodType) and not isinstance(function.__self__, ModuleType | type | None):
        function = inspect.getattr_static(type(function.__self__), function.__name__)
    return getattr(function, "__code__", function)


def _toured(work: dict[str, Callable[[], Any]]) -> set[object]:
    """Return the identities of all functions that the work calls."""
    seen: set[object] = set()

    def watch(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            seen.add(frame.f_code)
        elif event == "c_call":
            seen.add(_identity(argument))

    before = sys.getprofile()
    for call in work.values():
        try:
            sys.setprofile(watch)
            if isinstance(call, partial):  # which would call a function of C unseen
                call.func(*call.args, **call.keywords)
            else:
                call()
        finally:
            sys.setprofile(before)
    return seen


def _is_silent(name: str) -> bool:
    owner, _, last = name.rpartition(".")
    if last in SILENT.get(owner, "").split():
        return True
    return any(name.startswith(f"{part}.") for part in SILENT_PARTS)


@pytest.mark.parametrize("module", ["fucina.fast", "fucina.reference"])
def test_the_tour_calls_every_function_that_touches_a_number(module: str) -> None:
    implementation = importlib.import_module(module)
    seen = _toured(calls(implementation) | arithmetic(implementation))
    functions = _functions(implementation)
    forgotten = [n for n, f in functions.items() if not _is_silent(n) and _identity(f) not in seen]
    assert not forgotten, f"neither in the tour of suite/work.py nor said to touch no number: {forgotten}"


def test_the_list_of_the_silent_ones_has_no_strangers() -> None:
    functions = _functions(importlib.import_module("fucina.fast"))
    named = {f"{owner}.{name}" for owner, names in SILENT.items() for name in names.split()}
    assert named <= set(functions), sorted(named - set(functions))
    for part in SILENT_PARTS:
        assert any(entry.python == part or entry.python.startswith(f"{part}.") for entry in CROSSWALK), part


def test_the_page_counts_the_tour() -> None:
    implementation = importlib.import_module("fucina.fast")
    page = (Path(__file__).parents[1] / "docs" / "evidence" / "team.rst").read_text(encoding="utf-8")
    (said,) = re.findall(r"(\d+) small calls that compute or convert and (\d+) of tensor arithmetic", page)
    assert tuple(map(int, said)) == (len(calls(implementation)), len(arithmetic(implementation)))
