"""``Bf16``, ``F8E4M3``, ``F8E5M2``: one element of a raw-bit float as a value."""

from __future__ import annotations

from typing import ClassVar, NoReturn, Self

from fucina.fast._arguments import integer
from fucina.fast.scalars import from_f32, to_f32
from fucina.spec.types import GEOMETRY, DType

__all__ = ["F8E4M3", "F8E5M2", "Bf16"]


class _BitFloat:
    """A bit pattern and nothing else: equal by bits, so a NaN equals itself and the two zeros differ.

    Parameters
    ----------
    bits : int
        The pattern; InvalidInteger, or Overflow where it does not fit the format.

    Clauses: BRIDGE-VALUE-1, BRIDGE-VALUE-2
    """

    __slots__ = ("_bits",)
    dtype: ClassVar[DType]
    _bits: int

    def __init__(self, bits: int, /) -> None:
        if hasattr(self, "_bits"):
            self._refuse("bits")
        width = 8 * GEOMETRY[self.dtype].byte_size
        object.__setattr__(self, "_bits", integer("bits", bits, 0, 1 << width, "BRIDGE-VALUE-1"))

    @property
    def bits(self) -> int:
        """The pattern, unsigned.

        Clauses: BRIDGE-VALUE-1
        """
        return self._bits

    def to_f32(self) -> float:
        """Return the value; it is exact.

        Clauses: BRIDGE-VALUE-1
        """
        return to_f32(self.dtype, self._bits)

    @classmethod
    def from_f32(cls, value: float, /) -> Self:
        """Return the element nearest to ``value`` rounded to f32.

        Clauses: BRIDGE-VALUE-1
        """
        return cls(int(from_f32(cls.dtype, value)))

    def __eq__(self, other: object) -> bool:
        return self._bits == other._bits if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), self._bits))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(0x{self._bits:0{2 * GEOMETRY[self.dtype].byte_size}x})"

    def __reduce__(self) -> tuple[type[Self], tuple[int]]:
        return type(self), (self._bits,)

    def __setattr__(self, name: str, value: object) -> None:
        self._refuse(name)

    def __delattr__(self, name: str) -> None:
        self._refuse(name)

    def _refuse(self, name: str) -> NoReturn:
        error = AttributeError(f"BRIDGE-VALUE-2: a {type(self).__name__} never changes, got a change of {name!r}")
        error.clause = "BRIDGE-VALUE-2"  # type: ignore[attr-defined] # as the errors of the contract have it (ERR-MSG-1)
        raise error


class Bf16(_BitFloat):
    """A bfloat16 element by its 16 bits.

    Clauses: BRIDGE-VALUE-1, BRIDGE-VALUE-2
    """

    __slots__ = ()
    dtype = DType.bf16


class F8E4M3(_BitFloat):
    """An FP8 E4M3FN element by its 8 bits.

    Clauses: BRIDGE-VALUE-1, BRIDGE-VALUE-2
    """

    __slots__ = ()
    dtype = DType.f8_e4m3


class F8E5M2(_BitFloat):
    """An FP8 E5M2 element by its 8 bits.

    Clauses: BRIDGE-VALUE-1, BRIDGE-VALUE-2
    """

    __slots__ = ()
    dtype = DType.f8_e5m2
