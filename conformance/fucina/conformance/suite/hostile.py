"""Arguments that are not what they seem: objects that pose as another type, and objects that act when they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["Acting", "Posing"]


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
