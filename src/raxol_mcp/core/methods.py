"""The methods of both eras: the shape their params must have and what the read authorizer sees.

A table and its predicates; runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from raxol_mcp.wire.jsonrpc import JSONObject
from raxol_mcp.wire.meta import LOG_LEVELS, log_severity
from raxol_mcp.wire.values import Value

__all__ = ["HANDSHAKE_METHODS", "STATELESS_METHODS", "Method", "string_list"]


def _no_params(params: JSONObject) -> str | None:
    return None


def _cursor(params: JSONObject) -> str | None:
    if not isinstance(params.get("cursor"), str | None):
        return "cursor must be a string"
    return None


def _needs(*names: str) -> Callable[[JSONObject], str | None]:
    def shape(params: JSONObject) -> str | None:
        for name in names:
            if not isinstance(params.get(name), str):
                return f"{name} must be a string"
        return None

    return shape


def _call(params: JSONObject) -> str | None:
    if not isinstance(params.get("name"), str):
        return "name must be a string"
    arguments = params.get("arguments")
    if arguments is not None and not isinstance(arguments, dict):
        return "arguments must be an object"
    return None


def _prompt(params: JSONObject) -> str | None:
    problem = _call(params)
    if problem is None:
        arguments = params.get("arguments")
        if isinstance(arguments, dict):
            for name, value in arguments.items():
                if not isinstance(value, str):
                    return f"argument {name[:100]!r} must be a string"
    return problem


def _level(params: JSONObject) -> str | None:
    # Whether the level exists is looked at behind the read authorizer: that leaks less.
    return None if "level" in params else "level is missing"


def _completion(params: JSONObject) -> str | None:
    ref, argument, context = params.get("ref"), params.get("argument"), params.get("context")
    if not isinstance(ref, dict):
        return "ref must be an object"
    wanted = {"ref/prompt": "name", "ref/resource": "uri"}.get(str(ref.get("type")))
    if wanted is None:
        return "ref.type must be ref/prompt or ref/resource"
    if not isinstance(ref.get(wanted), str):
        return f"ref.{wanted} must be a string"
    if not isinstance(argument, dict):
        return "argument must be an object"
    if not (isinstance(argument.get("name"), str) and isinstance(argument.get("value"), str)):
        return "argument.name and argument.value must be strings"
    if not isinstance(context, dict | None):
        return "context must be an object"
    known = context.get("arguments") if context else None
    if not isinstance(known, dict | None) or not all(
        isinstance(value, str) for value in (known or {}).values()
    ):
        return "context.arguments must map names to strings"
    return None


def string_list(value: object) -> list[str] | None:
    """Return `value` when it is a list of strings."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return value
    return None


def _listen(params: JSONObject) -> str | None:
    wanted = params.get("notifications")
    if not isinstance(wanted, dict):
        return "notifications must be an object"
    for name in ("toolsListChanged", "promptsListChanged", "resourcesListChanged"):
        if not isinstance(wanted.get(name), bool | None):
            return f"notifications.{name} must be a boolean"
    uris = wanted.get("resourceSubscriptions")
    if uris is not None and string_list(uris) is None:
        return "notifications.resourceSubscriptions must be a list of strings"
    return None


def _nothing(params: JSONObject) -> JSONObject:
    return {}  # a new one each time: an authorizer may be careless with what it is shown


def _only(*names: str) -> Callable[[JSONObject], JSONObject]:
    def gate(params: JSONObject) -> JSONObject:
        return {name: params[name] for name in names if name in params}

    return gate


class Method(Value, frozen=True):
    """One method.

    `shape(params)` says what is wrong with the params or None. `gate(params)` is what the read
    authorizer is given beside the method's name. `is_tool`: it calls a tool, which has an
    authorizer of its own. `required`: params may not be left out. `granted`: behind the read
    authorizer the core itself carries it out. `rounds`: may be answered `input_required`
    (MCP 2026-07-28 basic/patterns/mrtr). `cached`: carries cache hints in the stateless era.
    `named`: the member of params that says which tool, prompt or resource.
    """

    name: str
    shape: Callable[[JSONObject], str | None] = _no_params
    gate: Callable[[JSONObject], JSONObject] = _nothing
    is_tool: bool = False
    required: bool = False
    granted: bool = False
    rounds: bool = False
    cached: bool = False
    inline: bool = False
    named: str = "name"


_SHARED: Final = (
    Method("tools/list", _cursor, cached=True),
    Method("tools/call", _call, is_tool=True, required=True, rounds=True),
    Method("resources/list", _cursor, cached=True),
    Method("resources/templates/list", _cursor, cached=True),
    Method(
        "resources/read",
        _needs("uri"),
        _only("uri"),
        required=True,
        rounds=True,
        cached=True,
        named="uri",
    ),
    Method("prompts/list", _cursor, cached=True),
    Method("prompts/get", _prompt, _only("name", "arguments"), required=True, rounds=True),
    Method("completion/complete", _completion, _only("ref"), required=True),
)


def _table(*methods: Method) -> Mapping[str, Method]:
    return {method.name: method for method in methods}


def _subscription(name: str) -> Method:
    return Method(name, _needs("uri"), _only("uri"), required=True, granted=True, named="uri")


HANDSHAKE_METHODS: Final = _table(
    *_SHARED,
    Method("initialize", inline=True),
    Method("ping", inline=True),
    _subscription("resources/subscribe"),
    _subscription("resources/unsubscribe"),
    Method("logging/setLevel", _level, _only("level"), required=True, granted=True),
)
STATELESS_METHODS: Final = _table(
    *_SHARED,
    Method("server/discover", inline=True, cached=True),
    Method("subscriptions/listen", _listen, _only("notifications"), required=True, granted=True),
)


def level_problem(level: object) -> str | None:
    """Say why `level` is not a log level, or None when it is one."""
    if log_severity(level) is None:
        return f"Invalid log level. Valid: {', '.join(LOG_LEVELS)}"
    return None
