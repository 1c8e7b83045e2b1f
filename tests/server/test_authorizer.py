"""Asking an authorizer: what it may answer, and what becomes of everything else."""

from __future__ import annotations

import asyncio
import copy
import functools
import logging
import pickle
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, get_type_hints

import pytest

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.authorizer import (
    ALLOW,
    Allow,
    AskHuman,
    AuthorizationContext,
    Authorizer,
    Decision,
    Deny,
    RequireScopes,
    allow,
    allow_all,
    allowlist,
    ask,
    decide,
    decide_now,
    deny,
    deny_all,
    nonblocking,
    require_scopes,
)

CONTEXT: AuthorizationContext = {"connection": 1, "transport": "stdio", "principal": None}
FAILED = Deny("authorizer_failed")
VIOLATION = Deny("authorizer_contract_violation")


class Threads:
    """Runs at once and counts, in place of a thread."""

    def __init__(self) -> None:
        self.runs = 0

    async def __call__(self, fn: Callable[[], object]) -> object:
        self.runs += 1
        return fn()


def decided(authorizer: Any, name: str = "t", threads: Threads | None = None) -> Decision:
    return asyncio.run(decide(authorizer, name, {}, CONTEXT, threads or Threads()))


def errors(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name == "raxol_mcp.authorizer"]


# -- decisions


def test_there_is_one_allow() -> None:
    assert Allow() is ALLOW
    assert allow() is ALLOW
    assert copy.deepcopy(ALLOW) is ALLOW
    assert pickle.loads(pickle.dumps(ALLOW)) is ALLOW
    assert repr(ALLOW) == "Allow()"


def test_deny_and_ask_carry_their_text() -> None:
    assert deny() == Deny("denied")
    assert deny("blocked").reason == "blocked"
    assert ask("Delete /x?") == AskHuman("Delete /x?")


def test_scopes_are_named_and_are_scopes() -> None:
    """RFC 6749 §3.3"""
    assert require_scopes("files:read", "files:write").scopes == ("files:read", "files:write")
    assert decided(lambda *_: require_scopes("a")) == RequireScopes(("a",))
    for scopes in ((), ("",), ("a b",), ('a"',)):
        with pytest.raises(ConfigurationError):
            require_scopes(*scopes)


def test_a_decision_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Deny("a").reason = "b"  # type: ignore[misc]  # what must not work


def test_the_context_has_exactly_the_keys_the_server_knows_itself() -> None:
    """Nothing that a client asserts (its name, its headers) may be added here."""
    assert set(get_type_hints(AuthorizationContext)) == {"connection", "transport", "principal"}


# -- builders


@pytest.mark.parametrize(
    ("authorizer", "name", "expected"),
    [
        (None, "t", ALLOW),
        (allow_all(), "t", ALLOW),
        (deny_all(), "t", Deny("denied")),
        (deny_all("blocked"), "t", Deny("blocked")),
        (allowlist(["a", "b"]), "b", ALLOW),
        (allowlist(["a", "b"]), "B", Deny("not_allowlisted")),
        (allowlist(["a", "b"]), "", Deny("not_allowlisted")),
        (allowlist([]), "t", Deny("not_allowlisted")),
        (allowlist(iter(["t"])), "t", ALLOW),
    ],
)
def test_the_builders_decide_at_once(
    authorizer: Authorizer | None, name: str, expected: Decision
) -> None:
    threads = Threads()
    assert decide_now(authorizer, name, {}, CONTEXT) == expected
    assert decided(authorizer, name, threads) == expected
    assert threads.runs == 0


def test_an_allowlist_copies_its_names() -> None:
    names = ["a"]
    authorizer = allowlist(names)
    names.append("b")
    assert decide_now(authorizer, "b", {}, CONTEXT) == Deny("not_allowlisted")


@pytest.mark.parametrize("names", ["abc", [1], ["a", None]])
def test_an_allowlist_of_something_else_refuses_to_start(names: Any) -> None:
    with pytest.raises(ConfigurationError, match="allowlist needs"):
        allowlist(names)


@pytest.mark.parametrize("reason", [None, 5, "\ud800"])
def test_deny_all_refuses_a_reason_that_cannot_be_sent(reason: Any) -> None:
    with pytest.raises(ConfigurationError, match="reason in words"):
        deny_all(reason)


# -- who is called where


def test_an_authorizer_gets_name_arguments_and_context() -> None:
    seen: list[object] = []

    def authorizer(name: str, arguments: Mapping[str, object], context: object) -> Decision:
        seen.append((name, arguments, context))
        return ALLOW

    async def main() -> Decision:
        return await decide(authorizer, "rm", {"path": ""}, CONTEXT, Threads())

    assert asyncio.run(main()) is ALLOW
    assert seen == [("rm", {"path": ""}, CONTEXT)]


def test_a_plain_sync_authorizer_runs_in_a_thread() -> None:
    threads = Threads()

    def authorizer(*_: object) -> Decision:
        return deny("later")

    assert decide_now(authorizer, "t", {}, CONTEXT) is None
    assert decided(authorizer, threads=threads) == Deny("later")
    assert threads.runs == 1


def test_decide_now_has_not_called_what_must_be_awaited() -> None:
    calls: list[str] = []

    def authorizer(*_: object) -> Decision:
        calls.append("called")
        return ALLOW

    assert decide_now(authorizer, "t", {}, CONTEXT) is None
    assert calls == []


def test_a_nonblocking_authorizer_decides_at_once() -> None:
    @nonblocking
    def authorizer(name: str, *_: object) -> Decision:
        return ALLOW if name == "t" else ask("really?")

    assert decide_now(authorizer, "t", {}, CONTEXT) is ALLOW
    assert decide_now(authorizer, "u", {}, CONTEXT) == AskHuman("really?")


async def _async_authorizer(*_: object) -> Decision:
    await asyncio.sleep(0)
    return deny("async")


class _AsyncObject:
    async def __call__(self, *_: object) -> Decision:
        return deny("async")


class _Policy:
    async def decide(self, *_: object) -> Decision:
        return deny("async")


@pytest.mark.parametrize(
    "authorizer",
    [_async_authorizer, _AsyncObject(), _Policy().decide, functools.partial(_async_authorizer)],
)
def test_an_async_authorizer_is_awaited_on_the_loop(authorizer: object) -> None:
    threads = Threads()
    assert decided(authorizer, threads=threads) == Deny("async")
    assert threads.runs == 0


def test_a_sync_authorizer_may_return_an_awaitable() -> None:
    threads = Threads()

    def authorizer(*_: object) -> Awaitable[Decision]:
        return _async_authorizer()

    assert decided(authorizer, threads=threads) == Deny("async")
    assert threads.runs == 1


def test_an_async_authorizer_cannot_be_marked_nonblocking() -> None:
    with pytest.raises(ConfigurationError, match="async"):
        nonblocking(_async_authorizer)


def test_what_takes_no_mark_says_how_to_mark_it() -> None:
    class Policy:
        def decide(self, *_: object) -> Decision:
            return ALLOW

    with pytest.raises(ConfigurationError, match="decorate the function itself"):
        nonblocking(Policy().decide)


def test_a_mark_that_is_merely_truthy_is_none() -> None:
    class Everything:
        def __getattr__(self, name: str) -> object:
            return self

        def __call__(self, *_: object) -> Decision:
            return ALLOW

    assert decide_now(Everything(), "t", {}, CONTEXT) is None
    assert decided(Everything()) is ALLOW


# -- failures


def _raising(error: BaseException) -> Authorizer:
    def authorizer(*_: object) -> Decision:
        raise error

    return authorizer


FAILURES = [
    ValueError("secret"),
    SystemExit(3),
    StopIteration(),
    asyncio.CancelledError(),
    RecursionError(),
]


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
def test_an_authorizer_that_raises_denies(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    assert decide_now(nonblocking(_raising(error)), "t", {}, CONTEXT) == FAILED
    assert decided(_raising(error)) == FAILED
    records = errors(caplog)
    assert [record.levelname for record in records] == ["ERROR", "ERROR"]
    assert all(record.exc_info is not None for record in records)


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
def test_an_async_authorizer_that_raises_denies(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    async def authorizer(*_: object) -> Decision:
        await asyncio.sleep(0)
        raise error

    assert decided(authorizer) == FAILED
    assert len(errors(caplog)) == 1


def test_a_thread_that_cannot_be_had_denies(caplog: pytest.LogCaptureFixture) -> None:
    async def no_thread(fn: Callable[[], object]) -> object:
        raise RuntimeError("can't start new thread")

    async def main() -> Decision:
        return await decide(_raising(ValueError()), "t", {}, CONTEXT, no_thread)

    assert asyncio.run(main()) == FAILED
    assert len(errors(caplog)) == 1


def test_what_is_no_function_denies(caplog: pytest.LogCaptureFixture) -> None:
    assert decided("allow") == FAILED
    assert len(errors(caplog)) == 1


def test_keyboard_interrupt_is_not_an_answer() -> None:
    with pytest.raises(KeyboardInterrupt):
        decide_now(nonblocking(_raising(KeyboardInterrupt())), "t", {}, CONTEXT)


def test_cancelling_the_task_passes_through() -> None:
    async def forever(*_: object) -> Decision:
        await asyncio.get_running_loop().create_future()
        return ALLOW

    async def main() -> bool:
        task = asyncio.ensure_future(decide(forever, "t", {}, CONTEXT, Threads()))
        await asyncio.sleep(0)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return True
        return False

    assert asyncio.run(main())


def test_a_cancelled_error_outside_a_task_passes_through() -> None:
    """Without a task nobody can say who was cancelled, so the cautious reading holds."""

    async def cancelled(*_: object) -> Decision:
        raise asyncio.CancelledError

    async def main() -> None:
        coroutine = decide(cancelled, "t", {}, CONTEXT, Threads())
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def step() -> None:
            with pytest.raises(asyncio.CancelledError):
                coroutine.send(None)
            done.set_result(None)

        asyncio.get_running_loop().call_soon(step)
        await done

    asyncio.run(main())


# -- answers off contract


class _Lookalike:
    reason = "fine"
    prompt = "fine"

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash(ALLOW)


# What a caller without a type checker may pass.
NONE: Any = None
FIVE: Any = 5
BYTES: Any = b"really?"

OFF_CONTRACT = [
    True,
    None,
    False,
    0,
    1,
    "allow",
    "",
    {"decision": "allow"},
    Allow,
    Deny,
    _Lookalike(),
    Deny(NONE),
    Deny(FIVE),
    Deny("\ud800"),
    AskHuman(NONE),
    RequireScopes(()),
    RequireScopes(NONE),
    RequireScopes(("a", NONE)),
    AskHuman(BYTES),
    AskHuman("\udfff?"),
]


@pytest.mark.parametrize("answer", OFF_CONTRACT, ids=repr)
def test_an_answer_off_contract_denies(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    def authorizer(*_: object) -> Any:
        return answer

    async def late(*_: object) -> Any:
        return answer

    assert decided(authorizer) == VIOLATION
    assert decided(late) == VIOLATION
    assert decide_now(nonblocking(authorizer), "t", {}, CONTEXT) == VIOLATION
    records = errors(caplog)
    assert [record.levelname for record in records] == ["ERROR"] * 3
    assert all(record.stack_info for record in records)


@pytest.mark.parametrize("answer", [Deny(""), AskHuman(""), Deny("日本"), AskHuman("🙂?")])
def test_any_text_that_json_can_carry_is_on_contract(answer: Decision) -> None:
    assert decided(lambda *_: answer) == answer


def test_a_nonblocking_authorizer_that_is_async_after_all_denies_and_is_not_left_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A coroutine that is dropped unawaited would warn, and warnings are errors here."""

    def authorizer(*_: object) -> Awaitable[Decision]:
        return _async_authorizer()

    assert decide_now(nonblocking(authorizer), "t", {}, CONTEXT) == VIOLATION
    assert len(errors(caplog)) == 1


def test_the_log_has_neither_the_arguments_nor_a_raw_name(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A name comes from the client: a line break in it must not forge a line of the log."""

    def authorizer(*_: object) -> Any:
        return "token-123"

    asyncio.run(decide(authorizer, "a\nERROR b", {"key": "token-123"}, CONTEXT, Threads()))
    (record,) = errors(caplog)
    assert "\n" not in record.getMessage()
    assert "token-123" not in record.getMessage()


def test_a_call_after_a_failure_is_decided_as_ever() -> None:
    answers = iter([ValueError("down"), None])

    def authorizer(*_: object) -> Decision:
        answer = next(answers)
        if answer is not None:
            raise answer
        return ALLOW

    assert decided(authorizer) == FAILED
    assert decided(authorizer) is ALLOW
