"""Functions as tools."""

import enum
import functools
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, NotRequired, TypedDict, TypeVar

import annotated_types
import jsonschema
import msgspec
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.arguments import ArgumentsInvalid
from raxol_mcp.server.asking import AskParameter
from raxol_mcp.server.content import Message, Text
from raxol_mcp.server.functions import Ask, Function, inspect_function

T = TypeVar("T")


class Context(Generic[T]):
    pass


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Point:
    x: int
    y: float = 0.0


class Typed(TypedDict):
    n: int
    tags: NotRequired[list[str]]


class Struct(msgspec.Struct):
    point: Point
    level: Level | None = None


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    n: int = pydantic.Field(ge=1)
    colour: Colour = Colour.RED


@dataclass
class Confirm:
    confirm: bool


def inspected(function: Callable[..., object]) -> Function:
    return inspect_function(function, context_type=Context)


def refusal(function: Callable[..., object]) -> str:
    with pytest.raises(ConfigurationError) as caught:
        _ = inspected(function).output
    text = str(caught.value)
    assert "\n" not in text
    return text


# -- the schema -------------------------------------------------------------------------------


def test_a_plain_function_needs_nothing_else() -> None:
    async def search(query: str, limit: int = 10, exact: bool = False) -> str:
        """Search the archive.

        Slowly.
        """
        raise NotImplementedError

    function = inspected(search)
    assert function.name == "search"
    assert function.description == "Search the archive.\n\nSlowly."
    assert function.context is None
    assert function.asks == ()
    assert function.output is None
    assert function.input_schema == {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": "integer", "default": 10},
            "exact": {"type": "boolean", "default": False},
        },
        "required": ["query"],
        "additionalProperties": False,
    }
    assert function.input_schema is function.input_schema
    assert [field.name for field in function.fields] == ["query", "limit", "exact"]


def test_no_parameters_are_an_empty_closed_object() -> None:
    """MCP 2025-11-25 server/tools §Tool: recommended for tools without parameters."""
    assert inspected(lambda: None).input_schema == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }


def test_a_parameter_without_annotation_takes_any_json() -> None:
    function = inspected(lambda a, b=None: None)
    assert function.input_schema["properties"] == {"a": {}, "b": {"default": None}}
    values: list[object] = [None, 1, "x", [1], {"a": {}}]
    for value in values:
        assert function.bind({"a": value}) == {"a": value, "b": None}


def test_metadata_describes_and_constrains() -> None:
    def run(
        a: Annotated[int, msgspec.Meta(ge=1), "how many"],
        b: Annotated[str, "a name"] = "x",
        c: Annotated[int, pydantic.Field(ge=0, description="of pydantic")] = 0,
        d: Annotated[str, annotated_types.MaxLen(3)] = "",
        e: Annotated[int, msgspec.Meta(description="of msgspec")] = 0,
        f: Annotated[str, msgspec.Meta(extra_json_schema={"x-mcp-header": "Region"})] = "",
        g: Annotated[int, object(), {"not": "hashable"}] = 0,
    ) -> None: ...

    function = inspected(run)
    assert function.input_schema["properties"] == {
        "a": {"type": "integer", "minimum": 1, "description": "how many"},
        "b": {"type": "string", "description": "a name", "default": "x"},
        "c": {"type": "integer", "minimum": 0, "description": "of pydantic", "default": 0},
        "d": {"type": "string", "maxLength": 3, "default": ""},
        "e": {"type": "integer", "description": "of msgspec", "default": 0},
        "f": {"type": "string", "x-mcp-header": "Region", "default": ""},
        "g": {"type": "integer", "default": 0},
    }
    with pytest.raises(ArgumentsInvalid, match=r"'a' must be integer >= 1; 'c'.*; 'd' must be"):
        function.bind({"a": 0, "c": -1, "d": "abcd"})


def test_a_description_seen_before_is_seen_again() -> None:
    def first(a: Annotated[str, "the same"]) -> Annotated[str, "the same"]:
        raise NotImplementedError

    def second(a: Annotated[str, "the same"]) -> None: ...

    for function in (first, second, first):
        properties = inspected(function).input_schema["properties"]
        assert properties == {"a": {"type": "string", "description": "the same"}}


def test_classes_stand_under_defs() -> None:
    def run(point: Point, typed: Typed, struct: Struct, model: Model | None = None) -> None: ...

    schema = inspected(run).input_schema
    definitions = schema["$defs"]
    assert isinstance(definitions, dict)
    assert {"Point", "Typed", "Struct", "Level", "Model"} <= set(definitions)
    for name in ("Point", "Typed", "Struct", "Model"):
        assert definitions[name]["additionalProperties"] is False
    jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize(
    ("default", "expected"),
    [
        (None, {"default": None}),
        (1.5, {"default": 1.5}),
        (float("nan"), {}),
        ([1], {"default": [1]}),
        ({1: "a"}, {"default": {"1": "a"}}),
        (Colour.RED, {"default": "red"}),
        (Level.HIGH, {"default": 2}),
        (Point(1), {"default": {"x": 1, "y": 0.0}}),
        (object(), {}),
        (..., {}),
    ],
)
def test_a_default_is_shown_when_it_is_json(default: object, expected: object) -> None:
    def run(a: object = default) -> None: ...

    schema = inspected(run).input_schema
    assert schema["properties"] == {"a": expected}
    assert "required" not in schema
    assert inspected(run).bind({})["a"] is default
    json.dumps(schema, allow_nan=False)


def test_strings_methods_and_decorators_are_read() -> None:
    class Thing:
        def method(self, a: "int", b: "Point | None" = None) -> "Point":
            raise NotImplementedError

        def __call__(self, a: int) -> None: ...

    function = inspected(Thing().method)
    assert function.input_schema["required"] == ["a"]
    assert function.bind({"a": 1, "b": {"x": 1}}) == {"a": 1, "b": Point(1)}
    assert function.output is not None
    assert inspected(Thing()).bind({"a": 1}) == {"a": 1}

    @functools.wraps(Thing.method)
    def wrapper(*args: Any) -> Any:
        raise NotImplementedError

    assert set(inspected(wrapper).bind({"self": 0, "a": 1})) == {"self", "a", "b"}


def test_keyword_only_parameters_are_arguments() -> None:
    def run(*, a: int, b: int = 2) -> None: ...

    assert inspected(run).bind({"a": 1}) == {"a": 1, "b": 2}


# -- context and asks -------------------------------------------------------------------------


def test_the_context_is_no_argument() -> None:
    def plain(a: int, context: Context[int]) -> None: ...

    def bare(context: Context) -> None: ...  # type: ignore[type-arg]  # as users write it

    def optional(a: int = 0, *, somewhere: Context[int] | None = None) -> None: ...

    def annotated(c: Annotated[Context[int], "the call"]) -> None: ...

    for function, name in (
        (plain, "context"),
        (bare, "context"),
        (optional, "somewhere"),
        (annotated, "c"),
    ):
        inspection = inspected(function)
        assert inspection.context == name
        properties = inspection.input_schema["properties"]
        assert isinstance(properties, dict)
        assert name not in properties
        with pytest.raises(ArgumentsInvalid, match="is unknown"):
            inspection.bind({"a": 1, name: {}})
    assert inspected(plain).bind({"a": 1}) == {"a": 1}


def test_the_context_is_wanted_once() -> None:
    def run(a: Context[int], b: Context[int]) -> None: ...

    assert refusal(run) == "run takes the context twice; remove 'b'"


def test_an_ask_is_no_argument() -> None:
    def delete(
        path: str,
        answer: Annotated[Confirm, Ask("Delete {path}, {force}?")],
        force: bool = False,
    ) -> None: ...

    function = inspected(delete)
    assert function.input_schema["required"] == ["path"]
    (ask,) = function.asks
    assert isinstance(ask, AskParameter)
    assert ask.name == "answer"
    bound = function.bind({"path": "/a"})
    assert bound == {"path": "/a", "force": False}
    assert ask.message(bound) == "Delete /a, false?"
    assert ask.convert({"confirm": True}) == Confirm(True)
    with pytest.raises(ArgumentsInvalid, match="'answer' is unknown"):
        function.bind({"path": "/a", "answer": {"confirm": True}})


# -- what is refused --------------------------------------------------------------------------


# fmt: off
def stars(*args: int) -> None: ...
def more(**kwargs: int) -> None: ...
def positional(a: int, /) -> None: ...
def private(__slots__: int) -> None: ...
def alien(b: int, a: complex) -> None: ...
def foreign() -> complex: raise NotImplementedError
def field(a: int = pydantic.Field(3)) -> None: ...
def alias(a: Annotated[int, pydantic.Field(alias="b")]) -> None: ...
def hidden(a: list[Annotated[int, pydantic.Field(ge=1)]]) -> None: ...
def template(a: int, b: Annotated[Confirm, Ask("{c}?")]) -> None: ...
def about(a: Annotated[Confirm, Ask("?")], b: Annotated[Confirm, Ask("{a}?")]) -> None: ...
def scalar(a: Annotated[bool, Ask("Sure?")]) -> None: ...
def odd(a: Annotated[complex, Ask("Sure?")]) -> None: ...
def union(a: Point | Struct) -> None: ...
# fmt: on


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (stars, "name each parameter"),
        (more, "name each parameter"),
        (positional, "remove the `/`"),
        (private, "'__slots__' of private is a name of Python's own"),
        (alien, "the annotation of 'a' of alien: builtins.complex has no form in JSON; use a type"),
        (foreign, "the return annotation of foreign: builtins.complex has no form in JSON; use a"),
        (field, "write `Annotated[type, Field(...)] = default`"),
        (alias, "name the parameter as the caller shall see it"),
        (hidden, "FieldInfo of pydantic would be left out there: use msgspec.Meta"),
        (template, "a template may hold {a}"),
        (about, "no names: there are no arguments"),
        (scalar, "use a dataclass, TypedDict or Struct with fields of"),
        (odd, "the annotation of 'a' of odd: builtins.complex"),
        (union, "the annotation of 'a' of union: Type unions may not contain"),
    ],
)
def test_mistakes_are_said_in_one_sentence_that_says_what_to_change(
    function: Callable[..., object], words: str
) -> None:
    assert words in refusal(function)


def test_what_is_returned_matters_to_tools_only() -> None:
    def prompt(a: str) -> list[Message]:
        raise NotImplementedError

    function = inspected(prompt)
    assert function.bind({"a": "x"}) == {"a": "x"}
    with pytest.raises(ConfigurationError, match="the return annotation of prompt"):
        _ = function.output


def test_the_output_is_read_once() -> None:
    def run() -> Point:
        raise NotImplementedError

    def free() -> list[Text]:
        raise NotImplementedError

    def odd() -> Annotated[str, {"not": "hashable"}]:
        raise NotImplementedError

    function = inspected(run)
    assert function.output is not None
    assert function.output is function.output
    assert inspected(free).output is None
    assert inspected(odd).output is None


# -- cost -------------------------------------------------------------------------------------


def python_calls(work: Callable[[], object]) -> int:
    """Count the Python functions called while `work` runs."""
    count = 0

    def profile(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def test_registering_and_calling_a_plain_tool_is_cheap() -> None:
    """ours: ten thousand tools start fast; counted, because time is not the same twice."""

    async def tool(a: int, b: str = "x") -> str:
        raise NotImplementedError

    function = inspected(tool)
    function.bind({"a": 1})
    assert python_calls(lambda: inspected(tool)) <= 16
    assert python_calls(lambda: function.bind({"a": 1, "b": "y"})) == 2  # the lambda is one


def test_a_plain_tool_loads_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from raxol_mcp.server.functions import inspect_function\n"
        "def tool(a: int, b: str = 'x') -> str: ...\n"
        "f = inspect_function(tool); f.bind({'a': 1}); f.input_schema; f.output\n"
        "print([m for m in ('pydantic', 'jsonschema_rs', 'urllib.parse',"
        " 'raxol_mcp.server.returns', 'raxol_mcp.server.shapes') if m in sys.modules])"
    )
    assert run_python(code) == "[]\n"


def run_python(code: str) -> str:
    import os
    import subprocess

    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    ended = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return ended.stdout


# -- the schema shown is the check that is made -----------------------------------------------

near_numbers = st.sampled_from([0, 1, -1, 5, 5.0, 5.5, 2**62, True, False, "5", "1", ""])
near_values = st.recursive(
    near_numbers | st.none() | st.sampled_from(["red", "x", "blue", "RED", "ab", "abcd"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["x", "y", "n", "tags", "point", "level", "colour", "z"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)
ANNOTATIONS: list[tuple[object, st.SearchStrategy[Any]]] = [
    (int, st.integers(-(2**63), 2**63 - 1)),
    (str, st.text(max_size=3)),
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (bool, st.booleans()),
    (int | None, st.none() | st.integers(-9, 9)),
    (int | str, st.integers(-9, 9) | st.just("a")),
    (int | float | None, st.floats(-9, 9) | st.none()),
    (list[int], st.lists(st.integers(-9, 9), max_size=3)),
    (list[list[str]], st.just([["a"], []])),
    (dict[str, int], st.just({"x": 1})),
    (dict[str, object], st.just({"x": [None]})),
    (tuple[int, str], st.just([1, "a"])),
    (Literal["red", "x"], st.sampled_from(["red", "x"])),
    (Literal[1, "a", None], st.sampled_from([1, "a", None])),
    (Colour, st.sampled_from(["red", "blue"])),
    (Level, st.sampled_from([1, 2])),
    (Annotated[int, msgspec.Meta(ge=1, lt=6)], st.integers(1, 5)),
    (Annotated[str, msgspec.Meta(min_length=2, max_length=3)], st.just("ab")),
    (Annotated[list[int], msgspec.Meta(min_length=1)], st.just([1])),
    (Point, st.just({"x": 1})),
    (Point | None, st.none() | st.just({"x": 1, "y": 2})),
    (list[Point], st.just([{"x": 1}, {"x": 2, "y": 1.5}])),
    (Typed, st.just({"n": 1, "tags": ["a"]})),
    (Struct, st.just({"point": {"x": 1}, "level": 2})),
    (object, st.just({"x": None})),
]


@st.composite
def signatures_and_arguments(draw: st.DrawFn) -> tuple[Function, dict[str, object]]:
    def function(a: Any, b: Any = "default", c: Any = None) -> None: ...

    chosen = [draw(st.sampled_from(ANNOTATIONS)) for _ in "abc"]
    function.__annotations__ = dict(zip("abc", (type_ for type_, _ in chosen), strict=True))
    arguments = {
        name: draw(fitting | near_values)
        for name, (_, fitting) in zip("abc", chosen, strict=True)
        if draw(st.integers(0, 3))
    }
    if not draw(st.integers(0, 9)):
        arguments["z"] = 1
    return inspected(function), arguments


def test_whole_numbers_beyond_64_bits_are_no_integers() -> None:
    """ours: written without a fraction they would be refused as a message."""

    def run(a: int) -> None: ...

    assert inspected(run).bind({"a": -(2.0**63)}) == {"a": -(2**63)}
    with pytest.raises(ArgumentsInvalid, match="'a' must be integer, not number"):
        inspected(run).bind({"a": 1e300})


def outcome(function: Function, arguments: dict[str, object]) -> dict[str, object] | str:
    """Return what was bound, or the sentence on what is wrong."""
    try:
        return function.bind(arguments)
    except ArgumentsInvalid as error:
        return str(error)


@given(signatures_and_arguments())
@settings(max_examples=4 * settings().max_examples)
def test_arguments_are_taken_exactly_when_the_schema_takes_them(
    case: tuple[Function, dict[str, object]],
) -> None:
    """ours: what is shown in tools/list is what is enforced, judged by another validator."""
    function, arguments = case
    validator = jsonschema.Draft202012Validator(function.input_schema)
    errors = list(validator.iter_errors(arguments))
    bound = outcome(function, arguments)
    assert isinstance(bound, str) is bool(errors), (bound, errors)
    if isinstance(bound, str):
        for path in (error.absolute_path for error in errors):
            assert not path or f"'{path[0]}" in bound, f"{bound} does not name {path[0]}"
    else:
        assert set(bound) == {"a", "b", "c"}


@given(
    st.fixed_dictionaries({}, optional={"n": near_values, "colour": near_values, "z": near_values})
)
def test_a_model_takes_nothing_that_its_schema_refuses(content: dict[str, object]) -> None:
    """ours: one-sided, because pydantic's strict mode refuses 5.0 for an integer."""

    def run(model: Model) -> None: ...

    function = inspected(run)
    fits = jsonschema.Draft202012Validator(function.input_schema).is_valid({"model": content})
    bound = outcome(function, {"model": content})
    if isinstance(bound, str):
        assert not fits or isinstance(content["n"], float), bound
    else:
        assert fits
        assert isinstance(bound["model"], Model)
