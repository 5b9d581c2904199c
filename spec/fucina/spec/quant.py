"""What ``quant.validate`` and ``quant.error`` return."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from fucina.spec.types import DType

__all__ = ["BlockFinding", "BlockReport", "ErrorFigures", "FindingKind"]

FindingKind = Literal["nan", "inf", "subnormal", "code", "sum"]
"""What is odd: a scale that is NaN, infinite or subnormal; a code outside the format; a wrong stored sum."""


@dataclass(frozen=True, slots=True)
class BlockFinding:
    """One oddity of one field of one block (clause BLOCK-VALID-1).

    ``block`` is the index in C order.  ``item`` is the first item of the field that shows it (0 in a plain field),
    ``count`` the number of items that do; ``bits`` is what that first item holds, as an unsigned integer, and
    ``reason`` says in words what it means.  The words are no part of the contract: findings compare without them.
    """

    block: int
    field: str
    item: int
    count: int
    kind: FindingKind
    bits: int
    reason: str = dataclasses.field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class BlockReport:
    """What was found in an array of blocks: findings in ascending order of block, then in the order of the fields.

    Clauses: BLOCK-VALID-1, BLOCK-VALID-2
    """

    dtype: DType
    blocks: int
    findings: tuple[BlockFinding, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing was found but subnormal scales, which decode exactly."""
        return all(finding.kind == "subnormal" for finding in self.findings)

    def __str__(self) -> str:
        count = f"{len(self.findings)} finding{'s' if len(self.findings) != 1 else ''}"
        head = f"{self.dtype.name}: {self.blocks} blocks, {count}"
        return "\n".join([head, *(f"  block {f.block}, {f.field}[{f.item}]: {f.reason}" for f in self.findings)])


@dataclass(frozen=True, slots=True)
class ErrorFigures:
    """What encoding and decoding costs (clause BLOCK-FIGURES-1).

    ``rmse`` is the root of the mean squared error, ``max_error`` the largest absolute error, both in the unit of the
    values; ``bits_per_weight`` the size of a block in bits over its elements.
    """

    dtype: DType
    rmse: float
    max_error: float
    bits_per_weight: float
