"""The client's end of HTTP to the fixture, within this process and on virtual time.

An `HttpPeer` is a `Peer`, so a scenario that was written for a pipe is tried over HTTP as it is:
each message is a POST with the headers that belong to it, what comes back is parsed strictly, and
the status of every answer is looked at, whatever the test is about.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeVar, cast

from raxol_mcp import asgi_app
from raxol_mcp.server.auth import BearerAuthenticator, Principal
from raxol_mcp.server.static_tokens import StaticTokens
from raxol_mcp.testing.virtual_loop import VirtualLoop
from raxol_mcp.wire.framing import Lines, TooLong
from tests.cases.fixture_server import Fixture, Knobs
from tests.cases.peers import Message, Peer, left_over, same_id, strict
from tests.transports.http.client import HttpClient, Open, Reply

__all__ = [
    "ACCEPT",
    "JSON",
    "TOKENS",
    "HttpExchange",
    "HttpPeer",
    "bearer",
    "headers_of",
    "status_of",
    "wrapped",
]

T = TypeVar("T")
Headers = dict[str, str | None]

VERSION: Final = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
ACCEPT: Final = "application/json, text/event-stream"
JSON: Final[Mapping[str, str | None]] = {"content-type": "application/json", "accept": ACCEPT}
# All of one client, so that nothing but the subject tells them apart.
TOKENS: Final = {name: f"{name}-0123456789abcdef" for name in ("alice", "bob", "admin")}
NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
# MCP 2026-07-28 basic/transports/streamable-http; what is not here is an answer like any other.
STATELESS_STATUS: Final = {
    -32601: 404,
    -32700: 400,
    -32600: 400,
    -32020: 400,
    -32021: 400,
    -32022: 400,
}


def bearer(name: str | None) -> Headers:
    """Write the credentials of somebody; None has none, and who is not known a token as well."""
    if name is None:
        return {}
    return {"authorization": f"Bearer {TOKENS.get(name, f'{name}-no-token-of-ours')}"}


def wrapped(value: str) -> str:
    """Write a value as a header carries it (MCP 2026-07-28 streamable-http §Value Encoding)."""
    if value.isascii() and value.isprintable() and value == value.strip():
        return value
    return f"=?base64?{b64encode(value.encode('utf-8', 'surrogatepass')).decode()}?="


def headers_of(message: object, session: Mapping[str, str | None] | None = None) -> Headers:
    """Write the headers of one message: of its own era, else those of the session."""
    params = message.get("params") if isinstance(message, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    version = meta.get(VERSION) if isinstance(meta, dict) else None
    if not isinstance(message, dict) or not isinstance(params, dict) or version is None:
        return {**JSON, **(session or {})}
    headers: Headers = {**JSON, "mcp-protocol-version": str(version)}
    if "method" in message:
        headers["mcp-method"] = wrapped(str(message["method"]))
    name = params.get(NAMED.get(str(message.get("method")), ""))
    if isinstance(name, str):
        headers["mcp-name"] = wrapped(name)
    return headers


def status_of(sent: object, answer: Message, *, session: bool = True) -> int:
    """Say which status an answer must have that is one JSON body; `session`: there is one."""
    error = cast("Message", answer.get("error") or {})
    params = sent.get("params") if isinstance(sent, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    if isinstance(meta, dict) and VERSION in meta:
        whole = isinstance(meta[VERSION], str) and isinstance(meta.get(CAPABILITIES), dict)
        if error.get("code") == -32602:
            return 200 if whole else 400
        return STATELESS_STATUS.get(cast("int", error.get("code")), 200)
    greets = isinstance(sent, dict) and sent.get("method") == "initialize"
    unread = answer["id"] is None or error.get("code") == -32700
    return 400 if error and (unread or not (session or greets)) else 200


class HttpPeer(Peer):
    """One client: its POSTs, and the GET stream of its session where it has one.

    `statuses` are those of all POSTs that are done, in the order of their end.
    """

    bound = 100_000.0  # on virtual time

    def __init__(
        self, exchange: HttpExchange, *, token: str | None = None, listens: bool = True
    ) -> None:
        super().__init__()
        self.exchange_of = exchange
        self.http = exchange.http
        self.session: Headers = {}
        self.statuses: list[int] = []
        self.token = token
        self.listens = listens
        self.broken: BaseException | None = None
        self._lines = Lines(exchange.fixture.server.max_message_bytes)
        self._open: list[tuple[object, Open]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    # -- out ----------------------------------------------------------------------------------

    async def send_bytes(self, data: bytes) -> None:
        for line in self._lines.feed(data):
            assert not isinstance(line, TooLong), "the transport's to answer"
            try:
                message: object = json.loads(line)
            except ValueError:
                message = None
            if not self._closes(message):
                opened = self.post(message, line)
                await asyncio.sleep(0.001)  # on its way
                if isinstance(message, dict) and ("method" not in message or "id" not in message):
                    await opened.ended()

    def post(self, message: object, body: bytes, changes: Mapping[str, str | None] = {}) -> Open:
        """Begin a POST; what it is answered is added to what was seen."""
        headers = {**headers_of(message, self.session), **bearer(self.token), **changes}
        opened = self.http.open("POST", "/mcp", headers, body)
        self._open.append((message, opened))
        self._watch(self._follow(message, opened))
        return opened

    def begin(
        self,
        message: Message,
        changes: Mapping[str, str | None] = {},
        *,
        path: str = "/mcp",
    ) -> Open:
        """Begin a POST that only the caller looks at."""
        headers = {**headers_of(message, self.session), **bearer(self.token), **changes}
        return self.http.open("POST", path, headers, json.dumps(message).encode())

    async def say(
        self, message: Message, changes: Mapping[str, str | None] = {}, *, path: str = "/mcp"
    ) -> Reply:
        """Send a POST and return the whole reply."""
        return await self.begin(message, changes, path=path).ended()

    def listen(self, after: str | None = None, *, path: str = "/mcp") -> Open:
        """Begin a GET that only the caller looks at; `after` is the last event that was read."""
        headers = {"accept": "text/event-stream", "last-event-id": after, **self.session}
        return self.http.open("GET", path, {**headers, **bearer(self.token)})

    def _closes(self, message: object) -> bool:
        """Cancel as HTTP does: a stateless request by closing its response, and nothing else."""
        if not isinstance(message, dict) or message.get("method") != "notifications/cancelled":
            return False
        params = message.get("params")
        id = params.get("requestId") if isinstance(params, dict) else None
        for sent, opened in self._open:
            stateless = VERSION in str(sent)
            if isinstance(sent, dict) and same_id(sent, id) and "method" in sent and stateless:
                opened.leave()
                return True
        return not self.session

    # -- in -----------------------------------------------------------------------------------

    async def _follow(self, sent: object, opened: Open) -> None:
        async for data in opened.stream():
            self._take(strict(data))
        self._open.remove((sent, opened))
        reply = opened.reply
        if opened.left:
            return
        self.statuses.append(reply.status)
        if reply.headers.get("content-type") == "application/json":
            answer = strict(reply.body)
            expected = status_of(sent, answer, session=bool(self.session))
            assert reply.status == expected, (sent, reply.status, answer)
            if "mcp-session-id" in reply.headers:
                self._greeted(reply, answer)
            self._take(answer)
        elif reply.status != 200:
            assert (reply.status, reply.body) == (202, b""), (sent, reply.status, reply.body)

    def _greeted(self, reply: Reply, answer: Message) -> None:
        version = str(cast("Message", answer["result"])["protocolVersion"])
        self.session = {"mcp-session-id": reply.headers["mcp-session-id"]}
        if version >= "2025-06-18":
            self.session["mcp-protocol-version"] = version
        if self.listens:
            opened = self.listen()
            self._open.append((None, opened))
            self._watch(self._follow(None, opened))

    def _watch(self, follows: Any) -> None:
        task = asyncio.ensure_future(follows)
        self._tasks.add(task)
        task.add_done_callback(self._watched)

    def _watched(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.broken = self.broken or task.exception()
            self._end()

    # -- the end ------------------------------------------------------------------------------

    async def finish(self) -> int:
        if self.session:
            headers = {**self.session, **bearer(self.token)}
            assert (await self.http.send("DELETE", "/mcp", headers)).status in (204, 404)
            self.session = {}
        self.leave()
        await self.gone()
        return 0

    def leave(self) -> None:
        """Close every connection, whatever is open."""
        for _, opened in self._open:
            opened.leave()

    async def gone(self) -> None:
        """Wait until the application is done with everything; raise what went wrong here."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        if self.broken is not None:
            raise self.broken

    @staticmethod
    def run(scenario: Callable[[Peer], Awaitable[None]], knobs: Knobs) -> None:
        """Run a scenario against a fixture of its own."""
        with HttpExchange(knobs) as exchange:
            exchange.run(scenario)


class HttpExchange:
    """A fixture behind its ASGI application, on virtual time, that many examples share.

    With `tokens` a client is one of `TOKENS`, or nobody. Whatever an example did, nothing of it
    may be left when its clients are gone.
    """

    def __init__(
        self,
        knobs: Knobs | None = None,
        *,
        tokens: bool = False,
        root_path: str = "",
        **options: Any,
    ) -> None:
        self.fixture = Fixture(knobs)
        if tokens:
            known = {
                token: Principal(name, "static", client="one client")
                for name, token in TOKENS.items()
            }
            options["authenticator"] = BearerAuthenticator(StaticTokens(dict(known)))
        self.app = asgi_app(self.fixture.server, **options)
        self.http = HttpClient(self.app, root_path=root_path)
        self._runner = asyncio.Runner(loop_factory=lambda: VirtualLoop(limit=1e9))

    @property
    def journal(self) -> list[str]:
        """What ran, without the start."""
        return [line for line in self.fixture.journal.lines if line != "opened"]

    def __enter__(self) -> HttpExchange:
        self._runner.__enter__()
        self._runner.run(self.app.start())
        return self

    def __exit__(self, *error: object) -> None:
        self._runner.run(self.app.stop())
        self._runner.close()

    def run(
        self,
        scenario: Callable[..., Awaitable[T]],
        *,
        peers: int = 1,
        tokens: Sequence[str | None] = (None,),
        listens: bool = True,
    ) -> T:
        """Run a scenario with so many clients and return what it returns.

        With `listens` each opens the GET stream of its session, as soon as it has one.
        """

        async def runs() -> T:
            made = [
                HttpPeer(self, token=tokens[at % len(tokens)], listens=listens)
                for at in range(peers)
            ]
            tasks = len(asyncio.all_tasks())
            try:
                result = await scenario(*made)
            except ConnectionError as error:
                raise next((peer.broken for peer in made if peer.broken), error) from error
            finally:
                for peer in made:
                    await peer.finish()
            await asyncio.sleep(1.0)
            assert self.left() == {}
            assert len(asyncio.all_tasks()) == tasks, asyncio.all_tasks()
            return result

        return self._runner.run(runs())

    def left(self) -> dict[str, int]:
        """Return what is still held, streams and sessions included."""
        counts = {name: number for name, number in self.app.stats().items() if number}
        return {**counts, **left_over(self.fixture)}
