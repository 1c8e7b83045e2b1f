"""What a running callback is given: who calls, and ways to say something to them meanwhile.

Safe to use from the callback's thread: what must happen on the loop is sent there. Nothing in it
was asserted by the client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Final, Literal

from raxol_mcp.core.calls import CallState
from raxol_mcp.errors import Busy, Denied, LocalProtocolError, RemoteProtocolError, TimedOut
from raxol_mcp.wire.jsonrpc import Failure, JSONObject, encode_result
from raxol_mcp.wire.meta import LOG_LEVELS

if TYPE_CHECKING:
    from raxol_mcp.core.calls import Call
    from raxol_mcp.core.effects import Effect
    from raxol_mcp.server.rounds import Elicit, ElicitUrl, ListRoots, Sample
    from raxol_mcp.server.runtime import ServerRuntime

__all__ = ["Context", "ElicitResult", "call_of"]

MAX_RETRY: Final = 900.0  # ours, in seconds: well within the life of an idle session
MAX_OPEN_QUESTIONS: Final = 16  # ours, as for one InputRequired: a tool may ask from many tasks
LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


class ElicitResult:
    """What the human answered: `action` "accept", "decline" or "cancel", and the form's content."""

    __slots__ = ("action", "content")

    def __init__(self, action: str, content: JSONObject | None) -> None:
        self.action = action
        self.content = content

    @property
    def accepted(self) -> bool:
        """Whether the form was sent."""
        return self.action == "accept"

    def __repr__(self) -> str:
        return f"ElicitResult({self.action!r})"


class Context:
    """The call a callback runs for. Take it by annotating a parameter with `Context`."""

    __slots__ = ("_asked", "_call", "_open", "_runtime", "lifespan")

    def __init__(self, call: Call, runtime: ServerRuntime, lifespan: object = None) -> None:
        self._call = call
        self._runtime = runtime
        self._asked = 0
        self._open = 0
        self.lifespan = lifespan
        """What the server's `lifespan` yielded."""

    def __repr__(self) -> str:
        return f"<Context of {self._call!r}>"

    # -- who calls ----------------------------------------------------------------------------

    @property
    def connection(self) -> Hashable:
        """The id of the connection the call came on."""
        return self._call.peer.connection

    @property
    def transport(self) -> str:
        """The transport of that connection, as declared when it was opened."""
        return self._call.facts.transport

    @property
    def principal(self) -> str | None:
        """Who the transport authenticated; None without authentication."""
        return self._call.facts.principal

    @property
    def request_id(self) -> int | str:
        """The id of the request."""
        return self._call.id

    @property
    def cancelled(self) -> bool:
        """Whether nobody wants the result any more: a long loop in a thread should look at it."""
        return self._call.state is CallState.CLOSED

    # -- rounds -------------------------------------------------------------------------------

    @property
    def round(self) -> int:
        """How often this callback has returned `InputRequired` for this call."""
        return self._call.round

    @property
    def answers(self) -> Mapping[str, object]:
        """The answers to the requests of the last `InputRequired`, by key; empty before one."""
        return self._call.answers or {}

    @property
    def state(self) -> str | None:
        """The `state` of the last `InputRequired`, unchanged; None before one."""
        return self._call.round_state

    def supports(self, request: Elicit | ElicitUrl | Sample | ListRoots) -> bool:
        """Whether this call's client declared what `request` needs: ask for nothing else."""
        return not request.question("").needs & ~self._call.era.may_ask(self._call)

    # -- saying something ---------------------------------------------------------------------

    def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell the client how far the work is, if it asked for that. Must increase.

        MCP basic/utilities/progress. Never blocks; dropped when the client does not keep up.
        Raises TypeError for what is neither a number nor text, and `UnencodableResult` (a
        ValueError) for numbers that are not finite and for text that JSON cannot carry.
        """
        _check_number("progress", progress)
        if total is not None:
            _check_number("total", total)
        _check_text("message", message)
        call, runtime = self._call, self._runtime
        encode_result((progress, total, message), max_bytes=runtime.core.limits.max_result_bytes)
        if call.progress_token is None:
            return
        runtime.on_loop(
            lambda: runtime.core.progressed(call, progress, total, message, runtime.now())
        )

    def log(self, level: LogLevel, data: object, *, logger: str | None = None) -> None:
        """Send a log message to this call's client, if it wants that level.

        `data` is any JSON value. Raises ValueError for an unknown level, `UnencodableResult` (a
        ValueError) for what JSON cannot carry, and TypeError for a logger that is no text.
        MCP server/utilities/logging: no secrets, please.
        """
        if level not in LOG_LEVELS:
            raise ValueError(f"level must be one of {', '.join(LOG_LEVELS)}, not {level!r}")
        _check_text("logger", logger)
        severity = LOG_LEVELS.index(level)
        call, runtime = self._call, self._runtime
        wanted = call.era.log_severity(call)
        if wanted is None or severity < wanted:
            return
        max_bytes = runtime.core.limits.max_result_bytes
        encode_result(logger, max_bytes=max_bytes)
        raw = encode_result(data, max_bytes=max_bytes)
        runtime.on_loop(lambda: runtime.core.logged(call, severity, logger, raw, runtime.now()))

    def debug(self, data: object) -> None:
        """Log at level debug."""
        self.log("debug", data)

    def info(self, data: object) -> None:
        """Log at level info."""
        self.log("info", data)

    def warning(self, data: object) -> None:
        """Log at level warning."""
        self.log("warning", data)

    def error(self, data: object) -> None:
        """Log at level error."""
        self.log("error", data)

    def release_stream(self, retry: float = 1.0) -> None:
        """Let the client go; it comes back for the rest after `retry` seconds (2025-11-25, HTTP).

        For work that takes long: nothing is lost meanwhile, within a bound. Where the client
        cannot come back (other revisions, other transports) nothing happens.
        MCP 2025-11-25 basic/transports §Sending Messages to the Server. Raises ValueError.
        """
        if not 0 <= retry <= MAX_RETRY:
            raise ValueError(f"retry must be from 0 to {MAX_RETRY:.0f} seconds, got: {retry!r}")
        call, runtime = self._call, self._runtime

        def release() -> list[Effect]:
            runtime.release(call, retry)
            return []

        runtime.on_loop(release)

    # -- asking in the middle of the work (handshake era) -------------------------------------

    async def elicit(self, message: str, requested_schema: JSONObject) -> ElicitResult:
        """Put a form to the human behind the client and wait for it (handshake era only).

        `requested_schema` is a flat object of primitives. The call keeps its slot and its
        timeout runs. Raises `TimedOut` when nobody answers within the elicitation timeout,
        `Denied` when the client cannot be asked, `RemoteProtocolError` when it answers with an
        error, `Busy` when 16 questions of this call are open. The content is checked against the
        schema before it is returned.

        In the stateless era (2026-07-28) a server cannot ask in the middle of a request: this
        raises LocalProtocolError. `Ask` parameters and `InputRequired` work in both eras.
        """
        from raxol_mcp.schemas.json_schema import compile_schema
        from raxol_mcp.server.rounds import Elicit

        validator = compile_schema(requested_schema)
        answer = await self._ask(Elicit(message, requested_schema))
        action = answer.get("action")
        if action == "accept":
            content = answer.get("content")
            problem = validator.problems(content)
            if problem is not None or not isinstance(content, dict):
                raise Denied(f"the answer does not fit the form: {problem or 'no content'}")
            return ElicitResult("accept", content)
        return ElicitResult("cancel" if action == "cancel" else "decline", None)

    async def sample(self, params: JSONObject) -> JSONObject:
        """Let the client's model complete `params` (`sampling/createMessage`; handshake era only).

        Returns the `CreateMessageResult` object. Raises like `elicit`.
        """
        from raxol_mcp.server.rounds import Sample

        return await self._ask(Sample(params))

    async def roots(self) -> list[JSONObject]:
        """Ask the client for its roots (handshake era only): `[{"uri", "name"?}]`.

        Raises like `elicit`.
        """
        from raxol_mcp.server.rounds import ListRoots

        answer = await self._ask(ListRoots())
        roots = answer.get("roots")
        if not isinstance(roots, list):
            return []
        return [root for root in roots if isinstance(root, dict)]

    async def _ask(self, request: Elicit | ListRoots | Sample) -> JSONObject:
        question = request.question("")
        call, runtime = self._call, self._runtime
        if not call.era.parks:
            raise LocalProtocolError(
                "in the stateless era nothing can be asked in the middle of a request: "
                "take an Ask parameter, or return InputRequired"
            )
        if asyncio.get_running_loop() is not runtime.loop:
            raise LocalProtocolError(
                f"{question.method} needs the server's event loop: make the tool an async def"
            )
        if question.needs & ~call.era.may_ask(call):
            raise Denied(f"the client did not declare what {question.method} needs")
        if self._open >= MAX_OPEN_QUESTIONS:
            raise Busy(f"at most {MAX_OPEN_QUESTIONS} questions of one call are open at once")
        # A question that cannot be sent would be waited for in vain.
        encode_result(question.params, max_bytes=runtime.core.limits.max_result_bytes)
        self._asked += 1
        key = str(self._asked)

        def put() -> list[Effect]:
            return runtime.core.asked(call, key, question, runtime.now())

        self._open += 1
        try:
            answer = await runtime.ask(call, key, put)
        finally:
            self._open -= 1
        if answer is None:
            raise TimedOut(f"nobody answered {question.method} in time")
        if isinstance(answer, Failure):
            raise RemoteProtocolError(answer.code, answer.message, answer.data)
        if not isinstance(answer.result, dict):
            raise RemoteProtocolError(0, f"the answer to {question.method} is not an object")
        return answer.result


def call_of(context: Context) -> Call:
    """Return the call behind a context: for parts of the server, not for callbacks."""
    return context._call


def _check_number(name: str, value: object) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, not {value!r}")


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str | None):
        raise TypeError(f"{name} must be text, not {value!r}")
