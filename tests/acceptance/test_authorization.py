"""Who may call and read what, and what the one who may not is told."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress

import pytest

from raxol_mcp import (
    Authorizer,
    ConfigurationError,
    ConnectionFacts,
    Context,
    Limits,
    Prompt,
    Server,
    allow,
    allow_all,
    allowlist,
    ask,
    deny,
    deny_all,
    nonblocking,
)
from raxol_mcp.server.authorizer import AuthorizationContext, Decision
from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.wire.meta import EraName
from tests.acceptance.world import (
    FORMS,
    HANDSHAKE,
    STATELESS,
    YES,
    Client,
    Counted,
    Json,
    asks,
    at,
    code,
    decides,
    denial,
    denied,
    failed,
    in_both_eras,
    names,
    outside,
    settled,
    text,
    tool,
)
from tests.promises import promise

PROMPT = "Really wipe the disk of 10.0.0.7?"
REF: Json = {"type": "ref/prompt", "name": "p"}
ARGUMENT: Json = {"name": "a", "value": ""}

# Every read of each era: method, params, and what the read authorizer is given (§6.5).
PROMPT_CALL: Json = {"name": "p", "arguments": {"a": "1"}}
SHARED_READS: tuple[tuple[str, Json, Json], ...] = (
    ("tools/list", {}, {}),
    ("resources/list", {}, {}),
    ("resources/templates/list", {}, {}),
    ("prompts/list", {}, {}),
    ("resources/read", {"uri": "mem://a"}, {"uri": "mem://a"}),
    ("prompts/get", PROMPT_CALL, PROMPT_CALL),
    ("completion/complete", {"ref": REF, "argument": ARGUMENT}, {"ref": REF}),
)
READS: list[tuple[EraName, str, Json, Json]] = [
    *[(era, *read) for era in EraName for read in SHARED_READS],
    (HANDSHAKE, "resources/subscribe", {"uri": "mem://a"}, {"uri": "mem://a"}),
    (HANDSHAKE, "resources/unsubscribe", {"uri": "mem://a"}, {"uri": "mem://a"}),
    (HANDSHAKE, "logging/setLevel", {"level": "debug"}, {"level": "debug"}),
]
every_read = pytest.mark.parametrize(
    ("era", "method", "params", "given"), READS, ids=lambda v: getattr(v, "value", v) or ""
)


class Seen:
    """An authorizer that notes what it is asked and then says `decision`."""

    nonblocking = True

    def __init__(self, decision: Decision | None = None) -> None:
        self.decision = allow() if decision is None else decision
        self.asked: list[tuple[str, Json]] = []
        self.contexts: list[AuthorizationContext] = []

    def __call__(
        self, name: str, arguments: Mapping[str, object], context: AuthorizationContext
    ) -> Decision:
        self.asked.append((name, dict(arguments)))
        self.contexts.append(context)
        return self.decision


def served(**options: Authorizer | None) -> Server:
    """Make a server with one of everything."""
    server = Server(**options)  # type: ignore[arg-type]  # authorizers alone

    @server.resource("mem://a")
    async def a() -> str:
        return "a"

    @server.prompt
    async def p(a: str = "") -> str:
        """Prompt."""
        return a

    server.registry.register(tool("act"), tool("other"))
    return server


# The tool seam


@in_both_eras
def test_a_denied_call_says_why_and_does_not_run(era: EraName) -> None:
    """server-behaviour §6.3; ours: a reason is a plain string (`blocked`, not `:blocked`)."""

    async def scenario() -> None:
        callback = Counted()
        server = Server(authorizer=deny_all("blocked"))
        server.registry.register(tool("act", callback))
        client = Client(server, era=era)
        reply = await client.call("act", {"path": "x"})
        assert denial(reply) == denied("act", "blocked")
        assert list(denial(reply)) == ["error", "tool", "decision", "detail"]
        assert callback.runs == 0

    run_virtual(scenario)


@promise("elicitation.not_declared")
@in_both_eras
def test_an_ask_to_who_cannot_be_asked_is_a_deny_that_holds_the_question(era: EraName) -> None:
    """specification: Elicitation; server-behaviour §6.3: the client may ask its human itself."""

    async def scenario() -> None:
        callback = Counted()
        server = Server(authorizer=asks(PROMPT))
        server.registry.register(tool("act", callback))
        client = Client(server, era=era)
        await client.greet()
        assert denial(await client.call("act")) == denied("act", PROMPT, decision="ask")
        assert callback.runs == 0
        assert client.pushes() == []

    run_virtual(scenario)


@in_both_eras
def test_an_allowlist_denies_what_it_does_not_name(era: EraName) -> None:
    """server-behaviour §6.1. The names are exact."""

    async def scenario() -> None:
        server = Server(authorizer=allowlist(["act"]))
        callback = Counted()
        server.registry.register(tool("act"), tool("Act", callback), tool("act2", callback))
        client = Client(server, era=era)
        assert text(await client.call("act")) == "done"
        for name in ("Act", "act2"):
            assert denial(await client.call(name)) == denied(name, "not_allowlisted")
        assert callback.runs == 0

    run_virtual(scenario)


@in_both_eras
def test_a_hidden_tool_answers_like_one_that_is_not_there(era: EraName) -> None:
    """ours: tools/call, in order; the authorizer comes before the question whether it exists."""

    async def scenario() -> None:
        server = Server(
            authorizer=allowlist(["seen", "gone"]), unknown_tool_reply=lambda name: "gone"
        )
        server.registry.register(tool("seen"), tool("hidden"))
        client = Client(server, era=era)
        hidden, absent = await client.call("hidden"), await client.call("absent")
        assert denial(hidden) == {**denial(absent), "tool": "hidden"}
        reply = await outside(client.call("gone"))
        assert text(reply) == "gone", "only what may be called is told apart"

    run_virtual(scenario)


@pytest.mark.parametrize("kind", ["nonblocking", "async", "thread"])
@in_both_eras
def test_an_authorizer_that_raises_denies_and_the_server_goes_on(
    era: EraName, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """server-behaviour §6.3: the client chooses how often, so it must cost nothing but the call."""

    def raises(*_: object) -> Decision:
        raise ZeroDivisionError("secret")

    async def raises_later(*_: object) -> Decision:
        raise ZeroDivisionError("secret")

    authorizer: Authorizer = raises_later if kind == "async" else raises
    if kind == "nonblocking":
        nonblocking(raises)

    async def scenario() -> None:
        callback = Counted()
        server = Server(authorizer=authorizer)
        server.registry.register(tool("act", callback))
        client = Client(server, era=era)
        for _ in range(2):
            reply = await outside(client.call("act"))
            assert denial(reply) == denied("act", "authorizer_failed")
        assert callback.runs == 0
        assert await outside(client.result("tools/list")) == {"tools": []}

    run_virtual(scenario)
    assert all(record.levelno == logging.ERROR for record in caplog.records)
    assert len(caplog.records) == 3


@pytest.mark.parametrize(
    "answer",
    [True, False, None, "allow", 1, allow, ("ask", "?"), ask(5), deny(None)],  # type: ignore[arg-type]  # off contract on purpose
    ids=repr,
)
@in_both_eras
def test_an_answer_off_contract_denies(era: EraName, answer: object) -> None:
    """server-behaviour §6.3: True is not allow."""

    async def scenario() -> None:
        callback = Counted()
        server = Server(authorizer=decides(answer))
        server.registry.register(tool("act", callback))
        client = Client(server, era=era, capabilities=FORMS)
        await client.greet()
        reply = await client.call("act")
        assert denial(reply) == denied("act", "authorizer_contract_violation")
        assert callback.runs == 0

    run_virtual(scenario)


@promise("transport.declared", "handle.attributed")
@in_both_eras
def test_authorizers_are_told_exactly_what_the_server_itself_knows(era: EraName) -> None:
    """ours: {connection, transport, principal}; nothing that the client says may be added."""
    tools, reads = Seen(), Seen()

    async def scenario() -> None:
        server = served(authorizer=tools, read_authorizer=reads)
        facts = ConnectionFacts(transport="sse", principal="alice")
        client = Client(server, ("any", 1), era=era, facts=facts)
        await client.greet()
        own: Json = {"connection": "forged", "transport": "stdio", "principal": "root"}
        await client.ask("tools/call", {"name": "act", "arguments": own, **own}, meta=own)
        await client.ask("resources/read", {"uri": "mem://a", **own}, meta=own)
        direct = Client(server, era=era, subscribed=False)
        await direct.call("act")
        expected = {"connection": ("any", 1), "transport": "sse", "principal": "alice"}
        assert tools.contexts[0] == expected
        assert reads.contexts == [expected]
        assert tools.contexts[1] == {
            "connection": "default",
            "transport": "unknown",
            "principal": None,
        }
        assert tools.contexts[0] is not tools.contexts[1]
        assert tools.asked == [("act", own), ("act", {})]

    run_virtual(scenario)


def test_what_an_authorizer_does_to_its_context_is_not_seen_by_the_next() -> None:
    """ours: a fresh one for every question."""
    seen: list[AuthorizationContext] = []

    @nonblocking
    def meddles(
        name: str, arguments: Mapping[str, object], context: AuthorizationContext
    ) -> Decision:
        seen.append(context.copy())
        context["principal"] = "root"
        return allow()

    async def scenario() -> None:
        client = Client(served(authorizer=meddles))
        await client.call("act")
        await client.call("act")
        await client.result("tools/list")
        assert {context["principal"] for context in seen} == {None}

    run_virtual(scenario)


@promise("methods.list_tools")
@in_both_eras
def test_only_the_tools_that_may_be_called_are_listed(era: EraName) -> None:
    """specification: Supported Methods; server-behaviour §6.4: asked with empty arguments."""
    policy = {"plain": allow(), "asked": ask(PROMPT), "never": deny(), "odd": True}
    seen: list[tuple[str, Json]] = []

    @nonblocking
    def authorizer(
        name: str, arguments: Mapping[str, object], context: AuthorizationContext
    ) -> Decision:
        seen.append((name, dict(arguments)))
        if name == "raises":
            raise ValueError
        return policy[name]  # type: ignore[return-value]  # one is off contract on purpose

    async def scenario() -> None:
        order = ["asked", "plain", "never", "raises", "odd"]
        server, open_server = Server(authorizer=authorizer), Server()
        for name in order:
            server.registry.register(tool(name))
            open_server.registry.register(tool(name))
        client = Client(server, era=era, capabilities=FORMS)
        assert names((await client.result("tools/list"))["tools"]) == ["plain"]
        assert seen == [(name, {}) for name in order]
        everything = await Client(open_server, era=era).result("tools/list")
        assert names(everything["tools"]) == order, "without an authorizer everything is"

    run_virtual(scenario)


def test_an_authorizer_may_be_async_or_block() -> None:
    """ours: any callable, sync or async; a plain one may block, so it has a thread."""

    async def later(
        name: str, arguments: Mapping[str, object], context: AuthorizationContext
    ) -> Decision:
        await asyncio.sleep(5)
        return allow() if name == "act" else deny("later")

    def in_thread(
        name: str, arguments: Mapping[str, object], context: AuthorizationContext
    ) -> Decision:
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        return allow() if name == "act" else deny("thread")

    async def scenario() -> None:
        for authorizer, reason in ((later, "later"), (in_thread, "thread")):
            client = Client(served(authorizer=authorizer))
            call = client.call("act")
            assert text(await (call if authorizer is later else outside(call))) == "done"
            call = client.call("other")
            reply = await (call if authorizer is later else outside(call))
            assert denial(reply) == denied("other", reason)

    run_virtual(scenario)


# The read seam


@every_read
def test_the_read_authorizer_is_asked_by_the_name_of_the_method(
    era: EraName, method: str, params: Json, given: Json
) -> None:
    """server-behaviour §6.5: what each method shows of its arguments."""
    seen = Seen()

    async def scenario() -> None:
        server = served(read_authorizer=seen)
        await Client(server, era=era).result(method, params)
        assert seen.asked == [(method, given)]

    run_virtual(scenario)


@promise("level.gated")
@every_read
def test_a_denied_read_is_an_error_that_no_client_retries(
    era: EraName, method: str, params: Json, given: Json
) -> None:
    """ours: -31001; older servers sent -32090, which MCP reserves today (ADR-0010)."""

    async def scenario() -> None:
        client = Client(served(read_authorizer=deny_all("no_reads")), era=era)
        reply = await client.ask(method, params, id=3)
        assert reply == {
            "jsonrpc": "2.0",
            "id": 3,
            "error": {
                "code": -31001,
                "message": f"authorization_required: {method}",
                "data": {
                    "error": "authorization_required",
                    "method": method,
                    "detail": "no_reads",
                },
            },
        }

    run_virtual(scenario)


@every_read
def test_an_ask_about_a_read_is_a_denial_that_does_not_show_the_question(
    era: EraName, method: str, params: Json, given: Json
) -> None:
    """server-behaviour §6.5: the prompt is the operator's; a denied caller must not read it."""

    async def scenario() -> None:
        client = Client(served(read_authorizer=asks(PROMPT)), era=era, capabilities=FORMS)
        await client.greet()
        reply = await client.ask(method, params)
        assert code(reply) == -31001
        assert at(reply, "error", "data", "detail") == "interactive_approval_unsupported"
        assert PROMPT not in json.dumps(reply)
        assert client.pushes() == []

    run_virtual(scenario)


@every_read
@pytest.mark.parametrize(
    ("answer", "detail"),
    [(True, "authorizer_contract_violation"), (ValueError("secret"), "authorizer_failed")],
)
def test_a_read_authorizer_that_misbehaves_denies(
    era: EraName, method: str, params: Json, given: Json, answer: object, detail: str
) -> None:
    """server-behaviour §6.3, for the other seam."""

    @nonblocking
    def authorizer(*_: object) -> Decision:
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[return-value]  # off contract on purpose

    async def scenario() -> None:
        error = await Client(served(read_authorizer=authorizer), era=era).error(method, params)
        assert error["code"] == -31001
        assert at(error, "data", "detail") == detail
        assert "secret" not in json.dumps(error)

    run_virtual(scenario)


@in_both_eras
def test_the_two_seams_are_separate(era: EraName) -> None:
    """server-behaviour §6.5: a tool allowlist knows no method names and would deny every read."""

    async def scenario() -> None:
        client = Client(served(authorizer=allowlist(["act"])), era=era)
        result = await client.result("resources/read", {"uri": "mem://a"})
        assert at(result, "contents", 0, "text") == "a"
        closed = Client(served(read_authorizer=deny_all()), era=era)
        assert text(await closed.call("act")) == "done"

    run_virtual(scenario)


def test_opening_a_session_and_pinging_are_not_reads() -> None:
    """server-behaviour §6.5: NOT gated; what a client needs to find out what it may do."""

    async def scenario() -> None:
        server = served(read_authorizer=deny_all())
        client = Client(server)
        await client.greet()
        assert await client.result("ping") == {}
        modern = Client(server, "b", era=STATELESS)
        assert "supportedVersions" in await modern.result("server/discover")

    run_virtual(scenario)


def test_a_listen_hears_only_what_its_client_could_read() -> None:
    """ours: the stateless twin of subscribing; the filter is narrowed, not refused."""
    listened: list[tuple[str, Json]] = []

    @nonblocking
    def authorizer(
        name: str, arguments: Mapping[str, object], context: AuthorizationContext
    ) -> Decision:
        listened.append((name, dict(arguments)))
        uri = arguments.get("uri")
        return allow() if name == "tools/list" or uri == "mem://a" else deny("secret reason")

    async def scenario() -> None:
        client = Client(served(read_authorizer=authorizer), era=STATELESS)
        client.send(
            "subscriptions/listen",
            {
                "notifications": {
                    "toolsListChanged": True,
                    "promptsListChanged": True,
                    "resourceSubscriptions": ["mem://a", "mem://b"],
                }
            },
        )
        await settled()
        (acknowledged,) = client.pushes()
        assert at(acknowledged, "params", "notifications") == {
            "toolsListChanged": True,
            "resourceSubscriptions": ["mem://a"],
        }
        assert listened == [
            ("tools/list", {}),
            ("prompts/list", {}),
            ("resources/subscribe", {"uri": "mem://a"}),
            ("resources/subscribe", {"uri": "mem://b"}),
        ]

    run_virtual(scenario)


# What a server says about its authorization


@promise("configured.chosen", "configured.default", "source.values")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"authorizer": allow_all(), "authorizer_source": "configured"}, True),
        ({"authorizer": deny_all(), "authorizer_source": "configured"}, True),
        ({"authorizer_source": "configured"}, False),
        ({"authorizer": deny_all(), "authorizer_source": "default"}, False),
        ({"authorizer": allow_all()}, False),
        ({}, False),
    ],
)
def test_authorization_is_configured_when_somebody_chose_it(
    options: dict[str, object], expected: bool
) -> None:
    """specification: authorization_configured. A fallback must not satisfy the gate."""
    assert Server(**options).authorization_configured() is expected  # type: ignore[arg-type]  # a table


@promise("reads.presence")
@pytest.mark.parametrize("source", ["configured", "default"])
def test_read_authorization_is_configured_when_it_is_there(source: str) -> None:
    """specification: read_authorization_configured. Presence, not source."""
    server = Server(read_authorizer=deny_all(), authorizer_source=source)  # type: ignore[arg-type]  # a table
    assert server.read_authorization_configured() is True
    assert Server(authorizer=deny_all()).read_authorization_configured() is False


@promise("configured.unreachable", "reads.unreachable")
def test_a_stopped_server_has_no_authorization() -> None:
    """specification: both predicates are False for a server that cannot be reached."""

    async def scenario() -> None:
        server = Server(
            authorizer=allow_all(), authorizer_source="configured", read_authorizer=allow_all()
        )
        async with server:
            assert server.authorization_configured() is True
            assert server.read_authorization_configured() is True
        assert server.authorization_configured() is False
        assert server.read_authorization_configured() is False

    run_virtual(scenario)


@promise("source.values")
@pytest.mark.parametrize(
    "options",
    [
        {"authorizer_source": "chosen"},
        {"authorizer_source": None},
        {"authorizer": "allow"},
        {"read_authorizer": 5},
        {"page_size": 0},
        {"page_size": True},
    ],
)
def test_options_that_mean_nothing_refuse_to_start(options: dict[str, object]) -> None:
    """server-behaviour §2."""
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        Server(**options)  # type: ignore[arg-type]  # wrong on purpose


def test_arguments_of_a_prompt_reach_the_read_authorizer_even_when_the_prompt_is_absent() -> None:
    """ours: like for tools, what may not be read is not told from what is not there."""

    async def scenario() -> None:
        closed = Client(served(read_authorizer=deny_all("no")))
        for name in ("p", "nope"):
            error = await closed.error("prompts/get", {"name": name})
            assert error["code"] == -31001
        for uri in ("mem://a", "mem://nope"):
            assert (await closed.error("resources/read", {"uri": uri}))["code"] == -31001

    run_virtual(scenario)


def test_a_denied_prompt_is_not_rendered() -> None:
    """server-behaviour §6.5: gate and operation are one worker; the operation is not begun."""

    async def scenario() -> None:
        callback = Counted("x")
        server = Server(read_authorizer=deny_all())
        server.registry.register(Prompt(name="q", callback=callback))
        await Client(server).error("prompts/get", {"name": "q"})
        assert callback.runs == 0

    run_virtual(scenario)


def test_a_policy_may_look_at_the_arguments() -> None:
    """server-behaviour §6.1: `(name, arguments, context)`."""

    def policy(name: str) -> Callable[..., Decision]:
        @nonblocking
        def authorizer(
            name_: str, arguments: Mapping[str, object], context: AuthorizationContext
        ) -> Decision:
            return deny("outside") if arguments.get("path") == "/etc" else allow()

        return authorizer

    async def scenario() -> None:
        client = Client(served(authorizer=policy("act")))
        assert denial(await client.call("act", {"path": "/etc"})) == denied("act", "outside")
        assert text(await client.call("act", {"path": "/tmp"})) == "done"

    run_virtual(scenario)


@in_both_eras
def test_what_an_authorizer_does_to_the_arguments_changes_nothing(era: EraName) -> None:
    """ours: what was decided about, what the person was asked about and what runs are the same."""
    kept: list[dict[str, object]] = []

    @nonblocking
    def authorizer(
        name: str, arguments: Mapping[str, object], context: AuthorizationContext
    ) -> Decision:
        assert isinstance(arguments, dict)
        kept.append(arguments)
        arguments["path"] = "other"
        arguments["many"].append("other")
        return ask("Delete a?")

    async def main() -> None:
        given: Json = {"path": "a", "many": ["a"]}
        ran: list[object] = []

        async def act(arguments: Mapping[str, object], context: Context) -> str:
            ran.append(arguments)
            return "done"

        server = Server(authorizer=authorizer)
        server.registry.register(tool("act", act))
        client = Client(server, era=era, capabilities=FORMS)
        await client.greet()
        if era is HANDSHAKE:
            call = client.start("act", given)
            await settled()
            kept[0]["path"] = "later"
            await client.handle({"jsonrpc": "2.0", "id": client.prompt()["id"], "result": YES})
            await call
        else:
            params: Json = {"name": "act", "arguments": given}
            asked = await client.ask("tools/call", params)
            state = at(asked, "result", "requestState")
            await client.ask(
                "tools/call",
                {**params, "requestState": state, "inputResponses": {"approve": YES}},
            )
        assert ran == [given]

    run_virtual(main)


def test_a_call_that_timed_out_does_not_run_when_its_authorizer_ignores_that() -> None:
    """ours: an async authorizer may swallow its cancellation; the answer was given already."""

    async def authorizer(
        name: str, arguments: Mapping[str, object], context: AuthorizationContext
    ) -> Decision:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(10)
        return allow()

    async def main() -> None:
        act = Counted()
        server = Server(authorizer=authorizer, limits=Limits(callback_timeout=1.0))
        server.registry.register(tool("act", act))
        client = Client(server)
        assert failed(await client.call("act")) == '{"error":"callback_timeout"}'
        await settled()
        assert act.runs == 0
        assert server.stats()["in_flight"] == 0

    run_virtual(main)
