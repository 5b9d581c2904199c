"""Windows: what a kernel of an exact fill holds before its last rounding, single operations, shared calls.

Not part of the contract.  The conformance suite compares the first with the contract's chain and with the bound that
the rounding tests trust, in the instruction-set level in force; a value before its rounding is never seen otherwise.
The last makes sure that what it compares with one thread's work was done by several.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fucina.fast._native import ffi, lib
from fucina.spec.errors import InvalidBounds

__all__ = [
    "exact_cos",
    "exact_ln",
    "exact_sin",
    "gaussian_bound",
    "gaussian_f64",
    "gumbel_bound",
    "gumbel_f64",
    "operate",
    "share_always",
    "shared_calls",
]


def gaussian_f64(seed: int, pair: int, scale: float, n_pairs: int) -> npt.NDArray[np.float64]:
    """Return the kernel's values of consecutive gaussian pairs before they are rounded to f32.

    Parameters
    ----------
    seed, pair : int
        The stream, and the index of the first pair.
    scale : float
        The scale, already an f32 value.
    n_pairs : int
        How many pairs.

    Returns
    -------
    ndarray of float64, shape (2 * n_pairs,)

    Clauses: RNG-GAUSS-1, NUM-ELEM-1
    """
    out = np.empty(2 * n_pairs)
    lib.fc_gaussian_f64(seed, pair, scale, ffi.cast("double *", out.ctypes.data), n_pairs)
    return out


def gumbel_f64(seed: int, first: int, n: int) -> npt.NDArray[np.float64]:
    """Return the kernel's values of consecutive gumbel elements before they are rounded to f32.

    Returns
    -------
    ndarray of float64, shape (n,)

    Clauses: RNG-GUMBEL-1, NUM-ELEM-1
    """
    out = np.empty(n)
    lib.fc_gumbel_f64(seed, first, ffi.cast("double *", out.ctypes.data), n)
    return out


def gaussian_bound() -> float:
    """Return b of ``|kernel - contract| <= b * |contract|``, which the gaussian rounding tests trust.

    Clauses: NUM-ELEM-1
    """
    return float(lib.fc_gaussian_bound())


def gumbel_bound() -> float:
    """Return b of ``|kernel - contract| <= b * (1 + |contract|)``, which the gumbel rounding tests trust.

    Clauses: NUM-ELEM-1
    """
    return float(lib.fc_gumbel_bound())


def exact_ln(x: float) -> float:
    """Return the correctly rounded natural logarithm of a positive finite f64.

    Clauses: NUM-ELEM-1
    """
    return float(lib.fc_exact_ln(x))


def exact_sin(x: float) -> float:
    """Return the correctly rounded sine of an f64 in [0, 8).

    Clauses: NUM-ELEM-1
    """
    return float(lib.fc_exact_sin(x))


def exact_cos(x: float) -> float:
    """Return the correctly rounded cosine of an f64 in [0, 8).

    Clauses: NUM-ELEM-1
    """
    return float(lib.fc_exact_cos(x))


_OPERATIONS = {
    "add": lib.FC_OPERATE_ADD,
    "subtract": lib.FC_OPERATE_SUBTRACT,
    "multiply": lib.FC_OPERATE_MULTIPLY,
    "divide": lib.FC_OPERATE_DIVIDE,
    "sqrt": lib.FC_OPERATE_SQRT,
    "to_f32": lib.FC_OPERATE_TO_F32,
}


def operate(kind: str, operation: str, a: int, b: int = 0) -> int:
    """Do one floating-point operation in the environment of the calling thread, which also gets its exceptions.

    Parameters
    ----------
    kind : {"f32", "f64"}
        The format of the operands.
    operation : {"add", "subtract", "multiply", "divide", "sqrt", "to_f32"}
        The last is for f64 alone.
    a, b : int
        The patterns of the operands; ``sqrt`` and ``to_f32`` have one.

    Returns
    -------
    int
        The pattern of the result.

    Raises
    ------
    InvalidBounds
        For an operation that there is not.

    Clauses: FPENV-SET-2, FPENV-FLAGS-1
    """
    out = ffi.new("uint32_t *" if kind == "f32" else "uint64_t *")
    call = {"f32": lib.fc_operate_f32, "f64": lib.fc_operate_f64}.get(kind)
    if call is None or call(_OPERATIONS.get(operation, -1), a, b, out) != lib.FC_OK:
        raise InvalidBounds(f"there is no operation {operation!r} of {kind!r}", clause="FPENV-SET-2")
    return int(out[0])


def share_always(on: bool) -> None:
    """Let every bulk call that is large enough, and gets the team, have a part of its work done by another thread.

    Otherwise the calling thread works alone for a while after the team has lost time, or before a worker has come.

    Parameters
    ----------
    on : bool
        Whether from now on; it is off at first.

    Clauses: TEAM-BULK-1, TEAM-BULK-2
    """
    lib.fc_bulk_share_always(bool(on))


def shared_calls() -> int:
    """Return of how many bulk calls of this process another thread than the calling one has done a part.

    Clauses: TEAM-BULK-1
    """
    return int(lib.fc_bulk_shared_calls())
