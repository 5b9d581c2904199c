"""The scratch of the decoding of mixtures of experts: one region that only grows, behind one lock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fucina.fast._shown import integer_shown, shown
from fucina.fast._sizes import length
from fucina.fast.geometry import storage
from fucina.fast.storage import BufferOf
from fucina.spec.errors import ConcurrentUse, DTypeMismatch, InvalidDataLength, InvalidDType, UseAfterDeinit
from fucina.spec.types import DType

if TYPE_CHECKING:
    from fucina.fast.storage import Storage
    from fucina.spec.interface import AnyArray

__all__ = ["MoeDecodeChainScratchView", "MoeDecodeScratch", "MoeDecodeScratchView"]

_ALIGNMENT = 8


class MoeDecodeScratchView:
    """Arrays of the scratch, to be had while it is locked.

    Clauses: CONTEXT-MOE-1, CONTEXT-MOE-2
    """

    __slots__ = ("_arrays", "_scratch", "_session")

    def __init__(self, scratch: MoeDecodeScratch, session: int, arrays: dict[str, AnyArray]) -> None:
        self._scratch, self._session, self._arrays = scratch, session, arrays

    def _array(self, name: str) -> AnyArray:
        if self._scratch.session != self._session:
            raise UseAfterDeinit(f"{name} of the scratch was used after its unlock", clause="CONTEXT-MOE-1")
        return self._arrays[name]

    @property
    def qx(self) -> AnyArray:
        """The activation, in blocks of q8_k (clause CONTEXT-MOE-2)."""
        return self._array("qx")

    @property
    def gate_buf(self) -> AnyArray:
        """The gates, f32 (clause CONTEXT-MOE-2)."""
        return self._array("gate_buf")

    @property
    def up_buf(self) -> AnyArray:
        """The up projections, f32 (clause CONTEXT-MOE-2)."""
        return self._array("up_buf")

    @property
    def g_buf(self) -> AnyArray:
        """What the down projections take, f32 (clause CONTEXT-MOE-2)."""
        return self._array("g_buf")

    @property
    def qg(self) -> AnyArray:
        """The same in blocks (clause CONTEXT-MOE-2)."""
        return self._array("qg")

    @property
    def outs(self) -> AnyArray:
        """What the experts return, f32 (clause CONTEXT-MOE-2)."""
        return self._array("outs")

    @property
    def tasks(self) -> AnyArray:
        """The tasks (clause CONTEXT-MOE-2)."""
        return self._array("tasks")


class MoeDecodeChainScratchView(MoeDecodeScratchView):
    """The same with states.

    Clauses: CONTEXT-MOE-1, CONTEXT-MOE-2
    """

    __slots__ = ()

    @property
    def states(self) -> AnyArray:
        """The states (clause CONTEXT-MOE-2)."""
        return self._array("states")


class MoeDecodeScratch:
    """The region and its lock; ``session`` is the number of the locking in force, 0 while unlocked.

    Clauses: CONTEXT-MOE-1
    """

    __slots__ = ("_count", "_region", "session")

    def __init__(self) -> None:
        self._region: Storage | None = None
        self._count = self.session = 0

    def lock(self) -> None:
        """Lock it; ConcurrentUse where it is locked.

        Clauses: CONTEXT-MOE-1
        """
        if self.session:
            raise ConcurrentUse("the scratch is locked already", clause="CONTEXT-MOE-1")
        self._count += 1
        self.session = self._count

    def unlock(self) -> None:
        """Unlock it, which ends its views; ConcurrentUse where it is not locked.

        Clauses: CONTEXT-MOE-1
        """
        self._require_locked()
        self.session = 0

    def free(self) -> None:
        """Give the region back.

        Clauses: CONTEXT-LIFE-2
        """
        self.session = 0
        region, self._region = self._region, None
        if region is not None:
            region.release()

    def _require_locked(self) -> None:
        if not self.session:
            raise ConcurrentUse("the scratch must be locked first", clause="CONTEXT-MOE-1")

    def carve(
        self, kind: type[MoeDecodeScratchView], elements: dict[str, Any], counts: dict[str, object]
    ) -> MoeDecodeScratchView:
        """Return a view of the region, which grows where that is too small.

        Parameters
        ----------
        kind : type
            Of the view.
        elements : dict
            What ``qg``, ``tasks`` and, of a chain, ``states`` consist of.
        counts : dict
            The numbers that lengths are made of.

        Clauses: CONTEXT-MOE-1, CONTEXT-MOE-2
        """
        self._require_locked()
        forms = {name: _form(name, element) for name, element in elements.items()}
        n = {name: length(name, value, "CONTEXT-MOE-2") for name, value in counts.items()}
        single, experts = storage(DType.f32), n["top_k"]
        parts = [
            ("qx", storage(DType.q8_k), n["hidden_blocks"]),
            *((name, single, experts * n["out_pe"]) for name in ("gate_buf", "up_buf", "g_buf")),
            ("qg", forms["qg"], experts * n["blocks_per_g"]),
            ("outs", single, experts * n["hidden"]),
            ("tasks", forms["tasks"], n.get("task_count", experts)),
        ]
        if "states" in forms:
            parts.append(("states", forms["states"], experts))

        places, end = [], 0
        for _, form, count in parts:
            places.append(end)
            size = _word(_word(count) * form.itemsize)
            end = _word(end + -(-size // _ALIGNMENT) * _ALIGNMENT)
        if self._region is None or self._region.capacity < end:
            grown = BufferOf(DType.u8)._owned(end)
            if self._region is not None:
                self._region.release()
            self._region = grown
        memory = self._region._pinned(True)
        arrays = {
            name: np.ndarray((count,), form, memory, offset=place)
            for (name, form, count), place in zip(parts, places, strict=True)
        }
        return kind(self, self.session, arrays)


def _form(name: str, element: Any) -> np.dtype[Any]:
    """Return what an array consists of.

    Clauses: CONTEXT-MOE-2
    """
    clause = "CONTEXT-MOE-2"
    try:
        form: np.dtype[Any] = np.dtype(element)
    except (TypeError, ValueError):
        raise DTypeMismatch(f"{name} must be of a numpy dtype, got {shown(element)}", clause=clause) from None
    if form.itemsize == 0 or form.hasobject:
        raise DTypeMismatch(f"{name} must have bytes and no Python objects, got {form}", clause=clause)
    if form.alignment > _ALIGNMENT:
        raise InvalidDType(
            f"{name} must need an alignment of at most {_ALIGNMENT}, got {form.alignment}", clause=clause
        )
    return form


def _word(size: int) -> int:
    """Refuse a size of 2^64 and above.

    Clauses: CONTEXT-MOE-2
    """
    if size >> 64:
        raise InvalidDataLength(
            f"lengths of the scratch must lie below 2^64, got {integer_shown(size)}", clause="CONTEXT-MOE-2"
        )
    return size
