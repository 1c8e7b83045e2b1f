"""The garbage collector of a process that only serves."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from raxol_mcp.transports.http.collector import YOUNG_OBJECTS, collecting_rarely


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.enable()
    gc.set_threshold(*before)
    gc.unfreeze()


def test_it_looks_rarely_and_not_at_what_was_there_and_is_put_back() -> None:
    """Ours: ADR-0021"""
    gc.set_threshold(700, 10, 10)
    with collecting_rarely():
        assert gc.get_threshold() == (YOUNG_OBJECTS, 10, 10)
        assert gc.get_freeze_count() > 0
    assert gc.get_threshold() == (700, 10, 10)
    assert gc.get_freeze_count() == 0


def test_the_last_of_several_puts_it_back_whatever_their_order() -> None:
    """Ours: ADR-0021; a process may serve twice"""
    gc.set_threshold(700, 10, 10)
    first, second = ExitStack(), ExitStack()
    first.enter_context(collecting_rarely())
    second.enter_context(collecting_rarely())
    first.close()
    assert gc.get_threshold() == (YOUNG_OBJECTS, 10, 10)
    second.close()
    assert (gc.get_threshold(), gc.get_freeze_count()) == ((700, 10, 10), 0)


def test_it_is_put_back_after_a_failure() -> None:
    """Ours: ADR-0021"""
    gc.set_threshold(700, 10, 10)
    with pytest.raises(ValueError, match="serving"), collecting_rarely():
        raise ValueError("serving")
    assert (gc.get_threshold(), gc.get_freeze_count()) == ((700, 10, 10), 0)


@pytest.mark.parametrize("young", [0, YOUNG_OBJECTS + 1])
def test_a_threshold_that_somebody_chose_stays(young: int) -> None:
    """Ours: ADR-0021"""
    gc.set_threshold(young, 10, 10)
    with collecting_rarely():
        assert gc.get_threshold() == (young, 10, 10)
    assert gc.get_threshold() == (young, 10, 10)


def test_a_collector_that_is_off_and_objects_that_are_frozen_stay_so() -> None:
    """Ours: ADR-0021"""
    gc.disable()
    with collecting_rarely():
        assert not gc.isenabled()
        assert gc.get_freeze_count() == 0
    gc.enable()
    gc.freeze()
    frozen = gc.get_freeze_count()
    with collecting_rarely():
        pass
    assert gc.get_freeze_count() >= frozen > 0
