"""Results for clients of earlier revisions."""

import pytest

from raxol_mcp.server.adapt import adapted

AUDIO = {"type": "audio", "data": "AA==", "mimeType": "audio/wav", "annotations": {"priority": 1}}
LINK = {
    "type": "resource_link",
    "uri": "mem://a",
    "name": "a",
    "title": "A",
    "description": "The first.",
}
TEXT = {"type": "text", "text": "t"}
ATTACHED = {
    "type": "resource",
    "resource": {"uri": "attachment:audio-2", "mimeType": "audio/wav", "blob": "AA=="},
    "annotations": {"priority": 1},
}
TOLD = {"type": "text", "text": "A: mem://a\nThe first."}


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("2024-11-05", [TEXT, ATTACHED, TOLD]),
        ("2025-03-26", [TEXT, AUDIO, TOLD]),
        ("2025-06-18", [TEXT, AUDIO, LINK]),
        ("2025-11-25", [TEXT, AUDIO, LINK]),
    ],
)
def test_items_become_what_the_revision_knows(version: str, expected: list[object]) -> None:
    """MCP 2025-03-26 changelog: audio; MCP 2025-06-18 changelog: resource links."""
    payload: dict[str, object] = {"content": [TEXT, AUDIO, LINK], "isError": True}
    assert adapted(payload, version) == {"content": expected, "isError": True}
    messages = [{"role": "user", "content": item} for item in (TEXT, AUDIO, LINK)]
    told = adapted({"messages": messages, "description": "d"}, version)
    assert told["messages"] == [{"role": "user", "content": item} for item in expected]


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", "2025-11-25"])
def test_structure_that_is_no_object_is_left_out(version: str) -> None:
    """MCP 2026-07-28 changelog: structured content is any JSON value; before, an object."""
    assert adapted({"content": [TEXT], "structuredContent": [1]}, version) == {"content": [TEXT]}
    text = {"type": "text", "text": "[1,null]"}
    alone: dict[str, object] = {"content": [], "structuredContent": [1, None]}
    assert adapted(alone, version) == {"content": [text]}
    kept: dict[str, object] = {"content": [], "structuredContent": {"a": 1}}
    assert adapted(kept, version) == kept


def test_what_needs_no_change_is_not_copied() -> None:
    payload: dict[str, object] = {"content": [TEXT]}
    assert adapted(payload, "2025-11-25") is payload
    contents: dict[str, object] = {"contents": []}
    assert adapted(contents, "2024-11-05") is contents


def test_a_link_needs_only_its_uri_and_its_name() -> None:
    link = {"type": "resource_link", "uri": "mem://a", "name": "a"}
    told = {"type": "text", "text": "a: mem://a"}
    assert adapted({"content": [link]}, "2025-03-26") == {"content": [told]}
