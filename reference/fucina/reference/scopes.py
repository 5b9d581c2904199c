"""Exec scopes: who owns what was made between an opening and a close.

The scopes of a context are one stack of entries, and for each open scope a mark of where it began.  An entry is a value
and a node, either of which may be missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from fucina.reference.allocation import charge
from fucina.reference.arguments import shown
from fucina.reference.handles import Life
from fucina.reference.tensor import RawTensor
from fucina.spec.errors import (
    ActiveExecScopeRequired,
    DTypeMismatch,
    InvalidDType,
    NotCopyable,
    ScopeOrder,
    UnsupportedView,
)

__all__ = ["ExecScope", "ScopeStack"]


class ExecScope:
    """The mark of an open scope; made by ``open_exec_scope``.

    Notes
    -----
    Clauses: SCOPE-OPEN-1, SCOPE-MARK-1
    """

    __slots__ = ("_index", "_slots")
    _index: int
    _slots: int

    def __init__(self) -> None:
        raise DTypeMismatch(f"{type(self).__name__} is made by open_exec_scope()", clause="SCOPE-MARK-1")

    @property
    def index(self) -> int:
        """How many entries there were when the scope was opened.

        Notes
        -----
        Clauses: SCOPE-OPEN-1
        """
        return self._index

    def __repr__(self) -> str:
        return f"<ExecScope index={self._index}>"

    def _refuse_copy(self, *_: object) -> NoReturn:
        raise NotCopyable(f"{self!r} cannot be copied or pickled", clause="SCOPE-MARK-1")

    __copy__ = __deepcopy__ = __reduce_ex__ = _refuse_copy


class _Entry(NamedTuple):
    """What a scope owns: a value, a node with its destructor, or both."""

    value: RawTensor | None
    node: Any
    destroy_node: Callable[[Any], object] | None

    def end(self) -> BaseException | None:
        """Release the value, then destroy the node; return what was raised first, if anything.

        Notes
        -----
        Clauses: SCOPE-CLOSE-1, SCOPE-NODE-1
        """
        first: BaseException | None = None
        for step in (self._release, self._destroy):
            try:
                step()
            except BaseException as error:
                first = first or error
        return first

    def _release(self) -> None:
        if self.value is not None:
            self.value.close()

    def _destroy(self) -> None:
        if self.node is not None and self.destroy_node is not None:
            self.destroy_node(self.node)


class ScopeStack:
    """The scopes of a context and what they own.

    Notes
    -----
    Clauses: SCOPE-NEST-1
    """

    def __init__(self) -> None:
        self._entries: list[_Entry] = []
        self._marks: list[ExecScope] = []

    @property
    def entries(self) -> int:
        """How many entries there are."""
        return len(self._entries)

    @property
    def depth(self) -> int:
        """How many scopes are open."""
        return len(self._marks)

    def open(self) -> ExecScope:
        """Open a scope and return its mark.

        Notes
        -----
        Clauses: SCOPE-OPEN-1
        """
        mark = ExecScope.__new__(ExecScope)
        mark._index = len(self._entries)
        mark._slots = 0
        self._marks.append(mark)
        return mark

    def close(self, mark: Any) -> None:
        """Close the innermost scope.

        Raises
        ------
        ScopeOrder
            If the mark is not that of the innermost open scope; nothing is released.

        Notes
        -----
        Clauses: SCOPE-CLOSE-1, SCOPE-MARK-1
        """
        if not self._marks or self._marks[-1] is not mark:
            raise ScopeOrder(
                f"the innermost open scope must be closed, {self.depth} are open, got {shown(mark)}",
                clause="SCOPE-MARK-1",
            )
        self.close_down_to(self.depth - 1)

    def is_open(self, mark: ExecScope) -> bool:
        """Whether a scope is still open."""
        return any(open_mark is mark for open_mark in self._marks)

    def close_through(self, mark: ExecScope) -> None:
        """Close a scope and all that were opened within it.

        Notes
        -----
        Clauses: SCOPE-ERROR-1
        """
        self.close_down_to(next(i for i, open_mark in enumerate(self._marks) if open_mark is mark))

    def close_down_to(self, depth: int) -> None:
        """Close scopes until that many are open; the first exception of a destructor is raised at the end.

        Notes
        -----
        Clauses: SCOPE-CLOSE-1, SCOPE-NODE-1
        """
        first: BaseException | None = None
        while len(self._marks) > depth:
            start = self._marks[-1].index
            while len(self._entries) > start:
                failure = self._entries.pop().end()
                first = first or failure
            self._marks.pop()
        if first is not None:
            raise first

    # -- adoption

    def _innermost(self, clause: str) -> ExecScope:
        if not self._marks:
            raise ActiveExecScopeRequired("no exec scope is open", clause=clause)
        return self._marks[-1]

    def reserve(self) -> None:
        """Make room for one adoption by the innermost scope.

        Raises
        ------
        ActiveExecScopeRequired
            If no scope is open.
        OutOfMemory
            If there is no room.

        Notes
        -----
        Clauses: SCOPE-RESERVE-1
        """
        mark = self._innermost("SCOPE-RESERVE-1")
        charge("a slot of a scope", "SCOPE-RESERVE-1")
        mark._slots += 1

    def give_back_slot(self) -> None:
        """Take back a reservation that came to nothing."""
        if self._marks:
            self._marks[-1]._slots = max(0, self._marks[-1]._slots - 1)

    def adopt(self, value: RawTensor | None, node: Any, destroy_node: Callable[[Any], object] | None) -> None:
        """Take a value, a node, or both.

        Raises
        ------
        InvalidDType
            If the destructor cannot be called, or a node has none.
        ActiveExecScopeRequired
            If no scope is open.
        ScopeOrder
            If a scope owns the value already, or no slot was reserved in the innermost scope.
        UnsupportedView
            If the value owns nothing.

        Notes
        -----
        Clauses: SCOPE-ADOPT-1, SCOPE-NODE-1, FACADE-RAW-1
        """
        if not callable(destroy_node) and not (destroy_node is None and node is None):
            raise InvalidDType(f"a node needs a destructor, got {shown(destroy_node)}", clause="SCOPE-NODE-1")
        mark = self._innermost("SCOPE-ADOPT-1")
        if value is not None and value.life is Life.SCOPED:
            raise ScopeOrder(f"a scope owns {value!r} already", clause="SCOPE-ADOPT-1")
        if value is not None and value.life is Life.BORROWED:
            raise UnsupportedView(f"{value!r} is borrowed and has nothing to hand over", clause="FACADE-RAW-1")
        if mark._slots == 0:
            raise ScopeOrder(f"no slot was reserved in the innermost scope, {mark!r}", clause="SCOPE-RESERVE-1")
        mark._slots -= 1
        self._entries.append(_Entry(value, node, destroy_node))
        if value is not None:
            value.adopt()
