"""Leaves and their gradients (chapter ``autograd``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from fucina.fast._context_core import contexts
from fucina.fast._facade_core import TRACKED, constructor, handed, on_context, require_dtype
from fucina.fast._facade_filling import Filling
from fucina.fast._facade_making import consumable, sliced
from fucina.fast._facade_types import kind_of
from fucina.fast.autograd import Leaf, backward
from fucina.spec.errors import GradientsNotTracked, InvalidShape
from fucina.spec.types import DType

if TYPE_CHECKING:
    from fucina.fast._facade_types import TensorType
    from fucina.fast.facade import Tensor
    from fucina.fast.tensor import RawTensor

__all__ = ["Tracking"]


class Tracking(Filling):
    """The members of a tensor that are about gradients.

    Clauses: AUTOGRAD-LEAF-1
    """

    __slots__ = ()

    @classmethod
    @constructor
    def variable(cls, ctx: Any, raw: Any) -> tuple[RawTensor, Any]:
        """Return a leaf that takes over the reference of a raw tensor, which is consumed; on error it is as before.

        Raises
        ------
        DTypeMismatch, UseAfterDeinit, UseAfterScope, InvalidDType
            No raw tensor of the type's dtype; not f16, bf16 or f32.
        InvalidShape, ActiveExecScopeUnsupported, UnsupportedView
            It cannot be consumed.

        Clauses: FACADE-NEW-1, AUTOGRAD-LEAF-1
        """
        found = consumable(cast("TensorType", cls), raw, "variable", TRACKED)
        return found, Leaf(tuple(found.shape), cls.dtype)

    @classmethod
    @constructor
    def variable_from_slice(cls, ctx: Any, shape: Any, values: Any) -> tuple[RawTensor, Any]:
        """Return a leaf that holds a copy of the values on pooled storage; errors as of :meth:`from_slice`.

        Clauses: FACADE-NEW-2, AUTOGRAD-LEAF-1
        """
        require_dtype("variable_from_slice", cls.dtype, TRACKED)
        found = sliced(ctx, cast("TensorType", cls), shape, values)
        return found, Leaf(tuple(found.shape), cls.dtype)

    @on_context
    def backward(self, ctx: Any) -> None:
        """Give every leaf that this tensor of one element depends on its gradient.

        Raises
        ------
        InvalidDType
            Not of f16, bf16 or f32.
        InvalidShape, GradientsNotTracked
            More elements; no gradients are tracked.
        UseAfterDeinit, SavedValueChanged, OutOfMemory
            Something that is needed is not there any more, or was written to; there is no memory.  No gradient has
            changed then.

        Clauses: AUTOGRAD-BACK-1, AUTOGRAD-BACK-2
        """
        node = self._node
        if node is None:  # else it is of such a dtype
            require_dtype("backward", self.dtype, TRACKED)
        if self._raw_shape != (1,) and any(size != 1 for size in self._raw_shape):
            raise InvalidShape(f"backward starts at a tensor of one element, got {self!r}", clause="AUTOGRAD-BACK-1")
        if node is None:
            raise GradientsNotTracked(f"{self!r} tracks no gradients", clause="AUTOGRAD-BACK-1")
        backward(ctx, node)

    def _gradient(self, what: str) -> RawTensor | None:
        require_dtype(what, self.dtype, TRACKED)
        node = self._node
        return node.gradient if type(node) is Leaf else None

    @on_context
    def _grad(self, ctx: Any) -> Tensor | None:
        """Return a copy of a leaf's gradient; C comes here with arguments that are not plain.

        Raises
        ------
        InvalidDType
            Not of f16, bf16 or f32.
        OutOfMemory
            There is no memory.

        Clauses: AUTOGRAD-GRAD-1
        """
        gradient = self._gradient("grad")
        if gradient is None:
            return None
        made = ctx._rt.new(DType.f32, gradient.shape)
        contexts.copy(gradient, made)
        return handed(ctx, kind_of(self._names, self.rank, DType.f32), made)

    @on_context
    def grad_view(self, ctx: Any) -> Tensor | None:
        """Return a view of a leaf's gradient, the caller's; None where there is none.

        Raises
        ------
        InvalidDType
            Not of f16, bf16 or f32.

        Clauses: AUTOGRAD-GRAD-1
        """
        gradient = self._gradient("grad_view")
        if gradient is None:
            return None
        return handed(ctx, kind_of(self._names, self.rank, DType.f32), ctx._rt.traced(gradient.clone_view()))

    def zero_grad(self) -> None:
        """Drop a leaf's gradient; other tensors have none.

        Raises
        ------
        InvalidDType
            Not of f16, bf16 or f32.

        Clauses: AUTOGRAD-GRAD-1
        """
        self._check()
        node = self._node
        if type(node) is Leaf:
            node.zero()
        elif node is None:
            require_dtype("zero_grad", self.dtype, TRACKED)
