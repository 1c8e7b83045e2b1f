"""`focus`: what a lens leaves of a listing, and whose lens it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_mcp import ConfigurationError, Server, allow, deny
from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.views.focus import MAX_LENSES, Focus, FocusLens, Lenses, Mode
from raxol_mcp.views.synchronizer import Synchronizer
from tests.acceptance.world import Client, decides, names, settled, tool
from tests.views.screens import Screen, button, field

LISTED = [
    *("search.type_into", "search.get_value", "save.click", "quit.click"),
    *("discover_tools", "start_session", "agent.reset"),
]
DERIVED = frozenset(LISTED[:4])
KEPT = frozenset({"discover_tools"})
SEARCH = frozenset(LISTED[:2])
SAVE = frozenset({"save.click"})


def look(
    mode: Mode, focused: frozenset[str] = frozenset(), hovered: frozenset[str] = frozenset()
) -> list[str]:
    """Look at everything through a lens with room."""
    return FocusLens(mode, 15).filter(LISTED, Focus(DERIVED, focused, hovered, KEPT))


def test_what_has_the_focus_comes_with_what_belongs_to_no_node() -> None:
    """check 102. A dot in a name does not make a tool derived: `agent.reset` is not."""
    expected = ["search.type_into", "search.get_value"]
    others = ["discover_tools", "start_session", "agent.reset"]
    assert look("focused", SEARCH) == [*expected, *others]
    assert look("focused", SEARCH, SAVE) == [*expected, *others]
    assert look("hover", SEARCH, SAVE) == [*expected, "save.click", *others]
    assert look("hover", SEARCH, SEARCH) == [*expected, *others]
    assert look("hover", SEARCH) == [*expected, *others]
    assert look("hover", frozenset(), SAVE) == ["save.click", *others]


def test_without_a_focus_and_without_a_mode_everything_is_shown() -> None:
    """server-behaviour §13.3."""
    assert look("all", SEARCH, SAVE) == LISTED
    assert look("focused") == LISTED
    assert look("hover") == LISTED


def test_what_finds_the_others_is_never_left_out() -> None:
    """ours: else nobody could find what was."""
    focus = Focus(DERIVED, SEARCH, frozenset(), KEPT)
    assert FocusLens("all", 2).filter(LISTED, focus) == ["search.type_into", "discover_tools"]
    assert FocusLens("focused", 2).filter(LISTED, focus) == ["search.type_into", "discover_tools"]
    assert FocusLens("focused", 1).filter(LISTED, focus) == ["discover_tools"]
    several = Focus(DERIVED, SEARCH, frozenset(), frozenset({"discover_tools", "start_session"}))
    assert FocusLens("all", 1).filter(LISTED, several) == ["discover_tools"]


listings = st.lists(st.sampled_from(LISTED), max_size=12)
some = st.frozensets(st.sampled_from(LISTED))


@given(
    st.sampled_from(["all", "focused", "hover"]),
    st.integers(1, 8),
    listings,
    st.builds(lambda *parts: Focus(*parts), some, some, some, some),
)
def test_a_lens_shows_at_most_so_many_none_twice_and_nothing_new(
    mode: Mode, most: int, listed: list[str], focus: Focus
) -> None:
    """check 102."""
    shown = FocusLens(mode, most).filter(listed, focus)
    assert len(shown) <= most
    assert len(set(shown)) == len(shown)
    assert set(shown) <= set(listed)
    if len(set(listed)) <= most and mode == "all":
        assert set(shown) == set(listed)
    assert len(shown) == most or set(listed) & focus.kept <= set(shown)


@pytest.mark.parametrize(
    "given", [("near", 15), ("all", 0), ("all", -1), ("all", 1.5), ("all", True)]
)
def test_a_lens_that_cannot_be_meant_is_refused(given: tuple[object, object]) -> None:
    """ours."""
    with pytest.raises(ConfigurationError):
        FocusLens(*given)  # type: ignore[arg-type]  # wrong on purpose


# -- on a server ------------------------------------------------------------------------------


async def listed(client: Client) -> list[object]:
    """Return the names that a client is shown."""
    return names((await client.result("tools/list"))["tools"])


def told(client: Client) -> list[object]:
    """Return the methods of what was pushed."""
    return [push["method"] for push in client.pushes()]


def test_each_connection_looks_through_its_own_lens() -> None:
    """ours: ADR-0031."""

    async def scenario() -> None:
        screen = Screen(field("search", focused=True), button("save", hover=True), button("quit"))
        async with Server(authorizer=decides(allow(), **{"search.get_value": deny()})) as server:
            server.registry.register(tool("static"))
            lenses = Lenses(server, default=FocusLens("focused"))
            live = Synchronizer(
                server,
                session="todo",
                providers=screen.providers,
                snapshot=screen,
                qualified=False,
                lenses=lenses,
            )
            live.start()
            everything = Client(server, "everything")
            plain, hover, two = (Client(server, name) for name in ("plain", "hover", "two"))
            lenses.set("everything", None)
            lenses.set("hover", FocusLens("hover"))
            lenses.set("two", FocusLens("all", 2))
            whole = ["static", "discover_tools", "search.type_into", "save.click", "quit.click"]
            assert await listed(everything) == whole
            assert await listed(plain) == whole[:3]
            assert await listed(hover) == whole[:4]
            assert await listed(two) == whole[:2]
            two.end()
            assert lenses.of("two") == FocusLens("focused")
            live.stop()
            assert await listed(plain) == ["static"]

    run_virtual(scenario)


def test_a_focus_that_moves_changes_the_list_of_who_follows_it() -> None:
    """ours: ADR-0031: once per change, and not where nothing changed."""

    async def scenario() -> None:
        screen = Screen(button("a", focused=True), button("b"))
        async with Server() as server:
            lenses = Lenses(server)
            live = Synchronizer(
                server, session="s", providers=screen.providers, snapshot=screen, lenses=lenses
            )
            live.start()
            client = Client(server)
            await client.greet()
            await settled()
            client.pushes()
            screen.nodes = (button("a"), button("b", focused=True))
            live.sync()
            await settled()
            assert told(client) == []  # nobody looks through anything that follows it
            lenses.set("default", FocusLens("focused"))
            await settled()
            assert told(client) == ["notifications/tools/list_changed"]
            lenses.set("default", FocusLens("focused"))
            await settled()
            assert told(client) == []
            assert await listed(client) == ["s.discover_tools", "s.b.click"]
            screen.nodes = (button("a", focused=True), button("b"), button("c"))
            live.sync()
            live.sync()
            await settled()
            assert told(client) == ["notifications/tools/list_changed"]
            assert await listed(client) == ["s.discover_tools", "s.a.click"]
            live.sync()
            await settled()
            assert told(client) == []

    run_virtual(scenario)


def test_lenses_are_bounded() -> None:
    """docs/limits.md: past 1,024 connections, the longest set has the default."""

    async def scenario() -> None:
        lenses = Lenses(Server(), default=FocusLens("hover"))
        for at in range(MAX_LENSES + 1):
            lenses.set(at, None)
        assert lenses.of(0) == FocusLens("hover")
        assert lenses.of(1) is None
        lenses.set(1, FocusLens())
        lenses.set("new", None)
        assert lenses.of(1) == FocusLens()
        assert lenses.of(2) == FocusLens("hover")

    run_virtual(scenario)
