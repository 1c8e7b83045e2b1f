"""Which JSON Schemas are taken."""

from typing import Any

import pytest

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.schemas.admission import DIALECTS, admit


def refusal(schema: object) -> str:
    with pytest.raises(ConfigurationError) as caught:
        admit(schema)
    text = str(caught.value)
    assert "\n" not in text
    return text


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"type": "object", "properties": {"$ref": {"type": "string"}, "$id": {}, "id": {}}},
        {"const": {"$ref": "http://example.com"}, "enum": [{"$id": "x"}], "default": {"$ref": 1}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "integer"}}},
        {"$ref": "#/definitions/a~1b%20c", "definitions": {"a/b c": True}},
        {"allOf": [{"type": "object"}, {"$ref": "#/allOf/0"}]},
        {"$ref": "#a", "$defs": {"x": {"$anchor": "a"}}},
        {"$dynamicRef": "#a", "$defs": {"x": {"$dynamicAnchor": "a"}}},
        {
            "$id": "https://example.com/s",
            "$ref": "https://example.com/s#/$defs/a",
            "$defs": {"a": {}},
        },
        {"items": [{}, {"x": 1}], "required": ["a"], "x-own": {"anything": [1]}},
        {"dependencies": {"a": ["b"], "c": {"type": "object"}}},
        {"properties": {"a": {"id": "just a word"}}},
        *({"$schema": dialect} for dialect in DIALECTS),
        {"$schema": "http://json-schema.org/draft-07/schema#"},
    ],
)
def test_plain_schemas_are_taken_and_do_not_refer_to_themselves(schema: dict[str, object]) -> None:
    """MCP 2026-07-28 basic §JSON Schema: any keyword of 2020-12, and documented dialects."""
    assert not admit(schema).recursive


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"properties": {"n": {"$ref": "#"}}},
        {"properties": {"n": {"$ref": "#/properties/n"}}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}},
        {
            "$ref": "#/$defs/a",
            "$defs": {"a": {"items": {"$ref": "#/$defs/b"}}, "b": {"not": {"$ref": "#/$defs/a"}}},
        },
        {"$dynamicAnchor": "t", "items": {"$dynamicRef": "#t"}},
        {"$schema": DIALECTS[1], "items": {"$recursiveRef": "#"}},
    ],
)
def test_a_circle_of_references_is_seen(schema: dict[str, object]) -> None:
    assert admit(schema).recursive


def test_a_circle_that_nothing_refers_to_costs_nothing() -> None:
    assert not admit({"$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}}).recursive


@pytest.mark.parametrize("schema", [None, True, [], "{}", 5])
def test_a_schema_is_an_object(schema: object) -> None:
    assert refusal(schema) == "a JSON Schema must be an object"


def test_the_size_is_bounded() -> None:
    assert not admit({"description": "x" * 200_000}).recursive
    assert "larger than 256 KiB" in refusal({"description": "x" * 263_000})
    assert "larger than 256 KiB" in refusal({"enum": list(range(300_000))})


def test_the_depth_is_bounded() -> None:
    def nested(depth: int) -> dict[str, Any]:
        schema: dict[str, Any] = {}
        for _ in range(depth):
            schema = {"not": schema}
        return schema

    assert not admit(nested(63)).recursive
    assert "nested deeper than 64" in refusal(nested(64))
    assert "nested deeper than 64" in refusal(nested(20_000))


def test_a_schema_that_contains_itself_is_refused() -> None:
    schema: dict[str, Any] = {}
    schema["not"] = schema
    assert "nested deeper" in refusal(schema)
    shared: list[object] = []
    for _ in range(60):
        shared = [shared, shared]
    assert "larger than" in refusal({"allOf": shared})


@pytest.mark.parametrize("value", [{1, 2}, object(), 1j, "\ud800"])
def test_a_schema_is_json(value: object) -> None:
    if isinstance(value, set):
        value = {"a": {(1, 2): 3}}
    assert "is not JSON" in refusal({"default": value})


@pytest.mark.parametrize(
    "dialect", ["http://json-schema.org/draft-03/schema#", "https://example.com/own", 7, ""]
)
def test_another_dialect_is_refused(dialect: object) -> None:
    """MCP 2025-11-25 basic §JSON Schema: an unsupported dialect MUST produce a clear error."""
    assert "is not supported; use https://json-schema.org/draft/2020-12/schema" in refusal(
        {"$schema": dialect}
    )


@pytest.mark.parametrize(
    "reference",
    [
        "http://127.0.0.1:1/schema",
        "file:///etc/passwd",
        "other.json",
        "https://example.com/other#/$defs/a",
        "//host/x",
    ],
)
def test_references_are_never_fetched(reference: str) -> None:
    """MCP 2026-07-28 basic §JSON Schema: MUST NOT dereference network references."""
    schema = {"$id": "https://example.com/s", "properties": {"a": {"$ref": reference}}}
    assert "is never fetched; put it under $defs" in refusal(schema)


@pytest.mark.parametrize(
    "reference",
    ["#/$defs/b", "#b", "#/$defs", "#/$defs/a/type", "#/allOf/1", "#/allOf/x", "#/required/0/x"],
)
def test_a_reference_to_nothing_is_refused(reference: str) -> None:
    schema = {
        "$defs": {"a": {"type": "integer"}},
        "allOf": [{}],
        "required": ["a"],
        "not": {"$ref": reference},
    }
    assert "which is not in it" in refusal(schema)


@pytest.mark.parametrize(
    ("schema", "keyword"),
    [
        ({"$defs": {"a": {"$id": "inner"}}}, "$id"),
        ({"$schema": DIALECTS[-1] + "#", "items": {"id": "inner"}}, "id"),
    ],
)
def test_an_id_below_the_root_is_refused(schema: dict[str, object], keyword: str) -> None:
    assert f"has an {keyword} below its root" in refusal(schema)


def test_what_references_expand_to_is_bounded() -> None:
    """ours: 30 levels of two references each keep a validator busy for minutes."""

    def doubled(levels: int) -> dict[str, object]:
        definitions: dict[str, object] = {
            f"d{level}": {"allOf": [{"$ref": f"#/$defs/d{level + 1}"}] * 2}
            for level in range(levels)
        }
        definitions[f"d{levels}"] = {"type": "object"}
        return {"$defs": definitions, "$ref": "#/$defs/d0"}

    assert not admit(doubled(14)).recursive
    for levels in (16, 30, 60):
        assert "expand to more than 100000 subschemas" in refusal(doubled(levels))


def test_a_long_chain_of_references_is_no_recursion() -> None:
    links = 4_000
    definitions: dict[str, object] = {
        f"d{link}": {"$ref": f"#/$defs/d{link + 1}"} for link in range(links)
    }
    definitions[f"d{links}"] = {}
    assert not admit({"$defs": definitions, "$ref": "#/$defs/d0"}).recursive


def test_a_long_reference_is_cut_in_the_message() -> None:
    assert len(refusal({"$ref": "#/" + "x" * 10_000})) < 300
    assert len(refusal({"$schema": "x" * 10_000})) < 300
