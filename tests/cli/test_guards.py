"""The options that guard a server: what they take, and what they do to it."""

import asyncio

import click
import pytest

from raxol_mcp import ConfigurationError, Limits, MemoryTransport, Server, allow_all
from raxol_mcp.cli.guards import Guards
from tests.cli.conftest import WriteModule

Asked = tuple[str, dict[str, object]]


def make_server() -> Server:
    """Return a server with one sensitive tool, one resource and no guard."""
    server = Server("guarded")

    @server.tool(destructive=True)
    async def wipe() -> str:
        """Wipe."""
        return "wiped"

    @server.tool
    async def look() -> str:
        """Look."""
        return "seen"

    return server


def answers(server: Server, *requests: Asked) -> list[str]:
    """Return the answers to some requests, as text."""

    async def talk() -> list[str]:
        async with server, MemoryTransport(server) as client:
            return [str(await client.request(method, params)) for method, params in requests]

    return asyncio.run(talk())


WIPE: Asked = ("tools/call", {"name": "wipe"})
LOOK: Asked = ("tools/call", {"name": "look"})


@pytest.mark.parametrize(
    "names", [("look", "other"), ("look,other",), (" look , other ,",), ("other", "look")]
)
def test_named_tools_are_allowed_and_no_other(names: tuple[str, ...]) -> None:
    server = make_server()
    Guards(allow_tools=names).apply(server)
    seen, denied = answers(server, LOOK, WIPE)
    assert "seen" in seen
    assert "not_allowlisted" in denied


@pytest.mark.parametrize("texts", [("",), (",",), (" , ,",), ("look", "")])
@pytest.mark.parametrize("option", ["allow_tools", "allow_reads"])
def test_a_list_that_names_nothing_is_refused(option: str, texts: tuple[str, ...]) -> None:
    """ours: an empty variable of a shell decides nothing."""
    spelt = option.replace("_", "-")
    with pytest.raises(click.UsageError) as caught:
        Guards(**{option: texts})  # type: ignore[arg-type]  # a row of the table
    assert caught.value.message == f"--{spelt} names nothing: give a name, or leave it out"


def test_a_name_without_a_tool_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    Guards(allow_tools=("look,lok",)).apply(make_server())
    assert [record.getMessage() for record in caplog.records] == [
        "--allow-tools names 'lok', and there is no such tool yet"
    ]


def test_every_tool_can_be_allowed() -> None:
    server = make_server()
    assert server.refusals() != []
    Guards(allow_all_tools=True).apply(server)
    assert server.refusals() == []
    assert server.authorization_configured()
    assert "wiped" in answers(server, WIPE)[0]


def test_an_authorizer_replaces_the_servers_own_and_counts_as_configured(
    write_module: WriteModule,
) -> None:
    write_module(
        "policy_guards", "from raxol_mcp import deny\ndef no(n, a, c): return deny('no')\n"
    )
    server = make_server()
    server.guard(authorizer=allow_all(), source="default")
    assert not server.authorization_configured()
    Guards(authorizer="policy_guards:no").apply(server)
    assert server.authorization_configured()
    assert '"detail":"no"' in answers(server, LOOK)[0]


def test_named_reads_are_allowed_and_no_other() -> None:
    server = make_server()
    reads = ("tools/list, prompts/list", "resources/read")
    Guards(allow_reads=reads, allow_all_tools=True).apply(server)
    assert server.read_authorization_configured()
    listed, denied = answers(server, ("tools/list", {}), ("resources/list", {}))
    assert "look" in listed
    assert "-31001" in denied


def test_a_read_authorizer_decides_about_reads(write_module: WriteModule) -> None:
    write_module("policy_reads", "from raxol_mcp import deny\ndef no(n, a, c): return deny(n)\n")
    server = make_server()
    Guards(read_authorizer="policy_reads:no", allow_all_tools=True).apply(server)
    assert "-31001" in answers(server, ("tools/list", {}))[0]


def test_nothing_named_leaves_the_server_as_it_is() -> None:
    server = make_server()
    before = server.limits
    Guards().apply(server)
    assert server.authorizer is None
    assert not server.read_authorization_configured()
    assert server.limits is before


def test_bounds_replace_those_of_the_server() -> None:
    server = Server(limits=Limits(max_depth=7))
    Guards(max_in_flight=3, callback_timeout=1.5, elicitation_timeout=2.5).apply(server)
    assert server.limits == Limits(
        max_depth=7, max_in_flight=3, callback_timeout=1.5, elicitation_timeout=2.5
    )


def test_bounds_that_contradict_the_servers_own_are_refused() -> None:
    server = Server(limits=Limits(max_in_flight_per_connection=8))
    with pytest.raises(ConfigurationError, match="must not exceed max_in_flight"):
        Guards(max_in_flight=3).apply(server)


def test_a_server_that_has_started_keeps_its_guards_and_bounds() -> None:
    async def started() -> None:
        async with Server() as server:
            for change in (Guards(allow_all_tools=True), Guards(max_in_flight=3)):
                with pytest.raises(ConfigurationError, match="has started"):
                    change.apply(server)

    asyncio.run(started())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"allow_all_tools": True, "allow_tools": ("a",)},
            "--allow-tools and --allow-all-tools exclude each other: name one",
        ),
        (
            {"authorizer": "a:b", "allow_all_tools": True},
            "--allow-all-tools and --authorizer exclude each other: name one",
        ),
        (
            {"read_authorizer": "a:b", "allow_reads": ("tools/list",)},
            "--allow-reads and --read-authorizer exclude each other: name one",
        ),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    options: dict[str, object], sentence: str
) -> None:
    with pytest.raises(click.UsageError) as caught:
        Guards(**options)  # type: ignore[arg-type]  # a row of the table
    assert caught.value.message == sentence


@pytest.mark.parametrize("name", ["tools/lsit", "tools/call", "initialize"])
def test_a_read_that_does_not_exist_is_refused(name: str) -> None:
    with pytest.raises(click.UsageError, match=f"names '{name}', which is none of completion/"):
        Guards(allow_reads=(f"tools/list,{name}",))
