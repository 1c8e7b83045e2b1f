"""What the commands print: for people on a terminal, for people in a pipe, and for programs."""

import base64
import json
from typing import Any

import pytest

from raxol_mcp.cli.client_output import (
    Printer,
    call_json,
    json_text,
    prompt_json,
    read_json,
    status_json,
    tool_json,
)
from raxol_mcp.client.group import ServerStatus
from raxol_mcp.client.results import (
    CallResult,
    ClientStatus,
    PromptResult,
    ReadResult,
    RemoteTool,
)
from raxol_mcp.errors import Reason

TERMINAL = Printer(is_terminal=True, width=40)
PIPE = Printer(is_terminal=False)

HOSTILE = "\x1b]0;x\x07a\u202eb\r\nnext\tline"
DATA = base64.b64encode(b"x" * 1234).decode()


def tool(name: str, description: str = "", **more: Any) -> RemoteTool:
    return RemoteTool(name, more.pop("title", None), description, {"type": "object"}, **more)


def texts(*texts: str, **more: Any) -> CallResult:
    return CallResult([{"type": "text", "text": text} for text in texts], **more)


TOOLS = [
    tool("echo", "Say it again.\nAnd again."),
    tool("wipe", title="Wipe everything", annotations={"destructiveHint": True}),
    tool("look", "Look.", annotations={"readOnlyHint": True, "destructiveHint": "yes"}),
]


def test_tools_are_listed_one_a_line() -> None:
    assert PIPE.tools(TOOLS) == (
        "echo  Say it again.\nwipe  Wipe everything [destructive]\nlook  Look. [read-only]\n"
    )
    assert PIPE.tools([]) == ""


def test_a_line_of_a_list_fits_the_terminal_and_steers_nothing() -> None:
    (line,) = TERMINAL.tools([tool("a", "x" * 100)]).splitlines()
    assert len(line) == 40
    assert TERMINAL.tools([tool("a\u202eb", "\x1b[2J\u200bhi")]) == "a\\u202eb  \\x1b[2J\\u200bhi\n"


def test_one_tool_is_told_whole() -> None:
    shown = TERMINAL.tool(
        tool("wipe", "Wipe.\n\x1b[2J", title="Wipe", annotations={"a": 1}, output_schema={"b": 2})
    )
    assert shown.split("\n\n") == [
        "wipe",
        "Wipe",
        "Wipe.\n\\x1b[2J",
        'The server claims:\n{\n  "a": 1\n}',
        'Takes:\n{\n  "type": "object"\n}',
        'Gives:\n{\n  "b": 2\n}\n',
    ]


def test_texts_are_neutralised_on_a_terminal_and_raw_in_a_pipe() -> None:
    """ours: docs/cli.md. K21."""
    assert TERMINAL.call(texts(HOSTILE), {}) == "\\x1b]0;x\\x07a\\u202eb\nnext\tline\n"
    assert PIPE.call(texts(HOSTILE), {}) == f"{HOSTILE}\n"
    assert PIPE.call(texts("a\n", "b"), {}) == "a\nb\n"


@pytest.mark.parametrize(
    ("block", "shown"),
    [
        ({"type": "image", "data": DATA, "mimeType": "image/png"}, "[image/png, 1,234 bytes]\n"),
        ({"type": "audio", "data": "", "mimeType": "a\x1b"}, "[a\\x1b, 0 bytes]\n"),
        (
            {"type": "resource", "resource": {"uri": "a:b", "blob": DATA}},
            "[application/octet-stream, 1,234 bytes]\n",
        ),
        ({"type": "resource", "resource": {"uri": "a:b", "text": "inside"}}, "inside\n"),
        ({"type": "resource_link", "uri": "a:b", "name": "c\n"}, "[c\\n: a:b]\n"),
        ({"type": "resource_link", "uri": "a:b"}, "[a:b]\n"),
        ({"type": "new", "x": "\x1b"}, '{\n  "type": "new",\n  "x": "\\u001b"\n}\n'),
    ],
)
def test_what_is_no_text_is_told_by_its_kind_and_size(block: dict[str, Any], shown: str) -> None:
    assert TERMINAL.call(CallResult([block]), {}) == shown


def test_what_was_saved_says_where() -> None:
    image: dict[str, object] = {"type": "image", "data": DATA, "mimeType": "image/png"}
    assert PIPE.call(CallResult([image]), {0: "a.png"}) == (
        "[image/png, 1,234 bytes, saved as a.png]\n"
    )


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        (texts("5", structured_content={"result": 5}, has_structured=True), "5\n"),
        (texts("yes", structured_content={"result": "yes"}, has_structured=True), "yes\n"),
        (
            texts('{"b":1,"a":2}', structured_content={"a": 2, "b": 1}, has_structured=True),
            '{\n  "a": 2,\n  "b": 1\n}\n',
        ),
        (
            texts("It is 5.", structured_content={"result": 5}, has_structured=True),
            'It is 5.\n{\n  "result": 5\n}\n',
        ),
        (
            texts("1", structured_content={"result": True}, has_structured=True),
            '1\n{\n  "result": true\n}\n',
        ),
        (texts(structured_content=None, has_structured=True), "null\n"),
        (texts("a", "b", structured_content=[1], has_structured=True), "a\nb\n[\n  1\n]\n"),
        (texts("null"), "null\n"),
    ],
)
def test_what_is_said_twice_is_printed_once(result: CallResult, shown: str) -> None:
    """MCP 2025-11-25 server/tools §Structured Content: the text should repeat it."""
    assert PIPE.call(result, {}) == shown


def test_a_resource_in_a_pipe_ends_where_it_ends() -> None:
    """`raxol-mcp read URI > copy` makes a copy."""
    one = ReadResult([{"uri": "a", "text": "no end"}])
    assert PIPE.read(one, {}) == "no end"
    assert TERMINAL.read(one, {}) == "no end\n"
    assert PIPE.read(one, {0: "copy"}) == "[saved as copy]\n"
    two = ReadResult([{"uri": "a", "text": "x"}, {"uri": "b", "blob": DATA}, {"uri": "c"}])
    assert PIPE.read(two, {}) == (
        'x\n[application/octet-stream, 1,234 bytes]\n{\n  "uri": "c"\n}\n'
    )
    assert PIPE.read(ReadResult([]), {}) == ""


def test_a_prompt_is_shown_by_role() -> None:
    prompt = PromptResult(
        "",
        [
            {"role": "user", "content": {"type": "text", "text": "Hi\x1b"}},
            {"role": "assistant", "content": [{"type": "text", "text": "Yes?"}]},
            {"role": 7, "content": None},
        ],
    )
    assert TERMINAL.prompt(prompt) == "user:\nHi\\x1b\n\nassistant:\nYes?\n\n7:\n"
    assert TERMINAL.prompt(PromptResult("", [])) == ""


READY = ClientStatus(
    "files",
    "ready",
    version="2025-11-25",
    era="handshake",
    concurrency="pooled",
    tools=1,
    server={"name": "files\x1b", "version": "1.0", "more": 1},
    capabilities={"tools": {}},
)
STATUSES = [
    ServerStatus("files", "ready", None, READY),
    ServerStatus("far", "closed", Reason("http", 401), ClientStatus("far", "closed")),
    ServerStatus("odd", "skipped", Reason("unset_variable", "TOKEN", text="TOKEN is not set")),
]


def test_statuses_are_told_one_a_line() -> None:
    assert TERMINAL.status(STATUSES) == (
        "files  ready         files\\x1b 1.0; MCP 2025-11-25, handshake; 1 tool\n"
        "far    closed        it wants other credentials (HTTP 401)\n"
        "odd    skipped       unset_variable TOKEN (TOKEN is not set)\n"
    )
    assert TERMINAL.status([]) == ""


def test_json_has_the_names_of_the_protocol() -> None:
    """MCP 2025-11-25 schema: Tool, CallToolResult, ReadResourceResult, GetPromptResult."""
    assert tool_json(tool("a")) == {"name": "a", "inputSchema": {"type": "object"}}
    assert tool_json(
        tool("a", "b", title="c", output_schema={}, annotations={"d": 1}, meta={"e": 2}, icons=[{}])
    ) == {
        "name": "a",
        "title": "c",
        "description": "b",
        "inputSchema": {"type": "object"},
        "outputSchema": {},
        "annotations": {"d": 1},
        "icons": [{}],
        "_meta": {"e": 2},
    }
    assert call_json(CallResult([])) == {"content": [], "isError": False}
    assert call_json(CallResult([], None, has_structured=True, is_error=True, meta={"a": 1})) == {
        "content": [],
        "structuredContent": None,
        "isError": True,
        "_meta": {"a": 1},
    }
    assert read_json(ReadResult([{"uri": "a"}])) == {"contents": [{"uri": "a"}]}
    assert prompt_json(PromptResult("d", [], {"a": 1})) == {
        "description": "d",
        "messages": [],
        "_meta": {"a": 1},
    }


def test_the_status_of_a_server_is_data() -> None:
    ready, far, odd = map(status_json, STATUSES)
    assert ready == {
        "name": "files",
        "status": "ready",
        "reason": None,
        "message": None,
        "version": "2025-11-25",
        "era": "handshake",
        "concurrency": "pooled",
        "tools": 1,
        "server": {"name": "files\x1b", "version": "1.0", "more": 1},
        "capabilities": {"tools": {}},
        "instructions": None,
    }
    assert (far["reason"], far["message"]) == (
        ["http", 401],
        "it wants other credentials (HTTP 401)",
    )
    assert (odd["reason"], odd["server"]) == (["unset_variable", "TOKEN"], None)


def test_json_is_safe_on_a_terminal() -> None:
    text = json_text({"a": HOSTILE})
    assert text.isascii()
    assert text.replace("\n", "").isprintable()
    assert json.loads(text) == {"a": HOSTILE}
