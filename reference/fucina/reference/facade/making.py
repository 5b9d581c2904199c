"""Making tensors: of raw ones, of values, of nothing, of blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fucina.reference.arguments import is_a, shown
from fucina.reference.facade import elements
from fucina.reference.facade.arguments import (
    ANY,
    BLOCKS,
    PLAIN,
    TRACKABLE,
    operation,
    require_branch,
    shape_of_new,
)
from fucina.reference.facade.results import fits
from fucina.reference.facade.values import Value
from fucina.reference.graph import Node
from fucina.reference.lives import Life
from fucina.reference.runtime import ExecContext
from fucina.reference.tensor import RawTensor, TensorOf
from fucina.spec.errors import (
    ActiveExecScopeUnsupported,
    DTypeMismatch,
    InvalidShape,
    UnsupportedView,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from fucina.spec.facade import Element
    from fucina.spec.memory import Memory, ShapeLike, Values

__all__ = ["Making", "require_movable"]


def require_movable(name: str, raw: RawTensor, clause: str) -> None:
    """Refuse a raw tensor whose reference cannot be taken over.

    Raises
    ------
    ActiveExecScopeUnsupported
        If a scope owns it.
    UnsupportedView
        If it owns nothing.

    Notes
    -----
    Clauses: FACADE-NEW-1
    """
    if raw.life is Life.SCOPED:
        raise ActiveExecScopeUnsupported(f"{name} is consumed, and a scope owns it: {raw!r}", clause=clause)
    if raw.life is Life.BORROWED:
        raise UnsupportedView(f"{name} is consumed, and owns nothing: {raw!r}", clause=clause)


class Making(Value):
    """The constructors; what they make is always the caller's.

    Notes
    -----
    Clauses: FACADE-OWN-2
    """

    @classmethod
    def _made(cls, ctx: ExecContext, raw: RawTensor, *, leaf: bool = False) -> Self:
        return cls.holding(ctx, raw, Node(raw.shape) if leaf else None, constructed=True)

    # -- of raw tensors

    @classmethod
    @operation
    def constant(cls, ctx: ExecContext, raw: Any) -> Self:
        """Return a tensor of a raw one, which is consumed.

        Parameters
        ----------
        ctx : ExecContext
            The context; so in all constructors.
        raw : RawTensor
            Of the type's dtype and rank, of any layout; on error it stays as it is.

        Raises
        ------
        DTypeMismatch
            If ``ctx`` is no context, here and in all constructors; if ``raw`` is no raw tensor of the dtype.
        UseAfterDeinit, UseAfterScope
            If it has ended.
        InvalidShape
            If it has another rank.
        ActiveExecScopeUnsupported, UnsupportedView
            If a scope owns it, or it owns nothing.

        Notes
        -----
        Clauses: FACADE-NEW-1, FACADE-CTX-1
        """
        return cls._consumed(ctx, raw, "constant", leaf=False)

    @classmethod
    @operation
    def from_tensor(cls, ctx: ExecContext, raw: Any) -> Self:
        """Return what :meth:`constant` does.

        Notes
        -----
        Clauses: FACADE-NEW-1
        """
        return cls._consumed(ctx, raw, "from_tensor", leaf=False)

    @classmethod
    @operation
    def variable(cls, ctx: ExecContext, raw: Any) -> Self:
        """Return a leaf of a raw tensor, which is consumed; parameters and errors as of :meth:`constant`.

        Raises
        ------
        InvalidDType
            If the type is of none of f16, bf16 and f32.

        Notes
        -----
        Clauses: FACADE-NEW-1, AUTOGRAD-LEAF-1, POLICY-BRANCH-1
        """
        return cls._consumed(ctx, raw, "variable", leaf=True)

    @classmethod
    def _consumed(cls, ctx: ExecContext, raw: Any, what: str, *, leaf: bool) -> Self:
        clause = "FACADE-NEW-1"
        if not is_a(raw, RawTensor):
            raise DTypeMismatch(f"raw must be a raw tensor, got {shown(raw)}", clause=clause)
        raw.live()
        require_branch(what, cls.dtype, TRACKABLE if leaf else ANY)
        if raw.dtype is not cls.dtype:
            raise DTypeMismatch(f"raw must be of {cls.dtype.name}, got {raw.dtype.name}", clause=clause)
        if not fits(raw.shape, cls.rank):
            wanted = f"rank {cls.rank}" if cls.rank else "shape (1,)"
            raise InvalidShape(f"raw must have {wanted}, got {tuple(raw.shape)}", clause=clause)
        require_movable("raw", raw, clause)
        return cls._made(ctx, raw.moved(), leaf=leaf)

    # -- of values

    @classmethod
    @operation
    def from_slice(cls, ctx: ExecContext, shape: ShapeLike, values: Values | Sequence[Element]) -> Self:
        """Return a constant with a pooled copy of the values.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        shape : sequence of int
            A size for each axis.
        values : buffer or sequence
            Exactly as many elements, in row-major order.

        Raises
        ------
        InvalidDType
            If the type is of blocks.
        InvalidInteger, InvalidShape, Overflow
            If it is no shape of the type; so in all constructors that take one.
        DTypeMismatch, InvalidDataLength
            If the values are no elements of the dtype, or of another number.
        OutOfMemory
            If there is no memory.

        Notes
        -----
        Clauses: FACADE-NEW-2, FACADE-NEW-3, CONTEXT-NEW-2
        """
        return cls._copied(ctx, shape, values, "from_slice", leaf=False)

    @classmethod
    @operation
    def variable_from_slice(cls, ctx: ExecContext, shape: ShapeLike, values: Values | Sequence[Element]) -> Self:
        """Return a leaf with a pooled copy of the values; parameters and errors as of :meth:`from_slice`.

        Raises
        ------
        InvalidDType
            If the type is of none of f16, bf16 and f32.

        Notes
        -----
        Clauses: FACADE-NEW-2, FACADE-NEW-3, AUTOGRAD-LEAF-1, POLICY-BRANCH-1
        """
        return cls._copied(ctx, shape, values, "variable_from_slice", leaf=True)

    @classmethod
    def _copied(cls, ctx: ExecContext, shape: Any, values: Any, what: str, *, leaf: bool) -> Self:
        require_branch(what, cls.dtype, TRACKABLE if leaf else PLAIN)
        sizes = shape_of_new(cls, shape, "FACADE-NEW-2")
        return cls._made(ctx, ctx.from_slice(sizes, elements.given(cls.dtype, values), cls.dtype), leaf=leaf)

    @classmethod
    @operation
    def from_borrowed_slice(cls, ctx: ExecContext, shape: ShapeLike, values: Memory) -> Self:
        """Return a constant over the caller's memory.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        shape : sequence of int
            A size for each axis.
        values : buffer
            Writable, in storage form, in row-major order; of exactly as many elements.

        Raises
        ------
        InvalidDType
            If the type is of blocks.
        DTypeMismatch, UnsupportedView, ReadOnlyStorage, InvalidDataLength
            If the memory cannot be borrowed, or holds another number of elements.

        Notes
        -----
        Clauses: FACADE-NEW-2, CONTEXT-NEW-3
        """
        require_branch("from_borrowed_slice", cls.dtype, PLAIN)
        sizes = shape_of_new(cls, shape, "FACADE-NEW-2")
        return cls._made(ctx, ctx.from_borrowed_slice(sizes, values, cls.dtype))

    @classmethod
    @operation
    def from_borrowed_const_slice(cls, ctx: ExecContext, shape: ShapeLike, values: Memory) -> Self:
        """Return a read-only constant over the caller's memory, which may be read-only itself.

        Raises
        ------
        InvalidDType, DTypeMismatch, UnsupportedView, InvalidDataLength
            As :meth:`from_borrowed_slice`.

        Notes
        -----
        Clauses: FACADE-NEW-2, CONTEXT-NEW-3, STORAGE-READ-1
        """
        require_branch("from_borrowed_const_slice", cls.dtype, PLAIN)
        sizes = shape_of_new(cls, shape, "FACADE-NEW-2")
        return cls._made(ctx, ctx.rt.traced(TensorOf(cls.dtype).from_borrowed_const_slice(sizes, values)))

    # -- of blocks

    @classmethod
    @operation
    def from_blocks(cls, ctx: ExecContext, shape: ShapeLike, blocks: Values) -> Self:
        """Return a tensor with a pooled copy of storage elements.

        Raises
        ------
        InvalidDType
            If the type is not of blocks.
        InvalidInteger, InvalidShape, Overflow
            If it is no shape of whole blocks.
        DTypeMismatch, InvalidDataLength, OutOfMemory
            As :meth:`from_slice`.

        Notes
        -----
        Clauses: FACADE-NEW-8, CONTEXT-NEW-2
        """
        require_branch("from_blocks", cls.dtype, BLOCKS)
        sizes = shape_of_new(cls, shape, "FACADE-NEW-8")
        return cls._made(ctx, ctx.from_storage_slice(sizes, blocks, cls.dtype))

    @classmethod
    @operation
    def from_borrowed_blocks(cls, ctx: ExecContext, shape: ShapeLike, blocks: Memory) -> Self:
        """Return a tensor over storage elements of the caller; errors as of :meth:`from_borrowed_slice`.

        Notes
        -----
        Clauses: FACADE-NEW-8, CONTEXT-NEW-3
        """
        require_branch("from_borrowed_blocks", cls.dtype, BLOCKS)
        sizes = shape_of_new(cls, shape, "FACADE-NEW-8")
        return cls._made(ctx, ctx.from_borrowed_storage_slice(sizes, blocks, cls.dtype))
