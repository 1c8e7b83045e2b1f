"""`Ask`: a parameter that a human fills in before the tool runs.

```python
@dataclass
class Confirm:
    confirm: bool

@server.tool()
def delete(path: str, answer: Annotated[Confirm, Ask("Delete {path}?")]) -> str: ...
```

Not the asking itself, which is the core's: this is the question, the form and how the answer is
read. The caller neither sees the parameter nor can give it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.schemas.problems import reworded, sentence
from raxol_mcp.server.arguments import ArgumentsInvalid
from raxol_mcp.server.binding import convert_strictly, overlooked_in
from raxol_mcp.server.content import to_plain
from raxol_mcp.server.functions import Ask
from raxol_mcp.server.schema import describe
from raxol_mcp.wire.jsonrpc import JSONObject, UnencodableResult

__all__ = ["Ask", "AskParameter"]

# Ours: what a person reads. The rest of a longer value is counted, not left out in silence.
_MAX_SHOWN: Final = 1_000

# What a form may hold: MCP 2026-07-28 PrimitiveSchemaDefinition, the part that 2025-06-18 knows.
_KEPT: Final = {
    "string": {"title", "description", "minLength", "maxLength", "format", "default", "enum"},
    "integer": {"title", "description", "minimum", "maximum", "default"},
    "number": {"title", "description", "minimum", "maximum", "default"},
    "boolean": {"title", "description", "default"},
}
_BESIDE: Final = ("title", "description", "default")
_FORMATS: Final = frozenset({"email", "uri", "date", "date-time"})


class AskParameter:
    """One parameter with an `Ask`.

    `name` is the parameter; `requested_schema` the form as it is sent. The answer's type is a
    dataclass, TypedDict, Struct or pydantic model whose fields are `str`, `int`, `float`,
    `bool`, `Literal` or `Enum` of strings, or dates, each possibly optional.
    """

    __slots__ = ("_answer", "_parts", "name", "requested_schema")

    def __init__(
        self, name: str, ask: Ask, answer: object, *, known: Collection[str], label: str
    ) -> None:
        """Check everything that can be wrong; `known` are the arguments of the function.

        Raises ConfigurationError, or `UnsupportedType` for a type that JSON cannot carry.
        """
        self.name = name
        where = f"the ask for {name!r} of {label}"
        self._parts = _parts(ask.template, known, where)
        self.requested_schema = _flat_schema(answer, where)
        self._answer = answer

    def message(self, arguments: Mapping[str, object]) -> str:
        """Write the question about one call. `arguments` is what `Function.bind` returned."""
        return "".join(
            text if name is None else text + _shown(arguments.get(name))
            for text, name in self._parts
        )

    def convert(self, content: object) -> object:
        """Make the answer from the content of an accepted form.

        Strict, because a client may send anything: no coercion, no unknown member. Raises
        `ArgumentsInvalid`.
        """
        if not isinstance(content, dict):
            raise ArgumentsInvalid(sentence(["it must be an object"], noun="answer"))
        try:
            answer = convert_strictly(content, self._answer)
        except msgspec.ValidationError as error:
            raise ArgumentsInvalid(sentence([reworded(str(error), "")], noun="answer")) from None
        if overlooked := overlooked_in(content, msgspec.inspect.type_info(self._answer)):
            raise ArgumentsInvalid(sentence(overlooked, noun="answer"))
        return answer


def _parts(template: str, known: Collection[str], where: str) -> list[tuple[str, str | None]]:
    from string import Formatter

    try:
        parsed = list(Formatter().parse(template))
    except ValueError as error:
        raise ConfigurationError(f"{where}: {error}; write {{{{ for a brace") from None
    parts = []
    for text, field, spec, conversion in parsed:
        # An attribute or an index would read more than the argument.
        if field is not None and (spec or conversion or field not in known):
            raise ConfigurationError(
                f"{where} names {field!r}; a template may hold "
                + (", ".join(f"{{{name}}}" for name in known) or "no names: there are no arguments")
            )
        parts.append((text, field))
    return parts


def _shown(value: object) -> str:
    """Write an argument into a question so that it cannot pass for the question's own words."""
    if not isinstance(value, str):
        try:
            text = msgspec.json.encode(to_plain(value, str_keys=True)).decode()
        except UnencodableResult:
            return f"({type(value).__name__})"
    else:
        text = value
    # Line breaks, control characters and marks that turn the direction of writing are shown.
    text = text if text.isprintable() else ascii(text)
    if len(text) <= _MAX_SHOWN:
        return text
    return f"{text[:_MAX_SHOWN]}… ({len(text) - _MAX_SHOWN} more characters)"


def _flat_schema(answer: object, where: str) -> JSONObject:
    described = describe([answer], closed=True)
    definitions = described.definitions
    root = _resolved(described.schemas[0], definitions)
    properties = root.get("properties")
    if root.get("type") != "object" or not isinstance(properties, dict):
        raise ConfigurationError(
            f"{where}: the answer must be a flat object; use a dataclass, TypedDict or Struct with "
            "fields of str, int, float, bool, Literal or Enum"
        )
    required = root.get("required", [])
    flat: JSONObject = {"type": "object", "properties": {}}
    flat["properties"] = {
        name: _primitive(schema, definitions, f"{where}: field {name!r}")
        for name, schema in properties.items()
    }
    if required:
        flat["required"] = required
    return flat


def _resolved(schema: JSONObject, definitions: JSONObject) -> JSONObject:
    while isinstance(reference := schema.get("$ref"), str):
        target = definitions[reference.removeprefix("#/$defs/")]
        assert isinstance(target, dict), "a definition is an object"
        beside = {name: value for name, value in schema.items() if name != "$ref"}
        schema = {**target, **beside}
    return schema


def _primitive(schema: JSONObject, definitions: JSONObject, where: str) -> JSONObject:
    schema = _resolved(schema, definitions)
    if isinstance(alternatives := schema.get("anyOf"), list):
        given = [item for item in alternatives if item != {"type": "null"}]
        if len(given) == 1:
            # Optional: a form has no null, the field is left empty instead.
            beside = {key: schema[key] for key in _BESIDE if schema.get(key) is not None}
            schema = {**_resolved(given[0], definitions), **beside}
    kind = schema.get("type")
    if (choices := schema.get("enum", schema.get("const"))) is not None:
        choices = choices if isinstance(choices, list) else [choices]
        kind = "string" if all(isinstance(choice, str) for choice in choices) else None
        schema = {**schema, "type": kind, "enum": choices}
    kept = _KEPT.get(kind) if isinstance(kind, str) else None
    encoded = "contentEncoding" in schema or schema.get("format", "date") not in _FORMATS
    if kept is None or (kind == "string" and encoded):
        raise ConfigurationError(
            f"{where} cannot be asked for; use str, int, float, bool, or Literal or Enum of strings"
        )
    return {"type": kind, **{name: value for name, value in schema.items() if name in kept}}
