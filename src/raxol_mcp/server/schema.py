"""Python types as JSON Schema (2020-12), and what is refused because JSON cannot carry it.

Not the check of values, and not the schema of a whole function. The types are msgspec's: the
builtins, `Literal`, `Enum`, unions, collections, dataclasses, `TypedDict`, `NamedTuple`, Structs,
dates, `UUID`, `Decimal`, `bytes` (base64); pydantic models come in beside them. What a class
looks like stands once under `$defs`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.pydantic_types import ModelClass, is_model, is_validating_dataclass
from raxol_mcp.wire.jsonrpc import JSONObject

__all__ = ["Described", "UnsupportedType", "describe", "references", "simple_schema"]

# Ours. Types such as `int | None` are met again and again; user classes are never kept here.
_MAX_KEPT: Final = 1_024

_REFERENCE: Final = "#/$defs/{name}"
_PREFIX: Final = "#/$defs/"
_ANYTHING: Final = "any:"
_ADVICE: Final = (
    "use a type that JSON carries (str, int, float, bool, list, dict, a dataclass, a TypedDict, "
    "a msgspec.Struct, a pydantic model), or `object` for any JSON"
)

_kept: dict[object, JSONObject] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    dict: {"type": "object"},
    list: {"type": "array"},
    None: {"type": "null"},
    type(None): {"type": "null"},
    object: {},
    Any: {},
}


class UnsupportedType(ConfigurationError):
    """A type that JSON cannot carry. `index` tells which of those that were to be described."""

    def __init__(self, message: str, index: int = 0) -> None:
        super().__init__(message)
        self.index = index


class Described(msgspec.Struct, frozen=True, eq=False):
    """Types as JSON Schema: `schemas` in the order given, `definitions` for all of them.

    `models` says that a pydantic model is among them. Nothing in here may be changed: parts are
    shared.
    """

    schemas: list[JSONObject]
    definitions: JSONObject
    models: bool = False


def simple_schema(annotation: object) -> JSONObject | None:
    """Return the schema of a type that needs no definitions and was met before, else None."""
    try:
        return _kept.get(annotation)
    except TypeError:  # unhashable metadata
        return None


def describe(annotations: Sequence[object], *, closed: bool) -> Described:
    """Describe types together, so that two classes of one name get two definitions.

    `closed` objects have `additionalProperties` false: right for what is taken, too strict for
    what is given back. Raises `UnsupportedType` with a sentence on what to use instead.
    """
    known = [simple_schema(annotation) for annotation in annotations]
    if all(schema is not None for schema in known):
        return Described([schema for schema in known if schema is not None], {})
    models = _Models()
    try:
        schemas, definitions = _generated(annotations, models)
    except UnsupportedType:
        _blame(annotations)
        raise
    if closed:
        _close(definitions)
    models.settle(schemas, definitions, mode="validation" if closed else "serialization")
    if not definitions:
        for annotation, schema in zip(annotations, schemas, strict=True):
            _keep(annotation, schema)
    return Described(schemas, definitions, models.found)


def references(schema: object) -> Iterator[JSONObject]:
    """Yield every object in a generated schema that refers to a definition."""
    pending = [schema]
    for item in pending:  # grows while it is walked
        if isinstance(item, dict):
            if isinstance(item.get("$ref"), str):
                yield item
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)


def _generated(
    annotations: Sequence[object], models: _Models
) -> tuple[list[JSONObject], JSONObject]:
    try:
        generated, definitions = msgspec.json.schema_components(
            annotations, schema_hook=models.schema_of, ref_template=_REFERENCE
        )
        for annotation in annotations:
            msgspec.json.Decoder(annotation)  # refuses what the conversion would refuse later
            if "pydantic" in sys.modules:
                _refuse_validating_dataclasses(msgspec.inspect.type_info(annotation))
    except (TypeError, ValueError, NameError, AttributeError) as error:
        raise UnsupportedType(_reason(error, models.refused)) from error
    # The types of msgspec's stub are wider than what it builds.
    return list(generated), dict(definitions)


def _reason(error: Exception, refused: type | None) -> str:
    if refused is not None:
        return f"{refused.__module__}.{refused.__qualname__} has no form in JSON; {_ADVICE}"
    if isinstance(error, NameError):
        return f"the name {error.name!r} in it cannot be resolved; import it at module level"
    text = " ".join(str(error).split())
    return f"{text.removesuffix('is not supported').rstrip(' -')}; {_ADVICE}"


def _blame(annotations: Sequence[object]) -> None:
    """Describe one type after the other, so that the error tells which one is to blame."""
    for index, annotation in enumerate(annotations):
        try:
            _generated([annotation], _Models())
        except UnsupportedType as error:
            raise UnsupportedType(str(error), index) from error.__cause__


def _close(definitions: JSONObject) -> None:
    for definition in definitions.values():
        if isinstance(definition, dict) and "properties" in definition:
            definition.setdefault("additionalProperties", False)


def _keep(annotation: object, schema: JSONObject) -> None:
    if len(_kept) < _MAX_KEPT:
        try:
            _kept[annotation] = schema
        except TypeError:  # unhashable metadata
            return


class _Models:
    """Pydantic models met while msgspec describes the rest: its `schema_hook`.

    msgspec chooses the names of its definitions at the end, so a model is a mark until then.
    """

    def __init__(self) -> None:
        self._marks: dict[object, tuple[str, ModelClass]] = {}
        self.refused: type | None = None

    @property
    def found(self) -> bool:
        """Whether there was a model."""
        return bool(self._marks)

    def schema_of(self, type_: type) -> JSONObject:
        if type_ is object:
            return {"$ref": _ANYTHING}  # msgspec takes an empty schema for none at all
        if not is_model(type_):
            self.refused = type_
            raise NotImplementedError
        mark, _ = self._marks.setdefault(type_, (f"model:{len(self._marks)}", type_))
        return {"$ref": mark}

    def settle(self, schemas: list[JSONObject], definitions: JSONObject, *, mode: str) -> None:
        """Name the models, add their definitions and turn the marks into what they stand for.

        `mode` is pydantic's: "validation" describes what is taken, "serialization" what is given.
        """
        models = dict(self._marks.values())
        names = {mark: _free_name(model.__name__, definitions) for mark, model in models.items()}
        for place in references([schemas, definitions]):
            if place["$ref"] == _ANYTHING:
                del place["$ref"]
            elif (name := names.get(str(place["$ref"]))) is not None:
                place["$ref"] = _PREFIX + name
        for mark, model in models.items():
            name = names[mark]
            template = f"{_PREFIX}{name}.{{model}}"
            schema = model.model_json_schema(ref_template=template, mode=mode)
            inner = schema.pop("$defs", {})
            definitions[name] = schema
            if isinstance(inner, dict):
                definitions.update((f"{name}.{key}", value) for key, value in inner.items())


def _free_name(name: str, definitions: JSONObject) -> str:
    found, count = name, 1
    while found in definitions:
        count += 1
        found = f"{name}{count}"
    definitions[found] = {}
    return found


def _refuse_validating_dataclasses(shape: msgspec.inspect.Type) -> None:
    pending: list[object] = [shape]
    seen: set[int] = set()
    for item in pending:  # grows while it is walked
        if isinstance(item, tuple):
            pending.extend(item)
        elif (
            isinstance(item, msgspec.inspect.Type | msgspec.inspect.Field) and id(item) not in seen
        ):
            seen.add(id(item))
            if isinstance(item, msgspec.inspect.DataclassType):
                _refuse_validating(item.cls)
            pending.extend(getattr(item, name) for name in item.__struct_fields__)


def _refuse_validating(type_: type) -> None:
    if is_validating_dataclass(type_):
        name = type_.__name__
        raise TypeError(f"{name} is a pydantic dataclass, whose checks would be left out")
