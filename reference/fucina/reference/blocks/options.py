"""What an encoder of one block is told besides the values, and how it refuses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["PLAIN", "Codec", "Options", "Unencodable"]


@dataclass(frozen=True, slots=True)
class Options:
    """The options of ``quantize`` as they reach one block.

    Parameters
    ----------
    importance : sequence of int, optional
        f32 patterns, one per element of this block, finite and not below zero; None means ones.
    search : bool
        Whether iq4_nl searches for its scale.
    scale : int, optional
        The f32 pattern of the scale given to tq2_0, finite and above zero.

    Notes
    -----
    Clauses: BLOCK-IMATRIX-1, BLOCK-ARG-1, BLOCK-SCALE-1
    """

    importance: Sequence[int] | None = None
    search: bool = True
    scale: int | None = None


PLAIN = Options()
"""The defaults."""


class Unencodable(Exception):  # noqa: N818 - no error of the contract: it becomes one where the block's index is known
    """The sums of a block overflowed so far that its encoder has no answer.

    Notes
    -----
    Clauses: BLOCK-REJECT-1
    """


class Codec(Protocol):
    """What the module of one format exports."""

    def decode(self, block: bytes) -> list[int]:
        """Return the f32 patterns of the elements of one block."""
        ...

    def encode(self, values: Sequence[int], options: Options) -> bytes:
        """Return the bytes of one block made of finite f32 patterns, or raise :class:`Unencodable`."""
        ...
