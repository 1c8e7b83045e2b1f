"""Validation by schemas that somebody wrote."""

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.schemas.json_schema import compile_schema

TYPED: dict[str, object] = {
    "type": "object",
    "properties": {
        "s": {"type": "string", "pattern": "^[a-z]*$", "maxLength": 5},
        "n": {"type": "integer", "minimum": 1},
        "e": {"enum": ["x", "y"]},
        "o": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
        "l": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["s"],
    "additionalProperties": False,
}

TREE: dict[str, object] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "a/b~c": {"type": "integer"},
        "child": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
    },
    "required": ["name"],
    "additionalProperties": False,
}


def nested(depth: int, leaf: object) -> Any:
    value = leaf
    for _ in range(depth):
        value = {"name": "x", "child": value}
    return value


@pytest.mark.parametrize(
    "arguments",
    [
        {"s": "a"},
        {"s": "", "n": 1, "e": "x", "o": {"a": 1, "more": 2}, "l": []},
        {"s": "a", "n": 5.0},
    ],
)
def test_what_conforms_has_no_problems(arguments: object) -> None:
    assert compile_schema(TYPED).problems(arguments) is None


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, "'s' is required"),
        ({"s": 7}, "'s' is not of type \"string\""),
        ({"s": "A"}, "'s' does not match \"^[a-z]*$\""),
        ({"s": "abcdef"}, "'s' is longer than 5 characters"),
        ({"s": "a", "n": "5"}, "'n' is not of type \"integer\""),
        ({"s": "a", "n": True}, "'n' is not of type \"integer\""),
        ({"s": "a", "n": 0}, "'n' is less than the minimum of 1"),
        ({"s": "a", "e": "secret"}, '\'e\' is not one of "x" or "y"'),
        ({"s": "a", "o": {}}, "'o.a' is required"),
        ({"s": "a", "l": [1, "2"]}, "'l[1]' is not of type \"integer\""),
        ({"s": "a", "typo": 1}, "'typo' is unknown"),
        ([], 'the whole is not of type "object"'),
        (None, 'the whole is not of type "object"'),
    ],
)
def test_near_misses_are_told_by_place_and_never_by_value(arguments: object, expected: str) -> None:
    """MCP SEP-1303: the model reads this and corrects itself."""
    assert compile_schema(TYPED).problems(arguments) == f"Invalid arguments: {expected}."


def test_everything_wrong_is_one_sentence() -> None:
    text = compile_schema(TYPED).problems({"n": "x" * 1_000, "e": "z" * 1_000, "q": 1, "r": 2})
    assert text is not None
    for name in ("'s'", "'n'", "'e'", "'q'", "'r'"):
        assert name in text
    assert "xxx" not in text
    assert "zzz" not in text


def test_the_noun_is_what_is_judged() -> None:
    text = compile_schema({"type": "object"}).problems([], noun="result")
    assert text == 'Invalid result: the whole is not of type "object".'


def test_a_complaint_that_starts_otherwise_keeps_its_words() -> None:
    text = compile_schema({"not": {"type": "null"}}).problems(None)
    assert text == 'Invalid arguments: the whole: {"type":"null"} is not allowed for the value.'


def test_unevaluated_members_are_unknown() -> None:
    validator = compile_schema({"properties": {"a": {}}, "unevaluatedProperties": False})
    assert validator.problems({"a": 1, "b": 1}) == "Invalid arguments: 'b' is unknown."


def test_a_thousand_errors_are_counted_up_to_a_bound() -> None:
    text = compile_schema({"items": {"type": "integer"}}).problems(["x"] * 1_000)
    assert text is not None
    assert text.count("is not of type") == 20
    assert "more" in text


@pytest.mark.parametrize(
    "instance",
    [
        {"s": "\ud800"},
        {1: 2},
        {"s": object()},
        {"s": {1, 2}},
        {"s": float("nan")},
        {"s": "a", "n": float("inf")},
    ],
)
def test_what_the_validator_cannot_handle_does_not_conform(instance: object) -> None:
    assert compile_schema(TYPED).problems(instance) is not None


def test_a_value_nested_too_deep_never_reaches_the_validator() -> None:
    """ours: jsonschema-rs ends the process when its stack does."""
    validator = compile_schema(TREE)
    assert validator.problems(nested(127, {"name": "x"})) is None
    text = validator.problems(nested(20_000, {"name": "x"}))
    assert text == "Invalid arguments: nested deeper than 128."
    cycle: list[object] = []
    cycle.append(cycle)
    assert compile_schema({}).problems(cycle) is not None


def test_the_deepest_value_is_judged_on_a_small_stack() -> None:
    validator = compile_schema(TREE)
    found: list[str | None] = []
    before = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=lambda: found.append(validator.problems(nested(127, 1))))
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert found == ["Invalid arguments: 'child' does not fit its schema."]


def test_a_schema_that_refers_to_itself_is_judged_fast() -> None:
    """ours: its list of errors doubles with each level, so only the members are blamed."""
    validator = compile_schema(TREE)
    assert validator.problems(nested(100, {"name": "x"})) is None
    assert validator.problems({"name": "x", "child": nested(100, {"name": 1})}) == (
        "Invalid arguments: 'child' does not fit its schema."
    )
    assert validator.problems({"a/b~c": "1", "typo": 1, "child": {"name": "x"}}) == (
        "Invalid arguments: 'name' is required; 'a/b~c' does not fit its schema; 'typo' is unknown."
    )
    assert validator.problems([]) == "Invalid arguments: they do not fit the schema."


def test_a_flood_of_wrong_values_is_judged_by_its_members() -> None:
    """ours: the validator would make a million errors, and stop the event loop for that long."""
    validator = compile_schema({"properties": {"xs": {"items": {"type": "string"}}}})
    told = validator.problems({"xs": [1] * 100})
    assert told is not None
    assert told.startswith("Invalid arguments: 'xs[0]' is not of type")
    for flood in ([1] * 200_000, [[1] * 1_000] * 100, [{"a": 1}] * 50_000):
        assert validator.problems({"xs": flood}) == (
            "Invalid arguments: 'xs' does not fit its schema."
        )
    assert validator.problems({"xs": ["x"] * 200_000}) is None


def test_what_judging_may_take_is_known_beforehand() -> None:
    """Each value may meet every subschema, and references repeat those they refer to."""
    plain = compile_schema({"items": {"anyOf": [{"type": "string"}, {"type": "null"}]}})
    assert not plain.needs_more([1] * 24, checks=100)
    assert plain.needs_more([1] * 25, checks=100)
    definitions: dict[str, object] = {
        f"d{index}": {"anyOf": [{"$ref": f"#/$defs/d{index + 1}"}] * 2} for index in range(10)
    }
    doubled = compile_schema({"$defs": {**definitions, "d10": {}}, "$ref": "#/$defs/d0"})
    assert not doubled.needs_more(7, checks=10_000)
    assert doubled.needs_more([7], checks=1_000)
    assert not doubled.needs_more({"a": [{"b": (7,)}]}, checks=100_000)


def test_a_recursive_schema_may_be_odd() -> None:
    anything = compile_schema({"properties": {"n": {"$ref": "#"}}, "minProperties": 1})
    assert anything.problems({"n": {}}) == "Invalid arguments: 'n' does not fit its schema."
    assert anything.problems({}) == "Invalid arguments: they do not fit the schema."
    assert anything.problems({"n": {}, "more": 1}) == (
        "Invalid arguments: 'n' does not fit its schema."
    )
    untyped = compile_schema({"items": {"$ref": "#"}, "type": "array"})
    assert untyped.problems({}) == "Invalid arguments: they do not fit the schema."


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "objct"}, "is not valid at 'type'"),
        ({"properties": {"a": {"minimum": "x"}}}, "is not valid at 'properties/a/minimum'"),
        ({"properties": {"a": {"pattern": "(?=a)"}}}, "at 'properties/a/pattern': patterns run"),
        ({"patternProperties": {r"(a)\1": {}}}, "without look-around and back-references"),
        ({"pattern": "("}, "a pattern that is not supported, at 'pattern'"),
        ({"pattern": "((a{100}){100}){100}"}, "a pattern that is not supported, at 'pattern'"),
        ({"$ref": "http://127.0.0.1:1/x"}, "never fetched"),
    ],
)
def test_a_schema_that_cannot_be_used_says_why(schema: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^the JSON Schema") as caught:
        compile_schema(schema)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_pattern_takes_linear_time() -> None:
    """ours: a schema may come from somebody else, and one pattern must not stop a server."""
    validator = compile_schema({"pattern": "^(a+)+$"})
    assert validator.problems("a" * 100_000 + "b") is not None
    assert validator.problems("a" * 100_000) is None


@pytest.mark.parametrize("dialect", ["draft-07", "draft-06", "draft-04"])
def test_older_dialects_are_judged_as_themselves(dialect: str) -> None:
    schema: dict[str, object] = {
        "$schema": f"http://json-schema.org/{dialect}/schema#",
        "items": [{"type": "integer"}],
    }
    assert compile_schema(schema).problems([1]) is None
    assert compile_schema(schema).problems(["x"]) is not None


def test_formats_are_notes() -> None:
    """JSON Schema 2020-12 §7.2.1: `format` is an annotation unless asked for otherwise."""
    assert compile_schema({"format": "date"}).problems("no date") is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(json_values, st.booleans())
def test_judging_never_raises(value: object, recursive: bool) -> None:
    text = compile_schema(TREE if recursive else TYPED).problems(value)
    assert text is None or (text.startswith("Invalid arguments: ") and text.endswith("."))
