"""The reference is complete: whatever the crosswalk names and a clause governs stands on a page of ``docs/api``.

A name that no page describes is a warning, and so an error of the build.
"""

from __future__ import annotations

from collections.abc import Iterator

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

from fucina.spec.crosswalk import CROSSWALK

LOG = logging.getLogger(__name__)
PLACES = {
    "Bf16": "fucina.fast.values.Bf16",
    "DType": "fucina.spec.types.DType",
    "ExecContext.rt.": "fucina.fast._context_core.Runtime.",
    "F8E": "fucina.fast.values.F8E",
    "FloatOp": "fucina.spec.types.FloatOp",
    "LayoutClass": "fucina.spec.runtime.LayoutClass",
    "MoeDecode": "fucina.fast._moe_scratch.MoeDecode",
    "PreparedTensor": "fucina.fast._prepared.PreparedTensor",
    "RankedTensor": "fucina.fast.tensor.RankedView",
    "RhsLifetime": "fucina.spec.runtime.RhsLifetime",
    "ScratchLease": "fucina.fast.buffer_pool.ScratchLease",
    "Selection": "fucina.fast._facade_reductions.Selection",
    "bench_raw.RawTensor": "fucina.fast.tensor.RawTensor",
    "fpenv.": "fucina.spec.fpenv.",
    "internal.RawTensor": "fucina.fast.tensor.RawTensor",
    "internal.backend_mod": "fucina.fast.backend",
    "internal.gpu": "fucina.fast.gpu",
    "internal.shape_mod": "fucina.fast.shape",
    "internal.storage_mod": "fucina.fast.storage",
    "internal.storage_mod.Buffer": "fucina.fast.storage.Storage",
    "internal.storage_mod.HostShadow": "fucina.spec.runtime.HostShadow",
    "internal.storage_mod.Release": "fucina.spec.runtime.Release",
    "internal.tensor_mod": "fucina.fast.tensor",
    "internal.tensor_mod.DType": "fucina.spec.types.DType",
    "internal.tensor_mod.Shape": "fucina.fast.shape.Shape",
    "internal.tensor_mod.Tensor": "fucina.fast.tensor.RawTensor",
    "internal.tensor_mod.max_rank": "fucina.fast.shape.max_rank",
    "internal.tensor_mod.require_same_shape": "fucina.fast.shape.require_same_shape",
    "internal.tensor_mod.s": "fucina.fast.dtype.s",
    "internal.thread_mod": "fucina.fast.thread_mod",
}
"""How names of the crosswalk begin, and how those of the pages do that mean the same."""


def _names(name: str) -> Iterator[str]:
    """Yield the names under which a page may describe a name of the crosswalk."""
    yield f"fucina.fast.{name}"
    yield from (f"{place}{name.removeprefix(at)}" for at, place in PLACES.items() if name.startswith(at))


def check(app: Sphinx, env: BuildEnvironment) -> None:
    """Warn of each name that no page describes."""
    described = set(env.domains.python_domain.objects)
    described |= {name.rpartition(".")[0] for name in described}
    for entry in CROSSWALK:
        if entry.clauses and described.isdisjoint(_names(entry.python)):
            LOG.warning("no page of the reference describes %s (%s)", entry.python, ", ".join(entry.clauses))


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the check to the end of reading."""
    app.connect("env-check-consistency", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
