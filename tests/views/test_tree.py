"""`tree`: one walk, in one order, of whatever an adapter makes."""

from __future__ import annotations

import sys

from hypothesis import given

from raxol_mcp.views.tree import MAX_DEPTH, Node, Tree, find, walk
from tests.views.screens import box, button, trees


def walked(tree: Tree) -> list[tuple[str | None, int]]:
    """Return what is met: (id, depth)."""
    return [(visit.node.id, visit.depth) for visit in walk(tree)]


def test_a_parent_comes_before_its_children_and_those_in_their_order() -> None:
    """server-behaviour §13.1: one order, whatever asks for it."""
    tree = box(box(button("a"), id="left"), button("b"), id="all")
    assert walked(tree) == [("all", 0), ("left", 1), ("a", 2), ("b", 1)]


def test_children_are_a_node_or_nodes_and_nothing_else_counts() -> None:
    """check 99: a single child is found as well as several; risk 26: it lost subtrees."""
    assert walked(Node("box", None, {}, Node("box", None, {}, button("a")))) == [
        (None, 0),
        (None, 1),
        ("a", 2),
    ]
    assert walked([None, box(None, button("a"), None), None]) == [(None, 0), ("a", 1)]
    assert walked(None) == []
    assert walked([]) == []
    assert walked(["text", 3, button("a")]) == [("a", 0)]  # type: ignore[list-item]  # as untyped


def test_what_is_hidden_is_not_there_nor_is_what_is_in_it() -> None:
    """ours: a screenshot of what nobody sees would be none."""
    assert walked(box(box(button("a"), hidden=True), button("b", hidden=False))) == [
        (None, 0),
        ("b", 1),
    ]


def test_what_is_in_something_disabled_or_covered_is_disabled() -> None:
    """ours: ADR-0031: disabled, hidden or modal-covered widgets offer no tools."""
    tree = [box(button("a"), disabled=True), box(button("b"), covered=True), button("c")]
    enabled = {visit.node.id: visit.enabled for visit in walk(tree) if visit.node.id}
    assert enabled == {"a": False, "b": False, "c": True}


def test_only_true_is_a_mark() -> None:
    """K07: 1 is not true, and neither is a text."""
    marks: list[object] = [1, "true", [], {"a": 1}, None, False]
    for mark in marks:
        assert all(visit.enabled for visit in walk(button("a", disabled=mark, covered=mark)))
        assert walked(button("a", hidden=mark)) == [("a", 0)]


def test_an_id_means_the_first_node_that_has_it() -> None:
    """ours: two widgets with one id must not take turns."""
    first, second = button("a", "one", disabled=True), button("a", "two")
    assert [visit.first for visit in walk([first, second])] == [True, False]
    found = find(box(first, second), "a")
    assert found is not None
    assert found.node is first
    assert find([first], "b") is None
    assert find([button("")], "") is not None  # it is met, but no tool is ever named for it
    assert [visit.first for visit in walk([button(""), button(""), button(None)])] == [True] * 3


def test_a_hidden_node_does_not_take_an_id() -> None:
    """ours: the one that is seen is meant."""
    seen = button("a")
    found = find([button("a", hidden=True), seen], "a")
    assert found is not None
    assert found.node is seen


def test_depth_is_bounded_and_costs_no_stack() -> None:
    """docs/limits.md: nodes deeper than 128 are left out, of everything alike."""
    tree = button("deep")
    for _ in range(sys.getrecursionlimit() * 2):
        tree = Node("box", None, {}, tree)
    assert walked(tree) == [(None, depth) for depth in range(MAX_DEPTH)]
    loop: list[Node] = []
    loop.append(Node("box", "again", {}, loop))
    assert len(walked(loop)) == MAX_DEPTH


@given(trees)
def test_the_same_tree_is_walked_in_the_same_way(tree: list[Node]) -> None:
    """check 100."""
    assert list(walk(tree)) == list(walk(tree))
