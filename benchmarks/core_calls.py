"""What a call costs in Python calls and turns of the loop: counts, the same on every machine.

A server runs over real pipes, its client in another thread, one call at a time. What the
interpreter calls in the server's thread is counted for some calls and for twice as many: the
difference is what they cost, without start and end.

* calls in core/: functions and methods of `raxol_mcp.core` that were entered;
* calls: all Python functions that were entered, the tool's and asyncio's too;
* callbacks: what the event loop ran, from the read of the request to the write of the answer.

Exits with 1 when a budget is missed. Run: `python -m benchmarks.core_calls`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

import raxol_mcp
from benchmarks.harness.peer import HANDSHAKE, META, STATELESS, WHO
from raxol_mcp import Server, allow_all, ask, nonblocking, serve_stdio

if TYPE_CHECKING:
    from raxol_mcp.server.authorizer import AuthorizationContext, Authorizer, Decision

__all__ = ["BUDGETS", "Counts", "allowed", "asked_and_approved"]

CALLS: Final = 50
_CORE: Final = str(Path(raxol_mcp.__file__).parent / "core") + os.sep

# What must not be exceeded: (calls in core/, callbacks of the loop). A core budget of None: only
# told. An ask with its approval is two messages in and two out.
BUDGETS: Final[Mapping[str, tuple[int | None, int]]] = {
    "allowed": (25, 3),
    "asked and approved": (None, 6),
}

Json = dict[str, object]


class Counts:
    """What was called in one thread."""

    def __init__(self) -> None:
        self.core = self.all = self.callbacks = 0

    def profile(self, frame: FrameType, event: str, argument: object) -> None:
        """Count one event: what `sys.setprofile` calls."""
        if event == "call":
            code = frame.f_code
            self.all += 1
            if code.co_filename.startswith(_CORE):
                self.core += 1
            elif code is asyncio.Handle._run.__code__:
                self.callbacks += 1

    def per_call(self, fewer: Counts, calls: int) -> Counts:
        """Return what one of `calls` calls cost that are here and not in `fewer`."""
        one = Counts()
        one.core, rest = divmod(self.core - fewer.core, calls)
        one.all = (self.all - fewer.all) // calls
        one.callbacks, more = divmod(self.callbacks - fewer.callbacks, calls)
        assert (rest, more) == (0, 0), "every call costs the same"
        return one


class Client:
    """The other end of two pipes, blocking. `era` is the revision it speaks."""

    def __init__(self, reads: int, writes: int, era: str) -> None:
        self._reads = os.fdopen(reads, "rb")
        self._writes = os.fdopen(writes, "wb", buffering=0)
        self._era = era
        self._last_id = 0
        if era == HANDSHAKE:
            self.request(
                "initialize",
                {
                    "protocolVersion": HANDSHAKE,
                    "capabilities": {"elicitation": {}},
                    "clientInfo": WHO,
                },
            )

    def send(self, message: Json) -> None:
        """Write one line."""
        self._writes.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def receive(self) -> Json:
        """Wait for one line."""
        message: Json = json.loads(self._reads.readline())
        return message

    def request(self, method: str, params: Json) -> Json:
        """Send a request; return its result, every question on the way answered with yes."""
        self._last_id += 1
        meta = {**META, "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
        whole = params if self._era == HANDSHAKE else {**params, "_meta": meta}
        self.send({"id": self._last_id, "method": method, "params": whole})
        yes = {"action": "accept", "content": {"approve": True}}
        message = self.receive()
        if "method" in message:
            self.send({"id": message["id"], "result": yes})
            message = self.receive()
        result = message["result"]
        assert isinstance(result, dict), message
        if result.get("resultType") == "input_required":
            answer = {"inputResponses": {"approve": yes}, "requestState": result["requestState"]}
            return self.request(method, {**params, **answer})
        return result

    def call(self) -> None:
        """Call the tool; its answer must be what was sent."""
        result = self.request("tools/call", {"name": "echo", "arguments": {"text": "hello"}})
        assert result["content"] == [{"type": "text", "text": "hello"}], result

    def close(self) -> None:
        """End the server's input, and wait for the end of its output."""
        self._writes.close()
        assert self._reads.read() == b""
        self._reads.close()


def counted(authorizer: Authorizer, era: str, calls: int) -> Counts:
    """Serve one client that makes `calls` calls, and count from start to end."""
    server = Server("bench", authorizer=authorizer, authorizer_source="configured")

    @server.tool
    async def echo(text: str) -> str:
        """Echo."""
        return text

    server_reads, client_writes = os.pipe()
    client_reads, server_writes = os.pipe()

    def talk() -> None:
        client = Client(client_reads, client_writes, era)
        for _ in range(calls):
            client.call()
        client.close()

    async def serve() -> None:
        thread = threading.Thread(target=talk)
        thread.start()
        await serve_stdio(server, stdin_fd=server_reads, stdout_fd=server_writes)
        os.close(server_reads)
        os.close(server_writes)
        thread.join()

    counts = Counts()
    sys.setprofile(counts.profile)
    try:
        asyncio.run(serve())
    finally:
        sys.setprofile(None)
    return counts


def per_call(authorizer: Authorizer, era: str) -> Counts:
    """Count what one call costs."""
    counted(authorizer, era, 1)  # whatever is made or loaded once is there now
    fewer = counted(authorizer, era, CALLS)
    return counted(authorizer, era, 2 * CALLS).per_call(fewer, CALLS)


def allowed(era: str) -> Counts:
    """Count a call that the authorizer allows."""
    return per_call(allow_all(), era)


def asked_and_approved(era: str) -> Counts:
    """Count a call that the authorizer asks the human about, who says yes."""

    @nonblocking
    def authorizer(
        name: str, arguments: Mapping[str, object], context: AuthorizationContext
    ) -> Decision:
        return ask("Run it?")

    return per_call(authorizer, era)


def main() -> int:
    """Count, print, and say whether every budget is kept."""
    kept = True
    print(f"{'per call':36}{'calls in core':>15}{'callbacks':>12}{'calls':>8}")
    kinds: dict[str, Callable[[str], Counts]] = {
        "allowed": allowed,
        "asked and approved": asked_and_approved,
    }
    for kind, count in kinds.items():
        core_budget, callback_budget = BUDGETS[kind]
        for era in (HANDSHAKE, STATELESS):
            one = count(era)
            within = core_budget is None or one.core <= core_budget
            within = within and one.callbacks <= callback_budget
            kept = kept and within
            core = f"{one.core}" if core_budget is None else f"{one.core} of {core_budget}"
            callbacks = f"{one.callbacks} of {callback_budget}"
            verdict = "" if within else "  OVER BUDGET"
            print(f"{kind + ', ' + era:36}{core:>15}{callbacks:>12}{one.all:>8}{verdict}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
