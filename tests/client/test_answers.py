"""What a server may ask of the user: declared, read strictly, answered exactly."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from raxol_mcp.client.answers import (
    USER_REJECTED,
    Accept,
    Cancel,
    Decline,
    Elicitation,
    ElicitRequest,
    Handlers,
    Reply,
    Root,
    Sampling,
    Unanswerable,
    WrongAnswer,
    is_web_address,
)
from raxol_mcp.client.sampling import SamplingRequest
from raxol_mcp.errors import INVALID_PARAMS, METHOD_NOT_FOUND, ConfigurationError, Denied

FORM: dict[str, object] = {
    "type": "object",
    "properties": {"v": {"type": "string"}, "n": {"type": "integer", "default": 3}},
    "required": ["v"],
}
ASKED: dict[str, object] = {"message": "Which?", "requestedSchema": FORM}
VISIT: dict[str, object] = {"mode": "url", "message": "Sign in", "url": "https://a.example/x"}
TURN: dict[str, object] = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "?"}}],
    "maxTokens": 5,
}


def replying(reply: object, seen: list[ElicitRequest] | None = None) -> Elicitation:
    """Return a handler that gives one reply and keeps the requests."""

    async def handler(request: ElicitRequest) -> Reply:
        if seen is not None:
            seen.append(request)
        return reply  # type: ignore[return-value]  # wrong ones are tested too

    return handler


def answer(handlers: Handlers, method: str, params: dict[str, object] | None) -> dict[str, object]:
    """Return the result of one request."""
    return asyncio.run(handlers.answer("srv", method, params))


def elicited(reply: object, params: dict[str, object]) -> dict[str, object]:
    """Return the result of one elicitation."""
    return answer(Handlers(elicitation=replying(reply)), "elicitation/create", params)


def refusal(handlers: Handlers, method: str, params: dict[str, object] | None) -> Unanswerable:
    """Return why a request is refused."""
    with pytest.raises(Unanswerable) as caught:
        answer(handlers, method, params)
    return caught.value


def test_only_what_has_a_handler_is_declared() -> None:
    """MCP client/elicitation, client/sampling, client/roots §Capabilities."""
    none = Handlers()
    assert (none.capabilities(), none.asked_methods) == ({}, frozenset())

    def turn(request: SamplingRequest) -> dict[str, object]:
        return {}

    every = Handlers(elicitation=replying(Decline()), sampling=turn, roots=[])
    assert every.capabilities() == {
        "elicitation": {"form": {}, "url": {}},
        "sampling": {},
        "roots": {},
    }
    assert every.asked_methods == {"elicitation/create", "sampling/createMessage", "roots/list"}
    assert Handlers(sampling=turn, sampling_tools=True).capabilities() == {
        "sampling": {"tools": {}}
    }
    forms = Handlers(elicitation=replying(Decline()), elicitation_modes=("form",))
    assert forms.capabilities() == {"elicitation": {"form": {}}}


@pytest.mark.parametrize(
    "make",
    [
        lambda: Handlers(elicitation="yes"),  # type: ignore[arg-type]  # that is what is tested
        lambda: Handlers(sampling={}),  # type: ignore[arg-type]  # that is what is tested
        lambda: Handlers(logging=7),  # type: ignore[arg-type]  # that is what is tested
        lambda: Handlers(elicitation_modes=()),
        lambda: Handlers(elicitation_modes=("voice",)),
        lambda: Handlers(roots="file:///x"),  # type: ignore[arg-type]  # that is what is tested
        lambda: Handlers(roots=["file:///x"]),  # type: ignore[list-item]  # that is what is tested
        lambda: Handlers(roots=[Root("https://a.example")]),
        lambda: Handlers(roots=[Root("file:///x")] * 1025),
    ],
)
def test_handlers_that_cannot_be_meant_are_refused(make: Callable[[], Handlers]) -> None:
    with pytest.raises(ConfigurationError):
        make()


@pytest.mark.parametrize(
    "method", ["elicitation/create", "sampling/createMessage", "roots/list", "ping", "x"]
)
def test_without_a_handler_there_is_no_such_method(method: str) -> None:
    assert refusal(Handlers(), method, {}).code == METHOD_NOT_FOUND


def test_a_form_is_answered_with_its_defaults_filled_in() -> None:
    """MCP 2025-11-25 client/elicitation, SEP-1034; a missing mode is form."""
    seen: list[ElicitRequest] = []
    handlers = Handlers(elicitation=replying(Accept({"v": "x"}), seen))
    for mode in ({}, {"mode": "form"}, {"mode": None}):
        assert answer(handlers, "elicitation/create", {**ASKED, **mode}) == {
            "action": "accept",
            "content": {"v": "x", "n": 3},
        }
    assert seen == [ElicitRequest("srv", "form", "Which?", FORM)] * 3


def test_a_no_and_an_absence_are_told_apart() -> None:
    assert elicited(Decline(), ASKED) == {"action": "decline"}
    assert elicited(Cancel(), ASKED) == {"action": "cancel"}
    assert elicited(Decline(), VISIT) == {"action": "decline"}


def test_an_empty_form_is_accepted_with_nothing() -> None:
    empty: dict[str, object] = {
        "message": "Go on?",
        "requestedSchema": {"type": "object", "properties": {}},
    }
    assert elicited(Accept(), empty) == {"action": "accept", "content": {}}


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (Accept(), "'v' is required"),
        (Accept({"v": 7}), "'v' must be a text"),
        (Accept({"v": "x", "w": 1}), "'w' is not in the form"),
        (Accept("x"), "must be a mapping"),  # type: ignore[arg-type]  # that is what is tested
        (True, "not bool"),
        (None, "not NoneType"),
        ({"action": "accept"}, "not dict"),
    ],
)
def test_what_a_handler_gets_wrong_is_not_sent(reply: object, why: str) -> None:
    """Silence is not consent, and neither is anything else that is not an Accept."""
    with pytest.raises(WrongAnswer) as caught:
        elicited(reply, ASKED)
    assert why in str(caught.value)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"requestedSchema": FORM},
        {"message": 7, "requestedSchema": FORM},
        {"message": "x" * 70_000, "requestedSchema": FORM},
        {"message": "?"},
        {"message": "?", "requestedSchema": {"type": "string"}},
        {**ASKED, "mode": "voice"},
        {**ASKED, "mode": 7},
        {"mode": "url", "message": "?"},
        {"mode": "url", "message": "?", "url": 7},
        {"mode": "url", "url": "https://a.example"},
        {**VISIT, "elicitationId": 7},
        {**VISIT, "elicitationId": "x" * 2000},
    ],
)
def test_what_is_asked_wrongly_never_reaches_the_handler(params: dict[str, object]) -> None:
    seen: list[ElicitRequest] = []
    handlers = Handlers(elicitation=replying(Decline(), seen))
    refused = refusal(handlers, "elicitation/create", params)
    assert refused.code == INVALID_PARAMS
    assert refused.message.startswith("Invalid params: ")
    assert seen == []


@pytest.mark.parametrize(("modes", "params"), [(("form",), VISIT), (("url",), ASKED)])
def test_a_mode_that_was_not_declared_is_refused(
    modes: tuple[str, ...], params: dict[str, object]
) -> None:
    """MCP 2025-11-25 client/elicitation §Error Handling."""
    handlers = Handlers(elicitation=replying(Decline()), elicitation_modes=modes)
    assert refusal(handlers, "elicitation/create", params).code == INVALID_PARAMS


def test_a_visit_is_agreed_to_without_content() -> None:
    seen: list[ElicitRequest] = []
    handlers = Handlers(elicitation=replying(Accept({"v": "x"}), seen))
    asked = {**VISIT, "elicitationId": "e1"}
    assert answer(handlers, "elicitation/create", asked) == {"action": "accept"}
    assert seen == [
        ElicitRequest("srv", "url", "Sign in", None, "https://a.example/x", "e1"),
    ]


HOSTILE = [
    *("http://a:$(touch pwn)/x", "http://a/`id`", 'http://a/";calc;"', "file:///etc/passwd"),
    *("javascript:alert(1)", "data:text/html,x", "vscode://x", "smb://h/s", "--help", ""),
    *("http://a/%0d%0aSet-Cookie:x", "http://a/ & calc", "https://a/" + "x" * 1_000_000),
    *("http://a.example/", "https://a.example/\n", "https://a.example/\u202e", "https://"),
    *("https://user@a.example/", "https://localhost@a.example/", "https://a.example\\@b/"),
    *("http://127.0.0.1.a.example/", "http://localhost.a.example/", "https://é.example/"),
    *("https://a.example/<x>", "https://a.example:99999999/", " https://a.example"),
]


@pytest.mark.parametrize("url", HOSTILE)
def test_what_is_no_web_address_is_declined_and_never_shown(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """BC-121; CVE-2025-6514: a URL of a server is text that it wrote."""
    seen: list[ElicitRequest] = []
    handlers = Handlers(elicitation=replying(Accept(), seen))
    with caplog.at_level(logging.WARNING, "raxol_mcp.client"):
        result = answer(handlers, "elicitation/create", {**VISIT, "url": url})
    assert (result, seen) == ({"action": "decline"}, [])
    assert len(caplog.messages) == 1
    assert caplog.messages[0].isprintable()
    assert len(caplog.messages[0]) < 400


@pytest.mark.parametrize(
    "url",
    [
        *("https://a.example", "https://a.example:8443/x/y;z?a=b&c=%20#f", "HTTPS://A.example/"),
        *(
            "http://localhost:8080/cb",
            "http://127.0.0.1/",
            "http://[::1]:1/",
            "https://[2001:db8::1]/",
        ),
        "https://xn--e1afmkfd.example/",
    ],
)
def test_a_web_address_is_https_or_leads_to_this_machine(url: str) -> None:
    assert is_web_address(url)


def sampling(result: object) -> Sampling:
    """Return a handler of sampling that gives one answer, or raises one exception."""

    async def handler(request: SamplingRequest) -> dict[str, object]:
        if isinstance(result, Exception):
            raise result
        return result  # type: ignore[return-value]  # wrong ones are tested too

    return handler


def test_a_turn_of_the_model_is_given_back() -> None:
    said: dict[str, object] = {
        "role": "assistant",
        "content": {"type": "text", "text": "!"},
        "model": "m",
    }
    handlers = Handlers(sampling=sampling(said))
    assert answer(handlers, "sampling/createMessage", TURN) == said


def test_a_turn_that_is_asked_for_wrongly_is_refused() -> None:
    handlers = Handlers(sampling=sampling({}))
    assert refusal(handlers, "sampling/createMessage", None).code == INVALID_PARAMS
    tools = {**TURN, "tools": [{"name": "t"}]}
    assert refusal(handlers, "sampling/createMessage", tools).code == INVALID_PARAMS


def test_a_user_may_reject_a_turn() -> None:
    """MCP 2025-11-25 client/sampling §Error Handling."""
    handlers = Handlers(sampling=sampling(Denied("no")))
    refused = refusal(handlers, "sampling/createMessage", TURN)
    assert (refused.code, refused.message) == (USER_REJECTED, "User rejected sampling request")


def test_a_turn_that_is_no_result_is_not_sent() -> None:
    with pytest.raises(WrongAnswer, match="must have a role"):
        answer(Handlers(sampling=sampling({})), "sampling/createMessage", TURN)


def test_what_a_handler_raises_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        answer(Handlers(sampling=sampling(ZeroDivisionError())), "sampling/createMessage", TURN)


def test_roots_are_a_list_or_made_when_asked_for() -> None:
    """MCP client/roots."""
    roots = [Root("file:///a", "A"), Root("file:///b")]
    expected = {"roots": [{"uri": "file:///a", "name": "A"}, {"uri": "file:///b"}]}

    async def later() -> list[Root]:
        return roots

    for given in (roots, lambda: roots, later):
        assert answer(Handlers(roots=given), "roots/list", None) == expected
    assert answer(Handlers(roots=[]), "roots/list", {}) == {"roots": []}


def test_roots_that_are_none_are_not_sent() -> None:
    with pytest.raises(WrongAnswer, match="must begin with file://"):
        answer(Handlers(roots=lambda: [Root("https://a.example")]), "roots/list", None)


def test_a_root_is_made_of_a_folder(tmp_path: Path) -> None:
    assert Root.at(tmp_path, "T") == Root(tmp_path.as_uri(), "T")
    assert Root.at("x y").uri == (Path.cwd() / "x y").as_uri()
