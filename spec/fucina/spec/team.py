"""What the modules ``parallel`` and ``thread_mod`` of an implementation export: chapter ``team``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Self

__all__ = [
    "MEMBERS",
    "Allocator",
    "OneShot",
    "ParallelPart",
    "TaskChain",
    "TaskGroup",
    "TaskPool",
    "TaskTeam",
    "ThreadLock",
    "ThreadPart",
]

Task = TypeVar("Task")


class ParallelPart(Protocol):
    """The ``parallel`` module: how many threads, and why."""

    vector_max_threads: int
    vector_matmul_work_threshold: int

    def set_max_threads(self, count: int) -> None: ...
    def cpu_thread_count(self, limit: int) -> int: ...
    def physical_cpu_count(self) -> int | None: ...
    def performance_cpu_count(self) -> int | None: ...
    def cgroup_cpu_budget(self) -> int | None: ...
    def env_positive_usize(self, name: str) -> int | None: ...
    def env_spin_budget(self) -> int | None: ...


class TaskChain(Protocol):
    """What a task of ``parallel_chained`` makes others runnable with."""

    def enqueue(self, index: int) -> None: ...


class TaskTeam(Protocol):
    """``BarrierPool``: a fork-join team."""

    def __init__(self, workers: int) -> None: ...
    @property
    def team_size(self) -> int: ...
    def parallel_chunks(self, tasks: Sequence[Task], run: Callable[[Task], object]) -> None: ...
    def parallel_chained(
        self, tasks: Sequence[Task], initial_count: int, run: Callable[[Task, Any], object]
    ) -> bool: ...
    def deinit(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class TaskGroup(Protocol):
    """``WaitGroup``: a count of tasks under way."""

    def start(self, count: int = 1) -> None: ...
    def finish(self) -> None: ...
    def is_done(self) -> bool: ...
    def wait(self) -> None: ...
    def reset(self) -> None: ...


class TaskPool(Protocol):
    """``Pool``: a team that comes into being with its first dispatch, and single tasks beside it."""

    def __init__(self, max_workers: int | None = None) -> None: ...
    @classmethod
    def init(cls, max_workers: int | None = None) -> Self: ...
    @property
    def team_size(self) -> int: ...
    def parallel_chunks(self, tasks: Sequence[Task], run: Callable[[Task], object]) -> None: ...
    def parallel_chained(
        self, tasks: Sequence[Task], initial_count: int, run: Callable[[Task, Any], object]
    ) -> bool: ...
    def spawn_wg(self, group: Any, run: Callable[..., object], *args: object) -> None: ...
    def try_spawn_wg(self, group: Any, run: Callable[..., object], *args: object) -> bool: ...
    def wait_and_work(self, group: Any) -> None: ...
    def deinit(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class OneShot(Protocol):
    """``OneShotWorker``: a thread beside the caller's, for one task at a time."""

    def start(self, task: Callable[[], object]) -> None: ...
    def wait(self) -> Any: ...
    def deinit(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class ThreadLock(Protocol):
    """``Mutex``."""

    def lock(self) -> None: ...
    def try_lock(self) -> bool: ...
    def unlock(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Allocator(Protocol):
    """Who gives memory: ``ThreadSafeAllocator`` is one, and takes another."""

    def alloc(self, size: int) -> Any: ...
    def resize(self, memory: Any, size: int) -> bool: ...
    def remap(self, memory: Any, size: int) -> Any: ...
    def free(self, memory: Any) -> None: ...


class ThreadPart(Protocol):
    """The ``thread_mod`` module: the team and its primitives."""

    @property
    def BarrierPool(self) -> type[TaskTeam]: ...  # noqa: N802 - the documents' names of types
    @property
    def Chain(self) -> type[TaskChain]: ...  # noqa: N802
    @property
    def Mutex(self) -> type[ThreadLock]: ...  # noqa: N802
    @property
    def OneShotWorker(self) -> type[OneShot]: ...  # noqa: N802
    @property
    def Pool(self) -> type[TaskPool]: ...  # noqa: N802
    @property
    def ThreadSafeAllocator(self) -> type[Allocator]: ...  # noqa: N802
    @property
    def WaitGroup(self) -> type[TaskGroup]: ...  # noqa: N802


MEMBERS: dict[str, type] = {
    "parallel": ParallelPart,
    "thread_mod": ThreadPart,
    "thread_mod.BarrierPool": TaskTeam,
    "thread_mod.Chain": TaskChain,
    "thread_mod.Mutex": ThreadLock,
    "thread_mod.OneShotWorker": OneShot,
    "thread_mod.Pool": TaskPool,
    "thread_mod.ThreadSafeAllocator": Allocator,
    "thread_mod.WaitGroup": TaskGroup,
}
"""The Protocols by the name of what satisfies them, relative to an implementation."""
