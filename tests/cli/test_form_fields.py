"""The fields of a form, and what a typed text means there."""

from typing import Any

import pytest

from raxol_mcp.cli.form_fields import (
    MISSING,
    Field,
    Kind,
    Misfit,
    UnreadableForm,
    fields_of,
    parsed,
)
from raxol_mcp.client.forms import form_of

COLOURS = {"type": "string", "enum": ["red", "green"]}
TITLED = {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g"}]}
OLD = {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]}
SEVERAL = {"type": "array", "items": {"anyOf": [{"const": "a"}, {"const": "b"}]}, "minItems": 1}
LEVELS = {"type": "string", "enum": ["3", "2", "1"]}


def field(schema: dict[str, Any], *, required: bool = True) -> Field:
    """Make the only field of a form that the client takes."""
    form = {"type": "object", "properties": {"it": schema}}
    (found,) = fields_of(form_of({**form, "required": ["it"] if required else []}))
    return found


@pytest.mark.parametrize(
    ("schema", "kind", "hint"),
    [
        ({"type": "string"}, Kind.TEXT, "text"),
        (
            {"type": "string", "minLength": 2, "maxLength": 9},
            Kind.TEXT,
            "text, 2 to 9 characters",
        ),
        ({"type": "string", "minLength": 1, "format": "email"}, Kind.TEXT, "text, email"),
        ({"type": "integer", "minimum": 18}, Kind.INTEGER, "integer, at least 18"),
        ({"type": "number", "maximum": 2.5}, Kind.NUMBER, "number, at most 2.5"),
        ({"type": "boolean"}, Kind.BOOLEAN, "yes or no"),
        (COLOURS, Kind.CHOICE, "one of these"),
        (TITLED, Kind.CHOICE, "one of these"),
        (OLD, Kind.CHOICE, "one of these"),
        (SEVERAL, Kind.CHOICES, "any of these, at least 1 of them"),
    ],
)
def test_every_kind_of_field_is_known(schema: dict[str, Any], kind: Kind, hint: str) -> None:
    """MCP 2025-11-25 client/elicitation §Requested Schema."""
    found = field(schema)
    assert (found.kind, found.hint) == (kind, hint)
    assert field(schema, required=False).hint == f"{hint}, may be left empty"


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "string"}, " as it is ", " as it is "),
        ({"type": "integer"}, " 42 ", 42),
        ({"type": "integer"}, "-7", -7),
        ({"type": "number"}, "2.50", 2.5),
        ({"type": "number"}, "3", 3),
        ({"type": "number"}, "1e3", 1000.0),
        ({"type": "boolean"}, "Yes", True),
        ({"type": "boolean"}, "false", False),
        ({"type": "string", "format": "date"}, "2026-01-31", "2026-01-31"),
        ({"type": "string", "pattern": "^[a-z]+$"}, "abc", "abc"),
        (COLOURS, "green", "green"),
        (COLOURS, "2", "green"),
        (OLD, "Green (g)", "g"),
        (LEVELS, "1", "1"),
        (SEVERAL, "2, a, 2", ["b", "a"]),
    ],
)
def test_a_text_means_a_value(schema: dict[str, Any], text: str, value: object) -> None:
    found = parsed(field(schema), text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("schema", "text", "told"),
    [
        ({"type": "string", "minLength": 3}, "ab", "must have at least 3 characters"),
        ({"type": "string", "format": "email"}, "me", "must be a email"),
        ({"type": "string", "format": "date"}, "2026-02-30", "must be a date"),
        ({"type": "string", "pattern": "^[a-z]+$"}, "A", "must match its pattern"),
        ({"type": "integer"}, "4.5", "type a whole number"),
        ({"type": "integer"}, "", "type a whole number"),
        ({"type": "integer"}, "9" * 5000, "type a whole number"),
        ({"type": "integer", "minimum": 18}, "17", "must be at least 18"),
        ({"type": "number"}, "nan", "type a number, such as 2.5"),
        ({"type": "number"}, "1e999", "type a number that is nearer to 0"),
        ({"type": "boolean"}, "ja", "type yes or no"),
        (COLOURS, "blue", "choose from the list, by number or value"),
        (COLOURS, "3", "choose from the list, by number or value"),
        (COLOURS, "0", "choose from the list, by number or value"),
        (TITLED, "Red", "choose from the list, by number or value"),
        (LEVELS, "4", "choose from the list"),
        (SEVERAL, "a, c", "choose from the list, by number or value"),
        (SEVERAL, " , ", "must have at least 1 items"),
    ],
)
def test_a_text_that_does_not_fit_is_told(schema: dict[str, Any], text: str, told: str) -> None:
    with pytest.raises(Misfit) as caught:
        parsed(field(schema), text)
    assert str(caught.value) == told


def test_choices_show_what_will_be_sent() -> None:
    """K21. A server may call "delete" what it likes."""
    schema = {"type": "string", "oneOf": [{"const": "delete", "title": "Keep\u202e"}]}
    assert field(schema).choices == (("delete", "Keep\\u202e (delete)"),)


def test_labels_are_printable() -> None:
    found = field({"type": "boolean", "title": "Yes?\n[y/N]", "description": "a\x1b[2J"})
    assert (found.label, found.description) == ("Yes?\\n[y/N]", "a\\x1b[2J")
    assert field({"type": "boolean", "title": " "}).label == "it"


@pytest.mark.parametrize(
    ("schema", "default"),
    [
        ({"type": "boolean", "default": True}, True),
        ({"type": "integer", "default": 5, "minimum": 6}, MISSING),
        ({"type": "integer", "default": True}, MISSING),
        ({"type": "string", "default": None}, MISSING),
        ({**COLOURS, "default": "green"}, "green"),
        ({**COLOURS, "default": "blue"}, MISSING),
        ({**SEVERAL, "default": ["a"]}, ["a"]),
        ({"type": "string"}, MISSING),
    ],
)
def test_a_default_counts_only_where_it_fits(schema: dict[str, Any], default: object) -> None:
    assert field(schema).default == default


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ({f"f{n}": {"type": "string"} for n in range(33)}, "more than 32 fields"),
        ({"it": {"type": "string", "enum": [f"c{n}" for n in range(65)]}}, "more than 64 choices"),
        ({"it": {"type": "string", "title": "x" * 401}}, "a text of more than 400 characters"),
        ({"x" * 401: {"type": "string"}}, "a text of more than 400 characters"),
        ({"it": {"type": "string", "default": "x" * 401}}, "a text of more than 400 characters"),
    ],
)
def test_what_nobody_would_read_is_no_form(properties: dict[str, Any], told: str) -> None:
    """K12: a person's attention has a bound too."""
    with pytest.raises(UnreadableForm, match=told):
        fields_of(form_of({"type": "object", "properties": properties}))
