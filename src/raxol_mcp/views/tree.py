"""What an adapter says about a view: a tree of `Node`, and the one way to walk it.

Not the tools and not the screenshot. Both are made from `walk`, so that they cannot disagree about
what is there (two copies of such a walk are known to have diverged).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from raxol_mcp.wire.values import Value

if TYPE_CHECKING:
    from raxol_mcp.views.walker import Provider

__all__ = ["MAX_DEPTH", "Node", "Tree", "Visit", "find", "walk"]

# Ours: what lies deeper is left out, of everything alike. Views that people can read are flat.
MAX_DEPTH: Final = 128


class Node(Value, frozen=True):
    """One thing in a view. A node without an `id` is only a container: it never has tools.

    `attributes` are facts that JSON can carry. The screenshot shows `role`, `label`, `content`,
    `value`, `state`, `focused`, `hover` and `live`; anything else is for the providers alone. Three
    of them act, when they are exactly true:

    * `disabled`: the node and what is in it have no tools, and are shown as disabled;
    * `covered`: the same, for what lies behind a modal screen;
    * `hidden`: the node and what is in it are not there at all.

    `provider` replaces the one of the type. `excluded` takes away the tools of this node, not of
    its children. `sensitive` says that a human is asked before anything is done to it.
    """

    type: str
    id: str | None = None
    attributes: Mapping[str, object] = {}
    children: Node | Sequence[Node | None] = ()
    provider: Provider | None = None
    excluded: bool = False
    sensitive: bool = False


Tree: TypeAlias = Node | Sequence[Node | None] | None


class Visit(Value, frozen=True):
    """A node, where it was met: `depth` counts its parents.

    `enabled` is False in everything that is disabled or covered. `first` is False for an id that
    was met before: that id means the earlier node.
    """

    node: Node
    depth: int
    enabled: bool
    first: bool


def walk(tree: Tree) -> Iterator[Visit]:
    """Yield every node that is there, a parent before its children, in the order of the document.

    Depends on nothing but the tree: the same tree is walked in the same way.
    """
    met: set[str] = set()
    pending = [(node, 0, True) for node in reversed(_nodes(tree))]
    while pending:
        node, depth, enabled = pending.pop()
        attributes = node.attributes
        if attributes.get("hidden") is True:
            continue
        if attributes.get("disabled") is True or attributes.get("covered") is True:
            enabled = False
        first = True
        if node.id:
            first = node.id not in met
            met.add(node.id)
        yield Visit(node, depth, enabled, first)
        if node.children and depth + 1 < MAX_DEPTH:
            pending += [(child, depth + 1, enabled) for child in reversed(_nodes(node.children))]


def find(tree: Tree, id: str) -> Visit | None:
    """Find what an id means: the first node in the order of the document that has it."""
    return next((visit for visit in walk(tree) if visit.node.id == id), None)


def _nodes(children: Tree) -> list[Node]:
    if isinstance(children, Node):
        return [children]
    return [child for child in children or () if isinstance(child, Node)]
