"""The examples of the specification, as its chapters have them: the printed results, and the same bits as the judge.

Each clause's examples run in a namespace of their own that holds ``fucina``, the implementation under test, and ``np``.
"""

from __future__ import annotations

import doctest
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import Mismatch
from fucina.spec import clauses

EXAMPLES = clauses.examples()

# the index of the clauses knows this name: it enters the test under each of the ids
each_example = pytest.mark.parametrize(
    "clause_id", [pytest.param(name, marks=clause(*shown)) for name, (_, shown) in EXAMPLES.items()]
)


def _run(impl: Any, clause_id: str) -> dict[str, Any]:
    """Run the examples of a clause; return the names that they bind."""
    names: dict[str, Any] = {"fucina": impl, "np": np, "__name__": "__example__"}
    test = doctest.DocTestParser().get_doctest(EXAMPLES[clause_id][0], names, clause_id, None, None)
    said: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    ended = runner.run(test, out=said.append, clear_globs=False)
    assert ended.attempted == len(test.examples) > 0
    if ended.failed:
        text = "\n".join(line for line in "".join(said).splitlines() if line.strip("*"))
        raise Mismatch(f"{clause_id}: {ended.failed} of {ended.attempted} examples: {text}", count=ended.failed)
    return {name: _bits(value) for name, value in test.globs.items() if not name.startswith("__")}


def _bits(value: Any) -> object:
    """Return what must be the same on two implementations, or ``None`` for what carries no value."""
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, tuple | list):
        return type(value).__name__, [_bits(v) for v in value]
    if isinstance(value, ModuleType | FunctionType | type):
        return None
    return type(value).__name__, np.float64(value).tobytes() if isinstance(value, float) else repr(value)


@each_example
def test_examples(impl: Any, clause_id: str) -> None:
    _run(impl, clause_id)


@each_example
def test_examples_in_lockstep(impl: Any, judge: Any, clause_id: str) -> None:
    got, expected = _run(impl, clause_id), _run(judge, clause_id)
    assert got.keys() == expected.keys()
    for name, bits in expected.items():
        if bits is not None and got[name] != bits:
            raise Mismatch(f"{clause_id}: {name} is {got[name]!r}, on the judge {bits!r}", count=1)
