"""Companions of a storage: what is derived from its bytes, and the members of an accelerator that is not there."""

from __future__ import annotations

from typing import Any

from fucina.reference.arguments import shown
from fucina.spec.errors import DTypeMismatch
from fucina.spec.runtime import HostShadow

__all__ = ["Companions", "Work", "has_accelerator"]

has_accelerator = False
"""Whether storage can be in the hands of an accelerator; here never (clause STORAGE-NULL-1)."""


class Work:
    """Work that an accelerator was given; here there is none, and it is always finished.

    Notes
    -----
    Clauses: STORAGE-NULL-1
    """

    def ensure_finished(self) -> None:
        """Wait for its end.

        Notes
        -----
        Clauses: STORAGE-NULL-1
        """


class Companions:
    """What a storage has beside its memory.

    Notes
    -----
    Clauses: STORAGE-SHADOW-1, STORAGE-NULL-1
    """

    _shadow: HostShadow | None

    def require_live(self, clause: str) -> None:
        """Raise UseAfterDeinit unless there are references.

        Notes
        -----
        Clauses: STORAGE-DEAD-1
        """
        raise NotImplementedError

    # -- what is derived from the bytes

    @property
    def host_shadow(self) -> HostShadow | None:
        """What was derived from the bytes, if anything.

        Notes
        -----
        Clauses: STORAGE-SHADOW-1
        """
        return self._shadow

    def set_host_shadow(self, shadow: HostShadow | None) -> None:
        """Keep something derived from the bytes; what was kept before is dropped.

        Raises
        ------
        DTypeMismatch
            If it is no HostShadow.

        Notes
        -----
        Clauses: STORAGE-SHADOW-1
        """
        self.require_live("STORAGE-SHADOW-1")
        if shadow is not None and type(shadow) is not HostShadow:
            raise DTypeMismatch(f"a HostShadow or None is required, got {shown(shadow)}", clause="STORAGE-SHADOW-1")
        if shadow is not self._shadow:
            self._drop_shadow()
            self._shadow = shadow

    def _drop_shadow(self) -> None:
        shadow, self._shadow = self._shadow, None
        if shadow is not None and shadow.destroy is not None:
            shadow.destroy(shadow.data)

    # -- the members of an accelerator

    def wait_ready(self) -> None:
        """Wait for work that writes here.

        Notes
        -----
        Clauses: STORAGE-NULL-1
        """
        self.require_live("STORAGE-NULL-1")

    def wait_unused(self) -> None:
        """Wait for work that reads here.

        Notes
        -----
        Clauses: STORAGE-NULL-1
        """
        self.require_live("STORAGE-NULL-1")

    def discard_pending(self) -> None:
        """Give up what pending work would write here.

        Notes
        -----
        Clauses: STORAGE-NULL-1
        """
        self.require_live("STORAGE-NULL-1")

    def has_pending(self) -> bool:
        """Whether work is pending: never.

        Notes
        -----
        Clauses: STORAGE-NULL-1
        """
        self.require_live("STORAGE-NULL-1")
        return False

    def acquire_pending(self) -> Work | None:
        """Return the pending work: None.

        Notes
        -----
        Clauses: STORAGE-NULL-1
        """
        self.require_live("STORAGE-NULL-1")
        return None

    def set_pending_use(self, work: Any) -> None:
        """Note work that reads here; there is none.

        Notes
        -----
        Clauses: STORAGE-NULL-1
        """
        self.require_live("STORAGE-NULL-1")

    @property
    def accelerator_resource(self) -> None:
        """What an accelerator keeps about the memory: nothing.

        Notes
        -----
        Clauses: STORAGE-NULL-1
        """
        return None
