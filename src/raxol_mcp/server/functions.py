"""A Python function as a tool: its schema, the check of its arguments, what it returns.

Not the running of it, and not the registry. Everything wrong with a signature is said when it is
inspected, as one sentence on what to change; nothing is built that only a call needs.

| parameter | becomes |
|---|---|
| `a: int` | a required argument |
| `a: int = 5` | an optional one |
| `a` | an argument of any JSON type |
| `a: Annotated[int, msgspec.Meta(ge=1), "how many"]` | with a constraint and a description |
| `context: Context` | no argument: filled in by the server |
| `answer: Annotated[Confirm, Ask("Sure about {a}?")]` | no argument: filled in by a human |
"""

from __future__ import annotations

import operator
import types
import typing
from collections.abc import Callable, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any, Final, get_args, get_origin

import msgspec

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.binding import Field, Form
from raxol_mcp.server.content import to_plain
from raxol_mcp.server.hints import MISSING, Signature, read_signature, summary_of
from raxol_mcp.server.pydantic_types import field_notes, is_field_default
from raxol_mcp.server.schema import UnsupportedType, describe, simple_schema
from raxol_mcp.wire.jsonrpc import JSONObject, UnencodableResult

if TYPE_CHECKING:
    from raxol_mcp.server.asking import AskParameter
    from raxol_mcp.server.returns import Returns

__all__ = ["Ask", "Function", "inspect_function"]

# A context is found inside of these.
_TRANSPARENT: Final = (Annotated, typing.Union, types.UnionType)
_NO_RETURNS: Final = frozenset({str, None, type(None), object})


class Ask(msgspec.Struct, frozen=True):
    """The question for the human, `{name}` standing for an argument of the same call.

    `Annotated[Confirm, Ask("Delete {path}?")]`: the answer is a flat dataclass, TypedDict,
    Struct or pydantic model. It is asked for before the function runs, and what does not fit is
    refused.
    """

    template: str


class Function:
    """An inspected function. Make it with `inspect_function`.

    It is called with `bind`'s values by name, plus `context` (the name of the parameter that wants
    the context, or None) and each of `asks`. `description` is the docstring, maybe empty.
    """

    __slots__ = (
        "_definitions",
        "_form",
        "_output",
        "_returns",
        "_schema",
        "asks",
        "bind",
        "context",
        "description",
        "name",
    )

    def __init__(
        self,
        callback: Callable[..., object],
        signature: Signature,
        form: Form,
        *,
        definitions: JSONObject,
        context: str | None,
        asks: tuple[AskParameter, ...],
    ) -> None:
        """Use `inspect_function` instead."""
        self.name = signature.label
        self.description = summary_of(callback)
        self.context = context
        self.asks = asks
        self._returns = signature.returns
        self._output: Returns | None = None
        self._form = form
        self._definitions = definitions
        self._schema: JSONObject | None = None
        # The form's own method, so that a call passes through one frame less.
        self.bind: Callable[[Mapping[str, object]], dict[str, object]] = form.bind

    @property
    def fields(self) -> tuple[Field, ...]:
        """Return the arguments in the order of the parameters."""
        return self._form.fields

    @property
    def output(self) -> Returns | None:
        """Return what the return annotation promises, None when that is nothing structured.

        Read at the first use, because only a tool promises anything: a prompt may return what
        no schema describes. Raises ConfigurationError for a type that JSON cannot carry.
        """
        if self._returns is not MISSING:
            self._output = _output(self._returns, self.name)
            self._returns = MISSING
        return self._output

    @property
    def input_schema(self) -> JSONObject:
        """Return the `inputSchema`: closed, JSON Schema 2020-12. Built once; do not change it."""
        schema = self._schema
        if schema is None:
            schema = self._schema = _input_schema(self._form.fields, self._definitions)
        return schema


def inspect_function(
    callback: Callable[..., object], *, context_type: type | None = None
) -> Function:
    """Read the signature of a function, a method or an object with `__call__`.

    `context_type` is the class whose parameter the server fills in, found by its annotation,
    also as `Context | None`. Raises ConfigurationError for whatever could not work in a call:
    `*args`, positional-only parameters, types JSON cannot carry, an `Ask` whose template names
    no argument or whose answer is no flat object, a second context. What the function returns is
    judged by the first use of `output`.
    """
    signature = read_signature(callback, fallback=context_type)
    types_ = signature.types
    fields: list[Field] = []
    special: list[str] = []
    for name in signature.names:
        annotation = types_.get(name, Any)
        schema = simple_schema(annotation)
        if schema is None:
            special.append(name)
            schema = {}
        default = signature.defaults.get(name, MISSING)
        if name.startswith("__"):
            raise ConfigurationError(
                f"{name!r} of {signature.label} is a name of Python's own; name the parameter "
                "without the two underscores in front"
            )
        if is_field_default(default):
            raise ConfigurationError(
                f"{name!r} of {signature.label} has pydantic's Field as its default; write "
                "`Annotated[type, Field(...)] = default`"
            )
        fields.append(Field(name, annotation, schema, default))
    if not special:
        form = Form(tuple(fields), closed=False)
        return Function(callback, signature, form, definitions={}, context=None, asks=())
    return _with_special(callback, signature, fields, context_type)


def _with_special(
    callback: Callable[..., object],
    signature: Signature,
    fields: list[Field],
    context_type: type | None,
) -> Function:
    """Finish a function that has more than types met before."""
    label = signature.label
    context: str | None = None
    asked: dict[str, tuple[object, Ask]] = {}
    given: list[Field] = []
    for field in fields:
        if context_type is not None and _is_context(field.type, context_type):
            if context is not None:
                raise ConfigurationError(f"{label} takes the context twice; remove {field.name!r}")
            context = field.name
        elif (ask := _ask_of(field.type)) is not None:
            asked[field.name] = (get_args(field.type)[0], ask)
        else:
            given.append(_annotated(field, label))
    try:
        described = describe([field.type for field in given], closed=True)
    except UnsupportedType as error:
        name = given[error.index].name
        raise ConfigurationError(f"the annotation of {name!r} of {label}: {error}") from error
    known = [field.name for field in given]
    form = Form(
        tuple(map(_described, given, described.schemas)), closed=bool(described.definitions)
    )
    return Function(
        callback,
        signature,
        form,
        definitions=described.definitions,
        context=context,
        asks=tuple(_asking(name, *pair, known, label) for name, pair in asked.items()),
    )


def _asking(name: str, answer: object, ask: Ask, known: list[str], label: str) -> AskParameter:
    from raxol_mcp.server.asking import AskParameter

    try:
        return AskParameter(name, ask, answer, known=known, label=label)
    except UnsupportedType as error:
        raise ConfigurationError(f"the annotation of {name!r} of {label}: {error}") from error


def _output(annotation: object, label: str) -> Returns | None:
    try:
        if annotation in _NO_RETURNS:
            return None
    except TypeError:  # unhashable metadata
        pass
    from raxol_mcp.server.returns import returns_of

    try:
        return returns_of(annotation)
    except UnsupportedType as error:
        raise ConfigurationError(f"the return annotation of {label}: {error}") from error


def _is_context(annotation: object, context_type: type) -> bool:
    if annotation is context_type or get_origin(annotation) is context_type:
        return True
    if get_origin(annotation) in _TRANSPARENT:
        return any(_is_context(item, context_type) for item in get_args(annotation))
    return False


def _ask_of(annotation: object) -> Ask | None:
    if get_origin(annotation) is Annotated:
        return next((note for note in get_args(annotation)[1:] if isinstance(note, Ask)), None)
    return None


def _annotated(field: Field, label: str) -> Field:
    """Read the metadata of a field: descriptions out, constraints as msgspec wants them."""
    if get_origin(field.type) is not Annotated:
        return field
    inner, *notes = get_args(field.type)
    description: str | None = None
    kept: list[object] = []
    try:
        for note in notes:
            known = isinstance(note, str | msgspec.Meta)
            for item in (note,) if known else field_notes(note):
                if isinstance(item, str):
                    description = item
                else:
                    kept.append(item)
    except TypeError as error:
        raise ConfigurationError(f"the annotation of {field.name!r} of {label}: {error}") from error
    type_ = operator.getitem(Annotated, (inner, *kept)) if kept else inner
    return Field(field.name, type_, {}, field.default, description)


def _described(field: Field, schema: JSONObject) -> Field:
    return Field(field.name, field.type, schema, field.default, field.description)


def _input_schema(fields: tuple[Field, ...], definitions: JSONObject) -> JSONObject:
    properties: JSONObject = {}
    required: list[str] = []
    for field in fields:
        properties[field.name] = member = dict(field.schema)
        if field.description is not None:
            member["description"] = field.description
        if field.default is MISSING:
            required.append(field.name)
        else:
            _add_default(member, field.default)
    # Some clients refuse a schema without `properties`, so it is there even when it is empty.
    schema: JSONObject = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    if definitions:
        schema["$defs"] = definitions
    return schema


def _add_default(member: JSONObject, default: object) -> None:
    if not isinstance(default, str | int | None):
        try:
            default = to_plain(default, str_keys=True)
        except UnencodableResult:
            return  # the argument is optional all the same
        if isinstance(default, float) and not isfinite(default):
            return
    member["default"] = default
