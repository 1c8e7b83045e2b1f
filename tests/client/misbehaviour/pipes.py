"""What only a process can do wrong: how it dies, and what it does to its pipes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from raxol_mcp.client.app import Client
from tests.client.misbehaviour.attempts import (
    After,
    Misbehaviour,
    Outcome,
    ended,
    on_call,
)
from tests.client.misbehaviour.messages import TIMEOUT, fine
from tests.client.peers.held import BOUND
from tests.client.peers.script import (
    Message,
    Rule,
    Step,
    as_usual,
    close_output,
    error,
    kill,
    leave,
    on,
    question,
    raw,
    reply,
    say,
    silent,
    stderr,
    stop_reading,
    wait,
)

__all__ = ["CALLS", "CONNECTS", "Connect"]

# What is taken at most, here and in the client's spec.
LIMIT: Final = 16 * 1024 * 1024


def dies(name: str, *steps: Step, expected: Outcome, **more: Any) -> Misbehaviour:
    """Build one after which a new process is started."""
    return on_call(name, *steps, expected=expected, after=After.RETURNS, **more)


async def says_a_megabyte(client: Client) -> object:
    """Call with more than a pipe holds."""
    return await client.call_tool("echo", {"text": "A" * 1_000_000})


CALLS: Final[list[Misbehaviour]] = [
    dies("exits in the middle of a call", leave(1), expected=ended("server_exited", 1)),
    dies("exits, and says that all is well", leave(0), expected=ended("server_exited", 0)),
    dies("is killed", kill(9), expected=ended("server_exited", 137)),
    dies("crashes", kill(11), expected=ended("server_exited", 139)),
    dies(
        "exits in the middle of a line",
        raw('{"jsonrpc":"2.0","id":$ID,"result":{"content":['),
        leave(1),
        expected=ended("server_exited", 1),
    ),
    dies(
        "closes its output and lives on",
        close_output(),
        expected=ended("transport", "closed"),
        spec={"call_timeout": BOUND},  # it is given a moment to exit
    ),
    dies("a line of 20 MB", raw(("A", 20_000_000), "\n"), expected=ended("line_too_long", LIMIT)),
    dies("a line without an end", raw(("A", 20_000_000)), expected=ended("line_too_long", LIMIT)),
    on_call("late, and nobody waits any more", wait(0.6), as_usual(), expected=TIMEOUT),
    fine(
        "banners and logs", raw("Starting…\n\n{not json}\n[1,2]\n"), raw('"x"\nDEBUG\n'), as_usual()
    ),
    fine("bytes that are no text", raw(bytes(range(256)), "\n", b"\xff\xfe\x00\n"), as_usual()),
    fine("five megabytes of garbage", raw(("no json at all ", 350_000), "\n"), as_usual()),
    fine("ten thousand lines of garbage", raw(("garbage\n", 10_000)), as_usual()),
    fine("ten thousand blank lines", raw(("\r\n", 10_000)), as_usual()),
    fine("an object of its log", raw('{"id":$ID,"level":"info","error":"x"}\n'), as_usual()),
    fine(
        "a line that ends as in Windows",
        raw('{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}\r\n'),
        said="",
    ),
    fine(
        "a byte order mark",
        raw(b"\xef\xbb\xbf", '{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}\n'),
        said="",
    ),
    fine(
        "a byte at a time",
        raw(
            '{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"a\u2028b\u0085é🎉"}]}}\n',
            chunk=1,
        ),
        said="a\u2028b\u0085é🎉",
    ),
    fine("four megabytes on stderr", stderr(("noise on stderr\n", 250_000)), as_usual()),
    fine("stderr without a newline, and no text", stderr((b"\xff\x00", 100_000)), as_usual()),
    Misbehaviour(
        "reads nothing more",
        (on("tools/call", stop_reading(), times=1, life=1),),
        TIMEOUT,
        After.USELESS,
    ),
    Misbehaviour(
        "reads nothing more, of much",
        (on("notifications/initialized", stop_reading(), life=1),),
        TIMEOUT,
        After.USELESS,
        act=says_a_megabyte,
    ),
    Misbehaviour(
        "asks a hundred thousand times, and reads no answer",
        (on("tools/call", stop_reading(), question("ping", id="$N", count=100_000)),),
        TIMEOUT,
        After.USELESS,
    ),
    Misbehaviour(
        "floods, and reads nothing more",
        (on("tools/call", stop_reading(), say({"jsonrpc": "2.0", "method": "x"}, count=200_000)),),
        TIMEOUT,
        After.USELESS,
    ),
]


@dataclass(frozen=True, slots=True)
class Connect:
    """A peer to which there is no connection: at first, or ever.

    `path` is the reason. With `returns` a later process behaves.
    """

    name: str
    rules: tuple[Rule, ...]
    path: tuple[int | str, ...]
    returns: bool = False
    options: Message = field(default_factory=dict)
    spec: Message = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


def greeting_failed(*path: int | str) -> tuple[int | str, ...]:
    """Say why there is no session after all."""
    return ("initialization_failed", *path)


def at_initialize(name: str, *steps: Step, path: tuple[int | str, ...], **more: Any) -> Connect:
    """Build one that goes wrong at every `initialize`."""
    return Connect(name, (on("initialize", *steps),), path, **more)


CONNECTS: Final[list[Connect]] = [
    Connect("exits at once", (on("start", leave(0)),), ("server_exited", 0)),
    Connect(
        "exits with a code",
        (on("start", stderr("no such module\n"), leave(3)),),
        ("server_exited", 3),
    ),
    Connect(
        "exits at first",
        (on("start", leave(3), life=1), on("start", leave(3), life=2)),
        ("server_exited", 3),
        returns=True,
    ),
    Connect("closes its output at once", (on("start", close_output()),), ("transport", "closed")),
    Connect(
        "writes without an end", (on("start", raw(("A", 40_000_000))),), ("line_too_long", LIMIT)
    ),
    Connect("says nothing at all", (on("*", silent()),), greeting_failed("timeout")),
    Connect("reads nothing at all", (on("start", stop_reading()),), greeting_failed("timeout")),
    Connect(
        "says everything but an answer",
        (on("*", raw(("INFO ready\n", 100))),),
        greeting_failed("timeout"),
    ),
    at_initialize("exits when greeted", leave(1), path=("server_exited", 1)),
    at_initialize("is killed when greeted", kill(9), path=("server_exited", 137)),
    at_initialize("never answers initialize", silent(), path=greeting_failed("timeout")),
    at_initialize("initialize is an error", error(-32603), path=greeting_failed("jsonrpc", -32603)),
    at_initialize(
        "initialize is null", reply(None), path=greeting_failed("invalid_response", "initialize")
    ),
    at_initialize(
        "initialize is a text", reply("ok"), path=greeting_failed("invalid_response", "initialize")
    ),
    at_initialize(
        "initialize is a list", reply([]), path=greeting_failed("invalid_response", "initialize")
    ),
    at_initialize(
        "initialize cannot be read",
        raw('{"jsonrpc":"2.0","id":$ID,"result":NaN}\n'),
        path=greeting_failed("invalid_response", "initialize"),
    ),
    at_initialize(
        "a version of tomorrow",
        reply({"protocolVersion": "2099-01-01", "capabilities": {}}),
        path=greeting_failed("unsupported_version", "2099-01-01"),
    ),
    at_initialize(
        "a version that is none",
        reply({"protocolVersion": 7}),
        path=greeting_failed("unsupported_version", "7"),
    ),
    Connect(
        "speaks no version of ours",
        (
            on(
                "server/discover",
                reply(
                    {
                        "resultType": "complete",
                        "supportedVersions": ["2099-01-01"],
                        "capabilities": {},
                    }
                ),
            ),
        ),
        ("unsupported_version", "2099-01-01"),
    ),
]
