"""Traffic that nobody wants: what strangers, scanners, broken proxies and bad networks send.

Each kind of attack is one connection, from its opening to its end. `storm` runs many at once, with
a good client among them; the seed says what exactly they do. `tools/soak.py` does it for longer.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import socket
import struct
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Any, Final

from tests.cases.fixture_server import Knobs
from tests.cases.http.sockets import Served
from tests.cases.peers import left_over

__all__ = ["KINDS", "KNOBS", "SOON", "Storm", "echoed", "held", "settled"]

MODERN: Final = "2026-07-28"
PREFIX: Final = "io.modelcontextprotocol/"
HOST: Final = b"Host: 127.0.0.1\r\n"
JSON: Final = b"Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
# Seconds that an attacker may take to find out that it is being ignored.
BOUND: Final = 30.0
# How the server is to be served: what is left of an attack ends soon.
KNOBS: Final = Knobs(limits={"callback_timeout": 5.0, "elicitation_timeout": 0.5})
# On a busy machine a good client must have got as far by then.
SOON: Final = {
    "head_timeout": 2.0,
    "body_timeout": 2.0,
    "write_timeout": 2.0,
    "session_timeout": 0.5,
}


class Peer:
    """One connection of an attacker."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, random: Random
    ) -> None:
        self.reader = reader
        self.writer = writer
        self.random = random

    async def say(self, data: bytes) -> None:
        """Write bytes, if there is anybody left to take them."""
        with suppress(ConnectionError):
            self.writer.write(data)
            await self.writer.drain()

    async def hear(self, size: int = 65536) -> bytes:
        """Read something; nothing when it is over."""
        with suppress(ConnectionError):
            return await self.reader.read(size)
        return b""

    async def hear_all(self) -> None:
        """Read until it is over."""
        while await self.hear():
            pass

    async def doze(self) -> None:
        """Do nothing for a moment."""
        await asyncio.sleep(self.random.random() * 0.02)

    def reset(self) -> None:
        """End without a word: the other side gets a reset."""
        connection = self.writer.get_extra_info("socket")
        if connection is not None:
            with suppress(OSError):
                linger = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.writer.transport.abort()


def post(message: object, *, path: bytes = b"/mcp", head: bytes = b"", host: bytes = HOST) -> bytes:
    """Write a whole POST."""
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    lines = b"POST " + path + b" HTTP/1.1\r\n" + host + JSON + head
    return lines + b"Content-Length: %d\r\n\r\n" % len(body) + body


def modern(method: str, params: dict[str, object], id: object = 1) -> bytes:
    """Write a good POST of the stateless era."""
    version = {PREFIX + "protocolVersion": MODERN, PREFIX + "clientCapabilities": {}}
    meta = {**version, "progressToken": 1}
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, "_meta": meta}}
    head = f"MCP-Protocol-Version: {MODERN}\r\nMcp-Method: {method}\r\n"
    if "name" in params:
        head += f"Mcp-Name: {params['name']}\r\n"
    return post(message, head=head.encode())


def call(name: str, **arguments: object) -> bytes:
    """Write a good call."""
    return modern("tools/call", {"name": name, "arguments": arguments})


def get(path: bytes, head: bytes = b"", host: bytes = HOST) -> bytes:
    """Write a whole GET for a stream."""
    return b"GET " + path + b" HTTP/1.1\r\n" + host + b"Accept: text/event-stream\r\n" + head


# -- the kinds -------------------------------------------------------------------------------------


async def garbage(peer: Peer) -> None:
    """Bytes that are no HTTP."""
    await peer.say(peer.random.randbytes(peer.random.randint(1, 5000)))
    await peer.hear()


async def another_protocol(peer: Peer) -> None:
    """TLS, HTTP/2, an old proxy, a WebSocket, a line of JSON."""
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + peer.random.randbytes(400)
    upgrade = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    choices = [
        hello,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        get(b"/mcp", upgrade + b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"),
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n',
        b"GET http://evil.example/mcp HTTP/1.1\r\n" + HOST + b"\r\n",
        b"POST /mcp HTTP/9.9\r\n\r\n",
    ]
    await peer.say(peer.random.choice(choices))
    await peer.hear()


async def half_a_head(peer: Peer) -> None:
    """A request that stops anywhere within its head."""
    whole = call("echo", text="x")
    await peer.say(whole[: peer.random.randint(0, whole.index(b"\r\n\r\n"))])
    await peer.doze()


async def half_a_body(peer: Peer) -> None:
    """A request that stops anywhere within its body."""
    whole = call("echo", text="x" * 1000)
    await peer.say(whole[: peer.random.randint(whole.index(b"\r\n\r\n") + 4, len(whole) - 1)])
    await peer.doze()


async def a_slow_head(peer: Peer) -> None:
    """A head that comes by the byte, until nobody waits for it."""
    for byte in get(b"/mcp", b"X-A: " + b"a" * 2000)[: peer.random.randint(10, 200)]:
        await peer.say(bytes([byte]))
        if peer.random.random() < 0.05:
            await peer.doze()
    await peer.hear_all()


async def a_slow_body(peer: Peer) -> None:
    """A body that comes by the byte, until nobody waits for it."""
    await peer.say(b"POST /mcp HTTP/1.1\r\n" + HOST + JSON + b"Content-Length: 1000\r\n\r\n")
    for _ in range(peer.random.randint(1, 100)):
        await peer.say(b" ")
        if peer.random.random() < 0.1:
            await peer.doze()
    await peer.hear_all()


async def giant_headers(peer: Peer) -> None:
    """One giant header, or thousands of small ones."""
    await peer.say(b"POST /mcp HTTP/1.1\r\n" + HOST)
    if peer.random.random() < 0.5:
        await peer.say(b"X-A: " + b"a" * peer.random.randint(10_000, 200_000))
    for at in range(peer.random.randint(0, 3000)):
        await peer.say(b"X-%d: %d\r\n" % (at, at))
    await peer.say(b"\r\n\r\n")
    await peer.hear()


async def a_wrong_host(peer: Peer) -> None:
    """Names that are not ours, on every path."""
    hosts = [b"evil.example", b"", b"127.0.0.1.evil.example", b"127.0.0.1\r\nHost: evil.example"]
    host = b"Host: " + peer.random.choice(hosts) + b"\r\n"
    path = peer.random.choice([b"/mcp", b"/mcp/", b"/mcp/sse", b"/mcp/messages", b"/health"])
    await peer.say(get(path, b"\r\n", host))
    await peer.hear()
    await peer.say(post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, host=host))
    await peer.hear()


async def a_wrong_length(peer: Peer) -> None:
    """A length that is not the body's, two lengths, or both kinds of framing."""
    heads = [
        b"Content-Length: 5\r\n",
        b"Content-Length: 50\r\n",
        b"Content-Length: -1\r\n",
        b"Content-Length: 99999999999999999999\r\n",
        b"Content-Length: 5\r\nContent-Length: 6\r\n",
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
        b"Transfer-Encoding: chunked\r\n",
    ]
    bodies = [b"0\r\n\r\n", b"zzz\r\n", b"ffffffffffffffff\r\nx", b"5\r\nhello", b"hello", b""]
    head = b"POST /mcp HTTP/1.1\r\n" + HOST + JSON + peer.random.choice(heads)
    await peer.say(head + b"\r\n" + peer.random.choice(bodies) + get(b"/mcp", b"\r\n"))
    await peer.hear()


async def a_bad_body(peer: Peer) -> None:
    """JSON that is none, none at all, or more than there should be."""
    bodies = [b"", b"{", b"[" * 100_000, b"null", b"\xff", b"9" * 5000, b"{}" * 100, b"[]"]
    await peer.say(post(peer.random.choice(bodies)))
    await peer.hear()


async def pipelined(peer: Peer) -> None:
    """Many requests at once, and not a word of their answers is read to its end."""
    await peer.say(b"".join(call("echo", text=str(at)) for at in range(peer.random.randint(2, 50))))
    await peer.hear(10)
    await peer.doze()


async def an_aborted_call(peer: Peer) -> None:
    """A call that runs when its client is lost."""
    await peer.say(call("sleep", ms=60_000, tag="hostile"))
    await peer.doze()


async def an_aborted_stream(peer: Peer) -> None:
    """A stream that is lost while it is written, or while it is silent."""
    streams = [
        call("progress", n=1000, delay_ms=1),
        modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}}),
        get(b"/mcp/sse", b"\r\n"),
    ]
    await peer.say(peer.random.choice(streams))
    await peer.hear(peer.random.randint(1, 500))
    await peer.doze()


async def one_who_reads_nothing(peer: Peer) -> None:
    """A call whose answer is larger than every buffer on the way, and nobody takes it."""
    await peer.say(call("big", bytes=8_000_000))
    await peer.doze()


async def an_abandoned_session(peer: Peer) -> None:
    """A session that is greeted, used and left, with its stream open and calls running."""
    params = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}}
    await peer.say(post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}))
    head = await peer.hear()
    _, _, rest = head.lower().partition(b"mcp-session-id: ")
    id = head[len(head) - len(rest) :].partition(b"\r\n")[0]
    session = b"Mcp-Session-Id: " + id + b"\r\n"
    name = peer.random.choice(["sleep", "confirm_delete"])
    arguments = {"ms": 200, "tag": "left"} if name == "sleep" else {"target": "x"}
    params = {"name": name, "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    if peer.random.random() < 0.5:
        await peer.say(post(message, head=session))
    else:
        await peer.say(get(b"/mcp", session + b"\r\n"))
    await peer.doze()


async def an_idle_connection(peer: Peer) -> None:
    """Nothing at all."""
    await peer.doze()


Kind = Callable[[Peer], Awaitable[None]]
KINDS: Final[tuple[Kind, ...]] = (
    *(garbage, another_protocol, half_a_head, half_a_body, a_slow_head, a_slow_body),
    *(giant_headers, a_wrong_host, a_wrong_length, a_bad_body, pipelined, an_aborted_call),
    *(an_aborted_stream, one_who_reads_nothing, an_abandoned_session, an_idle_connection),
)


async def echoed(host: str, port: int, text: str = "alive") -> bool:
    """Be a good client once; say whether it was served."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        async with asyncio.timeout(BOUND):
            writer.write(call("echo", text=text))
            head = await reader.readuntil(b"\r\n\r\n")
            _, _, length = head.lower().partition(b"content-length: ")
            body = await reader.readexactly(int(length.partition(b"\r\n")[0]))
            # Who is anonymous shares with attackers that are, and is told when that is used up.
            return text.encode() in body or b"server_busy" in body
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


class Storm:
    """Attacks of every kind, `at_once` at a time. `done` counts them, `good` the good client's."""

    def __init__(self, host: str, port: int, *, seed: int = 0, at_once: int = 50) -> None:
        self.host = host
        self.port = port
        self.done: Counter[str] = Counter()
        self.good = 0
        self._at_once = at_once
        self._random = Random(seed)

    async def attack(self, kind: Kind) -> None:
        """Make one attack, to its end."""
        reader, writer = await asyncio.open_connection(self.host, self.port)
        peer = Peer(reader, writer, self._random)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                async with asyncio.timeout(BOUND):
                    await kind(peer)
        finally:
            if self._random.random() < 0.5:
                peer.reset()
            else:
                writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
        self.done[kind.__name__] += 1

    async def run(self, rounds: int, kinds: Sequence[Kind] = KINDS) -> None:
        """Make so many attacks of each kind, in a drawn order; a good client tries all along."""
        attacks = [kind for kind in kinds for _ in range(rounds)]
        self._random.shuffle(attacks)

        async def works() -> None:
            while attacks:
                await self.attack(attacks.pop())

        async def behaves() -> None:
            while attacks:
                assert await echoed(self.host, self.port, f"good {self.good}")
                self.good += 1

        workers: list[Any] = [works() for _ in range(self._at_once)]
        await asyncio.gather(*workers, behaves())


def held() -> tuple[int, int]:
    """Count the tasks of this loop and the descriptors of this process."""
    return len(asyncio.all_tasks()), len(os.listdir("/proc/self/fd"))


async def settled(served: Served, before: tuple[int, int]) -> None:
    """Wait until nothing is left of the attacks, within a bound; then say what is."""
    with suppress(TimeoutError):
        async with asyncio.timeout(BOUND):
            while held() != before or left_over(served.fixture):  # noqa: ASYNC110  # no event
                await asyncio.sleep(0.05)
    assert left_over(served.fixture) == {}
    assert held() == before, asyncio.all_tasks()
    gc.collect()
    kept = [each for each in gc.get_objects() if type(each).__name__ == "RequestResponseCycle"]
    assert kept == [], "what uvicorn holds of a connection"
