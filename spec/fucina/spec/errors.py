"""Exceptions of the contract (clauses ERR-NAME-1 and ERR-MSG-1).

Each documented error is an exception of its own name and also derives from the builtin that a Python program would
catch.  A message says what was given, what is allowed, and names the clause that was broken.
"""

from __future__ import annotations

__all__ = [
    "ActiveExecScopeRequired",
    "ActiveExecScopeUnsupported",
    "ChainViolation",
    "ConcurrentUse",
    "DTypeMismatch",
    "DivisionByZero",
    "EmptySelection",
    "ExportRefused",
    "FloatEnvironmentChanged",
    "ForkedInTask",
    "FucinaError",
    "GradientsNotTracked",
    "GradientsTracked",
    "IndexOutOfBounds",
    "InvalidBounds",
    "InvalidDType",
    "InvalidDataLength",
    "InvalidInteger",
    "InvalidShape",
    "InvalidTag",
    "LeakedBuffers",
    "NonDefaultFloatEnvironment",
    "NonFiniteValue",
    "NotCopyable",
    "OutOfMemory",
    "OverRelease",
    "Overflow",
    "OverlappingMemory",
    "ReadOnlyStorage",
    "SavedValueChanged",
    "ScopeOrder",
    "ShapeMismatch",
    "TensorError",
    "UnencodableBlock",
    "UnsupportedView",
    "UseAfterDeinit",
    "UseAfterScope",
    "WrongThread",
]


class FucinaError(Exception):
    """Base of every exception that this project raises on purpose.

    ``clause`` is the id of the clause that was broken, or ``None`` where no single clause applies.
    """

    def __init__(self, message: str, *, clause: str | None = None) -> None:
        super().__init__(f"{clause}: {message}" if clause else message)
        self.clause = clause

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.args, self.clause))


def _rebuild(cls: type[FucinaError], args: tuple[object, ...], clause: str | None) -> FucinaError:
    error = cls("")  # not cls.__new__: MemoryError has a __new__ of its own that refuses to be called like that
    error.args = args
    error.clause = clause
    return error


class TensorError(FucinaError):
    """Base of the errors about shapes, layouts, buffers and storage."""


class InvalidDType(FucinaError, TypeError):
    """The operation is not defined for this dtype, or the argument is no dtype at all."""


class DTypeMismatch(FucinaError, TypeError):
    """A buffer or value does not have the format that its dtype requires."""


class InvalidInteger(FucinaError, TypeError):
    """An integer was required."""


class InvalidBounds(FucinaError, ValueError):
    """A parameter lies outside its domain: bounds out of order, a probability outside [0, 1), a zero fan-in."""


class InvalidShape(TensorError, ValueError):
    """A shape is not allowed here."""


class InvalidDataLength(TensorError, ValueError):
    """A buffer holds another number of elements than required."""


class UnsupportedView(TensorError, ValueError):
    """The memory layout of a buffer does not allow the operation: not C-contiguous, or misaligned."""


class ReadOnlyStorage(TensorError, ValueError):
    """A write to memory that is read-only."""


class OverlappingMemory(TensorError, ValueError):
    """Input and output share memory in a way that would read what was just written."""


class IndexOutOfBounds(TensorError, IndexError):
    """An index lies outside [0, length)."""


class NonFiniteValue(FucinaError, ValueError):
    """A NaN or an infinity among values that have to be finite."""


class UnencodableBlock(FucinaError, ValueError):
    """Finite values of a block for which the format's encoder has no answer: its sums overflowed."""


class Overflow(FucinaError, OverflowError):
    """An integer does not fit the range that the clause allows."""


class OutOfMemory(FucinaError, MemoryError):
    """An allocation failed."""


class NonDefaultFloatEnvironment(FucinaError, RuntimeError):
    """The calling thread's floating-point environment is not the default one."""


class FloatEnvironmentChanged(FucinaError, RuntimeError):
    """The calling thread's floating-point environment is not the recorded one."""


class WrongThread(FucinaError, RuntimeError):
    """What belongs to one thread was used on another."""


class ShapeMismatch(TensorError, ValueError):
    """Two shapes do not fit each other."""


class EmptySelection(TensorError, ValueError):
    """A selection of no elements."""


class DivisionByZero(TensorError, ZeroDivisionError):
    """An integer was divided by zero."""


class ExportRefused(TensorError, BufferError):
    """Memory cannot be handed out, or taken, in the form that was asked for."""


class UseAfterDeinit(FucinaError, RuntimeError):
    """An object was used after its storage had been given back."""


class UseAfterScope(FucinaError, RuntimeError):
    """A value was used after the exec scope that owned it was closed."""


class OverRelease(FucinaError, RuntimeError):
    """A reference was given back that nobody held."""


class ScopeOrder(FucinaError, RuntimeError):
    """Exec scopes were closed out of order, or entered without a reserved slot."""


class ConcurrentUse(FucinaError, RuntimeError):
    """A context, a team or a worker was used while it was in use already."""


class ChainViolation(FucinaError, RuntimeError):
    """A task of a chain became runnable twice, or never."""


class ForkedInTask(FucinaError, RuntimeError):
    """A fork inside a task made this process, and tasks that other threads had begun are not in it."""


class ActiveExecScopeRequired(FucinaError, RuntimeError):
    """The operation needs an open exec scope to own what it makes."""


class ActiveExecScopeUnsupported(FucinaError, RuntimeError):
    """The operation consumes its operand, which an exec scope owns."""


class InvalidTag(TensorError, TypeError):
    """A tag names no axis, stands twice, or does not go with the others."""


class GradientsTracked(FucinaError, RuntimeError):
    """The operation has no gradient, and its operand tracks them."""


class GradientsNotTracked(FucinaError, RuntimeError):
    """Gradients were asked of a tensor that tracks none."""


class SavedValueChanged(FucinaError, RuntimeError):
    """A value that a node saved for backward was written to."""


class NotCopyable(FucinaError, TypeError):
    """An object that owns storage cannot be copied or pickled."""


class LeakedBuffers(FucinaError, RuntimeError):
    """Buffers were still referenced when their pool was closed.

    ``leaks`` lists them: one ``fucina.spec.runtime.Leak`` each.
    """

    def __init__(self, message: str, *, clause: str | None = None, leaks: tuple[object, ...] = ()) -> None:
        super().__init__(message, clause=clause)
        self.leaks = leaks

    def __reduce__(self) -> tuple[object, ...]:
        return (*super().__reduce__(), {"leaks": self.leaks})
