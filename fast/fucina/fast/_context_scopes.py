"""Exec scopes as methods of a context (chapter ``scope``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from fucina.fast._context_core import driven, operands
from fucina.fast._context_layouts import Layouts
from fucina.fast._scopes import ExecScope
from fucina.spec.errors import InvalidDType, UnsupportedView

__all__ = ["Scopes"]


class Scopes(Layouts):
    """What a context does with scopes."""

    @driven
    def exec_scope_active(self) -> bool:
        """Return whether a scope is open.

        Clauses: SCOPE-OPEN-1
        """
        return bool(self._rt.scopes.marks)

    @driven
    def open_exec_scope(self) -> ExecScope:
        """Open a scope within those that are open, and return its mark.

        Clauses: SCOPE-OPEN-1, SCOPE-NEST-1
        """
        return self._rt.scopes.open()

    @driven
    def close_exec_scope(self, mark: Any) -> None:
        """Close the innermost scope: what it owns is released, newest first.

        Parameters
        ----------
        mark : ExecScope
            What its opening returned.

        Raises
        ------
        ScopeOrder
            Anything else; nothing is released then.

        Clauses: SCOPE-CLOSE-1, SCOPE-NEST-1, SCOPE-MARK-1
        """
        self._rt.scopes.close(mark)

    @driven
    def exec_scope(self) -> AbstractContextManager[ExecScope]:
        """Return a scope for a ``with`` block, which closes it however it ends.

        Clauses: SCOPE-ERROR-1
        """
        return self._scope()

    @contextmanager
    def _scope(self) -> Iterator[ExecScope]:
        mark = self.open_exec_scope()
        try:
            yield mark
        finally:
            if not self._closed and self._rt.scopes.depth_of(mark) is not None:
                self._close_with(mark)

    @driven
    def _close_with(self, mark: ExecScope) -> None:
        """Close a scope and those within it.

        Clauses: SCOPE-ERROR-1
        """
        depth = self._rt.scopes.depth_of(mark)
        if depth is not None:
            self._rt.scopes.close_to(depth)

    # -- adoption

    @driven
    def reserve_scope_slot(self) -> None:
        """Make room for one adoption by the innermost scope: the step that can fail.

        Raises
        ------
        ActiveExecScopeRequired
            No scope is open.
        OutOfMemory
            There is no room.

        Clauses: SCOPE-RESERVE-1
        """
        self._rt.scopes.reserve()

    @driven
    def adopt_scope_value_assume_capacity(
        self, value: Any, node: Any, destroy_node: Callable[[Any], object] | None
    ) -> None:
        """Give a value, and a node with it, to the innermost scope.

        Parameters
        ----------
        value : RawTensor
            The caller's; from now on the scope's.
        node : object or None
            Whatever belongs to it.
        destroy_node : callable or None
            ``destroy_node(node)`` is called after the value was released.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch
            ``value`` is no tensor, or has ended.
        UnsupportedView
            It is the raw tensor of one with tags, which owns nothing.
        InvalidDType
            ``destroy_node`` cannot be called.
        ActiveExecScopeRequired
            No scope is open.
        ScopeOrder
            A scope owns the value already; no slot was reserved.

        Clauses: SCOPE-ADOPT-1, SCOPE-NODE-1
        """
        (found,) = operands("SCOPE-ADOPT-1", value=value)
        if found._borrows():
            raise UnsupportedView(f"{found!r} owns nothing that a scope could own", clause="FACADE-RAW-1")
        self._rt.scopes.adopt(found, node, destroy_node)

    @driven
    def adopt_scope_node_assume_capacity(self, node: Any, destroy_node: Callable[[Any], object]) -> None:
        """Give a node to the innermost scope.

        Raises
        ------
        InvalidDType
            No node; ``destroy_node`` cannot be called.
        ActiveExecScopeRequired
            No scope is open.
        ScopeOrder
            No slot was reserved.

        Clauses: SCOPE-NODE-1
        """
        if node is None:
            raise InvalidDType(f"node must be an object, got {node}", clause="SCOPE-NODE-1")
        self._rt.scopes.adopt(None, node, destroy_node)
