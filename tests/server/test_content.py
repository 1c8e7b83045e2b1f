"""What tools, resources and prompts give back, and what of it is sent."""

import base64
import enum
from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, field_serializer

from raxol_mcp.server.content import (
    Audio,
    EmbeddedResource,
    Image,
    Message,
    ResourceLink,
    ResultInvalid,
    Text,
    ToolResult,
    prompt_payload,
    resource_contents,
    to_plain,
    tool_payload,
)
from raxol_mcp.server.returns import returns_from_schema, returns_of
from raxol_mcp.wire.jsonrpc import UnencodableResult


class Colour(enum.StrEnum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: int = 0


class Model(BaseModel):
    x: int


def texts(*items: str) -> dict[str, object]:
    return {"content": [{"type": "text", "text": item} for item in items]}


# -- content items ----------------------------------------------------------------------------


def test_items_are_written_as_mcp_names_them() -> None:
    """MCP 2026-07-28 server/tools §Tool Result."""
    assert Text("hi").to_wire() == {"type": "text", "text": "hi"}
    assert Image(b"\x00\x01", "image/png").to_wire() == {
        "type": "image",
        "data": "AAE=",
        "mimeType": "image/png",
    }
    assert Audio(b"", "audio/wav").to_wire() == {
        "type": "audio",
        "data": "",
        "mimeType": "audio/wav",
    }
    assert EmbeddedResource("a:b", text="t").to_wire() == {
        "type": "resource",
        "resource": {"uri": "a:b", "mimeType": "text/plain", "text": "t"},
    }
    assert EmbeddedResource("a:b", blob=b"\xff", mime_type="x/y").to_wire() == {
        "type": "resource",
        "resource": {"uri": "a:b", "mimeType": "x/y", "blob": "/w=="},
    }
    assert ResourceLink("a:b", "n").to_wire() == {
        "type": "resource_link",
        "uri": "a:b",
        "name": "n",
    }


def test_a_link_says_all_it_knows() -> None:
    link = ResourceLink(
        "a:b",
        "n",
        title="T",
        description="D",
        mime_type="x/y",
        size=0,
        icons=[{"src": "data:,"}],
    )
    assert link.to_wire() == {
        "type": "resource_link",
        "uri": "a:b",
        "name": "n",
        "title": "T",
        "description": "D",
        "mimeType": "x/y",
        "size": 0,
        "icons": [{"src": "data:,"}],
    }


def test_every_item_carries_annotations_and_meta() -> None:
    for item in (
        Text("", annotations={"priority": 1}, meta={"k": 1}),
        Image(b"", "", annotations={"priority": 1}, meta={"k": 1}),
        Audio(b"", "", annotations={"priority": 1}, meta={"k": 1}),
        EmbeddedResource("a:b", "", annotations={"priority": 1}, meta={"k": 1}),
        ResourceLink("a:b", "n", annotations={"priority": 1}, meta={"k": 1}),
    ):
        written = item.to_wire()
        assert written["annotations"] == {"priority": 1}
        assert written["_meta"] == {"k": 1}


@given(st.binary(max_size=4_000))
def test_bytes_survive_strict_standard_base64(data: bytes) -> None:
    """RFC 4648 §4: standard alphabet, padding, no line breaks."""
    encoded = Image(data, "image/png").to_wire()["data"]
    assert isinstance(encoded, str)
    assert base64.b64decode(encoded, validate=True) == data
    assert encoded == base64.b64encode(data).decode()


@pytest.mark.parametrize("data", [bytes(range(256)), b"\xfb\xef\xbe", b"", b"\xff" * 5_000_000])
def test_binary_resources_use_the_standard_alphabet(data: bytes) -> None:
    """RFC 4648 §4; modelcontextprotocol/python-sdk#342."""
    (contents,) = resource_contents("mem://bin", data)
    blob = contents["blob"]
    assert isinstance(blob, str)
    assert base64.b64decode(blob, validate=True) == data
    assert contents["mimeType"] == "application/octet-stream"


@pytest.mark.parametrize(("text", "blob"), [(None, None), ("t", b"b")])
def test_an_embedded_resource_is_text_or_bytes(text: str | None, blob: bytes | None) -> None:
    with pytest.raises(ValueError, match="either text or blob"):
        EmbeddedResource("a:b", text, blob)


# -- tool results -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("hi", texts("hi")),
        ("", texts("")),
        (Colour.RED, texts("red")),
        (None, {"content": []}),
        (Text("a"), texts("a")),
        ([Text("a"), "b", Text("c")], texts("a", "b", "c")),
        ((Text("a"),), texts("a")),
        (5, texts("5")),
        (True, texts("true")),
        ([], texts("[]")),
        (["a", "b"], texts('["a","b"]')),
        ({"a": [1, None]}, texts('{"a":[1,null]}')),
        (Point(1), texts('{"x":1,"y":0}')),
        ([Point(1)], texts('[{"x":1,"y":0}]')),
        (Model(x=1), texts('{"x":1}')),
        (b"\xff", texts('"/w=="')),
        ({"type": "text", "text": "a dict is data"}, None),
    ],
)
def test_a_value_becomes_content(value: object, expected: dict[str, object] | None) -> None:
    if expected is None:
        expected = texts('{"type":"text","text":"a dict is data"}')
    assert tool_payload(value) == expected


def test_content_in_a_list_cannot_be_mixed_with_data() -> None:
    with pytest.raises(ResultInvalid, match="int is no content item"):
        tool_payload([Text("a"), 5])


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        {"a": float("inf")},
        ["\ud800"],
        {"a": object()},
        2**70,
        {1: "a"},
        {(1, 2): "a"},
    ],
)
def test_what_json_cannot_carry_is_refused(value: object) -> None:
    """RFC 8259 §6, §8; modelcontextprotocol/python-sdk#3341."""
    with pytest.raises(UnencodableResult):
        tool_payload(value)


def test_a_value_that_contains_itself_is_refused() -> None:
    value: list[object] = []
    value.append(value)
    with pytest.raises(UnencodableResult, match="contains itself"):
        tool_payload(value)


def test_a_serializer_that_breaks_is_told_by_its_type() -> None:
    class Broken(BaseModel):
        x: int

        @field_serializer("x")
        def write(self, value: int) -> int:
            raise LookupError("a secret")

    with pytest.raises(UnencodableResult, match=r"^cannot be written \(\w+\)$"):
        tool_payload(Broken(x=1))


def test_a_full_result_is_sent_as_it_says() -> None:
    result = ToolResult(
        [Text("a"), "b", {"type": "future", "x": 1}], {"n": 1}, is_error=True, meta={"k": 1}
    )
    assert tool_payload(result) == {
        "content": [
            {"type": "text", "text": "a"},
            {"type": "text", "text": "b"},
            {"type": "future", "x": 1},
        ],
        "structuredContent": {"n": 1},
        "isError": True,
        "_meta": {"k": 1},
    }


def test_an_empty_full_result_has_content_and_nothing_else() -> None:
    assert tool_payload(ToolResult()) == {"content": []}


def test_structured_null_is_not_the_same_as_none_given() -> None:
    """MCP 2026-07-28 server/tools: structuredContent is any JSON value."""
    assert tool_payload(ToolResult(structured=None)) == {"content": [], "structuredContent": None}


def test_structured_content_comes_with_its_json_text() -> None:
    """MCP 2025-06-18 server/tools §Structured Content: SHOULD also return the serialized JSON."""
    payload = tool_payload(Point(1, 2), returns_of(Point))
    assert payload == {**texts('{"x":1,"y":2}'), "structuredContent": {"x": 1, "y": 2}}
    payload = tool_payload([1], returns_of(list[int]))
    assert payload == {**texts('{"result":[1]}'), "structuredContent": {"result": [1]}}


def test_a_result_that_breaks_its_promise_is_refused() -> None:
    """MCP server/tools §Output Schema: a server MUST return conforming structured results."""
    with pytest.raises(ResultInvalid):
        tool_payload({"x": "1"}, returns_of(Point))
    with pytest.raises(ResultInvalid):
        tool_payload(Text("no point"), returns_of(Point))
    with pytest.raises(ResultInvalid):
        tool_payload(None, returns_of(Point))


def test_a_full_result_keeps_the_promise_too_unless_it_is_an_error() -> None:
    returns = returns_of(Point)
    assert tool_payload(ToolResult(structured=Point(1)), returns)["structuredContent"] == {
        "x": 1,
        "y": 0,
    }
    with pytest.raises(ResultInvalid, match="gave no structured content"):
        tool_payload(ToolResult(["text"]), returns)
    with pytest.raises(ResultInvalid):
        tool_payload(ToolResult(structured={"x": None}), returns)
    assert tool_payload(ToolResult(["no"], is_error=True), returns) == {
        **texts("no"),
        "isError": True,
    }
    free = tool_payload(ToolResult(structured={"why": 1}, is_error=True), returns)
    assert free["structuredContent"] == {"why": 1}


def test_a_string_is_structured_where_a_schema_says_so() -> None:
    returns = returns_from_schema({"type": "string", "minLength": 2})
    assert tool_payload("ab", returns) == {**texts('"ab"'), "structuredContent": "ab"}


def test_numbers_as_names_are_strings_where_the_type_says_so() -> None:
    assert to_plain({1: "a"}, str_keys=True) == {"1": "a"}


# -- resources --------------------------------------------------------------------------------

URI = "mem://a"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("hi", {"mimeType": "text/plain", "text": "hi"}),
        (Colour.RED, {"mimeType": "text/plain", "text": "red"}),
        (Text("hi"), {"mimeType": "text/plain", "text": "hi"}),
        (b"\xff", {"mimeType": "application/octet-stream", "blob": "/w=="}),
        (bytearray(b"\xff"), {"mimeType": "application/octet-stream", "blob": "/w=="}),
        (memoryview(b"\xff"), {"mimeType": "application/octet-stream", "blob": "/w=="}),
        (Image(b"\xff", "image/png"), {"mimeType": "image/png", "blob": "/w=="}),
        (Audio(b"\xff", "audio/wav"), {"mimeType": "audio/wav", "blob": "/w=="}),
        (None, {"mimeType": "application/json", "text": "null"}),
        ({"a": [1]}, {"mimeType": "application/json", "text": '{\n  "a": [\n    1\n  ]\n}'}),
        (Point(1), {"mimeType": "application/json", "text": '{\n  "x": 1,\n  "y": 0\n}'}),
        ([], {"mimeType": "application/json", "text": "[]"}),
    ],
)
def test_a_resource_is_text_bytes_or_json(value: object, expected: dict[str, object]) -> None:
    """MCP server/resources §Resource Contents: text, or binary as base64 with its type."""
    assert resource_contents(URI, value) == [{"uri": URI, **expected}]


@pytest.mark.parametrize("value", ["a", b"a", {"a": 1}])
def test_the_type_of_a_resource_may_be_given(value: object) -> None:
    (contents,) = resource_contents(URI, value, "x/y")
    assert contents["mimeType"] == "x/y"


def test_several_contents_may_have_several_uris() -> None:
    listed = [EmbeddedResource("mem://b", text="b"), "c", Image(b"", "image/png")]
    assert [item["uri"] for item in resource_contents(URI, listed)] == ["mem://b", URI, URI]


@pytest.mark.parametrize("value", [ResourceLink("a:b", "n"), [Text("a"), 5]])
def test_what_is_no_contents_is_refused(value: object) -> None:
    with pytest.raises(ResultInvalid, match="nothing that a resource contains"):
        resource_contents(URI, value)


def test_a_resource_that_is_no_json_is_refused() -> None:
    with pytest.raises(UnencodableResult):
        resource_contents(URI, {"a": float("nan")})


# -- prompts ----------------------------------------------------------------------------------


def user(text: str) -> dict[str, object]:
    return {"role": "user", "content": {"type": "text", "text": text}}


@pytest.mark.parametrize(
    ("value", "messages"),
    [
        ("hi", [user("hi")]),
        (Text("hi"), [user("hi")]),
        (None, []),
        ([], []),
        (["a", Message("assistant", "b")], [user("a"), {**user("b"), "role": "assistant"}]),
        (Message("user", Text("a")), [user("a")]),
    ],
)
def test_a_prompt_is_messages(value: object, messages: list[object]) -> None:
    """MCP server/prompts §PromptMessage: one role and one content item each."""
    assert prompt_payload(value) == {"messages": messages}


def test_a_prompt_may_be_described() -> None:
    assert prompt_payload("a", "what it is for") == {
        "messages": [user("a")],
        "description": "what it is for",
    }


@pytest.mark.parametrize("value", [5, {"role": "user"}, [["a"]], object()])
def test_what_is_no_message_is_refused(value: object) -> None:
    with pytest.raises(ResultInvalid, match="is no content item"):
        prompt_payload(value)


def test_a_bad_result_is_a_value_error_that_names_no_value() -> None:
    with pytest.raises(ValueError, match=r"^Invalid result: 'x' must be integer, not string\.$"):
        tool_payload({"x": "secret"}, returns_of(Point))


def test_content_inside_of_data_is_data() -> None:
    assert msgspec.json.decode(texts_of(tool_payload({"a": Text("x")}))) == {
        "a": {"text": "x", "annotations": None, "meta": None}
    }


def texts_of(payload: dict[str, object]) -> str:
    content = payload["content"]
    assert isinstance(content, list)
    text: str = content[0]["text"]
    return text
