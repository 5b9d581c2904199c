"""Rows of the crosswalk for the chapter team: documented name, Python name, clause ids."""

__all__ = ["ADDED", "ALLOCATOR", "TEAM"]

TEAM = (
    "parallel parallel TEAM-THREADS-1",
    "vector_max_threads parallel.vector_max_threads TEAM-SIZE-1",
    "setMaxThreads parallel.set_max_threads TEAM-SIZE-3",
    "cpuThreadCount parallel.cpu_thread_count TEAM-SIZE-1 TEAM-SIZE-2 TEAM-SIZE-3",
    "envPositiveUsize parallel.env_positive_usize TEAM-KNOB-1",
    "envSpinBudget parallel.env_spin_budget TEAM-KNOB-1",
    "physicalCpuCount parallel.physical_cpu_count TEAM-PHYSICAL-1",
    "performanceCpuCount parallel.performance_cpu_count TEAM-PHYSICAL-1",
    "vector_matmul_work_threshold parallel.vector_matmul_work_threshold TEAM-BULK-2",
    "Pool thread_mod.Pool TEAM-POOL-1 TEAM-LAZY-1 TEAM-FORK-1",
    "Pool.init thread_mod.Pool.init TEAM-POOL-1",
    "Pool.deinit thread_mod.Pool.deinit TEAM-END-1",
    "parallelChunks thread_mod.Pool.parallel_chunks TEAM-CHUNKS-1 TEAM-JOIN-1 TEAM-SERIAL-1 TEAM-RAISE-1 TEAM-ENV-1"
    " TEAM-FORK-2",
    "parallelChained thread_mod.Pool.parallel_chained TEAM-CHAIN-1 TEAM-CHAIN-2 TEAM-CHAIN-3 TEAM-RAISE-1 TEAM-ENV-1"
    " TEAM-FORK-2",
    "Chain thread_mod.Chain TEAM-CHAIN-1",
    "chain.enqueue thread_mod.Chain.enqueue TEAM-CHAIN-1 TEAM-CHAIN-2",
    "spawnWg thread_mod.Pool.spawn_wg TEAM-SPAWN-1",
    "trySpawnWg thread_mod.Pool.try_spawn_wg TEAM-SPAWN-1",
    "waitAndWork thread_mod.Pool.wait_and_work TEAM-SPAWN-1",
    "BarrierPool thread_mod.BarrierPool TEAM-POOL-1 TEAM-LAZY-1 TEAM-SPIN-1 TEAM-FORK-1",
    "OneShotWorker thread_mod.OneShotWorker TEAM-ONESHOT-1",
    "WaitGroup thread_mod.WaitGroup TEAM-PRIMITIVE-1",
)

ALLOCATOR = ("ThreadSafeAllocator thread_mod.ThreadSafeAllocator TEAM-PRIMITIVE-1",)

ADDED = (
    "parallel.cgroup_cpu_budget TEAM-BUDGET-1",
    "thread_mod.Pool.team_size TEAM-POOL-1",
    "thread_mod.BarrierPool.team_size TEAM-POOL-1",
    "thread_mod.BarrierPool.parallel_chunks TEAM-CHUNKS-1 TEAM-SERIAL-1",
    "thread_mod.BarrierPool.parallel_chained TEAM-CHAIN-1",
    "thread_mod.BarrierPool.deinit TEAM-END-1",
    "thread_mod.OneShotWorker.start TEAM-ONESHOT-1 TEAM-ONESHOT-2 TEAM-ENV-1",
    "thread_mod.OneShotWorker.wait TEAM-ONESHOT-1 TEAM-ONESHOT-2",
    "thread_mod.OneShotWorker.deinit TEAM-ONESHOT-2",
    *(f"thread_mod.WaitGroup.{name} TEAM-PRIMITIVE-1" for name in ("start", "finish", "is_done", "wait", "reset")),
    "thread_mod.Mutex TEAM-PRIMITIVE-1",
    *(f"thread_mod.Mutex.{name} TEAM-PRIMITIVE-1" for name in ("lock", "try_lock", "unlock")),
    *(f"thread_mod.ThreadSafeAllocator.{name} TEAM-PRIMITIVE-1" for name in ("alloc", "resize", "remap", "free")),
)
