"""What can be seen of a pool and of a context, as one value to compare."""

from __future__ import annotations

from typing import Any

__all__ = ["pool_counters", "seen"]


def pool_counters(pool: Any) -> dict[str, int]:
    """Return the four counters of a pool, by the names that the vectors use."""
    return {
        "cachedBuffers": pool.cached_buffers(),
        "cachedSlabs": pool.cached_slabs(),
        "cachedBytes": pool.cached_bytes(),
        "outstanding": pool.outstanding_buffers(),
    }


def seen(ctx: Any) -> dict[str, object]:
    """Return what can be seen of a context: its scopes and the counters of its pool."""
    rt = ctx.rt
    return {"depth": rt.scope_depth, "entries": rt.scope_entries, **pool_counters(rt.buffers)}
