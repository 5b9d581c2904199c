"""The exceptions: names, bases, messages (clauses ERR-NAME-1, ERR-MSG-1)."""

import builtins
import copy
import pickle
import re

import pytest

from fucina.spec import clauses, errors

TABLE = dict(re.findall(r"\* - ``(\w+)``\n +- ``(\w+)``", clauses.load()["ERR-NAME-1"].text))
ABSTRACT = {"FucinaError", "TensorError"}


def test_the_table_lists_every_exception() -> None:
    assert set(TABLE) == set(errors.__all__) - ABSTRACT


@pytest.mark.parametrize("name", TABLE)
def test_an_exception_has_its_bases(name: str) -> None:
    exception = getattr(errors, name)
    assert issubclass(exception, errors.FucinaError)
    assert issubclass(exception, getattr(builtins, TABLE[name]))
    row = clauses.load()["ERR-NAME-1"].text.partition(f"* - ``{name}``")[2].partition("* - ")[0]
    assert issubclass(exception, errors.TensorError) == ("``TensorError``" in row)


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("clause", ["RNG-AT-1", None])
def test_message_and_clause_survive_copies(name: str, clause: str | None) -> None:
    error = getattr(errors, name)("what", clause=clause)
    assert str(error) == ("RNG-AT-1: what" if clause else "what")
    for twin in (copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        assert (type(twin), str(twin), twin.clause) == (type(error), str(error), clause)
