"""client/tool_table.py: one name means one tool of one server, and keeps meaning it."""

from hypothesis import given
from hypothesis import strategies as st

from raxol_mcp.client.results import RemoteTool
from raxol_mcp.client.tool_table import GroupTool, ToolTable


def tool(name: str, description: str = "") -> RemoteTool:
    return RemoteTool(name, None, description, {"type": "object"})


def names(tools: list[GroupTool]) -> list[str]:
    return [found.name for found in tools]


def test_a_tool_has_its_servers_name_in_front() -> None:
    """The specification's Tool Namespacing."""
    table = ToolTable()
    read = tool("read", "Reads.")
    [found] = table.replace("my-files", [read])
    assert found == GroupTool("mcp__my_files__read", "my-files", read)
    assert (found.description, found.input_schema) == ("Reads.", {"type": "object"})
    assert table.find("mcp__my_files__read") is found
    assert table.find("mcp__my_files__write") is None
    assert table.find("read") is None


def test_a_name_that_could_be_taken_apart_in_two_ways_has_one_owner() -> None:
    """ours: the name alone does not say where the server's part ends."""
    table = ToolTable()
    assert names(table.replace("a", [tool("b__c"), tool("d")])) == ["mcp__a__b__c", "mcp__a__d"]
    assert names(table.replace("a__b", [tool("c"), tool("e")])) == ["mcp__a__b__e"]
    found = table.find("mcp__a__b__c")
    assert found is not None
    assert (found.server, found.tool.name) == ("a", "b__c")
    assert table.refused(["a", "a__b"]) == {"a__b": ["mcp__a__b__c"]}


def test_a_name_stays_with_its_server_until_that_server_gives_it_up() -> None:
    """K28: what a name means must not change behind the back of who is about to call it."""
    table = ToolTable()
    table.replace("a__b", [tool("c")])
    assert table.replace("a", [tool("b__c")]) == []
    assert names(table.replace("a__b", [tool("c", "changed")])) == ["mcp__a__b__c"]
    assert table.replace("a", [tool("b__c")]) == []
    table.replace("a__b", [])
    assert table.find("mcp__a__b__c") is None
    assert names(table.replace("a", [tool("b__c")])) == ["mcp__a__b__c"]
    assert table.refused(["a", "a__b"]) == {}


def test_a_server_that_lists_a_tool_twice_has_it_once() -> None:
    table = ToolTable()
    first, second = tool("x", "first"), tool("x", "second")
    [found] = table.replace("a", [first, second])
    assert found.tool is first
    assert table.refused(["a"]) == {"a": ["mcp__a__x"]}


SERVERS = st.sampled_from(["a", "b", "a__b", "a_", "_", "a__b__c", "a-", "a__"])
TOOLS = st.lists(st.sampled_from(["x", "b__x", "_x", "c__x", "b__c__x", "__x"]), max_size=5)


@given(st.lists(st.tuples(SERVERS, TOOLS), max_size=12))
def test_whatever_is_listed_no_name_changes_its_owner_by_force(
    steps: list[tuple[str, list[str]]],
) -> None:
    """K25, K28: after each list every name has one owner, who had it before or took a free one."""
    table = ToolTable()
    owners: dict[str, str] = {}
    for server, listed in steps:
        given_out = table.replace(server, map(tool, listed))
        kept = {name: owner for name, owner in owners.items() if owner != server}
        assert not kept.keys() & set(names(given_out))
        assert len(set(names(given_out))) == len(given_out)
        owners = kept | {found.name: server for found in given_out}
        for name, owner in owners.items():
            found = table.find(name)
            assert found is not None
            assert found.server == owner
