"""client/user.py: what a user's code answers and is told, whatever it does itself."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from raxol_mcp.client.answers import Accept, ElicitRequest, Handlers
from raxol_mcp.client.results import LogMessage, Progress
from raxol_mcp.client.user import MAX_TASKS, ClientUser
from raxol_mcp.core.client_effects import Acknowledged, Begin, Deliver, Progressed
from raxol_mcp.core.tickets import ServerQuestion, Ticket
from raxol_mcp.errors import Reason
from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.wire.jsonrpc import Failure, JSONObject, Response
from raxol_mcp.wire.meta import EraName

FORM: JSONObject = {
    "message": "?",
    "requestedSchema": {"type": "object", "properties": {"n": {"type": "integer"}}},
}


class Heard:
    """Whoever is told what concerns the client itself."""

    def __init__(self) -> None:
        self.log: list[object] = []

    def begun(self) -> None:
        self.log.append("begun")

    def notified(self, method: str, params: JSONObject) -> None:
        self.log.append((method, params))

    def acknowledged(self) -> None:
        self.log.append("acknowledged")

    def missed(self) -> None:
        self.log.append("missed")


class Rig:
    """A user, whoever is told beside him, and the tasks of his callbacks."""

    def __init__(self, **handlers: Any) -> None:
        self.heard = Heard()
        self.tasks: set[asyncio.Task[None]] = set()
        self.user = ClientUser("peer", Handlers(**handlers))
        self.user.attach(self.heard, self._spawn)

    def _spawn(self, work: Coroutine[object, object, None], what: str) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name=what)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task


def asked(method: str = "elicitation/create", params: JSONObject | None = None) -> ServerQuestion:
    return ServerQuestion(7, method, FORM if params is None else params, about=None, latest=0)


def handled(question: ServerQuestion, **handlers: Any) -> Response | Failure:
    """Give what a user with `handlers` answers."""
    return run_virtual(lambda: Rig(**handlers).user.handle(question))


def round_of(requests: JSONObject, **handlers: Any) -> JSONObject | Reason:
    """Give what a user with `handlers` answers to a round."""
    return run_virtual(lambda: Rig(**handlers).user.ask(requests))


def raising(error: BaseException) -> Callable[[ElicitRequest], Awaitable[Accept]]:
    """Make a handler that raises."""

    async def handler(_: ElicitRequest) -> Accept:
        raise error

    return handler


def saying(reply: object) -> Callable[[ElicitRequest], Awaitable[Any]]:
    """Make a handler that answers so; on the loop, for a thread has no virtual time."""

    async def handler(_: ElicitRequest) -> object:
        return reply

    return handler


# -- what is answered -----------------------------------------------------------------------------


def test_an_answer_of_a_handler_is_the_result() -> None:
    """MCP client/elicitation"""
    found = handled(asked(), elicitation=saying(Accept({"n": 1})))
    assert found == Response(7, {"action": "accept", "content": {"n": 1}})


def test_what_cannot_be_answered_is_refused_with_its_code() -> None:
    assert handled(asked()) == Failure(7, -32601, "Method not found")
    found = handled(asked(params={"message": 1}), elicitation=saying(Accept()))
    assert isinstance(found, Failure)
    assert found.code == -32602


def test_a_wrong_answer_is_the_mistake_of_this_side(caplog: pytest.LogCaptureFixture) -> None:
    """ours: the log says what was wrong, the server is told that something was"""
    found = handled(asked(), elicitation=saying("yes"))
    assert found == Failure(7, -32603, "the handler failed")
    assert "peer: the handler of elicitation/create: an elicitation handler answers" in caplog.text


def test_a_handler_that_is_cancelled_from_within_has_failed() -> None:
    """ours: a question would otherwise wait for its whole time"""
    with pytest.raises(RuntimeError, match="cancelled from within"):
        handled(asked(), elicitation=raising(asyncio.CancelledError()))


def test_a_handler_that_is_cancelled_from_without_is() -> None:
    async def forever(_: ElicitRequest) -> Accept:
        await asyncio.Event().wait()
        return Accept()

    async def main() -> None:
        task = asyncio.create_task(Rig(elicitation=forever).user.handle(asked()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run_virtual(main)


def test_the_requests_of_a_round_are_answered_one_by_one() -> None:
    """ours: a person is asked; MCP 2026-07-28 basic/patterns/mrtr"""
    log: list[str] = []

    async def handler(request: ElicitRequest) -> Accept:
        log.append(f"asked {request.message}")
        await asyncio.sleep(1.0)
        log.append(f"answered {request.message}")
        return Accept({"n": len(log)})

    requests: JSONObject = {
        key: {"method": "elicitation/create", "params": {**FORM, "message": key}} for key in "ab"
    }
    found = round_of({**requests, "c": {"method": "roots/list"}}, elicitation=handler, roots=[])
    assert log == ["asked a", "answered a", "asked b", "answered b"]
    assert found == {
        "a": {"action": "accept", "content": {"n": 2}},
        "b": {"action": "accept", "content": {"n": 4}},
        "c": {"roots": []},
    }


def test_a_round_is_answered_as_a_whole_or_not_at_all(caplog: pytest.LogCaptureFixture) -> None:
    """MCP 2026-07-28 basic/patterns/mrtr"""
    later: list[str] = []

    def after(what: object) -> JSONObject:
        return {"a": what, "b": {"method": "roots/list"}}

    async def roots() -> list[object]:
        later.append("asked")
        return []

    form: JSONObject = {"method": "elicitation/create", "params": FORM}
    cases: list[tuple[JSONObject, Any, tuple[str, str], str]] = [
        ({"method": "nope"}, None, ("not_answered", "nope"), "Method not found"),
        ({"method": "nope", "params": 1}, None, ("not_answered", "nope"), "Method not found"),
        (form, saying(1), ("handler_failed", "elicitation/create"), "an elicitation handler"),
        (form, raising(ValueError("SECRET")), ("handler_failed", "elicitation/create"), "Value"),
        (form, raising(SystemExit(1)), ("handler_failed", "elicitation/create"), "SystemExit"),
        (
            form,
            raising(asyncio.CancelledError()),
            ("handler_failed", "elicitation/create"),
            "RuntimeError",
        ),
    ]
    for request, handler, path, text in cases:
        found = round_of(after(request), elicitation=handler, roots=roots)
        assert isinstance(found, Reason)
        assert found.path == path
        assert found.text.startswith(text)
        assert "SECRET" not in found.text
    assert later == [], "nobody is asked for an answer that is not sent"
    assert "SECRET" in caplog.text


# -- what is told ---------------------------------------------------------------------------------


def test_what_concerns_the_client_itself_is_passed_on() -> None:
    rig = Rig()
    ticket = Ticket("subscriptions/listen", timeout=1.0)
    rig.user.begun(Begin(EraName.STATELESS, "2026-07-28"))
    rig.user.acknowledged(Acknowledged(ticket, {}))
    rig.user.missed()
    rig.user.deliver(Deliver("notifications/tools/list_changed", {}, None))
    heard: list[object] = ["begun", "acknowledged", "missed"]
    heard.append(("notifications/tools/list_changed", {}))
    assert rig.heard.log == heard


def test_logs_of_the_server_go_to_their_handler() -> None:
    """MCP server/utilities/logging; what is no log message is ignored"""
    told: list[LogMessage] = []
    rig = Rig(logging=told.append)
    rig.user.deliver(Deliver("notifications/message", {"level": "info", "data": 1}, None))
    rig.user.deliver(Deliver("notifications/message", {"level": "loud", "data": 1}, None))
    assert told == [LogMessage("info", None, 1)]
    Rig().user.deliver(Deliver("notifications/message", {"level": "info", "data": 1}, None))
    assert rig.heard.log == []


def test_progress_goes_to_whoever_follows_the_call() -> None:
    told: list[Progress] = []
    user = Rig().user
    ticket, other = Ticket("tools/call", timeout=1.0), Ticket("tools/call", timeout=1.0)
    with user.following(ticket, told.append):
        user.progressed(Progressed(ticket, 1.0, 2.0, "half"))
        user.progressed(Progressed(other, 2.0, None, None))
    user.progressed(Progressed(ticket, 2.0, 2.0, None))
    assert told == [Progress(1.0, 2.0, "half")]


def test_whoever_follows_is_forgotten_whatever_happens() -> None:
    user = Rig().user
    with (
        pytest.raises(KeyError),
        user.following(Ticket("tools/call", timeout=1.0), lambda _: None),
    ):
        raise KeyError
    assert user._told == {}


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(1), asyncio.CancelledError()])
def test_a_callback_that_fails_is_a_line_in_the_log_once_in_a_row(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    """ours: a server may send ten thousand messages"""
    fails = [True]

    def callback(_: object) -> None:
        if fails[0]:
            raise error

    def other(_: object) -> None:
        raise KeyError

    user = Rig().user
    for _ in range(3):
        user.tell(callback, 1)
    assert caplog.text.count("peer: a callback failed") == 1
    fails[0] = False
    user.tell(callback, 1)
    fails[0] = True
    user.tell(callback, 1)
    assert caplog.text.count("peer: a callback failed") == 2, "it had worked meanwhile"
    user.tell(other, 1)
    user.tell(lambda _: None, 1)
    user.tell(other, 1)
    assert caplog.text.count("peer: a callback failed") == 3


def test_a_flood_costs_a_bounded_number_of_tasks() -> None:
    """ours: what comes while those before are not done is dropped, and nobody complains"""

    async def main() -> None:
        rig = Rig()
        begun: list[int] = []
        released = asyncio.Event()

        async def slow(value: int) -> None:
            begun.append(value)
            await released.wait()

        for value in range(MAX_TASKS + 100):
            rig.user.tell(slow, value)
        assert len(rig.tasks) == MAX_TASKS
        rig.user.tell(lambda _: asyncio.get_running_loop().create_future(), 1)
        assert len(rig.tasks) == MAX_TASKS
        released.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert begun == list(range(MAX_TASKS))
        rig.user.tell(slow, -1)
        await asyncio.gather(*rig.tasks)
        assert begun[-1] == -1

    run_virtual(main)
    gc.collect()


def test_a_callback_that_fails_or_is_cancelled_makes_room_again() -> None:
    """ours: also one that is cancelled before it began, of which Python would complain"""

    async def main() -> None:
        rig = Rig()
        ends: list[str] = []

        async def fails(_: object) -> None:
            raise ValueError

        async def works(value: str) -> None:
            ends.append(value)

        for _ in range(3):
            for _ in range(MAX_TASKS):
                rig.user.tell(fails, 1)
            await asyncio.gather(*rig.tasks, return_exceptions=True)
        for _ in range(3):
            for _ in range(MAX_TASKS):
                rig.user.tell(works, "early")
            for task in rig.tasks:
                task.cancel()
            await asyncio.gather(*rig.tasks, return_exceptions=True)
        await asyncio.sleep(0)
        assert ends == []
        rig.user.tell(works, "now")
        await asyncio.gather(*rig.tasks)
        assert ends == ["now"]

    run_virtual(main)
    gc.collect()
