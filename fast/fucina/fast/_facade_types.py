"""The types of the facade: one for each dtype and tags, made when it is first asked for."""

from __future__ import annotations

import copyreg
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from fucina.fast._arguments import whole
from fucina.fast._shown import integer_shown, shown
from fucina.spec.errors import DTypeMismatch, InvalidDType, InvalidInteger, InvalidShape, InvalidTag
from fucina.spec.runtime import MAX_RANK
from fucina.spec.types import DType

if TYPE_CHECKING:
    from fucina.fast.facade import Tensor

__all__ = ["Names", "Tag", "TensorType", "axes_of", "axis_of", "checked_names", "kind_of", "names_of", "root"]

Tag: TypeAlias = str | int
Names: TypeAlias = tuple[str, ...] | None
"""The names of axes; None where they have numbers.  Of no axes it is ()."""

_CLAUSE, _AXIS = "FACADE-TYPE-2", "FACADE-AXIS-1"


class TensorType(type):
    """The type of ``Tensor`` and of its types: calling ``Tensor`` makes, or finds, one.

    Clauses: FACADE-TYPE-1, FACADE-TYPE-2
    """

    dtype: DType
    rank: int
    axis_tags: tuple[Tag, ...]
    _names: Names

    def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any], *, made: bool = False) -> TensorType:
        """Return a type, of those that are made here: nothing else derives from ``Tensor``."""
        if not made:
            raise DTypeMismatch(
                f'a type of tensors is made from tags, such as Tensor("batch", "d"), got class {name}', clause=_CLAUSE
            )
        return super().__new__(cls, name, bases, members)

    def __init__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any], *, made: bool = False) -> None:
        super().__init__(name, bases, members)

    def __call__(cls, *spec: Tag, dtype: DType = DType.f32, **others: Any) -> type[Tensor]:
        """Return the type of the tensors of a dtype whose axes have these tags, or are so many.

        Parameters
        ----------
        *spec : str, or one int
            The tags, or the rank of a type without names.
        dtype : DType
            Any of the 40.

        Raises
        ------
        DTypeMismatch
            A type was called, and not ``Tensor``.
        InvalidTag, InvalidShape, InvalidDType
            No specification.

        Clauses: FACADE-TYPE-1, FACADE-TYPE-2
        """
        if cls.is_made():
            raise DTypeMismatch(f"a {cls!r} is made by its constructors, such as zeros(ctx, shape)", clause=_CLAUSE)
        if others:
            raise InvalidTag(
                f"a specification is tags, or a rank, and a dtype, got {', '.join(others)}", clause=_CLAUSE
            )
        if len(spec) == 1 and not isinstance(spec[0], str):
            return kind_of(None, _rank_of(spec[0]), _dtype_of(dtype))
        names = checked_names(spec)
        return kind_of(names, len(names), _dtype_of(dtype))

    def is_made(cls) -> bool:
        """Return whether it is the type of tensors of a dtype, and not ``Tensor`` itself."""
        return "axis_tags" in vars(cls)

    def __setattr__(cls, name: str, value: object) -> None:
        if cls.is_made():
            raise AttributeError(f"{cls!r} does not change")
        super().__setattr__(name, value)

    def __delattr__(cls, name: str) -> None:
        raise AttributeError(f"{cls!r} does not change")

    def __repr__(cls) -> str:
        return cls.__name__ if cls.is_made() else super().__repr__()


def _dtype_of(dtype: Any) -> DType:
    if type(dtype) is not DType:
        raise InvalidDType(f"dtype must be a DType, got {shown(dtype)}", clause=_CLAUSE)
    return dtype


def _rank_of(value: Any) -> int:
    try:
        rank = whole("rank", value, _CLAUSE)
    except InvalidInteger:
        raise InvalidTag(f"tags must be strings, or one integer the rank, got {shown(value)}", clause=_CLAUSE) from None
    if not 0 <= rank <= MAX_RANK:
        raise InvalidShape(f"rank must lie in [0, {MAX_RANK}], got {integer_shown(rank)}", clause=_CLAUSE)
    return rank


def _listed(name: str, value: Any, clause: str) -> tuple[Any, ...]:
    """Return an argument of several tags, which are a tuple or a list.

    Raises
    ------
    InvalidTag
        Anything else.

    Clauses: FACADE-AXIS-1, FACADE-TYPE-2
    """
    if not isinstance(value, tuple | list):
        raise InvalidTag(f"{name} must be a tuple or list of tags, got {shown(value)}", clause=clause)
    return tuple(value)


def checked_names(tags: tuple[Any, ...]) -> tuple[str, ...]:
    """Return names for axes: identifiers, none of them twice.

    Raises
    ------
    InvalidTag, InvalidShape
        They are not; more than 8.

    Clauses: FACADE-TYPE-2
    """
    for tag in tags:
        if not isinstance(tag, str) or not str.isidentifier(tag):
            raise InvalidTag(f"a tag must be a str that is an identifier, got {shown(tag)}", clause=_CLAUSE)
    names = tuple(str.__str__(tag) for tag in tags)
    for at, name in enumerate(names):
        if name in names[:at]:
            raise InvalidTag(f"no tag may stand twice, got {name!r} more than once", clause=_CLAUSE)
    if len(names) > MAX_RANK:
        raise InvalidShape(f"there are at most {MAX_RANK} axes, got {len(names)} tags", clause=_CLAUSE)
    return names


def names_of(tags: Any) -> tuple[str, ...]:
    """Return the names that an argument ``tags`` gives to axes.

    Raises
    ------
    InvalidTag, InvalidShape
        They are none.

    Clauses: FACADE-TYPE-2
    """
    return checked_names(_listed("tags", tags, _CLAUSE))


root: list[TensorType] = []
"""``Tensor``, once it is there: what the types derive from."""


@cache
def kind_of(names: Names, rank: int, dtype: DType) -> type[Tensor]:
    """Return the type of tensors of so many axes, with names or numbers: always the same one.

    Clauses: FACADE-TYPE-1
    """
    if rank == 0 and names is None:
        return kind_of((), 0, dtype)
    tags: tuple[Tag, ...] = tuple(range(rank)) if names is None else names
    given = [str(rank)] if names is None else [f'"{name}"' for name in names]
    shown_type = f"Tensor({', '.join([*given, *([] if dtype is DType.f32 else [f'dtype=DType.{dtype.name}'])])})"
    members = {
        "__slots__": (),
        "__module__": root[0].__module__,
        "dtype": dtype,
        "rank": rank,
        "axis_tags": tags,
        "_names": names,
    }
    return cast("type[Tensor]", TensorType(shown_type, (root[0],), members, made=True))


def axis_of(kind: TensorType, axis: Any) -> int:
    """Return the place of an axis that is given by its tag.

    Raises
    ------
    InvalidTag
        No axis has this tag.

    Clauses: FACADE-AXIS-1
    """
    tag: Any = None
    if issubclass(type(axis), str):
        tag = str.__str__(axis)  # a subclass may have an equality of its own
    elif not kind._names:
        with suppress(InvalidInteger):
            tag = whole("axis", axis, _AXIS)
    if tag in kind.axis_tags:
        return kind.axis_tags.index(tag)
    given = repr(axis) if type(axis) is str and len(axis) <= 40 else shown(axis)
    raise InvalidTag(f"axis must be one of {kind.axis_tags}, the tags of {kind!r}, got {given}", clause=_AXIS)


def axes_of(kind: TensorType, axes: Any) -> tuple[int, ...]:
    """Return the places of several axes, none of them twice.

    Raises
    ------
    InvalidTag
        No tuple or list of tags of axes, or one stands twice.

    Clauses: FACADE-AXIS-1
    """
    places = tuple(axis_of(kind, axis) for axis in _listed("axes", axes, _AXIS))
    if len(set(places)) != len(places):
        raise InvalidTag(f"no axis may stand twice, got {axes!r}", clause=_AXIS)
    return places


def _again(kind: TensorType) -> Any:
    """Return how a type is pickled.

    Clauses: FACADE-COPY-1
    """
    if not kind.is_made():
        return kind.__name__
    return specified, (kind._names, kind.rank, kind.dtype)


def specified(names: Any, rank: Any, dtype: Any) -> type[Tensor]:
    """Return the type of a specification; pickled types come back through this."""
    kind = root[0](*((rank,) if names is None else names), dtype=dtype)
    return kind


copyreg.pickle(TensorType, _again)
