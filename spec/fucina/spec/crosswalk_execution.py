"""Rows of the crosswalk for the chapters pool, context and scope: documented name, Python name, clause ids.

The families of 6.4 that differ by comptime arguments, ``...Rank``, ``...Typed`` and ``...RankTyped``, are one Python
method with a dtype: each of their names has a row.
"""

__all__ = [
    "CONTEXT",
    "CONTEXT_ADDED",
    "LIFETIME",
    "MODEL",
    "POOL",
    "RAW",
    "RAW_ADDED",
    "SCOPE",
    "SCOPE_ADDED",
]


def _under(owner: str, *rows: str) -> tuple[str, ...]:
    """Put the owner before the Python name of each row."""
    return tuple(f"{name} {owner}.{rest}" for name, _, rest in (row.partition(" ") for row in rows))


def _added(owner: str, *rows: str) -> tuple[str, ...]:
    return tuple(f"{owner}.{row}" for row in rows)


CONTEXT = (
    "ExecContext ExecContext CONTEXT-LIFE-1 CONTEXT-THREAD-1",
    "LayoutClass LayoutClass CONTEXT-CLASSIFY-1",
    "MoeDecodeScratchView MoeDecodeScratchView CONTEXT-MOE-1 CONTEXT-MOE-2",
    "MoeDecodeChainScratchView MoeDecodeChainScratchView CONTEXT-MOE-1 CONTEXT-MOE-2",
    *_under(
        "ExecContext",
        "deinit deinit CONTEXT-LIFE-2",
        "rt rt CONTEXT-RT-1",
        "rt.buffers rt.buffers CONTEXT-RT-1",
        "rt.backend rt.backend CONTEXT-RT-1",
        "rt.work_pool rt.work_pool CONTEXT-RT-1",
        "rt.dot_backward_worker rt.dot_backward_worker CONTEXT-RT-1",
        "rt.scope_entries rt.scope_entries CONTEXT-RT-1",
        "rt.scope_depth rt.scope_depth CONTEXT-RT-1",
        "rt.pin_rowwise_kernels rt.pin_rowwise_kernels CONTEXT-RT-1",
        "execScopeActive exec_scope_active SCOPE-OPEN-1",
        "openExecScope open_exec_scope SCOPE-OPEN-1 SCOPE-NEST-1",
        "closeExecScope close_exec_scope SCOPE-CLOSE-1 SCOPE-NEST-1 SCOPE-MARK-1",
        "reserveScopeSlot reserve_scope_slot SCOPE-RESERVE-1",
        "adoptScopeValueAssumeCapacity adopt_scope_value_assume_capacity SCOPE-ADOPT-1 SCOPE-NODE-1 SCOPE-BORROW-1",
        "adoptScopeNodeAssumeCapacity adopt_scope_node_assume_capacity SCOPE-NODE-1",
        "tryWorkPool try_work_pool CONTEXT-TEAM-1",
        "workPool work_pool CONTEXT-TEAM-1",
        "dotBackwardWorker dot_backward_worker CONTEXT-TEAM-1",
        "pinRowwiseKernels pin_rowwise_kernels CONTEXT-PIN-1",
        "classify classify CONTEXT-CLASSIFY-1",
        "replace replace CONTEXT-REPLACE-1",
        "broadcastTo broadcast_to CONTEXT-VIEW-1",
        "broadcastToRank broadcast_to_rank CONTEXT-VIEW-1",
        "lockMoeDecodeScratch lock_moe_decode_scratch CONTEXT-MOE-1",
        "unlockMoeDecodeScratch unlock_moe_decode_scratch CONTEXT-MOE-1",
        "carveMoeDecodeScratch carve_moe_decode_scratch CONTEXT-MOE-1 CONTEXT-MOE-2",
        "carveMoeDecodeChainScratch carve_moe_decode_chain_scratch CONTEXT-MOE-1 CONTEXT-MOE-2",
    ),
    *_under(
        "MoeDecodeScratchView",
        *(f"{name} {name} CONTEXT-MOE-2" for name in ("qx", "gate_buf", "up_buf", "g_buf", "qg", "outs", "tasks")),
    ),
    "states MoeDecodeChainScratchView.states CONTEXT-MOE-2",
)
"""6.1; the thread-safe allocator and its copy have no counterpart, for Python signatures drop the allocator."""

CONTEXT_ADDED = _added(
    "internal.backend_mod",
    "Backend CONTEXT-TEAM-1",
    "Backend.work_pool CONTEXT-TEAM-1",
    "Backend.set_work_pool CONTEXT-TEAM-1",
)

MODEL = _under("ExecContext", "replace replace CONTEXT-REPLACE-1", "ctx.add add CONTEXT-OP-1 CONTEXT-ARITH-1")
"""6.2."""

SCOPE = (
    "ExecScope ExecScope SCOPE-OPEN-1 SCOPE-MARK-1",
    *_under(
        "ExecScope",
        "index index SCOPE-OPEN-1",
    ),
    *_under(
        "ExecContext",
        "openExecScope open_exec_scope SCOPE-OPEN-1",
        "closeExecScope close_exec_scope SCOPE-CLOSE-1 SCOPE-AFTER-1 SCOPE-NODE-1",
        "execScopeActive exec_scope_active SCOPE-OPEN-1",
        "reserveScopeSlot reserve_scope_slot SCOPE-RESERVE-1",
        "adoptScopeValueAssumeCapacity adopt_scope_value_assume_capacity SCOPE-ADOPT-1",
    ),
)
"""6.3; ``ScopeNodeDestroy`` is whatever can be called with a node."""

SCOPE_ADDED = _added("ExecContext", "exec_scope SCOPE-ERROR-1")

RAW = (
    "PreparedTensor PreparedTensor CONTEXT-PREPARE-1",
    "PreparedTensorOf PreparedTensor CONTEXT-PREPARE-1",
    *_under("PreparedTensor", "PreparedTensor.deinit deinit CONTEXT-PREPARE-1"),
    *_under(
        "ExecContext",
        *(f"{name} empty CONTEXT-NEW-1" for name in ("empty", "emptyRank", "emptyRankTyped", "emptyTyped")),
        *(f"{name} zeros CONTEXT-NEW-1" for name in ("zeros", "zerosTyped", "zerosRank", "zerosRankTyped")),
        *(f"{name} ones CONTEXT-NEW-1" for name in ("ones", "onesRank", "onesTyped", "onesRankTyped")),
        *(f"{name} full CONTEXT-NEW-1" for name in ("full", "fullTyped")),
        *(f"{name} scalar CONTEXT-NEW-1" for name in ("scalar", "scalarTyped")),
        *(
            f"{name} from_slice CONTEXT-NEW-2"
            for name in ("fromSlice", "fromSliceRank", "fromSliceTyped", "fromSliceRankTyped")
        ),
        "fromStorageSliceRankTyped from_storage_slice CONTEXT-NEW-2",
        "fromBorrowedSliceRank from_borrowed_slice CONTEXT-NEW-3",
        "fromBorrowedSliceRankTyped from_borrowed_slice CONTEXT-NEW-3",
        "fromBorrowedStorageSliceRankTyped from_borrowed_storage_slice CONTEXT-NEW-3",
        *(f"{name} materialize CONTEXT-COPY-1" for name in ("materialize", "materializeTyped")),
        *(f"{name} clone CONTEXT-COPY-1" for name in ("clone", "cloneTyped")),
        *(f"{name} prepare_contiguous CONTEXT-PREPARE-1" for name in ("prepareContiguous", "prepareContiguousTyped")),
        *(f"{name} add CONTEXT-OP-1 CONTEXT-OP-2 CONTEXT-ARITH-1" for name in ("addRank", "addRankTyped")),
        "mulRank mul CONTEXT-OP-1 CONTEXT-OP-2 CONTEXT-ARITH-1",
        "castTyped cast CONTEXT-CAST-1",
        "scaleTyped scale CONTEXT-SCALE-1",
    ),
)
"""6.4."""

RAW_ADDED = (
    *_added("PreparedTensor", "tensor CONTEXT-PREPARE-1", "owned CONTEXT-PREPARE-1"),
    *_added(
        "ExecContext",
        "sub CONTEXT-OP-1 CONTEXT-OP-2 CONTEXT-ARITH-1 CONTEXT-ARITH-2",
        "div CONTEXT-OP-1 CONTEXT-OP-2 CONTEXT-ARITH-1 CONTEXT-ARITH-2",
        "sum CONTEXT-SUM-1 CONTEXT-SUM-2",
        "narrow_axis CONTEXT-NARROW-1",
        "contiguous_for_reshape CONTEXT-COPY-1",
        "check_rhs_lifetime CONTEXT-LIFETIME-1 CONTEXT-LIFETIME-2",
    ),
)

POOL = (
    "BufferPool BufferPool POOL-TYPE-1 POOL-THREAD-1",
    "ScratchLease ScratchLease POOL-SCRATCH-1 POOL-SCRATCH-2",
    *_under(
        "BufferPool",
        "slab_align slab_align POOL-SIZE-2",
        "slab_size_quantum slab_size_quantum POOL-SIZE-2",
        "max_cached_bytes max_cached_bytes POOL-CAP-1",
        "deinit deinit POOL-TYPE-1 POOL-LEAK-1",
        "acquire acquire POOL-SIZE-1 POOL-FIT-1 POOL-LIFO-1 POOL-MEMORY-1",
        "acquireTyped acquire_typed POOL-TYPED-1 POOL-SIZE-2 POOL-FIT-1 POOL-LIFO-1 POOL-MEMORY-1",
        "acquireScratch acquire_scratch POOL-SCRATCH-1 POOL-SIZE-2 POOL-FIT-1 POOL-LIFO-1 POOL-MEMORY-1",
        "cachedBuffers cached_buffers POOL-COUNT-1",
        "cachedSlabs cached_slabs POOL-COUNT-1",
        "cachedBytes cached_bytes POOL-COUNT-1",
        "outstandingBuffers outstanding_buffers POOL-COUNT-1",
    ),
    *_under(
        "ScratchLease",
        "pool pool POOL-SCRATCH-1",
        "slab slab POOL-SCRATCH-1",
        "items items POOL-SCRATCH-1",
        "release release POOL-SCRATCH-2",
    ),
)
"""6.5."""

LIFETIME = (
    "RhsLifetime RhsLifetime CONTEXT-LIFETIME-1",
    "isCacheable RhsLifetime.is_cacheable CONTEXT-LIFETIME-1",
)
"""6.7."""
