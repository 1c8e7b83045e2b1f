"""What a server offers, as a list on the wire shows it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from raxol_mcp.server.definitions import (
    Completion,
    Definition,
    Kind,
    Prompt,
    PromptArgument,
    Resource,
    ResourceTemplate,
    Tool,
)
from raxol_mcp.wire.jsonrpc import UnencodableResult
from tests.server.official import REVISIONS, needs_schemas, validator

SCHEMA: dict[str, object] = {"type": "object", "properties": {"a": {"type": "integer"}}}
ICONS: list[dict[str, object]] = [
    {
        "src": "https://example.com/i.png",
        "mimeType": "image/png",
        "sizes": ["48x48"],
        "theme": "dark",
    },
    {"src": "data:image/svg+xml;base64,PHN2Zy8+"},
]
META: dict[str, object] = {"com.example/owner": "me"}


def run(*_: object) -> str:
    return "never in a list"


FULL: list[Definition] = [
    Tool(
        "add",
        "Adds",
        SCHEMA,
        run,
        title="Add",
        annotations={"readOnlyHint": True, "title": "T"},
        output_schema={"type": "object"},
        icons=ICONS,
        meta=META,
        timeout=5.0,
        isolation="process",
        fault=lambda error: False,
        function=run,
    ),
    Resource(
        "mem://测试",
        "test",
        run,
        title="Test",
        description="A test",
        mime_type="text/plain",
        annotations={"audience": ["user"], "priority": 0, "lastModified": "2026-01-01T00:00:00Z"},
        size=0,
        icons=ICONS,
        meta=META,
    ),
    ResourceTemplate(
        "file:///docs/{name}",
        "docs",
        run,
        title="Docs",
        description="A folder",
        mime_type="text/plain",
        annotations={"audience": ["assistant"], "priority": 1},
        icons=ICONS,
        meta=META,
    ),
    Prompt(
        "greet",
        run,
        title="Greet",
        description="Says hello",
        arguments=(PromptArgument("who", "Whom", required=True), PromptArgument("how")),
        icons=ICONS,
        meta=META,
    ),
]
BARE: list[Definition] = [
    Tool("add", "Adds", SCHEMA, run),
    Resource("mem://a", "a", run),
    ResourceTemplate("mem://{a}", "a", run),
    Prompt("greet", run),
]
NAMES = {
    Kind.TOOLS: "Tool",
    Kind.RESOURCES: "Resource",
    Kind.TEMPLATES: "ResourceTemplate",
    Kind.PROMPTS: "Prompt",
}


def test_a_list_shows_what_was_given_and_never_how_it_runs() -> None:
    """MCP 2026-07-28 server/tools, server/resources, server/prompts."""
    assert [definition.definition for definition in FULL] == [
        {
            "name": "add",
            "title": "Add",
            "description": "Adds",
            "inputSchema": SCHEMA,
            "outputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": True, "title": "T"},
            "icons": ICONS,
            "_meta": META,
        },
        {
            "uri": "mem://%E6%B5%8B%E8%AF%95",
            "name": "test",
            "title": "Test",
            "description": "A test",
            "mimeType": "text/plain",
            "size": 0,
            "annotations": {
                "audience": ["user"],
                "priority": 0,
                "lastModified": "2026-01-01T00:00:00Z",
            },
            "icons": ICONS,
            "_meta": META,
        },
        {
            "uriTemplate": "file:///docs/{name}",
            "name": "docs",
            "title": "Docs",
            "description": "A folder",
            "mimeType": "text/plain",
            "annotations": {"audience": ["assistant"], "priority": 1},
            "icons": ICONS,
            "_meta": META,
        },
        {
            "name": "greet",
            "title": "Greet",
            "description": "Says hello",
            "arguments": [
                {"name": "who", "description": "Whom", "required": True},
                {"name": "how", "required": False},
            ],
            "icons": ICONS,
            "_meta": META,
        },
    ]


def test_what_was_not_given_is_absent_and_not_null() -> None:
    assert [definition.definition for definition in BARE] == [
        {"name": "add", "description": "Adds", "inputSchema": SCHEMA},
        {"uri": "mem://a", "name": "a"},
        {"uriTemplate": "mem://{a}", "name": "a"},
        {"name": "greet", "arguments": []},
    ]


def test_what_was_given_empty_stays_empty() -> None:
    tool = Tool("t", "d", SCHEMA, run, title="", annotations={}, icons=[], meta={})
    assert tool.definition == {
        "name": "t",
        "title": "",
        "description": "d",
        "inputSchema": SCHEMA,
        "annotations": {},
        "icons": [],
        "_meta": {},
    }


@pytest.mark.parametrize("definition", FULL + BARE, ids=repr)
def test_it_is_encoded_once_and_says_the_same(definition: Definition) -> None:
    assert isinstance(definition.encoded, msgspec.Raw)
    assert definition.encoded is definition.encoded
    assert json.loads(bytes(definition.encoded)) == definition.definition


def test_what_was_encoded_does_not_follow_later_changes() -> None:
    schema: dict[str, object] = {"type": "object"}
    tool = Tool("t", "d", schema, run)
    before = bytes(tool.encoded)
    schema["type"] = "array"
    assert bytes(tool.encoded) == before


def test_what_json_cannot_carry_says_so() -> None:
    with pytest.raises(UnencodableResult):
        Tool("t", "\ud800", SCHEMA, run).encoded  # noqa: B018  # read for what it raises


@needs_schemas
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("definition", FULL + BARE, ids=repr)
def test_it_fits_the_official_schema_of_every_revision(
    revision: str, definition: Definition
) -> None:
    shown = json.loads(bytes(definition.encoded))
    errors = list(validator(revision, NAMES[definition.kind]).iter_errors(shown))
    assert errors == []


def test_each_has_the_key_it_is_found_by() -> None:
    assert [definition.key for definition in BARE] == ["add", "mem://a", "mem://{a}", "greet"]
    completion = Completion("ref/prompt", "greet", "who", run)
    assert completion.key == ("ref/prompt", "greet", "who")


def test_it_can_neither_be_changed_nor_mistaken_for_another() -> None:
    tool = Tool("t", "d", SCHEMA, run)
    with pytest.raises(AttributeError):
        tool.name = "u"  # type: ignore[misc]  # what must not work
    assert tool != Tool("t", "d", SCHEMA, run)
    assert len({tool, Tool("t", "d", SCHEMA, run)}) == 2


def test_repr_is_short_enough_for_a_log() -> None:
    assert [repr(definition) for definition in BARE] == [
        "Tool('add')",
        "Resource('mem://a')",
        "ResourceTemplate('mem://{a}')",
        "Prompt('greet')",
    ]


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        (None, False),
        ({}, False),
        ({"destructiveHint": True}, True),
        ({"sensitive": True}, True),
        ({"destructiveHint": False}, False),
        ({"readOnlyHint": True}, False),
        ({"destructiveHint": True, "readOnlyHint": True}, True),
        ({"destructiveHint": False, "sensitive": True}, True),
        ({"destructiveHint": 1}, False),
        ({"destructiveHint": "true"}, False),
        ({"destructivehint": True}, False),
        ([("destructiveHint", True)], False),
    ],
)
def test_a_tool_is_sensitive_when_it_says_so_exactly(annotations: Any, expected: bool) -> None:
    """One-way: no other annotation takes it back. MCP's default for destructiveHint is no say."""
    tool = Tool("t", "d", SCHEMA, run, annotations=annotations)
    assert tool.sensitive is expected
