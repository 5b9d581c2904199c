"""Value types: a bf16 or 8-bit float element as an object that is its bit pattern and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Self

from fucina.reference.arguments import f32_argument, integer
from fucina.reference.bridges import FLOATS, convert
from fucina.reference.formats import F32, F64, float_of
from fucina.spec.types import DType

__all__ = ["F8E4M3", "F8E5M2", "VALUE_TYPES", "Bf16"]


@dataclass(frozen=True, slots=True, repr=False)
class _BitFloat:
    """One element, held as its pattern; immutable, hashable, equal by type and pattern.

    Parameters
    ----------
    bits : int
        The pattern.

    Raises
    ------
    InvalidInteger, Overflow
        If ``bits`` is no integer, or no pattern of the format.

    Notes
    -----
    Clauses: BRIDGE-VALUE-1, BRIDGE-VALUE-2
    """

    bits: int
    dtype: ClassVar[DType]

    def __post_init__(self) -> None:
        width = FLOATS[self.dtype].sign_shift + 1
        object.__setattr__(self, "bits", integer("bits", self.bits, 0, 1 << width, "BRIDGE-VALUE-1"))

    def to_f32(self) -> float:
        """Return the value.

        Notes
        -----
        Clauses: BRIDGE-VALUE-1
        """
        return float_of(convert(F32, F64, convert(FLOATS[self.dtype], F32, self.bits)))

    @classmethod
    def from_f32(cls, value: float, /) -> Self:
        """Return the element nearest to an f32.

        Notes
        -----
        Clauses: BRIDGE-VALUE-1, NUM-PARAM-1
        """
        return cls(convert(F32, FLOATS[cls.dtype], f32_argument("value", value).bits))

    def __repr__(self) -> str:
        digits = (FLOATS[self.dtype].sign_shift + 1) // 4
        return f"{type(self).__name__}(0x{self.bits:0{digits}x})"


class Bf16(_BitFloat):
    """A bfloat16: the upper half of an f32."""

    __slots__ = ()
    dtype = DType.bf16


class F8E4M3(_BitFloat):
    """An OCP E4M3FN: four exponent bits, no infinity, one NaN of each sign."""

    __slots__ = ()
    dtype = DType.f8_e4m3


class F8E5M2(_BitFloat):
    """An OCP E5M2: five exponent bits, with infinities."""

    __slots__ = ()
    dtype = DType.f8_e5m2


VALUE_TYPES: Mapping[DType, type[_BitFloat]] = MappingProxyType(
    {value_type.dtype: value_type for value_type in (Bf16, F8E4M3, F8E5M2)}
)
"""The value type of each raw-bit float."""
