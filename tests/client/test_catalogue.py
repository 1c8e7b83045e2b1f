"""Lists of many pages, and their bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from raxol_mcp.client import catalogue
from raxol_mcp.client.catalogue import Fetch, Listing
from raxol_mcp.client.definitions import MAX_ENTRIES
from raxol_mcp.client.readers import InvalidResult
from raxol_mcp.errors import RequestFailed, TimedOut
from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.wire.jsonrpc import JSONObject
from tests.client.peers.clients import memory_client
from tests.client.peers.script import on, reply, script, silent


def as_they_are(items: Sequence[object]) -> tuple[list[object], list[str]]:
    return list(items), []


def listing() -> Listing[object]:
    return Listing("s", "tools/list", "tools", as_they_are, kind="tools", now=lambda: 0.0, mask=str)


def test_the_pages_of_a_list_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """ours: each page may be as large as a message, and there may be a thousand of them"""
    monkeypatch.setattr(catalogue, "_MAX_BYTES", 3 * 1024 * 1024)
    asked: list[object] = []

    async def fetch(method: str, params: JSONObject, _timeout: float) -> JSONObject:
        asked.append(params.get("cursor"))
        return {"tools": ["x" * 1024 * 1024], "nextCursor": str(len(asked))}

    async def main() -> None:
        with pytest.raises(RequestFailed, match="more than 3 MiB") as failed:
            await listing().read(fetch, timeout=1.0, lasting=True)
        assert failed.value.tag == "invalid_response"
        assert asked == [None, "1", "2"]

    asyncio.run(main())


def test_a_list_that_takes_too_long_says_how_long_it_was_given() -> None:
    """ours: the last page had what was left of the time, which tells nobody anything"""
    tools = on("tools/list", reply({"tools": [], "nextCursor": "a"}), times=1)

    async def main() -> None:
        slow = script("legacy", tools, on("tools/list", silent()))
        async with memory_client(slow) as (client, _):
            with pytest.raises(TimedOut, match=r"^tools/list: no answer within 7 s$") as late:
                await client.list_tools(timeout=7.0)
            assert late.value.reason is not None

    run_virtual(main)


class Pages:
    """A server's list, page by page, and a clock. Each page takes `takes` seconds."""

    def __init__(self, *pages: JSONObject, takes: float = 0.0) -> None:
        self.now = 0.0
        self.asked: list[tuple[object, float]] = []  # cursor, timeout
        self.meanwhile: Callable[[], None] = lambda: None
        self._pages = list(pages)
        self._takes = takes

    def clock(self) -> float:
        return self.now

    async def fetch(self, method: str, params: JSONObject, seconds: float) -> JSONObject:
        assert method == "tools/list"
        self.asked.append((params.get("cursor"), seconds))
        self.now += self._takes
        self.meanwhile()
        return self._pages[min(len(self.asked), len(self._pages)) - 1]

    def listing(
        self, clean: Callable[[Sequence[object]], tuple[list[object], list[str]]] = as_they_are
    ) -> Listing[object]:
        def mask(text: str) -> str:
            return text.replace("SECRET", "***")

        return Listing("s", "tools/list", "tools", clean, kind="tools", now=self.clock, mask=mask)


def page(*items: object, cursor: str | None = None, ttl: float | None = None) -> JSONObject:
    """Write one page; `ttl` is in seconds."""
    more: JSONObject = {} if cursor is None else {"nextCursor": cursor}
    return {"tools": list(items), **more} | ({} if ttl is None else {"ttlMs": ttl * 1000})


def read(
    found: Listing[object], fetch: Fetch, *, seconds: float = 30.0, lasting: bool = True
) -> list[object]:
    return asyncio.run(found.read(fetch, timeout=seconds, lasting=lasting))


def test_cursors_are_followed_to_the_end_and_an_empty_one_is_one() -> None:
    """MCP server/utilities/pagination: cursors are opaque"""
    pages = Pages(page(1, cursor=""), page(2, 3, cursor="b"), page(), takes=1.0)
    tools = pages.listing()
    assert read(tools, pages.fetch) == [1, 2, 3]
    assert pages.asked == [(None, 30.0), ("", 29.0), ("b", 28.0)]
    assert tools.kept == [1, 2, 3]
    assert tools.is_fresh()


def test_what_is_given_may_be_changed_without_changing_what_is_kept() -> None:
    pages = Pages(page(1))
    tools = pages.listing()
    read(tools, pages.fetch).clear()
    assert tools.kept == [1]


def test_a_cursor_that_comes_twice_is_an_error_and_nothing_is_kept() -> None:
    """ours: half a list is none"""
    pages = Pages(page(1, cursor="a"), page(2, cursor="b"), page(3, cursor="a"))
    tools = pages.listing()
    with pytest.raises(RequestFailed, match="the same cursor twice") as failed:
        read(tools, pages.fetch)
    assert failed.value.reason.path == ("invalid_response", "tools/list")
    assert (len(pages.asked), tools.kept, tools.is_fresh()) == (3, None, False)


def test_a_list_of_too_many_pages_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "_MAX_PAGES", 5)
    pages = Pages(*[page(cursor=str(number)) for number in range(9)])
    with pytest.raises(RequestFailed, match="more than 5 pages"):
        read(pages.listing(), pages.fetch)
    assert len(pages.asked) == 5


def test_no_page_is_asked_for_beyond_what_is_kept_of_a_list() -> None:
    pages = Pages(page(*range(MAX_ENTRIES), cursor="a"), page(1, cursor="b"), page(2))
    assert len(read(pages.listing(), pages.fetch)) == MAX_ENTRIES + 1
    assert len(pages.asked) == 2


def test_all_pages_together_have_the_timeout() -> None:
    pages = Pages(page(cursor="a"), page(cursor="b"), page(), takes=4.0)
    read(pages.listing(), pages.fetch, seconds=6.0)
    assert [left for _, left in pages.asked] == [6.0, 2.0, 0.0]


def test_a_page_that_is_none_is_an_error() -> None:
    pages = Pages({"tools": "many"})
    with pytest.raises(InvalidResult):
        read(pages.listing(), pages.fetch)


def test_what_is_left_out_of_a_list_is_in_the_log_without_secrets(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def clean(items: Sequence[object]) -> tuple[list[object], list[str]]:
        return [], [f"{item} is left out" for item in items]

    pages = Pages(page("SECRET", "b"))
    assert read(pages.listing(clean), pages.fetch) == []
    assert "s: *** is left out; b is left out" in caplog.text


@pytest.mark.parametrize(
    ("ttls", "lasting", "until"),
    [
        ([None], True, float("inf")),
        ([None], False, 0.0),
        ([0.0], True, 0.0),
        ([10.0], True, 11.0),
        ([10.0, 10.0], False, 11.0),
        ([10.0, 9.5], False, 11.0),
        ([10.0, 5.0], False, 7.0),
        ([10.0, None], True, 11.0),
        ([10.0, None], False, 0.0),
    ],
)
def test_a_list_is_kept_for_as_long_as_every_page_of_it_is_good(
    ttls: list[float | None], lasting: bool, until: float
) -> None:
    """MCP 2026-07-28 server/utilities/caching: from the moment the page came"""
    count = len(ttls)
    written = [
        page(number, ttl=ttl, cursor=None if number == count - 1 else str(number))
        for number, ttl in enumerate(ttls)
    ]
    pages = Pages(*written, takes=1.0)
    tools = pages.listing()
    assert not tools.is_fresh()
    read(tools, pages.fetch, lasting=lasting)
    if until == float("inf"):
        pages.now = 1e9
        assert tools.is_fresh()
        return
    pages.now = max(until - 0.01, pages.now)
    assert tools.is_fresh() is (until > 0.0)
    pages.now = max(until, pages.now)
    assert not tools.is_fresh()
    assert tools.kept is not None


@pytest.mark.parametrize("forgotten", [False, True])
def test_a_change_while_the_pages_are_read_makes_them_unfit_to_keep(forgotten: bool) -> None:
    """ours: the caller asked before it, whoever asks next must not get them"""
    pages = Pages(page(1), page(2, cursor="a"), page(3), page(4))
    tools = pages.listing()
    read(tools, pages.fetch)
    pages.meanwhile = tools.forget if forgotten else tools.changed
    assert read(tools, pages.fetch) == [2, 3]
    assert tools.kept == (None if forgotten else [1]), "a list is old, or of another session"
    assert not tools.is_fresh()
    pages.meanwhile = lambda: None
    assert read(tools, pages.fetch) == [4]
    assert tools.is_fresh()


def test_a_change_makes_a_list_old_and_a_new_session_makes_it_unknown() -> None:
    pages = Pages(page(1))
    tools = pages.listing()
    read(tools, pages.fetch)
    tools.changed()
    assert (tools.kept, tools.is_fresh()) == ([1], False)
    tools.forget()
    assert (tools.kept, tools.is_fresh()) == (None, False)
