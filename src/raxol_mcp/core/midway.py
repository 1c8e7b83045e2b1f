"""What leaves the server while calls run: progress, logs, questions of a running tool, news.

Nothing here ends a call. What a tool says after its call was closed goes nowhere.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from raxol_mcp.core.calls import Call, CallState, Closed, MidwayAsk
from raxol_mcp.core.effects import Push, Resolve
from raxol_mcp.core.questions import Question
from raxol_mcp.core.subscriptions import listeners, stamped, wants_broadcast
from raxol_mcp.wire.jsonrpc import JSONObject, Notification
from raxol_mcp.wire.meta import LOG_LEVELS

if TYPE_CHECKING:
    from raxol_mcp.core.ledger import Ledger
    from raxol_mcp.core.peers import Peer

__all__ = ["Midway"]

_WORKING: Final = frozenset({CallState.AUTHORIZING, CallState.RUNNING})


class Midway:
    """Messages that belong to a running call, or to nobody in particular."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def asked(self, call: Call, key: str, question: Question) -> None:
        """Put a running tool's question; its call must be working."""
        ledger = self._ledger
        if call.state in _WORKING:
            ask = MidwayAsk(call, key)
            ledger.deadlines.add(ask, ledger.limits.elicitation_timeout, ledger.now)
            ledger.put(call, question, ask)
        else:
            ledger.effects.append(Resolve(call, key, None))

    def expired(self, ask: MidwayAsk) -> None:
        """Nobody answered a running tool's question in time."""
        call, asks = ask.call, ask.call.peer.asks
        ask_id = next((id for id, wait in asks.items() if wait is ask), None)
        if ask_id is not None:  # else the call was closed in this very tick
            del asks[ask_id]
            self._ledger.effects.append(Resolve(call, ask.key, None))
            self._ledger.retract(call.peer, ask_id, call.id, Closed.ANSWER_TIMEOUT)

    def unasked(self, call: Call, key: str) -> None:
        """The running tool does not wait for this answer any more."""
        asks = call.peer.asks
        for ask_id, wait in asks.items():
            if isinstance(wait, MidwayAsk) and wait.call is call and wait.key == key:
                del asks[ask_id]
                self._ledger.deadlines.remove(wait)
                self._ledger.retract(call.peer, ask_id, call.id, Closed.CANCELLED)
                return

    def unanswerable(self, peer: Peer) -> None:
        """No answer comes from `peer` any more: tools that wait for one need not wait longer."""
        for ask_id, ask in list(peer.asks.items()):
            assert isinstance(ask, MidwayAsk), "parked calls of this connection were closed first"
            del peer.asks[ask_id]
            self._ledger.deadlines.remove(ask)
            self._ledger.effects.append(Resolve(ask.call, ask.key, None))

    def progressed(
        self, call: Call, progress: float, total: float | None, message: str | None
    ) -> None:
        """MCP basic/utilities/progress: only for a live token, and only ever increasing."""
        if call.progress_token is None or call.state not in _WORKING:
            return
        if not math.isfinite(progress) or (call.progress is not None and progress <= call.progress):
            return
        call.progress = progress
        params: JSONObject = {"progressToken": call.progress_token, "progress": progress}
        if total is not None and math.isfinite(total):
            params["total"] = total
        # `message` exists from 2025-03-26 on; an older client would not know the field.
        old = call.era.parks and call.peer.version == "2024-11-05"
        if message is not None and not old:
            params["message"] = message
        self._about(call, Notification("notifications/progress", params))

    def logged(self, call: Call, severity: int, logger: str | None, data: object) -> None:
        """Send a log message if the client of this call wants that severity."""
        if call.state not in _WORKING:  # first: a listen keeps nothing of its request
            return
        wanted = call.era.log_severity(call)
        if wanted is None or severity < wanted:
            return
        params: JSONObject = {"level": LOG_LEVELS[severity], "data": data}
        if logger is not None:
            params["logger"] = logger
        self._about(call, Notification("notifications/message", params))

    def _about(self, call: Call, message: Notification) -> None:
        if call.peer.open:
            push = Push(call.peer.connection, message, call.id, droppable=True)
            self._ledger.effects.append(push)

    def notified(self, method: str, params: JSONObject) -> None:
        """Tell everybody who wants to hear it, once per subscription."""
        effects = self._ledger.effects
        message = Notification(method, params or None)
        for peer in self._ledger.peers.all():
            if wants_broadcast(peer, method, params):
                effects.append(Push(peer.connection, message, None))
            if peer.open and peer.listening:
                for call in listeners(peer, method, params):
                    effects.append(Push(peer.connection, stamped(call, method, params), call.id))
