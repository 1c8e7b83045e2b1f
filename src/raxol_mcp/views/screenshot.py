"""A view as data: what is on the screen, for whoever cannot see it.

Not a picture, and not the names of tools: those are for who may call them. Made by the same walk
as the tools, so that every tool's node is in it, and enabled.
"""

from __future__ import annotations

from typing import Final

from raxol_mcp.server.content import to_plain
from raxol_mcp.views.tree import Tree, Visit, walk
from raxol_mcp.wire.jsonrpc import JSONObject, UnencodableResult, encode_result

__all__ = ["structured"]

_SHOWN: Final = ("role", "label", "content", "value", "state", "focused", "hover", "live")
_TEXTS: Final = frozenset({"role", "label", "content"})
MAX_FACT_BYTES: Final = 1024 * 1024  # ours: one value must not make the screenshot unreadable


def structured(tree: Tree) -> list[JSONObject]:
    """Return the nodes at the top: `{type, id?, facts..., disabled?, duplicate?, children?}`.

    The facts are those of `Node.attributes` that are meant to be seen; one that JSON cannot carry
    is left out. `disabled` is true in everything that has no tools now, `duplicate` where the id
    means an earlier node.
    """
    top: list[JSONObject] = []
    within: list[list[JSONObject]] = [top]  # by depth, where the next node goes
    parents: list[JSONObject] = []
    for visit in walk(tree):
        depth = visit.depth
        del parents[depth:], within[depth + 1 :]
        if len(within) == depth:  # the first child of its parent
            siblings: list[JSONObject] = []
            parents[-1]["children"] = siblings
            within.append(siblings)
        shown = _shown(visit)
        within[depth].append(shown)
        parents.append(shown)
    return top


def _shown(visit: Visit) -> JSONObject:
    node = visit.node
    shown: JSONObject = {"type": node.type}
    if node.id:
        shown["id"] = node.id
    for fact in _SHOWN:
        value = node.attributes.get(fact)
        if value is None or (fact in _TEXTS and not isinstance(value, str)):
            continue
        try:
            plain = to_plain(value, str_keys=True)
            encode_result(plain, max_bytes=MAX_FACT_BYTES)
        except UnencodableResult:
            continue
        shown[fact] = plain
    if not visit.enabled:
        shown["disabled"] = True
    if not visit.first:
        shown["duplicate"] = True
    return shown
