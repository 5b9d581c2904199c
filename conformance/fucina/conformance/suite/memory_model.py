"""A small model of storage, pool, scopes, views and raw operations: what must be seen after each step of a program."""

# ruff: noqa: D102 - a step is described by the clauses that govern it

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from fucina.conformance.suite.casts import STORAGE
from fucina.conformance.suite.raw_arithmetic import total
from fucina.spec import DType
from fucina.spec.errors import (
    ActiveExecScopeRequired,
    DivisionByZero,
    DTypeMismatch,
    EmptySelection,
    IndexOutOfBounds,
    InvalidDataLength,
    InvalidDType,
    InvalidShape,
    OverlappingMemory,
    OverRelease,
    ScopeOrder,
    ShapeMismatch,
    UnsupportedView,
    UseAfterDeinit,
    UseAfterScope,
)

__all__ = ["FLOATS", "Model", "content"]

Array = npt.NDArray[Any]

FLOATS = (DType.f32, DType.f64)


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def content(values: Array) -> bytes:
    """Return the elements as bytes; any NaN is the same (NUM-NAN-2)."""
    found = np.array(values)
    if found.dtype.kind == "f":
        found[np.isnan(found)] = np.nan
    return found.tobytes()


class _Shelf(list[int]):
    """A free list: sizes in bytes, ascending, the newest first among equals."""

    def take(self, size: int) -> int:
        for i, found in enumerate(self):
            if found >= size:
                return self.pop(i)
        return size

    def put(self, size: int) -> None:
        self.insert(sum(other < size for other in self), size)


class _Store:
    """A pooled storage."""

    def __init__(self, shelf: _Shelf, size: int, dtype: DType) -> None:
        self.shelf, self.size, self.dtype = shelf, size, dtype
        self.data = np.zeros(size // STORAGE[dtype].itemsize, STORAGE[dtype])
        self.held, self.pins, self.generation = 1, 0, 0
        self.written = 0  # elements from the first on that hold something; the rest is unspecified


class _Tensor:
    """A reference to a storage, and how to read it."""

    def __init__(self, store: _Store, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> None:
        self.store, self.shape, self.strides, self.offset = store, shape, strides, offset
        self.life = "owned"

    @property
    def dtype(self) -> DType:
        return self.store.dtype

    @property
    def contiguous(self) -> bool:
        return self.strides == row_major(self.shape)

    @property
    def values(self) -> Array:
        steps = tuple(step * self.store.data.itemsize for step in self.strides)
        return np.lib.stride_tricks.as_strided(self.store.data[self.offset :], self.shape, steps)

    @property
    def span(self) -> tuple[_Store, int, int]:
        reach = sum((n - 1) * step for n, step in zip(self.shape, self.strides, strict=True))
        return self.store, self.offset, self.offset + reach + 1

    def meets(self, other: _Tensor) -> bool:
        (one, first, end), (two, begin, stop) = self.span, other.span
        return one is two and first < stop and begin < end


class Model:
    """The same steps as on a context; an error is raised where it must be."""

    def __init__(self) -> None:
        self.buffers, self.slabs, self.cap, self.out = _Shelf(), _Shelf(), 1 << 30, 0
        self.tensors: list[_Tensor | None] = []
        self.arrays: list[_Store | None] = []
        self.holds: list[_Store | None] = []
        self.leases: list[int | None] = []
        self.marks: list[tuple[int, int] | None] = []  # number and index; None: closed
        self.open: list[int] = []
        self.entries: list[tuple[_Tensor | None, int]] = []
        self.destroyed: list[int] = []

    # -- pool

    def _new(self, dtype: DType, shape: tuple[int, ...]) -> _Tensor:
        count = math.prod(shape)
        if dtype is DType.f32:
            shelf, size = self.buffers, 4 * (1 << (count - 1).bit_length())
        else:
            shelf, size = self.slabs, -(-count * STORAGE[dtype].itemsize // 4096) * 4096
        self.out += 1
        store = _Store(shelf, shelf.take(size), dtype)
        store.written = count
        return _Tensor(store, shape, row_major(shape), 0)

    def _give_back(self, shelf: _Shelf, size: int) -> None:
        self.out -= 1
        if sum(self.buffers) + sum(self.slabs) + size <= self.cap:
            shelf.put(size)

    def _drop_reference(self, store: _Store, *, pin: bool = False) -> None:
        store.pins -= pin
        store.held -= not pin
        if not store.held and not store.pins:
            self._give_back(store.shelf, store.size)

    def set_cap(self, cap: int) -> None:
        self.cap = cap

    def lease(self, element: str, count: int) -> None:
        size = -(-max(np.dtype(element).itemsize * count, 1) // 4096) * 4096
        self.out += 1
        self.leases.append(self.slabs.take(size))

    def release_lease(self, i: int) -> None:
        size, self.leases[i] = self.leases[i], None
        if size is None:
            raise OverRelease("")
        self._give_back(self.slabs, size)

    # -- handles

    def live(self, i: int) -> _Tensor:
        found = self.tensors[i]
        assert found is not None
        if found.life in ("ended", "replaced"):
            raise UseAfterDeinit("")
        if found.life == "closed":
            raise UseAfterScope("")
        return found

    def _keep(self, made: _Tensor) -> None:
        self.tensors.append(made)

    def make(self, dtype: DType, shape: tuple[int, ...], values: list[int]) -> None:
        made = self._new(dtype, shape)
        made.values[...] = np.resize(np.array(values, STORAGE[dtype]), shape)
        self._keep(made)

    def deinit(self, i: int) -> None:
        found = self.tensors[i]
        assert found is not None
        if found.life == "ended":
            raise UseAfterDeinit("")
        if found.life == "owned":
            found.life = "ended"
            self._drop_reference(found.store)

    def drop(self, i: int) -> None:
        found, self.tensors[i] = self.tensors[i], None
        if found is not None and found.life == "owned":
            self._drop_reference(found.store)

    def hold(self, i: int) -> None:
        store = self.live(i).store
        store.held += 1
        self.holds.append(store)

    def let_go(self, i: int) -> None:
        store, self.holds[i] = self.holds[i], None
        if store is not None:
            self._drop_reference(store)

    def pin(self, i: int, writable: bool) -> None:
        found = self.live(i)
        if not found.contiguous:
            raise UnsupportedView("")
        found.store.generation += writable
        found.store.pins += 1
        self.arrays.append(found.store)

    def unpin(self, i: int) -> None:
        store, self.arrays[i] = self.arrays[i], None
        if store is not None:
            self._drop_reference(store, pin=True)

    # -- views

    def _view(self, of: _Tensor, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> None:
        of.store.held += 1
        self._keep(_Tensor(of.store, shape, strides, offset))

    def clone_view(self, i: int) -> None:
        of = self.live(i)
        self._view(of, of.shape, of.strides, of.offset)

    def reshape(self, i: int, shape: tuple[int, ...]) -> None:
        of = self.live(i)
        if not of.contiguous:
            raise UnsupportedView("")
        if math.prod(shape) != math.prod(of.shape):
            raise InvalidShape("")
        self._view(of, shape, row_major(shape), of.offset)

    def strided(self, i: int, shape: tuple[int, ...], strides: tuple[int, ...], delta: int) -> None:
        of = self.live(i)
        if len(strides) != len(shape):
            raise InvalidShape("")
        last = of.offset + delta + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
        if last >= of.store.data.size:
            raise InvalidDataLength("")
        self._view(of, shape, strides, of.offset + delta)

    def is_specified(self, i: int, shape: tuple[int, ...], strides: tuple[int, ...], delta: int) -> bool:
        """Whether what ``strided`` would show holds something, or is refused."""
        of = self.tensors[i]
        assert of is not None
        reach = sum((n - 1) * step for n, step in zip(shape, strides, strict=False))
        return not of.store.written <= of.offset + delta + reach < of.store.data.size

    def broadcast(self, i: int, shape: tuple[int, ...]) -> None:
        of = self.live(i)
        if len(of.shape) > len(shape):
            raise ShapeMismatch("")
        new = len(shape) - len(of.shape)
        if any(n not in (1, m) for n, m in zip(of.shape, shape[new:], strict=True)):
            raise ShapeMismatch("")
        steps = [step if n == m else 0 for n, step, m in zip(of.shape, of.strides, shape[new:], strict=True)]
        self._view(of, shape, (*[0] * new, *steps), of.offset)

    def narrow(self, i: int, axis: int, start: int, length: int) -> None:
        of = self.live(i)
        if axis >= len(of.shape):
            raise IndexOutOfBounds("")
        if not length:
            raise EmptySelection("")
        if start + length > of.shape[axis]:
            raise IndexOutOfBounds("")
        shape = (*of.shape[:axis], length, *of.shape[axis + 1 :])
        self._view(of, shape, of.strides, of.offset + start * of.strides[axis])

    # -- in place

    def _writable(self, of: _Tensor, other: _Tensor | None = None) -> None:
        if not of.contiguous or (other is not None and not other.contiguous):
            raise UnsupportedView("")

    def add_in_place(self, i: int, j: int) -> None:
        of, other = self.live(i), self.tensors[j]
        assert other is not None
        if other.dtype is not of.dtype:
            raise DTypeMismatch("")
        self.live(j)
        if of.shape != other.shape:
            raise ShapeMismatch("")
        self._writable(of, other)
        if of.span != other.span and of.meets(other):
            raise OverlappingMemory("")
        of.store.generation += 1
        of.values[...] = of.values + other.values

    def scale_in_place(self, i: int, factor: float) -> None:
        of = self.live(i)
        if of.dtype not in FLOATS:
            raise InvalidDType("")
        self._writable(of)
        of.store.generation += 1
        of.values[...] = of.values * of.store.data.dtype.type(factor)

    def fill(self, i: int, value: int) -> None:
        of = self.live(i)
        self._writable(of)
        of.store.generation += 1
        of.values[...] = value

    # -- operations

    def binary(self, name: str, i: int, j: int, out: int | None) -> None:
        tensors = [self.live(k) for k in (i, j, *(() if out is None else (out,)))]
        a, b, *into = tensors
        if a.dtype is not b.dtype:
            raise DTypeMismatch("")
        try:
            shape = np.broadcast_shapes(a.shape, b.shape)
        except ValueError:
            raise ShapeMismatch("") from None
        for target in into:
            self._require_target(target, a.dtype, shape, (a, b))
        if name == "div" and a.dtype not in FLOATS and not b.values.all():
            raise DivisionByZero("")
        with np.errstate(all="ignore"):
            result = self._computed(name, a, b)
        self._result(a.dtype, shape, result, into)

    @staticmethod
    def _computed(name: str, a: _Tensor, b: _Tensor) -> Array:
        if name == "div" and a.dtype not in FLOATS:
            quotient = np.trunc(a.values.astype(np.float64) / b.values.astype(np.float64)).astype(np.int64)
            return quotient.astype(a.store.data.dtype)
        operation = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[name]
        result: Array = operation(a.values, b.values)
        return result

    @staticmethod
    def _require_target(out: _Tensor, dtype: DType, shape: tuple[int, ...], sources: tuple[_Tensor, ...]) -> None:
        if out.dtype is not dtype:
            raise DTypeMismatch("")
        if out.shape != shape:
            raise ShapeMismatch("")
        if not out.contiguous:
            raise UnsupportedView("")
        for source in sources:
            if out.meets(source) and not (source.contiguous and source.span == out.span):
                raise OverlappingMemory("")

    def _result(self, dtype: DType, shape: tuple[int, ...], values: Array, into: list[_Tensor] | None = None) -> None:
        if into:
            into[0].store.generation += 1
            into[0].values[...] = values
            return
        made = self._new(dtype, shape)
        made.values[...] = values
        self._keep(made)

    def scale(self, i: int, factor: float) -> None:
        of = self.live(i)
        if of.dtype not in FLOATS:
            raise InvalidDType("")
        self._result(of.dtype, of.shape, of.values * of.store.data.dtype.type(factor))

    def sum(self, i: int, axis: int | None) -> None:
        of = self.live(i)
        if axis is not None and axis >= len(of.shape):
            raise IndexOutOfBounds("")
        wide = of.dtype if of.dtype in FLOATS else DType.i64
        rows, shape = of.values.reshape(1, -1), of.shape[:0] or (1,)
        if axis is not None:
            shape = of.shape[:axis] + of.shape[axis + 1 :] or (1,)
            rows = np.moveaxis(of.values, axis, -1).reshape(-1, of.shape[axis])
        bits = f"u{rows.itemsize}"
        found = [total(of.dtype, np.ascontiguousarray(row).view(bits)).view(STORAGE[wide])[0] for row in rows]
        self._result(wide, shape, np.array(found, STORAGE[wide]).reshape(shape))

    def materialize(self, i: int) -> None:
        of = self.live(i)
        self._result(of.dtype, of.shape, of.values)

    def replace(self, i: int, j: int) -> None:
        old, new = self.live(i), self.tensors[j]
        assert new is not None
        if old.dtype is not new.dtype:
            raise DTypeMismatch("")
        self.live(j)
        if old is not new and old.life == "owned":
            old.life = "replaced"
            self._drop_reference(old.store)

    # -- scopes

    def open_scope(self) -> None:
        self.open.append(len(self.marks))
        self.marks.append((len(self.marks), len(self.entries)))

    def close_scope(self, i: int) -> None:
        mark = self.marks[i]
        if mark is None or self.open[-1] != i:
            raise ScopeOrder("")
        while len(self.entries) > mark[1]:
            value, node = self.entries.pop()
            if value is not None:
                value.life = "closed"
                self._drop_reference(value.store)
            self.destroyed.append(node)
        self.open.pop()
        self.marks[i] = None

    def adopt(self, i: int, node: int) -> None:
        found = self.live(i)
        if not self.open:
            raise ActiveExecScopeRequired("")
        if found.life == "scoped":
            raise ScopeOrder("")
        found.life = "scoped"
        self.entries.append((found, node))

    # -- what is seen

    def seen(self) -> dict[str, Any]:
        """Return everything that can be seen."""
        stores: list[_Store] = []
        tensors: list[object] = []
        for i, tensor in enumerate(self.tensors):
            if tensor is None:
                tensors.append(None)
                continue
            try:
                self.live(i)
            except (UseAfterDeinit, UseAfterScope) as error:
                tensors.append(type(error).__name__)
                continue
            store = tensor.store
            if store not in stores:
                stores.append(store)
            refs = store.held + store.pins
            take = tensor.offset == 0 and tensor.contiguous and refs == 1
            tensors.append(
                (
                    *(tensor.dtype, tensor.shape, tensor.strides, tensor.offset, refs, store.generation, take),
                    *(tensor.life == "scoped", stores.index(store), content(tensor.values)),
                )
            )
        return {
            "pool": (len(self.buffers), len(self.slabs), sum(self.buffers) + sum(self.slabs), self.out),
            "scopes": (len(self.open), len(self.entries), bool(self.open), list(self.destroyed)),
            "tensors": tensors,
        }
