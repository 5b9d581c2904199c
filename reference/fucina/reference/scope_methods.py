"""Exec scopes as methods of a context."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from fucina.reference.arguments import shown
from fucina.reference.ops.operands import operands
from fucina.reference.scopes import ExecScope
from fucina.reference.substrate import Driven, driven
from fucina.spec.errors import InvalidDType

__all__ = ["ScopeMethods"]


class ScopeMethods(Driven):
    """What a context does with scopes."""

    @driven
    def exec_scope_active(self) -> bool:
        """Return whether a scope is open.

        Notes
        -----
        Clauses: SCOPE-OPEN-1
        """
        return self._rt.scopes.depth > 0

    @driven
    def open_exec_scope(self) -> ExecScope:
        """Open a scope within those that are open.

        Returns
        -------
        ExecScope
            Its mark, to close it with.

        Notes
        -----
        Clauses: SCOPE-OPEN-1, SCOPE-NEST-1
        """
        return self._rt.scopes.open()

    @driven
    def close_exec_scope(self, mark: Any) -> None:
        """Close the innermost scope: release what it owns, newest first.

        Parameters
        ----------
        mark : ExecScope
            What its opening returned.

        Raises
        ------
        ScopeOrder
            If it is anything else; nothing is released then.

        Notes
        -----
        Clauses: SCOPE-CLOSE-1, SCOPE-NEST-1, SCOPE-MARK-1
        """
        self._rt.scopes.close(mark)

    def exec_scope(self) -> AbstractContextManager[ExecScope]:
        """Return a scope for a ``with`` block, however it ends.

        Notes
        -----
        Clauses: SCOPE-ERROR-1
        """
        with self._rt.driving():
            return self._scope()

    @contextmanager
    def _scope(self) -> Iterator[ExecScope]:
        mark = self.open_exec_scope()
        try:
            yield mark
        finally:
            if not self._rt.closed and self._rt.scopes.is_open(mark):
                with self._rt.driving():
                    self._rt.scopes.close_through(mark)

    # -- adoption

    @driven
    def reserve_scope_slot(self) -> None:
        """Make room for one adoption by the innermost scope: the step that can fail.

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
        self._rt.scopes.reserve()

    @driven
    def adopt_scope_value_assume_capacity(
        self, value: Any, node: Any, destroy_node: Callable[[Any], object] | None
    ) -> None:
        """Give a value, and a node with it, to the innermost scope.

        Parameters
        ----------
        value : RawTensor
            What the caller owns; from now on it is a borrow.
        node : object or None
            Whatever belongs to it; None: nothing.
        destroy_node : callable or None
            Called as ``destroy_node(node)`` after the value was released.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch
            If the value is no tensor.
        InvalidDType
            If ``destroy_node`` cannot be called.
        ActiveExecScopeRequired
            If no scope is open.
        ScopeOrder
            If a scope owns the value already, or no slot was reserved.

        Notes
        -----
        Clauses: SCOPE-ADOPT-1, SCOPE-NODE-1
        """
        (found,) = operands("SCOPE-ADOPT-1", value=value)
        self._rt.scopes.adopt(found, node, destroy_node)

    @driven
    def adopt_scope_node_assume_capacity(self, node: Any, destroy_node: Callable[[Any], object]) -> None:
        """Give a node to the innermost scope.

        Raises
        ------
        InvalidDType
            If the node is None, or ``destroy_node`` cannot be called.
        ActiveExecScopeRequired
            If no scope is open.
        ScopeOrder
            If no slot was reserved.

        Notes
        -----
        Clauses: SCOPE-NODE-1
        """
        if node is None:
            raise InvalidDType(f"a node is required, got {shown(node)}", clause="SCOPE-NODE-1")
        self._rt.scopes.adopt(None, node, destroy_node)
