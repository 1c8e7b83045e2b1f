"""`screenshot`: what is on the screen, and that it agrees with the tools."""

from __future__ import annotations

import json
from collections.abc import Iterator

from hypothesis import given

from raxol_mcp.views.screenshot import MAX_FACT_BYTES, structured
from raxol_mcp.views.tree import Node, walk
from raxol_mcp.views.walker import derive_tools
from raxol_mcp.wire.jsonrpc import JSONObject
from tests.views.screens import PROVIDERS, box, button, field, trees


def shown(screenshot: list[JSONObject]) -> Iterator[JSONObject]:
    """Yield every node of a screenshot, in the order of the document."""
    for node in screenshot:
        yield node
        children = node.get("children", [])
        assert isinstance(children, list)
        assert children != [] or "children" not in node
        yield from shown(children)


def test_a_screenshot_has_the_form_of_the_view() -> None:
    """server-behaviour §13.4."""
    tree = [
        box(button("save", "Save", focused=True), box(field("name", "Ada")), id="form"),
        Node("text", None, {"content": "Ready", "role": "status", "live": "polite", "state": {}}),
    ]
    assert structured(tree) == [
        {
            "type": "box",
            "id": "form",
            "children": [
                {"type": "button", "id": "save", "label": "Save", "focused": True},
                {"type": "box", "children": [{"type": "input", "id": "name", "value": "Ada"}]},
            ],
        },
        {"type": "text", "role": "status", "content": "Ready", "state": {}, "live": "polite"},
    ]
    assert structured(None) == []


def test_what_is_not_meant_to_be_seen_does_not_leak() -> None:
    """server-behaviour §13.4: callbacks and style never leak; neither does a password."""
    node = Node("input", "a", {"on_click": print, "style": "red", "password": "hunter2"})
    assert structured(node) == [{"type": "input", "id": "a"}]


def test_what_json_cannot_carry_is_left_out() -> None:
    """K09: one bad fact must not spoil the picture."""
    facts = {
        "value": object(),
        "state": float("nan"),
        "label": 3,
        "content": b"x",
        "role": "\ud800",
    }
    assert structured(Node("input", "a", facts)) == [{"type": "input", "id": "a"}]
    long = Node("text", None, {"content": "x" * MAX_FACT_BYTES})
    assert structured(long) == [{"type": "text"}]
    assert structured(Node("input", None, {"value": 0, "state": False})) == [
        {"type": "input", "value": 0, "state": False}
    ]


def test_what_has_no_tools_says_why() -> None:
    """ours: so that nobody looks for them."""
    tree = [box(button("a"), disabled=True), button("a"), button("b", covered=True)]
    assert structured(tree) == [
        {
            "type": "box",
            "disabled": True,
            "children": [{"type": "button", "id": "a", "label": "OK", "disabled": True}],
        },
        {"type": "button", "id": "a", "label": "OK", "duplicate": True},
        {"type": "button", "id": "b", "label": "OK", "disabled": True},
    ]


@given(trees)
def test_what_the_tools_say_is_what_the_screenshot_says(tree: list[Node]) -> None:
    """ADR-0031: every tool's node is shown enabled; and the other way round."""
    acting = {tool.node_id for tool in derive_tools(tree, PROVIDERS)}
    nodes = list(shown(structured(tree)))
    enabled = {
        node["id"]
        for node in nodes
        if "id" in node and "disabled" not in node and "duplicate" not in node
    }
    assert acting <= enabled
    # What a screenshot does not tell: that the app took the tools of a node away, that its
    # provider failed, and that its id makes no name.
    mute = {
        visit.node.id
        for visit in walk(tree)
        if visit.node.excluded or visit.node.attributes.get("label") == "broken"
    }
    interactive = {
        node["id"]
        for node in nodes
        if node["type"] in PROVIDERS and "id" in node and "duplicate" not in node
    }
    assert (enabled & interactive) - mute - {"not a name"} <= acting
    json.dumps(nodes)


@given(trees)
def test_the_screenshot_is_what_was_walked(tree: list[Node]) -> None:
    """risk 26: one walk for both."""
    walked = [(visit.node.type, visit.node.id or None) for visit in walk(tree)]
    assert [(node["type"], node.get("id")) for node in shown(structured(tree))] == walked
