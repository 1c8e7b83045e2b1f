"""Which JSON Schemas are taken at all, judged before a validator sees them.

Not the validator. A schema may come from somebody else's server, and a validator trusts what it
compiles: thirty definitions that each refer twice to the next one keep it busy for minutes, and
one that refers to a URL makes it a client of that URL.

Refused: more than 256 KiB, nested deeper than 64, a dialect that is not supported, references
that leave the schema, `$id` below the root (which would change what references mean), and
references that expand to more than 100,000 subschemas.
"""

from __future__ import annotations

from typing import Final

import msgspec

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.wire.jsonrpc import JSONObject
from raxol_mcp.wire.values import Value

__all__ = ["DIALECTS", "Admitted", "admit"]

_MAX_BYTES: Final = 256 * 1024
_MAX_DEPTH: Final = 64
_MAX_EXPANDED: Final = 100_000

# MCP 2025-11-25 basic §JSON Schema: 2020-12 is the default, others are to be documented.
DIALECTS: Final = (
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema",
    "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-04/schema",
)

_DEFINITIONS: Final = frozenset({"$defs", "definitions"})
# Their members are named by the author: a property may be called `$ref`.
_NAMED: Final = _DEFINITIONS | {
    "properties",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
}
# Their values are data and not schemas.
_DATA: Final = frozenset({"const", "default", "enum", "examples"})
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_ANCHORS: Final = ("$anchor", "$dynamicAnchor")


class Admitted(Value, frozen=True):
    """What is known of a schema that is taken.

    `recursive` says whether it refers to itself, directly or through others; `subschemas` how
    many it has with each reference followed once: at most so many checks are behind each value.
    """

    recursive: bool
    subschemas: int


def admit(schema: object) -> Admitted:
    """Judge a schema.

    Raises ConfigurationError with one sentence on what to change.
    """
    if not isinstance(schema, dict):
        raise ConfigurationError("a JSON Schema must be an object")
    _judge_size(schema)
    _judge_dialect(schema)
    return _Survey(schema).expanded()


def _judge_size(schema: JSONObject) -> None:
    # The walk is bounded by what fits in the bytes: an object may hold itself, or one list
    # a million times.
    level: list[object] = [schema]
    seen = 0
    for _ in range(_MAX_DEPTH):
        below = [
            inner
            for item in level
            if isinstance(item, dict | list | tuple)
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
        seen += len(below)
        level = [item for item in below if isinstance(item, dict | list | tuple)]
        if not level or seen > _MAX_BYTES:
            break
    else:
        raise ConfigurationError(f"the JSON Schema is nested deeper than {_MAX_DEPTH}")
    try:
        size = _MAX_BYTES + 1 if level else len(msgspec.json.encode(schema))
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"the JSON Schema is not JSON: {error}") from None
    if size > _MAX_BYTES:
        raise ConfigurationError(f"the JSON Schema is larger than {_MAX_BYTES // 1024} KiB")


def _judge_dialect(schema: JSONObject) -> None:
    dialect = schema.get("$schema", DIALECTS[0])
    if not isinstance(dialect, str) or dialect.removesuffix("#") not in DIALECTS:
        raise ConfigurationError(
            f"the JSON Schema dialect {str(dialect)[:100]!r} is not supported; use {DIALECTS[0]}"
        )


class _Survey:
    """The subschemas of a schema and what they refer to."""

    def __init__(self, root: JSONObject) -> None:
        self._root = root
        self._id = "id" if "draft-04" in str(root.get("$schema")) else "$id"
        self._anchors: dict[str, JSONObject] = {}
        # By identity: (subschemas of its own, references) of every subschema, without what is
        # under definitions, which costs only when it is referred to.
        self._local: dict[int, tuple[int, list[str]]] = {}
        self._read(root)

    def expanded(self) -> Admitted:
        """Add up what every reference expands to, and look for circles."""
        costs: dict[int, int] = {}
        entered: set[int] = set()
        recursive = False
        # Depth first without recursion: a chain of references may be thousands long.
        pending: list[tuple[JSONObject, bool]] = [(self._root, False)]
        while pending:
            node, leaving = pending.pop()
            count, texts = self._local[id(node)]
            targets = self._targets(texts)
            if leaving:
                entered.discard(id(node))
                cost = count + sum(costs.get(id(target), 1) for target in targets)
                if cost > _MAX_EXPANDED:
                    raise ConfigurationError(
                        "the references of the JSON Schema expand to more than "
                        f"{_MAX_EXPANDED} subschemas"
                    )
                costs[id(node)] = cost
            elif id(node) not in costs and id(node) not in entered:
                entered.add(id(node))
                pending.append((node, True))
                recursive = recursive or any(id(target) in entered for target in targets)
                pending.extend((target, False) for target in targets)
        return Admitted(recursive, costs[id(self._root)])

    def _read(self, node: object) -> tuple[int, list[str]]:
        """Read a subschema and everything below it. Recursion is bounded by the depth."""
        if isinstance(node, list | tuple):
            count, found = 0, []
            for item in node:
                inner, texts = self._read(item)
                count += inner
                found += texts
            return count, found
        if not isinstance(node, dict):
            return 0, []
        count, found = 1, self._own_references(node)
        for name, value in node.items():
            if name in _DATA:
                continue
            named = name in _NAMED and isinstance(value, dict)
            for item in value.values() if named else (value,):
                inner, texts = self._read(item)
                if name not in _DEFINITIONS:
                    count += inner
                    found += texts
        self._local[id(node)] = count, found
        return count, found

    def _own_references(self, node: JSONObject) -> list[str]:
        if node is not self._root and isinstance(node.get(self._id), str):
            raise ConfigurationError(
                f"the JSON Schema has an {self._id} below its root; use $defs and '#/$defs/NAME'"
            )
        for keyword in _ANCHORS:
            if isinstance(anchor := node.get(keyword), str):
                self._anchors[anchor] = node
        return [text for keyword in _REFERENCES if isinstance(text := node.get(keyword), str)]

    def _targets(self, texts: list[str]) -> list[JSONObject]:
        # What is left out is a boolean, a subschema that costs nothing.
        targets = map(self._target, texts)
        return [target for target in targets if isinstance(target, dict)]

    def _target(self, text: str) -> object:
        base, _, fragment = text.partition("#")
        if base and base != str(self._root.get(self._id, "")).removesuffix("#"):
            raise ConfigurationError(
                f"the JSON Schema refers to {text[:100]!r}, which is never fetched; put it under "
                "$defs and refer to '#/$defs/NAME'"
            )
        if not fragment:
            return self._root
        target = self._at(fragment) if fragment[0] == "/" else self._anchors.get(fragment)
        if isinstance(target, bool) or id(target) in self._local:
            return target
        raise ConfigurationError(f"the JSON Schema refers to {text[:100]!r}, which is not in it")

    def _at(self, pointer: str) -> object:
        """Follow a JSON Pointer (RFC 6901 §6) from the root; None where it ends nowhere."""
        from urllib.parse import unquote

        target: object = self._root
        for part in unquote(pointer)[1:].split("/"):
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(target, dict):
                target = target.get(name)
            elif isinstance(target, list) and name.isdecimal() and int(name) < len(target):
                target = target[int(name)]
            else:
                return None
        return target
