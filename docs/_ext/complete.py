"""The reference is complete: pages of ``docs/api`` describe what the library exports, and what the crosswalk names.

Exported is what ``fucina.fast`` and its public modules have in ``__all__``; of the crosswalk, what clauses govern.
A name that no page describes is a warning, and so an error of the build.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

import fucina.fast
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
    "bench_raw.RawTensor.": "fucina.fast.tensor.RawTensor.",
    "fpenv.": "fucina.spec.fpenv.",
    "internal.RawTensor.": "fucina.fast.tensor.RawTensor.",
    "internal.backend_mod": "fucina.fast.backend",
    "internal.gpu": "fucina.fast.gpu",
    "internal.shape_mod": "fucina.fast.shape",
    "internal.storage_mod": "fucina.fast.storage",
    "internal.storage_mod.Buffer": "fucina.fast.storage.Storage",
    "internal.storage_mod.HostShadow": "fucina.spec.runtime.HostShadow",
    "internal.storage_mod.Release": "fucina.spec.runtime.Release",
    "internal.storage_mod.allocation_count": "fucina.fast.internal.allocation_count",
    "internal.storage_mod.fail_allocation": "fucina.fast.internal.fail_allocation",
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


def exported(module: types.ModuleType, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what a module exports, and what the modules do that are among it: the name below it, and the object."""
    for name in module.__all__:
        found = getattr(module, name)
        yield f"{place}{name}", found
        if isinstance(found, types.ModuleType):
            yield from exported(found, f"{place}{name}.")


def _names_of_export(name: str, found: Any) -> Iterator[str]:
    """Yield the names under which a page may describe what is exported: the above, and where it was defined."""
    yield from _names(name)
    if isinstance(found, types.ModuleType):
        yield found.__name__
    elif isinstance(found, type | types.FunctionType | types.BuiltinFunctionType):
        yield f"{found.__module__}.{found.__qualname__}"


def check(app: Sphinx, env: BuildEnvironment) -> None:
    """Warn of each name that no page describes."""
    described = set(env.domains.python_domain.objects)
    described |= {name.rpartition(".")[0] for name in described}
    version = "__version__", fucina.fast.__version__
    for name, found in (version, *exported(fucina.fast)):
        if described.isdisjoint(_names_of_export(name, found)):
            LOG.warning("no page of the reference describes %s, which fucina.fast exports", name)
    for entry in CROSSWALK:
        if entry.clauses and described.isdisjoint(_names(entry.python)):
            LOG.warning("no page of the reference describes %s (%s)", entry.python, ", ".join(entry.clauses))


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the check to the end of reading."""
    app.connect("env-check-consistency", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
