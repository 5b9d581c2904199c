"""Value types: a bf16 or 8-bit float element as an object that is its bit pattern and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, NoReturn, Self

from fucina.reference.arguments import f32_argument, integer
from fucina.reference.bridges import FLOATS, convert
from fucina.reference.formats import F32, F64, float_of
from fucina.spec.types import DType

__all__ = ["F8E4M3", "F8E5M2", "VALUE_TYPES", "Bf16"]


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

    __slots__ = ("_bits",)
    _bits: int
    dtype: ClassVar[DType]

    def __init__(self, bits: int, /) -> None:
        if hasattr(self, "_bits"):  # called by hand on a finished value
            self._refuse()
        width = FLOATS[self.dtype].sign_shift + 1
        object.__setattr__(self, "_bits", integer("bits", bits, 0, 1 << width, "BRIDGE-VALUE-1"))

    @property
    def bits(self) -> int:
        """The pattern.

        Notes
        -----
        Clauses: BRIDGE-VALUE-1
        """
        return self._bits

    def to_f32(self) -> float:
        """Return the value.

        Notes
        -----
        Clauses: BRIDGE-VALUE-1
        """
        return float_of(convert(F32, F64, convert(FLOATS[self.dtype], F32, self._bits)))

    @classmethod
    def from_f32(cls, value: float, /) -> Self:
        """Return the element nearest to an f32.

        Notes
        -----
        Clauses: BRIDGE-VALUE-1, NUM-PARAM-1
        """
        return cls(convert(F32, FLOATS[cls.dtype], f32_argument("value", value).bits))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._bits == other._bits

    def __hash__(self) -> int:
        return hash((self.dtype, self._bits))

    def __repr__(self) -> str:
        digits = (FLOATS[self.dtype].sign_shift + 1) // 4
        return f"{type(self).__name__}(0x{self._bits:0{digits}x})"

    def __reduce__(self) -> tuple[type[Self], tuple[int]]:
        return type(self), (self._bits,)

    def __setattr__(self, name: str, value: object) -> None:
        self._refuse()

    def __delattr__(self, name: str) -> None:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise AttributeError(f"BRIDGE-VALUE-2: {self!r} cannot be changed")


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
