"""Everything but `tools/call`: lists, resources, prompts, completions. Runs inside a worker.

One door: the read authorizer is asked first, for every method, with the method's name in the
name's place. It is separate from the tools' authorizer on purpose: an allowlist of tools knows no
method names and would deny every read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from raxol_mcp.core.methods import string_list
from raxol_mcp.core.outcomes import Failed, Granted, Outcome, Refused, Returned
from raxol_mcp.core.subscriptions import LISTEN_FIELDS
from raxol_mcp.errors import INTERNAL_ERROR, INVALID_PARAMS, READ_DENIED
from raxol_mcp.server.adapt import completed
from raxol_mcp.server.arguments import copied
from raxol_mcp.server.authorizer import (
    INSUFFICIENT_SCOPE,
    AskHuman,
    Authorizer,
    Deny,
    RequireScopes,
    decide,
    decide_now,
)
from raxol_mcp.server.callbacks import CallbackFailed, Callbacks, CircuitOpen, is_async
from raxol_mcp.server.content import prompt_payload, resource_contents
from raxol_mcp.server.context import Context, call_of
from raxol_mcp.server.cursors import BadCursor, place_of
from raxol_mcp.server.definitions import Fault, Kind, Prompt, Reference
from raxol_mcp.server.rounds import InputRequired
from raxol_mcp.server.tools import context_of, exists_for
from raxol_mcp.server.uris import ascii_uri
from raxol_mcp.wire.jsonrpc import JSONObject, UnencodableResult, encode_result

if TYPE_CHECKING:
    from raxol_mcp.core.calls import Call
    from raxol_mcp.server.definitions import Tool
    from raxol_mcp.server.extension import Lens
    from raxol_mcp.server.listings import Listings
    from raxol_mcp.server.registry import Registry
    from raxol_mcp.server.runtime import ServerRuntime

__all__ = ["Surface"]

_logger = logging.getLogger("raxol_mcp.surface")
MAX_COMPLETIONS: Final = 100  # MCP server/utilities/completion §Completion Results
_LISTS: Final = {
    "tools/list": (Kind.TOOLS, "tools"),
    "resources/list": (Kind.RESOURCES, "resources"),
    "resources/templates/list": (Kind.TEMPLATES, "resourceTemplates"),
    "prompts/list": (Kind.PROMPTS, "prompts"),
}
# Which read each part of a listen filter amounts to: a listen cannot tell what a read would not.
_LISTEN_AS: Final = {
    "toolsListChanged": "tools/list",
    "promptsListChanged": "prompts/list",
    "resourcesListChanged": "resources/list",
}


class _Denied(Exception):
    """The read authorizer said no. `detail` goes to the caller."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class Surface:
    """Carries reads out. `page_size` is how many entries a list's page has."""

    def __init__(
        self,
        registry: Registry,
        runtime: ServerRuntime,
        callbacks: Callbacks,
        *,
        authorizer: Authorizer | None,
        read_authorizer: Authorizer | None,
        page_size: int,
    ) -> None:
        self._registry = registry
        self._runtime = runtime
        self._callbacks = callbacks
        self._read_authorizer = read_authorizer
        self._authorizer = authorizer
        self._page_size = page_size
        self._listings: Listings | None = None
        self.lens: Lens | None = None
        self.lifespan: object = None

    async def read(self, call: Call) -> Outcome:
        """Carry one read out."""
        method = call.method
        if method.name == "subscriptions/listen":
            return await self._may_hear(call)
        try:
            await self._gate(call, method.name, method.gate(call.params))
        except _Denied as error:
            data: JSONObject = {
                "error": "authorization_required",
                "method": method.name,
                "detail": error.detail,
            }
            return Refused(READ_DENIED, f"authorization_required: {method.name}", data)
        if method.granted:
            return Granted()
        try:
            return await self._operate(call)
        except CircuitOpen:
            what = method.name.partition("/")[0].removesuffix("s").capitalize()
            return Refused(INTERNAL_ERROR, f"{what} temporarily unavailable (circuit open)")
        except CallbackFailed as error:
            if error.told is not None:
                return Refused(INTERNAL_ERROR, error.told)
            return Failed(f"Error: {error.type_name}")
        except (ValueError, TypeError) as error:
            _logger.error(
                "%s %r: what the callback returned is not valid: %s", method.name, call.name, error
            )
            return Failed("Error: invalid result")

    async def _gate(
        self, call: Call, name: str, arguments: Mapping[str, object], *, challenged: bool = True
    ) -> None:
        authorizer, uri = self._read_authorizer, arguments.get("uri")
        if isinstance(uri, str):
            resource = self._registry.resource(uri)
            if resource is not None and not exists_for(resource, call):
                raise _Denied("denied")
        if authorizer is None:
            return
        if isinstance(uri, str) and not uri.isascii():
            # A resource answers to two spellings of letters; a rule knows one, the listed one.
            arguments = {**arguments, "uri": ascii_uri(uri)}
        context = context_of(call)
        decision = decide_now(authorizer, name, arguments, context)
        if decision is None:
            decision = await decide(authorizer, name, arguments, context, self._runtime.in_thread)
        if type(decision) is Deny:
            raise _Denied(decision.reason)
        if type(decision) is AskHuman:
            # The prompt is the operator's: a caller that is denied must not read it.
            raise _Denied("interactive_approval_unsupported")
        if type(decision) is RequireScopes and self._runtime.lacks(
            call, decision.scopes, challenged=challenged
        ):
            raise _Denied(INSUFFICIENT_SCOPE)

    async def tools_for(self, context: Context) -> list[Tool]:
        """List the tools that a caller may list and call; see `Server.tools_for`."""
        call = call_of(context)
        return await self._lists().tools(call) if await self._allows(call, "tools/list", {}) else []

    async def may_read(self, context: Context, uri: str) -> bool:
        """Say whether a caller may read `uri`."""
        return await self._allows(call_of(context), "resources/read", {"uri": uri})

    async def _may_hear(self, call: Call) -> Outcome:
        """Narrow a listen filter to what reading directly would be allowed."""
        wanted = call.params["notifications"]
        assert isinstance(wanted, dict), "checked by the method's shape"
        allowed: JSONObject = {}
        for field in LISTEN_FIELDS:
            if wanted.get(field) and await self._allows(call, _LISTEN_AS[field], {}):
                allowed[field] = True
        uris = string_list(wanted.get("resourceSubscriptions")) or []
        limit = self._runtime.core.limits.max_subscriptions
        if len(uris) > limit:
            return Refused(INVALID_PARAMS, f"at most {limit} resource subscriptions in one listen")
        heard = [
            uri
            for uri in dict.fromkeys(uris)
            if await self._allows(call, "resources/subscribe", {"uri": uri})
        ]
        if heard:
            allowed["resourceSubscriptions"] = heard
        return Granted(allowed)

    async def _allows(self, call: Call, name: str, arguments: Mapping[str, object]) -> bool:
        try:
            # What is missing is left out of a listen, which goes on without it.
            await self._gate(call, name, arguments, challenged=False)
        except _Denied:
            return False
        return True

    async def _operate(self, call: Call) -> Outcome:
        name = call.method.name
        if name in _LISTS:
            return await self._list(call)
        if name == "resources/read":
            return await self._resource(call)
        if name == "prompts/get":
            return await self._prompt(call)
        return await self._complete(call)

    # -- lists --------------------------------------------------------------------------------

    async def _list(self, call: Call) -> Outcome:
        kind, member = _LISTS[call.method.name]
        cursor = call.params.get("cursor")
        try:
            after = place_of(kind, cursor)
            items, next_cursor = await self._lists().page(call, kind, after, self.lens)
        except BadCursor:
            return Refused(INVALID_PARAMS, "cursor is not one of this server's")
        payload: JSONObject = {member: [item.encoded for item in items]}
        if next_cursor is not None:
            payload["nextCursor"] = next_cursor
        # Encoded when they were registered: only put together here.
        return Returned(call.era.complete(payload, cached=True))

    def _lists(self) -> Listings:
        if self._listings is None:
            from raxol_mcp.server.listings import Listings  # not before the first answer of all

            self._listings = Listings(
                self._registry,
                self._runtime,
                authorizer=self._authorizer,
                page_size=self._page_size,
            )
        return self._listings

    # -- resources ----------------------------------------------------------------------------

    async def _resource(self, call: Call) -> Outcome:
        uri = call.name
        resource = self._registry.resource(uri)
        if resource is not None:
            found: Callable[[Context], object] = resource.callback
            mime_type, fault, isolation = resource.mime_type, resource.fault, resource.isolation
            key = (resource.kind.value, resource.key)
            asynchronous = is_async(resource.callback)
        else:
            match = self._registry.match_template(uri)
            if match is None:
                return Refused(
                    call.era.unknown_resource, f"Resource not found: {uri[:200]}", {"uri": uri}
                )
            template, variables = match
            callback = template.callback
            found = lambda context: callback(variables, context)  # noqa: E731  # a closure, used once
            mime_type, fault, isolation = template.mime_type, template.fault, template.isolation
            key = (template.kind.value, template.key)
            asynchronous = is_async(callback)
        value = await self._run(call, key, found, fault, asynchronous and isolation != "thread")
        if isinstance(value, InputRequired):
            return value.asked(None, max_bytes=self._runtime.core.limits.max_result_bytes)
        contents = resource_contents(uri, value, mime_type)
        return self._encoded(call, {"contents": contents})

    # -- prompts ------------------------------------------------------------------------------

    async def _prompt(self, call: Call) -> Outcome:
        prompt = self._registry.prompt(call.name)
        if prompt is None:
            return Refused(INVALID_PARAMS, f"Prompt not found: {call.name[:200]}")
        problem = _prompt_problem(prompt, call.arguments)
        if problem is not None:
            return Refused(INVALID_PARAMS, problem)
        callback, arguments = prompt.callback, copied(call.arguments)
        value = await self._run(
            call,
            (prompt.kind.value, prompt.key),
            lambda context: callback(arguments, context),
            prompt.fault,
            is_async(callback) and prompt.isolation != "thread",
        )
        if isinstance(value, InputRequired):
            return value.asked(None, max_bytes=self._runtime.core.limits.max_result_bytes)
        return self._encoded(call, prompt_payload(value, prompt.description))

    # -- completions --------------------------------------------------------------------------

    async def _complete(self, call: Call) -> Outcome:
        ref, argument = call.params["ref"], call.params["argument"]
        assert isinstance(ref, dict), "checked by the method's shape"
        assert isinstance(argument, dict), "checked by the method's shape"
        reference: Reference = "ref/prompt" if ref["type"] == "ref/prompt" else "ref/resource"
        target = str(ref["name"] if reference == "ref/prompt" else ref["uri"])
        known = (
            self._registry.prompt(target) is not None
            if reference == "ref/prompt"
            else any(template.uri_template == target for template in self._registry.templates())
        )
        if not known:
            return Refused(INVALID_PARAMS, f"Nothing to complete: {target[:200]} does not exist")
        completion = self._registry.completion(reference, target, str(argument["name"]))
        values: list[str] = []
        if completion is not None:
            context = call.params.get("context")
            filled = context.get("arguments") if isinstance(context, dict) else None
            callback, typed = completion.callback, argument["value"]
            found = await self._run(
                call,
                ("completion", f"{target} {argument['name']}"),
                lambda _: callback(typed, filled or {}),
                None,
                is_async(callback) and completion.isolation != "thread",
            )
            if not isinstance(found, list | tuple) or not all(isinstance(v, str) for v in found):
                raise TypeError("a completion returns a list of strings")
            values = list(found)
        return self._encoded(
            call,
            {
                "completion": {
                    "values": values[:MAX_COMPLETIONS],
                    "total": len(values),
                    "hasMore": len(values) > MAX_COMPLETIONS,
                }
            },
        )

    # -- shared -------------------------------------------------------------------------------

    async def _run(
        self,
        call: Call,
        key: tuple[str, str],
        callback: Callable[[Context], object],
        fault: Fault | None,
        on_loop: bool,
    ) -> object:
        context = Context(call, self._runtime, self.lifespan)
        return await self._callbacks.run(
            key, call, fault, lambda: callback(context), in_thread=not on_loop
        )

    def _encoded(self, call: Call, payload: JSONObject) -> Outcome:
        try:
            raw = encode_result(
                completed(call, payload, cached=call.method.cached),
                max_bytes=self._runtime.core.limits.max_result_bytes,
            )
        except UnencodableResult as error:
            _logger.error("%s %r cannot be sent: %s", call.method.name, call.name, error)
            return Failed("Error: the result cannot be sent")
        return Returned(raw)


def _prompt_problem(prompt: Prompt, arguments: Mapping[str, object]) -> str | None:
    known = {argument.name for argument in prompt.arguments}
    unknown = [name for name in arguments if name not in known]
    if unknown:
        return f"unknown argument: {', '.join(repr(name[:100]) for name in unknown[:10])}"
    missing = [a.name for a in prompt.arguments if a.required and a.name not in arguments]
    if missing:
        return f"missing argument: {', '.join(repr(name) for name in missing)}"
    return None
