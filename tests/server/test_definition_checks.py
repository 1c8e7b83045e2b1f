"""Which definitions may be served, and what is said about the others."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.definition_checks import InvalidDefinitions, check
from raxol_mcp.server.definitions import (
    Completion,
    Prompt,
    PromptArgument,
    Resource,
    ResourceTemplate,
    Tool,
)
from tests.server.official import REVISIONS, needs_schemas, validator

# What a caller without a type checker may pass.
ONE: Any = 1
FIVE: Any = 5


def run(*_: object) -> str:
    return ""


def tool(**given: Any) -> Tool:
    return Tool(
        **{
            "name": "t",
            "description": "d",
            "input_schema": {"type": "object"},
            "callback": run,
            **given,
        }
    )


def resource(**given: Any) -> Resource:
    return Resource(**{"uri": "mem://a", "name": "a", "callback": run, **given})


def template(**given: Any) -> ResourceTemplate:
    return ResourceTemplate(**{"uri_template": "mem://{a}", "name": "a", "callback": run, **given})


def prompt(**given: Any) -> Prompt:
    return Prompt(**{"name": "p", "callback": run, **given})


def completion(**given: Any) -> Completion:
    return Completion(
        **{
            "reference": "ref/prompt",
            "target": "p",
            "argument": "a",
            "callback": run,
            **given,
        }
    )


def reasons(definition: object) -> list[str]:
    """What is wrong with one definition, without the explanations."""
    try:
        check([definition])
    except InvalidDefinitions as refusal:
        (problem,) = refusal.problems
        return [reason.partition(" (")[0] for reason in problem.reasons]
    return []


@pytest.mark.parametrize("make", [tool, resource, template, prompt, completion])
def test_the_least_that_is_needed_is_enough(make: Callable[[], object]) -> None:
    assert reasons(make()) == []


@pytest.mark.parametrize(
    "name", ["a", "A-b_c.d/e", "0", "_", "-", ".", "/", "x" * 128, "agent.reset"]
)
def test_names_that_mcp_allows(name: str) -> None:
    """MCP 2025-11-25 server/tools §Tool Names."""
    assert reasons(tool(name=name)) == []
    assert reasons(prompt(name=name)) == []


@pytest.mark.parametrize("name", ["x" * 129, "a b", "a,b", "a\n", "a\0", "工具", "a:b", "\ud800"])
def test_names_that_it_does_not(name: str) -> None:
    assert reasons(tool(name=name)) == ["invalid_name"]
    assert reasons(prompt(name=name)) == ["invalid_name"]


ICON = {"src": "https://x/i.png"}


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        (tool(name=None), ["missing_name"]),
        (tool(name=""), ["missing_name"]),
        (tool(name=5), ["missing_name"]),
        (tool(description=None), ["missing_description"]),
        (tool(description=" \n"), ["missing_description"]),
        (tool(description=["d"]), ["missing_description"]),
        (tool(callback=None), ["missing_callback"]),
        (tool(callback="run"), ["invalid_callback"]),
        (tool(input_schema=None), ["missing_input_schema"]),
        (tool(input_schema=True), ["invalid_input_schema"]),
        (tool(input_schema={}), ["invalid_input_schema"]),
        (tool(input_schema={"type": "array"}), ["invalid_input_schema"]),
        (tool(input_schema={"type": ["object"]}), ["invalid_input_schema"]),
        (tool(input_schema={"type": "object", "properties": []}), ["invalid_input_schema"]),
        (
            tool(input_schema={"type": "object", "properties": {"a": True}}),
            ["invalid_input_schema"],
        ),
        (tool(input_schema={"type": "object", "properties": None}), ["invalid_input_schema"]),
        (tool(input_schema={"type": "object", "required": "a"}), ["invalid_input_schema"]),
        (tool(input_schema={"type": "object", "required": [1]}), ["invalid_input_schema"]),
        (tool(input_schema={"type": "object", "$schema": 7}), ["invalid_input_schema"]),
        (
            tool(input_schema={"type": "object", "properties": {"a": {}}, "required": ("a",)}),
            [],
        ),
        (
            tool(
                input_schema={
                    "$schema": "https://json-schema.org/draft/2020-12/schema",
                    "type": "object",
                    "$defs": {"x": True},
                    "allOf": [{"$ref": "#/$defs/x"}],
                }
            ),
            [],
        ),
        (tool(output_schema={"type": "array"}), ["invalid_output_schema"]),
        (tool(output_schema={}), ["invalid_output_schema"]),
        (tool(output_schema={"type": "object"}), []),
        (tool(title=5), ["invalid_title"]),
        (tool(annotations=[]), ["invalid_annotations"]),
        (tool(annotations={"destructiveHint": "true"}), ["invalid_annotations"]),
        (tool(annotations={"sensitive": 1}), ["invalid_annotations"]),
        (tool(annotations={"readOnlyHint": None}), ["invalid_annotations"]),
        (tool(annotations={"title": None}), ["invalid_annotations"]),
        (tool(annotations={"title": "", "other": 5, "sensitive": True}), []),
        (tool(icons="i"), ["invalid_icons"]),
        (tool(icons=["i"]), ["invalid_icons"]),
        (tool(icons=[{}]), ["invalid_icons"]),
        (tool(icons=[{"src": "javascript:alert(1)"}]), ["invalid_icons"]),
        (tool(icons=[{"src": "file:///etc/passwd"}]), ["invalid_icons"]),
        (tool(icons=[{"src": "https://x/ y"}]), ["invalid_icons"]),
        (tool(icons=[{"src": "https://x/é"}]), ["invalid_icons"]),
        (tool(icons=[{**ICON, "mimeType": 1}]), ["invalid_icons"]),
        (tool(icons=[{**ICON, "sizes": "48x48"}]), ["invalid_icons"]),
        (tool(icons=[{**ICON, "theme": "blue"}]), ["invalid_icons"]),
        (tool(icons=(ICON, {**ICON, "sizes": ["any"], "theme": "light"})), []),
        (tool(icons=[]), []),
        (tool(meta=[]), ["invalid_meta"]),
        (tool(isolation="fork"), ["invalid_isolation"]),
        (tool(isolation=None), ["invalid_isolation"]),
        (tool(fault=False), ["invalid_fault_classifier"]),
        (tool(audience="ada"), ["invalid_audience"]),
        (tool(approval="Sure?"), ["invalid_approval"]),
        (tool(audience=len, approval=str), []),
        (tool(timeout=0), ["invalid_timeout"]),
        (tool(timeout=-1.0), ["invalid_timeout"]),
        (tool(timeout=True), ["invalid_timeout"]),
        (tool(timeout=float("inf")), ["invalid_timeout"]),
        (tool(timeout=float("nan")), ["invalid_timeout"]),
        (tool(timeout="5"), ["invalid_timeout"]),
        (tool(timeout=1), []),
        (resource(uri=None), ["missing_uri"]),
        (resource(uri=""), ["missing_uri"]),
        (resource(uri=5), ["missing_uri"]),
        (resource(uri="a/b"), ["invalid_uri"]),
        (resource(uri="mem://{a}"), ["invalid_uri"]),
        (resource(uri="mem://测试"), []),
        (resource(name=""), ["missing_name"]),
        (resource(name="any name, really"), []),
        (resource(callback=None), ["missing_callback"]),
        (resource(size=-1), ["invalid_size"]),
        (resource(size=True), ["invalid_size"]),
        (resource(size=1.0), ["invalid_size"]),
        (resource(size=0), []),
        (resource(description=5, mime_type=b"x"), ["invalid_description", "invalid_mime_type"]),
        (resource(annotations="user"), ["invalid_annotations"]),
        (resource(annotations={"audience": "user"}), ["invalid_annotations"]),
        (resource(annotations={"audience": ["robot"]}), ["invalid_annotations"]),
        (resource(annotations={"priority": 1.5}), ["invalid_annotations"]),
        (resource(annotations={"priority": True}), ["invalid_annotations"]),
        (resource(annotations={"priority": "1"}), ["invalid_annotations"]),
        (resource(annotations={"priority": float("nan")}), ["invalid_annotations"]),
        (resource(annotations={"lastModified": 0}), ["invalid_annotations"]),
        (resource(annotations={"audience": [], "priority": 0, "lastModified": ""}), []),
        (template(uri_template=None), ["missing_uri_template"]),
        (template(uri_template="mem://a"), ["invalid_uri_template"]),
        (template(name=" "), ["missing_name"]),
        (prompt(name=""), ["missing_name"]),
        (prompt(description=5), ["invalid_description"]),
        (prompt(arguments=None), ["invalid_arguments"]),
        (prompt(arguments=({"name": "a"},)), ["invalid_arguments"]),
        (prompt(arguments=(PromptArgument(""),)), ["invalid_arguments"]),
        (
            prompt(arguments=(PromptArgument("a", required=ONE),)),
            ["invalid_arguments"],
        ),
        (
            prompt(arguments=(PromptArgument("a", FIVE),)),
            ["invalid_description"],
        ),
        (prompt(arguments=(PromptArgument("a"), PromptArgument("a"))), ["duplicate_argument"]),
        (prompt(arguments=[PromptArgument("a")]), []),
        (completion(reference="ref/tool"), ["invalid_reference"]),
        (completion(target=""), ["missing_target"]),
        (completion(argument=None), ["missing_argument"]),
        (completion(callback=5), ["invalid_callback"]),
        (completion(isolation=""), ["invalid_isolation"]),
        (tool(description="\ud800"), ["unencodable"]),
        (tool(meta={"x": float("nan")}), ["unencodable"]),
        (tool(meta={"x": object()}), ["unencodable"]),
        (resource(description="x" * 2_000_000), ["unencodable"]),
        ("tool", ["not_a_definition"]),
        (None, ["not_a_definition"]),
        (
            tool(name="", description="", callback=None, input_schema=None),
            ["missing_name", "missing_description", "missing_callback", "missing_input_schema"],
        ),
    ],
)
def test_what_is_wrong_with_it(definition: object, expected: list[str]) -> None:
    assert reasons(definition) == expected


def test_every_problem_of_every_definition_is_in_one_error() -> None:
    with pytest.raises(ConfigurationError) as caught:
        check([tool(), tool(name="u", description=""), prompt(name="p q", callback=None)])
    error = caught.value
    assert isinstance(error, InvalidDefinitions)
    assert [(problem.index, problem.what, problem.key) for problem in error.problems] == [
        (1, "Tool", "u"),
        (2, "Prompt", "p q"),
    ]
    assert str(error) == (
        "nothing was registered: Tool 'u': missing_description; Prompt 'p q': "
        "invalid_name (1 to 128 of A-Z a-z 0-9 _ . - /), missing_callback"
    )


def test_one_key_twice_in_a_call_is_a_problem_of_the_second() -> None:
    with pytest.raises(InvalidDefinitions) as caught:
        check([tool(), prompt(name="t"), completion(), tool(), completion()])
    assert [(problem.index, problem.reasons) for problem in caught.value.problems] == [
        (3, ("duplicate_key",)),
        (4, ("duplicate_key",)),
    ]


def test_a_key_that_was_refused_does_not_make_the_next_one_a_duplicate() -> None:
    with pytest.raises(InvalidDefinitions) as caught:
        check([tool(description=""), tool()])
    assert [problem.index for problem in caught.value.problems] == [0]


# -- what passes fits the schemas

_JSON: st.SearchStrategy[object] = st.sampled_from(
    [None, True, 0, 1, -1, 0.5, "", "x", "user", [], ["user"], [1], {}]
)


def _members(*names: str) -> st.SearchStrategy[dict[str, object]]:
    return st.dictionaries(st.sampled_from(names), _JSON, max_size=3)


_OBJECTS = {
    "annotations": _members(
        "readOnlyHint", "destructiveHint", "title", "audience", "priority", "lastModified"
    ),
    "icons": st.lists(
        _members("mimeType", "sizes", "theme").map(lambda icon: {**ICON, **icon}), max_size=2
    ),
    "meta": _members("a", "b/c"),
    "input_schema": _members("$schema", "properties", "required", "$defs", "description").map(
        lambda schema: {"type": "object", **schema}
    ),
    "output_schema": _members("$schema", "properties", "required", "items").map(
        lambda schema: {"type": "object", **schema}
    ),
    "title": st.none() | _JSON,
    "description": _JSON,
    "mime_type": _JSON,
    "size": _JSON,
    "arguments": st.lists(
        st.builds(PromptArgument, st.sampled_from(["a", "b", ""]), _JSON, _JSON), max_size=2
    ),
}
_MAKERS: dict[str, Callable[..., msgspec.Struct]] = {
    "Tool": tool,
    "Resource": resource,
    "ResourceTemplate": template,
    "Prompt": prompt,
}


@st.composite
def _definitions(draw: st.DrawFn) -> tuple[str, Any]:
    name = draw(st.sampled_from(sorted(_MAKERS)))
    fields = set(_MAKERS[name]().__struct_fields__)
    chosen = draw(st.sets(st.sampled_from(sorted(fields & set(_OBJECTS))), max_size=2))
    return name, _MAKERS[name](**{field: draw(_OBJECTS[field]) for field in sorted(chosen)})


@needs_schemas
@given(_definitions())
def test_whatever_passes_fits_the_official_schema_of_every_revision(
    made: tuple[str, Any],
) -> None:
    name, definition = made
    if reasons(definition):
        return
    shown = json.loads(bytes(definition.encoded))
    for revision in REVISIONS:
        assert list(validator(revision, name).iter_errors(shown)) == [], revision
