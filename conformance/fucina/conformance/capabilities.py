"""What an implementation claims: chapters of the specification.

The capability that a clause needs is its chapter.  A module names the chapters it claims in ``capabilities``; every
clause of another chapter is "not claimed" for it, which the matrix and the summary say in so many words.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

from fucina.conformance.errors import UsageError, suggestion

if TYPE_CHECKING:
    from fucina.spec.clauses import Clause

__all__ = ["GENERAL", "capabilities_of", "chapters"]

GENERAL = frozenset({"numbers", "errors"})
"""The chapters whose rules are about the functions of the other chapters.

A test that names clauses of several chapters needs a target that claims them all, but for these: a test of ``rng`` that
also looks at an error message runs on a target that does not claim ``errors``, and counts for ``rng`` alone.
"""


def chapters(clauses: Mapping[str, Clause]) -> list[str]:
    """Return the chapters in the order in which the specification has them."""
    return list(dict.fromkeys(c.chapter for c in clauses.values()))


def capabilities_of(module: ModuleType, known: list[str]) -> frozenset[str]:
    """Return the chapters that ``module`` claims.

    Raises
    ------
    UsageError
        If the module declares none, or one that the specification does not have.
    """
    name = module.__name__
    declared = getattr(module, "capabilities", None)
    if isinstance(declared, str) or not isinstance(declared, frozenset | set | tuple | list):
        raise UsageError(
            f"{name} does not say what it claims: define `capabilities = frozenset({{...}})` with chapters out of "
            f"{', '.join(known)}"
        )
    for chapter in declared:
        if chapter not in known:
            raise UsageError(
                f"{name} claims the chapter {chapter!r}, which the specification does not have; it has "
                f"{', '.join(known)}{suggestion(str(chapter), known)}"
            )
    if not declared:
        raise UsageError(f"{name} claims no chapter at all, so there is nothing to check; chapters: {', '.join(known)}")
    return frozenset(declared)
