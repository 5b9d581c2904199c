"""Arguments that are not what they seem: objects that pose as another type, and objects that act when they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Acting", "Posing", "renamed"]


class Posing:
    """An object that ``isinstance`` takes for an instance of another class, as a mock with a ``spec`` is one."""

    def __init__(self, kind: type) -> None:
        self.kind = kind

    def __getattribute__(self, name: str) -> Any:
        return object.__getattribute__(self, "kind" if name == "__class__" else name)


class Acting:
    """An integer, or a truth value, that does something when it is asked for its value."""

    def __init__(self, action: Callable[[], object], value: int) -> None:
        self.action = action
        self.value = value

    def __index__(self) -> int:
        self.action()
        return self.value

    def __bool__(self) -> bool:
        self.action()
        return self.value != 0


def renamed(array: npt.NDArray[Any], claimed: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return a view of an array whose type claims another dtype than its own."""

    class Renamed(np.ndarray[Any, Any]):
        def __getattribute__(self, name: str) -> Any:
            own = np.ndarray.__getattribute__(self, name)
            return claimed if name == "dtype" else own

    return array.view(Renamed)
