"""From a view tree to tools: what may be done with each node, named for the node.

Derives; registers and calls nothing. The law: tools depend on the nodes that have an id and on
their order, never on the containers around them, and the same tree gives the same tools.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import msgspec

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.views.tree import Node, Tree, Visit, walk
from raxol_mcp.wire.jsonrpc import JSONObject
from raxol_mcp.wire.values import Value

__all__ = [
    "MAX_TOOLS",
    "NO_ARGUMENTS",
    "Action",
    "Derivation",
    "DerivedTool",
    "Provider",
    "checked_session",
    "derive",
    "derive_tools",
    "is_sensitive",
    "offered",
    "provider_of",
    "tool_name",
]

_logger = logging.getLogger("raxol_mcp.views")

MAX_TOOLS: Final = 4_096  # ours, of one session: a listing is made of them
MAX_PROBLEMS: Final = 100  # ours: what is wrong with a view is told, but not without end
NO_ARGUMENTS: Final[JSONObject] = {
    "type": "object",
    "properties": {},
    "additionalProperties": False,
}
# No dot: an action is what follows the last dot of a name, a session what precedes the first. So
# no two of session, id and action can make the same name.
_WORD: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NAME: Final = re.compile(r"[A-Za-z0-9_./-]{1,128}")  # as `server/definition_checks.py` wants it


class Action(Value, frozen=True, kw_only=True):
    """Something that may be done with a node.

    `name` is one word of letters, digits, `_` and `-`. `read_only` ones only look. `destructive`
    ones cannot be undone: a human is asked first, as for a sensitive node.
    """

    name: str
    description: str
    input_schema: JSONObject = msgspec.field(default_factory=lambda: NO_ARGUMENTS)
    read_only: bool = False
    destructive: bool = False


class Provider(Protocol):
    """Knows what may be done with nodes of a type, and does it. One object serves all of them."""

    def actions(self, node: Node) -> Sequence[Action]:
        """List what may be done with `node` now. From the node alone, and fast.

        Asked for every node at every derivation. A label or the options of a choice belong into
        descriptions and schemas: when they change, the tool changes. An Action is a value: the
        same object again says that nothing about it has changed.
        """

    async def act(self, node: Node, action: str, arguments: Mapping[str, object]) -> object:
        """Do it to the node as it is *now*, and return what a tool may return.

        `arguments` fit the schema as it was listed last, which may be older than `node`: look at
        them again where it matters. Raises ToolError to speak to the caller.
        """


class DerivedTool(Value, frozen=True):
    """One action of one node, under the name that it is called by."""

    name: str
    node_id: str
    action: Action
    sensitive: bool


class Derivation(Value, frozen=True):
    """The tools of a tree, in the order of the document, and what has none though it should.

    `focused` and `hovered` name the tools of the nodes that have `focused` and `hover`.
    """

    tools: list[DerivedTool]
    problems: list[str]
    focused: frozenset[str] = frozenset()
    hovered: frozenset[str] = frozenset()


def derive_tools(
    tree: Tree, providers: Mapping[str, Provider], *, session: str | None = None
) -> list[DerivedTool]:
    """Derive the tools of a tree. `providers` are by type; `session` comes before every name."""
    return derive(tree, providers, session=session).tools


def derive(
    tree: Tree, providers: Mapping[str, Provider], *, session: str | None = None
) -> Derivation:
    """Derive the tools of a tree, and say what went wrong, a sentence each.

    One bad node costs its own tools alone. Raises ConfigurationError for a session that cannot be
    part of a name.
    """
    if session is not None:
        checked_session(session)
    found = _Found(session)
    for visit in walk(tree):
        if visit.node.id:
            found.visit(visit, visit.node.id, providers)
    return Derivation(
        list(found.tools.values()),
        found.problems[:MAX_PROBLEMS],
        frozenset(found.marked["focused"]),
        frozenset(found.marked["hover"]),
    )


class _Found:
    """What one walk has found so far."""

    def __init__(self, session: str | None) -> None:
        self._session = session
        self.tools: dict[str, DerivedTool] = {}
        self.problems: list[str] = []
        self.marked: dict[str, list[str]] = {"focused": [], "hover": []}

    def visit(self, visit: Visit, id: str, providers: Mapping[str, Provider]) -> None:
        node = visit.node
        provider = provider_of(node, providers)
        if provider is None or not visit.enabled or node.excluded:
            return
        if not visit.first:
            self.problems.append(f"{id!r} is the id of more than one node: the first has the tools")
            return
        try:
            actions = offered(provider, node)
        except Exception as error:  # of whoever wrote the provider: the other nodes go on
            _logger.exception("the provider of %r failed for %r", node.type, id)
            self.problems.append(f"{id!r}: its provider failed: {type(error).__name__}")
            return
        for action in actions:
            self._offer(node, id, action)

    def _offer(self, node: Node, id: str, action: Action) -> None:
        name = tool_name(self._session, id, action.name)
        if not _WORD.fullmatch(action.name) or not _NAME.fullmatch(name):
            self.problems.append(
                f"{id!r}: {action.name!r} makes no name of a tool: letters, digits, _ . - / "
                "and at most 128 of them"
            )
        elif name in self.tools:
            self.problems.append(f"{id!r}: it offers {action.name!r} twice")
        elif len(self.tools) >= MAX_TOOLS:
            self.problems.append(f"{name}: a session has at most {MAX_TOOLS} tools")
        else:
            self.tools[name] = DerivedTool(name, id, action, is_sensitive(node, action))
            for mark, names in self.marked.items():
                if node.attributes.get(mark) is True:
                    names.append(name)


def provider_of(node: Node, providers: Mapping[str, Provider]) -> Provider | None:
    """Find who knows what may be done with a node; None when that is nothing."""
    return node.provider if node.provider is not None else providers.get(node.type)


def offered(provider: Provider, node: Node) -> Sequence[Action]:
    """Ask a provider for the actions of a node. Raises what it raises."""
    actions = provider.actions(node)
    for action in actions:
        if not isinstance(action, Action):
            raise TypeError(f"a provider offers Actions, not a {type(action).__name__}")
    return actions


def is_sensitive(node: Node, action: Action) -> bool:
    """Say whether a human is asked first. Not before looking: the screenshot shows the same."""
    return action.destructive or (node.sensitive and not action.read_only)


def tool_name(session: str | None, id: str, action: str) -> str:
    """Name the tool of an action."""
    return f"{id}.{action}" if session is None else f"{session}.{id}.{action}"


def checked_session(session: str) -> str:
    """Return `session` if it can be part of the names of tools; else raise ConfigurationError."""
    if not _WORD.fullmatch(session):
        raise ConfigurationError(
            f"the name of a session is one word of letters, digits, _ and -, not {session!r}"
        )
    return session
