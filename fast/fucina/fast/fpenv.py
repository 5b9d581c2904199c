"""The calling thread's floating-point environment: seen, changed within a scope, asserted.

Every other function of ``fucina.fast`` computes in the default environment whatever these functions have set (clause
NUM-ENV-2); what they set governs the thread's other arithmetic: Python's, numpy's, a library's.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from fucina.fast._native import lib
from fucina.fast._shown import shown
from fucina.spec.errors import DTypeMismatch, FloatEnvironmentChanged, NonDefaultFloatEnvironment, WrongThread
from fucina.spec.fpenv import DEFAULT_ENVIRONMENT, FLAGS, Environment, Exceptions, RoundingMode, UnderflowMode

if TYPE_CHECKING:
    from types import TracebackType

__all__ = [
    "Environment",
    "Exceptions",
    "Guard",
    "Probe",
    "Record",
    "RoundingMode",
    "UnderflowMode",
    "assert_default",
    "clear_exceptions",
    "default_environment",
    "get",
    "guard",
    "probe",
    "raise_exceptions",
    "rounding_mode",
    "set",
    "supported",
    "test_exceptions",
    "underflow_mode",
]

supported: bool = bool(lib.fc_fpenv_supported())
"""Whether the registers can be reached on this machine (clause FPENV-SUPPORT-1)."""

default_environment: Environment = DEFAULT_ENVIRONMENT
"""To nearest with ties to even, gradual underflow (clause FPENV-MODE-2)."""

_ROUNDING = {
    lib.FC_FPENV_NEAREST_EVEN: RoundingMode.nearest_even,
    lib.FC_FPENV_TOWARD_ZERO: RoundingMode.toward_zero,
    lib.FC_FPENV_UPWARD: RoundingMode.upward,
    lib.FC_FPENV_DOWNWARD: RoundingMode.downward,
}
_CODES = {mode: code for code, mode in _ROUNDING.items()}
_FLUSHES = lib.FC_FPENV_FLUSH_RESULTS | lib.FC_FPENV_FLUSH_OPERANDS
_FLAG_BITS = (
    lib.FC_FLAG_INVALID,
    lib.FC_FLAG_DIVISION_BY_ZERO,
    lib.FC_FLAG_OVERFLOW,
    lib.FC_FLAG_UNDERFLOW,
    lib.FC_FLAG_INEXACT,
    lib.FC_FLAG_DENORMAL,
)


def _rounding_of(word: int) -> RoundingMode:
    return _ROUNDING[word & lib.FC_FPENV_ROUNDING]


def _underflow_of(word: int) -> UnderflowMode:
    return UnderflowMode.flush_to_zero if word & _FLUSHES else UnderflowMode.gradual


def _environment(word: int) -> Environment | None:
    return Environment(_rounding_of(word), _underflow_of(word)) if supported else None


def _exceptions(bits: int) -> Exceptions:
    return Exceptions(*(bool(bits & bit) for bit in _FLAG_BITS))


def _bits(flags: Exceptions) -> int:
    return sum(bit for bit, flag in zip(_FLAG_BITS, FLAGS, strict=True) if getattr(flags, flag))


def _described(word: int) -> str:
    """Return what a word says, for messages."""
    flushed = [name for bit, name in _FLUSHED.items() if word & bit]
    trapping = [flag for bit, flag in zip(_FLAG_BITS, FLAGS, strict=True) if word >> lib.FC_FPENV_TRAP_SHIFT & bit]
    return ", ".join(
        [
            f"rounding {_rounding_of(word).name}",
            f"flush_to_zero of {' and '.join(flushed)}" if flushed else "gradual underflow",
            f"traps on {' and '.join(trapping)}" if trapping else "no traps",
        ]
    )


_FLUSHED = {
    lib.FC_FPENV_FLUSH_RESULTS: "results",
    lib.FC_FPENV_FLUSH_OPERANDS: "operands",
    lib.FC_FPENV_FLUSH_HALVES: "f16 values",
}


def get() -> Environment | None:
    """Return the calling thread's environment, None where it cannot be seen.

    Flushing of results or of operands alone is reported as ``flush_to_zero`` too.

    Clauses: FPENV-GET-1, FPENV-SUPPORT-1
    """
    return _environment(lib.fc_fpenv_get())


def set(environment: Environment) -> None:
    """Set the calling thread's rounding and underflow; nothing where that is not supported.

    Parameters
    ----------
    environment : Environment

    Raises
    ------
    DTypeMismatch
        For anything else.

    Clauses: FPENV-SET-1, FPENV-SET-2, FPENV-SET-3, FPENV-SUPPORT-1
    """
    if (
        not isinstance(environment, Environment)
        or not isinstance(environment.rounding, RoundingMode)
        or not isinstance(environment.underflow, UnderflowMode)
    ):
        raise DTypeMismatch(
            f"environment must be an Environment of a RoundingMode and an UnderflowMode, got {shown(environment)}",
            clause="FPENV-SET-1",
        )
    flushes = _FLUSHES | lib.FC_FPENV_FLUSH_HALVES if environment.underflow is UnderflowMode.flush_to_zero else 0
    lib.fc_fpenv_set(_CODES[environment.rounding] | flushes)


def rounding_mode() -> RoundingMode | None:
    """Return the calling thread's rounding mode, None where it cannot be seen.

    Clauses: FPENV-GET-1, FPENV-SUPPORT-1
    """
    return _rounding_of(lib.fc_fpenv_get()) if supported else None


def underflow_mode() -> UnderflowMode | None:
    """Return the calling thread's underflow mode, None where it cannot be seen.

    Clauses: FPENV-GET-1, FPENV-SUPPORT-1
    """
    return _underflow_of(lib.fc_fpenv_get()) if supported else None


def assert_default() -> None:
    """Raise unless the calling thread's environment is the default one and no exception traps.

    Raises
    ------
    NonDefaultFloatEnvironment
        With what was found.

    Clauses: FPENV-ASSERT-1, FPENV-SUPPORT-1
    """
    word = lib.fc_fpenv_get()
    if word:
        raise NonDefaultFloatEnvironment(
            f"the float environment must be rounding nearest_even, gradual underflow, no traps, got {_described(word)}",
            clause="FPENV-ASSERT-1",
        )


def test_exceptions() -> Exceptions:
    """Return the exceptions that have accrued on the calling thread.

    Clauses: FPENV-FLAGS-1, FPENV-SUPPORT-1
    """
    return _exceptions(lib.fc_fpenv_flags())


def clear_exceptions() -> None:
    """Forget the exceptions that have accrued on the calling thread.

    Clauses: FPENV-FLAGS-2, FPENV-SUPPORT-1
    """
    lib.fc_fpenv_flags_set(0)


def raise_exceptions(flags: Exceptions) -> None:
    """Make ``flags`` the exceptions that have accrued on the calling thread: these and no other; nothing traps.

    Parameters
    ----------
    flags : Exceptions

    Raises
    ------
    DTypeMismatch
        For anything else.

    Clauses: FPENV-FLAGS-3, FPENV-SUPPORT-1
    """
    if not isinstance(flags, Exceptions):
        raise DTypeMismatch(f"flags must be Exceptions, got {shown(flags)}", clause="FPENV-FLAGS-3")
    lib.fc_fpenv_flags_set(_bits(flags))


class _Thread(threading.local):
    """A name that no other thread has; numbers of threads are given again when one has ended."""

    def __init__(self) -> None:
        self.token = object()


_this = _Thread()


class _OfThread:
    """Belongs to the thread that made it.

    Clauses: FPENV-THREAD-1
    """

    __slots__ = ("_number", "_token")

    def __init__(self) -> None:
        self._token = _this.token
        self._number = threading.get_ident()

    def _same_thread(self) -> None:
        if self._token is not _this.token:
            number = threading.get_ident()
            other = "a later one of that number" if number == self._number else f"thread {number}"
            raise WrongThread(
                f"a {type(self).__name__} must be used on the thread that began it ({self._number}), got {other}",
                clause="FPENV-THREAD-1",
            )


class Guard(_OfThread):
    """A snapshot of rounding and underflow, to be put back; also a context manager.

    Accrued exceptions and trap masks are no part of it.

    Clauses: FPENV-GUARD-1, FPENV-GUARD-2, FPENV-GUARD-3
    """

    __slots__ = ("_word",)

    def __init__(self) -> None:
        super().__init__()
        self._word: int = lib.fc_fpenv_get()

    @classmethod
    def begin(cls) -> Guard:
        """Return a snapshot of the calling thread's environment.

        Clauses: FPENV-GUARD-1
        """
        return cls()

    def restore(self) -> None:
        """Put back the rounding and the flushing of results and operands, each as it was; any number of times.

        Raises
        ------
        WrongThread
            On another thread than the one that began it.

        Clauses: FPENV-GUARD-1, FPENV-GUARD-2, FPENV-THREAD-1
        """
        self._same_thread()
        lib.fc_fpenv_set(self._word)

    def __enter__(self) -> Guard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.restore()

    def __repr__(self) -> str:
        return f"<Guard of {_environment(self._word)}>"


class Probe(_OfThread):
    """Watches which exceptions a region raises on its thread; also a context manager.

    Clauses: FPENV-PROBE-1, FPENV-PROBE-2, FPENV-PROBE-3
    """

    __slots__ = ("_outer", "_result")

    def __init__(self) -> None:
        super().__init__()
        self._result: Exceptions | None = None
        self._outer: int = lib.fc_fpenv_flags()
        lib.fc_fpenv_flags_set(0)

    @classmethod
    def begin(cls) -> Probe:
        """Take over the accrued exceptions, and start with none.

        Clauses: FPENV-PROBE-1
        """
        return cls()

    def sample(self) -> Exceptions:
        """Return what has accrued since the beginning; after the end, what the end returned.

        Raises
        ------
        WrongThread
            On another thread than the one that began it.

        Clauses: FPENV-PROBE-1, FPENV-PROBE-2, FPENV-THREAD-1
        """
        if self._result is not None:
            return self._result
        self._same_thread()
        return test_exceptions()

    def end(self) -> Exceptions:
        """Return what has accrued since the beginning, and put back what had accrued before it beside that.

        The first call ends the probe; further ones return the same and change nothing.

        Raises
        ------
        WrongThread
            On another thread than the one that began it.

        Clauses: FPENV-PROBE-1, FPENV-PROBE-2, FPENV-THREAD-1
        """
        if self._result is None:
            self._same_thread()
            bits = lib.fc_fpenv_flags()
            lib.fc_fpenv_flags_set(bits | self._outer)
            self._result = _exceptions(bits)
        return self._result

    def __enter__(self) -> Probe:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def __repr__(self) -> str:
        return "<Probe, running>" if self._result is None else f"<Probe of {self._result}>"


def guard() -> Guard:
    """Return :meth:`Guard.begin`, to write ``with fpenv.guard():``.

    Clauses: FPENV-GUARD-3
    """
    return Guard.begin()


def probe() -> Probe:
    """Return :meth:`Probe.begin`, to write ``with fpenv.probe() as p:``.

    Clauses: FPENV-PROBE-3
    """
    return Probe.begin()


class Record:
    """The environment of a moment, to compare later ones with.

    Clauses: FPENV-RECORD-1, FPENV-RECORD-2
    """

    __slots__ = ("_word",)

    def __init__(self) -> None:
        self._word: int = lib.fc_fpenv_get()

    @classmethod
    def begin(cls) -> Record:
        """Return a record of the calling thread's environment.

        Clauses: FPENV-RECORD-1
        """
        return cls()

    @property
    def environment(self) -> Environment | None:
        """What :func:`get` returned at the beginning.

        Clauses: FPENV-RECORD-1
        """
        return _environment(self._word)

    def check(self) -> None:
        """Raise unless the calling thread's environment is the recorded one, trap masks included.

        Raises
        ------
        FloatEnvironmentChanged
            With what was recorded and what was found.

        Clauses: FPENV-RECORD-2, FPENV-SUPPORT-1
        """
        word = lib.fc_fpenv_get()
        if word != self._word:
            raise FloatEnvironmentChanged(
                f"the float environment must be as recorded ({_described(self._word)}), got {_described(word)}",
                clause="FPENV-RECORD-2",
            )

    def __repr__(self) -> str:
        return f"<Record of {self.environment}>"
