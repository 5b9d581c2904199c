"""Arguments of the facade: contexts, tensors, axes, shapes and indices, each with the clause that allows no other."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from typing import Concatenate, ParamSpec, TypeVar, cast

from fucina.reference.arguments import is_a, shown, whole_or_none
from fucina.reference.bridges import FLOATS, INTEGERS
from fucina.reference.facade.kinds import Kind, Tag, Tags, tag_of
from fucina.reference.facade.values import Value
from fucina.reference.graph import TRACKABLE
from fucina.reference.runtime import ExecContext
from fucina.reference.sizes import counted, entries_of, listed, storage_element_count
from fucina.reference.tensor import RawTensor
from fucina.spec.errors import (
    DTypeMismatch,
    InvalidDType,
    InvalidShape,
    InvalidTag,
)
from fucina.spec.types import GEOMETRY, DType, DTypeKind

__all__ = [
    "ANY",
    "BLOCKS",
    "F32",
    "FLOAT",
    "I64",
    "NUMBER",
    "PLAIN",
    "SUMMABLE",
    "TRACKABLE",
    "axes_of",
    "axis_of",
    "driving",
    "operation",
    "require_branch",
    "require_one_dtype",
    "shape_of",
    "shape_of_new",
    "tagged_shape",
    "tags_argument",
    "tensor",
]

Self = TypeVar("Self")
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

# -- the branches of POLICY-BRANCH-1

ANY = frozenset(DType)
PLAIN = frozenset(dtype for dtype in DType if GEOMETRY[dtype].kind is DTypeKind.scalar)
BLOCKS = ANY - PLAIN
FLOAT = frozenset({DType.f16, DType.bf16, DType.f32, DType.f64})
NUMBER = FLOAT | INTEGERS
SUMMABLE = NUMBER | {DType.bool}
F32, I64 = frozenset({DType.f32}), frozenset({DType.i64})


def require_branch(what: str, dtype: DType, allowed: Collection[DType]) -> None:
    """Refuse a dtype for which an operation is not defined.

    Raises
    ------
    InvalidDType
        If it is none of the allowed ones.

    Notes
    -----
    Clauses: POLICY-BRANCH-1
    """
    if dtype not in allowed:
        names = "blocks" if allowed == BLOCKS else ", ".join(sorted((d.name for d in allowed), key=_by_kind))
        raise InvalidDType(f"{what} takes {names}; got {dtype!r}", clause="POLICY-BRANCH-1")


def _by_kind(name: str) -> tuple[bool, str]:
    return DType[name] not in FLOATS, name


def require_one_dtype(what: str, a: DType, b: DType) -> None:
    """Refuse two operands of two dtypes.

    Raises
    ------
    DTypeMismatch
        If they are.

    Notes
    -----
    Clauses: POLICY-MIXED-1
    """
    if a is not b:
        raise DTypeMismatch(
            f"{what} takes operands of one dtype, got {a.name} and {b.name}; to(ctx, dtype) makes one of the other",
            clause="POLICY-MIXED-1",
        )


# -- the context


def driving(ctx: object) -> AbstractContextManager[None]:
    """Return the block in which the calling thread drives a context.

    Raises
    ------
    DTypeMismatch
        If it is none.

    Notes
    -----
    Clauses: FACADE-CTX-1
    """
    if not is_a(ctx, ExecContext):
        raise DTypeMismatch(f"ctx must be an ExecContext, got {shown(ctx)}", clause="FACADE-CTX-1")
    return ctx.rt.driving()


def operation(
    method: Callable[Concatenate[Self, ExecContext, Parameters], Result],
) -> Callable[Concatenate[Self, ExecContext, Parameters], Result]:
    """Return a method of a tensor, or of a type, that drives the context it is given.

    Notes
    -----
    Clauses: FACADE-CTX-1, FACADE-TYPE-2
    """

    @functools.wraps(method)
    def call(self: Self, ctx: ExecContext, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        with driving(ctx):
            if isinstance(self, Value):
                self.live()
            elif isinstance(self, Kind) and not self.is_leaf():
                raise DTypeMismatch(
                    f"{method.__name__} is of a type such as Tensor('d'), got {self!r}", clause="FACADE-TYPE-2"
                )
            return method(self, ctx, *args, **kwargs)

    # the context may be given by name, which Concatenate does not say
    return cast("Callable[Concatenate[Self, ExecContext, Parameters], Result]", call)


# -- tensors


def tensor(name: str, value: object, clause: str = "FACADE-CTX-1") -> Value:
    """Return an argument that must be a tensor.

    Raises
    ------
    UseAfterDeinit, UseAfterScope
        If it has ended.
    DTypeMismatch
        If it is no tensor.

    Notes
    -----
    Clauses: FACADE-CTX-1
    """
    if not is_a(value, Value):
        hint = "; constant(ctx, raw) makes a tensor of it" if is_a(value, RawTensor) else ""
        raise DTypeMismatch(f"{name} must be a tensor, got {shown(value)}{hint}", clause=clause)
    value.live()
    return value


# -- axes


def axis_of(x: Value, tag: object) -> int:
    """Return the place of an axis.

    Raises
    ------
    InvalidTag
        If the tensor has no such tag.

    Notes
    -----
    Clauses: FACADE-AXIS-1
    """
    found: Tag | None = str.__str__(tag) if is_a(tag, str) else whole_or_none(tag)
    if found not in x.axis_tags:
        raise InvalidTag(f"an axis of {type(x)!r} is one of {x.axis_tags}, got {shown(tag)}", clause="FACADE-AXIS-1")
    return x.axis_tags.index(found)


def axes_of(x: Value, tags: object) -> tuple[int, ...]:
    """Return the places of several axes, in the order in which they are given.

    Raises
    ------
    InvalidTag
        If it is no tuple or list of the tensor's tags, or one stands twice.

    Notes
    -----
    Clauses: FACADE-AXIS-1
    """
    if not isinstance(tags, tuple | list):
        raise InvalidTag(f"axes are a tuple or list of tags, got {shown(tags)}", clause="FACADE-AXIS-1")
    found = tuple(axis_of(x, tag) for tag in tags)
    if len(set(found)) < len(found):
        raise InvalidTag(f"an axis stands once, got {tuple(x.axis_tags[i] for i in found)}", clause="FACADE-AXIS-1")
    return found


def tags_argument(tags: object) -> Tags:
    """Return names for the axes of a result; the type that is made of them looks whether one stands twice.

    Raises
    ------
    InvalidTag
        If they are no tuple or list of names.

    Notes
    -----
    Clauses: FACADE-TYPE-2
    """
    if not isinstance(tags, tuple | list):
        raise InvalidTag(f"tags are a tuple or list of str, got {shown(tags)}", clause="FACADE-TYPE-2")
    return tuple(tag_of(tag) for tag in tags)


# -- shapes


def tagged_shape(shape: object, kind: Kind | None, clause: str) -> tuple[int, ...]:
    """Return the sizes of a view, as many as there are new tags.

    Raises
    ------
    InvalidTag
        If there are more tags or fewer.
    InvalidInteger, InvalidShape, Overflow
        As :func:`shape_of`.

    Notes
    -----
    Clauses: FACADE-VIEW-1, FACADE-VIEW-3
    """
    given = listed("shape", shape, clause)
    if kind is not None and len(given) != kind.rank:
        raise InvalidTag(f"{len(given)} sizes need as many tags, got {kind.axis_tags}", clause=clause)
    sizes = shape_of(given, None, clause)
    if sizes:
        counted("shape", sizes, clause)
    return sizes


def shape_of(shape: object, rank: int | None, clause: str, name: str = "shape") -> tuple[int, ...]:
    """Return sizes: as many as there are axes, if that is known.

    Raises
    ------
    InvalidInteger
        If it is no sequence of integers.
    InvalidShape
        If there is another number of them, or something negative; a zero is found where elements are counted.

    Notes
    -----
    Clauses: FACADE-NEW-1, SHAPE-RULE-1
    """
    given = listed(name, shape, clause)
    if rank is not None and len(given) != rank:
        raise InvalidShape(f"{name} must have {rank} sizes, got {len(given)}", clause=clause)
    return entries_of(name, given, clause)


def shape_of_new(kind: type[Value], shape: object, clause: str) -> tuple[int, ...]:
    """Return the raw shape of a new tensor of a kind, whose storage elements have been counted.

    Raises
    ------
    InvalidInteger, InvalidShape, Overflow
        If it is none.

    Notes
    -----
    Clauses: FACADE-NEW-1, SHAPE-COUNT-2
    """
    sizes = shape_of(shape, kind.rank, clause) or (1,)
    storage_element_count(kind.dtype, sizes)
    return sizes
