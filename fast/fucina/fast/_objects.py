"""Loads ``_handles``, the C types under storage, tensors and pools, and tells it what it has to recognise and to make.

It lives in the same shared object as ``_native`` and ``_entry``, over the same core.
"""

from __future__ import annotations

from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from typing import TYPE_CHECKING

import numpy as np

from fucina.fast import _native
from fucina.fast._sizes import Shape
from fucina.fast.geometry import storage
from fucina.spec import errors
from fucina.spec.runtime import HostShadow, Release
from fucina.spec.types import DType

__all__ = ["DTYPES", "handles", "install"]

if TYPE_CHECKING:
    from fucina.fast import _handles as handles
else:
    _loader = ExtensionFileLoader("fucina.fast._handles", _native.__file__)
    handles = module_from_spec(spec_from_file_location("fucina.fast._handles", loader=_loader))
    _loader.exec_module(handles)

DTYPES = tuple(DType)
"""The 40 dtypes; their indices are those of the C core."""


def _leaf(family: int, index: int) -> type:
    """Return the type of the buffers, or of the tensors, of a dtype: what C makes when it hands one out."""
    if family == 0:
        from fucina.fast.storage import BufferOf

        return BufferOf(DTYPES[index])
    from fucina.fast.tensor import TensorOf

    return TensorOf(DTYPES[index])


_STRUCTURE = frozenset({"__module__", "__qualname__", "__dict__", "__weakref__", "__slots__", "__annotations__"})


def install(kind: type, methods: type) -> None:
    """Give a C type the methods of a Python class.

    Not by inheritance: the instances of a class that Python made are known to the garbage collector, and a tensor,
    which refers to nothing that refers back, would pay for that with each of its views.
    """
    for layer in reversed(methods.__mro__):
        if layer is not object and layer.__module__ != handles.__name__:
            for name, member in vars(layer).items():
                if name not in _STRUCTURE:
                    setattr(kind, name, member)


handles.configure(
    tuple(getattr(errors, name) for name in handles.error_names()),
    tuple(storage(dtype) for dtype in DTYPES),
    np.ndarray,
    Release,
    HostShadow,
    Shape,
    _leaf,
)
