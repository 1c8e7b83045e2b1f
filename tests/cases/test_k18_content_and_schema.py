"""K18: what a handler is given fits the schema that was shown, and nothing is made to fit.

"5" became 5, true became 1, unknown arguments were dropped, and the answer of a form went
unchecked to the tool.
"""

from __future__ import annotations

import json
from typing import Final, cast

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases.dialects import (
    ASKABLE,
    BOTH_ERAS,
    LEGACY,
    MODERN,
    Dialect,
    Question,
    accept,
    case,
    code_of,
    journal_of,
    result_of,
    text_of,
)
from tests.cases.peers import Exchange, MemoryPeer, Message, Peer

BAD_CONTENT: Final[list[object]] = [
    {"age": "20"},
    {"age": 17},
    {"age": 100},
    {"age": 20.5},
    {"age": True},
    {},
    {"age": None},
    {"age": 20, "color": "x"},
    {"age": 20, "color": "red"},
    {"age": 20, "color": "Red "},
    {"age": 20, "color": ["Red"]},
    {"age": 20, "admin": True},
    {"Age": 20},
    None,
    [],
    "20",
]


@case()
async def test_the_content_of_a_form_is_checked(peer: Peer, era: Dialect) -> None:
    """BC-067. MCP 2026-07-28 client/elicitation §Security: validate received data."""
    await era.greet(peer, ASKABLE)
    for id, content in enumerate(BAD_CONTENT):
        call = era.call(id, "ask_age", capabilities=ASKABLE)
        answer = await era.dialog(peer, call, {"action": "accept", "content": content})
        if era is MODERN:
            assert code_of(answer) == -32602
        else:
            assert "authorization_required" in text_of(answer, failed=True)
    assert await journal_of(peer, era) == ["opened"]
    for content, expected in (
        ({"age": 20, "color": "Red"}, "20 Red"),
        ({"age": 18}, "18 None"),
        ({"age": 99.0}, "99 None"),
    ):
        call = era.call("good", "ask_age", capabilities=ASKABLE)
        answer = await era.dialog(peer, call, {"action": "accept", "content": content})
        assert text_of(answer) == expected


@case(eras=[LEGACY])
async def test_the_content_of_a_question_midway_is_checked(peer: Peer, era: Dialect) -> None:
    """BC-067, for a tool that asks in the middle of its work."""
    await era.greet(peer, ASKABLE)
    for content in ({"answer": 7}, {}, None, {"other": "x"}):
        call = era.call("c", "ask_midway", {"q": "?"})
        answer = await era.dialog(peer, call, {"action": "accept", "content": content})
        assert text_of(answer, failed=True) == "Error: Denied"
    answer = await era.dialog(peer, era.call("c", "ask_midway", {"q": "?"}), accept(answer="yes"))
    assert text_of(answer) == 'accept {"answer": "yes"}'


@case()
async def test_arguments_are_checked_and_not_made_to_fit(peer: Peer, era: Dialect) -> None:
    """BC-149. SEP-1303: a mistake is shown to the model, in a sentence that names the argument."""
    await era.greet(peer)
    for id, params in ((1, {"name": "no_args"}), (2, {"name": "no_args", "arguments": None})):
        assert text_of(await peer.request(era.request(id, "tools/call", params))) == "ran"
    good: list[tuple[Message, list[object]]] = [
        ({"s": "007"}, ["007", 5, False, False]),
        ({"s": '{"a":1}'}, ['{"a":1}', 5, False, False]),
        ({"s": "x", "n": 5.0}, ["x", 5, False, False]),
        ({"s": "", "n": 0, "b": False, "o": None}, ["", 0, False, False]),
        ({"s": "x", "o": {"deep": True}}, ["x", 5, False, True]),
    ]
    for arguments, expected in good:
        answer = await peer.request(era.call("good", "typed", arguments))
        assert json.loads(text_of(answer)) == expected
    ran = len(await journal_of(peer, era))
    bad: list[tuple[Message, str]] = [
        ({"s": 7}, "'s'"),
        ({"s": None}, "'s'"),
        ({"s": "x", "n": "5"}, "'n'"),
        ({"s": "x", "n": True}, "'n'"),
        ({"s": "x", "n": 5.5}, "'n'"),
        ({"s": "x", "n": None}, "'n'"),
        ({"s": "x", "b": "false"}, "'b'"),
        ({"s": "x", "b": 0}, "'b'"),
        ({"s": "x", "o": []}, "'o'"),
        ({"s": "x", "o": {"deep": 1}}, "'o.deep'"),
        ({"s": "x", "o": {"other": 1}}, "'o"),
        ({"s": "x", "status_filter": "secret value"}, "'status_filter'"),
        ({}, "'s'"),
        ({"S": "x"}, "'s'"),
    ]
    for arguments, named in bad:
        said = text_of(await peer.request(era.call("bad", "typed", arguments)), failed=True)
        assert named in said, said
        assert "secret value" not in said
    assert len(await journal_of(peer, era)) == ran
    listed = result_of(await peer.request(era.request("l", "tools/list")))["tools"]
    schemas = {tool["name"]: tool["inputSchema"] for tool in cast(list[Message], listed)}
    assert cast(Message, schemas["typed"])["additionalProperties"] is False
    assert cast(Message, schemas["no_args"])["additionalProperties"] is False


# -- near misses of every schema -------------------------------------------------------------------

SCALARS: Final = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-3, 120),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.integers(-9, 9).map(float),
    st.text(max_size=6),
    st.sampled_from(["5", "true", "a.txt", "a.txt\n", "../a", "-x", "http://a/", "a b", "mem://a"]),
)
VALUES: Final = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=4,
)
# Their bodies do nothing but read the arguments; what they answer is not looked at.
JUDGED: Final = ("typed", "echo", "hdr", "no_args", "git_diff", "fetch", "read_path", "get_job")


def test_an_argument_is_taken_exactly_when_the_shown_schema_takes_it() -> None:
    """BC-149, the kind: the schema in the list and the check of a call are one.

    The yardstick is a validator of JSON Schema that this check does not use.
    """
    with Exchange() as exchange:
        registry = exchange.fixture.server.registry
        from raxol_mcp.server.prepared import PreparedTool

        for name in JUDGED:
            tool = registry.tool(name)
            assert tool is not None
            judge = jsonschema_rs.validator_for(tool.input_schema)
            prepared = PreparedTool(tool)
            names = [*cast(Message, tool.input_schema["properties"]), "extra"]

            @given(st.dictionaries(st.sampled_from(names), VALUES, max_size=3))
            @settings(max_examples=120)
            def agree(arguments: Message) -> None:
                taken = True
                try:
                    prepared.bind(arguments)  # noqa: B023  # called right here
                except Exception:
                    taken = False
                assert taken is judge.is_valid(arguments), arguments  # noqa: B023  # as above

            agree()


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_every_bad_argument_is_named_at_once(era: Dialect) -> None:
    """BC-149: one sentence names them all, so that a model does not find them one by one."""
    with Exchange() as exchange:

        async def calls(peer: MemoryPeer) -> None:
            await era.greet(peer)
            arguments = {"s": 1, "n": "x", "b": 2, "zzz": 3}
            said = text_of(await peer.request(era.call(1, "typed", arguments)), failed=True)
            assert all(f"'{name}'" in said for name in arguments)

        exchange.run(calls)


def test_an_answer_in_the_wrong_place_is_not_an_answer() -> None:
    """BC-067, the kind: the form of the other question, and one answer for two questions."""
    with Exchange() as exchange:

        async def answers(peer: MemoryPeer) -> None:
            call = MODERN.call(1, "ask_two", capabilities=ASKABLE)
            question = await MODERN.put(peer, call)
            for responses in (
                {"first": accept(confirm=True)},
                {"first": accept(confirm=True), "third": accept(confirm=True)},
            ):
                params = {
                    **cast(Message, call["params"]),
                    "inputResponses": responses,
                    "requestState": question.state,
                }
                again = result_of(await peer.request({**call, "id": 2, "params": params}))
                assert "inputRequests" in again
                question = Question(2, "", {}, again["requestState"])
            params = {
                **cast(Message, call["params"]),
                "inputResponses": {"first": accept(confirm=True), "second": accept(confirm=False)},
                "requestState": question.state,
            }
            final = await peer.request({**call, "id": 3, "params": params})
            assert text_of(final) == "True False"

        exchange.run(answers)
