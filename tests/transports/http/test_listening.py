"""GET and DELETE: what they have to be."""

from __future__ import annotations

import pytest

from raxol_mcp.testing.virtual_loop import run_virtual
from tests.transports.http.world import World


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"accept": "application/json"}, 406),
        ({"accept": None}, 200),
        ({"accept": "*/*"}, 200),
        ({"mcp-session-id": None}, 400),
        ({"mcp-session-id": "unknown"}, 404),
        ({"mcp-protocol-version": "2025-06-18"}, 400),
        ({"mcp-protocol-version": None}, 200),
        ({"mcp-protocol-version": "2026-07-28"}, 405),
        ({"last-event-id": "unknown.1"}, 400),
    ],
)
def test_a_get_says_which_session_it_listens_to(
    changes: dict[str, str | None], status: int
) -> None:
    """MCP 2025-11-25 basic/transports §Listening for Messages from the Server"""

    async def main() -> None:
        world = World()
        session = await world.session()
        headers = {**session.headers, "content-type": None, **changes}
        listening = world.http.open("GET", "/mcp", headers)
        reply = await listening.head()
        assert reply.status == status
        if status == 405:
            assert reply.headers["allow"] == "POST, OPTIONS"
        listening.leave()
        await listening.ended()

    run_virtual(main)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"mcp-session-id": None}, 400),
        ({"mcp-session-id": "unknown"}, 404),
        ({"mcp-protocol-version": "2026-07-28"}, 405),
        ({}, 204),
    ],
)
def test_a_delete_says_which_session_it_ends(changes: dict[str, str | None], status: int) -> None:
    """MCP 2025-11-25 basic/transports §Session Management"""

    async def main() -> None:
        world = World()
        session = await world.session()
        reply = await world.http.send("DELETE", "/mcp", {**session.headers, **changes})
        assert reply.status == status

    run_virtual(main)


def test_a_stream_says_something_now_and_then() -> None:
    """Ours: docs/limits.md, keepalive"""

    async def main() -> None:
        import asyncio

        world = World(keepalive=15.0)
        session = await world.session()
        listening = session.listen()
        await listening.event()
        await asyncio.sleep(50)
        assert listening.reply.body.count(b":\n\n") == 3
        listening.leave()
        await listening.ended()
        assert world.stats()["streams"] == 0

    run_virtual(main)


def test_streams_have_a_bound() -> None:
    """Ours: docs/limits.md, max_streams"""

    async def main() -> None:
        world = World(max_streams=1)
        first, second = await world.session(), await world.session()
        listening = first.listen()
        await listening.event()
        assert (await second.listen().ended()).status == 503
        listening.leave()
        await listening.ended()

    run_virtual(main)


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18"])
def test_older_clients_are_not_sent_an_event_without_data(version: str) -> None:
    """MCP 2025-11-25 changelog: priming events are new there"""

    async def main() -> None:
        world = World()
        session = await world.session(version)
        listening = session.listen()
        await listening.head()
        world.server.notify("notifications/tools/list_changed")
        event = await listening.event()
        assert event.data
        listening.leave()
        await listening.ended()

    run_virtual(main)


def test_a_burst_of_equal_changes_is_one_event_and_cuts_nobody_off() -> None:
    """Ours: ADR-0014"""

    async def main() -> None:
        world = World()
        session = await world.session()
        listening = session.listen()
        await listening.event()
        for _ in range(2):
            for _ in range(1000):
                world.server.notify("notifications/tools/list_changed")
                world.server.notify("notifications/prompts/list_changed")
            told = [(await listening.message())["method"] for _ in range(2)]
            assert told == [
                "notifications/tools/list_changed",
                "notifications/prompts/list_changed",
            ]
        world.server.notify("notifications/odd", {"last": True})
        assert (await listening.message())["method"] == "notifications/odd"
        listening.leave()
        await listening.ended()

    run_virtual(main)


def test_changes_that_nobody_hears_wait_once_and_push_nothing_out() -> None:
    """Ours: ADR-0014, ADR-0016"""

    async def main() -> None:
        world = World()
        session = await world.session("2025-06-18")
        world.server.notify("notifications/odd", {"first": True})
        for _ in range(1000):
            world.server.notify("notifications/tools/list_changed")
        listening = session.listen()
        told = [(await listening.message())["method"] for _ in range(2)]
        assert told == ["notifications/odd", "notifications/tools/list_changed"]
        world.server.notify("notifications/tools/list_changed")
        assert (await listening.message())["method"] == "notifications/tools/list_changed"
        listening.leave()
        await listening.ended()

    run_virtual(main)
