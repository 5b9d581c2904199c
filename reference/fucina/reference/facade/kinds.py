"""Kinds: the types of tensors, each made from a dtype and tags, and each made once.

A *family* is the class that users call, ``Tensor``; its *leaves* are the types that have a dtype and tags.  The tags of
a type without names are the numbers of its axes.
"""

from __future__ import annotations

import copyreg
from typing import Any, TypeAlias

from fucina.reference.arguments import is_a, shown, whole_or_none
from fucina.spec.errors import DTypeMismatch, InvalidDType, InvalidShape, InvalidTag
from fucina.spec.runtime import MAX_RANK
from fucina.spec.types import DType

__all__ = ["Kind", "Tag", "Tags", "tag_of"]

Tag: TypeAlias = str | int
Tags: TypeAlias = tuple[Tag, ...]

CLAUSE = "FACADE-TYPE-2"


class Kind(type):
    """The type of the types of tensors.

    Notes
    -----
    Clauses: FACADE-TYPE-1, FACADE-TYPE-2
    """

    dtype: DType
    rank: int
    axis_tags: Tags
    leaves: dict[tuple[Tags, DType], Kind]

    def __call__(cls, *spec: Any, dtype: Any = DType.f32, **values: Any) -> Any:
        """Return the type of a specification.

        Parameters
        ----------
        *spec : str or int
            Tags, or one rank; nothing, for scalars.
        dtype : DType
            Of the elements.

        Raises
        ------
        InvalidDType
            If it is no dtype.
        InvalidTag
            If a tag is none or stands twice, or the specification is neither tags nor a rank.
        InvalidShape
            If there are more than 8 axes, or fewer than none.
        DTypeMismatch
            If a type is called that has its specification.

        Notes
        -----
        Clauses: FACADE-TYPE-1, FACADE-TYPE-2
        """
        if cls.is_leaf():
            raise DTypeMismatch(f"a {cls!r} is made by its constructors, such as zeros(ctx, shape)", clause=CLAUSE)
        if values:
            raise InvalidTag(f"a specification is tags, or a rank, and a dtype; got {', '.join(values)}", clause=CLAUSE)
        if type(dtype) is not DType:
            raise InvalidDType(f"dtype must be a DType, got {shown(dtype)}", clause=CLAUSE)
        return cls.leaf(_tags_of(spec), dtype)

    def is_leaf(cls) -> bool:
        """Whether it is a type of tensors, and not what makes them."""
        return hasattr(cls, "dtype")

    def leaf(cls, tags: Tags, dtype: DType) -> Any:
        """Return the type with checked tags; of a leaf, a leaf of its family."""
        family: Kind = cls.mro()[1] if cls.is_leaf() else cls  # type: ignore[assignment]  # a leaf's base
        known = family.leaves.get((tags, dtype))
        if known is None:
            fields = {"dtype": dtype, "rank": len(tags), "axis_tags": tags, "__module__": family.__module__}
            made = Kind(_spelled(family.__name__, tags, dtype), (family,), fields)
            known = family.leaves.setdefault((tags, dtype), made)
        return known

    def with_tags(cls, tags: Tags, dtype: DType | None = None) -> Any:
        """Return the leaf of the same family for a result; its numbers, if it has some, are made anew.

        Raises
        ------
        InvalidTag, InvalidShape
            If the tags are not those of a type.

        Notes
        -----
        Clauses: FACADE-AXIS-1, FACADE-TYPE-2
        """
        numbered = any(type(tag) is int for tag in tags)
        if numbered:
            _require_rank(len(tags))
        found = tuple(range(len(tags))) if numbered else _distinct(tags)
        return cls.leaf(found, cls.dtype if dtype is None else dtype)

    @property
    def is_named(cls) -> bool:
        """Whether its axes have names; those of a scalar, which has none, have not."""
        return cls.rank > 0 and type(cls.axis_tags[0]) is str

    def __repr__(cls) -> str:
        return cls.__name__ if isinstance(cls, Kind) and cls.is_leaf() else super().__repr__()


def _spelled(family: str, tags: Tags, dtype: DType) -> str:
    """Return the specification as it is written; equal ones are written alike.

    Notes
    -----
    Clauses: FACADE-TYPE-1
    """
    numbered = bool(tags) and type(tags[0]) is int
    parts = [str(len(tags))] if numbered else [f'"{tag}"' for tag in tags]
    return f"{family}({', '.join([*parts, *([] if dtype is DType.f32 else [f'dtype={dtype}'])])})"


def _tags_of(spec: tuple[Any, ...]) -> Tags:
    rank = whole_or_none(spec[0]) if len(spec) == 1 and not is_a(spec[0], str) else None
    if rank is not None:
        _require_rank(rank)
        return tuple(range(rank))
    return _distinct(spec)


def _require_rank(rank: int) -> None:
    if not 0 <= rank <= MAX_RANK:
        raise InvalidShape(f"there may be 0 to {MAX_RANK} axes, got {shown(rank)}", clause=CLAUSE)


def _distinct(tags: tuple[Any, ...]) -> tuple[str, ...]:
    """Return tags that are identifiers and all different.

    Notes
    -----
    Clauses: FACADE-TYPE-2
    """
    found = tuple(tag_of(tag) for tag in tags)
    for i, tag in enumerate(found):
        if tag in found[:i]:
            raise InvalidTag(f"a tag stands once, got {shown(tag)} twice", clause=CLAUSE)
    _require_rank(len(found))
    return found


def tag_of(value: object, clause: str = CLAUSE) -> str:
    """Return a name of an axis.

    Raises
    ------
    InvalidTag
        If it is none.

    Notes
    -----
    Clauses: FACADE-TYPE-2
    """
    if not is_a(value, str) or not str.isidentifier(value):
        raise InvalidTag(f"a tag must be a str that is an identifier, got {shown(value)}", clause=clause)
    return str.__str__(value)


def _reduce(kind: Kind) -> str | tuple[Any, ...]:
    """Take a type apart for copies and pickles: a family by its name, a leaf by its specification.

    Notes
    -----
    Clauses: FACADE-COPY-1
    """
    return (_leaf_of, (kind.mro()[1], kind.axis_tags, kind.dtype)) if kind.is_leaf() else kind.__qualname__


def _leaf_of(family: Kind, tags: Tags, dtype: DType) -> Any:
    return family.leaf(tags, dtype)


copyreg.pickle(Kind, _reduce)
