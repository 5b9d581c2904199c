"""Windows into the exact fills: what a kernel holds before its last rounding, and the exact functions it falls back on.

Not part of the contract.  The conformance suite compares the first with the contract's chain and with the bound that
the rounding tests trust, in the instruction-set level in force; a value before its rounding is never seen otherwise.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fucina.fast._native import ffi, lib

__all__ = [
    "exact_cos",
    "exact_ln",
    "exact_sin",
    "gaussian_bound",
    "gaussian_f64",
    "gumbel_bound",
    "gumbel_f64",
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
