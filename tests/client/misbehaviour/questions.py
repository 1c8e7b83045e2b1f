"""What a server asks its client, with and without the right to: in either era."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from tests.client.misbehaviour.attempts import Error, Misbehaviour
from tests.client.misbehaviour.messages import INVALID, fine, invalid
from tests.client.peers.script import (
    MODERN_VERSION,
    PREFIX,
    Message,
    Step,
    as_usual,
    error,
    notice,
    on,
    question,
    raw,
    reply,
    text,
    until,
)

__all__ = ["FORM", "MODERN", "UNASKED", "required"]


def answered_to(**wanted: object) -> Callable[[list[Message]], bool]:
    """Check that the client answered a request of the peer's, once, with these members."""

    def holds(received: list[Message]) -> bool:
        answers = [each for each in received if "method" not in each]
        got = [{"id": each["id"], "code": each.get("error", {}).get("code", 0)} for each in answers]
        return got == [wanted]

    return holds


FORM: Final[Message] = {
    "message": "?",
    "requestedSchema": {"type": "object", "properties": {"v": {"type": "string"}}},
}
NOT_FOUND: Final = {"id": "q", "code": -32601}
# What a server of the handshake era asks of a client that has no handler for it.
UNASKED: Final[list[Misbehaviour]] = [
    fine(
        "asks a human where there is none",
        question("elicitation/create", FORM),
        until("answer"),
        as_usual(),
        check=answered_to(**NOT_FOUND),
    ),
    fine(
        "asks for a model where there is none",
        question("sampling/createMessage"),
        until("answer"),
        as_usual(),
        check=answered_to(**NOT_FOUND),
    ),
    fine(
        "asks for roots where there are none",
        question("roots/list"),
        until("answer"),
        as_usual(),
        check=answered_to(**NOT_FOUND),
    ),
    fine(
        "asks for the strangest things",
        question("tools/call"),
        until("answer"),
        as_usual(),
        check=answered_to(**NOT_FOUND),
    ),
    fine(
        "pings in the middle of a call",
        question("ping"),
        until("answer"),
        as_usual(),
        check=answered_to(id="q", code=0),
    ),
    fine("pings, a flood", question("ping", id="$N", count=500), as_usual()),
    fine(
        "asks with the id of the call",
        question("elicitation/create", FORM, id="$ID"),
        until("answer"),
        as_usual(),
    ),
    fine(
        "asks with an id that is none",
        raw('{"jsonrpc":"2.0","id":null,"method":"ping"}\n'),
        raw('{"jsonrpc":"2.0","id":1.5,"method":"ping"}\n'),
        as_usual(),
    ),
    fine(
        "asks with params that are none",
        raw('{"jsonrpc":"2.0","id":"q","method":"ping","params":[1]}\n'),
        until("answer"),
        as_usual(),
        check=answered_to(id="q", code=-32602),
    ),
]


# -- the stateless era -----------------------------------------------------------------------------


def required(**members: Any) -> Step:
    """Answer that input is required first."""
    return reply({"resultType": "input_required", **members})


def nobody_answered(received: list[Message]) -> bool:
    """Check that the client sent no answers at all."""
    return all("method" in each for each in received)


def modern(made: Misbehaviour) -> Misbehaviour:
    """Put it into the stateless era."""
    return replace(made, preset="modern")


# What is told about subscriptions that there are not.
STRANGE: Final[list[object]] = [99, "x", None, []]
NEWS: Final = [
    notice(f"notifications/{what}", {"_meta": {f"{PREFIX}subscriptionId": id}})
    for what in ("tools/list_changed", "subscriptions/acknowledged", "resources/updated")
    for id in STRANGE
]
ASKED: Final[Message] = {"k": {"method": "elicitation/create", "params": FORM}}
FOR_EVER: Final = (on("tools/call", required(requestState="s"), times=11),)

MODERN: Final[list[Misbehaviour]] = [
    modern(each)
    for each in [
        fine("no resultType", text("ok"), said="ok"),
        invalid("an unknown resultType", text("ok", resultType="future_kind")),
        invalid("a resultType in other letters", text("ok", resultType="Complete")),
        invalid("the resultType a number", text("ok", resultType=7)),
        invalid("the resultType null", text("ok", resultType=None)),
        invalid("input required, and says for none", required()),
        invalid("input required, and a state that is none", required(requestState=7)),
        invalid("input required, and requests that are none", required(inputRequests=[1])),
        invalid("input required by a human where there is none", required(inputRequests=ASKED)),
        invalid(
            "input required of a kind that there is not",
            required(inputRequests={"k": {"method": "tools/call", "params": {}}}),
        ),
        invalid(
            "input required a thousandfold",
            required(inputRequests={str(n): ASKED["k"] for n in range(1000)}),
        ),
        Misbehaviour("input required for ever", FOR_EVER, INVALID),
        fine(
            "asks, which is no longer allowed",
            question("elicitation/create", FORM),
            as_usual(),
            check=nobody_answered,
        ),
        fine("news of a subscription of nobody", *NEWS, as_usual()),
        Misbehaviour(
            "a version that it no longer speaks",
            (on("tools/call", error(-32022, data={"supported": [MODERN_VERSION]}), times=1),),
            Error("RemoteProtocolError", (-32022,)),
            over_http=Error("RemoteProtocolError", (-32022, 400)),
        ),
    ]
]
