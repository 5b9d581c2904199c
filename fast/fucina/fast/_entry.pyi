"""The hand-written module beside ``_native`` in the same shared object (csrc/python/entry.c)."""

from collections.abc import Callable
from typing import Any

def bind(name: str, function: Callable[..., Any], module: str, documentation: str, /) -> Callable[..., Any]: ...
def configure(ndarray: object, empty: object, members: tuple[object, ...], storages: tuple[object, ...], /) -> None: ...
