"""Prepared tensors: borrowed where nothing had to be done, owned where something was made."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from fucina.reference.handles import Life
from fucina.spec.errors import NotCopyable

if TYPE_CHECKING:
    from types import TracebackType

    from fucina.reference.tensor import RawTensor

__all__ = ["PreparedTensor"]


class PreparedTensor:
    """A tensor that is borrowed or owned; ``deinit`` is right for both.

    Parameters
    ----------
    tensor : RawTensor
        The tensor.
    owned : bool
        Whether it was made for this, and ends with it.

    Notes
    -----
    Clauses: CONTEXT-PREPARE-1
    """

    def __init__(self, tensor: RawTensor, owned: bool) -> None:
        self._tensor = tensor
        self._owned = owned

    @property
    def tensor(self) -> RawTensor:
        """The tensor.

        Notes
        -----
        Clauses: CONTEXT-PREPARE-1
        """
        return self._tensor

    @property
    def owned(self) -> bool:
        """Whether ``deinit`` ends the tensor.

        Notes
        -----
        Clauses: CONTEXT-PREPARE-1
        """
        return self._owned

    def deinit(self) -> None:
        """End a tensor that is owned; of a borrowed one, nothing.

        Raises
        ------
        UseAfterDeinit
            If an owned one has ended.

        Notes
        -----
        Clauses: CONTEXT-PREPARE-1
        """
        if self._owned:
            self._tensor.deinit()

    def __enter__(self) -> PreparedTensor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._owned and self._tensor.life is Life.OWNED:
            self._tensor.deinit()

    def __repr__(self) -> str:
        return f"<PreparedTensor {'owned' if self._owned else 'borrowed'} {self._tensor!r}>"

    def _refuse_copy(self, *_: object) -> NoReturn:
        raise NotCopyable(f"{self!r} cannot be copied or pickled", clause="CONTEXT-PREPARE-1")

    __copy__ = __deepcopy__ = __reduce_ex__ = _refuse_copy
