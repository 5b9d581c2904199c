"""The vocabulary of the memory chapters: layouts, lifetimes, hooks, and what a leak report names."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from fucina.spec.types import DType

__all__ = [
    "DEFAULT_MAX_CACHED_BYTES",
    "MAX_RANK",
    "SLAB_ALIGN",
    "SLAB_SIZE_QUANTUM",
    "HostShadow",
    "LayoutClass",
    "Leak",
    "Release",
    "RhsLifetime",
]

MAX_RANK = 8
"""The largest rank of a shape (clause SHAPE-RULE-1)."""

SLAB_ALIGN = 64
"""The alignment of pooled memory in bytes (clause POOL-SIZE-2)."""

SLAB_SIZE_QUANTUM = 4096
"""What the byte size of a slab is a multiple of (clause POOL-SIZE-2)."""

DEFAULT_MAX_CACHED_BYTES = 1 << 30
"""What a pool keeps unless told otherwise (clause POOL-CAP-1)."""


class LayoutClass(Enum):
    """How the elements of a raw tensor lie in its storage.

    Clauses: CONTEXT-CLASSIFY-1
    """

    contiguous = "contiguous"
    scalar = "scalar"
    tail_broadcast = "tail_broadcast"
    arbitrary = "arbitrary"

    def __repr__(self) -> str:
        return f"LayoutClass.{self.name}"


class RhsLifetime(Enum):
    """How long the bytes of an operand stay as they are.

    Clauses: CONTEXT-LIFETIME-1
    """

    transient = "transient"
    stable_process = "stable_process"

    def is_cacheable(self) -> bool:
        """Whether something derived from the bytes may be kept under their address.

        Clauses: CONTEXT-LIFETIME-1
        """
        return self is RhsLifetime.stable_process

    def __repr__(self) -> str:
        return f"RhsLifetime.{self.name}"


@dataclass(frozen=True, slots=True)
class Release:
    """What happens to a storage when its last reference is gone.

    Parameters
    ----------
    ctx : object, optional
        The hook's first argument; None stands for the buffer itself.
    run : callable, optional
        ``run(ctx, buffer)``; None stands for ``buffer.destroy()``.

    Clauses: STORAGE-HOOK-1
    """

    ctx: Any = None
    run: Callable[[Any, Any], object] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class HostShadow:
    """Something derived from the bytes of a storage, which is dropped when they are about to change.

    Parameters
    ----------
    data : object
        Whatever was derived.
    destroy : callable, optional
        Called once, as ``destroy(data)``, when the shadow is dropped.

    Clauses: STORAGE-SHADOW-1
    """

    data: Any = None
    destroy: Callable[[Any], object] | None = None


@dataclass(frozen=True, slots=True)
class Leak:
    """One buffer that was still referenced when its pool was closed.

    Parameters
    ----------
    dtype : DType or None
        None for a scratch lease.
    shape : tuple of int
        The shape of the newest tensor on it; the capacity where there was none.
    origin : str or None
        ``file:line in function`` of the call that made it; None unless tracing was on.

    Clauses: POOL-LEAK-1
    """

    dtype: DType | None
    shape: tuple[int, ...]
    origin: str | None = None

    def __str__(self) -> str:
        name = "scratch" if self.dtype is None else self.dtype.name
        where = f" made at {self.origin}" if self.origin else ""
        return f"{name} of shape {self.shape}{where}"
