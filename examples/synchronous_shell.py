"""A shell of your own: the core without asyncio, threads or a clock.

    python examples/synchronous_shell.py

`ServerCore` decides and never does: facts go in, effects come out. `Shell` performs them on the
spot, and its clock is a number. `docs/write-a-shell.md` walks through it. Below it, a call is
parked, a person takes too long, and a minute passes in no time.
"""

from collections.abc import Callable

from raxol_mcp import ConnectionFacts, Limits
from raxol_mcp.core.effects import (
    Effect,
    Job,
    Push,
    Record,
    Reply,
    Resolve,
    StartWorker,
    StopWorker,
)
from raxol_mcp.core.eras import Identity
from raxol_mcp.core.outcomes import Asked, Outcome, Refused, Returned
from raxol_mcp.core.questions import approval
from raxol_mcp.core.seal import Seal
from raxol_mcp.core.server import ServerCore
from raxol_mcp.errors import METHOD_NOT_FOUND
from raxol_mcp.wire.jsonrpc import Outgoing, decode

Tool = Callable[[dict[str, object]], str]


class Shell:
    """Runs tools one after the other, in the order in which the core wants them run.

    A tool is asked about first when its name is in `dangerous`. `sent` is what went to the peer.
    """

    def __init__(self, tools: dict[str, Tool], dangerous: set[str], limits: Limits) -> None:
        names = iter(range(1_000_000))
        self.core = ServerCore(
            limits,
            identity=Identity("synchronous", "1"),
            seal=Seal(b"a key of this example alone, 32 bytes"),
            new_id=lambda: f"question-{next(names)}",  # predictable: do not copy this
        )
        self.now = 0.0
        self.sent: list[Outgoing] = []
        self._tools = tools
        self._dangerous = dangerous
        self.perform(self.core.opened("peer", ConnectionFacts(transport="example"), self.now))

    def receive(self, line: bytes) -> None:
        """Take one message of the peer."""
        self.perform(self.core.received("peer", decode(line), self.now))

    def wait(self, seconds: float) -> None:
        """Let time pass, stopping at every deadline on the way."""
        until = self.now + seconds
        while (due := self.core.next_deadline) is not None and due <= until:
            self.now = max(self.now, due)
            self.perform(self.core.tick(self.now))
        self.now = until

    def perform(self, effects: list[Effect]) -> None:
        """Do what the core wants done, in order."""
        for effect in effects:
            match effect:
                case Push():
                    self.sent.append(effect.message)
                case StartWorker():
                    outcome = self._work(effect)
                    # Exactly one report per StartWorker; it may start the next one.
                    self.perform(self.core.worker_ended(effect.call, outcome, self.now))
                case StopWorker() | Reply() | Resolve() | Record():
                    pass  # nothing runs beside us, and nobody called `request`

    def _work(self, effect: StartWorker) -> Outcome:
        call = effect.call
        tool = self._tools.get(call.name)
        if not call.method.is_tool or tool is None:
            return Refused(METHOD_NOT_FOUND, f"there is no {call.name or call.method.name}")
        if effect.job is Job.AUTHORIZE_THEN_RUN and call.name in self._dangerous:
            return Asked((approval(f"Run {call.name}?", call.name),))
        text = tool(call.arguments)
        return Returned(call.era.complete({"content": [{"type": "text", "text": text}]}))


def main() -> None:
    """Let a person approve, and let a person be too late."""
    launched: list[object] = []

    def launch(arguments: dict[str, object]) -> str:
        launched.append(arguments["what"])
        return "launched"

    shell = Shell({"launch": launch}, {"launch"}, Limits(elicitation_timeout=60.0))
    shell.receive(
        b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
        b'"capabilities":{"elicitation":{}},"clientInfo":{"name":"example","version":"1"}}}'
    )
    call = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"launch",'
    call += b'"arguments":{"what":"%s"}}}'
    yes = b'{"jsonrpc":"2.0","id":"%s","result":{"action":"accept","content":{"approve":true}}}'

    shell.receive(call % (1, b"a rocket"))
    assert shell.core.stats()["parked"] == 1, "it waits for the person and holds no worker"
    assert launched == []
    shell.receive(yes % question_in(shell.sent[-1]))
    assert launched == ["a rocket"]

    shell.receive(call % (2, b"another"))
    late = question_in(shell.sent[-1])
    shell.wait(59.9)
    assert shell.core.stats()["parked"] == 1, "the person still has a moment"
    shell.wait(0.1)
    assert "elicitation timed out" in str(shell.sent), "silence is not consent"
    shell.receive(yes % late)
    assert launched == ["a rocket"], "a late yes finds nothing to approve"
    print(shell.core)


def question_in(message: Outgoing) -> bytes:
    """Return the id of a question."""
    id = getattr(message, "id", None)
    assert isinstance(id, str), "a question is a request, and has an id"
    return id.encode()


if __name__ == "__main__":
    main()
