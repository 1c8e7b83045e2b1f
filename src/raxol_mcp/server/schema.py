"""Python types as JSON Schema (2020-12), and what is refused because JSON cannot carry it.

Not the check of values, and not the schema of a whole function. The types are msgspec's: the
builtins, `Literal`, `Enum`, unions, collections, dataclasses, `TypedDict`, `NamedTuple`, Structs,
dates, `UUID`, `Decimal`, `bytes` (base64); pydantic models come in beside them. What a class
looks like stands once under `$defs`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final, get_args, get_origin, get_type_hints, is_typeddict

import msgspec

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.pydantic_types import (
    ModelClass,
    is_model,
    is_validating_dataclass,
    unheard_note,
)
from raxol_mcp.wire.jsonrpc import JSONObject

__all__ = ["Described", "UnsupportedType", "describe", "references", "simple_schema"]

# Ours. Types such as `int | None` are met again and again; user classes are never kept here.
_MAX_KEPT: Final = 1_024
_MAX_REASON: Final = 300

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
        schemas, definitions = _generated(annotations, models, closed=closed)
    except UnsupportedType:
        _blame(annotations)
        raise
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
    annotations: Sequence[object], models: _Models, *, closed: bool
) -> tuple[list[JSONObject], JSONObject]:
    try:
        generated, components = msgspec.json.schema_components(
            annotations, schema_hook=models.schema_of, ref_template=_REFERENCE
        )
        for annotation in annotations:
            msgspec.json.Decoder(annotation)  # refuses what the conversion would refuse later
            if "annotated_types" in sys.modules:  # pydantic imports it
                _refuse_unheard(annotation)
        schemas, definitions = list(generated), dict(components)
        if closed:
            _close(definitions)
        models.settle(schemas, definitions, mode="validation" if closed else "serialization")
    except Exception as error:  # msgspec's, pydantic's, or of the user's own classes
        raise UnsupportedType(_reason(error, models.refused)) from error
    return schemas, definitions


def _reason(error: Exception, refused: type | None) -> str:
    if refused is not None:
        return f"{refused.__module__}.{refused.__qualname__} has no form in JSON; {_ADVICE}"
    if isinstance(error, NameError):
        return f"the name {error.name!r} in it cannot be resolved; import it at module level"
    text = " ".join(str(error).split())[:_MAX_REASON]
    return f"{text.removesuffix('is not supported').rstrip(' -')}; {_ADVICE}"


def _blame(annotations: Sequence[object]) -> None:
    """Describe one type after the other, so that the error tells which one is to blame."""
    for index, annotation in enumerate(annotations):
        try:
            _generated([annotation], _Models(), closed=True)
        except UnsupportedType as error:
            raise UnsupportedType(str(error), index) from error.__cause__


def _close(definitions: JSONObject) -> None:
    for definition in definitions.values():
        if isinstance(definition, dict) and "properties" in definition:
            definition.setdefault("additionalProperties", False)


def _keep(annotation: object, schema: JSONObject) -> None:
    # Other metadata says something about a parameter, which its reader must get to see.
    noted = get_origin(annotation) is Annotated and not all(
        isinstance(note, msgspec.Meta) for note in get_args(annotation)[1:]
    )
    if len(_kept) < _MAX_KEPT and not noted:
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


def _refuse_unheard(annotation: object) -> None:
    """Refuse what pydantic would check and msgspec does not, in a type and in its classes."""
    from dataclasses import is_dataclass  # loaded already by whoever has one

    pending: list[object] = [annotation, msgspec.inspect.type_info(annotation)]
    seen: set[int] = set()
    for item in pending:  # grows while it is walked
        if isinstance(item, tuple):
            pending.extend(item)
        elif isinstance(item, msgspec.inspect.Type | msgspec.inspect.Field):
            if id(item) not in seen:
                seen.add(id(item))
                pending.extend(getattr(item, name) for name in item.__struct_fields__)
        elif isinstance(item, type):
            if is_validating_dataclass(item):
                name = item.__name__
                raise TypeError(f"{name} is a pydantic dataclass, whose checks would be left out")
            if is_dataclass(item) or is_typeddict(item) or hasattr(item, "__struct_fields__"):
                pending.extend(get_type_hints(item, include_extras=True).values())
        elif (note := unheard_note(item)) is not None:
            kind = type(note).__name__
            raise TypeError(f"{kind} of pydantic would be left out there: use msgspec.Meta")
