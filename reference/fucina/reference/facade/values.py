"""Values: one tensor of a kind, with its life, its node and the context that made it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, ClassVar

from fucina.reference.facade.kinds import Kind, Tags
from fucina.reference.graph import Node
from fucina.reference.lives import Life, Replaceable
from fucina.reference.tensor import RawTensor
from fucina.spec.errors import UseAfterDeinit, UseAfterScope
from fucina.spec.types import DType

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from fucina.reference.facade.tensor import Tensor
    from fucina.reference.runtime import ExecContext

__all__ = ["Value"]


class Value(Replaceable, metaclass=Kind):
    """A tensor whose axes have tags: a raw tensor of its own, and a node if gradients are tracked.

    It has no life beside that of its raw tensor, so that a scope which owns the one owns the other, even where nobody
    holds this object any more.

    Notes
    -----
    Clauses: FACADE-TYPE-1, FACADE-OWN-1, FACADE-OWN-2
    """

    dtype: ClassVar[DType]
    rank: ClassVar[int]
    axis_tags: ClassVar[Tags]

    raw: RawTensor
    """The raw tensor, whose reference is this tensor's; of a scalar, of shape (1,)."""

    node: Node | None
    """What backward knows of it."""

    context: ExecContext | None
    """The context that made it."""

    _constructed: bool

    @classmethod
    def holding(
        cls, context: ExecContext | None, raw: RawTensor, node: Node | None = None, *, constructed: bool = False
    ) -> Self:
        """Return a tensor that takes over a raw one; everything has been checked."""
        self = cls.__new__(cls)
        self.raw, self.node, self.context, self._constructed = raw, node, context, constructed
        return self

    # -- life

    def live(self, clause: str = "FACADE-OWN-1") -> RawTensor:
        """Return the raw tensor.

        Raises
        ------
        UseAfterDeinit, UseAfterScope
            If it has ended.

        Notes
        -----
        Clauses: FACADE-OWN-1, SCOPE-AFTER-1
        """
        if self.raw.life in (Life.ENDED, Life.REPLACED):
            raise UseAfterDeinit(f"a tensor was used after its end: {self!r}", clause=clause)
        if self.raw.life is Life.CLOSED:
            raise UseAfterScope(f"a tensor was used after its scope was closed: {self!r}", clause="SCOPE-AFTER-1")
        self.raw.live(clause)
        return self.raw

    def deinit(self) -> None:
        """End the tensor, and its node with it; of one that a scope owns, nothing.

        Raises
        ------
        UseAfterDeinit
            If that has happened; not after ``replace``, and not of a tensor that was consumed.

        Notes
        -----
        Clauses: FACADE-OWN-1, FACADE-OWN-2, AUTOGRAD-LIFE-1
        """
        if self.raw.life is Life.ENDED:
            self.live()
        if self.raw.life is Life.OWNED:
            self.raw.deinit()
            self._destroy_node()

    def deinit_replaced(self) -> None:
        """End the tensor, and forgive a second ``deinit``.

        Notes
        -----
        Clauses: FACADE-OWN-1, CONTEXT-REPLACE-1
        """
        if self.raw.life is Life.OWNED:
            self.raw.deinit_replaced()
            self._destroy_node()

    def _destroy_node(self) -> None:
        if self.node is not None:
            self.node.destroy()

    def __enter__(self) -> Self:
        self.live()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.raw.life is Life.OWNED:
            self.deinit()

    def __del__(self) -> None:
        # clause FACADE-OWN-1; the node stays, for those that need it
        raw: RawTensor | None = getattr(self, "raw", None)
        if raw is None or raw.life is not Life.OWNED or not raw.is_held():
            return
        said = f"{self!r}{'' if raw.origin is None else f' made at {raw.origin}'} was not deinited"
        warned = self._constructed or raw.origin is not None
        raw.deinit()
        if warned:  # at the end, for it may be an error
            warnings.warn(said, ResourceWarning, stacklevel=2)

    @property
    def scope_owned(self) -> bool:
        """Whether an exec scope owns it, or owned it.

        Notes
        -----
        Clauses: FACADE-LOOK-1, FACADE-OWN-2
        """
        return self.raw.scope_owned

    # -- what others ask

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes; of a scalar none.

        Notes
        -----
        Clauses: FACADE-LOOK-1
        """
        raw = self.live()
        return tuple(raw.shape) if self.rank else ()

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are tracked.

        Raises
        ------
        UseAfterDeinit, UseAfterScope
            If the tensor has ended.

        Notes
        -----
        Clauses: FACADE-LOOK-1, AUTOGRAD-LEAF-1, AUTOGRAD-TRACK-1
        """
        self.live()
        return self.node is not None

    def __repr__(self) -> str:
        life = self.raw.life
        if life is Life.CLOSED:
            return f"<{type(self)!r} scope closed>"
        if life is Life.REPLACED:
            return f"<{type(self)!r} replaced>"
        if life not in (Life.OWNED, Life.SCOPED) or not self.raw.is_held():
            return f"<{type(self)!r} deinited>"
        tracked = " requires_grad" if self.node is not None else ""
        return f"<{type(self)!r} shape={self.shape}{tracked} {life.value}>"

    def kin(self, tags: Tags, dtype: DType | None = None) -> type[Tensor]:
        """Return the type of a result with other tags, or of another dtype."""
        found: type[Tensor] = type(self).with_tags(tags, dtype)
        return found
