"""What clients do when their server misbehaves: this project's, the official SDK's and FastMCP's.

Each fault is done once, to a client in a process of its own, by the scripted peers of
`tests/client/peers`, over a pipe or HTTP. What became of the call, of the next one and of closing
is told: an answer, an error, or a hang (nothing within the limit). Calls are given a timeout of
three seconds, except where the fault is about what happens without one. Run:
`python -m benchmarks.client_faults [--fastmcp-python PATH] [--only WORD]`. Without a Python that
has FastMCP 4 its column says so.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from benchmarks.harness.contest import machine
from benchmarks.harness.web import ROOT
from tests.client.peers.http_peer import HttpPeer
from tests.client.peers.process import Processes
from tests.client.peers.script import (
    ECHO,
    Message,
    Rule,
    Step,
    as_usual,
    drop,
    forget,
    http,
    leave,
    notice,
    on,
    raw,
    reply,
    script,
    silent,
    stop_reading,
    text,
)

SIDES: Final = ("ours", "official", "fastmcp")
PROGRAM: Final = Path(__file__).parent / "harness" / "tried.py"
AT_ONCE: Final = 2
TIMEOUT: Final = 3.0


@dataclass(frozen=True)
class Fault:
    """One way to misbehave. `acts` is what the client does; `limit` when that is a hang."""

    name: str
    rules: tuple[Rule, ...]
    wire: str = "pipe"
    preset: str = "legacy"
    acts: tuple[str, ...] = ("call", "call", "close")
    timeout: float | None = TIMEOUT
    limit: float = 12.0
    options: Message = field(default_factory=dict)


def once(name: str, *steps: Step, **more: Any) -> Fault:
    """Build a fault of the first call."""
    return Fault(name, (on("tools/call", *steps, times=1, life=1),), **more)


NOT_UTF_8: Final = raw(
    b'{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"\xff"}]}}\n'
)
DEEP: Final = raw(
    '{"jsonrpc":"2.0","id":$ID,"result":{"a":', ("[", 100_000), ("]", 100_000), "}}\n"
)
FAULTS: Final = (
    once("a line that is no UTF-8, then the answer", raw(b"\xff\xfe\n"), as_usual()),
    once("an answer that is no UTF-8", NOT_UTF_8),
    once("a result nested 100,000 deep", DEEP),
    once(
        "100,000 notifications, then the answer",
        notice("notifications/x", count=100_000),
        as_usual(),
    ),
    once("a line of 200 MB", raw(("A", 200_000_000), "\n"), acts=("call", "wait", "call", "close")),
    once("never answers", silent()),
    once("never answers, and no timeout is given", silent(), timeout=None, limit=45.0),
    Fault(
        "never answers initialize", (on("*", silent()),), timeout=None, limit=75.0, acts=("close",)
    ),
    Fault(
        "reads no more",
        (on("notifications/initialized", stop_reading()),),
        acts=("large call", "call", "close"),
    ),
    once("the process dies", leave(1), acts=("call", "wait", "call", "close")),
    Fault(
        "the process is behind its child", (), options={"grandchild": True}, acts=("call", "close")
    ),
    Fault("closed by another task", (), acts=("call", "close elsewhere")),
    Fault(
        "one cursor for ever",
        (on("tools/list", reply({"tools": [ECHO], "nextCursor": "c"})),),
        acts=("list", "call", "close"),
    ),
    once("the connection is reset", drop("reset"), wire="http"),
    once("the body is cut off", drop("body"), wire="http"),
    once(
        "the session is forgotten",
        forget(),
        http(404),
        wire="http",
        acts=("call", "call", "call", "close"),
    ),
    once("the server restarts", leave(), wire="http", acts=("call", "call", "call", "close")),
    once("500", http(500), wire="http"),
    once("200 with a page", http(200, "<html>", Content_Type="text/html"), wire="http"),
    once("200 with nothing", http(200), wire="http"),
    once("no resultType", text("ok"), wire="http", preset="modern"),
)


async def tried(python: str, side: str, fault: Fault) -> str:
    """Let one client meet one fault, and say in a few words what became of it."""
    data = script(fault.preset, *fault.rules, **fault.options)
    plan: Message = {"acts": fault.acts, "timeout": fault.timeout, "limit": fault.limit}
    with TemporaryDirectory() as folder:
        processes = Processes(data, Path(folder))
        if fault.wire == "pipe":
            plan |= {"command": processes.command, "args": processes.args}
            told = await _run(python, side, plan, fault)
        else:
            async with HttpPeer(data) as peer:
                told = await _run(python, side, plan | {"url": peer.url}, fault)
        # What ends with its pipes has a moment to do so.
        for _ in range(30):
            if left := processes.alive():
                await asyncio.sleep(0.1)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
    return _sentence(told) + (f"; {len(left)} left running" if left else "")


async def _run(python: str, side: str, plan: Message, fault: Fault) -> list[Message]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    process = await asyncio.create_subprocess_exec(
        *(python, str(PROGRAM), side, json.dumps(plan)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=environment if side == "ours" else {**os.environ},
    )
    told: list[Message] = []
    assert process.stdout is not None
    try:
        async with asyncio.timeout((len(fault.acts) + 2) * fault.limit + 30):
            while line := await process.stdout.readline():
                told.append(json.loads(line))
            code = await process.wait()
    except TimeoutError:
        told.append({"act": "all of it", "outcome": "hang", "seconds": fault.limit})
        process.kill()
        code = 0
    if code:
        told.append({"act": "the process", "outcome": f"crash {code}", "seconds": 0.0})
    return told


def _sentence(told: list[Message]) -> str:
    """Say what is worth saying: all but what went well and what was waited for."""
    words = []
    for each in told:
        act, outcome, seconds = each["act"], each["outcome"], each["seconds"]
        if act == "open" and outcome == "ok":
            continue
        if act.startswith("close") and outcome == "ok" and seconds < 5:
            continue
        slow = f" {seconds:.0f} s" if outcome != "hang" and seconds >= 1 else ""
        what = f"{act} " if act not in ("call", "large call", "list") else ""
        words.append(f"{what}{outcome}{slow}")
    return ", ".join(words) or "ok"


async def main() -> None:
    """Try every client on every fault, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fastmcp-python", metavar="PATH", help="a Python that has FastMCP 4")
    parser.add_argument("--only", default="", help="faults with this in their name")
    options = parser.parse_args()
    pythons = {
        "ours": sys.executable,
        "official": sys.executable,
        "fastmcp": options.fastmcp_python,
    }
    gate = asyncio.Semaphore(AT_ONCE)

    async def cell(side: str, fault: Fault) -> str:
        if pythons[side] is None:
            return "not installed"
        async with gate:
            return await tried(pythons[side], side, fault)

    print(machine())
    print(f"| wire | the server | {' | '.join(SIDES)} |\n|{'---|' * (len(SIDES) + 2)}")
    for fault in FAULTS:
        if options.only in fault.name:
            cells = await asyncio.gather(*(cell(side, fault) for side in SIDES))
            print(f"| {fault.wire} | {fault.name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
