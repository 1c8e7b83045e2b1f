"""Every promise of the specification, in our words, and how a test claims one.

A promise is claimed by decorating a test with `@promise("id", ...)`: that test fails when the
promise is broken. `test_promises.py` fails when one is claimed by nobody.

Where a decision of this project (`docs/adr`) changed what a promise says, the sentence says the
new rule.

Words: *reply* is what the caller of `handle_message` or `request` gets, *push* what a subscriber
is sent, *deny* the `isError` result whose text is `{"error":"authorization_required",...}`. From
`client` on the promises are those of the client: *closed* is a client without a connection that
will try again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

__all__ = ["PROMISES", "Promise", "promise"]

F = TypeVar("F", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Promise:
    """One promise: what it is called, where it is made, what it says."""

    id: str
    section: str
    sentence: str


def promise(*ids: str) -> Callable[[F], F]:
    """Claim promises for a test. Raises LookupError for an id that is not in the list."""
    unknown = [id for id in ids if id not in _IDS]
    if unknown:
        raise LookupError(f"not in PROMISES: {', '.join(unknown)}")

    def claim(test: F) -> F:
        return test

    return claim


def _section(name: str, group: str, **sentences: str) -> list[Promise]:
    return [Promise(f"{group}.{key}", name, sentence) for key, sentence in sentences.items()]


PROMISES: Final[tuple[Promise, ...]] = (
    *_section(
        "Supported methods",
        "methods",
        initialize="`initialize` answers the capabilities and serverInfo: name raxol unless "
        "given, version the `version` option, by default the package's.",
        initialized="`notifications/initialized` is taken without a reply.",
        ping="`ping` is answered with an empty result.",
        list_tools="`tools/list` lists the registered tools that this caller may call.",
        call_tool="`tools/call` runs the tool and answers its result.",
        list_resources="`resources/list` lists the registered resources.",
        read_resource="`resources/read` answers the contents of one.",
        list_prompts="`prompts/list` lists the registered prompts.",
        get_prompt="`prompts/get` renders a prompt with its arguments.",
        set_level="`logging/setLevel` sets from which level on logs are sent.",
        complete="`completion/complete` suggests values for an argument.",
    ),
    *_section(
        "Notifications",
        "notifications",
        pushed="Whoever subscribes is pushed the server's notifications.",
    ),
    *_section(
        "Elicitation",
        "elicitation",
        asked="A client that declared elicitation and has a subscriber is really asked.",
        not_declared="A client that did not declare elicitation gets the deny, and no question.",
        not_subscribed="A client without a subscriber gets the deny, and no question.",
        handle_is_freed="`handle_message` returns None as soon as the call is parked; the call's "
        "answer is pushed later.",
        answers_can_be_read="So a transport that waits in `handle_message` can read the human's "
        "answer: no deadlock.",
        answer_is_not_answered="The message that carries the human's answer gets no reply.",
        request_stays_out="For a `request` the parked call stays outstanding and the call's "
        "response, or deny, is its reply.",
        cancel_reaches="Until then `cancel` reaches it, parked or, once approved, running.",
        once="A parked call is closed exactly once, whatever races.",
        approval="A yes runs the tool, and the call gets the tool's result.",
        refusal="A decline, a cancel and an accepted form without the yes deny the call.",
        error="An error instead of an answer denies the call.",
        timeout="No answer within the elicitation timeout (60 s by default) denies the call.",
        room="On a full server a parked call may be denied to make room for another connection's.",
        silence="Everything but a yes ends in the same deny, and the tool does not run.",
        dropped_by_cancel="`cancel` drops a parked call without an answer and ends the tool that "
        "an approval started.",
        dropped_by_owner="So does the end of the task that owns the request.",
        dropped_by_connection="So does the end of the connection.",
        cap_here="At most `max_parked_elicitations` (32) calls of one share are parked; the next "
        "is denied with `too many elicitations pending`.",
        cap_total="At most `max_parked_elicitations_total` (256) calls are parked in all.",
        cap_order="A cap per connection above the total refuses to start.",
        fair_eviction="On a full server an ask of a share that holds fewer calls than the "
        "fullest takes the place of the fullest one's oldest call, which is denied with `too "
        "many elicitations pending on this server`.",
        fair_refusal="Any other ask on a full server gets that deny itself.",
        spreading="A client that spreads its calls over connections crowds out only itself.",
    ),
    *_section(
        "Sensitive tools",
        "sensitive",
        annotations="A tool whose annotations say `destructiveHint: true` or `sensitive: true` is "
        "sensitive, whatever else they say.",
        boot="With a sensitive tool registered and no authorizer the server refuses to start.",
        late="One registered afterwards is denied when it is called.",
        derived_boot="Derived tools do not keep the server from starting.",
        derived_call="A sensitive derived tool is denied when it is called all the same.",
        derived_by_registration="Only how a tool was registered makes it derived: no dotted name "
        "and nothing in its definition.",
    ),
    *_section(
        "Unknown tools",
        "unknown",
        code="Calling a tool that is not there is a JSON-RPC error: -32601, and -32602 in the "
        "stateless era.",
        text="The string that `unknown_tool_reply(name)` returns is sent as an isError result.",
        none="When it returns None the error stays.",
        opaque="The server itself reads nothing into a tool's name.",
    ),
    *_section(
        "Client capabilities",
        "capabilities",
        kept="What a connection declared is kept until its subscriber ends.",
        cap="At most `max_client_capabilities` (1,024) of them are kept.",
        orphans_first="Past that the oldest without a subscriber is forgotten first.",
        live_last="One with a subscriber is forgotten only when every one has one.",
        event="Each is told to the observer as `client_capabilities_evicted`.",
        still_works="A forgotten connection works on; it cannot be asked until it sends "
        "`initialize` again.",
    ),
    *_section(
        "Callback isolation",
        "isolation",
        workers="Tools, resources, prompts, completions and authorizers run in workers of their "
        "own: what goes wrong there ends one call.",
        responsive="Meanwhile other clients, notifications, leaving subscribers and elicitation "
        "timeouts are served.",
        cap_total="At most `max_in_flight` (32) workers run.",
        parked_hold_none="Parked calls hold no worker.",
        cap_share="One share has at most `max_in_flight_per_connection` of them, by default half "
        "of the whole, at least 1.",
        share="A share is the principal or else the connection; who names no connection is on "
        "`default`.",
        two_fill="Connections together can fill the server: two do at the default share.",
        cap_order="A share above the whole refuses to start.",
        counted_at_start="Two requests cannot both take the last slot.",
        timeout="A worker has `callback_timeout` (300 s), then it is stopped.",
        busy="Above a bound the answer is a structured busy.",
        handle_timeout="A `handle_message` that gives up stops its call's worker.",
        cancel="A `request` is stopped with `cancel`.",
        owner="It is also stopped when the task that owns it ends.",
    ),
    *_section(
        "Callback isolation: params",
        "params",
        null="`params: null` is no params.",
        object_first="Params that are no object are -32602 before the method is looked at.",
    ),
    *_section(
        "Callback isolation: method",
        "method",
        string="A request whose method is no string is -32600.",
        dropped="A notification whose method is no string is dropped.",
    ),
    *_section(
        "Callback isolation: logging/setLevel",
        "level",
        unknown="An unknown level is -32602.",
        gated="The read authorizer decides about it like about every other read.",
    ),
    *_section(
        "Types: authorizer_source",
        "source",
        values="It is `configured` or `default`, and `default` unless said otherwise.",
    ),
    *_section(
        "Types: conn_id",
        "connection",
        any_value="A connection is named by any hashable value; who names none is on `default`.",
    ),
    *_section(
        "Types: pending_elicitation",
        "parked",
        original_id="The eventual answer carries the id of the original call.",
        owner_answers="Only the connection that made a call can answer its question; another's "
        "answer changes nothing.",
        owner_hears="Question and answer reach that connection alone.",
        ordered="Parked calls are ordered by when they parked, so the oldest is known.",
    ),
    *_section(
        "Types: transport",
        "transport",
        declared="Authorizers are told the transport as it was declared, not as a client says.",
    ),
    *_section(
        "Functions: authorization_configured",
        "configured",
        chosen="True when somebody chose the authorizer.",
        default="False for a fallback, however strict, and for an authorizer of unsaid source.",
        unreachable="False once the server has stopped.",
    ),
    *_section(
        "Functions: cancel",
        "cancel",
        running="A running callback is stopped and the reply is None.",
        parked="A parked call is dropped, the reply is None and a later answer is ignored.",
        every_stage="The same handle works at every stage of a call that was approved.",
        over="A request that is over is left alone.",
    ),
    *_section(
        "Functions: lifetime",
        "lifetime",
        ends="A server is run inside its owner: leaving the block ends all that it started.",
    ),
    *_section(
        "Functions: handle_message",
        "handle",
        reply="Requests get their response, notifications get None.",
        decoded_only="A request that was not decoded by `decode` is -32600.",
        attributed="A message belongs to the connection it is handled for.",
        unidentified="A connection that nobody subscribes to can be called from and not asked.",
    ),
    *_section(
        "Functions: notify",
        "notify",
        everybody="A notification goes to every subscriber.",
    ),
    *_section(
        "Functions: read_authorization_configured",
        "reads",
        presence="True when there is a read authorizer, whatever the source says.",
        unreachable="False once the server has stopped.",
    ),
    *_section(
        "Functions: request",
        "request",
        no_waiting="It returns at once, while earlier requests run.",
        in_order="Messages of one caller arrive in order; what is answered inline keeps it.",
        one_reply="Every message gets exactly one reply, notifications and responses None.",
        decoded_only="A request that was not decoded is -32600; such a notification or response "
        "gets None.",
        cancelled="A cancelled request's reply is None.",
        parked="A parked call stays outstanding until its response.",
        owner="When the owner task ends, its outstanding requests are cancelled.",
    ),
    *_section(
        "Functions: start",
        "start",
        refuses="A server that may not be served raises instead of starting.",
    ),
    *_section(
        "Functions: subscribe",
        "subscribe",
        pushed="A subscriber is pushed notifications until it ends, and then nothing more.",
        addressed="Questions and answers go to the subscriber of the very id under which the "
        "request was handled.",
    ),
    *_section(
        "Client",
        "client",
        greets="A server of the handshake era is sent `initialize`, and told when it is answered.",
        stateless="A server of the stateless era is not: it is ready as soon as it is discovered.",
        one_machine="The same machine runs over every transport.",
        local="A `command` is a local subprocess, spoken to over its pipes.",
        hosted="A `url` is a hosted endpoint, spoken to over HTTP.",
        lists="Tools are discovered by `tools/list`.",
        calls="Tools are called by `tools/call`.",
    ),
    *_section(
        "Client: spec",
        "spec",
        one_of_two="A spec has a command or a url; both or neither is `InvalidSpec`.",
        named="A spec has a name.",
        redacted="A refused spec shows no value of a header.",
        no_http="A url without the HTTP library is `NoHttpClient`.",
        literal="Header values are sent as they are: nothing reads `${env:NAME}` or `op://`.",
        nothing_started="A refused spec has started nothing.",
        any_mapping="A spec may be any mapping of its options.",
    ),
    *_section(
        "Client: concurrency",
        "window",
        finite="Whatever the policy, the number of requests under way is bounded.",
        serialized="A serialized server has one at a time.",
        queue="Excess work waits, in order, in a bounded queue.",
        busy="Beyond that `Busy` is the answer at once.",
        timer="Every request has a timer; when it ends the client answers `TimedOut` itself.",
        dropped="Then the entry is gone: nothing grows by servers that do not answer.",
    ),
    *_section(
        "Client: recovery",
        "recovery",
        connect="A connect that fails closes the client with the reason, and is tried again.",
        handshake="So does a handshake that fails.",
        delay="The delay is `reconnect` (1 s) at first and doubles to one minute.",
        nothing_stops="Nothing of this is raised by `start` or ends the program.",
        rejected="A session that the server rejects fails that one request and is established "
        "anew on the same link.",
        unauthorized="A 401 while connecting or greeting is final: nothing is scheduled, and who "
        "waits is answered at once.",
        patient="Who waits for readiness waits through failures.",
        fail_fast="With `fail_fast` each failure answers who waits, and who comes while closed; "
        "it is tried again all the same.",
    ),
    *_section(
        "Client: names",
        "names",
        build="`tool_name` makes `mcp__<server>__<tool>`.",
        parse="`parse_tool_name` gives server and tool, or None.",
    ),
    *_section(
        "Client: await_ready",
        "ready",
        event="It returns as soon as the handshake has round-tripped, without polling.",
        at_once="At once for a server whose era has none.",
        budget="`NotReady` with the state, when its time is over first.",
    ),
    *_section(
        "Client: call_tool",
        "call",
        timeout="`timeout` is 30 s unless given.",
        unmetered="A priced tool without a reservation is `Unpaid`, and no request is made.",
        opaque="A reservation is any value that `reserve` gave, and is good once.",
    ),
    *_section(
        "Client: status and stop",
        "stop",
        ends="`stop` ends the client, its server, and everything that waits for it.",
        status="`status` says at any time where the client stands.",
    ),
)
_IDS: Final = {promise.id for promise in PROMISES}
