"""What a server lists: bad entries are left out with a reason, and cost the others nothing."""

from __future__ import annotations

import pytest

from raxol_mcp.client.definitions import (
    MAX_DESCRIPTION_BYTES,
    MAX_ENTRIES,
    MAX_SCHEMA_BYTES,
    display_title,
    mirrored_tools,
    prompts_of,
    resources_of,
    templates_of,
    tools_of,
)
from raxol_mcp.client.results import (
    RemotePrompt,
    RemotePromptArgument,
    RemoteResource,
    RemoteTemplate,
    RemoteTool,
)

OBJECT: dict[str, object] = {"type": "object"}


def tool(name: object = "good", **more: object) -> dict[str, object]:
    """Return a tool as a server lists it."""
    return {"name": name, "inputSchema": OBJECT, **more}


def names(items: list[object]) -> list[str]:
    """Return the names of the tools that are kept."""
    return [kept.name for kept in tools_of(items)[0]]


def test_a_tool_is_read_with_everything_it_says() -> None:
    item = tool(
        title="Weather",
        description="Says it.",
        inputSchema={"$schema": "x", "type": "object", "$defs": {"a": True}},
        outputSchema={"type": "array"},
        annotations={"readOnlyHint": True},
        _meta={"x.example/y": 1},
        icons=[{"src": "https://a.example/i.png"}],
        execution={"future": 1},
    )
    assert tools_of([item]) == (
        [
            RemoteTool(
                "good",
                "Weather",
                "Says it.",
                {"$schema": "x", "type": "object", "$defs": {"a": True}},
                {"type": "array"},
                {"readOnlyHint": True},
                {"x.example/y": 1},
                [{"src": "https://a.example/i.png"}],
            )
        ],
        [],
    )


def test_one_bad_tool_spoils_nothing() -> None:
    """BC-129; modelcontextprotocol/go-sdk#1120."""
    recursive = {"type": "object", "properties": {"n": {"$ref": "#/properties/n"}}}
    kept, problems = tools_of(
        [
            *(None, 7, {"name": "no_schema"}, {"name": "null_schema", "inputSchema": None}),
            *({"inputSchema": OBJECT}, tool("rec", inputSchema=recursive)),
            tool("redos", inputSchema={"properties": {"s": {"pattern": "^(a+)+$"}}}),
            tool("bool", inputSchema={"type": "object", "properties": {"x": True}}),
            *(tool("list", inputSchema=[]), tool("text", inputSchema={"type": "string"})),
            tool("good"),
        ]
    )
    assert [each.name for each in kept] == ["rec", "redos", "bool", "good"]
    assert problems == [
        "tool 0 is left out: it is not an object",
        "tool 1 is left out: it is not an object",
        "tool 'no_schema' is left out: it has no inputSchema that is an object",
        "tool 'null_schema' is left out: it has no inputSchema that is an object",
        "tool 4 is left out: it has no name",
        "tool 'list' is left out: it has no inputSchema that is an object",
        "tool 'text' is left out: the type of its inputSchema is not \"object\"",
    ]


@pytest.mark.parametrize(
    "name", ["a", "A.b-c_9", "ns/tool", "ns:tool", "Get Weather", "天気", "a" * 128]
)
def test_names_that_servers_use_are_kept(name: str) -> None:
    """MCP server/tools §Tool Names recommends fewer characters, and requires none."""
    assert names([tool(name)]) == [name]


@pytest.mark.parametrize(
    "name",
    [
        *("", " ", " a", "a ", "a\n", "a\x1b[2J", "a\u200bb", "\u202eevil", "a\u00a0b", "a\u3164"),
        *("a" * 129, None, 7, ["a"], {"a": 1}),
    ],
)
def test_names_that_cannot_be_used_or_seen_are_refused(name: object) -> None:
    kept, problems = tools_of([tool(name)])
    assert kept == []
    assert len(problems) == 1
    assert problems[0].isprintable()
    assert len(problems[0]) < 300


def test_of_two_tools_of_one_name_the_first_counts() -> None:
    kept, problems = tools_of([tool("a", description="1"), tool("b"), tool("a", description="2")])
    assert [(each.name, each.description) for each in kept] == [("a", "1"), ("b", "")]
    assert problems == ["tool 'a' is left out: there is one of that name already"]


def test_the_order_of_the_server_is_kept() -> None:
    assert names([tool("c"), tool("a"), tool("b")]) == ["c", "a", "b"]


@pytest.mark.parametrize("description", [None, 7, ["x"]])
def test_a_description_that_is_no_text_is_none(description: object) -> None:
    """client-behaviour 8."""
    assert tools_of([tool(description=description, title=description)])[0] == [
        RemoteTool("good", None, "", OBJECT)
    ]


def test_a_long_description_is_cut_where_a_character_ends() -> None:
    """client-behaviour 8, check 43."""
    kept, _ = tools_of([tool(description="é" * 5000), tool("b", description="x" + "é" * 5000)])
    assert [len(each.description.encode()) for each in kept] == [
        MAX_DESCRIPTION_BYTES,
        MAX_DESCRIPTION_BYTES - 1,
    ]


def test_a_description_keeps_what_cannot_be_seen_for_who_shows_it() -> None:
    assert tools_of([tool(description="a\n\u202eb")])[0][0].description == "a\n\u202eb"


def test_a_schema_that_is_too_large_costs_its_tool_alone() -> None:
    large = {"type": "object", "description": "x" * MAX_SCHEMA_BYTES}
    kept, problems = tools_of(
        [tool("a", inputSchema=large), tool("b", outputSchema=large), tool("c")]
    )
    assert [(each.name, each.output_schema) for each in kept] == [("b", None), ("c", None)]
    assert problems == [
        "tool 'a' is left out: its inputSchema has more than 256 KiB",
        "tool 'b': its outputSchema has more than 256 KiB: not used",
    ]


def test_an_output_schema_that_is_no_object_is_not_used() -> None:
    kept, problems = tools_of([tool(outputSchema=True), tool("b", outputSchema=None)])
    assert [each.output_schema for each in kept] == [None, None]
    assert problems == ["tool 'good': its outputSchema is not an object, and is not used"]


def test_a_list_is_bounded_in_entries_and_in_bytes() -> None:
    kept, problems = tools_of([tool(f"t{index}") for index in range(MAX_ENTRIES + 5)])
    assert len(kept) == MAX_ENTRIES
    assert problems == ["the tool list has more than 4096 entries: the rest is left out"]
    large = {"type": "object", "description": "x" * (MAX_SCHEMA_BYTES - 100)}
    kept, problems = tools_of([tool(f"t{index}", inputSchema=large) for index in range(70)])
    assert 60 < len(kept) < 65
    assert problems[0].endswith("is left out: the list has more than 16384 KiB")


def test_problems_are_bounded_too() -> None:
    kept, problems = tools_of([None] * 1000)
    assert kept == []
    assert len(problems) == 33
    assert problems[-1] == "and 968 more problems"


@pytest.mark.parametrize("value", [7, "x", ["x"], True, {"a": "x" * 70_000}])
def test_what_stands_beside_a_tool_is_an_object_or_dropped(value: object) -> None:
    kept, problems = tools_of([tool(annotations=value, _meta=value)])
    assert (kept[0].annotations, kept[0].meta) == ({}, {})
    assert problems == [
        "tool 'good': its annotations is not an object of at most 64 KiB",
        "tool 'good': its _meta is not an object of at most 64 KiB",
    ]


def test_icons_of_other_schemes_are_dropped() -> None:
    """MCP 2025-11-25 basic §Icons: javascript:, file: and their like are rejected."""
    good = [{"src": "HTTPS://a/i"}, {"src": "data:image/png;base64,AA=="}]
    bad: list[object] = [
        {"src": "javascript:x"},
        {"src": "file:///x"},
        {"src": 7},
        {},
        "x",
        {"src": "https:\n"},
    ]
    kept, problems = tools_of(
        [tool(icons=[*good, *bad]), tool("b", icons="x"), tool("c", icons={})]
    )
    assert [each.icons for each in kept] == [good, [], []]
    assert problems == [
        "tool 'b': its icons are not a list of at most 64 KiB",
        "tool 'c': its icons are not a list of at most 64 KiB",
    ]


BAD_NAMES: list[object] = [7, ["x" * 900], {}, None, "", "a b", "X\r\nEvil: 1", "é"]


def annotated(*headers: object, kind: str = "string") -> dict[str, object]:
    """Return an input schema with annotated properties."""
    properties = {f"p{i}": {"type": kind, "x-mcp-header": name} for i, name in enumerate(headers)}
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    "schema",
    [
        *map(annotated, BAD_NAMES),
        annotated("Region", "region"),
        annotated("Region", kind="number"),
        annotated(10**5000),
        {"type": "object", "properties": {"a": {"items": {"x-mcp-header": "A"}}}},
        {"type": "object", "oneOf": [{"properties": {"a": {"x-mcp-header": "A"}}}]},
    ],
)
def test_a_tool_with_a_bad_header_annotation_is_left_out_over_http(
    schema: dict[str, object],
) -> None:
    """BC-155; MCP 2026-07-28 basic/transports/streamable-http §Schema Extension."""
    tools = [RemoteTool("bad", None, "", schema), RemoteTool("good", None, "", OBJECT)]
    kept, problems = mirrored_tools(tools)
    assert kept == [tools[1]]
    assert len(problems) == 1
    assert problems[0].startswith("tool 'bad' is left out: x-mcp-header")
    assert problems[0].isprintable()
    assert len(problems[0]) < 400


def test_a_tool_with_good_annotations_says_what_is_mirrored() -> None:
    tools = [RemoteTool("a", None, "", annotated("Region", "Zone"))]
    kept, problems = mirrored_tools(tools)
    assert problems == []
    assert [(mirror.path, mirror.header) for mirror in kept[0].mirrors] == [
        (("p0",), "Mcp-Param-Region"),
        (("p1",), "Mcp-Param-Zone"),
    ]
    assert tools[0].mirrors == ()


def test_reading_a_tool_alone_keeps_its_annotations_unread() -> None:
    """BC-155: over stdio the annotation is ignored."""
    assert names([tool(inputSchema=annotated(7))]) == ["good"]


def test_resources_are_called_by_their_uri() -> None:
    kept, problems = resources_of(
        [
            {
                **{"uri": "mem://a", "name": "A", "title": "T", "description": "d"},
                **{"mimeType": "text/plain", "size": 3, "annotations": {"priority": 1}},
                **{"_meta": {"a/b": 1}, "icons": [{"src": "https://a/i"}]},
            },
            {"uri": "mem://b"},
            *({"name": "no uri"}, {"uri": ""}, {"uri": "mem://a"}, {"uri": "mem://\u202ex"}),
            *({"uri": "m:" + "x" * 9000}, 7),
        ]
    )
    assert kept == [
        RemoteResource(
            "mem://a",
            "A",
            "T",
            "d",
            "text/plain",
            3,
            annotations={"priority": 1},
            meta={"a/b": 1},
            icons=[{"src": "https://a/i"}],
        ),
        RemoteResource("mem://b", "mem://b"),
    ]
    assert [problem.partition(": ")[2] for problem in problems] == [
        "it has no uri",
        "it has no uri",
        "there is one of that name already",
        "its uri has characters that cannot be seen",
        "its uri has more than 8 KiB",
        "it is not an object",
    ]


@pytest.mark.parametrize(
    ("member", "value"),
    [
        *(("size", value) for value in (-1, 1.5, True, "3")),
        *(("mimeType", value) for value in (7, "a\nb", "x" * 257)),
        *(("title", value) for value in (7, None)),
    ],
)
def test_what_a_resource_says_wrongly_is_not_said(member: str, value: object) -> None:
    assert resources_of([{"uri": "m:a", "name": "n", member: value}]) == (
        [RemoteResource("m:a", "n")],
        [],
    )


def test_templates_are_called_by_their_text() -> None:
    kept, problems = templates_of(
        [{"uriTemplate": "m:{id}", "name": "n", "mimeType": "a/b"}, {"name": "x"}]
    )
    assert kept == [RemoteTemplate("m:{id}", "n", mime_type="a/b")]
    assert problems == ["resource template 'x' is left out: it has no uriTemplate"]


def test_prompts_are_read_with_their_arguments() -> None:
    arguments = [
        {"name": "who", "title": "Who", "description": "d", "required": True},
        {"name": "how", "required": "yes"},
    ]
    kept, problems = prompts_of(
        [
            {"name": "greet", "title": "G", "description": "d", "arguments": arguments},
            {"name": "plain", "arguments": None},
        ]
    )
    assert problems == []
    assert kept == [
        RemotePrompt(
            *("greet", "G", "d"),
            (
                RemotePromptArgument("who", "Who", "d", True),
                RemotePromptArgument("how", None, "", False),
            ),
        ),
        RemotePrompt("plain"),
    ]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("x", "its arguments are not a list of at most 256"),
        ([{"name": "a"}] * 257, "its arguments are not a list of at most 256"),
        ([7], "one of its arguments is not an object"),
        ([{"name": "a\nb"}], "one of its arguments has no usable name"),
        ([{}], "one of its arguments has no usable name"),
    ],
)
def test_a_prompt_that_cannot_be_filled_in_is_left_out(arguments: object, why: str) -> None:
    kept, problems = prompts_of([{"name": "p", "arguments": arguments}, {"name": "q"}])
    assert [prompt.name for prompt in kept] == ["q"]
    assert problems == [f"prompt 'p' is left out: {why}"]


def test_people_are_shown_the_title_or_the_name() -> None:
    """MCP server/tools: title, then annotations.title, then name."""
    annotations: dict[str, object] = {"title": "Annotated"}
    assert display_title(RemoteTool("n", "T", "", OBJECT, None, annotations)) == "T"
    assert display_title(RemoteTool("n", " ", "", OBJECT, None, annotations)) == "Annotated"
    assert display_title(RemoteTool("n", None, "", OBJECT, None, {"title": 7})) == "n"
    assert display_title(RemotePrompt("p", "P")) == "P"
    assert display_title(RemoteResource("m:a", "n")) == "n"
