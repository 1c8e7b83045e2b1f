"""`walker`: which tools a view has, and under which names."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_mcp import ConfigurationError
from raxol_mcp.views.tree import Node, Tree, walk
from raxol_mcp.views.walker import (
    MAX_PROBLEMS,
    MAX_TOOLS,
    Action,
    DerivedTool,
    checked_session,
    derive,
    derive_tools,
    is_sensitive,
    tool_name,
)
from tests.views.screens import PROVIDERS, Offers, box, button, field, trees

LOOK = Action(name="look", description="Look")
WIPE = Action(name="wipe", description="Wipe", destructive=True)


def named(tree: Tree, session: str | None = None) -> list[str]:
    """Return the names of a tree's tools."""
    return [tool.name for tool in derive_tools(tree, PROVIDERS, session=session)]


def test_tools_are_named_for_their_nodes_in_the_order_of_the_document() -> None:
    """server-behaviour §13.1."""
    tree = box(field("name"), box(button("save")), id="form")
    assert named(tree) == ["name.type_into", "name.get_value", "save.click"]


def test_a_session_comes_before_every_name() -> None:
    """ours: ADR-0031: names that two sessions cannot collide on."""
    assert named([button("save")], "todo") == ["todo.save.click"]


def test_without_an_id_a_node_has_no_tool() -> None:
    """check 99."""
    assert named([button(""), button(None)]) == []


def test_a_disabled_button_has_no_tool() -> None:
    """check 99; ours: ADR-0031: neither has one that is hidden, or that lies behind a modal."""
    marked = [button("a", disabled=True), button("b", hidden=True), button("c", covered=True)]
    assert named(marked) == []
    assert named(box(field("a"), disabled=True)) == []


def test_exclusion_takes_away_the_tools_of_the_node_alone() -> None:
    """check 99: mcp_exclude hides only itself."""
    tree = Node("button", "menu", {"label": "Menu"}, (button("quit"),), excluded=True)
    assert named(tree) == ["quit.click"]


def test_a_type_without_a_provider_has_no_tools_and_a_node_may_bring_its_own() -> None:
    """server-behaviour §13.1: the provider of a node wins."""
    chart = Node("chart", "sales")
    assert named(chart) == []
    own = Node("button", "sales", provider=Offers(LOOK, WIPE))
    assert named(own) == ["sales.look", "sales.wipe"]


def test_the_first_of_an_id_has_the_tools_and_the_others_are_reported() -> None:
    """ours: which one is meant must not be chance."""
    found = derive([button("a", "one"), button("a", "two")], PROVIDERS)
    assert [tool.action.description for tool in found.tools] == ["Press one"]
    assert found.problems == ["'a' is the id of more than one node: the first has the tools"]
    disabled = derive([button("a", disabled=True), button("a", "two")], PROVIDERS)
    assert disabled.tools == []
    assert len(disabled.problems) == 1


def test_a_provider_that_fails_costs_its_own_node_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """K09: one bad input. What it said is in the log, not in the problem."""
    with caplog.at_level(logging.ERROR, "raxol_mcp.views"):
        found = derive([button("a", "broken"), button("b")], PROVIDERS)
    assert [tool.name for tool in found.tools] == ["b.click"]
    assert found.problems == ["'a': its provider failed: LookupError"]
    assert "a secret of the provider" in caplog.text


def test_a_provider_offers_actions_and_nothing_else() -> None:
    """ours: a mistake of the provider's is named where it was made."""
    wrong = Node("button", "a", provider=Offers({"name": "look"}))  # type: ignore[arg-type]  # wrong on purpose
    assert derive(wrong, {}).problems == ["'a': its provider failed: TypeError"]


@pytest.mark.parametrize("name", ["", "two words", "a.b", "a/b", "ä", "x" * 65, "look\n"])
def test_an_action_is_one_word(name: str) -> None:
    """ours: what follows the last dot of a name is the action."""
    node = Node("button", "a", provider=Offers(Action(name=name, description="?"), LOOK))
    found = derive(node, {})
    assert [tool.name for tool in found.tools] == ["a.look"]
    assert len(found.problems) == 1


@pytest.mark.parametrize("id", ["two words", "ä", "x" * 128, "a\n", "a\x00"])
def test_an_id_that_makes_no_name_has_no_tools_and_is_reported(id: str) -> None:
    """MCP 2025-11-25 server/tools §Tool Names: 1 to 128 of A-Z a-z 0-9 _ . - /."""
    found = derive([button(id), button("b")], PROVIDERS)
    assert [tool.name for tool in found.tools] == ["b.click"]
    assert len(found.problems) == 1


def test_an_action_that_is_offered_twice_is_offered_once() -> None:
    """ours: the first."""
    again = Action(name="look", description="Look again")
    found = derive(Node("button", "a", provider=Offers(LOOK, again)), {})
    assert [tool.action for tool in found.tools] == [LOOK]
    assert found.problems == ["'a': it offers 'look' twice"]


def test_tools_and_problems_are_bounded() -> None:
    """docs/limits.md."""
    found = derive([button(f"b{i}") for i in range(MAX_TOOLS + MAX_PROBLEMS + 5)], PROVIDERS)
    assert len(found.tools) == MAX_TOOLS
    assert len(found.problems) == MAX_PROBLEMS


@pytest.mark.parametrize("session", ["", "a.b", "a b", "a/b", "ä", "x" * 65, "a\n"])
def test_a_session_is_one_word(session: str) -> None:
    """ours: what precedes the first dot of a name is the session."""
    with pytest.raises(ConfigurationError, match="one word"):
        checked_session(session)
    with pytest.raises(ConfigurationError, match="one word"):
        derive_tools([], {}, session=session)
    assert checked_session("todo-1_A") == "todo-1_A"


def test_what_has_the_focus_and_the_pointer_is_known_by_its_tools() -> None:
    """server-behaviour §13.3: the lens chooses by them."""
    found = derive([button("a", focused=True), field("b", hover=True), button("c")], PROVIDERS)
    assert found.focused == {"a.click"}
    assert found.hovered == {"b.type_into", "b.get_value"}


@pytest.mark.parametrize(
    ("sensitive", "action", "expected"),
    [
        (False, LOOK, False),
        (True, LOOK, True),
        (False, WIPE, True),
        (True, Action(name="get", description="Get", read_only=True), False),
    ],
)
def test_what_is_asked_about(sensitive: bool, action: Action, expected: bool) -> None:
    """ADR-0031: destructive-looking actions are asked about; looking is what a screenshot does."""
    node = Node("button", "a", sensitive=sensitive, provider=Offers(action))
    assert is_sensitive(node, action) is expected
    assert [tool.sensitive for tool in derive_tools(node, {})] == [expected]


# -- the laws ---------------------------------------------------------------------------------


@given(trees)
def test_the_same_tree_gives_the_same_tools(tree: list[Node]) -> None:
    """check 100."""
    assert derive(tree, PROVIDERS) == derive(tree, PROVIDERS)


def wrapped(tree: list[Node], draw: st.DrawFn) -> list[Node]:
    """Put containers around some nodes, at every depth."""
    result = []
    for node in tree:
        children = node.children
        inner = [children] if isinstance(children, Node) else [c for c in children if c is not None]
        new = Node(
            node.type,
            node.id,
            node.attributes,
            tuple(wrapped(inner, draw)),
            node.provider,
            node.excluded,
            node.sensitive,
        )
        for _ in range(draw(st.integers(0, 2))):
            new = Node("box", draw(st.sampled_from([None, ""])), {}, draw_around(new, draw))
        result.append(new)
    return result


def draw_around(node: Node, draw: st.DrawFn) -> Node | tuple[Node | None, ...]:
    """Put a node among the children of a container, in one of the ways there are."""
    ways: list[Node | tuple[Node | None, ...]]
    ways = [node, (node,), (None, node), (Node("box"), node)]
    return draw(st.sampled_from(ways))


@st.composite
def trees_and_wrapped(draw: st.DrawFn) -> tuple[list[Node], list[Node]]:
    """Make a tree, and the same one with containers around its nodes."""
    tree = draw(trees)
    return tree, wrapped(tree, draw)


@given(trees_and_wrapped())
def test_wrapping_in_containers_changes_no_tool(both: tuple[list[Node], list[Node]]) -> None:
    """check 100."""
    plain, inside = both
    assert derive(plain, PROVIDERS) == derive(inside, PROVIDERS)
    assert derive([Node("box", None, {}, plain)], PROVIDERS) == derive(plain, PROVIDERS)


words = st.text("ab-_", min_size=1, max_size=3)
ids = st.text("ab.-", min_size=1, max_size=5)


@given(st.tuples(words, ids, words), st.tuples(words, ids, words))
def test_no_two_of_session_id_and_action_make_one_name(
    one: tuple[str, str, str], other: tuple[str, str, str]
) -> None:
    """ours: ADR-0031: names that two sessions cannot collide on, whatever dots an id has."""
    assert (tool_name(*one) == tool_name(*other)) == (one == other)


@given(trees)
def test_every_tool_belongs_to_a_node_that_is_there(tree: list[Node]) -> None:
    """ours: and every name is found once."""
    tools: list[DerivedTool] = derive_tools(tree, PROVIDERS)
    there = {visit.node.id for visit in walk(tree) if visit.enabled and visit.first}
    assert {tool.node_id for tool in tools} <= there
    assert len({tool.name for tool in tools}) == len(tools)
