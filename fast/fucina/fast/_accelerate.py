"""Loads ``_entry`` and puts its short way in front of functions of the Python layer.

A Python function that passes buffers to C by cffi costs about a microsecond before the kernel starts.  ``_entry`` is a
hand-written module in the same shared object as ``_native``: its functions take a call with plain arguments straight to
the kernel and hand every other call, and every error, to the Python function they stand in front of.
"""

from __future__ import annotations

import atexit
import inspect
from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from fucina.fast import _native
from fucina.spec.types import GEOMETRY, DType

__all__ = [
    "SCALARS",
    "accelerated",
    "bits_of",
    "blocks_known",
    "cast_bits",
    "chain_enqueue",
    "of_bits",
    "team_begin",
    "team_chained",
    "team_chunks",
    "team_drop",
    "team_finish",
    "team_within",
]

SCALARS = tuple(dtype for dtype in DType if GEOMETRY[dtype].format is not None)
"""The 13 scalar dtypes; their indices are those of the C core."""

Function = TypeVar("Function", bound=Callable[..., Any])

if TYPE_CHECKING:
    from fucina.fast import _entry
else:
    _loader = ExtensionFileLoader("fucina.fast._entry", _native.__file__)
    _entry = module_from_spec(spec_from_file_location("fucina.fast._entry", loader=_loader))
    _loader.exec_module(_entry)

bits_of, of_bits, cast_bits = _entry.bits_of, _entry.of_bits, _entry.cast_bits
chain_enqueue, team_chunks, team_chained = _entry.chain_enqueue, _entry.team_chunks, _entry.team_chained
team_begin, team_finish = _entry.team_begin, _entry.team_finish
team_drop, team_within = _entry.team_drop, _entry.team_within
atexit.register(_entry.team_ending)
_entry.configure(np.ndarray, np.empty, SCALARS, tuple(np.dtype(str(GEOMETRY[dtype].format)) for dtype in SCALARS))


def blocks_known(storage: Callable[[DType], object], may_reject: frozenset[DType]) -> None:
    """Tell ``_entry`` the block dtypes: their structs, and those whose encoder may reject a block of finite numbers."""
    formats = tuple(dtype for dtype in DType if GEOMETRY[dtype].format is None)
    _entry.configure_blocks(formats, tuple(map(storage, formats)), tuple(dtype in may_reject for dtype in formats))


def accelerated(function: Function) -> Function:
    """Return the fast form of a function: same parameters, same documentation, and the function itself behind it."""
    signature = inspect.signature(function)
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    shown = signature.replace(parameters=bare, return_annotation=inspect.Signature.empty)
    documentation = f"{function.__name__}{shown}\n--\n\n{inspect.getdoc(function)}"
    return cast("Function", _entry.bind(function.__name__, function, function.__module__, documentation))
