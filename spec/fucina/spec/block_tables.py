"""The constant tables of the block formats: codebooks, sign bytes, levels and scale bytes (clause BLOCK-TABLE-1).

They are data of the file formats and stand in ``block_tables.json``; the C core is compiled from the same file.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import cast

__all__ = ["codebook", "table"]


@cache
def _tables() -> dict[str, list[int] | list[list[int]]]:
    text = resources.files("fucina.spec").joinpath("block_tables.json").read_text("ascii")
    return cast("dict[str, list[int] | list[list[int]]]", json.loads(text))


@cache
def table(name: str) -> tuple[int, ...]:
    """Return a flat table.

    ``ksigns_iq2xs``, ``kvalues_iq4nl``, ``kvalues_e2m1_doubled``, ``e8m0_half_f32_bits`` or ``ue4m3_half_f32_bits``.

    Clauses: BLOCK-TABLE-1
    """
    return tuple(cast("list[int]", _tables()[name]))


@cache
def codebook(name: str) -> tuple[tuple[int, ...], ...]:
    """Return a codebook, one tuple per index.

    ``iq2xxs_grid``, ``iq2xs_grid``, ``iq2s_grid``, ``iq3xxs_grid``, ``iq3s_grid`` or ``iq1s_grid``.

    Clauses: BLOCK-TABLE-1
    """
    return tuple(tuple(row) for row in cast("list[list[int]]", _tables()[name]))
