"""K06: what one layer reads as one message another must not read as a different one.

A policy in front of the server that sees `tools/list` while the server runs `tools/call` is
bypassed. So member names are compared exactly, and a member that is there twice is no message.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.cases.dialects import (
    BOTH_ERAS,
    LEGACY,
    STDIO,
    Dialect,
    case,
    code_of,
    journal_of,
    result_of,
)
from tests.cases.peers import Exchange, MemoryPeer, Message, Peer


@case(wires=[STDIO])
async def test_a_member_in_other_letters_is_another_member(peer: Peer, era: Dialect) -> None:
    """BC-021. JSON-RPC 2.0: member names are case-sensitive; GHSA-wvj2-96wp-fq3f."""
    await era.greet(peer)
    call = {"name": "echo", "arguments": {"text": "x"}}
    first = era.request(1, "tools/list", {})
    answer = await peer.request({**first, "Method": "tools/call", "Params": call})
    assert "tools" in result_of(answer)

    await peer.send({"JSONRPC": "2.0", "ID": 2, "METHOD": "tools/list"})
    assert code_of(await peer.answer(None)) == -32600
    third = era.request(3, "tools/call")
    assert code_of(await peer.request({**third, "param\u017f": call})) == -32602
    fourth = era.request(4, "tools/call", {"Name": "echo", "Arguments": {"text": "x"}})
    assert code_of(await peer.request(fourth)) == -32602
    assert not [line for line in await journal_of(peer, era) if line.startswith("start:echo")]


# -- every look-alike of every member -------------------------------------------------------------

Path = tuple[str, ...]
# A long s, a Kelvin sign, a dotless i, a Cyrillic a, a Greek omicron.
TWINS = (("s", "\u017f"), ("k", "\u212a"), ("i", "\u0131"), ("a", "\u0430"), ("o", "\u03bf"))


def look_alikes(name: str) -> Iterator[str]:
    """Write names that some parser, somewhere, takes for `name`."""
    yield name.upper() if name != name.upper() else name.lower()
    yield name.capitalize() if name != name.capitalize() else name.swapcase()
    yield name + "\0"
    yield "\0" + name
    yield f" {name}"
    yield f"{name} "
    yield "\ufeff" + name
    for letter, twin in TWINS:
        if letter in name:
            yield name.replace(letter, twin)


def paths(message: Message) -> Iterator[Path]:
    """Find every member that the protocol gives a meaning; a tool's arguments are its own."""
    for name, value in message.items():
        yield (name,)
        if isinstance(value, dict) and name != "arguments":
            for path in paths(value):
                yield (name, *path)


def changed(message: Message, path: Path, members: list[tuple[str, object]]) -> bytes:
    """Write a message with the member at `path` replaced by `members`, which may share a name."""

    def written(value: object, rest: Path) -> str:
        if not rest or not isinstance(value, dict):
            return json.dumps(value)
        pairs: list[str] = []
        for name, item in value.items():
            if name != rest[0]:
                pairs.append(f"{json.dumps(name)}:{json.dumps(item)}")
            elif len(rest) > 1:
                pairs.append(f"{json.dumps(name)}:{written(item, rest[1:])}")
            else:
                pairs += [f"{json.dumps(key)}:{json.dumps(new)}" for key, new in members]
        return "{" + ",".join(pairs) + "}"

    return written(message, path).encode() + b"\n"


def value_at(message: Message, path: Path) -> object:
    """Return the value of a member."""
    value: object = message
    for name in path:
        assert isinstance(value, dict)
        value = value[name]
    return value


def other_than(value: object) -> object:
    """Write a value of the same kind that would do something else."""
    if isinstance(value, str):
        return {"tools/list": "tools/call", "echo": "boom"}.get(value, "mem://a")
    return 99 if isinstance(value, int) else {"name": "boom", "arguments": {}}


def requests(era: Dialect) -> list[Message]:
    """Write one request of each shape."""
    return [
        era.call(7, "echo", {"text": "x"}, meta={"progressToken": 1}),
        era.request(7, "tools/list", {"cursor": "abc"}),
        era.request(7, "resources/read", {"uri": "mem://none"}),
        era.request(7, "prompts/get", {"name": "greet", "arguments": {"who": "x"}}),
        era.request(
            7,
            "completion/complete",
            {
                "ref": {"type": "ref/prompt", "name": "greet"},
                "argument": {"name": "who", "value": ""},
            },
        ),
    ]


def effect(exchange: Exchange, era: Dialect, line: bytes) -> tuple[list[object], list[str]]:
    """Return what is answered to a line on a new connection, and what ran."""

    async def sends(peer: MemoryPeer) -> tuple[list[object], list[str]]:
        await era.greet(peer)
        journal = exchange.fixture.journal.lines
        before = len(journal)
        answers = await peer.exchange(line)
        errors: list[object] = [(m.get("id"), code_of(m)) if "error" in m else m for m in answers]
        return errors, journal[before:]

    return exchange.run(sends)


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_a_look_alike_is_never_the_member_it_looks_like(era: Dialect) -> None:
    """BC-021, the kind. In the member's place it is as if the member were absent; beside it, too.

    An error instead is fine: then nothing ran.
    """
    with Exchange() as exchange:
        for message in requests(era):
            intact = effect(exchange, era, json.dumps(message).encode() + b"\n")
            for path in paths(message):
                value = value_at(message, path)
                absent = effect(exchange, era, changed(message, path, []))
                for twin in look_alikes(path[-1]):
                    renamed = effect(exchange, era, changed(message, path, [(twin, value)]))
                    assert renamed in (absent, _refused(renamed)), (path, twin)
                    for beside in (
                        [(twin, other_than(value)), (path[-1], value)],
                        [(path[-1], value), (twin, other_than(value))],
                    ):
                        both = effect(exchange, era, changed(message, path, beside))
                        assert both in (intact, _refused(both)), (path, twin)


@pytest.mark.parametrize("era", BOTH_ERAS, ids=repr)
def test_a_member_that_is_there_twice_is_no_message(era: Dialect) -> None:
    """ours: a proxy that takes the first and a server that takes the last see two messages."""
    with Exchange() as exchange:
        for message in requests(era):
            for path in paths(message):
                value = value_at(message, path)
                for first, second in ((value, other_than(value)), (other_than(value), value)):
                    line = changed(message, path, [(path[-1], first), (path[-1], second)])
                    answers, ran = effect(exchange, era, line)
                    assert ran == []
                    assert [answer[1] for answer in answers] == [-32700], (path, answers)  # type: ignore[index]  # an error


def _refused(outcome: tuple[list[object], list[str]]) -> tuple[list[object], list[str]] | None:
    """Return the outcome again when it is one error and nothing ran."""
    answers, ran = outcome
    refused = len(answers) == 1 and isinstance(answers[0], tuple) and not ran
    return outcome if refused else None


def test_the_escaped_spelling_of_a_name_is_the_same_name() -> None:
    """RFC 8259 §8.3: names are compared after unescaping, also to find them twice."""
    call = r'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo",'
    with Exchange() as exchange:
        line = call + r'"\u0061rguments":{"text":"x"}}}' + "\n"
        answers, ran = effect(exchange, LEGACY, line.encode())
        assert (len(answers), ran) == (1, ["start:echo:x"])
        twice = call + r'"arguments":{"text":"x"},"argument\u0073":{"text":"y"}}}' + "\n"
        assert effect(exchange, LEGACY, twice.encode()) == ([(1, -32700)], [])
