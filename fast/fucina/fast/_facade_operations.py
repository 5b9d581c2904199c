"""Operations element by element."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from fucina.fast import _formulas as formulas
from fucina.fast import quant, rng
from fucina.fast._arguments import double, known_dtype, u64
from fucina.fast._context_core import contexts
from fucina.fast._element_buffers import factor_of
from fucina.fast._facade_core import (
    FLOATS,
    INTEGERS,
    PLAIN,
    TRACKED,
    checked_count,
    fresh,
    on_context,
    operand,
    require_dtype,
    result,
    tracks,
    widened,
)
from fucina.fast._facade_types import TensorType, kind_of
from fucina.fast._facade_views import Views
from fucina.fast._objects import handles
from fucina.fast._shown import tuple_shown
from fucina.fast.autograd import Node
from fucina.spec.errors import (
    ActiveExecScopeUnsupported,
    DivisionByZero,
    DTypeMismatch,
    GradientsTracked,
    InvalidDType,
    InvalidShape,
    InvalidTag,
    ShapeMismatch,
)
from fucina.spec.runtime import MAX_RANK
from fucina.spec.types import DType

if TYPE_CHECKING:
    from types import TracebackType

    from fucina.fast.facade import Tensor
    from fucina.fast.tensor import RawTensor

__all__ = ["Operations", "require_same_dtype"]

_ADD, _SUB, _MUL, _DIV = range(4)
_NAMES = ("add", "sub", "mul", "div")
_FORMULAS = (formulas.ADD, formulas.SUB, formulas.MUL, formulas.DIV)
_NUMBERS = FLOATS | INTEGERS
_F32 = frozenset({DType.f32})

Places = tuple[int | None, ...]


class Operations(Views):
    """What a tensor does element by element; ``add sub mul div scale`` of plain arguments are the C type's own."""

    __slots__ = ()

    # -- with another tensor; C comes here with arguments that are not plain

    @on_context
    def _add(self, ctx: Any, other: Any) -> Tensor:
        return _binary(cast("Tensor", self), ctx, _ADD, other)

    @on_context
    def _sub(self, ctx: Any, other: Any) -> Tensor:
        return _binary(cast("Tensor", self), ctx, _SUB, other)

    @on_context
    def _mul(self, ctx: Any, other: Any) -> Tensor:
        return _binary(cast("Tensor", self), ctx, _MUL, other)

    @on_context
    def _div(self, ctx: Any, other: Any) -> Tensor:
        return _binary(cast("Tensor", self), ctx, _DIV, other)

    # -- with a number

    @on_context
    def _scale(self, ctx: Any, number: Any) -> Tensor:
        """Return the tensor times a number.

        Raises
        ------
        InvalidDType
            Not of f16, bf16, f32 or f64.
        DTypeMismatch, OutOfMemory
            No number; there is no memory.

        Clauses: POLICY-SCALAR-1, AUTOGRAD-VJP-1
        """
        require_dtype("scale", self.dtype, FLOATS)
        factor = factor_of(number)
        checked_count(self._raw_shape, "POLICY-SCALAR-1")
        with fresh(ctx, self.dtype, self._raw_shape) as raw:
            contexts.scale(self, factor, raw, False)
            return self._viewed(ctx, type(self), raw, formulas.SCALE, factor)

    @on_context
    def _add_scalar(self, ctx: Any, number: float) -> Tensor:
        """Return the tensor plus a number.

        Clauses: POLICY-SCALAR-1, AUTOGRAD-VJP-1
        """
        require_dtype("add_scalar", self.dtype, FLOATS)
        term = factor_of(number)
        checked_count(self._raw_shape, "POLICY-SCALAR-1")
        with fresh(ctx, self.dtype, self._raw_shape) as raw:
            contexts.add_scalar(self, term, raw)
            return self._viewed(ctx, type(self), raw, formulas.ADD_SCALAR)

    # -- conversion and dropout

    @on_context
    def _to(self, ctx: Any, dtype: DType) -> Tensor:
        """Return a new tensor with every element converted to another dtype.

        Clauses: POLICY-TO-1, AUTOGRAD-VJP-3
        """
        target = known_dtype(dtype)
        if target not in PLAIN or (self.dtype not in PLAIN and target is not DType.f32):
            raise InvalidDType(
                f"to takes scalar dtypes to scalar dtypes, and blocks to f32, got {self.dtype!r} to {target!r}",
                clause="POLICY-TO-1",
            )
        shape = checked_count(self._raw_shape, "POLICY-TO-1")
        with fresh(ctx, target, shape) as raw:
            if self.dtype in PLAIN:
                contexts.convert(self, raw)
            else:
                quant.dequantize(self.dtype, self.data_const(), out=raw.data())
            node = None
            if tracks(ctx, target, self._node):
                node = Node(shape, (self._node,), (), formulas.TO, ())
            made = kind_of(self._names, self.rank, target)
            if self.dtype in PLAIN:
                handles.facade_conversion(type(self), target, made, target.index)
            return result(ctx, made, raw, node)

    @on_context
    def dropout(self, ctx: Any, p: float, seed: int) -> Tensor:
        """Return the tensor with elements dropped, and the others scaled.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        p : float
            The probability with which an element is dropped.
        seed : int
            Of the mask.

        Raises
        ------
        InvalidDType
            Not of f16, bf16 or f32.
        DTypeMismatch, InvalidInteger, Overflow
            No number; no seed.
        InvalidBounds
            ``p`` outside [0, 1).
        OutOfMemory
            There is no memory.

        Clauses: POLICY-DROPOUT-1, AUTOGRAD-VJP-4
        """
        require_dtype("dropout", self.dtype, TRACKED)
        chance, key = double("p", p), u64("seed", seed)
        shape = checked_count(self._raw_shape, "POLICY-DROPOUT-1")
        rng.dropout_scale(chance)
        with fresh(ctx, self.dtype, shape) as raw:
            contexts.dropout(self, key, chance, raw)
            return self._viewed(ctx, type(self), raw, formulas.DROPOUT, key, chance)

    # -- consuming

    @on_context
    def take_add_no_grad(self, ctx: Any, other: Any) -> Tensor:
        """Return the sum, in this tensor's storage where that may be; this tensor is consumed.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        other : Tensor
            With tags that this one has, and sizes that are equal or 1.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch, InvalidDType
            No tensor; not both of f32.
        InvalidTag, ShapeMismatch
            The result would not have this tensor's type and shape.
        ActiveExecScopeUnsupported, GradientsTracked
            A scope owns this tensor; one of the two tracks gradients.
        OutOfMemory
            There is no memory.  On each error, nothing is consumed.

        Clauses: POLICY-TAKE-1
        """
        clause = "POLICY-TAKE-1"
        found = operand("other", other)
        require_dtype("take_add_no_grad", self.dtype, _F32)
        require_same_dtype(self, found)
        kind, _, its = _aligned(cast(TensorType, type(self)), cast(TensorType, type(found)))
        if kind is not type(self):
            raise InvalidTag(f"other must have tags of {self.axis_tags}, got {found.axis_tags}", clause=clause)
        shape = self._raw_shape
        with _Along(found, its) as (term, given):
            if any(n not in (1, m) for m, n in zip(shape, given, strict=True)):
                raise ShapeMismatch(
                    f"other must have sizes that are equal to those of {tuple_shown(self.shape)} or 1, got "
                    f"{tuple_shown(found.shape)}",
                    clause=clause,
                )
            self._require_takable(found, clause)
            checked_count(shape, clause)
            return _taken(self, ctx, lambda out, at: contexts.pointwise(_ADD, self, term, out, at))

    @on_context
    def take_scale_no_grad(self, ctx: Any, number: float) -> Tensor:
        """Return the product with a number, in this tensor's storage where that may be; this tensor is consumed.

        Raises
        ------
        InvalidDType, DTypeMismatch
            Not of f32; no number.
        ActiveExecScopeUnsupported, GradientsTracked
            A scope owns this tensor; it tracks gradients.
        OutOfMemory
            There is no memory.  On each error, nothing is consumed.

        Clauses: POLICY-TAKE-1
        """
        require_dtype("take_scale_no_grad", self.dtype, _F32)
        factor = factor_of(number)
        checked_count(self._raw_shape, "POLICY-TAKE-1")
        self._require_takable(cast("Tensor", self), "POLICY-TAKE-1")
        return _taken(self, ctx, lambda out, at: contexts.scale(self, factor, out, at))

    def _require_takable(self, other: Tensor, clause: str) -> None:
        if self.scope_owned:
            raise ActiveExecScopeUnsupported(f"a scope owns {self!r}, so it cannot be consumed", clause=clause)
        for taking in (self, other):
            if taking._node is not None:
                raise GradientsTracked(f"{taking!r} tracks gradients, consuming has none", clause=clause)


def _taken(x: Operations, ctx: Any, compute: Any) -> Tensor:
    """Return what an operation that consumes a tensor makes; on error, nothing is consumed.

    Clauses: POLICY-TAKE-1, TENSOR-TAKE-1
    """
    scopes = ctx._rt.scopes
    open_scope = bool(scopes.marks)
    if open_scope:
        scopes.reserve()
    try:
        if x._can_take_in_place():
            compute(x, True)
            raw = x._consumed()
        else:
            with fresh(ctx, x.dtype, x._raw_shape) as raw:
                compute(raw, False)
            x._deinit_replaced()
    except BaseException:
        if open_scope:
            scopes.give_back()
        raise
    return result(ctx, type(x), raw, reserved=True)


def require_same_dtype(a: Any, b: Any) -> None:
    """Refuse two operands of different dtypes.

    Clauses: POLICY-MIXED-1
    """
    if a.dtype is not b.dtype:
        raise DTypeMismatch(
            f"both operands must be of one dtype, got {a.dtype.name} and {b.dtype.name} (to makes one of the other)",
            clause="POLICY-MIXED-1",
        )


@lru_cache(4096)
def _aligned(kind: TensorType, its: TensorType) -> tuple[type[Tensor], Places, Places]:
    """Return the type of what two tensors of one dtype make, and where in it the axes of both lie.

    Raises
    ------
    InvalidTag, InvalidShape
        One has tags, and the other numbers; more than 8 axes.

    Clauses: POLICY-TAGS-1
    """
    clause, dtype = "POLICY-TAGS-1", kind.dtype
    if kind.rank == 0:
        return kind_of(its._names, its.rank, dtype), (None,) * its.rank, tuple(range(its.rank))
    if its.rank == 0:
        return kind_of(kind._names, kind.rank, dtype), tuple(range(kind.rank)), (None,) * kind.rank
    if kind._names is None and its._names is None:
        rank = max(kind.rank, its.rank)
        left, right = (
            tuple(at - (rank - each.rank) if at >= rank - each.rank else None for at in range(rank))
            for each in (kind, its)
        )
        return kind_of(None, rank, dtype), left, right
    if kind._names is None or its._names is None:
        raise InvalidTag(f"a tensor with tags does not go with one without, got {kind!r} and {its!r}", clause=clause)
    names = (*kind._names, *(name for name in its._names if name not in kind._names))
    if len(names) > MAX_RANK:
        raise InvalidShape(f"the result would have {len(names)} axes, more than {MAX_RANK}", clause=clause)
    left, right = (
        tuple(each._names.index(name) if each._names and name in each._names else None for name in names)
        for each in (kind, its)
    )
    return kind_of(names, len(names), dtype), left, right


def _binary(x: Tensor, ctx: Any, operation: int, other: Any) -> Tensor:
    """Return a sum, difference, product or quotient.

    Raises
    ------
    UseAfterDeinit, UseAfterScope, DTypeMismatch, InvalidDType
        No two tensors of one dtype that has the operation.
    InvalidTag, InvalidShape, ShapeMismatch, Overflow
        They do not go together.
    DivisionByZero, OutOfMemory
        An integer would be divided by 0; there is no memory.

    Clauses: POLICY-TAGS-1, POLICY-ARITH-1, POLICY-MIXED-1, AUTOGRAD-VJP-1
    """
    clause = "POLICY-TAGS-1"
    y = operand("other", other)
    dtype = x.dtype
    require_dtype(_NAMES[operation], dtype, _NUMBERS)
    require_same_dtype(x, y)
    kind, left, right = _aligned(cast(TensorType, type(x)), cast(TensorType, type(y)))
    with _Along(x, left) as (a, a_shape), _Along(y, right) as (b, b_shape):
        shape = _together(a_shape, b_shape, clause)
        if operation == _DIV and dtype in INTEGERS and contexts.has_zero(b):
            raise DivisionByZero(f"other must have no 0 among its integers, got {y!r}", clause="POLICY-ARITH-1")
        if left:
            handles.facade_alignment(type(x), type(y), kind, _in_bytes(left), _in_bytes(right))
        return _computed(ctx, operation, kind, shape, (x, a, left), (y, b, right))


def _in_bytes(places: Places) -> bytes:
    return bytes(255 if at is None else at for at in places)


def _computed(
    ctx: Any,
    operation: int,
    kind: type[Tensor],
    shape: tuple[int, ...],
    left: tuple[Tensor, Any, Places],
    right: tuple[Tensor, Any, Places],
) -> Tensor:
    (x, a, _), (y, b, _) = left, right
    dtype = x.dtype
    with fresh(ctx, dtype, shape) as raw:
        contexts.pointwise(operation, a, b, raw, False)
        node = None
        if tracks(ctx, dtype, x._node, y._node):
            node = _noted(operation, shape, left, right)
        return result(ctx, kind, raw, node)


class _Along:
    """A tensor with its axes at the places of the result's, and its shape there, for the length of a block."""

    __slots__ = ("given", "shape", "view")

    def __init__(self, x: Tensor, places: Places) -> None:
        self.given: Any = x
        self.view: Any = x
        self.shape = x._raw_shape
        if places != tuple(range(x.rank)):
            self.shape, strides = widened(x, places)
            self.view = x._view(self.shape, strides, x._raw_offset)

    def __enter__(self) -> tuple[Any, tuple[int, ...]]:
        return self.view, self.shape

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.view is not self.given:
            self.view.deinit()


def _together(a: tuple[int, ...], b: tuple[int, ...], clause: str) -> tuple[int, ...]:
    if a == b:
        return checked_count(a, clause)
    if any(m != n and m != 1 and n != 1 for m, n in zip(a, b, strict=True)):
        raise ShapeMismatch(
            f"sizes along a tag must be equal or 1, got {tuple_shown(a)} and {tuple_shown(b)} along the result's axes",
            clause=clause,
        )
    return checked_count(tuple(m if n == 1 else n for m, n in zip(a, b, strict=True)), clause)


def _noted(
    operation: int, shape: tuple[int, ...], left: tuple[Tensor, Any, Places], right: tuple[Tensor, Any, Places]
) -> Any:
    """Return the node of a sum, difference, product or quotient.

    Clauses: AUTOGRAD-TRACK-1, AUTOGRAD-VJP-1
    """
    (x, a, x_places), (y, b, y_places) = left, right
    places = (_place(x, x_places, shape), _place(y, y_places, shape))
    saved: tuple[Any, ...] = ()
    if operation >= _MUL:
        for_left, for_right = x._node is not None, y._node is not None
        saved = (
            _kept(a) if for_right else None,
            _kept(b) if for_left or (operation == _DIV and for_right) else None,
        )
    constants = () if places == (None, None) else places
    return Node(shape, (x._node, y._node), saved, _FORMULAS[operation], constants)


def _kept(operand_along: Any) -> RawTensor:
    """Return a raw view with a reference of its own."""
    view: RawTensor = (
        operand_along.clone_view() if hasattr(operand_along, "clone_view") else operand_along._clone_view()
    )
    return view


def _place(x: Tensor, places: Places, shape: tuple[int, ...]) -> Any:
    """Return where an operand's axes lie in a result, as a formula wants it; None where they are the result's."""
    have = x._raw_shape
    if not x.rank:
        return None if not places else (have, (-1,))
    axes = tuple(places.index(at) for at in range(x.rank))
    return None if have == shape and axes == tuple(range(len(shape))) else (have, axes)
