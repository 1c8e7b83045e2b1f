"""Forms of elicitation: what is one, what is filled in, what fits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_mcp.client.forms import NoForm, answer_problem, filled, form_of


def form(*required: str, **fields: object) -> dict[str, object]:
    """Return the schema of a form."""
    schema: dict[str, object] = {"type": "object", "properties": fields}
    return {**schema, "required": list(required)} if required else schema


NOTHING: list[object] = [None, 7, [], {}, {"properties": {}}]


# MCP 2025-11-25 client/elicitation §Supported Schema Types, each.
FIELDS: dict[str, object] = {
    "name": {"type": "string", "title": "N", "description": "d", "minLength": 1, "maxLength": 9},
    "mail": {"type": "string", "format": "email", "default": "a@b"},
    "code": {"type": "string", "pattern": "^[a-z]+$"},
    "age": {"type": "integer", "minimum": 0, "maximum": 120, "default": 30},
    "score": {"type": "number", "minimum": 0.5},
    "sure": {"type": "boolean", "default": False},
    "plain": {"type": "string", "enum": ["a", "b"]},
    "legacy": {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]},
    "titled": {"type": "string", "oneOf": [{"const": "a", "title": "A"}, {"const": "b"}]},
    "many": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "maxItems": 2},
    "titles": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}, "minItems": 1},
}


def test_every_kind_of_field_makes_a_form() -> None:
    schema = form("name", "many", **FIELDS)
    assert form_of(schema) is schema
    assert form_of(form()) == form()


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        *((bad, "must be an object of type") for bad in NOTHING),
        ({"type": "object"}, "must have properties"),
        ({"type": "object", "properties": []}, "must have properties"),
        (form(**{f"f{i}": {"type": "string"} for i in range(257)}), "at most 256"),
        (form(a={"type": "string", "title": "x" * 70_000}), "at most 64 KiB"),
        (form("b", a={"type": "string"}), "names of properties"),
        ({**form(), "required": "a"}, "names of properties"),
        ({**form(), "required": [7]}, "names of properties"),
        (form(a=True), "'a' must be a string, a number"),
        (form(a={}), "'a' must be a string, a number"),
        (form(a={"type": "object", "properties": {}}), "'a' must be a string, a number"),
        (form(a={"type": ["string", "null"]}), "'a' must be a string, a number"),
        (form(a={"type": "string", "minLength": -1}), "minLength of the property 'a'"),
        (form(a={"type": "string", "maxLength": True}), "maxLength of the property 'a'"),
        (form(a={"type": "number", "minimum": "0"}), "minimum of the property 'a'"),
        (form(a={"type": "number", "maximum": None}), "maximum of the property 'a'"),
        (form(a={"type": "string", "title": 7}), "title of the property 'a' must be a text"),
        (form(a={"type": "string", "pattern": ["x"]}), "pattern of the property 'a'"),
        (form(a={"type": "array"}), "the items of the property 'a' must be choices"),
        (form(a={"type": "array", "items": {"type": "string"}}), "must be choices"),
        (form(a={"type": "array", "items": {"enum": []}}), "a list that is not empty"),
        (form(a={"type": "string", "enum": "ab"}), "a list that is not empty"),
        (form(a={"type": "string", "enum": ["a", 7]}), "must be texts"),
        (form(a={"type": "string", "oneOf": [{"title": "A"}]}), "must be texts"),
        (form(a={"type": "string", "oneOf": ["a"]}), "must be texts"),
        (form(a={"type": "string", "anyOf": "a"}), "must be texts"),
    ],
)
def test_what_is_no_form_is_refused(schema: object, why: str) -> None:
    with pytest.raises(NoForm) as caught:
        form_of(schema)
    assert why in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("name", ["a\nb", "\u202e", "x" * 500])
def test_a_refusal_is_one_bounded_line(name: str) -> None:
    with pytest.raises(NoForm) as caught:
        form_of(form(**{name: True}))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


def test_defaults_fill_in_what_is_left_out() -> None:
    """MCP 2025-11-25 client/elicitation, SEP-1034."""
    schema = form(
        name={"type": "string", "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status={"type": "string", "enum": ["active", "idle"], "default": "active"},
        verified={"type": "boolean", "default": True},
        tags={"type": "array", "items": {"enum": ["a"]}, "default": []},
        note={"type": "string"},
    )
    assert filled(schema, {"age": 0, "verified": False}) == {
        **{"name": "John Doe", "age": 0, "score": 95.5, "status": "active"},
        **{"verified": False, "tags": []},
    }


def test_what_was_given_stays_even_when_it_is_empty() -> None:
    given: dict[str, object] = {"name": ""}
    assert filled(form(name={"type": "string", "default": "x"}), given) == {"name": ""}
    assert given == {"name": ""}


@pytest.mark.parametrize(
    "field",
    [
        {"type": "integer", "default": "30"},
        {"type": "integer", "default": None},
        {"type": "string", "enum": ["a"], "default": "b"},
        {"type": "string", "maxLength": 1, "default": "ab"},
        {"type": "boolean", "default": 1},
    ],
)
def test_a_default_that_does_not_fit_is_none(field: dict[str, object]) -> None:
    assert filled(form(a=field), {}) == {}


FITTING = [
    ("name", "größe"),
    ("mail", "a@b.example"),
    ("code", "abc"),
    *(("age", 0), ("age", 120), ("age", 30.0)),
    *(("score", 0.5), ("score", 10**6)),
    ("sure", True),
    *(("plain", "a"), ("legacy", "b"), ("titled", "b")),
    *(("many", []), ("many", ["a", "b"]), ("many", ("a",)), ("titles", ["a"])),
]


@pytest.mark.parametrize(("field", "value"), FITTING)
def test_an_answer_that_fits_has_no_problem(field: str, value: object) -> None:
    assert answer_problem(form(**FIELDS), {field: value}) is None


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("name", 7, "must be a text"),
        ("name", "", "must have at least 1 characters"),
        ("name", "x" * 10, "must have at most 9 characters"),
        *(("mail", bad, "must be a email") for bad in ("", "a", "a@", "a @b", "a@b@c")),
        *(("code", bad, "must match its pattern") for bad in ("", "A", "a1")),
        *(("age", bad, "must be a whole number") for bad in ("1", True, None, 1.5, float("inf"))),
        *(("age", bad, "must be at least 0") for bad in (-1, -1.0)),
        ("age", 121, "must be at most 120"),
        *(("score", bad, "must be a number") for bad in ("1", True, float("nan"))),
        ("score", 0.4, "must be at least 0.5"),
        *(("sure", bad, "must be true or false") for bad in (0, 1, "true", None)),
        *((kind, "c", "must be one of its choices") for kind in ("plain", "legacy", "titled")),
        ("plain", ["a"], "must be a text"),
        *(("many", bad, "must be a list of its choices") for bad in ("a", ["c"], [1], {"a": 1})),
        ("many", ["a", "b", "a"], "must have at most 2 items"),
        ("titles", [], "must have at least 1 items"),
        ("other", 1, "is not in the form"),
    ],
)
def test_an_answer_that_does_not_fit_says_where_and_never_what(
    field: str, value: object, why: str
) -> None:
    assert answer_problem(form(**FIELDS), {field: value}) == (
        f"the answer does not fit the form: '{field}' {why}"
    )


def test_required_fields_are_required() -> None:
    schema = form("a", "b", a={"type": "string"}, b={"type": "string"}, c={"type": "string"})
    assert answer_problem(schema, {"a": ""}) == "the answer does not fit the form: 'b' is required"
    assert answer_problem(schema, {"a": "", "b": ""}) is None


@pytest.mark.parametrize(
    ("named", "good", "bad"),
    [
        ("uri", ["https://a", "mem:x"], ["a", "//a", "a b:c", "https://a b", "1a:b"]),
        (
            "date",
            ["2026-02-28", "2024-02-29"],
            ["2026-02-30", "20260228", "2026-2-8", "x", "2026-0\u0661-01"],
        ),
        (
            "date-time",
            ["2026-02-28T10:00:00Z", "2026-02-28t10:00:00.5+01:00", "2016-12-31T23:59:60Z"],
            ["2026-02-28", "2026-02-28T10:00:00", "2026-02-28T25:00:00Z", "2026-02-28 10:00:00Z"],
        ),
        ("of our own", ["anything"], []),
    ],
)
def test_formats_are_checked(named: str, good: list[str], bad: list[str]) -> None:
    """RFC 3986 §3, RFC 3339 §5.6; a format that is not known is a note."""
    schema = form(a={"type": "string", "format": named})
    assert [text for text in good if answer_problem(schema, {"a": text}) is not None] == []
    assert [text for text in bad if answer_problem(schema, {"a": text}) is None] == []


def test_a_pattern_takes_no_time_and_one_that_cannot_be_checked_is_left_to_the_server() -> None:
    slow = form(a={"type": "string", "pattern": "^(a+)+$"})
    assert answer_problem(slow, {"a": "a" * 50 + "!"}) is not None
    ahead = form(a={"type": "string", "pattern": "(?=x)y"})
    assert answer_problem(ahead, {"a": "anything"}) is None


@given(
    st.dictionaries(st.sampled_from([*FIELDS, "other"]), st.sampled_from([v for _, v in FITTING]))
)
def test_filling_in_never_spoils_an_answer(content: dict[str, object]) -> None:
    """Ours: defaults that do not fit are not taken."""
    schema = form(**FIELDS)
    if answer_problem(schema, content) is None:
        assert answer_problem(schema, filled(schema, content)) is None
