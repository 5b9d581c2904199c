"""The scratch of the decoding of mixtures of experts: one region that only grows, behind one lock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fucina.reference.allocation import Bytes, allocate
from fucina.reference.arguments import shown
from fucina.reference.geometry import storage
from fucina.reference.sizes import length_argument
from fucina.spec.errors import ConcurrentUse, DTypeMismatch, InvalidDataLength, InvalidDType, UseAfterDeinit
from fucina.spec.types import DType

if TYPE_CHECKING:
    from fucina.spec.interface import AnyArray

__all__ = ["MoeDecodeChainScratchView", "MoeDecodeScratch", "MoeDecodeScratchView"]

ALIGNMENT = 8


class MoeDecodeScratchView:
    """Arrays carved out of the scratch, to be had while it is locked.

    Notes
    -----
    Clauses: CONTEXT-MOE-1, CONTEXT-MOE-2
    """

    def __init__(self, scratch: MoeDecodeScratch, session: int, parts: dict[str, AnyArray]) -> None:
        self._scratch = scratch
        self._session = session
        self._parts = parts

    def _part(self, name: str) -> AnyArray:
        if self._scratch.session != self._session:
            raise UseAfterDeinit(f"{name} of a view of the scratch was used after its unlock", clause="CONTEXT-MOE-1")
        return self._parts[name]

    @property
    def qx(self) -> AnyArray:
        """The activation as q8_k blocks.

        Notes
        -----
        Clauses: CONTEXT-MOE-2
        """
        return self._part("qx")

    @property
    def gate_buf(self) -> AnyArray:
        """The gates of each expert, f32.

        Notes
        -----
        Clauses: CONTEXT-MOE-2
        """
        return self._part("gate_buf")

    @property
    def up_buf(self) -> AnyArray:
        """The up projections of each expert, f32.

        Notes
        -----
        Clauses: CONTEXT-MOE-2
        """
        return self._part("up_buf")

    @property
    def g_buf(self) -> AnyArray:
        """What goes into the down projections, f32.

        Notes
        -----
        Clauses: CONTEXT-MOE-2
        """
        return self._part("g_buf")

    @property
    def qg(self) -> AnyArray:
        """The same as blocks.

        Notes
        -----
        Clauses: CONTEXT-MOE-2
        """
        return self._part("qg")

    @property
    def outs(self) -> AnyArray:
        """The outputs of each expert, f32.

        Notes
        -----
        Clauses: CONTEXT-MOE-2
        """
        return self._part("outs")

    @property
    def tasks(self) -> AnyArray:
        """The tasks of the experts.

        Notes
        -----
        Clauses: CONTEXT-MOE-2
        """
        return self._part("tasks")


class MoeDecodeChainScratchView(MoeDecodeScratchView):
    """The same, with the states of a chained decoding.

    Notes
    -----
    Clauses: CONTEXT-MOE-1, CONTEXT-MOE-2
    """

    @property
    def states(self) -> AnyArray:
        """The states of the experts.

        Notes
        -----
        Clauses: CONTEXT-MOE-2
        """
        return self._part("states")


class MoeDecodeScratch:
    """The region, its lock, and how it is carved.

    Notes
    -----
    Clauses: CONTEXT-MOE-1
    """

    def __init__(self) -> None:
        self._region: Bytes | None = None
        self._sessions = 0
        self.session = 0
        """The number of the locking that is on; 0: unlocked."""

    def lock(self) -> None:
        """Lock the scratch.

        Raises
        ------
        ConcurrentUse
            If it is locked.

        Notes
        -----
        Clauses: CONTEXT-MOE-1
        """
        if self.session:
            raise ConcurrentUse("the scratch is locked already", clause="CONTEXT-MOE-1")
        self._sessions += 1
        self.session = self._sessions

    def unlock(self) -> None:
        """Unlock it; the views end.

        Raises
        ------
        ConcurrentUse
            If it is not locked.

        Notes
        -----
        Clauses: CONTEXT-MOE-1
        """
        self._require_locked()
        self.session = 0

    def free(self) -> None:
        """Give the region back."""
        self.session = 0
        self._region = None

    def _require_locked(self) -> None:
        if not self.session:
            raise ConcurrentUse("the scratch must be locked first", clause="CONTEXT-MOE-1")

    def carve(
        self,
        kind: type[MoeDecodeScratchView],
        types: dict[str, Any],
        counts: dict[str, object],
    ) -> MoeDecodeScratchView:
        """Return arrays of the region, which grows if they do not fit.

        Parameters
        ----------
        kind : type
            Which view.
        types : dict
            The element of ``qg``, ``tasks`` and, in a chain, ``states``.
        counts : dict
            ``hidden_blocks top_k out_pe hidden blocks_per_g`` and, in a chain, ``task_count``.

        Raises
        ------
        ConcurrentUse
            If the scratch is not locked.
        DTypeMismatch, InvalidDType
            If an element is no numpy dtype, or needs an alignment above 8.
        InvalidInteger, InvalidDataLength, Overflow
            If a count is no number of elements, or a product of them is 2^64 or more.
        OutOfMemory
            If there is no memory.

        Notes
        -----
        Clauses: CONTEXT-MOE-1, CONTEXT-MOE-2
        """
        self._require_locked()
        forms = {name: _form(name, element) for name, element in types.items()}
        n = {name: length_argument(name, value, "CONTEXT-MOE-2") for name, value in counts.items()}
        f32 = storage(DType.f32)
        wanted = {
            "qx": (storage(DType.q8_k), n["hidden_blocks"]),
            "gate_buf": (f32, n["top_k"] * n["out_pe"]),
            "up_buf": (f32, n["top_k"] * n["out_pe"]),
            "g_buf": (f32, n["top_k"] * n["out_pe"]),
            "qg": (forms["qg"], n["top_k"] * n["blocks_per_g"]),
            "outs": (f32, n["top_k"] * n["hidden"]),
            "tasks": (forms["tasks"], n.get("task_count", n["top_k"])),
        }
        if "states" in forms:
            wanted["states"] = (forms["states"], n["top_k"])

        # where each part begins, and where the last one ends
        places, end = {}, 0
        for name, (form, count) in wanted.items():
            places[name] = end
            end += -(-_fits(_fits(count) * form.itemsize) // ALIGNMENT) * ALIGNMENT
            _fits(end)
        if self._region is None or self._region.size < end:
            self._region = allocate(end, "CONTEXT-MOE-1")
        region = self._region
        parts = {
            name: region[places[name] : places[name] + count * form.itemsize].view(form)
            for name, (form, count) in wanted.items()
        }
        return kind(self, self.session, parts)


def _form(name: str, element: Any) -> np.dtype[Any]:
    """Return the element of a part.

    Notes
    -----
    Clauses: CONTEXT-MOE-2
    """
    try:
        form: np.dtype[Any] = np.dtype(element)
    except TypeError:
        raise DTypeMismatch(f"{name} must be of a numpy dtype, got {shown(element)}", clause="CONTEXT-MOE-2") from None
    if form.itemsize == 0 or form.hasobject:
        raise DTypeMismatch(f"{name} must have bytes and no objects, got {form}", clause="CONTEXT-MOE-2")
    if form.alignment > ALIGNMENT:
        raise InvalidDType(
            f"{name} must need an alignment of at most {ALIGNMENT}, got {form.alignment}", clause="CONTEXT-MOE-2"
        )
    return form


def _fits(size: int) -> int:
    """Refuse a size that no 64-bit word holds.

    Notes
    -----
    Clauses: CONTEXT-MOE-2
    """
    if size >> 64:
        raise InvalidDataLength(
            f"the lengths of the scratch must be below 2^64, got {shown(size)}", clause="CONTEXT-MOE-2"
        )
    return size
