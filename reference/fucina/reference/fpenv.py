"""The calling thread's floating-point environment: seen, changed within a scope, asserted.

The registers are reached through the C library (:mod:`fucina.reference.registers`).  No function of
``fucina.reference`` but these depends on what they set, since the others compute with integers (clause NUM-ENV-2).
"""

from __future__ import annotations

from threading import get_ident, local
from typing import TYPE_CHECKING

from fucina.reference.arguments import shown
from fucina.reference.registers import LAYOUT, read, write
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

supported: bool = LAYOUT is not None
"""Whether the registers can be reached on this machine (clause FPENV-SUPPORT-1)."""

default_environment: Environment = DEFAULT_ENVIRONMENT
"""To nearest with ties to even, gradual underflow (clause FPENV-MODE-2)."""

# the bits of the control word that are rounding and underflow, those that are traps, and those of the status word
_ROUNDING = 0
_MODES = 0
_TRAPS = 0
_ALL_FLAGS = 0
if LAYOUT is not None:
    _ROUNDING = max(LAYOUT.rounding)
    _MODES = _ROUNDING | LAYOUT.flush
    _TRAPS = sum(LAYOUT.traps)
    _ALL_FLAGS = sum(LAYOUT.flags)

_ORDER = (RoundingMode.nearest_even, RoundingMode.toward_zero, RoundingMode.upward, RoundingMode.downward)


def _environment(control: int) -> Environment | None:
    """Return what the control word says; flushing of any kind is flush_to_zero.

    Clauses: FPENV-GET-1
    """
    if LAYOUT is None:
        return None
    rounding = _ORDER[LAYOUT.rounding.index(control & _ROUNDING)]
    return Environment(rounding, UnderflowMode.flush_to_zero if control & LAYOUT.reported else UnderflowMode.gradual)


def _trapping(control: int) -> list[str]:
    """Return the exceptions that trap."""
    if LAYOUT is None:
        return []
    on = ~control if LAYOUT.traps_inverted else control
    return [flag for flag, bit in zip(FLAGS, LAYOUT.traps, strict=True) if on & bit]


def _exceptions(status: int) -> Exceptions:
    return Exceptions(*(bool(status & bit) for bit in LAYOUT.flags)) if LAYOUT else Exceptions()


def _bits(flags: Exceptions) -> int:
    pairs = zip(FLAGS, LAYOUT.flags if LAYOUT else (), strict=bool(LAYOUT))
    return sum(bit for flag, bit in pairs if getattr(flags, flag))


def _described(control: int) -> str:
    """Return what the control word says, for messages."""
    environment = _environment(control)
    if environment is None or LAYOUT is None:
        return "an environment that cannot be seen"
    partly = " (in part)" if 0 < control & LAYOUT.flush < LAYOUT.flush else ""
    traps = " and ".join(_trapping(control))
    return (
        f"rounding {environment.rounding.name}, underflow {environment.underflow.name}{partly}, "
        f"{f'traps on {traps}' if traps else 'no traps'}"
    )


def get() -> Environment | None:
    """Return the calling thread's environment, None where it cannot be seen.

    Flushing of results or of operands alone is reported as ``flush_to_zero`` too.

    Clauses: FPENV-GET-1, FPENV-SUPPORT-1
    """
    return _environment(read()[0])


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
    if not (
        isinstance(environment, Environment)
        and isinstance(environment.rounding, RoundingMode)
        and isinstance(environment.underflow, UnderflowMode)
    ):
        raise DTypeMismatch(
            f"environment must be an Environment of a RoundingMode and an UnderflowMode, got {shown(environment)}",
            clause="FPENV-SET-1",
        )
    if LAYOUT is not None:
        flush = LAYOUT.flush if environment.underflow is UnderflowMode.flush_to_zero else 0
        write(control=(_MODES, LAYOUT.rounding[_ORDER.index(environment.rounding)] | flush))


def rounding_mode() -> RoundingMode | None:
    """Return the calling thread's rounding mode, None where it cannot be seen.

    Clauses: FPENV-GET-1, FPENV-SUPPORT-1
    """
    environment = get()
    return environment.rounding if environment else None


def underflow_mode() -> UnderflowMode | None:
    """Return the calling thread's underflow mode, None where it cannot be seen.

    Clauses: FPENV-GET-1, FPENV-SUPPORT-1
    """
    environment = get()
    return environment.underflow if environment else None


def assert_default() -> None:
    """Raise unless the calling thread's environment is the default one and no exception traps.

    Raises
    ------
    NonDefaultFloatEnvironment
        With what was found.

    Clauses: FPENV-ASSERT-1, FPENV-SUPPORT-1
    """
    control = read()[0]
    environment = _environment(control)
    if environment is not None and (control & _MODES or _trapping(control)):
        raise NonDefaultFloatEnvironment(
            f"the float environment must be rounding nearest_even, underflow gradual, no traps, "
            f"got {_described(control)}",
            clause="FPENV-ASSERT-1",
        )


def test_exceptions() -> Exceptions:
    """Return the exceptions that have accrued on the calling thread.

    Clauses: FPENV-FLAGS-1, FPENV-SUPPORT-1
    """
    return _exceptions(read()[1])


def clear_exceptions() -> None:
    """Forget the exceptions that have accrued on the calling thread.

    Clauses: FPENV-FLAGS-2, FPENV-SUPPORT-1
    """
    raise_exceptions(Exceptions())


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
    write(status=(_ALL_FLAGS, _bits(flags)))


class _Self:
    """What stands for a thread: its number alone may be given again to a later one."""

    def __init__(self) -> None:
        self.number = get_ident()


_here = local()


def _thread() -> _Self:
    if not hasattr(_here, "self"):
        _here.self = _Self()
    found: _Self = _here.self
    return found


def _same_thread(what: object, thread: _Self) -> None:
    """Refuse another thread: the registers are those of one.

    Clauses: FPENV-THREAD-1
    """
    if thread is not _thread():
        again = ", which has been given again" if thread.number == get_ident() else ""
        raise WrongThread(
            f"a {type(what).__name__} must be used on the thread that began it ({thread.number}{again}), "
            f"got thread {get_ident()}",
            clause="FPENV-THREAD-1",
        )


class Guard:
    """A snapshot of rounding and underflow, to be put back; also a context manager.

    Accrued exceptions and trap masks are no part of it.

    Clauses: FPENV-GUARD-1, FPENV-GUARD-2, FPENV-GUARD-3
    """

    def __init__(self) -> None:
        self._thread = _thread()
        self._modes = read()[0] & _MODES

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
        _same_thread(self, self._thread)
        write(control=(_MODES, self._modes))

    def __enter__(self) -> Guard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.restore()

    def __repr__(self) -> str:
        return f"<Guard of {_environment(self._modes)}>"


class Probe:
    """Watches which exceptions a region raises on its thread; also a context manager.

    Clauses: FPENV-PROBE-1, FPENV-PROBE-2, FPENV-PROBE-3
    """

    def __init__(self) -> None:
        self._thread = _thread()
        self._ended: Exceptions | None = None
        self._outer = test_exceptions()
        clear_exceptions()

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
        if self._ended is not None:
            return self._ended
        _same_thread(self, self._thread)
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
        if self._ended is None:
            found = self.sample()
            raise_exceptions(found.union_with(self._outer))
            self._ended = found
        return self._ended

    def __enter__(self) -> Probe:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def __repr__(self) -> str:
        return "<Probe, running>" if self._ended is None else f"<Probe of {self._ended}>"


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

    def __init__(self) -> None:
        self._control = read()[0] & (_MODES | _TRAPS)

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
        return _environment(self._control)

    def check(self) -> None:
        """Raise unless the calling thread's environment is the recorded one, trap masks included.

        Raises
        ------
        FloatEnvironmentChanged
            With what was recorded and what was found.

        Clauses: FPENV-RECORD-2, FPENV-SUPPORT-1
        """
        control = read()[0] & (_MODES | _TRAPS)
        if control != self._control:
            raise FloatEnvironmentChanged(
                f"the float environment must be as recorded ({_described(self._control)}), got {_described(control)}",
                clause="FPENV-RECORD-2",
            )

    def __repr__(self) -> str:
        return f"<Record of {self.environment}>"
