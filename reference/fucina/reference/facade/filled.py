"""Filled tensors: of nothing, of one value, and like another tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fucina.reference.elements import read
from fucina.reference.facade import elements
from fucina.reference.facade.arguments import PLAIN, operation, require_branch, shape_of_new, tensor
from fucina.reference.facade.making import Making
from fucina.reference.facade.results import raw_shape
from fucina.reference.geometry import one, zero
from fucina.reference.runtime import ExecContext
from fucina.spec.errors import InvalidShape, InvalidTag
from fucina.spec.types import DType

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from fucina.spec.facade import Element
    from fucina.spec.interface import ScalarValue
    from fucina.spec.memory import ShapeLike

__all__ = ["Filled"]


class Filled(Making):
    """Constructors that compute nothing."""

    @classmethod
    @operation
    def empty(cls, ctx: ExecContext, shape: ShapeLike) -> Self:
        """Return a tensor of unspecified content.

        Raises
        ------
        InvalidInteger, InvalidShape, Overflow, OutOfMemory
            If there is no such tensor, or no memory.

        Notes
        -----
        Clauses: FACADE-NEW-4, CONTEXT-NEW-1
        """
        return cls._made(ctx, ctx.empty(shape_of_new(cls, shape, "FACADE-NEW-4"), cls.dtype))

    @classmethod
    def _filled(cls, ctx: ExecContext, shape: tuple[int, ...], bits: int) -> Self:
        raw = ctx.rt.new(cls.dtype, raw_shape(shape))
        raw.elements()[...] = bits
        return cls._made(ctx, raw)

    @classmethod
    def _bits(cls, what: str, value: Any) -> int:
        """Return the pattern of an element that was given."""
        require_branch(what, cls.dtype, PLAIN)
        return elements.read(cls.dtype, value)

    @classmethod
    def _bits_of(cls, what: str, number: Callable[[DType], ScalarValue]) -> int:
        """Return the pattern of zero or one."""
        require_branch(what, cls.dtype, PLAIN)
        return read(cls.dtype, number(cls.dtype))

    @classmethod
    @operation
    def zeros(cls, ctx: ExecContext, shape: ShapeLike) -> Self:
        """Return a tensor of zeros.

        Raises
        ------
        InvalidDType
            If the type is of blocks.
        InvalidInteger, InvalidShape, Overflow, OutOfMemory
            As :meth:`empty`.

        Notes
        -----
        Clauses: FACADE-NEW-4, CONTEXT-NEW-1
        """
        bits = cls._bits_of("zeros", zero)
        return cls._filled(ctx, shape_of_new(cls, shape, "FACADE-NEW-4"), bits)

    @classmethod
    @operation
    def ones(cls, ctx: ExecContext, shape: ShapeLike) -> Self:
        """Return a tensor of ones; errors as of :meth:`zeros`.

        Notes
        -----
        Clauses: FACADE-NEW-4, CONTEXT-NEW-1
        """
        bits = cls._bits_of("ones", one)
        return cls._filled(ctx, shape_of_new(cls, shape, "FACADE-NEW-4"), bits)

    @classmethod
    @operation
    def full(cls, ctx: ExecContext, shape: ShapeLike, value: Element) -> Self:
        """Return a tensor whose elements are all the same.

        Raises
        ------
        InvalidDType
            If the type is of blocks.
        DTypeMismatch, Overflow
            If ``value`` is no element.
        InvalidInteger, InvalidShape, Overflow, OutOfMemory
            As :meth:`empty`.

        Notes
        -----
        Clauses: FACADE-NEW-4, FACADE-NEW-3
        """
        bits = cls._bits("full", value)
        return cls._filled(ctx, shape_of_new(cls, shape, "FACADE-NEW-4"), bits)

    @classmethod
    @operation
    def scalar(cls, ctx: ExecContext, value: Element) -> Self:
        """Return a scalar.

        Raises
        ------
        InvalidDType, DTypeMismatch, Overflow, OutOfMemory
            As :meth:`full`.
        InvalidShape
            If the type has axes.

        Notes
        -----
        Clauses: FACADE-NEW-4, FACADE-NEW-3
        """
        bits = cls._bits("scalar", value)
        if cls.rank:
            raise InvalidShape(f"a scalar has no axes, {cls!r} has {cls.rank}", clause="FACADE-NEW-4")
        return cls._filled(ctx, (), bits)

    # -- like others

    @classmethod
    def _shape_like(cls, other: object, what: str) -> tuple[int, ...]:
        found = tensor("other", other)
        require_branch(what, cls.dtype, PLAIN)
        if found.axis_tags != cls.axis_tags:
            raise InvalidTag(f"other must have the tags of {cls!r}, got {type(found)!r}", clause="FACADE-NEW-4")
        return found.shape

    @classmethod
    @operation
    def empty_like(cls, ctx: ExecContext, other: Any) -> Self:
        """Return a tensor of unspecified content, in the shape of another one.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        other : tensor
            With the type's tags, of whatever dtype; so in all ``_like`` constructors.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch
            If it is no tensor.
        InvalidDType
            If the type is of blocks.
        InvalidTag
            If it has other tags.
        OutOfMemory
            If there is no memory.

        Notes
        -----
        Clauses: FACADE-NEW-4
        """
        shape = cls._shape_like(other, "empty_like")
        return cls._made(ctx, ctx.rt.new(cls.dtype, raw_shape(shape)))

    @classmethod
    @operation
    def zeros_like(cls, ctx: ExecContext, other: Any) -> Self:
        """Return a tensor of zeros in the shape of another one; errors as of :meth:`empty_like`.

        Notes
        -----
        Clauses: FACADE-NEW-4
        """
        shape = cls._shape_like(other, "zeros_like")
        return cls._filled(ctx, shape, cls._bits_of("zeros_like", zero))

    @classmethod
    @operation
    def ones_like(cls, ctx: ExecContext, other: Any) -> Self:
        """Return a tensor of ones in the shape of another one; errors as of :meth:`empty_like`.

        Notes
        -----
        Clauses: FACADE-NEW-4
        """
        shape = cls._shape_like(other, "ones_like")
        return cls._filled(ctx, shape, cls._bits_of("ones_like", one))

    @classmethod
    @operation
    def full_like(cls, ctx: ExecContext, other: Any, value: Element) -> Self:
        """Return a tensor of one value in the shape of another one.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch, InvalidDType, InvalidTag, OutOfMemory
            As :meth:`empty_like`.
        DTypeMismatch, Overflow
            If ``value`` is no element.

        Notes
        -----
        Clauses: FACADE-NEW-4, FACADE-NEW-3
        """
        shape = cls._shape_like(other, "full_like")
        return cls._filled(ctx, shape, cls._bits("full_like", value))
