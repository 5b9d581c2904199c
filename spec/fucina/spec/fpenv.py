"""The vocabulary of the chapter ``fpenv``: rounding and underflow modes, environments, exception flags."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["DEFAULT_ENVIRONMENT", "FLAGS", "Environment", "Exceptions", "RoundingMode", "UnderflowMode"]

FLAGS = ("invalid", "division_by_zero", "overflow", "underflow", "inexact", "denormal")
"""The exceptions by name, in the order of the documents."""


class RoundingMode(Enum):
    """Where a result goes that is no number of its format.

    Clauses: FPENV-MODE-1
    """

    nearest_even = "nearest_even"
    toward_zero = "toward_zero"
    upward = "upward"
    downward = "downward"

    def __repr__(self) -> str:
        return f"RoundingMode.{self.name}"


class UnderflowMode(Enum):
    """What becomes of subnormal numbers.

    Clauses: FPENV-MODE-1
    """

    gradual = "gradual"
    flush_to_zero = "flush_to_zero"

    def __repr__(self) -> str:
        return f"UnderflowMode.{self.name}"


@dataclass(frozen=True, slots=True)
class Environment:
    """How a thread's floating-point operations round and underflow.

    Parameters
    ----------
    rounding : RoundingMode
    underflow : UnderflowMode

    Clauses: FPENV-MODE-2
    """

    rounding: RoundingMode
    underflow: UnderflowMode

    def is_default(self) -> bool:
        """Whether it is to nearest with ties to even and underflows gradually.

        Clauses: FPENV-MODE-2
        """
        return self.rounding is RoundingMode.nearest_even and self.underflow is UnderflowMode.gradual


DEFAULT_ENVIRONMENT = Environment(RoundingMode.nearest_even, UnderflowMode.gradual)
"""The environment under which every numeric clause holds (clauses FPENV-MODE-2, NUM-ENV-1)."""


@dataclass(frozen=True, slots=True, repr=False)
class Exceptions:
    """A set of floating-point exceptions: the five of IEEE 754, and subnormal operands.

    Its representation names those that were raised and no other.

    Parameters
    ----------
    invalid, division_by_zero, overflow, underflow, inexact, denormal : bool
        Whether it was raised; False where it is not said.

    Clauses: FPENV-EXC-1, FPENV-EXC-2
    """

    invalid: bool = False
    division_by_zero: bool = False
    overflow: bool = False
    underflow: bool = False
    inexact: bool = False
    denormal: bool = False

    def any(self) -> bool:
        """Whether one of the six is raised.

        Clauses: FPENV-EXC-2
        """
        return self.any_significant() or self.inexact

    def any_significant(self) -> bool:
        """Whether one other than ``inexact`` is raised; ``denormal`` counts.

        Clauses: FPENV-EXC-2
        """
        return self.invalid or self.division_by_zero or self.overflow or self.underflow or self.denormal

    def union_with(self, other: Exceptions) -> Exceptions:
        """Return the exceptions that are raised here or in ``other``.

        Clauses: FPENV-EXC-2
        """
        return Exceptions(*(getattr(self, flag) or getattr(other, flag) for flag in FLAGS))

    def __bool__(self) -> bool:
        return self.any()

    def __or__(self, other: object) -> Exceptions:
        return self.union_with(other) if isinstance(other, Exceptions) else NotImplemented

    def __repr__(self) -> str:
        return f"Exceptions({', '.join(f'{flag}=True' for flag in FLAGS if getattr(self, flag))})"
