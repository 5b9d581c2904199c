"""The conformance suite: who is right, clause by clause, bit for bit.

``python -m fucina.conformance`` runs it; ``python -m fucina.conformance --help`` says how.  A test of the suite names
the clauses it checks with :func:`clause` and takes the fixture ``impl``, the implementation under test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

__all__ = ["clause"]


def clause(*ids: str) -> pytest.MarkDecorator:
    """Mark a test with the ids of the clauses that it checks.

    Parameters
    ----------
    *ids : str
        Clause ids, written out as literals: the index of the clauses reads them from the source.

    Returns
    -------
    pytest.MarkDecorator
        The mark ``pytest.mark.clause(*ids)``.  An unknown id, or a test of the suite without a clause, is a collection
        error.
    """
    import pytest  # here, so that `explain` works where only the library is installed

    if not ids or not all(isinstance(i, str) for i in ids):
        raise TypeError(f"clause() takes one or more clause ids such as 'RNG-AT-1', got {ids!r}")
    mark: pytest.MarkDecorator = pytest.mark.clause(*ids)
    return mark
