"""Lists in pages, and cursors that stay true while the list changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from raxol_mcp import (
    Prompt,
    Resource,
    ResourceTemplate,
    Server,
    allow,
    deny,
    nonblocking,
)
from raxol_mcp.server.authorizer import AuthorizationContext, Decision
from raxol_mcp.server.definitions import Definition, Kind
from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.wire.meta import EraName
from tests.acceptance.world import (
    Client,
    Counted,
    Json,
    in_both_eras,
    names,
    tool,
)
from tests.promises import promise

LISTS: list[tuple[str, str, Kind, Callable[[str], Definition]]] = [
    ("tools/list", "tools", Kind.TOOLS, tool),
    (
        "resources/list",
        "resources",
        Kind.RESOURCES,
        lambda name: Resource(uri=f"mem://{name}", name=name, callback=Counted()),
    ),
    (
        "resources/templates/list",
        "resourceTemplates",
        Kind.TEMPLATES,
        lambda name: ResourceTemplate(
            uri_template=f"mem://{name}/{{x}}", name=name, callback=Counted()
        ),
    ),
    (
        "prompts/list",
        "prompts",
        Kind.PROMPTS,
        lambda name: Prompt(name=name, callback=Counted()),
    ),
]
every_list = pytest.mark.parametrize(
    ("method", "member", "kind", "make"), LISTS, ids=[entry[0] for entry in LISTS]
)


async def page(
    client: Client, method: str, member: str, cursor: object = None
) -> tuple[list[object], object]:
    """Return the names on a page and the cursor of the next; None when it is the last."""
    params: Json = {} if cursor is None else {"cursor": cursor}
    result = await client.result(method, params)
    assert set(result) <= {member, "nextCursor"}
    return names(result[member]), result.get("nextCursor")


async def pages(client: Client, method: str, member: str) -> list[list[object]]:
    """Read a list to its end."""
    found, cursor = await page(client, method, member)
    every = [found]
    while cursor is not None:
        found, cursor = await page(client, method, member, cursor)
        every.append(found)
    return every


@promise("methods.list_tools", "methods.list_resources", "methods.list_prompts")
@every_list
@in_both_eras
def test_a_long_list_comes_in_pages_without_gaps(
    era: EraName, method: str, member: str, kind: Kind, make: Callable[[str], Definition]
) -> None:
    """MCP server/utilities/pagination: the last page has no cursor."""

    async def scenario() -> None:
        server = Server(page_size=3)
        client = Client(server, era=era)
        assert await pages(client, method, member) == [[]]
        order = [f"n{number}" for number in range(7)]
        server.registry.register(*map(make, order))
        assert await pages(client, method, member) == [order[0:3], order[3:6], order[6:7]]
        server.registry.unregister(kind, *[make("n6").key])
        assert await pages(client, method, member) == [order[0:3], order[3:6]], "no empty page"

    run_virtual(scenario)


@every_list
@in_both_eras
def test_a_cursor_stays_true_while_the_list_changes(
    era: EraName, method: str, member: str, kind: Kind, make: Callable[[str], Definition]
) -> None:
    """MCP server/utilities/pagination: stable cursors: nothing twice, nothing left out."""

    async def scenario() -> None:
        server = Server(page_size=2)
        client = Client(server, era=era)
        server.registry.register(*(make(name) for name in "abcdef"))
        found, cursor = await page(client, method, member)
        assert found == ["a", "b"]
        server.registry.unregister(kind, make("a").key, make("b").key, make("c").key)
        server.registry.register(make("d"), make("g"), make("a"))
        found, cursor = await page(client, method, member, cursor)
        assert found == ["d", "e"]
        found, cursor = await page(client, method, member, cursor)
        assert found == ["f", "g"]
        assert await page(client, method, member, cursor) == (["a"], None)

    run_virtual(scenario)


@every_list
@in_both_eras
def test_a_cursor_that_is_not_ours_is_refused(
    era: EraName, method: str, member: str, kind: Kind, make: Callable[[str], Definition]
) -> None:
    """MCP server/utilities/pagination: -32602; a cursor is of its own list."""

    async def scenario() -> None:
        server = Server(page_size=1)
        client = Client(server, era=era)
        for other, _, _, make_other in LISTS:
            server.registry.register(make_other(f"{other[0]}1"), make_other(f"{other[0]}2"))
        foreign = [
            (await page(client, other, other_member))[1]
            for other, other_member, _, _ in LISTS
            if other != method
        ]
        _, own = await page(client, method, member)
        wrong = [*foreign, "", "0", "nonsense", f"{own}x", str(own)[:-1], "ü", "a" * 10_000, 5, []]
        for cursor in wrong:
            error = await client.error(method, {"cursor": cursor})
            assert error["code"] == -32602, cursor
        assert (await page(client, method, member, own))[0] != []

    run_virtual(scenario)


@in_both_eras
def test_a_filtered_list_has_full_pages_and_shows_nothing_of_what_is_hidden(era: EraName) -> None:
    """server-behaviour §6.4, with pages: a page is not shorter for what is not in it."""
    asked: list[str] = []

    @nonblocking
    def even_ones(
        name: str, arguments: Mapping[str, object], context: AuthorizationContext
    ) -> Decision:
        asked.append(name)
        return allow() if int(name[1:]) % 2 == 0 else deny()

    async def scenario() -> None:
        server = Server(authorizer=even_ones, page_size=3)
        server.registry.register(*(tool(f"t{number}") for number in range(12)))
        client = Client(server, era=era)
        even = [f"t{number}" for number in range(0, 12, 2)]
        assert await pages(client, "tools/list", "tools") == [even[:3], even[3:]]
        server.registry.register(*(tool(f"t{number}") for number in range(13, 500, 2)))
        assert await pages(client, "tools/list", "tools") == [even[:3], even[3:]]

    run_virtual(scenario)


@in_both_eras
def test_a_filtered_list_goes_on_where_it_was_when_its_last_entry_is_gone(era: EraName) -> None:
    """MCP server/utilities/pagination: stable cursors, also behind an authorizer."""

    @nonblocking
    def lower(
        name: str, arguments: Mapping[str, object], context: AuthorizationContext
    ) -> Decision:
        return allow() if name.islower() else deny()

    async def scenario() -> None:
        server = Server(authorizer=lower, page_size=2)
        server.registry.register(*(tool(name) for name in "aBcDefG"))
        client = Client(server, era=era)
        found, cursor = await page(client, "tools/list", "tools")
        assert found == ["a", "c"]
        server.registry.unregister(Kind.TOOLS, "c", "D")
        found, cursor = await page(client, "tools/list", "tools", cursor)
        assert (found, cursor) == (["e", "f"], None)

    run_virtual(scenario)


@in_both_eras
def test_ten_thousand_tools_are_listed_in_pages_of_a_hundred(era: EraName) -> None:
    """ours: `page_size`, 100 by default."""

    async def scenario() -> None:
        server = Server()
        order = [f"t{number}" for number in range(10_000)]
        server.registry.register(*map(tool, order))
        every = await pages(Client(server, era=era), "tools/list", "tools")
        assert [len(found) for found in every] == [100] * 100
        assert [name for found in every for name in found] == order

    run_virtual(scenario)
