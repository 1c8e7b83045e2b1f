"""What a server may ask of the user behind a client, and how the user's answers are sent.

A request is read strictly before a handler sees it, and an answer before the server does: what a
server asks wrongly is refused with the protocol's own error, what a handler answers wrongly is an
error of this side. Only what has a handler is declared, and only what is declared is answered.

In the handshake era the questions are requests of the server, in the stateless era parts of an
`input_required` result. They read the same, so nothing here knows which it is.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Final, TypeAlias

from raxol_mcp.client.forms import NoForm, answer_problem, filled, form_of
from raxol_mcp.client.handler_calls import called
from raxol_mcp.client.redaction import shown, shown_url
from raxol_mcp.client.sampling import (
    NoSamplingRequest,
    SamplingRequest,
    sampling_problem,
    sampling_request,
)
from raxol_mcp.errors import INVALID_PARAMS, METHOD_NOT_FOUND, ConfigurationError, Denied
from raxol_mcp.wire.values import Value

if TYPE_CHECKING:
    from raxol_mcp.client.results import LogMessage
    from raxol_mcp.wire.jsonrpc import JSONObject

__all__ = [
    "ELICITATION_MODES",
    "USER_REJECTED",
    "Accept",
    "Cancel",
    "Decline",
    "ElicitRequest",
    "Elicitation",
    "Handlers",
    "Logging",
    "Reply",
    "Root",
    "Roots",
    "Sampling",
    "Unanswerable",
    "WrongAnswer",
    "is_web_address",
]

_logger = logging.getLogger("raxol_mcp.client")

# MCP 2025-11-25 client/sampling §Error Handling.
USER_REJECTED: Final = -1

ELICITATION_MODES: Final = ("form", "url")
_MAX_MESSAGE: Final = 64 * 1024
_MAX_ID: Final = 1024
_MAX_ROOTS: Final = 1024
_MAX_URL: Final = 8 * 1024
# RFC 3986 with its own characters alone, without user information: what a shell, a terminal or a
# browser could take for something else is in none of them.
_URL: Final = re.compile(
    r"(?P<scheme>https?)://(?P<host>[a-z0-9](?:[a-z0-9.\-]*[a-z0-9])?\.?|\[[0-9a-f:.]+\])"
    r"(?::[0-9]{1,5})?(?:/[a-z0-9\-._~!$&'()*+,;=:@%/]*)?"
    r"(?:\?[a-z0-9\-._~!$&'()*+,;=:@%/?]*)?(?:#[a-z0-9\-._~!$&'()*+,;=:@%/?]*)?",
    re.IGNORECASE | re.ASCII,
)
_LOOPBACK: Final = re.compile(r"localhost\.?|127(?:\.[0-9]{1,3}){3}|\[::1\]", re.IGNORECASE)


class ElicitRequest(Value, frozen=True):
    """A server asks the user something. Everything but `server` and `mode` is its word.

    With mode "form", `schema` says what is to be filled in. With mode "url", the user is to visit
    `url`, which is https or leads to this machine; show it whole, fetch nothing from it before,
    and open it only when the user agrees (MCP 2025-11-25 client/elicitation §Security).
    `elicitation_id` names that visit where the server does.
    """

    server: str
    mode: str
    message: str
    schema: JSONObject | None = None
    url: str | None = None
    elicitation_id: str | None = None


class Accept(Value, frozen=True):
    """The user agrees. `content` is the form filled in; the defaults of the form complete it."""

    content: Mapping[str, object] | None = None


class Decline(Value, frozen=True):
    """The user says no."""


class Cancel(Value, frozen=True):
    """The user went away without saying yes or no."""


class Root(Value, frozen=True):
    """A folder that a server may work in: a `file://` URI, and a name for people."""

    uri: str
    name: str | None = None

    @classmethod
    def at(cls, path: str | PathLike[str], name: str | None = None) -> Root:
        """Make the root of a folder."""
        from pathlib import Path

        return cls(Path(fspath(path)).absolute().as_uri(), name)


Reply: TypeAlias = Accept | Decline | Cancel
Elicitation: TypeAlias = Callable[[ElicitRequest], Reply | Awaitable[Reply]]
Sampling: TypeAlias = Callable[[SamplingRequest], "JSONObject | Awaitable[JSONObject]"]
Roots: TypeAlias = Sequence[Root] | Callable[[], Sequence[Root] | Awaitable[Sequence[Root]]]
Logging: TypeAlias = "Callable[[LogMessage], object]"


class Unanswerable(Exception):
    """What a server asked is refused: `code` and `message` are those of the JSON-RPC error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class WrongAnswer(Exception):
    """A handler answered with what cannot be sent. The message says what is wrong with it."""


class Handlers:
    """The handlers of one client, and what it may be asked because of them.

    A handler may be a coroutine function; another one runs in a thread of its own, because it may
    wait for a person. `elicitation_modes` are those that its handler takes, `sampling_tools`
    says whether the handler of sampling takes tools. `logging` is kept for the client.
    """

    __slots__ = ("_modes", "_roots", "_sampling", "_sampling_tools", "elicitation", "logging")

    def __init__(
        self,
        *,
        elicitation: Elicitation | None = None,
        sampling: Sampling | None = None,
        roots: Roots | None = None,
        logging: Logging | None = None,
        elicitation_modes: Collection[str] = ELICITATION_MODES,
        sampling_tools: bool = False,
    ) -> None:
        if not elicitation_modes or not set(elicitation_modes) <= set(ELICITATION_MODES):
            raise ConfigurationError(f"the modes of elicitation are {', '.join(ELICITATION_MODES)}")
        named = {"elicitation": elicitation, "sampling": sampling, "logging": logging}
        for name, handler in named.items():
            if handler is not None and not callable(handler):
                raise ConfigurationError(f"the handler of {name} must be a function")
        if roots is not None and not callable(roots):
            problem = _roots_problem(roots)
            if problem is not None:
                raise ConfigurationError(problem)
        self.elicitation = elicitation
        self.logging = logging
        self._sampling = sampling
        self._roots = roots
        self._modes = tuple(mode for mode in ELICITATION_MODES if mode in elicitation_modes)
        self._sampling_tools = sampling_tools

    @property
    def asked_methods(self) -> frozenset[str]:
        """The requests of a server that have a handler."""
        handlers = {
            "elicitation/create": self.elicitation,
            "sampling/createMessage": self._sampling,
            "roots/list": self._roots,
        }
        return frozenset(method for method, handler in handlers.items() if handler is not None)

    def capabilities(self) -> JSONObject:
        """Write the client's capabilities, for either era: what has no handler is not in it.

        The modes of elicitation are named although forms alone need not be, because revisions
        that know no modes ignore the names.
        """
        declared: JSONObject = {}
        if self.elicitation is not None:
            declared["elicitation"] = {mode: {} for mode in self._modes}
        if self._sampling is not None:
            declared["sampling"] = {"tools": {}} if self._sampling_tools else {}
        if self._roots is not None:
            declared["roots"] = {}
        return declared

    async def answer(self, server: str, method: str, params: JSONObject | None) -> JSONObject:
        """Answer a request of `server` and give the result object.

        Raises `Unanswerable` for what is asked wrongly or was rejected, `WrongAnswer` for what
        the handler got wrong, and whatever the handler raises.
        """
        given = params or {}
        match method:
            case "elicitation/create" if self.elicitation is not None:
                return await self._elicited(server, given, self.elicitation)
            case "sampling/createMessage" if self._sampling is not None:
                return await self._sampled(server, given, self._sampling)
            case "roots/list" if self._roots is not None:
                return await self._listed(self._roots)
        raise Unanswerable(METHOD_NOT_FOUND, "Method not found")

    async def _elicited(self, server: str, params: JSONObject, handler: Elicitation) -> JSONObject:
        request = self._elicit_request(server, params)
        if request.url is not None and not is_web_address(request.url):
            _logger.warning(
                "%s wants the user to visit what is no https address: declined (%s)",
                shown(server),
                shown_url(request.url),
            )
            return {"action": "decline"}
        reply = await called(handler, request)
        match reply:
            case Decline():
                return {"action": "decline"}
            case Cancel():
                return {"action": "cancel"}
            case Accept() if request.schema is None:
                return {"action": "accept"}
            case Accept(content=content) if request.schema is not None:
                return {"action": "accept", "content": _content(request.schema, content)}
        raise WrongAnswer(
            f"an elicitation handler answers Accept, Decline or Cancel, not {type(reply).__name__}"
        )

    def _elicit_request(self, server: str, params: JSONObject) -> ElicitRequest:
        mode = params.get("mode")
        if mode is None:
            mode = "form"  # MCP 2025-11-25 client/elicitation: a missing mode is form
        if not isinstance(mode, str) or mode not in self._modes:
            raise _invalid("this mode of elicitation was not declared")
        message = params.get("message")
        if not isinstance(message, str) or len(message) > _MAX_MESSAGE:
            raise _invalid(f"message must be a text of at most {_MAX_MESSAGE} characters")
        if mode == "form":
            try:
                form = form_of(params.get("requestedSchema"))
            except NoForm as error:
                raise _invalid(str(error)) from None
            return ElicitRequest(server, mode, message, form)
        url, named = params.get("url"), params.get("elicitationId")
        if not isinstance(url, str):
            raise _invalid("url must be a text")
        if named is not None and (not isinstance(named, str) or len(named) > _MAX_ID):
            raise _invalid(f"elicitationId must be a text of at most {_MAX_ID} characters")
        return ElicitRequest(server, mode, message, None, url, named)

    async def _sampled(self, server: str, params: JSONObject, handler: Sampling) -> JSONObject:
        try:
            request = sampling_request(server, params, tools=self._sampling_tools)
        except NoSamplingRequest as error:
            raise _invalid(str(error)) from None
        try:
            answer = await called(handler, request)
        except Denied:
            raise Unanswerable(USER_REJECTED, "User rejected sampling request") from None
        problem = sampling_problem(answer)
        if problem is not None:
            raise WrongAnswer(problem)
        return dict(answer)

    async def _listed(self, roots: Roots) -> JSONObject:
        found = await called(roots) if callable(roots) else roots
        problem = _roots_problem(found)
        if problem is not None:
            raise WrongAnswer(problem)
        return {
            "roots": [
                {"uri": root.uri} if root.name is None else {"uri": root.uri, "name": root.name}
                for root in found
            ]
        }


def is_web_address(url: str) -> bool:
    """Say whether a URL of a server may be shown to a person to visit.

    https, or http to this machine; ASCII without spaces, quotes and controls; no user name in
    front of the host, which only serves to look like another one (CVE-2025-6514; RFC 3986).
    """
    match = _URL.fullmatch(url) if len(url) <= _MAX_URL else None
    if match is None:
        return False
    return match["scheme"].lower() == "https" or _LOOPBACK.fullmatch(match["host"]) is not None


def _content(schema: JSONObject, content: object) -> JSONObject:
    given = {} if content is None else content
    if not isinstance(given, Mapping):
        raise WrongAnswer("the content of an Accept must be a mapping of fields to values")
    complete = filled(schema, given)
    problem = answer_problem(schema, complete)
    if problem is not None:
        raise WrongAnswer(problem)
    return complete


def _roots_problem(roots: object) -> str | None:
    if isinstance(roots, str | bytes) or not isinstance(roots, Sequence) or len(roots) > _MAX_ROOTS:
        return f"roots must be a list of at most {_MAX_ROOTS} Root"
    for root in roots:
        if not isinstance(root, Root):
            return "each of the roots must be a Root"
        # MCP client/roots §Root: a file:// URI.
        uri: object = root.uri
        if not isinstance(uri, str) or not uri.startswith("file://"):
            return f"the uri of a Root must begin with file://, not {shown(uri)}"
    return None


def _invalid(why: str) -> Unanswerable:
    return Unanswerable(INVALID_PARAMS, f"Invalid params: {why}")
