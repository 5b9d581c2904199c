"""Exec scopes: a stack of what they own, and a mark in it for each that is open (chapter ``scope``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from fucina.fast._objects import handles
from fucina.fast._shown import shown
from fucina.spec.errors import (
    ActiveExecScopeRequired,
    DTypeMismatch,
    InvalidDType,
    NotCopyable,
    OutOfMemory,
    ScopeOrder,
)

__all__ = ["ExecScope", "ScopeStack"]

Destroy = Callable[[Any], object]


class ExecScope:
    """The mark of an open scope; ``open_exec_scope`` makes it.

    Clauses: SCOPE-OPEN-1, SCOPE-MARK-1
    """

    __slots__ = ("_index", "_slots")
    _index: int
    _slots: int

    def __init__(self) -> None:
        raise DTypeMismatch(f"an {type(self).__name__} is made by open_exec_scope()", clause="SCOPE-MARK-1")

    @property
    def index(self) -> int:
        """How many entries the scopes owned when it was opened.

        Clauses: SCOPE-OPEN-1
        """
        return self._index

    def __repr__(self) -> str:
        return f"<ExecScope index={self._index}>"

    def _refuse_copy(self, *_: object) -> NoReturn:
        raise NotCopyable(f"{self!r} cannot be copied or pickled", clause="SCOPE-MARK-1")

    __copy__ = __deepcopy__ = __reduce_ex__ = _refuse_copy


class ScopeStack:
    """The open scopes of a context, and the values and nodes that they own, oldest first.

    Clauses: SCOPE-NEST-1
    """

    __slots__ = ("_entries", "marks")

    def __init__(self) -> None:
        self._entries: list[tuple[handles.Tensor | handles.Facade | None, Any, Destroy | None]] = []
        self.marks: list[ExecScope] = []

    @property
    def entries(self) -> int:
        """How many values and nodes are owned."""
        return len(self._entries)

    def open(self) -> ExecScope:
        """Open a scope within those that are open.

        Clauses: SCOPE-OPEN-1, SCOPE-NEST-1
        """
        mark = ExecScope.__new__(ExecScope)
        mark._index, mark._slots = len(self._entries), 0
        self.marks.append(mark)
        return mark

    def close(self, mark: Any) -> None:
        """Close the innermost scope; ScopeOrder where ``mark`` is not its mark.

        Clauses: SCOPE-CLOSE-1, SCOPE-MARK-1
        """
        if not self.marks or self.marks[-1] is not mark:
            raise ScopeOrder(
                f"mark must be that of the innermost of {len(self.marks)} open scopes, got {shown(mark)}",
                clause="SCOPE-MARK-1",
            )
        self.close_to(len(self.marks) - 1)

    def depth_of(self, mark: ExecScope) -> int | None:
        """Return how many scopes an open one lies within; None of one that is closed."""
        return next((depth for depth, other in enumerate(self.marks) if other is mark), None)

    def close_to(self, depth: int) -> None:
        """Close scopes until so many are open; what was raised first comes out at the end.

        Clauses: SCOPE-CLOSE-1, SCOPE-NODE-1, SCOPE-ERROR-1
        """
        first: BaseException | None = None
        while len(self.marks) > depth:
            start = self.marks[-1]._index
            while len(self._entries) > start:
                value, node, destroy_node = self._entries.pop()
                try:
                    if value is not None:
                        value._close()
                except BaseException as error:
                    first = first or error
                try:
                    if node is not None and destroy_node is not None:
                        destroy_node(node)
                except BaseException as error:
                    first = first or error
            self.marks.pop()
        if first is not None:
            raise first

    # -- adoption

    def _innermost(self, clause: str) -> ExecScope:
        if not self.marks:
            raise ActiveExecScopeRequired("an exec scope must be open, got none", clause=clause)
        return self.marks[-1]

    def reserve(self) -> None:
        """Make room for one entry of the innermost scope.

        Clauses: SCOPE-RESERVE-1
        """
        mark = self._innermost("SCOPE-RESERVE-1")
        if not handles.charge():
            raise OutOfMemory("no memory for a slot of a scope", clause="SCOPE-RESERVE-1")
        mark._slots += 1

    def give_back(self) -> None:
        """Give up room that was made, and is not needed.

        Clauses: SCOPE-RESERVE-1
        """
        self.marks[-1]._slots -= 1

    def adopt_result(self, value: handles.Facade, *, reserved: bool = False) -> None:
        """Let the innermost scope own a tensor of the facade, whose node is destroyed with it.

        Parameters
        ----------
        value : Tensor
            The caller's; from now on the scope's.
        reserved : bool
            Whether there is room for it.

        Raises
        ------
        OutOfMemory
            There is no room; the tensor stays the caller's.

        Clauses: FACADE-OWN-2, SCOPE-RESERVE-1
        """
        if not reserved:
            self.reserve()
        self._entries.append((value, None, None))
        self.marks[-1]._slots -= 1
        value._adopt()

    def adopt(self, value: handles.Tensor | None, node: Any, destroy_node: Destroy | None) -> None:
        """Let the innermost scope own a value, a node, or both; on error nothing has changed.

        Clauses: SCOPE-ADOPT-1, SCOPE-NODE-1, SCOPE-RESERVE-1
        """
        if not callable(destroy_node) and not (destroy_node is None and node is None):
            raise InvalidDType(
                f"destroy_node must be callable where there is a node, got {shown(destroy_node)}", clause="SCOPE-NODE-1"
            )
        mark = self._innermost("SCOPE-ADOPT-1")
        if value is not None and value.scope_owned:
            raise ScopeOrder(f"{value!r} belongs to a scope already", clause="SCOPE-ADOPT-1")
        if not mark._slots:
            raise ScopeOrder(
                f"a slot must be reserved in the innermost scope first, got none in {mark!r}", clause="SCOPE-RESERVE-1"
            )
        mark._slots -= 1
        self._entries.append((value, node, destroy_node))
        if value is not None:
            value._adopt()
