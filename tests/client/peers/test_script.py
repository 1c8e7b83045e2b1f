"""Scripts: what is done at which event, and how values are filled in."""

from __future__ import annotations

import pytest

from tests.client.peers.script import (
    MODERN_VERSION,
    PREFIX,
    Message,
    Script,
    as_usual,
    filled,
    http,
    leave,
    notice,
    on,
    raw,
    raw_bytes,
    reply,
    script,
    silent,
    text,
)

CALL: Message = {
    "id": 7,
    "method": "tools/call",
    "params": {"name": "echo", "arguments": {"text": "hi"}, "_meta": {"progressToken": "t"}},
}


def said(found: Script, message: Message) -> list[Message]:
    """Give the messages that a script answers with."""
    steps = found.steps(found.event_of(message), message)
    return [each for step in steps if step["step"] == "say" for each in filled(step, message)]


def test_without_rules_it_does_what_the_preset_does() -> None:
    answers = said(Script(script("legacy")), CALL)
    assert answers == [
        {"jsonrpc": "2.0", "id": 7, "result": {"content": [{"type": "text", "text": "hi"}]}}
    ]


def test_the_first_rule_that_fits_wins() -> None:
    found = Script(
        script("legacy", on("tools/call slow", leave(1)), on("tools/call", text("ruled")))
    )
    [answer] = said(found, CALL)
    assert answer["result"]["content"][0]["text"] == "ruled"
    slow: Message = {"id": 1, "method": "tools/call", "params": {"name": "slow"}}
    assert found.steps("tools/call", slow) == [leave(1)]


def test_a_rule_is_used_up() -> None:
    found = Script(script("legacy", on("tools/call", silent(), times=2)))
    steps = [found.steps("tools/call", CALL)[0]["step"] for _ in range(3)]
    assert steps == ["silent", "silent", "say"]


def test_a_rule_of_one_life_is_for_that_life() -> None:
    data = script("legacy", on("start", leave(3), life=1))
    assert Script(data, 1).steps("start") == [leave(3)]
    assert Script(data, 2).steps("start") == []


def test_a_rule_for_any_message_is_for_no_other_event() -> None:
    found = Script(script("legacy", on("*", http(404))))
    assert found.steps("tools/call", CALL) == [http(404)]
    assert found.steps("start") == []


def test_a_rule_may_add_to_what_is_usual() -> None:
    found = Script(script("legacy", on("tools/call", notice("n", {"t": "$TOKEN"}), as_usual())))
    progress, answer = said(found, CALL)
    assert progress == {"jsonrpc": "2.0", "method": "n", "params": {"t": "t"}}
    assert answer["id"] == 7


def test_messages_are_numbered_and_ids_keep_their_type() -> None:
    [step] = [notice("n", {"at": "$N", "about": "$ID"}, count=2)]
    assert [each["params"] for each in filled(step, {"id": "x"})] == [
        {"at": 0, "about": "x"},
        {"at": 1, "about": "x"},
    ]


def test_raw_bytes_are_exact_and_cut_as_told() -> None:
    step = raw('{"id":$ID,', b"\xff", ("é", 2), chunk=4)
    assert list(raw_bytes(step, CALL)) == [b'{"id', b'":7,', b"\xff\xc3\xa9\xc3", b"\xa9"]
    assert list(raw_bytes(raw(), None)) == []


@pytest.mark.parametrize("asked", ["2024-11-05", "2025-11-25", "1999-01-01"])
def test_the_legacy_preset_agrees_on_a_version_it_knows(asked: str) -> None:
    message: Message = {"id": 1, "method": "initialize", "params": {"protocolVersion": asked}}
    [answer] = said(Script(script("legacy")), message)
    agreed = answer["result"]["protocolVersion"]
    assert agreed == ("2025-11-25" if asked == "1999-01-01" else asked)


def test_the_modern_preset_wants_its_metadata() -> None:
    found = Script(script("modern"))
    [answer] = said(found, {"id": 1, "method": "tools/list", "params": {}})
    assert answer["error"]["code"] == -32602
    meta = {f"{PREFIX}protocolVersion": "2099-01-01", f"{PREFIX}clientCapabilities": {}}
    [answer] = said(found, {"id": 1, "method": "tools/list", "params": {"_meta": meta}})
    assert answer["error"]["code"] == -32022
    meta[f"{PREFIX}protocolVersion"] = MODERN_VERSION
    [answer] = said(found, {"id": 1, "method": "tools/list", "params": {"_meta": meta}})
    assert answer["result"]["resultType"] == "complete"


def test_notifications_are_not_answered() -> None:
    assert said(Script(script("legacy")), {"method": "notifications/initialized"}) == []
    assert reply(1)["message"]["id"] == "$ID"
