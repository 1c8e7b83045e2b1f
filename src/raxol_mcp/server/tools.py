"""One `tools/call`, from the authorizer to the result. Runs inside the call's worker.

The order is the contract: sensitive without an authorizer, authorizer, does it exist, do headers
that repeat arguments repeat them truly, do the arguments fit, is the human asked, run. A human is
never asked about a call that cannot run, and a hidden tool answers exactly like one that does not
exist.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from raxol_mcp.core.effects import RUN, Job
from raxol_mcp.core.outcomes import (
    Asked,
    Denied,
    Failed,
    Outcome,
    Refused,
    Returned,
    Unacceptable,
)
from raxol_mcp.core.payloads import tool_error
from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.adapt import completed
from raxol_mcp.server.arguments import ArgumentsInvalid, copied
from raxol_mcp.server.authorizer import (
    ALLOW,
    INSUFFICIENT_SCOPE,
    AskHuman,
    AuthorizationContext,
    Decision,
    Deny,
    RequireScopes,
    decide,
    decide_now,
)
from raxol_mcp.server.callbacks import CallbackFailed, CircuitOpen
from raxol_mcp.server.context import Context
from raxol_mcp.server.prepared import PreparedTool
from raxol_mcp.server.rounds import InputRequired
from raxol_mcp.wire.jsonrpc import JSONObject, UnencodableResult, encode_result

if TYPE_CHECKING:
    from raxol_mcp.core.calls import Call
    from raxol_mcp.server.authorizer import Authorizer
    from raxol_mcp.server.callbacks import Callbacks
    from raxol_mcp.server.definitions import Resource, Tool
    from raxol_mcp.server.registry import Registry
    from raxol_mcp.server.runtime import ServerRuntime

__all__ = ["Tools", "UnknownToolReply", "context_of", "exists_for"]

_logger = logging.getLogger("raxol_mcp.tools")
CIRCUIT_OPEN = "Tool temporarily unavailable (circuit open after repeated failures)"

UnknownToolReply = Callable[[str], "str | Awaitable[str | None] | None"]


def context_of(call: Call) -> AuthorizationContext:
    """Write what an authorizer may know of a caller: facts of the server's own, nothing else."""
    facts = call.facts
    return {
        "connection": call.peer.connection,
        "transport": facts.transport,
        "principal": facts.principal,
    }


def exists_for(definition: Tool | Resource, call: Call) -> bool:
    """Say whether a definition exists for who makes `call`; see `Tool.audience`."""
    audience = definition.audience
    if audience is None:
        return True
    try:
        return audience(context_of(call)) is True
    except (Exception, SystemExit):
        _logger.exception("the audience of %r failed: it is hidden", definition)
        return False


class Tools:
    """Carries tool calls out."""

    def __init__(
        self,
        registry: Registry,
        runtime: ServerRuntime,
        callbacks: Callbacks,
        *,
        authorizer: Authorizer | None,
        unknown_tool_replies: Sequence[UnknownToolReply],
    ) -> None:
        self._registry = registry
        self._runtime = runtime
        self._callbacks = callbacks
        self._authorizer = authorizer
        self._unknown_tool_replies = unknown_tool_replies
        self._prepared: dict[Tool, PreparedTool] = {}
        self.lifespan: object = None

    def forget(self, names: tuple[str, ...]) -> None:
        """Drop what was prepared for tools that are no longer registered."""
        # In the thread that registers, while calls prepare others: `list` copies in one step.
        for tool in [tool for tool in list(self._prepared) if tool.name in names]:
            if self._registry.tool(tool.name) is not tool:
                self._prepared.pop(tool, None)

    async def call(self, call: Call, job: Job) -> Outcome:
        """Carry one call out, or as far as the human must be asked."""
        prompt: str | None = None
        if job is not RUN:
            decision = self._decided(call) or await self._decision(call)
            if type(decision) is Deny:
                return Denied(decision.reason)
            prompt = decision.prompt if type(decision) is AskHuman else None
        tool = self._found(call)
        if tool is None:
            return await self._unknown(call)
        try:
            prepared = self._prepare(tool)
            if prepared.mirrors:
                mismatch = self._runtime.mismatch(call, prepared.mirrors)
                if mismatch is not None:
                    return Refused(mismatch.code, mismatch.message)
            if job is RUN and call.subject is not None and call.subject != prepared.subject:
                return self._failure(
                    call, "Error: the tool was replaced while its call was waiting"
                )
            arguments = prepared.bind(copied(call.arguments))
            questions = () if job is RUN else prepared.questions(arguments, prompt)
        except ArgumentsInvalid as error:
            return self._failure(call, str(error))
        except ConfigurationError as error:
            _logger.error("tool %r cannot be served: %s", call.name, error)
            return self._failure(call, "Error: the tool's definition cannot be served")
        if questions:
            return Asked(questions, prepared.subject)
        return await self._run(call, tool, prepared, arguments)

    def _found(self, call: Call) -> Tool | None:
        tool = self._registry.tool(call.name)
        there = tool is None or tool.audience is None or exists_for(tool, call)
        return tool if there else None

    def _decided(self, call: Call) -> Decision | None:
        """Decide at once, where that needs no waiting; None: `_decision` has to be awaited."""
        authorizer = self._authorizer
        if authorizer is None:
            tool = self._found(call)
            guarded = tool is None or not tool.sensitive
            return ALLOW if guarded else Deny("sensitive_tool_unguarded")
        decision = decide_now(authorizer, call.name, call.arguments, context_of(call))
        return self._scoped(call, decision) if type(decision) is RequireScopes else decision

    async def _decision(self, call: Call) -> Decision:
        decision = await decide(
            self._authorizer,
            call.name,
            call.arguments,
            context_of(call),
            self._runtime.in_thread,
        )
        return self._scoped(call, decision) if type(decision) is RequireScopes else decision

    def _scoped(self, call: Call, required: RequireScopes) -> Decision:
        lacks = self._runtime.lacks(call, required.scopes)
        return Deny(INSUFFICIENT_SCOPE) if lacks else ALLOW

    def _prepare(self, tool: Tool) -> PreparedTool:
        prepared = self._prepared.get(tool)
        if prepared is None:
            prepared = self._prepared[tool] = PreparedTool(tool)
        return prepared

    async def _unknown(self, call: Call) -> Outcome:
        for reply in tuple(self._unknown_tool_replies):
            text = await self._reply_of(reply, call.name)
            if text is not None:
                return self._failure(call, text)
        return Refused(call.era.unknown_tool, f"Tool not found: {call.name[:200]}")

    async def _reply_of(self, reply: UnknownToolReply, name: str) -> str | None:
        try:
            found: object = await self._runtime.in_thread(lambda: reply(name))
            if isinstance(found, Awaitable):
                found = await found
        except (Exception, SystemExit):
            _logger.exception("unknown_tool_reply failed")
            return None
        if found is not None and not isinstance(found, str):
            _logger.error("unknown_tool_reply must return a string or None")
            return None
        return found

    async def _run(
        self, call: Call, tool: Tool, prepared: PreparedTool, arguments: dict[str, object]
    ) -> Outcome:
        runtime = self._runtime
        if prepared.asks and call.round == 0:
            try:
                arguments = {**arguments, **prepared.answered(call.answers or {})}
            except ArgumentsInvalid as error:
                return Unacceptable(str(error))
        if tool.timeout is not None:
            runtime.perform(runtime.core.limited(call, tool.timeout, runtime.now()))
        key = prepared.key
        try:
            if prepared.target is not None:
                payload = await self._callbacks.run_in_process(
                    key, call, tool.fault, prepared.target, call.arguments
                )
                assert isinstance(payload, dict), "what process_entry returns"
                return self._complete(call, payload, payload)
            work = prepared.work(arguments, lambda: Context(call, runtime, self.lifespan))
            value = await self._callbacks.run(
                key, call, tool.fault, work, in_thread=prepared.in_thread
            )
        except CallbackFailed as error:
            told = error.told
            return self._failure(call, f"Error: {error.type_name}" if told is None else told)
        except CircuitOpen:
            return self._failure(call, CIRCUIT_OPEN)
        if isinstance(value, InputRequired):
            if prepared.asks:  # what was filled in is not there any more when it is run again
                _logger.error("tool %r has an Ask parameter and returned InputRequired", tool.name)
                return self._failure(
                    call, "Error: a tool with an Ask parameter must not return InputRequired"
                )
            return self._asked(call, prepared, value)
        try:
            payload = prepared.payload(value)
            # What is around a text is of our own making.
            foreign = value if type(value) is str else payload
            return self._complete(call, payload, foreign)
        except (ValueError, TypeError) as error:
            # Of our own making, about the shape of the value: names types and members only.
            _logger.error("tool %r returned what it must not: %s", tool.name, error)
            return self._failure(call, f"Error: the tool's result is not valid: {error}")

    def _asked(self, call: Call, prepared: PreparedTool, value: InputRequired) -> Outcome:
        try:
            return value.asked(
                prepared.subject, max_bytes=self._runtime.core.limits.max_result_bytes
            )
        except ValueError as error:
            return self._failure(call, f"Error: {error}")

    def _complete(self, call: Call, payload: JSONObject, foreign: object) -> Outcome:
        failed = payload.get("isError") is True
        try:
            raw = encode_result(
                completed(call, payload),
                max_bytes=self._runtime.core.limits.max_result_bytes,
                foreign=foreign,
            )
        except UnencodableResult as error:
            return self._failure(call, f"Error: the tool's result cannot be sent: {error}")
        return Returned(raw, failed)

    def _failure(self, call: Call, text: str) -> Outcome:
        try:
            payload = encode_result(
                call.era.complete(tool_error(text)),
                max_bytes=self._runtime.core.limits.max_result_bytes,
            )
        except UnencodableResult:
            return Failed("Error: the tool's message cannot be sent")
        return Returned(payload, failed=True)
