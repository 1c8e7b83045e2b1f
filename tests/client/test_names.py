"""Names of tools among the tools of many servers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_mcp.client.names import distinct_prefixes, parse_tool_name, tool_name


@pytest.mark.parametrize(
    ("server", "tool", "name"),
    [
        ("my-cool-server", "read_file", "mcp__my_cool_server__read_file"),
        ("my_server", "read_file", "mcp__my_server__read_file"),
        ("a.b c/d", "t", "mcp__a_b_c_d__t"),
        ("grüße", "t", "mcp__gr__e__t"),
        ("A9_", "t", "mcp__A9___t"),
        ("", "x", "mcp____x"),
        ("a", "", "mcp__a__"),
        ("a", "b/c.d-e é", "mcp__a__b/c.d-e é"),
    ],
)
def test_a_tool_is_named_after_its_server(server: str, tool: str, name: str) -> None:
    """client-behaviour 9: the server is normalised, the tool unchanged."""
    assert tool_name(server, tool) == name


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("mcp__my_server__read_file", ("my_server", "read_file")),
        ("mcp__server__read_file_content", ("server", "read_file_content")),
        ("mcp__a__b__c", ("a", "b__c")),
        ("mcp__a__", ("a", "")),
        ("mcp____x", ("", "x")),
        ("mcp__a___t", ("a", "_t")),
        ("mcp__nodelimiter", None),
        ("mcp__", None),
        ("some_tool", None),
        ("", None),
        ("MCP__a__b", None),
        ("mcp_a__b", None),
        (None, None),
        (7, None),
        (b"mcp__a__b", None),
    ],
)
def test_a_name_is_taken_apart_at_the_first_separator(
    name: object, parts: tuple[str, str] | None
) -> None:
    """client-behaviour 9, check 49: every row."""
    assert parse_tool_name(name) == parts


def test_the_plain_rule_is_not_its_own_reverse() -> None:
    """client-behaviour 9: known, and why a group has prefixes."""
    assert parse_tool_name(tool_name("my__srv", "t")) == ("my", "srv__t")
    assert parse_tool_name(tool_name("a_", "t")) == ("a", "_t")


def test_servers_of_one_spelling_get_prefixes_of_their_own() -> None:
    servers = ["a-b", "a.b", "a_b", "a_b_2", "a__b", "c_", "ü", "-", "a-b"]
    assert distinct_prefixes(servers) == {
        "a-b": "a_b",
        "a.b": "a_b_2",
        "a_b": "a_b_3",
        "a_b_2": "a_b_2_2",
        "a__b": "a_b_4",
        "c_": "c",
        "ü": "server",
        "-": "server_2",
    }


def test_an_ordinary_name_is_its_own_prefix() -> None:
    assert distinct_prefixes(["files", "my_server", "_x"]) == {
        "files": "files",
        "my_server": "my_server",
        "_x": "_x",
    }


servers = st.lists(st.text("ab_-2é", max_size=5), max_size=8)
tools = st.text("ab_", max_size=5)


@given(servers, st.lists(tools, min_size=1, max_size=3))
def test_a_name_with_a_prefix_leads_back_to_one_server_and_tool(
    names: list[str], called: list[str]
) -> None:
    """Ours: whatever servers and tools are called."""
    prefixes = distinct_prefixes(names)
    full = {
        tool_name(prefix, tool): (prefix, tool) for prefix in prefixes.values() for tool in called
    }
    assert len(full) == len(prefixes) * len(set(called))
    assert all(parse_tool_name(name) == parts for name, parts in full.items())


@given(servers, servers)
def test_what_is_added_later_changes_no_name(names: list[str], more: list[str]) -> None:
    """Ours: an added server cannot take the tools of another."""
    before = distinct_prefixes(names)
    after = distinct_prefixes([*names, *more])
    assert {server: after[server] for server in before} == before
