"""The registry: what is found, in which order, and who hears of changes."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_mcp.server.cursors import START, BadCursor, place_of
from raxol_mcp.server.definition_checks import InvalidDefinitions
from raxol_mcp.server.definitions import (
    Completion,
    Kind,
    Prompt,
    Resource,
    ResourceTemplate,
    Tool,
)
from raxol_mcp.server.registry import Page, Registry

Event = tuple[Kind, str, tuple[str, ...]]


def run(*_: object) -> str:
    return ""


def tool(name: str, description: str = "d", **annotations: object) -> Tool:
    return Tool(name, description, {"type": "object"}, run, annotations=annotations or None)


def tools(*names: str) -> list[Tool]:
    return [tool(name) for name in names]


def heard(registry: Registry) -> list[Event]:
    events: list[Event] = []
    registry.on_change(lambda *event: events.append(event))
    return events


def keys(registry: Registry, kind: Kind = Kind.TOOLS, limit: int = 100) -> list[str]:
    """Every key, read page by page with the cursors a client would send."""
    read: list[str] = []
    after = START
    while True:
        page = registry.page(kind, after, limit)
        read += [item.key for item in page.items]
        if page.cursor is None:
            return read
        after = place_of(kind, page.cursor)


# -- what is found


def test_what_was_registered_is_found_by_its_key() -> None:
    registry = Registry()
    add, a = tool("add"), Resource("mem://a", "a", run)
    docs, greet = ResourceTemplate("file:///docs/{name}", "docs", run), Prompt("greet", run)
    registry.register(add, a, docs, greet)
    assert registry.tool("add") is add
    assert registry.resource("mem://a") is a
    assert registry.match_template("file:///docs/x") == (docs, {"name": "x"})
    assert registry.prompt("greet") is greet
    assert registry.tools() == [add]
    assert registry.resources() == [a]
    assert registry.templates() == [docs]
    assert registry.prompts() == [greet]
    assert repr(registry) == "Registry(tools=1, resources=1, templates=1, prompts=1)"


@pytest.mark.parametrize("name", ["", "ADD", "add ", "ad", "__class__"])
def test_what_was_not_is_not(name: str) -> None:
    registry = Registry()
    registry.register(tool("add"), Resource("mem://a", "a", run), Prompt("add", run))
    assert registry.tool(name) is None
    assert registry.prompt(name) is None
    assert registry.resource(name) is None
    assert registry.match_template(name) is None


def test_a_resource_is_found_under_either_spelling_of_its_uri() -> None:
    registry = Registry()
    registry.register(Resource("mem://测试", "t", run))
    assert registry.resource("mem://测试") is registry.resource("mem://%E6%B5%8B%E8%AF%95")
    assert registry.resource("mem://测试") is not None
    assert registry.unregister(Kind.RESOURCES, "mem://测试") == ("mem://%E6%B5%8B%E8%AF%95",)
    assert registry.resources() == []


def test_the_first_template_in_order_of_registration_answers() -> None:
    registry = Registry()
    first = ResourceTemplate("f://d/{name}.txt", "texts", run)
    second = ResourceTemplate("f://d/{+path}", "all", run)
    registry.register(first, second)
    assert registry.match_template("f://d/a.txt") == (first, {"name": "a"})
    assert registry.match_template("f://d/a.png") == (second, {"path": "a.png"})
    assert registry.match_template("f://d/../a.txt") is None
    registry.unregister(Kind.TEMPLATES, "f://d/{name}.txt")
    assert registry.match_template("f://d/a.txt") == (second, {"path": "a.txt"})
    again = ResourceTemplate("f://d/{+path}", "all, anew", run)
    registry.register(again)
    assert registry.match_template("f://d/a.txt") == (again, {"path": "a.txt"})


def test_registering_again_replaces_and_keeps_the_place() -> None:
    registry = Registry()
    registry.register(*tools("a", "b", "c"))
    registry.register(tool("b", "new"))
    assert [(item.name, item.description) for item in registry.tools()] == [
        ("a", "d"),
        ("b", "new"),
        ("c", "d"),
    ]
    new = registry.tool("b")
    assert new is not None
    assert new.description == "new"
    assert registry.page(Kind.TOOLS).items[1] is new


def test_unregistering_forgets_the_place() -> None:
    registry = Registry()
    registry.register(*tools("a", "b", "c"))
    assert registry.unregister(Kind.TOOLS, "a", "nobody", "a") == ("a",)
    registry.register(tool("a"))
    assert keys(registry) == ["b", "c", "a"]


def test_one_name_may_be_of_several_kinds() -> None:
    registry = Registry()
    registry.register(tool("x"), Prompt("x", run))
    registry.unregister(Kind.TOOLS, "x")
    assert registry.tool("x") is None
    assert registry.prompt("x") is not None


def test_the_annotations_are_still_there() -> None:
    """The refusal of sensitive tools without an authorizer depends on them."""
    registry = Registry()
    registry.register(tool("rm", destructiveHint=True), tool("ls", readOnlyHint=True))
    assert [item.name for item in registry.tools() if item.sensitive] == ["rm"]


# -- all or nothing


def test_one_bad_definition_keeps_all_of_them_out() -> None:
    registry = Registry()
    events = heard(registry)
    registry.register(tool("old"))
    with pytest.raises(InvalidDefinitions) as caught:
        registry.register(tool("a"), tool("b", ""), Prompt("p", run), Prompt("q q", run))
    assert [(problem.index, problem.key) for problem in caught.value.problems] == [
        (1, "b"),
        (3, "q q"),
    ]
    assert keys(registry) == ["old"]
    assert registry.prompts() == []
    assert events == [(Kind.TOOLS, "register", ("old",))]


def test_nothing_at_all_is_fine() -> None:
    registry = Registry()
    events = heard(registry)
    registry.register()
    assert registry.unregister(Kind.PROMPTS) == ()
    assert events == []


# -- derived tools


def test_only_the_argument_makes_a_tool_derived() -> None:
    registry = Registry()
    registry.register(tool("agent.reset"), tool("keyed", derived=True))
    registry.register(tool("button.click"), derived=True)
    assert [item.name for item in registry.static_tools()] == ["agent.reset", "keyed"]
    assert registry.is_derived("button.click")
    assert not registry.is_derived("agent.reset")
    assert not registry.is_derived("nobody")


def test_the_last_registration_says_whether_it_is_derived() -> None:
    registry = Registry()
    registry.register(tool("t"), derived=True)
    registry.register(tool("t"))
    assert not registry.is_derived("t")
    registry.register(tool("t"), derived=True)
    assert registry.is_derived("t")
    registry.unregister(Kind.TOOLS, "t")
    assert not registry.is_derived("t")
    registry.register(tool("t"))
    assert registry.static_tools() == registry.tools()


# -- completions


def test_a_completion_is_found_by_what_a_request_names() -> None:
    registry = Registry()
    who = Completion("ref/prompt", "greet", "who", run)
    name = Completion("ref/resource", "file:///docs/{name}", "name", run)
    registry.register(who, name)
    assert registry.completion("ref/prompt", "greet", "who") is who
    assert registry.completion("ref/resource", "file:///docs/{name}", "name") is name
    assert registry.completion("ref/prompt", "greet", "how") is None
    assert registry.completion("ref/prompt", "file:///docs/{name}", "name") is None
    assert registry.completion("ref/resource", "greet", "who") is None


def test_completions_are_in_no_list_and_nobody_hears_of_them() -> None:
    registry = Registry()
    events = heard(registry)
    registry.register(Completion("ref/prompt", "greet", "who", run))
    assert events == []
    assert all(keys(registry, kind) == [] for kind in Kind)


def test_completions_go_with_what_they_complete() -> None:
    registry = Registry()
    registry.register(
        Prompt("x", run),
        ResourceTemplate("x:{a}", "x", run),
        tool("x"),
        Completion("ref/prompt", "x", "a", run),
        Completion("ref/resource", "x:{a}", "a", run),
    )
    registry.unregister(Kind.TOOLS, "x")
    registry.unregister(Kind.PROMPTS, "x")
    assert registry.completion("ref/prompt", "x", "a") is None
    assert registry.completion("ref/resource", "x:{a}", "a") is not None
    registry.unregister(Kind.TEMPLATES, "x:{a}")
    assert registry.completion("ref/resource", "x:{a}", "a") is None


# -- who hears of changes


def test_one_event_for_each_kind_that_a_call_changed() -> None:
    registry = Registry()
    events = heard(registry)
    registry.register(tool("a"), Prompt("p", run), tool("b"))
    registry.unregister(Kind.TOOLS, "b", "nobody", "a")
    registry.unregister(Kind.TOOLS, "a")
    assert events == [
        (Kind.TOOLS, "register", ("a", "b")),
        (Kind.PROMPTS, "register", ("p",)),
        (Kind.TOOLS, "unregister", ("b", "a")),
    ]


def test_a_listener_sees_the_change_and_may_use_the_registry() -> None:
    registry = Registry()
    seen: list[list[str]] = []

    def listener(kind: Kind, action: str, names: tuple[str, ...]) -> None:
        seen.append(keys(registry))
        if names == ("a",):
            registry.register(tool("b"))

    registry.on_change(listener)
    registry.register(tool("a"))
    assert seen == [["a"], ["a", "b"]]


def test_who_unsubscribed_hears_no_more() -> None:
    registry = Registry()
    events: list[Event] = []

    def listener(kind: Kind, action: str, names: tuple[str, ...]) -> None:
        events.append((kind, action, names))

    first, second = registry.on_change(listener), registry.on_change(listener)
    registry.register(tool("a"))
    first()
    first()
    registry.register(tool("b"))
    second()
    registry.register(tool("c"))
    assert [names for _, _, names in events] == [("a",), ("a",), ("b",)]


def test_a_listener_that_fails_stops_neither_the_change_nor_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    registry = Registry()

    def fails(*_: object) -> None:
        raise ValueError("down")

    registry.on_change(fails)
    events = heard(registry)
    with caplog.at_level(logging.ERROR, "raxol_mcp.registry"):
        registry.register(tool("a"))
    assert keys(registry) == ["a"]
    assert len(events) == 1
    assert [record.exc_info is not None for record in caplog.records] == [True]


# -- lists in pages


def test_pages_follow_the_order_of_registration_and_end_without_a_cursor() -> None:
    """MCP 2026-07-28 server/utilities/pagination: the end is a missing nextCursor."""
    registry = Registry()
    registry.register(*tools("c", "a", "d", "b"))
    first = registry.page(Kind.TOOLS, START, 2)
    assert [item.key for item in first.items] == ["c", "a"]
    assert first.cursor is not None
    second = registry.page(Kind.TOOLS, place_of(Kind.TOOLS, first.cursor), 2)
    assert [item.key for item in second.items] == ["d", "b"]
    assert second.cursor is None


def test_an_empty_list_is_one_empty_page() -> None:
    assert Registry().page(Kind.TOOLS) == Page(Kind.TOOLS, [], [])


def test_two_servers_with_the_same_tools_give_the_same_pages_and_cursors() -> None:
    """googleapis/mcp-toolbox#3463: the order must survive a restart."""

    def pages() -> list[tuple[list[str], str | None]]:
        registry = Registry()
        registry.register(*tools(*"qwertyuiop"))
        registry.register(tool("w", "new"))
        found, after = [], START
        while True:
            page = registry.page(Kind.TOOLS, after, 3)
            found.append(([item.key for item in page.items], page.cursor))
            if page.after is None:
                return found
            after = page.after

    assert pages() == pages()


def test_a_cursor_survives_the_end_of_the_entry_it_points_at() -> None:
    registry = Registry()
    registry.register(*tools("a", "b", "c", "d"))
    after = registry.page(Kind.TOOLS, START, 2).after
    assert after is not None
    registry.unregister(Kind.TOOLS, "b", "a")
    assert [item.key for item in registry.page(Kind.TOOLS, after, 9).items] == ["c", "d"]
    registry.register(tool("b"))
    assert [item.key for item in registry.page(Kind.TOOLS, after, 9).items] == ["c", "d", "b"]


def test_a_cursor_behind_everything_gives_an_empty_last_page() -> None:
    registry = Registry()
    registry.register(*tools("a", "b"))
    after = registry.page(Kind.TOOLS, START, 1).after
    assert after is not None
    registry.unregister(Kind.TOOLS, "b")
    assert registry.page(Kind.TOOLS, after) == Page(Kind.TOOLS, [], [])


def test_a_place_that_was_never_given_out_is_a_bad_cursor() -> None:
    registry = Registry()
    registry.register(*tools("a", "b"))
    with pytest.raises(BadCursor):
        registry.page(Kind.TOOLS, 3)
    with pytest.raises(BadCursor):
        registry.page(Kind.PROMPTS, 1)


def test_a_page_left_in_the_middle_goes_on_there_whatever_happens_to_the_entry() -> None:
    """A caller that may not see every tool ends its page at the last one it was shown."""
    registry = Registry()
    registry.register(*tools("a", "b", "c", "d"))
    page = registry.page(Kind.TOOLS)
    shown = page.places[[item.key for item in page.items].index("b")]
    registry.unregister(Kind.TOOLS, "b")
    registry.register(tool("b"))
    assert [item.key for item in registry.page(Kind.TOOLS, shown).items] == ["c", "d", "b"]


CHANGES = st.lists(st.tuples(st.booleans(), st.sampled_from("abcdefgh")), max_size=12)


@given(st.lists(CHANGES, min_size=1, max_size=8), st.integers(1, 4))
def test_a_client_that_reads_during_changes_misses_nothing_that_stayed(
    rounds: list[list[tuple[bool, str]]], limit: int
) -> None:
    """Against a plain list of names: its order, and every entry that was there throughout."""
    registry = Registry()
    model: list[str] = []
    stayed: set[str] | None = None
    read: list[str] = []
    after: int | None = START
    for changes in rounds:
        for register, name in changes:
            if register:
                registry.register(tool(name))
                if name not in model:
                    model.append(name)
            else:
                registry.unregister(Kind.TOOLS, name)
                if name in model:
                    model.remove(name)
                if stayed is not None:
                    stayed.discard(name)
        assert keys(registry, limit=limit) == model
        assert [item.name for item in registry.tools()] == model
        if stayed is None:
            stayed = set(model)
        if after is not None:
            page = registry.page(Kind.TOOLS, after, limit)
            read += [item.key for item in page.items]
            after = page.after
    while after is not None:
        page = registry.page(Kind.TOOLS, after, limit)
        read += [item.key for item in page.items]
        after = page.after
    assert stayed is not None
    assert stayed <= set(read)


# -- threads


def _write(registry: Registry, prefix: str) -> None:
    for number in range(200):
        registry.register(tool(f"{prefix}{number}"))
        registry.register(ResourceTemplate(f"{prefix}:{number}/{{a}}", "t", run))
        if number % 2:
            registry.unregister(Kind.TOOLS, f"{prefix}{number}")


def _read(registry: Registry) -> None:
    for number in range(200):
        assert len(keys(registry, limit=50)) <= 400
        registry.static_tools()
        registry.match_template(f"a:{number}/x")
        registry.on_change(lambda *_: None)()


def test_it_may_be_used_from_several_threads() -> None:
    registry = Registry()
    events = heard(registry)
    jobs = [partial(_write, registry, "a"), partial(_write, registry, "b")]
    jobs += [partial(_read, registry)] * 2
    with ThreadPoolExecutor(len(jobs)) as threads:
        for ended in [threads.submit(job) for job in jobs]:
            ended.result()
    assert sorted(keys(registry)) == sorted(f"{p}{n}" for p in "ab" for n in range(0, 200, 2))
    assert len(events) == 2 * (200 + 200 + 100)
    assert registry.match_template("b:199/x") is not None
