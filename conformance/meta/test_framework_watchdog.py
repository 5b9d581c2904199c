"""A test that hangs ends the run, with the stacks of its threads; one that does not is left alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from meta.conftest import House

HANGING = """
import threading, time
import pytest
from fucina.conformance import clause, watchdog

watchdog.SECONDS = 1.0

@pytest.mark.usefixtures("watchdog")
@clause("RNG-AT-1")
def test_in_time(impl):
    pass

@clause("RNG-AT-1")
def test_not_watched(impl):
    time.sleep(1.5)

@pytest.mark.usefixtures("watchdog")
@clause("RNG-AT-1")
def test_too_long(impl):
    threading.Event().wait({seconds})
"""


def test_a_test_that_hangs_ends_the_run(house: House) -> None:
    ended = house.check(suite=HANGING.replace("{seconds}", "60"))
    assert ended.code == 1
    assert "Timeout (0:00:01)!" in ended.err
    assert "in test_too_long" in ended.err
    assert "in test_not_watched" not in ended.err


def test_the_timeout_of_pytest_itself_stays(house: House) -> None:
    house.check()  # writes the module
    house.write("test_it.py", HANGING.replace("{seconds}", "1.5"))
    options = ("-p", "fucina.conformance.plugin", "--impl", "third", "--clauses", "RNG-AT-1")
    ended = house.python("-m", "pytest", "-q", *options, "-o", "faulthandler_timeout=30", "test_it.py")
    assert ended.code == 0, ended.out + ended.err
    ended = house.python("-m", "pytest", "-q", *options, "test_it.py")
    assert ended.code == 1
    assert "in test_too_long" in ended.err
