"""Prepared tensors: borrowed where there was nothing to do, owned where something was made."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from fucina.spec.errors import NotCopyable

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from fucina.fast.tensor import RawTensor

__all__ = ["PreparedTensor"]


class PreparedTensor:
    """A tensor, and whether it ends with the record; ``deinit`` is right for both kinds.

    Clauses: CONTEXT-PREPARE-1
    """

    __slots__ = ("_owned", "_tensor")

    def __init__(self, tensor: RawTensor, owned: bool) -> None:
        self._tensor, self._owned = tensor, owned

    @property
    def tensor(self) -> RawTensor:
        """The tensor.

        Clauses: CONTEXT-PREPARE-1
        """
        return self._tensor

    @property
    def owned(self) -> bool:
        """Whether ``deinit`` ends it.

        Clauses: CONTEXT-PREPARE-1
        """
        return self._owned

    def deinit(self) -> None:
        """End an owned tensor, which raises UseAfterDeinit where it has ended; leave a borrowed one alone.

        Clauses: CONTEXT-PREPARE-1
        """
        if self._owned:
            self._tensor.deinit()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._owned:
            self._tensor.__exit__(kind, error, trace)

    def __repr__(self) -> str:
        return f"<PreparedTensor {'owned' if self._owned else 'borrowed'} {self._tensor!r}>"

    def _refuse_copy(self, *_: object) -> NoReturn:
        raise NotCopyable(f"{self!r} cannot be copied or pickled", clause="CONTEXT-PREPARE-1")

    __copy__ = __deepcopy__ = __reduce_ex__ = _refuse_copy
