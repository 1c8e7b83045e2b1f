"""client/side_by_side.py: nothing that one does matters to the others. On virtual time."""

import asyncio
import contextlib
import logging

import pytest

from raxol_mcp.client.side_by_side import Crashed, _left_behind, side_by_side
from raxol_mcp.errors import (
    Busy,
    RaxolError,
    TimedOut,
)
from raxol_mcp.testing.virtual_loop import run_virtual


async def good() -> str:
    await asyncio.sleep(1.0)
    return "good"


async def never() -> str:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets it")


async def stubborn() -> str:
    """Wait for 60 s whatever happens."""
    ends_at = asyncio.get_running_loop().time() + 60.0
    while (left := ends_at - asyncio.get_running_loop().time()) > 0:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(left)
    return "late"


async def refuses() -> str:
    raise Busy("busy")


async def crashes() -> str:
    raise ZeroDivisionError("sekrit")


async def exits() -> str:
    raise SystemExit(3)


async def cancels_itself() -> str:
    raise asyncio.CancelledError


def now() -> float:
    return asyncio.get_running_loop().time()


def test_each_ends_as_it_would_alone(caplog: pytest.LogCaptureFixture) -> None:
    """ours: an exit, a crash, a cancellation and a hang are one server's affair."""

    async def scenario() -> tuple[dict[str, str | RaxolError], float, int]:
        work = {
            "good": good,
            "never": never,
            "refuses": refuses,
            "crashes": crashes,
            "exits": exits,
            "cancels_itself": cancels_itself,
        }
        ends = await side_by_side(work, patience=5.0)
        return ends, now(), len(asyncio.all_tasks())

    with caplog.at_level(logging.ERROR):
        ends, ended_at, tasks = run_virtual(scenario)
    assert list(ends) == ["good", "never", "refuses", "crashes", "exits", "cancels_itself"]
    assert ends.pop("good") == "good"
    kinds = {key: (type(error), str(error)) for key, error in ends.items()}
    assert kinds == {
        "never": (TimedOut, "not done within 5.0 s"),
        "refuses": (Busy, "busy"),
        "crashes": (Crashed, "ZeroDivisionError"),
        "exits": (Crashed, "SystemExit"),
        "cancels_itself": (Crashed, "CancelledError"),
    }
    assert (ended_at, tasks) == (5.0, 1)
    assert [record.message for record in caplog.records] == [
        "a client failed in a way it should not"
    ] * 2


def test_nobody_waits_for_what_will_not_be_cancelled() -> None:
    """K11: one second after the bound the others have their answers."""

    async def scenario() -> None:
        ends = await side_by_side({"a": stubborn, "b": good}, patience=5.0)
        assert isinstance(ends["a"], TimedOut)
        assert ends["b"] == "good"
        assert now() == 6.0
        assert len(_left_behind) == 1
        await asyncio.sleep(60.0)
        assert not _left_behind

    run_virtual(scenario)


def test_who_is_cancelled_cancels_all() -> None:
    async def scenario() -> None:
        waiting = asyncio.create_task(side_by_side({"a": never, "b": never}, patience=5.0))
        await asyncio.sleep(1.0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert now() == 1.0
        assert len(asyncio.all_tasks()) == 1

    run_virtual(scenario)


def test_cancelled_before_anything_began_nothing_begins() -> None:
    began: list[str] = []

    async def begins() -> None:
        began.append("x")

    async def scenario() -> None:
        waiting = asyncio.create_task(side_by_side({"a": begins}, patience=5.0))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    run_virtual(scenario)
    assert began == []


def test_nothing_to_do_is_done_at_once() -> None:
    async def scenario() -> tuple[dict[str, RaxolError | None], float]:
        return await side_by_side({}, patience=5.0), now()

    assert run_virtual(scenario) == ({}, 0.0)
